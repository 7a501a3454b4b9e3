"""Rehearses an experiment's jobs before anything is compiled or written.

The start of each row is traced as it will be compiled: with the split, the
backdoor and traced strengths. Attacks with options are traced, too, one of each
kind. Jobs that cannot be traced are refused here, and those that cannot fit
into memory, of which the start's shapes give a lower bound.
"""
from collections import Counter
from collections.abc import Iterator
import contextlib
from functools import partial
import inspect
import math
from typing import Any
from urllib.parse import quote

import jax

from vfljax import attacks, defenses, measure, nets
from vfljax import check as checks
from vfljax.data import files
from vfljax.data.table import listing
from vfljax.defense import Defense
from vfljax.runner.checking import trying
from vfljax.runner.compiled import cell
from vfljax.runner.config import Entry, outside
from vfljax.runner.errors import UserError, brief
from vfljax.runner.experiment import jobs
from vfljax.runner.experiment.choosing import entries
from vfljax.runner.experiment.jobs import Job
from vfljax.runner.experiment.setting import Setting

_MOST = 20_000  # Programs and files of an experiment.
_LONGEST = 200  # Characters of a file's name, its ending left out; disks: 255.
_METRICS = 4  # Numbers an epoch that each training has at least.


def check(setting: Setting) -> None:
  """Refuses jobs that cannot start.

  Raises:
    UserError, ValueError: for the first job that cannot.
  """
  _check_amount(setting)
  everything = jobs.jobs(setting)
  _check_names([unit for job in everything for unit in job.units])
  first = everything[0]  # The undefended federation, with all attacks.
  with _own_explained(setting):
    plain = _start(first)
  trying.attacks(first, plain)
  tried: dict[str, int] = {}  # Bytes of one training, by entry.
  for job in everything:
    entry = job.entry
    if entry.name not in tried:
      begun = plain if job is first else _start(job)
      tried[entry.name] = _bytes_of(begun)
      if outside.has(entry):
        _try_rounds(job, begun)
    _check_memory(job, tried[entry.name])


def _check_amount(setting: Setting) -> None:
  """Refuses absurdly many jobs or strengths, before a list of them is made."""
  config = setting.config
  parts = -(-config.seeds // (config.seeds_per_chunk or config.seeds))
  points = sum(
      max(len(entry.strengths), 1) * math.prod(map(len, entry.grid.values()))
      for entry in entries(config, setting.classes)
  )
  if parts * points > _MOST:
    raise UserError(
        f'That would be {parts * points} parts to run and to write; at most '
        f'{_MOST} are allowed. Give fewer strengths, or a larger '
        '--config.seeds_per_chunk.'
    )


def _check_names(units: list[str]) -> None:
  """Refuses units' names that are equal or too long to be files' names."""
  twice = sorted(unit for unit, times in Counter(units).items() if times > 1)
  if twice:
    raise UserError(
        f'Several results would be called {listing(twice, 3)}: strengths must '
        'differ in six digits, and rows of the table in their labels.'
    )
  for unit in units:
    size = len(quote(unit, safe=' /,+='))
    if size > _LONGEST:
      raise UserError(
          f'The name {unit[:60]!r}... makes a file name of {size} characters; '
          f'{_LONGEST} are the most. Give the defense a shorter label.'
      )


def _start(job: Job) -> Any:
  """Traces the start of one training: the shapes of its run.

  Raises:
    ValueError: if it cannot be traced, or not with such a strength.
  """
  with options_explained(job.entry):
    return jax.eval_shape(
        partial(cell.start, job), trying.shapes(job), job.setting.samples
    )


def _own_explained(setting: Setting) -> contextlib.AbstractContextManager:
  """A context that explains errors of a network or backdoor from outside."""
  used = {
      setting.config.model.name: nets.REGISTRY.get(setting.config.model.name),
      setting.backdoor: attacks.REGISTRY.get(setting.backdoor),
  }
  stack = contextlib.ExitStack()
  for name, method in used.items():
    mine = bool(method) and not outside.is_ours(method)
    stack.enter_context(outside.explained(name, mine))
  return stack


def _try_rounds(job: Job, runs: Any) -> None:
  """Traces rounds and the end under a defense from outside, without attacks.

  Raises:
    UserError: for errors in its hooks.
  """
  with options_explained(job.entry):
    trying.traced(job, runs, [], 1)







def _bytes_of(run: Any) -> int:
  """Bytes of the weights and states of one training."""
  leaves = jax.tree.leaves(run)
  return sum(math.prod(x.shape) * x.dtype.itemsize for x in leaves)


@contextlib.contextmanager
def options_explained(entry: Entry) -> Iterator[None]:
  """A context that explains errors due to a defense's options.

  A config file may give any options. If it gives none, the error is the
  defense's own and passes.

  Raises:
    UserError: naming the entry.
  """
  try:
    yield
  except UserError:
    raise
  except Exception as error:
    mine = outside.has(entry)
    if isinstance(error, ValueError) and not mine:
      raise
    if not (entry.options or entry.grid or entry.after):
      if mine:
        raise UserError(outside.said(entry.name, error)) from None
      raise
    if isinstance(error, ValueError):
      raise UserError(outside.said(entry.name, error)) from None
    if entry.grid and isinstance(error, jax.errors.ConcretizationTypeError):
      raise UserError(
          f'{entry.name}: an argument in its grid sets a shape, and cannot be '
          'swept in one program. Make rows of it: Entry(..., label=...).'
      ) from None
    first = brief(str(error)).partition('\n')[0]
    said = _other_kind(entry) or f'{type(error).__name__}: {first}'
    raise UserError(
        f'{entry.name} cannot have these options: {said}'
    ) from None


def _other_kind(entry: Entry) -> str:
  """Which option must be a NamedTuple, as its default is, and is none; or ''.

  Those of a defense chained before are looked at, too.
  """
  for row in (entry, *entry.after):
    takes = inspect.signature(defenses.REGISTRY[row.defense].factory).parameters
    for name, value in row.options.items():
      kind = type(takes[name].default) if name in takes else tuple
      if hasattr(kind, '_fields') and not isinstance(value, kind):
        return (
            f'{name} must be of the type {kind.__name__}; got '
            f'{checks.kind(value)}. Write {name}={kind.__name__}(...) in the '
            f'config file, after from {kind.__module__} import {kind.__name__}.'
        )
  return ''


def check_facts(name: str, defense: Defense, memory: Any) -> None:
  """Refuses facts that a row of the results cannot hold, before hours of work.

  Args:
    name: The defense's name.
    memory: Its state, or the state's shapes.

  Raises:
    ValueError: naming the fact.
  """
  def look(memory: Any) -> None:  # A text among them cannot be traced.
    found = defense.facts(memory)
    for fact in found if isinstance(found, dict) else ():
      measure.check_fact(name, str(fact))
    checks.facts(name, found)

  jax.eval_shape(look, memory)


def _check_memory(job: Job, size: int) -> None:
  """Refuses a job whose weights and history alone exceed the memory."""
  history = job.setting.config.train.epochs * _METRICS * 4
  needed, there = job.count * (size + history), memory()
  if needed > there:
    raise UserError(
        f'{job.name}: {job.count} trainings at once take {_shown(needed)} or '
        f'more, but there are {_shown(there)} of memory.\nTrain fewer at a '
        'time (--config.seeds_per_chunk=1), or make model.bottom, model.top or '
        'train.epochs smaller.'
    )


def memory() -> int:
  """Bytes of all devices; for CPUs those of the machine or its container."""
  found = [device.memory_stats() or {} for device in jax.local_devices()]
  if all('bytes_limit' in stats for stats in found):
    return sum(stats['bytes_limit'] for stats in found)
  return files.memory()


def _shown(size: float) -> str:
  return f'{size / 2**30:,.1f} GiB'
