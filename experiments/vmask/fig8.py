"""VMask, Figure 8: what a budget buys.

  python launch.py --config=experiments/vmask/fig8.py

Two defenders: one who imagines the attack as the paper does, 20 epochs, once;
and one who imagines the attacker as it is, 50 epochs, and averages five draws.
fig8_m.py is LeNet5, with five layers to choose from.
"""
from vfljax.runner.config import Config, Entry
from experiments.vmask import common

BUDGETS = (0.8, 0.7, 0.6, 0.5, 0.4, 0.25)


def budgets(model: str) -> Config:
  """The sweep for a network, on MNIST's halves."""
  listed = (
      Entry('none'),
      common.masked(budgets=BUDGETS, model=model, label='20 epochs'),
      common.imagined(model, BUDGETS),
  )
  found = common.config(f'fig8_{model}', listed, model)
  found.alone = False
  return found


def get_config() -> Config:
  return budgets('mlp3')
