"""Kang et al., Tables 13-15 and Figures 7-11: networks, VHNN and VSNN.

  python launch.py --config=experiments/kang2022/vnn.py:vhnn,spambase \
      --config.data.path=spambase.data

Evaluation settings 4 and 5: NS, DS and model completion. Tables 13 and 15,
Figures 7 and 9 are VHNN's, Tables 14 and 15, Figures 8 and 10 VSNN's; ten
classes are in Table 15 and Figures 9 and 10 alone. The word before the comma is
the algorithm, vhnn or vsnn, the one after it the data:

  nuswide2_bal      --config.data.path=nuswide; two classes, 1 : 2
  nuswide2_imb      the same, 1 : 9
  nuswide10         the same, ten classes
  criteo            --config.data.path=train.txt
  bhi               --config.data.path=bhi; for a GPU
  cifar10           --config.data.path=cifar10.npz; ten classes; for a GPU
  spambase          spambase.data, 1 : 1.5; stands in for nuswide2_bal
  fashion_imbalanced  fashion_mnist.npz: shirts against the rest, 1 : 9; stands
                    in for nuswide2_imb
  fashion10         fashion_mnist.npz, ten classes; stands in for nuswide10

Stand-ins are for who cannot have the paper's NUS-WIDE. In those of
Fashion-MNIST party B holds the upper halves.

NUS-WIDE: the ten concepts are data/nuswide.py's, and the two are ours: the
paper names neither. In VHNN party A has the image features, in VSNN party B has
the tags.

Criteo: 120000 rows, a sixth of them for test, as the file has its clicks (the
paper's 1 : 16 it does not explain). Embeddings and two linear layers: Wide &
Deep bottoms, whose counts are categories too. In VHNN party A has half of the
counts and half of the categories.

BHI and CIFAR-10: bottoms are ResNet18 (Table 9).
"""
from typing import Any, NamedTuple

from experiments.kang2022 import common, paper
from vfljax.data import criteo
from vfljax.runner import variants
from vfljax.runner.config import Config, DataConfig

FASHION = dict(path='fashion_mnist.npz', split='bottom_top')


class Samples(NamedTuple):
  """A data set of the tables: fields of `DataConfig`, by algorithm."""

  vhnn: dict[str, Any]
  vsnn: dict[str, Any]
  more: dict[str, Any] = {}  # arguments of `common.vnn`


def alike(fields: dict[str, Any], **more: Any) -> Samples:
  return Samples(fields, fields, more)


def nuswide(options: str, **more: Any) -> Samples:
  """Image features at party A and tags at party B; VSNN: the tags alone."""
  own = dict(name='nuswide', path='nuswide')
  tags = f'{options};only=tag' if options else 'only=tag'
  halves = dict(split='ratios', ratios='634:1000', options=options)
  return Samples(own | halves, own | dict(options=tags), more)


def clicks() -> Samples:
  own = dict(
      name='criteo', path='train.txt', options='rows=120000', test=1 / 6,
      scale='none',
  )
  party_a = ','.join((*criteo.COUNTS[:7], *criteo.CATEGORIES[:13]))
  named = dict(split='named', named=f'{party_a};*')
  return Samples(own | named, own, dict(buckets=1000))


DATA = {
    'nuswide2_bal': nuswide("concepts='sky,person';ratio=2"),
    'nuswide2_imb': nuswide("concepts='sky,person';ratio=9"),
    'nuswide10': nuswide('', classes=10),
    'criteo': clicks(),
    'bhi': alike(
        dict(name='bhi', path='bhi', split='left_right'), network='resnet18'
    ),
    'cifar10': alike(
        dict(name='cifar10', path='cifar10.npz', split='top_bottom'),
        classes=10, network='resnet18',
    ),
    'spambase': alike(dict(name='spambase', path='spambase.data', test=0.3)),
    'fashion_imbalanced': alike(dict(name='fashion_mnist_binary') | FASHION),
    'fashion10': alike(dict(name='fashion_mnist') | FASHION, classes=10),
}
VARIANTS = tuple(f'{a},{data}' for a in ('vhnn', 'vsnn') for data in DATA)


def get_config(variant: str = '') -> Config:
  algorithm, name = variants.choose(variant, VARIANTS).split(',')
  samples = DATA[name]
  fields = samples.vhnn if algorithm == 'vhnn' else samples.vsnn
  return common.vnn(
      f'kang2022_{algorithm}_{name}', algorithm, DataConfig(**fields),
      paper=paper.vnn(algorithm, name), **samples.more,
  )
