"""Kang et al., Tables 13 and 15, Figures 7 and 9, VHNN:
Criteo.

  python launch.py --config=experiments/kang2022/vhnn_criteo.py \
      --config.data.path=train.txt

120000 rows, a sixth of them for test, as the file has its clicks (the paper's
1 : 16 it does not explain). Embeddings and two linear layers: Wide & Deep
bottoms, whose counts are categories too.
Party A has half of the counts and half of the categories.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn
from vfljax.data import criteo


def get_config() -> Config:
  return vnn(
      'kang2022_vhnn_criteo', 'vhnn',
      DataConfig(
          name='criteo', path='train.txt', options='rows=120000', test=1 / 6,
          scale='none', split='named',
          named=','.join((*criteo.COUNTS[:7], *criteo.CATEGORIES[:13])) + ';*',
      ),
      buckets=1000,
      paper=paper.vnn('vhnn', 'criteo'),
  )
