"""The README's tables from the records of runs.

Leakage is of the folded AUC minus 50 points, of the epoch in which the attack
learns most; in brackets that of the last epoch. Kang et al. do not say which
they print.
"""
from collections.abc import Mapping

from experiments import evidence
from experiments.evidence import Table
from experiments.kang2022 import by_seed, paper, pu_scores
from vfljax.report import reading
from vfljax.report.reading import Cell, Results

PAPER = 'kang2022'
FASHION = '--config.data.path=fashion_mnist.npz'
SPAMBASE = '--config.data.path=spambase.data'
COUNTS = (40, 80, 160, 200, 400)
KNOWN = '--config.attacks=' + ','.join(f'model_completion:{n}' for n in COUNTS)
RUNS = dict(
    vlr=f'vlr.py:spambase {SPAMBASE}',
    vhnn_spambase=f'vnn.py:vhnn,spambase {SPAMBASE}',
    vsnn_spambase=f'vnn.py:vsnn,spambase {SPAMBASE}',
    vsnn_spambase_all=f'vnn.py:vsnn,spambase,all {SPAMBASE}',
    fig11_vhnn=f'vnn.py:vhnn,spambase {SPAMBASE} {KNOWN}',
    fig11_vsnn=f'vnn.py:vsnn,spambase {SPAMBASE} {KNOWN}',
    table16_vhnn=f'table16.py:vhnn {FASHION}',
    table16_vsnn=f'table16.py:vsnn {FASHION}',
    table17_vhnn=f'table17.py:vhnn {FASHION}',
    table17_vsnn=f'table17.py:vsnn {FASHION}',
)
SHORT = dict(
    none='none', gradient_compression='GC', discrete_sgd='D-SGD', max_norm='MN',
    dp_laplace='DP-L', iso='ISO', marvell='Marvell', mixup='MixUp',
    mixup_mild='milder MixUp', precode='PRECODE',
)
VLR = dict(
    norm_scoring='NS', direction_scoring='DS', direct_label='DL',
    residue_reconstruction='RR', gradient_inversion='GI', model_completion='MC',
)


def name(cell: Cell) -> str:
  """'DP-L (0.01)'."""
  value = reading.strength(cell)
  return SHORT[cell[0]] + (f' ({value})' if value else '')


def leak(results: Results, cell: Cell, attack: str) -> str:
  """Points: the best epoch, in brackets the last one."""
  text = evidence.spread(reading.leakage(results, cell, attack).values())
  last = reading.leakage(results, cell, attack, 'last')
  return text + (f' ({evidence.mean(last.values())})' if last else '')


def loss(results: Results, cell: Cell) -> str:
  return evidence.spread(reading.utility_loss(results, cell).values())


@evidence.of_records(PAPER, RUNS, 'vlr')
def vlr() -> str:
  """Every strength, and the paper's rows, which are of its best strengths."""
  results = evidence.load(PAPER, 'vlr').results
  rows = [
      [name(c), loss(results, c), *(leak(results, c, a) for a in VLR)]
      for c in results.cells
  ]
  for data in ('credit', 'vehicle'):
    for defense, (lost, *leaks) in paper.GRADIENTS[data][1].items():
      inverted = paper.MODEL_GRADIENTS[data][defense]
      numbers = (lost, *leaks, *inverted, paper.COMPLETION[data][defense])
      rows.append([
          f'paper, {data.capitalize()}, {SHORT[defense]}',
          *(f'{x:.1f}' for x in numbers),
      ])
  head = ('protection', 'utility loss', *VLR.values())
  return evidence.markdown(head, rows)


def _best(results: Results, defense: str) -> Cell:
  """A defense's strength of the best PU score against NS and DS."""
  found = pu_scores.best(results, defense, pu_scores.SCORING)
  assert found is not None  # Every one has been measured.
  return found.cell


@evidence.of_records(PAPER, RUNS, 'vhnn_spambase', 'vsnn_spambase')
def vnn() -> str:
  """NS and DS at the best strength, in VHNN and VSNN, and MC."""
  return _strongest(dict(VHNN='vhnn_spambase', VSNN='vsnn_spambase'))


@evidence.of_records(PAPER, RUNS, 'vsnn_spambase_all')
def vnn_all() -> str:
  """The same of VSNN where the passive party has all columns."""
  return _strongest(dict(VSNN='vsnn_spambase_all'))


def _strongest(records: Mapping[str, str]) -> str:
  """A row for each protection, columns for each record, by its name here."""
  columns: dict[str, dict[str, list[str]]] = {}
  for algorithm, record in records.items():
    results = evidence.load(PAPER, record).results
    scores = pu_scores.optimal(results, pu_scores.SCORING)
    for defense in results.defenses:
      cell = _best(results, defense)
      columns.setdefault(defense, {})[algorithm] = [
          reading.strength(cell), loss(results, cell),
          *(leak(results, cell, a) for a in pu_scores.SCORING),
          leak(results, cell, 'model_completion'), f'{scores[defense]}',
      ]
  head = ['protection'] + [
      f'{algorithm}: {what}' for algorithm in records
      for what in ('strength', 'loss', 'NS', 'DS', 'MC', 'score')
  ]
  rows = [
      [SHORT[defense], *(x for a in records for x in found[a])]
      for defense, found in columns.items()
  ]
  return evidence.markdown(head, rows)


@evidence.of_records(PAPER, RUNS, 'fig11_vhnn', 'fig11_vsnn')
def fig11() -> str:
  """MC's leakage by how many labels the attacker knows, at its lowest."""
  rows = []
  for algorithm in ('vhnn', 'vsnn'):
    results = evidence.load(PAPER, f'fig11_{algorithm}').results
    for defense in results.defenses:
      cells = [c for c in results.cells if c[0] == defense]
      leaks = [
          min(_mean(results, c, n) for c in cells) for n in COUNTS
      ]
      rows.append([
          algorithm.upper(), SHORT[defense], *(f'{x:.1f}' for x in leaks)
      ])
  head = ('', 'protection', *(f'{n} labels' for n in COUNTS))
  return evidence.markdown(head, rows)


def _mean(results: Results, cell: Cell, known: int) -> float:
  """Over a local model that knows the same labels."""
  attack = f'model_completion:{known}'
  if not reading.is_paired(results, cell, attack):
    raise ValueError(f'{attack} has no local model of its own to compare with.')
  found = reading.leakage(results, cell, attack)
  return reading.summarize(found.values()).mean


def preferences() -> str:
  """Optimal PU scores and the orders that follow, by evaluation setting."""
  names = [n for n in ('vlr', 'vhnn_spambase', 'vsnn_spambase')
           if evidence.exists(PAPER, n)]
  best = [evidence.load(PAPER, n).results for n in names]
  last = [reading.at_epoch(results, 'last') for results in best]
  rows = []
  for number in pu_scores.SETTINGS:
    for which, found in (('best', best), ('last', last)):
      tables = pu_scores.of_setting(found, number)
      if tables:
        rows.append([
            f'{number}', which, pu_scores.order(tables),
            '; '.join(f'{k}: {_scores(t)}' for k, t in tables.items()),
        ])
  return evidence.markdown(
      ('setting', 'epoch', 'order of preference', 'optimal PU scores'), rows
  )


def _scores(table: Mapping[str, int]) -> str:
  return ', '.join(f'{SHORT[d]} {s}' for d, s in table.items())


def inversion(algorithm: str) -> Table:
  record = f'table16_{algorithm}'
  made = evidence.of_records(PAPER, RUNS, record)
  return made(lambda: _inverted(algorithm, record))


def _inverted(algorithm: str, record: str) -> str:
  """Table 16, and what a guess without any embedding reaches."""
  results = evidence.load(PAPER, record).results
  utility, theirs = paper.INVERSION[algorithm]
  rows = []
  for cell in results.cells:
    known = theirs.get(cell)  # 'MixUp (2)' is (..., 2.0) here, which equals 2.
    accuracy = evidence.quantity(results, cell, 'accuracy').values()
    rows.append([
        name(cell), evidence.spread(accuracy),
        f'{utility - known[0]:.2f}' if known else '',
        loss(results, cell), f'{known[0]:.2f}' if known else '',
        *_images(results, cell, 'model_inversion'),
        f'{known[1]:.2f}' if known else '',
    ])
  for attack in ('mean_image', 'constant_image'):
    rows.append([
        f'{reading.pretty(attack)}, no attack', *[''] * 4,
        *_images(results, ('none', None), attack), '',
    ])
  head = ('protection', 'accuracy, %', "paper's", 'points lost', "paper's",
          'PSNR', 'SSIM', 'by seed', "paper's")
  return evidence.markdown(head, rows)


def _images(results: Results, cell: Cell, attack: str) -> list[str]:
  """PSNR and SSIM of guessed images, and SSIM by seed."""
  psnr, ssim = (
      reading.find(results, cell, attack, metric).values()
      for metric in ('psnr', 'ssim')
  )
  return [
      evidence.spread(psnr), evidence.spread(ssim, 3),
      ', '.join(f'{x:.2f}' for x in ssim),
  ]


@evidence.of_records(PAPER, RUNS, 'table17_vsnn', 'table17_vhnn')
def structures() -> str:
  """Table 17, and what a guess without any embedding reaches."""
  rows = []
  said = ('the same structure', 'other convolutions (5x5)', 'fully connected')
  shadows = [
      *zip(paper.SHADOWS, said), ('mean_image', 'mean image, no attack')
  ]
  for algorithm in ('vsnn', 'vhnn'):
    results = evidence.load(PAPER, f'table17_{algorithm}').results
    theirs: dict[str, float] = dict(
        zip(paper.SHADOWS, paper.STRUCTURES[algorithm])
    )
    for attack, what in shadows:
      known = theirs.get(attack)
      rows.append([
          algorithm.upper(), what, *_images(results, ('none', None), attack),
          '' if known is None else f'{known:.2f}',
      ])
  head = ('', "the attacker's shadow", 'PSNR', 'SSIM', 'by seed', "paper's")
  return evidence.markdown(head, rows)


TABLES: dict[str, Table] = dict(
    vlr=vlr, vnn=vnn, vnn_all=vnn_all, fig11=fig11, preferences=preferences,
    table16_vsnn=inversion('vsnn'), table16_vhnn=inversion('vhnn'),
    table17=structures,
)
NUMBERS: dict[str, Table] = dict(
    mean_image=lambda: by_seed.guessed('mean_image'),
    mixup_lower=lambda: by_seed.lower('mixup'),
    milder_lower=lambda: by_seed.lower('mixup_mild'),
    precode_lower=lambda: by_seed.lower('precode', than='mean_image'),
    mixup_vhnn=lambda: by_seed.widest('vhnn'),
    mixup_vsnn=lambda: by_seed.widest('vsnn'),
    conv_vsnn=lambda: by_seed.worse('vsnn', 'same', 'conv'),
    conv_vhnn=lambda: by_seed.worse('vhnn', 'same', 'conv'),
    fc_vsnn=lambda: by_seed.worse('vsnn', 'conv', 'fc'),
    fc_vhnn=lambda: by_seed.worse('vhnn', 'conv', 'fc'),
)
