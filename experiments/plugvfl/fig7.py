"""PlugVFL, Figure 7 on Fashion-MNIST: without L_R, and how fast psi is.

  python launch.py --config=experiments/plugvfl/fig7.py

Lambda 0.1 and 0.5, as Algorithm 1 and without L_R, each with psi at ten times
the task's learning rate (our default) and at the same rate; and psi's learning
rate once more as five steps a round.
"""
from experiments.config import Config, Entry
from experiments.plugvfl import common

LAMBDAS = (0.1, 0.5)
SLOW = dict(psi_learning_rate=0.01)


def get_config() -> Config:
  entry = lambda label, **options: Entry('plugvfl', LAMBDAS, options, label)
  listed = (
      Entry('none'),
      entry('plugvfl'),
      entry('without L_R', regularize=False),
      entry('slow psi', **SLOW),
      entry('slow psi, without L_R', regularize=False, **SLOW),
      entry('slow psi, 5 steps', psi_steps=5, **SLOW),
      entry('batch negatives', negatives='batch'),
  )
  return common.config('fig7', listed, **common.completions())
