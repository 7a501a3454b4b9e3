"""One experiment on several machines: which process runs which jobs.

  vfljax --config=... --workdir=/shared/out --num_processes=2 --process_id=0
  srun vfljax --config=... --workdir=/shared/out --distributed

Jobs are independent, so processes need not communicate: they only share a work
directory (`meeting`). From jax.distributed this uses the detection of numbers
in a cluster, not the runtime. That runtime ends all processes with a stack
trace if one dies or is late, and makes Orbax and XLA wait for all processes at
each checkpoint and program. Here a killed process can be started again while
the others go on.
"""
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar
import warnings

from absl import flags

from vfljax.runner.errors import UserError, brief

# Flags that say which process this is, not what it computes.
FLAGS = ('coordinator', 'num_processes', 'process_id', 'distributed')
_SAID = '--num_processes=2 --process_id=0, and --process_id=1 for the other'


class Counted(Protocol):
  """What is needed of a job: its number of trainings and its block of seeds."""

  @property
  def count(self) -> int: ...

  @property
  def block(self) -> int: ...


_Job = TypeVar('_Job', bound=Counted)


class Share(NamedTuple):
  """One of the processes that run an experiment.

  Attributes:
    number: The process's number, 0..count-1. Process 0 also writes the files
      about all units.
    count: The number of processes.
  """

  number: int = 0
  count: int = 1

  @property
  def first(self) -> bool:
    return not self.number

  @property
  def others(self) -> list['Share']:
    """All processes except the first."""
    return [Share(number, self.count) for number in range(1, self.count)]

  def __str__(self) -> str:
    return f'process {self.number} of {self.count}'

  def of(self, everything: Sequence[_Job]) -> list[_Job]:
    """This process's jobs among all jobs, finished ones included.

    Each block of seeds is divided separately: when seeds are raised, the jobs
    of earlier blocks are done.
    """
    own = set()
    for block in {job.block for job in everything}:
      places = [i for i, job in enumerate(everything) if job.block == block]
      part = divided([everything[i].count for i in places], self.count)
      own |= {*places[part[self.number]]}
    return [job for i, job in enumerate(everything) if i in own]


def divided(sizes: Sequence[int], count: int) -> list[slice]:
  """Divides jobs of these sizes among processes: a slice for each.

  Neighbouring jobs stay together, because they share programs. Under that
  condition the largest share is as small as possible.
  """
  low, high = max(sizes, default=0), sum(sizes)
  while low < high:  # Finds the smallest possible largest share.
    middle = (low + high) // 2
    low, high = (low, middle) if len(_filled(sizes, middle)) <= count else (
        middle + 1, high
    )
  ends = _filled(sizes, low, count)
  ends += [len(sizes)] * (count - len(ends))
  return [slice(a, b) for a, b in zip([0, *ends], ends)]


def _filled(sizes: Sequence[int], most: int, count: int = 0) -> list[int]:
  """The ends of shares that are each filled up to `most`.

  Args:
    sizes: The jobs' sizes.
    most: The largest size of a share.
    count: If given, the number of shares; each gets a job if possible.
  """
  ends, taken = [], 0
  for i, size in enumerate(sizes):
    others = count - len(ends) - 1
    if taken and (taken + size > most or len(sizes) - i <= others):
      ends.append(i)
      taken = 0
    taken += size
  return [*ends, len(sizes)]


def define(found: flags.FlagValues) -> None:
  """Adds the flags."""
  flags.DEFINE_integer(
      'num_processes', None, 'How many processes run this experiment, each on '
      'its own machine, in one --workdir on a file system that they share.', 1,
      flag_values=found,
  )
  flags.DEFINE_integer(
      'process_id', None, 'The number of this process, from 0. Process 0 '
      'writes the report.', 0, flag_values=found,
  )
  flags.DEFINE_bool(
      'distributed', False, 'Ask the cluster for --num_processes and '
      '--process_id, as JAX does: Slurm, Open MPI, Kubernetes, TPU pods.',
      flag_values=found,
  )
  flags.DEFINE_string(
      'coordinator', '', 'Accepted for scripts made for jax.distributed. '
      'Nothing is sent there: the processes meet in --workdir.',
      flag_values=found,
  )


def asked(found: flags.FlagValues) -> Share:
  """Which process this is, as the flags say; by default the only one.

  Raises:
    UserError: if only one of the two numbers is given, or they do not fit.
  """
  number, count = found['process_id'].value, found['num_processes'].value
  if found['distributed'].value and None in (number, count):
    theirs = detected()
    number = theirs.number if number is None else number
    count = theirs.count if count is None else count
  if number is None and count is None and not found['coordinator'].value:
    return Share()
  if number is None or count is None:
    raise UserError(
        f'Give each process the number of processes and its own: {_SAID}.\n'
        'In a cluster that knows both, type --distributed.'
    )
  if not 0 <= number < count:
    raise UserError(
        f'--process_id must be 0..{count - 1} of --num_processes={count}; got '
        f'{number}.'
    )
  return Share(number, count)


def detected() -> Share:
  """Which process the cluster says this is, as JAX detects it.

  Raises:
    UserError: if JAX finds no cluster that it knows.
  """
  try:
    # What `jax.distributed.initialize` would ask; it is not public by itself.
    from jax._src import clusters
    with warnings.catch_warnings(record=True) as said:
      warnings.simplefilter('always')
      _, count, number, _ = (
          clusters.ClusterEnv.auto_detect_unset_distributed_params(
              # Placeholders: no coordinator is called.
              'nobody', None, None, [0], None, 60
          )
      )
  except Exception as error:  # Detection fails in many ways.
    why = brief(str(error)).partition('\n')[0]
    raise UserError(
        '--distributed: the cluster does not say which process this is: '
        f'{why}\nType {_SAID}.'
    ) from None
  if count is None or number is None:
    why = str(said[0].message).split('\n')[0] if said else (
        'JAX finds no Slurm, Open MPI, Kubernetes or TPU pod'
    )
    raise UserError(f'--distributed: {brief(why)}.\nType {_SAID}.')
  return Share(number, count)
