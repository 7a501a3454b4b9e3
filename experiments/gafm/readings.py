"""GAFM on Spambase under other readings of what the paper leaves open.

  python launch.py --config=experiments/gafm/readings.py \
      --config.data.path=spambase.data

Each row changes one thing: the norm of each term's gradient, when u is drawn,
what the cross-entropy takes for the probability, the depth of G and D, the
critic's steps. The paper's row of Table 2 stands beside every one of them.
"""
from experiments.gafm import common
from experiments.gafm.common import SPREAD, rows
from vfljax.defenses.gafm import GAN, Reading
from vfljax.runner.config import Config

LISTED = (
    common.gafm('norm_sample', reading=Reading(norm='sample')),
    common.gafm('norm_none', reading=Reading(norm='none')),
    common.gafm('u_fixed', reading=Reading(redraw=False)),
    common.gafm('linear_gan', networks=GAN((), ())),
    common.gafm('literal_eq5', reading=Reading(link='sigmoid')),
    common.gafm('printed_eq5', reading=Reading(link='printed')),
    common.gafm('critic_steps_5', networks=GAN(critic_steps=5)),
)
PAPER = [
    row for entry in LISTED for row in rows(
        entry.name, 'Table 2, Spambase', (0.93, 0.04 / SPREAD),
        ((0.56, 0.04), (0.67, 0.05), (0.66, 0.05)),
    )
]


def get_config() -> Config:
  return common.spambase('readings', LISTED, PAPER)
