"""One experiment on several machines: who of the processes does which jobs.

  vfljax --config=... --workdir=/shared/out --num_processes=2 --process_id=0
  srun vfljax --config=... --workdir=/shared/out --distributed

Jobs owe each other nothing, so the processes compute no sums together and send
each other nothing: they share a work directory (`meeting`). Of jax.distributed
this takes what says who is who in a cluster, and not the runtime. That one ends
all processes when one dies or comes late, with a stack trace, and has Orbax and
XLA wait for all of them at every checkpoint and program; here one that was
killed is started again while the others go on.
"""
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar
import warnings

from absl import flags

from vfljax.runner.errors import UserError, brief

# Flags that say which process this is, and nothing of what it computes.
FLAGS = ('coordinator', 'num_processes', 'process_id', 'distributed')
_SAID = '--num_processes=2 --process_id=0, and --process_id=1 for the other'


class Counted(Protocol):
  """A job, as far as it matters here: how many trainings, since which raise."""

  @property
  def count(self) -> int: ...

  @property
  def block(self) -> int: ...


_Job = TypeVar('_Job', bound=Counted)


class Share(NamedTuple):
  """One of the processes that run an experiment.

  Attributes:
    number: Which one, 0..count-1; the first also writes what is of all.
    count: How many there are.
  """

  number: int = 0
  count: int = 1

  @property
  def first(self) -> bool:
    return not self.number

  @property
  def others(self) -> list['Share']:
    """All but the first."""
    return [Share(number, self.count) for number in range(1, self.count)]

  def __str__(self) -> str:
    return f'process {self.number} of {self.count}'

  def of(self, everything: Sequence[_Job]) -> list[_Job]:
    """Its own among an experiment's jobs, whatever has been done of them.

    Seeds that came later are divided by themselves: those of before are done.
    """
    own = set()
    for block in {job.block for job in everything}:
      places = [i for i, job in enumerate(everything) if job.block == block]
      part = divided([everything[i].count for i in places], self.count)
      own |= {*places[part[self.number]]}
    return [job for i, job in enumerate(everything) if i in own]


def divided(sizes: Sequence[int], count: int) -> list[slice]:
  """Neighbours stay together, since they share programs: a slice a process.

  The largest share is as small as it can be so.
  """
  low, high = max(sizes, default=0), sum(sizes)
  while low < high:  # The least that a process has to be able to take.
    middle = (low + high) // 2
    low, high = (low, middle) if len(_filled(sizes, middle)) <= count else (
        middle + 1, high
    )
  ends = _filled(sizes, low, count)
  ends += [len(sizes)] * (count - len(ends))
  return [slice(a, b) for a, b in zip([0, *ends], ends)]


def _filled(sizes: Sequence[int], most: int, count: int = 0) -> list[int]:
  """Where shares end of which each takes as much as goes into `most`.

  Args:
    count: How many shares there are, so that each has something if possible.
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
  """Which process this is; the only one, if nothing says otherwise.

  Raises:
    UserError: for half of what there is to say, and numbers that do not fit.
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
        f'Processes are told how many they are and which one each is: {_SAID}.'
        '\nIn a cluster that knows both, --distributed asks it.'
    )
  if not 0 <= number < count:
    raise UserError(
        f'--process_id must be 0..{count - 1} of --num_processes={count}; got '
        f'{number}.'
    )
  return Share(number, count)


def detected() -> Share:
  """What the cluster says, by JAX's own ways to ask it.

  Raises:
    UserError: if there is none that JAX knows.
  """
  try:
    # What `jax.distributed.initialize` would ask; it is not public by itself.
    from jax._src import clusters
    with warnings.catch_warnings(record=True) as said:
      warnings.simplefilter('always')
      _, count, number, _ = (
          clusters.ClusterEnv.auto_detect_unset_distributed_params(
              # Nobody will be called, on no devices but one's own.
              'nobody', None, None, [0], None, 60
          )
      )
  except Exception as error:  # Clusters answer, or not, in many ways.
    why = brief(str(error)).partition('\n')[0]
    raise UserError(
        f'--distributed: the cluster does not say who this is: {why}\nSay it: '
        f'{_SAID}.'
    ) from None
  if count is None or number is None:
    why = str(said[0].message).split('\n')[0] if said else (
        'JAX finds no Slurm, Open MPI, Kubernetes or TPU pod'
    )
    raise UserError(f'--distributed: {brief(why)}.\nSay it: {_SAID}.')
  return Share(number, count)
