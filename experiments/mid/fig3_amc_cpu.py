"""MID, Figure 3 on two cores: active completion, 10000 images of CIFAR-10.

  python launch.py --config=experiments/mid/fig3_amc_cpu.py \\
      --config.data.path=cifar10.npz

As fig3_amc.py, of fig3_cpu.py's size.
"""
from vfljax.runner.config import Config
from experiments.mid import fig3_amc, fig3_cpu, fig3_pmc


def get_config() -> Config:
  made = fig3_amc.active(fig3_pmc.passive(), 'fig3_amc')
  return fig3_cpu.small('fig3_amc_cpu', made)
