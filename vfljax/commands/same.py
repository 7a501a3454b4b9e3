"""Whether work directories are parts of one experiment."""
from collections.abc import Callable, Iterable, Mapping, Sequence
import itertools
from pathlib import Path
from typing import Any

from vfljax import algorithms, attacks, defenses, nets
from vfljax.attack import TRAINING, recipe_of
from vfljax.leakage import AttackName
from vfljax.runner.cli import asking
from vfljax.runner.config import OR, Config, Entry
from vfljax.runner.config.nested import flat
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import choosing, sources
from vfljax.runner.workdir import identity, mergeable, parts, raising, saved

# Groups, or fields of the top, in which parts of an experiment may differ;
# `mergeable.fields` has more.
FREE = (
    'seeds_per_chunk', 'strengths_per_chunk', 'alone', 'paper', raising.FIELD,
    sources.FIELD, identity.MERGED,
)
# Fields that say what a part was asked for.
_NEEDED = {'attacks', 'defenses', 'listed_attacks'}


def check(
    folders: Sequence[Path], configs: Sequence[Mapping[str, Any]]
) -> None:
  """Refuses work directories that are not parts of one experiment.

  Args:
    configs: The contents of their config.json.

  Raises:
    UserError: naming two of them, and how they differ, or one that does not
      say what it was asked for.
  """
  for folder, config in zip(folders, configs):
    if lacks := _NEEDED - config.keys():
      raise UserError(
          f'{folder / identity.CONFIG} lacks {", ".join(sorted(lacks))}.\nUndo '
          'what was edited, copy the folder again, or leave it out.'
      )
  folders, configs = _unlike(folders, configs)
  # Of three, the first may lack what the others have differently.
  pairs = [*itertools.combinations(zip(folders, configs), 2)]
  for check_pair in (_check_fields, _check_methods, _check_code):
    for one, other in pairs:
      check_pair(*one, *other)


def _unlike(
    folders: Sequence[Path], configs: Sequence[Mapping[str, Any]]
) -> tuple[list[Path], list[Mapping[str, Any]]]:
  """Without those that differ from one before in nothing but free seeds.

  Hundreds of parts are often one command with other seeds, and there are far
  more pairs of them.
  """
  found = {}
  for folder, config in zip(folders, configs):
    free = () if mergeable.one_split(config) else ('seeds', mergeable.FIRST)
    fixed = {k: v for k, v in config.items() if k not in free}
    found.setdefault(parts.dumps(fixed), (folder, config))
  return [f for f, _ in found.values()], [c for _, c in found.values()]


def check_training(met: Mapping[Path, Iterable[Mapping[str, Any]]]) -> None:
  """Refuses parts of which only some have an attack that changes training.

  Their federations were trained differently, unless their utility is compared:
  where both have a defense's training of one seed.

  Args:
    met: Each work directory's rows of results; shared ones are equal.

  Raises:
    UserError: naming two of them, and the attack.
  """
  known = {
      folder: ({*map(_trained_by, rows)} - {''}, {*map(_training, rows)})
      for folder, rows in met.items()
  }
  for (one, mine), (other, its) in itertools.combinations(known.items(), 2):
    odd = sorted(mine[0] ^ its[0])
    if odd and not (mine[1] & its[1]) - {()}:
      folder = one if odd[0] in mine[0] else other
      raise UserError(
          f'{one} and {other} are two experiments: {odd[0]} changes how the '
          f'federation trains, and only {folder} has it.\nvfljax compare shows '
          'them beside each other.'
      )


def _training(row: Mapping[str, Any]) -> tuple:
  """What names a training, of a row of its utility; else ()."""
  own = row['defense'], row['strength'], row['seed']
  return () if row['attack'] else own


def _trained_by(row: Mapping[str, Any]) -> str:
  """The attack of a row, if it changes training; all variants may alike."""
  name = AttackName.parse(row['attack'] or '')
  made = attacks.REGISTRY.get(name.base)
  if made is None:  # None, or of code that is not here.
    return ''
  recipe = recipe_of(made)
  if recipe.optimizer is not None:  # It knows no options.
    return name.base
  return name.named if recipe.stage == TRAINING else ''


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


def attacks_of(config: Mapping[str, Any]) -> list[str]:
  """The attacks that a work directory was asked for."""
  asked = [name.strip() for name in config['attacks'].split(',')]
  return [name for name in asked if name] or config['listed_attacks']


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


def _check_code(
    one: Path, here: Mapping[str, Any], other: Path, there: Mapping[str, Any]
) -> None:
  """Raises a UserError if what both ran is other code in other files.

  A run with all methods of another one has all of its code, too, under whatever
  names of files. If it has no digests, its methods are vfljax's, unless that
  has none of the name: then an earlier version made it.
  """
  ran = lambda c: {*(e.name for e in entries(c, {})), *attacks_of(c)}
  both = (one, here), (other, there)
  for (first, mine), (second, its) in itertools.permutations(both):
    code, theirs = (c.get(sources.FIELD, {}) for c in (mine, its))
    gone = [k for k, v in code.items() if v not in theirs.values()]
    odd = [k for k, v in theirs.items() if v not in code.values()]
    if not odd and not theirs and _has_names_of_ours(mine):
      odd = ["vfljax's own code"]
    if gone and odd and ran(mine) <= ran(its):
      raise UserError(
          f'{first} ran {gone[0]}, and {second} ran {odd[0]} under the same '
          'names: they cannot be parts of one experiment.\nvfljax compare '
          'shows them beside each other.'
      )


def _has_names_of_ours(config: Mapping[str, Any]) -> bool:
  """Whether vfljax has a method of every name in a configuration."""
  bases = (
      AttackName.parse(name.strip()).base
      for listed in attacks_of(config) for name in listed.split(OR)
  )
  model = config.get('model', {})
  return (
      all(row.defense in defenses.REGISTRY for row in entries(config, {}))
      and all(base in attacks.REGISTRY for base in bases)
      and model.get('name', '') in {'', *nets.REGISTRY}
      and model.get('aggregation', 'sum') in algorithms.AGGREGATIONS
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
