"""Which defenses and attacks an experiment has: those listed, or asked for."""
from vfljax import attacks, defenses
from vfljax.runner import attackers, federations
from vfljax.runner.config import Config, Entry, default_entry
from vfljax.runner.errors import UserError


def entries(config: Config, classes: int = 2) -> list[Entry]:
  """The table's rows: those chosen, after the undefended baseline.

  Listed defenses that are for two classes are left out where there are more;
  those asked for by name are not, and `checks.make` refuses them.

  Raises:
    UserError: for a name that is not a defense.
  """
  listed = {entry.name: entry for entry in config.listed}
  if len(listed) < len(config.listed):
    raise UserError(
        'Two listed defenses have the same name; give one a label: '
        f'{[entry.name for entry in config.listed]}.'
    )
  for entry in config.listed:
    _refuse_unknown('defense', [entry.defense], list(defenses.REGISTRY))
  names = _names(config.defenses)
  known = [*dict.fromkeys([*listed, *defenses.REGISTRY])]
  _refuse_unknown('defense', names, known)
  if not names:
    names = [
        name for name, entry in listed.items()
        if classes == 2 or not defenses.REGISTRY[entry.defense].binary
    ]
  chosen = [listed.get(name) or default_entry(name) for name in names]
  # Everything is measured against the undefended federation.
  if 'none' not in names:
    chosen.insert(0, listed.get('none') or Entry('none'))
  return sorted(chosen, key=lambda entry: entry.name != 'none')


def attack_names(config: Config, classes: int = 2) -> list[str]:
  """The attacks, with the baselines that they are measured by.

  Listed attacks that cannot work here are left out; those asked for by name are
  not, and `checks.make` refuses them.

  Raises:
    UserError: for a name that is not an attack.
  """
  names, scene = _names(config.attacks), federations.scene(config, classes)
  variants = [variant.name for variant in config.variants]
  known = [*attacks.REGISTRY, *variants]
  _refuse_unknown('attack', [*names, *config.listed_attacks], known)
  if not names:
    names = [
        name for name in config.listed_attacks
        if not attackers.recipe(name).why_not(name, scene)
    ]
  for name in list(names):
    names += attackers.recipe(name).baselines(scene)
  return list(dict.fromkeys(names))


def _names(text: str) -> list[str]:
  names = [name.strip() for name in text.split(',')]
  return list(dict.fromkeys(name for name in names if name))


def _refuse_unknown(kind: str, names: list[str], known: list[str]) -> None:
  for name in names:
    if name not in known:
      raise UserError(
          f'There is no {kind} {name!r}. There are: {", ".join(sorted(known))}.'
      )
