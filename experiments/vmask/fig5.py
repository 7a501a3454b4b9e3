"""VMask, Figure 5: model completion after every epoch of the training.

  python -m experiments.vmask.fig5 mlp3 mnist.npz --out=fig5_tm.json

The paper's rows of Table II, or those named; `recovered` is the attack on VMask
by who has kept its transcript.
"""
import argparse
from functools import partial

import numpy as np

from experiments import studies
from experiments.vmask import common, study
from vfljax.runner import errors
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


@errors.explained()
def main(argv: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=str(__doc__).split('\n')[0])
  parser.add_argument('model', choices=common.ABBREVIATIONS)
  parser.add_argument('path')
  parser.add_argument('--dataset', default='mnist')
  parser.add_argument('--only', default='')
  parser.add_argument('--repeats', type=int, default=2)
  parser.add_argument('--seeds', type=int, default=3)
  parser.add_argument('--out', default='', type=errors.new_file)
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.vmask.fig5', argv)
  device.set_up(1, '~/.cache/vfljax')
  config = common.config('fig5', (), args.model, args.dataset)
  config.data.path, config.seeds = args.path, args.seeds
  config.attack.repeats = args.repeats
  setting = study.prepare(config)
  known = entries(args.model)
  chosen = args.only.split(',') if args.only else list(known)
  curves = {}
  for name in chosen:
    looks = dict(attack=study.attack, main=study.main_accuracy)
    if name == 'none':
      looks |= dict(scratch=study.scratch)
    if name == 'VMask':
      looks |= dict(recovered=partial(study.attack, recovered=True))
    if name.startswith('VMask') and name != 'VMask-ALLS':
      looks |= dict(
          masked=partial(study.memory, 'masked'),
          norms=partial(study.memory, 'norms'),
      )
    found = study.run(setting, known[name], looks, every_epoch=True)
    curves[name] = {n: np.asarray(x, float).tolist() for n, x in found.items()}
    last = np.asarray(found['attack']).mean((0, -1))
    print(name, ' '.join(f'{100 * x:.1f}' for x in last), flush=True)
    table = load_data(config.data) if args.out else None
    studies.write(args.out, begun, range(args.seeds), table, curves=curves)


if __name__ == '__main__':
  main()
