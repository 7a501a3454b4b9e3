"""A small experiment's units, and what is saved of them."""
from vfljax.runner.workdir import store

MANY = [f'dp/{i}' for i in range(400)]
UNITS = ['none', 'iso/0', 'iso/1', 'marvell/0']
CONFIG = {'data': {'name': 'digits'}, 'seeds': 2, 'train': {'epochs': 50}}


def completed(saved):
  """Somebody else's configuration may have anything anywhere."""
  return saved | {'data': {'name': saved['data']['name']}}


def rows(unit, values=(0.5, 0.25)):
  """One measurement per seed, with the keys in another order than FIELDS."""
  defense, _, strength = unit.partition('/')
  return [
      {
          'value': value, 'split': 'test', 'metric': 'auc', 'seed': seed,
          'attack': None, 'strength': float(strength) if strength else None,
          'defense': defense, 'algorithm': 'vsnn', 'dataset': 'digits',
          'experiment': 'tiny',
      }
      for seed, value in enumerate(values)
  ]


def run_all(work):
  for unit in work.units:
    if not work.done(unit):
      work.save(unit, rows(unit), {'run_seconds': 1.5})


def save_many(place, told):
  """Saves many units, and says of each that it is saved."""
  work = store.open_workdir(place, {}, MANY)
  row = dict.fromkeys(store.FIELDS, 'x') | dict(seed=0, value=0.5)
  for unit in work.units:
    if not work.done(unit):
      work.save(unit, [row | dict(strength=unit)] * 50, {}, None)
      told.send(unit)


def everything(folder):
  """Every file below a folder, and what is in it."""
  return {p: p.read_bytes() for p in folder.rglob('*') if p.is_file()}
