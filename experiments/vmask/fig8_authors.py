"""VMask, Figure 8, with the settings of `authors`: what a budget buys, MLP3.

  python launch.py --config=experiments/vmask/fig8_authors.py

The defender imagines the attacker as it is, 50 epochs and the mean of five
draws, or as the paper does, 20 epochs and one. 20000 images, 15 epochs.
"""
from vfljax.runner.config import Config, Entry
from experiments.vmask import authors, common

BUDGETS = (0.8, 0.7, 0.6, 0.5, 0.4, 0.25)


def get_config() -> Config:
  config = authors.apply(common.config('fig8', (
      Entry('none'),
      authors.masked('mlp3', budgets=BUDGETS, label='20 epochs'),
      authors.masked(
          'mlp3', budgets=BUDGETS, label='VMask 50x5', epochs=50, draws=5
      ),
  )))
  config.data.limit, config.train.epochs = 20_000, 15
  return config
