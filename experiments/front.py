"""What the project's own README quotes, from the papers' records."""
import json

from experiments import evidence
from experiments.evidence import Table
from experiments.gafm import common, measured, table2
from experiments.vmask import older

README = evidence.HERE.parent / 'README.md'
BENCH = evidence.HERE / 'bench'
# The five papers' own defenses, two that add noise, and the slowest.
_ON_A_GPU = (
    'none', 'iso', 'dp_laplace', 'marvell', 'mid', 'gafm', 'plugvfl', 'vmask',
    'rvfr',
)


def gafm() -> str:
  """Table 2 in short: GAFM's paper, ours by the last epoch, by the best one."""
  results = measured.load('table2')
  rows = []
  for defense, name in (
      ('none', 'no defense'), ('max_norm', 'Max-Norm'), ('marvell', 'Marvell'),
      ('gafm', 'GAFM'),
  ):
    cell = evidence.cell(results, defense)
    paper = {p.attack: p.mean for p in table2.PAPER if p.defense == defense}
    texts = [
        f'{100 * paper[None]:.0f} / {measured.auc(results, cell).mean():.0f}'
    ]
    for attack in common.ATTACKS:
      ours = [measured.leak(results, cell, attack, epoch).mean()
              for epoch in ('last', 'max')]
      texts.append(
          ' / '.join(f'{x:.0f}' for x in (100 * paper[attack], *ours))
      )
    rows.append([name, *texts])
  head = ('paper / last epoch / best epoch', 'AUC', 'leak AUC: norm', 'mean',
          'median')
  return evidence.markdown(head, rows)


def speed() -> str:
  """Beside PyTorch, of `bench/core.json`."""
  record = json.loads((BENCH / 'core.json').read_text())
  rows = []
  for key, name in (
      ('splitnn', "splitNN on Spambase's shape, {} seeds x 300 epochs"),
      ('mnist', 'MLP on MNIST halves, {} seeds x 1 epoch'),
      ('completion', 'model completion with 40 labels, {} times'),
  ):
    found = record[key]
    peers = [f'torch, {n}' for n in (
        '1 thread', '2 threads', '2 threads, side by side'
    )]
    there = [peer for peer in peers if peer in found]
    rows.append([
        name.format(found['seeds']), f"{found['vfljax']['wall_min']:.2g} s",
        ' / '.join(f"{found[peer]['wall_min']:.1f}" for peer in there) + ' s',
        ' / '.join(f"{found[f'ratio to {peer}']:.1f}" for peer in there),
        f"{found['vfljax']['compile_seconds']:.1f} / "
        f"{found['second_start_compile_seconds']:.1f} s",
    ])
  solves = [x for x in record['marvell solves a second'] if 'ratio' in x]
  rows.append([
      "Marvell's noise, solves a second",
      f"{min(x['vfljax'] for x in solves):,}",
      f"its authors' code: {max(x['peer'] for x in solves):,}",
      '-'.join(str(x) for x in sorted(x['ratio'] for x in solves)), '',
  ])
  head = (
      'training', 'ours', 'PyTorch, 1 / 2 threads / all seeds side by side',
      'ratio', 'compiling, first / second start',
  )
  return evidence.markdown(head, rows)


def waiting() -> str:
  """For the quickstart, the least of its turns, of `bench/startup.json`."""
  record = json.loads((BENCH / 'startup.json').read_text())
  rows = []
  for start, name in (
      ('first', 'first start'), ('second', 'second start, programs kept'),
      ('finished', 'a finished run again'),
  ):
    turns = [turn[start] for turn in record['turns']['here']]
    rows.append([
        name, *(f'{min(turn[what] for turn in turns):.0f} s'
                for what in ('seconds', 'cpu')),
    ])
  head = ('the quickstart', 'seconds', 'of all cores')
  return evidence.markdown(head, rows)


def gpu() -> str:
  """A round of 64 seeds on an H200 by defense, of `bench/gpu_h200.json`."""
  measured = _measured('gpu_h200')
  found = {
      key.split('/')[1]: x['ms_a_round'] for key, x in measured.items()
      if key.startswith('defense/') and key.endswith('/64')
  }
  shown = sorted(found, key=lambda name: found[name])
  rows = [
      [name, f'{found[name]:.3f} ms', f"{found[name] / found['none']:.2f}"]
      for name in shown if name in _ON_A_GPU
  ]
  head = 'a round of 64 seeds on an H200', 'time', 'times none'
  return evidence.markdown(head, rows)


def gpu_peers() -> str:
  """Beside PyTorch on GPUs, each pair timed in one run."""
  rows, found = [], _measured('gpu_h200')
  for key, name in (('splitnn', 'splitNN'), ('mnist', 'MLP on MNIST halves')):
    for n in (1, 16, 64, 256):
      at = f'training/{key}/{n}'
      loop = found[f'{at}/torch']['seconds'] if n == 1 else None
      rows.append([
          f'{name}, {n} seed{"s" * (n > 1)}', 'H200',
          *_paired(found[at], found[f'{at}/torch/graph'], loop),
      ])
  found = _measured('gpu_h100_models')
  for key, name in (
      ('lenet5', 'LeNet5'), ('vgg13', 'VGG13'), ('resnet18', 'ResNet18'),
  ):
    for dtype in ('float32', 'tf32', 'bfloat16'):
      at = f'model/{key}/{dtype}'
      rows.append([
          f'{name}, {dtype}', 'H100',
          *_paired(found[at], found[f'{at}/torch'], None),
      ])
  head = ('training', 'on an', 'vfljax', 'PyTorch, CUDA graph',
          'times as fast', 'PyTorch, loop')
  return evidence.markdown(head, rows)


def gpu_seeds() -> str:
  """How many times as long a round of 64 seeds takes as one of one seed."""
  many, one = (_measured('gpu_h200')[f'defense/none/{n}'] for n in (64, 1))
  return f"{many['ms_a_round'] / one['ms_a_round']:.1f}"


def gpu_compiling() -> str:
  """From the shortest to the longest, of the trainings in `gpu_peers`."""
  found = [
      x['compile_seconds'] for key, x in _measured('gpu_h200').items()
      if key.startswith('training/') and 'compile_seconds' in x
  ]
  return f'{min(found):.0f} to {max(found):.0f}'


def _paired(
    ours: dict[str, float], peer: dict[str, float], loop: float | None
) -> tuple[str, ...]:
  seconds = ours['seconds'], peer['seconds']
  return (
      *(f'{s:.2g} s' for s in seconds), f'{seconds[1] / seconds[0]:.2f}',
      '' if loop is None else f'{loop:.2g} s',
  )


def _measured(record: str) -> dict[str, dict[str, float]]:
  return json.loads((BENCH / f'{record}.json').read_text())['measured']


def _completed(row: str) -> Table:
  """The attack on MNIST with the authors' settings, percent."""
  return lambda: f"{older.mean(_authors()[row]['attack']):.0f}"


def _authors() -> dict[str, older.Row]:
  return older.column('TM', 'authors')


def _transcript(row: str) -> Table:
  """The attack of `adaptive`, under T3, percent."""
  def made() -> str:
    found = older.adaptive('adaptive')['T3'][row]['best']
    return f'{older.mean(found):.0f}'
  return made


TABLES: dict[str, Table] = dict(
    gafm=gafm, speed=speed, waiting=waiting, gpu=gpu, gpu_peers=gpu_peers,
)
NUMBERS: dict[str, Table] = dict(
    vmask=_completed('VMask'), vanilla=_completed('none'),
    kept=_transcript('linear 1'), known=_transcript('full'),
    redrawn=_transcript('redrawn'), gpu_seeds=gpu_seeds,
    gpu_compiling=gpu_compiling,
)
