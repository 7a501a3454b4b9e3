"""VFLAIR's attacks as ours, and who has a method."""
from collections.abc import Mapping
from typing import Any

from vfljax.commands import vflair_names as names
from vfljax.commands.vflair_names import number
from vfljax.runner.config import AttackConfig
from vfljax.runner.errors import UserError, brief


def group(theirs: Any, name: str) -> Mapping[str, Any]:
  """An entry {...} of a file, empty if it is not there.

  Raises:
    UserError: if it is of another kind.
  """
  found = theirs.get(name) or {}
  if not isinstance(found, Mapping):
    raise UserError(f'{name!r} must be {{...}}; got {brief(repr(found))}.')
  return found


def owners(more: Mapping[str, Any], parties: int, default: int) -> list[int]:
  """VFLAIR's numbers of the parties that have a method, ascending.

  Raises:
    UserError: if it is no list of such numbers.
  """
  found = more.get('party', [default])
  if not isinstance(found, list) or not found or not all(
      type(k) is int and 0 <= k < parties for k in found
  ):
    raise UserError(
        "'party' is of another kind than in VFLAIR: it must list numbers of "
        f'parties, 0 to {parties - 1}; got {brief(repr(found))}.'
    )
  return sorted(set(found))


def attacks(
    theirs: Mapping[str, Any], parties: int
) -> tuple[tuple[str, ...], list[str], list[str], AttackConfig]:
  """Attacks to run together, apart and not at all, and their settings.

  Raises:
    UserError: for settings that a config of vfljax cannot have together.
  """
  listed = group(theirs, 'attack_list') or group(theirs, 'attack')
  some = [listed] if 'name' in listed else list(listed.values())
  together, apart, left_out, own = [], [], [], {}
  whose, known = [], []
  for one in some:
    one = group({'attack': one}, 'attack')
    name, more = one.get('name'), group(one, 'parameters')
    if name not in names.ATTACKS:
      left_out.append(str(name))
      continue
    ours, options, alone = names.ATTACKS[name](more)
    if own.setdefault(ours, options) != options:
      raise UserError(
          f'{name} is in the file twice, not with the same parameters: a '
          'config of vfljax has it once. Translate a file for each.'
      )
    (apart if alone else together).append(ours)
    whose.append(_attacker(name, more, parties))
    if 'n_labeled_per_class' in more or name in names.KNOWING:
      own_known = names.KNOWING.get(name, 4)
      known.append(_of_class(more, own_known))
  return tuple(dict.fromkeys(together)), [*dict.fromkeys(apart)], left_out, (
      AttackConfig(
          party=_one('party', whose, 1),
          known=_one('n_labeled_per_class', known, 4),
          own={ours: options for ours, options in own.items() if options},
      )
  )


def _of_class(more: Mapping[str, Any], default: int) -> int:
  """How many samples of each class the attacker knows the labels of."""
  name = 'n_labeled_per_class'
  known = number(more, name, default, int)
  if known < 1:
    raise UserError(
        f'{name!r} must be 1 or more, as the attack learns from these samples; '
        f'got {known}.'
    )
  return known


def _attacker(name: str, more: Mapping[str, Any], parties: int) -> int:
  """The attacking party's number here, 0 for all passive ones together."""
  who = owners(more, parties, 0)
  if parties - 1 in who:
    raise UserError(
        f'{name}: party {who} is the active one, which knows the labels.'
    )
  if len(who) == 1:
    return who[0] + 1  # Theirs count from 0.
  if who != [*range(parties - 1)]:
    raise UserError(
        f'{name} by parties {who} has no counterpart: in vfljax one passive '
        'party attacks, or all of them.'
    )
  return 0


def _one(name: str, values: list[int], default: int) -> int:
  """The value that all attacks have.

  Raises:
    UserError: if they have several.
  """
  if len(set(values)) > 1:
    raise UserError(
        f'The attacks differ in {name!r}, and a config of vfljax has one for '
        'all of them. Translate a file for each.'
    )
  return values[0] if values else default
