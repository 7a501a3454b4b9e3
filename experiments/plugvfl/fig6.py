"""PlugVFL, Figures 4 and 6 and Table 2 on Fashion-MNIST: lambda times p.

  python launch.py --config=experiments/plugvfl/fig6.py

Model accuracy before and after quitting, and what a passive party completes its
extractor to, with 40 labels and with all. One program trains every lambda, p
and seed: p = 0 is Figure 4's curve, p = 0.05 Figure 6's. '5 psi steps' (p =
0.05) is the setting for attackers with many labels. The attackers' baselines
(untrained extractor, raw half) are in the report's table of what needs no leak.
"""
from experiments.plugvfl import common
from vfljax.runner.config import Config, Entry

LAMBDAS = (0.03, 0.1, 0.5, 0.9)


def get_config() -> Config:
  listed = (
      Entry('none'),
      Entry('plugvfl', LAMBDAS, grid=dict(drop=(0.0, 0.05))),
      Entry('plugvfl', (0.03, 0.1, 0.3), dict(psi_steps=5), '5 psi steps'),
  )
  return common.config('fig6', listed, **common.completions())
