"""MID, Figure 3 on two cores: 10000 images of CIFAR-10, LeNet5 bottoms.

  python launch.py --config=experiments/mid/fig3_cpu.py \\
      --config.data.path=cifar10.npz

As fig3_pmc.py on a subset, with LeNet5 in place of ResNet-20, 15 epochs, and 10
epochs of 50 MixMatch steps for 25 of 1024. With MLPs as bottoms the passive
party is worth two points of accuracy, and there is little to steal. Adam, and a
softplus shift of 5, as VFLAIR has for images: with momentum, or a shift of 0.5,
the noise of an untrained bottleneck drives the passive party out for good.
"""
from vfljax.runner.config import Config, Entry
from experiments.mid import common, fig3_pmc

LISTED = (
    common.NONE,
    Entry('mid', (0.0, 0.01, 0.1, 1.0), dict(shift=5.0), label='MID'),
    Entry('dp_laplace', (5e-5, 1e-3), common.CLIP, label='DP-L'),
    Entry('gradient_compression', (0.1, 0.01), dict(residual=True), 'GS'),
)


def small(name: str, made: Config) -> Config:
  """An experiment of Figure 3, of a size for two cores."""
  made.experiment, made.listed, made.seeds = f'mid_{name}', LISTED, 3
  return common.on(
      made, data=dict(limit=10_000, test_limit=4000),
      model=dict(name='lenet5', width=32),
      train=dict(epochs=15, measure_every=15),
      attack=dict(epochs=10, iterations=50, stages=2),
  )


def get_config() -> Config:
  made = small('fig3_cpu', fig3_pmc.passive())
  return common.on(made, train=dict(optimizer='adam', learning_rate=1e-3))
