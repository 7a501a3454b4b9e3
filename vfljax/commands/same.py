"""Whether work directories are parts of one experiment."""
from collections.abc import Callable, Mapping, Sequence
import itertools
from pathlib import Path
from typing import Any

from vfljax.runner.cli import asking
from vfljax.runner.config import Config, Entry
from vfljax.runner.config.nested import flat
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import choosing, sources
from vfljax.runner.workdir import identity, mergeable, raising, saved

# Groups, or fields of the top, in which parts of an experiment may differ;
# `mergeable.fields` has more.
FREE = (
    'seeds_per_chunk', 'strengths_per_chunk', 'alone', 'paper', raising.FIELD,
    sources.FIELD, identity.MERGED,
)


def check(
    folders: Sequence[Path], configs: Sequence[Mapping[str, Any]]
) -> None:
  """Refuses work directories that are not parts of one experiment.

  Args:
    configs: The contents of their config.json.

  Raises:
    UserError: naming two of them, and how they differ.
  """
  every = [*zip(folders, configs)]
  for folder, config in every[1:]:
    _check_fields(folders[0], configs[0], folder, config)
  for one, other in itertools.combinations(every, 2):
    _check_methods(*one, *other)


def agreed(configs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
  """The configurations; what no attack of one needs is as in the others.

  These are the number of rounds that are played again, whose default was
  another one before, and the labels that an attacker knows, which a run lowers
  where a small table has not so many. They mean nothing without such attacks.

  Args:
    configs: The contents of their config.json.
  """
  alike = _alike('replay_rounds', saved.replays, configs)
  return _alike('known', saved.knows, alike)


def _alike(
    field: str, needs: Callable[[Mapping[str, Any]], bool],
    configs: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
  """The configurations, with a field of 'attack' of those that need it."""
  known = [c for c in configs if field in c.get('attack', {})]
  needed = [c for c in known if needs(c)]
  found = []
  for config in configs:
    if config in known and config not in needed:
      own = config['attack'] | {field: (needed or known)[0]['attack'][field]}
      config = config | dict(attack=own)
    found.append(config)
  return found


def entries(
    config: Mapping[str, Any], measured: Mapping[str, tuple[float, ...]]
) -> list[Entry]:
  """The rows of a work directory.

  Args:
    measured: Each defense's strengths in its results.
  """
  listed = tuple(mergeable.listed(config))
  asked = Config(defenses=config['defenses'], listed=listed)
  return choosing.recorded(asked, measured)


def _check_methods(
    one: Path, here: Mapping[str, Any], other: Path, there: Mapping[str, Any]
) -> None:
  """Raises a UserError if two methods have one name."""
  found = mergeable.odds(entries(here, {}), entries(there, {}))
  if found:
    odd = found[0]
    raise UserError(
        f'{one} and {other} have two methods called {odd.name}: {odd.field} is '
        f'{odd.one!r} and {odd.other!r}.\nGive one of them another name, as '
        f"label='{odd.name} 2' in its Entry, and run it in another --workdir."
    )


def _check_fields(
    one: Path, here: Mapping[str, Any], other: Path, there: Mapping[str, Any]
) -> None:
  """Raises a UserError if two experiments differ, with the fields."""
  free = {*FREE, *mergeable.fields(here, there)}
  fixed = lambda config: {
      k: v for k, v in flat(config).items() if k.split('.')[0] not in free
  }
  old, new = fixed(here), fixed(there)
  theirs = there.get(sources.FIELD, {})
  for file, digest in here.get(sources.FIELD, {}).items():
    if theirs.get(file, digest) != digest:
      raise UserError(
          f'{one} and {other} ran other versions of {file}: they cannot be '
          'parts of one experiment.\nvfljax compare shows them beside each '
          'other.'
      )
  names = [k for k in old | new if old.get(k) != new.get(k)]
  if here.get('samples') and _elsewhere(old, new):
    names = [k for k in names if k != 'data.path']
  for late in asking.COLUMNS, asking.WEIGHTS:  # Earlier versions lack them.
    if late not in old or late not in new:
      names = [k for k in names if k != late]
  if names == [mergeable.FIRST]:
    first, second = (c.get(mergeable.FIRST, 'unknown') for c in (here, there))
    raise UserError(
        f'{one} and {other} test other samples: with data.resplit=False the '
        f'only split is that of first_seed, {first} and {second}.\nFor more '
        f'seeds of one split raise --config.seeds in {one} instead.'
    )
  if names:
    said = '; '.join(
        f'{k} is {old.get(k)!r} and {new.get(k)!r}' for k in names[:3]
    )
    raise UserError(
        f'{one} and {other} are two experiments: {said}.\nvfljax compare shows '
        'them beside each other.'
    )


def _elsewhere(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
  """Whether the samples may be the same, at another path."""
  return asking.same_path(old.get('data.path'), new.get('data.path'))
