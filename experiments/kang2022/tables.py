"""The README's tables from the records of runs; of networks: tables_vnn.py."""
from experiments import evidence
from experiments.evidence import Table
from experiments.kang2022 import by_seed, measured, paper, tables_vnn
from experiments.kang2022.measured import PAPER, RUNS, SHORT
from vfljax.report import reading
from vfljax.report.reading import Cell, Results

VLR = dict(
    norm_scoring='NS', direction_scoring='DS', direct_label='DL',
    residue_reconstruction='RR', gradient_inversion='GI', model_completion='MC',
)
GUESSES = dict(mean_image='mean image', constant_image='constant image')


@evidence.of_records(PAPER, RUNS, 'vlr')
def vlr() -> str:
  """Every strength; the paper's numbers are `vlr_paper`'s."""
  results = evidence.load(PAPER, 'vlr').results
  rows = [
      [measured.name(c), measured.loss(results, c),
       *(measured.leak(results, c, a) for a in VLR)]
      for c in results.cells
  ]
  head = ('protection', 'utility loss', *VLR.values())
  return evidence.markdown(head, rows)


def vlr_paper() -> str:
  """Tables 10 to 12, each with the loss of its own best strength.

  One loss for all three would be wrong: the best strength against one attack is
  not that against another.
  """
  rows = []
  for data in ('credit', 'vehicle'):
    for defense, gradients in paper.GRADIENTS[data][1].items():
      numbers = (
          *gradients, *paper.MODEL_GRADIENTS[data][defense],
          *paper.COMPLETION[data][defense],
      )
      rows.append([
          f'{data.capitalize()}, {SHORT[defense]}',
          *(f'{x:.1f}' for x in numbers),
      ])
  ns, ds, dl, rr, gi, mc = VLR.values()
  head = ("the paper's", 'Table 10: loss', ns, ds, dl, 'Table 11: loss', rr, gi,
          'Table 12: loss', mc)
  return evidence.markdown(head, rows)


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
        measured.name(cell), evidence.spread(accuracy),
        f'{utility - known[0]:.2f}' if known else '',
        measured.loss(results, cell), f'{known[0]:.2f}' if known else '',
        *_images(results, cell, 'model_inversion'),
        f'{known[1]:.2f}' if known else '',
    ])
  for attack, said in GUESSES.items():
    rows.append([
        f'{said}, no attack', *[''] * 4,
        *_images(results, by_seed.NONE, attack), '',
    ])
  head = ('protection', 'accuracy, %', "paper's", 'points lost', "paper's",
          'PSNR', 'SSIM', 'by seed', "paper's")
  return evidence.markdown(head, rows)


def _images(results: Results, cell: Cell, attack: str) -> list[str]:
  """PSNR and SSIM of guessed images, and SSIM of its lowest and best seed."""
  psnr, ssim = (
      reading.find(results, cell, attack, metric).values()
      for metric in ('psnr', 'ssim')
  )
  return [
      evidence.spread(psnr), evidence.spread(ssim, 3),
      '' if attack in GUESSES else f'{min(ssim):.2f} to {max(ssim):.2f}',
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
          algorithm.upper(), what, *_images(results, by_seed.NONE, attack),
          '' if known is None else f'{known:.2f}',
      ])
  head = ('', "the attacker's shadow", 'PSNR', 'SSIM', 'by seed', "paper's")
  return evidence.markdown(head, rows)


@evidence.of_records(PAPER, RUNS, 'table16_vsnn_undefended')
def unaware() -> str:
  """An attacker who does not know of PRECODE's bottleneck."""
  results = evidence.load(PAPER, 'table16_vsnn_undefended').results
  attack = 'model_inversion:undefended'
  rows = [
      [measured.name(cell), *_images(results, cell, attack),
       f'{paper.INVERSION["vsnn"][1][cell][1]:.2f}']
      for cell in results.cells
  ]
  return evidence.markdown(
      ('VSNN', 'PSNR', 'SSIM', 'by seed', "paper's"), rows
  )


def differences() -> str:
  """SSIM beside SSIM within a seed, and in how many seeds it is less."""
  rows = []
  for said, of in by_seed.COMPARED.items():
    changes = [of(algorithm) for algorithm in reversed(by_seed.ALGORITHMS)]
    rows.append([said, *(
        x for change in changes
        for x in (by_seed.interval(change), by_seed.below(change))
    )])
  head = ('SSIM', 'VSNN', 'seeds below 0', 'VHNN', 'seeds below 0')
  return evidence.markdown(head, rows)


TABLES: dict[str, Table] = dict(
    vlr=vlr, vlr_paper=vlr_paper, table16_vsnn=inversion('vsnn'),
    table16_vhnn=inversion('vhnn'), table17=structures, unaware=unaware,
    differences=differences,
    **tables_vnn.TABLES,
)
NUMBERS: dict[str, Table] = dict(
    mean_image=lambda: by_seed.guessed('mean_image'),
    mixup_lower=lambda: by_seed.lower('mixup'),
    milder_lower=lambda: by_seed.lower('mixup_mild'),
    precode_lower=lambda: by_seed.lower('precode', than='mean_image'),
    precode_grey=lambda: by_seed.lower(
        'precode', than='constant_image', metric='psnr'
    ),
    mixup_cost=by_seed.costlier,
    few_labels=lambda: tables_vnn.few_labels('few'),
    fewest_labels=lambda: tables_vnn.few_labels('more'),
    mixup_vhnn=lambda: by_seed.widest('vhnn'),
    mixup_vsnn=lambda: by_seed.widest('vsnn'),
)
