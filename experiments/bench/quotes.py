"""The numbers from records that the READMEs of benchmarks and project quote."""
import json

from experiments import evidence
from experiments.evidence import Table

BENCH = evidence.HERE / 'bench'
README = BENCH / 'README.md'
# The five papers' own defenses, two that add noise, and the slowest.
_ON_A_GPU = (
    'none', 'iso', 'dp_laplace', 'marvell', 'mid', 'gafm', 'plugvfl', 'vmask',
    'rvfr',
)
_IMAGES = ('lenet5', 'LeNet5'), ('vgg13', 'VGG13'), ('resnet18', 'ResNet18')


def speed() -> str:
  """Beside PyTorch, of `bench/core.json`."""
  record = _read('core')
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
  """For the quickstart, the least of its turns, on a CPU and with a GPU."""
  records, rows = [_read('startup'), _read('startup_h200')], []
  for start, name in (
      ('first', 'first start'), ('second', 'second start, programs kept'),
      ('finished', 'a finished run again'),
  ):
    row = [name]
    for record in records:
      turns = [turn[start] for turn in record['turns']['here']]
      row += [f'{min(turn[what] for turn in turns):.0f} s'
              for what in ('seconds', 'cpu')]
    rows.append(row)
  head = (
      'the quickstart', 'two cores, seconds', 'of both cores',
      'H200 and 16 cores, seconds', 'of all cores',
  )
  return evidence.markdown(head, rows)


def gpu() -> str:
  """A round of 64 seeds on an H200 by defense, of `bench/gpu_h200.json`."""
  found = _rounds()
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
  for key, name in _IMAGES:
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
  return _read(record)['measured']


def _read(record: str) -> dict:
  return json.loads((BENCH / f'{record}.json').read_text('utf-8'))


def gpu_defenses() -> str:
  """How many defenses a GPU was given, with 64 seeds."""
  return str(len(_times_none()))


def gpu_twice() -> str:
  """How many of these take at most twice the time of none."""
  return str(sum(x <= 2 for x in _times_none()))


def gpu_ratios() -> str:
  """From the slowest to the fastest beside PyTorch, of `gpu_peers`."""
  found = [float(row.split('|')[5]) for row in gpu_peers().splitlines()[2:]]
  return f'{min(found):.2f} to {max(found):.2f}'


def models() -> str:
  """Images a second on a CPU beside PyTorch, of `bench/models.json`."""
  record, rows = _read('models'), []
  for key, name in _IMAGES:
    found = record[key]
    rows.append([name, *(
        f"{found[of]['images_per_second']:.0f}" for of in (
            'vfljax', 'vfljax, patches', 'torch, 1 thread', 'torch, 2 threads'
        )
    ), *(f"{found[f'ratio to torch, {n}']:.2f}" for n in (
        '1 thread', '2 threads'
    ))])
  head = (
      'images a second, two cores', 'vfljax', 'by windows alone',
      'PyTorch, 1 thread', '2 threads', 'times 1 thread', 'times 2 threads',
  )
  return evidence.markdown(head, rows)


def _times_none() -> list[float]:
  found = _rounds()
  return [ms / found['none'] for ms in found.values()]


def _rounds() -> dict[str, float]:
  """Milliseconds a round of 64 seeds on an H200, by defense."""
  return {
      key.split('/')[1]: x['ms_a_round']
      for key, x in _measured('gpu_h200').items()
      if key.startswith('defense/') and key.endswith('/64')
  }


def compiling() -> str:
  """The configurations that compile longest, of `compiling_papers.json`."""
  rows = [
      [f'`{name.removeprefix("experiments/")}`', str(len(seconds)),
       f'{sum(seconds):.0f}', f'{sum(seconds) / len(seconds):.1f}']
      for name, seconds in _compiled()[:8]
  ]
  head = 'configuration', 'entries', 'seconds', 'an entry'
  return evidence.markdown(head, rows)


def compiling_measured() -> str:
  """How many of the papers' configurations have their samples here."""
  return str(len(_compiled()))


def compiling_lacking() -> str:
  """How many have not."""
  found = _read('compiling_papers')['configs'].values()
  return str(sum('UserError' in one['here'].get('error', '') for one in found))


def compiling_machine() -> str:
  """Where and when they were measured."""
  record = _read('compiling_papers')
  return f"{record['cpu']}, {record['date']}"


def compiling_over() -> str:
  """How many of them take more seconds an entry than any should."""
  limit = _read('compiling_papers')['limit']
  return str(sum(sum(s) / len(s) > limit for _, s in _compiled()))


def _compiled() -> list[tuple[str, list[float]]]:
  """(configuration, seconds of each entry), most seconds an entry first."""
  found = [
      (name, [entry['seconds'] for entry in one['here']['entries']])
      for name, one in _read('compiling_papers')['configs'].items()
      if 'entries' in one['here']
  ]
  return sorted(found, key=lambda x: -sum(x[1]) / len(x[1]))


TABLES: dict[str, Table] = dict(
    speed=speed, waiting=waiting, models=models, gpu=gpu, gpu_peers=gpu_peers,
    compiling=compiling,
)
NUMBERS: dict[str, Table] = dict(
    gpu_seeds=gpu_seeds, gpu_compiling=gpu_compiling, gpu_twice=gpu_twice,
    gpu_defenses=gpu_defenses, gpu_ratios=gpu_ratios,
    compiling_measured=compiling_measured, compiling_over=compiling_over,
    compiling_lacking=compiling_lacking, compiling_machine=compiling_machine,
)
