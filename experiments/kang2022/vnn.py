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

What party B holds is the same in both algorithms. The paper says it once for
each data set (Appendix B: tags of NUS-WIDE, whose image features and labels are
party A's; one half of each image), and of VSNN that party A has no network of
its own (Table 2: f^A does not exist); so
party A's features are nobody's there, which is why the same data are worth less
(Tables 13 to 15, without a protection: Criteo 70.1 and 68.2, CIFAR-10 74.0 and
65.7). It does not say so in a sentence; 'vsnn,criteo,all' and
'vsnn,spambase,all' have the other reading, party B with all columns.

NUS-WIDE: the ten concepts are data/nuswide.py's, and the two are ours: the
paper names neither. Party A has the image features, party B the tags.

Criteo: the file's first 120000 rows, a sixth of them for test (the paper draws
as many at random), as the file has its clicks (the paper's 1 : 16 it does not
explain). Embeddings and two linear layers: Wide & Deep bottoms, whose counts
are categories too. Party A has half of the counts and half of the categories.

BHI and CIFAR-10: bottoms are ResNet18 (Table 9).
"""
from typing import Any, NamedTuple

from experiments.kang2022 import common, paper
from vfljax.data import criteo
from vfljax.runner import variants
from vfljax.runner.checking.combinations import HALVES
from vfljax.runner.config import Config, DataConfig

FASHION = dict(path='fashion_mnist.npz', split='bottom_top')


class Samples(NamedTuple):
  """A data set of the tables.

  Attributes:
    fields: Of `DataConfig`; the split is VHNN's.
    more: Arguments of `common.vnn`.
  """

  fields: dict[str, Any]
  more: dict[str, Any] = {}

  def of(self, algorithm: str, everything: bool = False) -> DataConfig:
    """The samples for an algorithm, perhaps with all columns at party B."""
    if everything:
      plain: dict[str, Any] = dict(split='even', named='', ratios='')
      return DataConfig(**self.fields | plain)
    halves = self.fields.get('split') in HALVES  # Nobody's other one, always.
    unheld = algorithm == 'vsnn' and not halves
    return DataConfig(**self.fields, unheld=unheld)


def nuswide(options: str, **more: Any) -> Samples:
  """Image features at party A and tags at party B."""
  return Samples(dict(
      name='nuswide', path='nuswide', split='ratios', ratios='634:1000',
      options=options,
  ), more)


def clicks() -> Samples:
  party_a = ','.join((*criteo.COUNTS[:7], *criteo.CATEGORIES[:13]))
  return Samples(dict(
      name='criteo', path='train.txt', options='rows=120000', test=1 / 6,
      scale='none', split='named', named=f'{party_a};*',
  ), dict(buckets=1000))


DATA = {
    'nuswide2_bal': nuswide("concepts='sky,person';ratio=2"),
    'nuswide2_imb': nuswide("concepts='sky,person';ratio=9"),
    'nuswide10': nuswide('', classes=10),
    'criteo': clicks(),
    'bhi': Samples(
        dict(name='bhi', path='bhi', split='left_right'),
        dict(network='resnet18'),
    ),
    'cifar10': Samples(
        dict(name='cifar10', path='cifar10.npz', split='top_bottom'),
        dict(classes=10, network='resnet18'),
    ),
    'spambase': Samples(dict(name='spambase', path='spambase.data', test=0.3)),
    'fashion_imbalanced': Samples(dict(name='fashion_mnist_binary') | FASHION),
    'fashion10': Samples(
        dict(name='fashion_mnist') | FASHION, dict(classes=10)
    ),
}
VARIANTS = (
    *(f'{a},{data}' for a in ('vhnn', 'vsnn') for data in DATA),
    'vsnn,criteo,all', 'vsnn,spambase,all',
)


def get_config(variant: str = '') -> Config:
  algorithm, name, *rest = variants.choose(variant, VARIANTS).split(',')
  samples = DATA[name]
  ending = ''.join(f'_{word}' for word in rest)
  return common.vnn(
      f'kang2022_{algorithm}_{name}{ending}', algorithm,
      samples.of(algorithm, bool(rest)), paper=paper.vnn(algorithm, name),
      **samples.more,
  )
