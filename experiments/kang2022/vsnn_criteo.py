"""Kang et al., Tables 14 and 15, Figures 8 and 10, VSNN:
Criteo.

  python launch.py --config=experiments/kang2022/vsnn_criteo.py \
      --config.data.path=train.txt

120000 rows, a sixth of them for test, as the file has its clicks (the paper's
1 : 16 it does not explain). Embeddings and two linear layers: Wide & Deep
bottoms, whose counts are categories too.
"""
from vfljax.runner.config import Config, DataConfig
from experiments.kang2022 import paper
from experiments.kang2022.common import vnn


def get_config() -> Config:
  return vnn(
      'kang2022_vsnn_criteo', 'vsnn',
      DataConfig(
          name='criteo', path='train.txt', options='rows=120000', test=1 / 6,
          scale='none',
      ),
      buckets=1000,
      paper=paper.vnn('vsnn', 'criteo'),
  )
