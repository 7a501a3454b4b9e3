"""VMask, Figure 5: model completion after every epoch of the training.

  python -m experiments.vmask.fig5 mlp3 mnist.npz --out=fig5_tm.json

The rows are those of Table II, or those named by --only. `recovered` is the
attack on VMask by an attacker who kept its transcript. This takes hours: with
--work=FOLDER finished curves are kept there, so that the same command continues
and several commands with other --only can share the work.
"""
import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from experiments import studies
from experiments.vmask import common, study
from vfljax.runner import errors
from vfljax.runner.cli import asking
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Entry
from vfljax.runner.machine import device


def entries(model: str) -> dict[str, Entry]:
  """The figure's curves."""
  listed = [
      *(common.masked(kind, model=model) for kind in common.SELECTIONS),
      *common.compared(),
  ]
  return {'none': Entry('none')} | {entry.name: entry for entry in listed}


def looks(name: str) -> dict[str, Callable]:
  """What is looked at after each epoch under that defense."""
  found: dict[str, Callable] = dict(
      attack=study.attack, main=study.main_accuracy
  )
  if name == 'none':
    found |= dict(scratch=study.scratch)
  if name == 'VMask':
    found |= dict(recovered=partial(study.attack, recovered=True))
  if name.startswith('VMask') and name != 'VMask-ALLS':
    found |= dict(
        masked=partial(study.memory, 'masked'),
        norms=partial(study.memory, 'norms'),
    )
  return found


@errors.explained()
def main(argv: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=str(__doc__).split('\n')[0])
  parser.add_argument('model', choices=common.ABBREVIATIONS)
  parser.add_argument('path')
  parser.add_argument('--dataset', default='mnist')
  parser.add_argument('--only', default='')
  parser.add_argument('--repeats', type=int, default=2)
  parser.add_argument('--seeds', type=errors.one_or_more, default=3)
  parser.add_argument('--work', type=Path,
                      help='folder that keeps finished curves')
  parser.add_argument('--out', default='', type=errors.new_file)
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.vmask.fig5', argv)
  device.set_up(1, '~/.cache/vfljax')
  config = common.config('fig5', (), args.model, args.dataset)
  config.data.path, config.seeds = args.path, args.seeds
  config.attack.repeats = args.repeats
  setting, table = study.prepare(config), load_data(config.data)
  known = entries(args.model)
  about = dict(
      model=args.model, samples=asking.fingerprint(table), seeds=args.seeds,
      repeats=args.repeats,
  )
  curves, spent = {}, 0.0
  for name in args.only.split(',') if args.only else known:

    def measure(name=name):
      found = study.run(setting, known[name], looks(name), every_epoch=True)
      return {n: np.asarray(x, float).tolist() for n, x in found.items()}

    curves[name], seconds = studies.part(args.work, name, about, measure)
    spent += seconds
    last = np.asarray(curves[name]['attack']).mean((0, -1))
    print(name, ' '.join(f'{100 * x:.1f}' for x in last), flush=True)
    studies.write(
        args.out, begun, range(args.seeds), table,
        dict(seconds=round(spent, 1)), curves=curves,
    )


if __name__ == '__main__':
  main()
