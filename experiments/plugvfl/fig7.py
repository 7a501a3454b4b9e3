"""PlugVFL, Figure 7 on Fashion-MNIST: without L_R, and how strong psi is.

  python launch.py --config=experiments/plugvfl/fig7.py

Algorithm 1 with and without L_R, each with psi at ten times the task's learning
rate (our default) and at the same rate (slow), as it is printed: one eta for
all; and psi with five steps a round, and as wide as the attacker's head. p is
0.
"""
from experiments.plugvfl import common
from vfljax.runner.config import Config, Entry

LAMBDAS = (0.03, 0.3)
SLOW = dict(psi_learning_rate=0.01)


def get_config() -> Config:
  entry = lambda label, **options: Entry(
      'plugvfl', LAMBDAS, dict(drop=0.0) | options, label
  )
  listed = (
      Entry('none'),
      entry('plugvfl'),
      entry('without L_R', regularize=False),
      entry('5 psi steps', psi_steps=5),
      entry('wide psi', psi_hidden=common.MLP),
      entry('slow psi', **SLOW),
      entry('slow psi, without L_R', regularize=False, **SLOW),
  )
  found = common.config('fig7', listed, **common.completions())
  found.listed_attacks = ('model_completion', 'model_completion:all')
  return found
