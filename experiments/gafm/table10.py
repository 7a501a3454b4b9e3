"""GAFM, Table 10, Spambase: the bound Delta of the randomized response.

  python launch.py --config=experiments/gafm/table10.py \
      --config.data.path=spambase.data

The paper's measure is the mean leak AUC of the three attacks over the training
AUC: .727, .733, .722, .723, .746 for the five values on all data, and .849,
.856, .968, .992, 1.043 on a tenth. `python -m experiments.gafm.choose_delta`
applies the paper's rule to a random tenth (appendix D.3), in one call.
"""
from vfljax.runner.config import Config, Entry
from experiments.gafm import common

DELTAS = (0.05, 0.1, 0.2, 0.3, 0.5)


def get_config() -> Config:
  return common.spambase('table10', [Entry('gafm', DELTAS)])
