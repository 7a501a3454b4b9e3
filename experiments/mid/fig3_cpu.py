"""MID, Figure 3 on two cores: 5000 images of CIFAR-10, small networks.

  python launch.py --config=experiments/mid/fig3_cpu.py \\
      --config.data.path=cifar10.npz

As fig3_pmc.py on a subset, with MLP bottoms (1536-64-32) in place of ResNet-20
and 10 epochs of 100 MixMatch steps for 25 of 1024.
"""
from experiments.config import Config, Entry
from experiments.mid import common, fig3_pmc

LISTED = (
    common.NONE, Entry('mid', (0.0, 0.01, 0.1, 1.0), label='MID'),
    Entry('dp_laplace', (1e-3, 0.1), common.CLIP, label='DP-L'),
    Entry('gradient_compression', (0.1, 0.001), dict(residual=True), 'GS'),
)


def small(name: str, made: Config) -> Config:
  """An experiment of Figure 3, of a size for two cores."""
  made.experiment, made.listed, made.seeds = f'mid_{name}', LISTED, 3
  return common.on(
      made, data=dict(limit=5000),
      model=dict(name='', bottom=(64, 32)),
      train=dict(epochs=20, measure_every=20),
      attack=dict(epochs=10, iterations=100, stages=2),
  )


def get_config() -> Config:
  return small('fig3_cpu', fig3_pmc.passive())
