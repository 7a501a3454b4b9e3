"""Finished work directories for commands, and the commands called."""
from tests.fake_results import row
from vfljax.runner.main import main
from vfljax.runner.workdir import store

NONE, ISO, MORE = ('none', None), ('iso', 5.0), ('iso', 7.0)


def config(**changed):
  return dict(
      experiment='quickstart', defenses='', attacks='', seeds=2, first_seed=0,
      listed=[], listed_attacks=['norm_scoring'], samples='0123',
      data=dict(name='csv', path='/a/my.csv'), train=dict(epochs=5),
  ) | changed


def made(folder, defenses, seeds=(0, 1), value=0.9, attack='norm_scoring',
         asked=None, **changed):
  """A work directory with a utility and an attack for each (name, strength)."""
  own = config(
      defenses=','.join(
          name if s is None else f'{name}({s:g})' for name, s in defenses
      ) if asked is None else asked,
      first_seed=seeds[0], seeds=len(seeds), listed_attacks=[attack],
  ) | changed
  units = [f'{name}/{s}' for name, s in defenses]
  work = store.open_workdir(folder, own, units)
  for unit, (name, s) in zip(units, defenses):
    work.save(unit, [
        row(name, s, who, seed, metric, 'test', value - seed / 100)
        for seed in seeds
        for who, metric in ((None, 'auc'), (attack, 'leak_auc'))
    ], dict(seeds=len(seeds), classes=2))
  return folder


def call(capsys, *arguments):
  code = main(['vfljax', *map(str, arguments)])
  said = capsys.readouterr()
  return code, said.out, said.err
