"""`vfljax from-vflair config.json --to=mine.py`: an experiment of VFLAIR's.

Settings with the same meaning here are translated; an attack without a
counterpart is left out and named; any other setting without one is refused.
Settings that are in VFLAIR's code, not in its files, are taken from the code:
Adam, linear heads.
"""
import argparse
from collections.abc import Mapping
import json
from pathlib import Path
from typing import Any

from vfljax.commands import given, vflair_attacks, vflair_names as names
from vfljax.commands.vflair_attacks import group
from vfljax.commands.vflair_names import number
from vfljax.runner.config import (
    Config, DataConfig, Entry, ModelConfig, TrainConfig, ranges,
)
from vfljax.runner.config.as_code import module
from vfljax.runner.errors import UserError, brief
from vfljax.runner.machine import disk
from vfljax.runner.machine.stopping import Stop

_KNOWN = {
    'epochs', 'lr', 'k', 'batch_size', 'test_batch_size', 'num_exp', 'dataset',
    'model_list', 'communication', 'iteration_per_aggregation', 'attack_list',
    'attack', 'defense',
}


def run(argv: list[str], stop: Stop | None = None) -> int:
  """Writes a config file, and says how to run it.

  Raises:
    UserError: for a file that is no configuration of VFLAIR, and for settings
      without a counterpart in vfljax.
  """
  del stop  # It is done in no time.
  parser = given.Parser(
      prog='vfljax from-vflair', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('file', help="one of VFLAIR's src/configs/**/*.json")
  parser.add_argument('--to', default='', help='the config; <file>.py if empty')
  asked = parser.parse_args(argv)
  source = Path(asked.file).expanduser()
  target = Path(asked.to or f'{source.stem}.py').expanduser()
  if target.exists():
    raise UserError(f'{target} exists already: give another --to=FILE.py.')
  theirs = read(source)
  config, apart, left_out = translated(theirs)
  config.experiment = f'vflair_{_word(source.stem)}'
  ranges.check(config)
  disk.write_text(target.absolute(), module(
      config, f"From VFLAIR's {source.name}, by `vfljax from-vflair`."
  ), '--to')
  path = ' --config.data.path=...' if config.data.name in names.FILES else ''
  if config.data.name == 'csv':
    path += ' --config.data.label=...'
    print(f'{_data_set(theirs)!r} is no data set of vfljax, and will be read '
          'from a CSV file of yours. By name it has: '
          f'{", ".join(names.DATA)}.')
  for attack in left_out:
    print(f'Left out: {attack}, which has no counterpart in vfljax.')
  if not config.listed_attacks and not apart:
    path += ' --config.attacks=...'
    print('No attack is left, and without one a run says nothing of leakage: '
          'name some, see vfljax --list attacks.')
  print(f'Run: vfljax --config={target}{path}')
  for attack in apart:
    print(f'and: vfljax --config={target}{path} --config.attacks={attack}')
  return 0


def _word(text: str) -> str:
  return ''.join(c if c.isalnum() else '_' for c in text)


def read(file: Path) -> dict[str, Any]:
  """A configuration of VFLAIR's.

  Raises:
    UserError: if it is none.
  """
  try:
    found = json.loads(file.read_text('utf-8'))
  except OSError as error:
    raise UserError(f'{file} cannot be read: {error.strerror}.') from None
  except ValueError as error:
    raise UserError(f'{file} is no JSON: {brief(str(error))}') from None
  if not isinstance(found, dict) or 'model_list' not in found:
    raise UserError(f'{file} is no configuration of VFLAIR: no "model_list".')
  return found


def translated(
    theirs: Mapping[str, Any]
) -> tuple[Config, list[str], list[str]]:
  """The config, attacks that need a run of their own, and those left out.

  Raises:
    UserError: for what has no counterpart, and for values of another kind than
      VFLAIR's.
  """
  try:
    return _translated(theirs)
  except UserError:
    raise
  except (ArithmeticError, LookupError, TypeError, ValueError) as error:
    raise UserError(
        f'A setting has a value of another kind than in VFLAIR: {error}.'
    ) from error


def _translated(
    theirs: Mapping[str, Any]
) -> tuple[Config, list[str], list[str]]:
  if odd := sorted(set(theirs) - _KNOWN):
    raise UserError(
        f'vfljax has no counterpart of {", ".join(map(repr, odd))} in a '
        'configuration of VFLAIR (trees, language models and encryption are '
        'not translated): remove it from the file to translate the rest.'
    )
  _check_rounds(theirs)
  parties = number(theirs, 'k', 2, int)
  if parties < 2:
    raise UserError(f"'k' must be 2 parties or more; got {parties}.")
  attacks, apart, left_out, attack = vflair_attacks.attacks(theirs, parties)
  config = Config(
      seeds=number(theirs, 'num_exp', 10, int),
      data=_data(theirs, parties), model=_model(theirs, parties),
      train=TrainConfig(
          epochs=number(theirs, 'epochs', 50, int), optimizer='adam',
          batch_size=number(theirs, 'batch_size', 2048, int),
          learning_rate=number(theirs, 'lr', 0.001, float),
      ),
      attack=attack, listed=(Entry('none'), *_defense(theirs, parties)),
      listed_attacks=attacks,
  )
  return config, apart, left_out


def _check_rounds(theirs: Mapping[str, Any]) -> None:
  how = group(theirs, 'communication')
  kind = how.get('communication_protocol', 'FedSGD')
  steps = how.get(
      'iteration_per_aggregation', theirs.get('iteration_per_aggregation', 1)
  )
  if kind not in ('FedSGD', 'Vanilla') and steps != 1 or kind in (
      'Quantization', 'Topk', 'CELU'
  ):
    raise UserError(
        f'communication_protocol {kind!r} has no counterpart: vfljax plays a '
        'round for every step. Write "FedSGD" to go on with that.'
    )


def _data_set(theirs: Mapping[str, Any]) -> str:
  return group(theirs, 'dataset').get('dataset_name', 'mnist')


def _data(theirs: Mapping[str, Any], parties: int) -> DataConfig:
  own = group(theirs, 'dataset')
  name = names.DATA.get(_data_set(theirs), 'csv')
  found = DataConfig(name=name, parties=parties)
  if 'num_classes' not in own:
    return found
  count = number(own, 'num_classes', 10, int)
  if name == 'nuswide' and count in names.CONCEPTS:
    found.options = f'concepts={names.CONCEPTS[count]}'
  elif count != names.CLASSES.get(name, count):
    raise UserError(
        f'num_classes {count} has no counterpart: VFLAIR takes so many of the '
        f'classes of {name}, vfljax all {names.CLASSES[name]}.'
    )
  return found


def _model(theirs: Mapping[str, Any], parties: int) -> ModelConfig:
  """One network for every party, and the head.

  Raises:
    UserError: for networks that differ, or have no counterpart in vfljax.
  """
  listed = group(theirs, 'model_list')
  own = [group(listed, str(k)) for k in range(parties)]
  kinds = {
      (m.get('type', 'MLP2'), number(m, 'output_dim', 10, int)) for m in own
  }
  if len(kinds) > 1:
    raise UserError(
        'All parties have the same network in a config of vfljax; '
        f'model_list has {", ".join(f"{t} ({d})" for t, d in sorted(kinds))}.'
    )
  (kind, width), = kinds
  head: dict[str, Any] = dict(top=(), aggregation='concat')
  if not _trainable(listed):
    head = dict(top=(), aggregation='sum', trainable_top=False)
    # Of two classes the sum is one logit here, there the difference of two.
    two = group(theirs, 'dataset').get('num_classes', 10) == 2
    width = 1 if two else width
  if kind in names.WIDTHS:
    return ModelConfig(bottom=(*names.WIDTHS[kind], width), **head)
  if kind in names.NETWORKS:
    return ModelConfig(name=names.NETWORKS[kind], width=width, **head)
  raise UserError(
      f'There is no counterpart of the network {kind!r}; there are: '
      f'{", ".join([*names.WIDTHS, *names.NETWORKS])}.'
  )


def _trainable(listed: Mapping[str, Any]) -> bool:
  """Whether the head learns: 0 or 1 there, and text is no answer."""
  found = listed.get('apply_trainable_layer', 0)
  if found not in (0, 1):
    raise UserError(
        f"'apply_trainable_layer' must be 0 or 1; got {brief(repr(found))}."
    )
  return bool(found)


def _defense(theirs: Mapping[str, Any], parties: int) -> list[Entry]:
  defense = group(theirs, 'defense')
  if not defense:
    return []
  name, more = defense.get('name'), group(defense, 'parameters')
  if name not in names.DEFENSES:
    raise UserError(
        f'There is no counterpart of the defense {name!r}; there are: '
        f'{", ".join(names.DEFENSES)}.'
    )
  owners = vflair_attacks.owners(more, parties, parties - 1)
  if owners not in ([parties - 1], [*range(parties - 1)]):
    raise UserError(
        f'{name} at parties {owners} has no counterpart: vfljax has a defense '
        'at the active party or at all passive ones.'
    )
  try:
    return [names.DEFENSES[name](more, owners == [parties - 1])]
  except (KeyError, TypeError) as error:
    raise UserError(
        f'The defense {name} lacks a parameter, or has one of another kind: '
        f'{error}.'
    ) from None
