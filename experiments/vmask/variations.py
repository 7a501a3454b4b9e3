"""VMask, Figures 9, 10, Tables IV to VI: other auxiliary samples and parties.

  python -m experiments.vmask.variations sizes lenet5 mnist.npz --out=fig9.json
  python -m experiments.vmask.variations parties mlp3 mnist.npz
  python -m experiments.vmask.variations outside lenet5 mnist.npz \
      --other=fashion_mnist --other_path=fashion_mnist.npz

`sizes`: 2^2 to 2^7 auxiliary samples of a class on average, drawn over all
classes (Figure 9, which says of each class). `classes` and
`noise`: auxiliary samples of some classes only, or with noise (Figure 10).
`outside`: from another data set (Table IV). `parties`: 2 to 10 with one
attacker (Table V). `attackers`: 2 to 4, all passive ones attacking (Table VI).
`transcript`: nothing is varied. `augmented`: held-out samples unchanged (as
elsewhere), held-out samples flipped and cropped, or flipped and cropped copies
of training samples; section V-A says "by randomly flipping/cropping images",
not of which. In all, `recovered` is an attacker who kept its transcript.
--authors uses the settings of `authors`.
"""
import argparse
from collections.abc import Callable
import dataclasses
from functools import partial
from typing import Any

import numpy as np

from experiments import studies
from experiments.vmask import authors, common, study
from vfljax.runner import errors
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Config, Entry
from vfljax.runner.machine import device

Change = Callable[[Config], None]


def changed(group: str, **fields: Any) -> Change:
  """Sets fields of a group of the configuration."""

  def change(config: Config) -> None:
    where = getattr(config, group)
    setattr(config, group, dataclasses.replace(where, **fields))

  return change


def variations(study_name: str, args: argparse.Namespace) -> dict[str, Change]:
  """What a study varies, by the name of the row."""
  if study_name == 'sizes':
    return {
        f'{n} a class': changed('auxiliary', samples=10 * n)
        for n in (4, 8, 16, 32, 64, 128)
    }
  if study_name == 'classes':
    return {
        f'{n} classes': changed('auxiliary', classes=n)
        for n in (10, 8, 6, 4, 2)
    }
  if study_name == 'noise':
    return {
        f'noise {s:g}': changed('auxiliary', noise=s)
        for s in (0.0, 0.1, 1.0, 3.0, 10.0)
    }
  if study_name == 'outside':
    return {
        args.other: changed(
            'auxiliary', data=args.other, path=args.other_path
        )
    }
  if study_name == 'augmented':
    return {
        how: changed('auxiliary', augment=how)
        for how in ('none', 'held_out', 'training')
    }
  if study_name == 'transcript':
    return {'as in Table II': lambda config: None}
  counts = (2, 4, 6, 8, 10) if study_name == 'parties' else (2, 3, 4)
  return {
      f'{n} parties': changed('data', parties=n, split='strips')
      for n in counts
  }


def measured(
    config: Config, masked: Entry, attackers: int, vanilla: bool
) -> dict[str, Any]:
  """What one row measures: {'vanilla' or 'VMask': {measure: [seeds, ...]}}."""
  setting = study.prepare(config)
  found = {}
  looks: dict[str, study.Look] = dict(main=study.main_accuracy)
  for k in range(1, attackers + 1):
    looks[f'attack {k}'] = partial(study.attack, party=k)
    looks[f'scratch {k}'] = partial(study.scratch, party=k)
  if vanilla:
    found['vanilla'] = study.run(setting, Entry('none'), looks)
  looks = {n: f for n, f in looks.items() if not n.startswith('scratch')}
  looks |= {
      f'recovered {k}': partial(study.attack, party=k, recovered=True)
      for k in range(1, attackers + 1)
  } | dict(shadow=study.shadow_accuracy, facts=study.facts)
  seen: dict[str, Any] = study.run(setting, masked, looks)
  found['VMask'] = seen | seen.pop('facts')
  return {
      who: {n: x[:, -1].tolist() for n, x in values.items()}
      for who, values in found.items()
  }


@errors.explained()
def main(argv: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=str(__doc__).split('\n')[0])
  parser.add_argument('study', choices=(
      'sizes', 'classes', 'noise', 'outside', 'parties', 'attackers',
      'transcript', 'augmented',
  ))
  parser.add_argument('model', choices=common.ABBREVIATIONS)
  parser.add_argument('path')
  parser.add_argument('--dataset', default='mnist')
  parser.add_argument('--other', default='fashion_mnist')
  parser.add_argument('--other_path', default='fashion_mnist.npz')
  parser.add_argument('--budget', type=float, default=common.BUDGET)
  parser.add_argument('--seeds', type=errors.one_or_more, default=3)
  parser.add_argument('--limit', type=int, default=0)
  parser.add_argument('--epochs', type=int, default=0)
  parser.add_argument('--authors', action='store_true')
  parser.add_argument('--out', default='', type=errors.new_file)
  args = parser.parse_args(argv)
  strips = args.study in ('parties', 'attackers')
  if args.authors and strips and args.model == 'lenet5':
    parser.error(
        "the authors' LeNet5 needs images 16 pixels wide, and strips for more "
        'parties than two are not: leave out --authors, or take mlp3.'
    )
  begun = studies.begin('experiments.vmask.variations', argv)
  device.set_up(1, '~/.cache/vfljax')
  rows = {}
  for name, change in variations(args.study, args).items():
    config = common.config('variations', (), args.model, args.dataset)
    config.data.path, config.seeds = args.path, args.seeds
    if args.authors:
      authors.apply(config)
      masked = authors.masked(args.model, budgets=(args.budget,))
    else:
      masked = common.masked(budgets=(args.budget,), model=args.model)
    config.data.limit = args.limit or config.data.limit
    config.train.epochs = args.epochs or config.train.epochs
    change(config)
    attackers = config.data.parties - 1 if args.study == 'attackers' else 1
    # Other auxiliary samples are nothing to a federation without VMask.
    vanilla = not rows or args.study in ('parties', 'attackers')
    rows[name] = measured(config, masked, attackers, vanilla)
    for who, found in rows[name].items():
      text = '  '.join(
          f'{n} {study.mean_std(np.asarray(x))}' for n, x in found.items()
      )
      print(f'{name:12} {who:8} {text}', flush=True)
    table = load_data(config.data) if args.out else None
    studies.write(args.out, begun, range(args.seeds), table, rows=rows)


if __name__ == '__main__':
  main()
