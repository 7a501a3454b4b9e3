"""VMask, Table I and Figure 2: which layers to hide, on a trained bottom.

  python -m experiments.vmask.table1 mlp3 mnist.npz --out=table1_mlp3.json

It trains without a defense, then completes the bottom network with one layer
hidden, with the first one, two, ... hidden, and with every pair of the first
three. The attacker knows 20 labels of each class (section III-B). --authors
uses the settings of `authors`.
"""
import argparse
import itertools

from experiments import studies
from experiments.vmask import authors, common, study
from vfljax.runner import errors
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Entry
from vfljax.runner.machine import device

# Table I, attack accuracy in %; single layers: text of section III-B.
PAPER = {
    'mlp3': {'1,2': 62.76, '1,3': 62.52, '2,3': 67.90},
    'lenet5': {
        '1': 54.81, '5': 83.73, '1,2': 56.45, '1,3': 57.26, '2,3': 62.07,
    },
    'vgg13': {'1': 39.02, '1,2': 24.28, '1,3': 23.92, '2,3': 24.66},
    'resnet18': {'1,2': 50.43, '1,3': 27.71, '2,3': 68.15},
}


def sets(count: int) -> list[tuple[int, ...]]:
  """The sets of layers to hide, of a network of `count`."""
  single = [(i,) for i in range(1, count + 1)]
  first = [tuple(range(1, i + 1)) for i in range(1, count + 1)]
  pairs = list(itertools.combinations((1, 2, 3), 2))
  return list(dict.fromkeys([(), *single, *first, *pairs]))


@errors.explained()
def main(argv: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=str(__doc__).split('\n')[0])
  parser.add_argument('model', choices=common.ABBREVIATIONS)
  parser.add_argument('path')
  parser.add_argument('--dataset', default='mnist')
  parser.add_argument('--known', type=int, default=20)
  parser.add_argument('--seeds', type=errors.one_or_more, default=3)
  parser.add_argument('--authors', action='store_true')
  parser.add_argument('--out', default='', type=errors.new_file)
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.vmask.table1', argv)
  device.set_up(1, '~/.cache/vfljax')
  config = common.config('table1', (), args.model, args.dataset)
  config.data.path, config.seeds = args.path, args.seeds
  config.attack.known, config.alone = args.known, False
  if args.authors:
    authors.apply(config)
  setting = study.prepare(config)
  chosen = sets(len(study.layer_names(setting)))
  text = lambda which: ','.join(map(str, which)) or 'none'
  looks = {text(which): study.hiding(setting, which) for which in chosen}
  found = study.run(setting, Entry('none'), looks)
  for which, values in found.items():
    paper = PAPER[args.model].get(which, '')
    print(f'{which:10} {study.mean_std(values)}  {paper}')
  rows = {which: values[:, -1].tolist() for which, values in found.items()}
  table = load_data(config.data) if args.out else None
  studies.write(
      args.out, begun, range(args.seeds), table, attack_accuracy=rows
  )


if __name__ == '__main__':
  main()
