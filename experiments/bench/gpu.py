"""Speed on a GPU: trainings, defenses and networks, beside PyTorch.

  python -m experiments.bench.gpu --out=experiments/bench/gpu.json \\
      [--groups=training,defense,...] [--names=none,...] [--notorch] \\
      [--at_once=4] [--minutes=10]

Programs in these groups are compiled first (several at a time, so that their
compile seconds are an upper bound). Then each is timed alone; the fastest of
three or more calls counts:

  training     `core`'s three workloads with 1, 16, 64 and 256 seeds, beside
               PyTorch: one seed after the other, and all seeds together with
               each round as a CUDA graph. 'ratio' is PyTorch's time over ours.
  defense      two epochs of a small federation under every defense, with 1 and
               64 seeds: milliseconds a round, and the ratio to no defense.
  convolution  LeNet5, ResNet20 and ResNet18 at some numbers of seeds, with
               XLA's convolution or one product of patches, seeds side by side
               or in turn.
  model        `models`' networks with batches of 128 in float32, TF32 and
               bfloat16, beside PyTorch's CUDA graph in the same format.
  compiling    two of these with more and more of XLA's tuning, one at a time.

XLA_FLAGS are in the record. Measurements in the record are not repeated, so a
run that was stopped continues.
"""
import argparse
from collections.abc import Callable, Iterator
from concurrent import futures
import importlib.util
import json
import os
import pathlib
import time
from typing import Any, NamedTuple

os.environ.setdefault('XLA_PYTHON_CLIENT_PREALLOCATE', 'false')

import jax
import jax.numpy as jnp
import numpy as np

from experiments.bench import accel_programs, core, models, records
from vfljax import train
from vfljax.defense import none
from vfljax.runner.machine import threefry
from vfljax.types import Batch

AT_ONCE = 4  # Programs that are compiled at a time.
SEEDS = (1, 16, 64, 256)
STRENGTH = 0.5  # Of any defense: how long it takes does not depend on it.
ROUNDS = dict(lenet5=200, vgg13=40, resnet18=40, resnet20=10)
MODELS = ('lenet5', 'vgg13', 'resnet18')
DTYPES = ('float32', 'tf32', 'bfloat16')
CONVOLUTIONS = {'lenet5': (8, 64, 1), 'resnet20': (8, 1), 'resnet18': (3,)}
TUNING: dict[str, dict[str, Any]] = {  # The next finds what one has tried.
    'none': dict(xla_gpu_autotune_level=0),
    "libraries' products": dict(
        xla_gpu_enable_triton_gemm=False,
        xla_gpu_experimental_enable_fusion_autotuner=False,
    ),
    "libraries' products, fusions": dict(xla_gpu_enable_triton_gemm=False),
    'all': {},
}
WAYS = ('conv, side by side', 'patches, side by side', 'conv, in turn')


class Job(NamedTuple):
  """One measurement.

  Attributes:
    key: Its place in the record, 'group/name/...'.
    compile: () -> the call to be timed.
    tell: seconds of a call -> the record's entry.
  """

  key: str
  compile: Callable[[], Callable[[], Any]]
  tell: Callable[[float], dict[str, Any]]


def call_of(
    fn: Callable, *args: Any, precision: str = 'highest',
    options: dict[str, Any] | None = None,
):
  """`fn` compiled for concrete arguments, as a call that waits for the end."""
  with jax.default_matmul_precision(precision):
    lowered = jax.jit(fn).lower(*args)
  program = lowered.compile(options or None)
  return lambda: jax.block_until_ready(program(*args))


def seconds_of(call: Callable[[], Any]) -> float:
  """The fastest of three calls or of a second's, after one that warms up."""
  call()
  best, until, times = float('inf'), time.perf_counter() + 1, 0
  while times < 3 or time.perf_counter() < until and times < 50:
    began = time.perf_counter()
    call()
    best, times = min(best, time.perf_counter() - began), times + 1
  return best


def keys(seeds: int) -> jax.Array:
  return jax.random.split(jax.random.key(0), seeds)


def trainings() -> Iterator[Job]:
  for name, make in core.WORKLOADS.items():
    work = make()
    for seeds in SEEDS:
      yield Job(
          f'training/{name}/{seeds}',
          lambda work=work, seeds=seeds: call_of(
              jax.vmap(work.run, (0, None)), keys(seeds), work.data
          ),
          lambda s, work=work, seeds=seeds: dict(
              seconds=s, rounds_per_second=round(seeds * work.rounds / s)
          ),
      )


def defenses() -> Iterator[Job]:
  rng = np.random.default_rng(0)
  features = [
      rng.standard_normal((accel_programs.SAMPLES, c), np.float32)
      for c in accel_programs.COLUMNS
  ]
  y = jax.nn.one_hot((features[0][:, 0] > 0).astype(int), 2)
  data = Batch(tuple(map(jnp.asarray, features)), y)
  rounds = accel_programs.ROUNDS * accel_programs.EPOCHS

  def compiled(name: str, seeds: int):
    start, advance = accel_programs.trainings(name)
    cells = keys(seeds), jnp.full(seeds, STRENGTH)
    runs = jax.jit(jax.vmap(start, (0, 0, None)))(*cells, data)
    return call_of(jax.vmap(advance, (0, 0, 0, None)), runs, *cells, data)

  for seeds in (64, 1):
    for name in accel_programs.NAMES['defense']:
      yield Job(
          f'defense/{name}/{seeds}',
          lambda name=name, seeds=seeds: compiled(name, seeds),
          lambda s: dict(seconds=s, ms_a_round=round(1e3 * s / rounds, 4)),
      )


def epoch(name: str, seeds: int, in_turn: bool, **options: Any):
  """(trains a network for an epoch with so many seeds, its arguments)."""
  rounds = ROUNDS[name]
  vfl, data = models.setup(name, rounds, **options)
  plan = train.Plan(vfl, none(), models.TXS, 1, models.BATCH)
  runs = jax.jit(jax.vmap(lambda key: train.start(key, plan, data)))(
      keys(seeds)
  )

  def advance(run, data):
    return train.advance(plan, run, data, 0, 1)

  def all_of(runs, data):
    if in_turn:
      return jax.lax.map(lambda run: advance(run, data), runs)
    return jax.vmap(advance, (0, None))(runs, data)

  return all_of, (runs, data)


def images(name: str, seeds: int) -> Callable[[float], dict[str, Any]]:
  count = ROUNDS[name] * models.BATCH * seeds
  return lambda s: dict(seconds=s, images_per_second=round(count / s))


def convolutions() -> Iterator[Job]:
  def compiled(name: str, seeds: int, way: str):
    how, _, played = way.partition(', ')
    fn, args = epoch(name, seeds, played == 'in turn', how=how)
    return call_of(fn, *args)

  for name, counts in CONVOLUTIONS.items():
    for seeds in counts:
      for way in WAYS[: 2 if seeds == 1 else None]:
        yield Job(
            f'convolution/{name}/{seeds}/{way}',
            lambda name=name, seeds=seeds, way=way: compiled(name, seeds, way),
            images(name, seeds),
        )


def compiling() -> Iterator[Job]:
  """The same programs with more and more of XLA's tuning."""
  work = core.WORKLOADS['mnist']()

  def compiled(what: str, options: dict[str, Any]):
    if what == 'mnist':
      return call_of(
          jax.vmap(work.run, (0, None)), keys(16), work.data, options=options
      )
    fn, args = epoch(what, 8, False)
    return call_of(fn, *args, options=options)

  for tuned, options in TUNING.items():
    for what in ('mnist', 'lenet5'):
      yield Job(
          f'compiling/{what}/{tuned}',
          lambda what=what, options=options: compiled(what, options),
          lambda s: dict(seconds=s),
      )


def networks() -> Iterator[Job]:
  def compiled(name: str, dtype: str):
    options = dict(dtype='bfloat16') if dtype == 'bfloat16' else {}
    fn, args = epoch(name, 1, True, **options)
    fast = 'default' if dtype == 'tf32' else 'highest'
    return call_of(fn, *args, precision=fast)

  for name in MODELS:
    for dtype in DTYPES:
      yield Job(
          f'model/{name}/{dtype}',
          lambda name=name, dtype=dtype: compiled(name, dtype),
          images(name, 1),
      )


GROUPS: dict[str, Callable[[], Iterator[Job]]] = dict(
    training=trainings, defense=defenses, convolution=convolutions,
    model=networks, compiling=compiling,
)


class Record:
  """What is written after every measurement."""

  def __init__(self, path: pathlib.Path):
    self.path = path
    self.all: dict[str, Any] = {}
    if path.exists():
      self.all = json.loads(path.read_text('utf-8'))
    self.all |= records.begin() | dict(
        kind=jax.local_devices()[0].device_kind, versions=records.versions(),
        flags=os.environ.get('XLA_FLAGS', ''),
        commits=records.commits({'here': pathlib.Path(__file__).parents[2]}),
    )
    self.all.setdefault('measured', {})

  def __contains__(self, key: str) -> bool:
    return key in self.all['measured']

  def add(self, key: str, found: dict[str, Any]) -> None:
    found = {
        k: float(f'{v:.4g}') if isinstance(v, float) else v
        for k, v in found.items()
    }
    print(f'{key:48} {found}', flush=True)
    self.all['measured'][key] = found
    self.path.write_text(json.dumps(self.all, indent=1) + '\n', 'utf-8')


def compiled(job: Job) -> tuple[Any, float, str]:
  """(its call, seconds to compile it, '') or (None, 0, what went wrong)."""
  began = time.monotonic()
  try:
    return job.compile(), time.monotonic() - began, ''
  except Exception as error:  # Whatever a compiler says is what is told.
    return None, 0.0, f'{type(error).__name__}: {error}'.splitlines()[0][:200]


def measure(
    jobs: list[Job], record: Record, end: float, at_once: int
) -> None:
  """Compiles so many in threads, then times each of them alone."""
  for first in range(0, len(jobs), at_once):
    if time.monotonic() > end:
      print('Time is up: the same command goes on.')
      return
    some = jobs[first : first + at_once]
    with futures.ThreadPoolExecutor(at_once) as pool:
      done = list(pool.map(compiled, some))
    for job, (call, compiling, error) in zip(some, done):
      if call is None:
        record.add(job.key, dict(error=error))
        continue
      try:
        found = job.tell(seconds_of(call))
      except jax.errors.JaxRuntimeError as failure:
        found = dict(error=str(failure).splitlines()[0][:200])
      record.add(job.key, found | dict(
          compile_seconds=round(compiling, 1), compiled_at_a_time=len(some)
      ))


def beside_torch(
    record: Record, groups: list[str], names: list[str], end: float
) -> None:
  """The peers' times, under the same keys with the peer's name behind."""
  modules = dict(
      training='experiments.bench.core_torch',
      model='experiments.bench.models_torch',
  )
  for group, module in modules.items():
    if group not in groups:
      continue
    for dtype in DTYPES if group == 'model' else ('',):
      more = [f'--dtype={dtype}'] if dtype else []
      peer = core.Peer(2, module, ['--device=cuda', *more])
      for task, key, tell in _tasks(group, dtype):
        named = not names or key.split('/')[1] in names
        if named and key not in record and time.monotonic() < end:
          first = peer.time(*task)
          answers = [first] + [peer.time(*task) for _ in range(3)]
          if 'error' in first:
            record.add(key, first)
          else:
            record.add(key, tell(min(a['wall'] for a in answers)))
      peer.close()


def _tasks(group: str, dtype: str):
  """(what the worker is asked for, its key, what the record has)."""
  if group == 'model':
    for name in MODELS:
      yield (name, ROUNDS[name]), f'model/{name}/{dtype}/torch', images(name, 1)
    return
  rounds = dict(splitnn=900, mnist=468, completion=150)
  for name, own in rounds.items():
    for kind, counts in (('', (1,)), ('/graph', SEEDS)):
      for seeds in counts if name != 'completion' else (1,) * (not kind):
        yield (
            (f'{name}{kind}', seeds), f'training/{name}/{seeds}/torch{kind}',
            lambda s, own=own, seeds=seeds: dict(
                seconds=s, rounds_per_second=round(seeds * own / s)
            ),
        )


def main() -> None:
  parser = argparse.ArgumentParser(description='Times programs on a GPU.')
  parser.add_argument('--out', type=pathlib.Path, required=True)
  parser.add_argument('--groups', default=','.join(GROUPS))
  parser.add_argument('--names', default='', help='all by default')
  parser.add_argument('--notorch', action='store_true', help='ours alone')
  parser.add_argument(
      '--at_once', type=int, default=AT_ONCE, help='compiled at a time'
  )
  parser.add_argument('--minutes', type=float, default=float('inf'))
  args = parser.parse_args()
  threefry.in_one_kernel()
  end = time.monotonic() + 60 * args.minutes
  record, groups = Record(args.out), args.groups.split(',')
  names = args.names.split(',') if args.names else []
  for group in groups:
    jobs = [
        job for job in GROUPS[group]() if job.key not in record
        and (not names or job.key.split('/')[1] in names)
    ]
    measure(jobs, record, end, 1 if group == 'compiling' else args.at_once)
  if importlib.util.find_spec('torch') and not args.notorch:
    beside_torch(record, groups, names, end)


if __name__ == '__main__':
  main()
