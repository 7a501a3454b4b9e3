"""VMask, Figure 8 with LeNet5 on MNIST's halves.

  python launch.py --config=experiments/vmask/fig8_m.py
"""
from vfljax.runner.config import Config
from experiments.vmask import fig8


def get_config() -> Config:
  return fig8.budgets('lenet5')
