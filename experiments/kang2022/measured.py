"""Kang's records: the commands that make them, and how their rows are shown.

Leakage is the folded AUC minus 50 points, in the epoch in which the attack
learns most; the last epoch's is in brackets. Kang et al. do not say which epoch
they print.
"""
from experiments import evidence
from vfljax.report import reading
from vfljax.report.reading import Cell, Results

PAPER = 'kang2022'
FASHION = '--config.data.path=fashion_mnist.npz'
SPAMBASE = '--config.data.path=spambase.data'
COUNTS = (40, 80, 160, 200, 400)
KNOWN = '--config.attacks=' + ','.join(f'model_completion:{n}' for n in COUNTS)
TEN = '--config.seeds=10'
UNAWARE = ('--config.defenses=none,precode '
           '--config.attacks=model_inversion:undefended,mean_image')
RUNS = dict(
    vlr=f'vlr.py:spambase {SPAMBASE}',
    vhnn_spambase=f'vnn.py:vhnn,spambase {SPAMBASE}',
    vsnn_spambase=f'vnn.py:vsnn,spambase {SPAMBASE}',
    vsnn_spambase_all=f'vnn.py:vsnn,spambase,all {SPAMBASE}',
    fig11_vhnn=f'vnn.py:vhnn,spambase {SPAMBASE} {KNOWN}',
    fig11_vsnn=f'vnn.py:vsnn,spambase {SPAMBASE} {KNOWN}',
    **{
        f'{algorithm}_{data}': f'vnn.py:{algorithm},{data} {FASHION}'
        for algorithm in ('vhnn', 'vsnn')
        for data in ('fashion_imbalanced', 'fashion10')
    },
    **{
        f'{algorithm}_fashion10_gradients': f'vnn.py:{algorithm},fashion10 '
        f'{FASHION} --config.attacks=learned_gradient,gradient_clustering '
        '--config.attack.replay_rounds=20'
        for algorithm in ('vhnn', 'vsnn')
    },
    table16_vhnn=f'table16.py:vhnn {FASHION} {TEN}',
    table16_vsnn=f'table16.py:vsnn {FASHION} {TEN}',
    table16_vsnn_undefended=f'table16.py:vsnn {FASHION} {TEN} {UNAWARE}',
    table17_vhnn=f'table17.py:vhnn {FASHION} {TEN}',
    table17_vsnn=f'table17.py:vsnn {FASHION} {TEN}',
)
SHORT = dict(
    none='none', gradient_compression='GC', discrete_sgd='D-SGD', max_norm='MN',
    dp_laplace='DP-L', iso='ISO', marvell='Marvell', mixup='MixUp',
    mixup_mild='milder MixUp', precode='PRECODE',
)


def name(cell: Cell) -> str:
  """'DP-L (0.01)'."""
  value = reading.strength(cell)
  return SHORT[cell[0]] + (f' ({value})' if value else '')


def leak(results: Results, cell: Cell, attack: str) -> str:
  """A leakage in points: the best epoch's, with the last one's in brackets."""
  text = evidence.spread(reading.leakage(results, cell, attack).values())
  last = reading.leakage(results, cell, attack, 'last')
  return text + (f' ({evidence.mean(last.values())})' if last else '')


def loss(results: Results, cell: Cell) -> str:
  return evidence.spread(reading.utility_loss(results, cell).values())
