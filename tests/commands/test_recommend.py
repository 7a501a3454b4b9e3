"""recommend as a command: its files, its folders, how it ends."""
import dataclasses
import json
import math
from pathlib import Path
import shutil

import numpy as np
import pytest

from tests.fake_results import row
from tests.report.test_lost import cell_of
from tests.report.test_report import workdir
from vfljax.commands import choice, dispatch, recommend
from vfljax.report import reading
from vfljax.runner import run as running
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import choosing
from vfljax.runner.main import main
from vfljax.runner.workdir import about, store


@pytest.mark.parametrize('argv, command', [
    (['v', 'recommend', 'a.csv'], ['v', 'recommend', 'a.csv']),
    (['v', '--recommend', 'a.csv', '--budget=2'],
     ['v', 'recommend', 'a.csv', '--budget=2']),
    (['v', '--budget=2', '--recommend=a.csv'],
     ['v', 'recommend', 'a.csv', '--budget=2']),
    (['v', '--config=a.py'], []), (['v'], []), (['v', '--list', 'data'], []),
])
def test_which_command_is_meant(argv, command):
  assert dispatch.meant(argv) == command


def people(folder):
  """Semicolons, decimal commas, and a debt that tells the label."""
  rng = np.random.default_rng(0)
  y = rng.integers(2, size=120)
  x = y[:, None] + rng.normal(size=(120, 4))
  rows = [
      ';'.join([*(f'{v:.3f}'.replace('.', ',') for v in row), str(label)])
      for row, label in zip(x, y)
  ]
  (folder / 'my.csv').write_text('\n'.join(['age;sex;pay;debt;late', *rows]))
  return str(folder / 'my.csv')


@pytest.mark.slow
def test_from_a_file_to_advice(tmp_path, capsys, monkeypatch):
  monkeypatch.setenv('COLUMNS', '80')
  command = [
      'vfljax', '--recommend', people(tmp_path), '--label=late', '--budget=3',
      '--named=age,sex;*', f'--workdir={tmp_path / "out"}', '--cache=',
      '--config.data.options=decimal=comma', '--config.seeds=2',
      '--config.train.epochs=2', '--config.model.algorithm=vlr',
      '--config.defenses=dp_laplace(0.01,0.1),max_norm',
      '--config.attacks=norm_scoring,direct_label', '--tensorboard',
      '--config.train.optimizer=sgd', '--config.alone=False',
  ]
  assert main(command) == 0
  assert list((tmp_path / 'out').rglob('events.out.tfevents*'))
  said = capsys.readouterr().out
  assert 'Within 3 points of loss' in said and 'Not tested' in said
  assert 'Around the budget:' in said and 'Report: ' in said.splitlines()[-1]
  results, = reading.read(tmp_path / 'out/report')
  tried = [s for d, s in results.cells if d == 'dp_laplace']
  assert len(tried) > 2 and all(map(math.isfinite, tried))
  page = (tmp_path / 'out/report/report.html').read_text()
  assert 'the labels and 2 columns: age, sex' in page
  assert 'Within 3 points of loss' in page
  # The same again trains nothing, and says the same.
  assert main(command) == 0
  again = capsys.readouterr().out
  assert again.partition('What was measured')[2] == (
      said.partition('What was measured')[2]
  )
  # More seeds, as the advice may say, are added: where it looked again stays.
  before = (tmp_path / 'out/finer/results.jsonl').read_text().splitlines()
  assert main([*command, '--config.seeds=3']) == 0
  assert 'Report: ' in capsys.readouterr().out.splitlines()[-1]
  results, = reading.read(tmp_path / 'out/report')
  assert results.seeds == [0, 1, 2] == [*results.asked]
  assert all(len(v) == 3 for v in results.values.values())
  assert [s for d, s in results.cells if d == 'dp_laplace'] == tried
  assert {*before} < {*(tmp_path / 'out/finer/results.jsonl').read_text(
  ).splitlines()}
  units = [t['unit'] for t in store.read_timings(tmp_path / 'out/finer')]
  assert units[:2] == ['none', 'none/seeds2-2']
  assert main(command) == 2
  assert 'Use --config.seeds=3' in capsys.readouterr().err


def test_stopped_before_it_looked_again_seeds_come_as_they_came(
    tmp_path, monkeypatch
):
  """What nobody defends is taken from the first sweep, seed by seed.

  Where it looks again is what the first seeds say, also once there are more.
  """
  played, first = [], {'coarse': 2}
  looked, finer = [], choice.finer

  def noted(results, *rest):
    looked.append(results.seeds)
    return finer(results, *rest)

  def play(config, table, place, before=None, **rest):
    folder = tmp_path / place
    played.append((folder.name, config.seeds, before and before.name))
    if folder.name == 'finer' and len(played) < 3:
      raise running.Interrupted
    cells = {
        (e.name, s): cell_of([0.9] * config.seeds, [0.8] * config.seeds)
        for e in config.listed for s in e.strengths or (None,)
    }
    first.setdefault(folder.name, config.seeds)
    shutil.rmtree(folder, ignore_errors=True)
    work = workdir(folder, cells)
    raised = [n for n in [first[folder.name]] if n < config.seeds]
    said = dataclasses.asdict(config) | {'raised': raised}
    for name in ('config.json', '.config.json'):
      (folder / name).unlink()
    (folder / 'config.json').write_text(json.dumps(said))
    return work

  monkeypatch.setattr(running, 'run', play)
  monkeypatch.setattr(choice, 'finer', noted)
  monkeypatch.setattr(recommend.merge, 'merge', lambda done, to: done[-1])
  monkeypatch.setattr(recommend.about, 'write', lambda *rest: None)
  monkeypatch.setattr(recommend.writing, 'write', lambda whole, goal: whole)
  monkeypatch.setattr(recommend.advise, 'text', lambda *rest: '')
  command = [
      'v', 'recommend', people(tmp_path), '--label=late', '--cache=',
      '--config.data.options=decimal=comma', f'--workdir={tmp_path}/out',
      '--config.defenses=dp_laplace(0.01,0.1)', '--config.seeds=2',
  ]
  assert main(command) == 130
  assert main([*command, '--config.seeds=4']) == 0
  assert looked == [[0, 1], [0, 1]]
  assert played == [
      ('coarse', 2, None), ('finer', 2, 'coarse'), ('coarse', 4, None),
      ('finer', 2, 'coarse'), ('finer', 4, 'coarse'),
  ]


@pytest.mark.slow
def test_each_goal_looks_again_in_a_folder_of_its_own(
    tmp_path, capsys, monkeypatch
):
  """The second goal was refused: the first one's folder was another config."""
  trained = []

  def play(config, table, place, before=None, **rest):
    del table, before, rest
    cells = [(e.name, s) for e in choosing.entries(config)
             for s in e.strengths or (None,)]
    units = [f'{name}/{s}' for name, s in cells]
    work = store.open_workdir(
        tmp_path / place, dataclasses.asdict(config), units
    )
    for unit, (name, s) in zip(units, cells):
      if work.done(unit):
        continue
      trained.append((work.path.name, s))
      # With the strength less leaks, and more is lost: 1, 3.2 and 10 points.
      utility, leak = (0.9, 0.9) if s is None else (
          0.9 - 0.1 * s**0.5, 0.5 + 0.003 * s**-0.5
      )
      work.save(unit, [
          row(name, s, who, seed, metric, 'test', value) for seed in (0, 1)
          for who, metric, value in (
              (None, 'auc', utility), ('norm_scoring', 'leak_auc', leak)
          )
      ], dict(seeds=2, classes=2))
    return work

  monkeypatch.setattr(running, 'run', play)
  command = [
      'v', 'recommend', people(tmp_path), '--label=late', '--cache=',
      '--config.data.options=decimal=comma', f'--workdir={tmp_path}/out',
      '--config.defenses=dp_laplace(0.01,0.1,1)', '--config.seeds=2',
  ]

  def fresh(*goal):
    trained.clear()
    code = main([*command, *goal])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    results, = reading.read(tmp_path / 'out/report')
    return [*trained], {s for _, s in results.cells}, captured.out

  coarse = [('coarse', s) for s in (None, 0.01, 0.1, 1.0)]
  found, cells, _ = fresh('--budget=2')
  assert found == coarse + [('finer', s) for s in (None, 0.001, 0.032)]
  # Of the second one's strengths, 0.032 and 0.32, one is known.
  found, cells, said = fresh('--budget=5')
  assert found == [('finer-2', None), ('finer-2', 0.32)]
  assert {0.001, 0.01, 0.032, 0.1, 0.32, 1.0} < cells
  assert 'Within 5 points of loss' in said
  found, cells, said = fresh('--max_leak=0.4')
  assert found == [('finer-3', None), ('finer-3', 10.0)] and 10.0 in cells
  assert said.count('Around the budget:') == 2  # 0.32 is finer-2's.
  assert said.count('Around what was asked for earlier:') == 1
  # Whatever was asked for before is done.
  for goal in ('--budget=5', '--budget=2', '--max_leak=0.4'):
    assert fresh(goal)[:2] == ([], cells)
  # A folder that was lost is filled anew; the report loses nothing.
  shutil.rmtree(tmp_path / 'out/finer-2')
  found, again, _ = fresh('--budget=5')
  assert found == [('finer-2', None), ('finer-2', 0.32)] and again == cells


def test_columns_may_be_given_to_parties_by_their_names(tmp_path):
  """A part for each party, the active one's first."""
  file = tmp_path / 'my.csv'
  file.write_text('a,b,c,late\n1,2,3,0\n4,5,6,1\n')
  asked, rest = recommend._parsed([
      str(file), '--label=late', '--named=b;c;*',
  ])
  data = recommend.settings(asked, rest)[0].config.data
  assert (data.split, data.named, data.parties) == ('named', 'b;c;*', 3)
  assert (data.name, data.label) == ('csv', 'late')
  config = choice.sized(Config(data=data), load_data(data), [])
  assert about.holders(config, load_data(data)) == [['b'], ['c'], ['a']]


def test_a_file_of_each_party_says_who_has_what(tmp_path, monkeypatch):
  for name, column in (('bank', 'late'), ('telecom', 'calls'), ('shop', 'b')):
    (tmp_path / f'{name}.csv').write_text(f'who,{column}\n1,1\n2,0\n')
  monkeypatch.chdir(tmp_path)
  asked, rest = recommend._parsed([
      'bank.csv', 'telecom.csv', 'shop.csv', '--ids=who', '--label=late',
      '--config.model.algorithm=vsnn',
  ])
  data = recommend.settings(asked, rest)[0].config.data
  assert (data.name, data.split, data.parties) == ('parties', 'held', 3)
  assert data.options == 'ids=who' and data.label == 'late'
  table = load_data(data)
  assert table.holders == (1, 2)
  place = recommend.default_workdir(asked.file)
  assert place == str(Path('out', 'recommend', 'bank.csv-telecom.csv-shop'))
  # A program's table says it, too, unless the split was typed.
  config = choice.sized(Config(), table, ['--config.attack.known=1'])
  assert (config.data.split, config.data.parties) == ('held', 3)
  config = choice.sized(Config(), table, ['--config.data.split=even'])
  assert config.data.split == 'even'
  # Another number of parties is left for the split to refuse.
  config = choice.sized(Config(), table, ['--config.data.parties=2'])
  assert (config.data.split, config.data.parties) == ('held', 2)


def test_options_that_messages_advise_have_the_ids_too(tmp_path, monkeypatch):
  """Whoever typed them beside --ids was told to leave them out."""
  monkeypatch.chdir(tmp_path)
  typed = '--config.data.options=ids=who;decimal=comma,'
  asked, rest = recommend._parsed(['a.csv', 'b.csv', '--ids=who', typed])
  data = recommend.settings(asked, rest)[0].config.data
  assert data.options == 'ids=who;decimal=comma,'
  for own, said in (
      ('decimal=comma,', "type '--config.data.options=ids=who;decimal=comma,'"),
      ('ids=no;sep=tab', 'is set by --ids=who already'),
  ):
    asked, rest = recommend._parsed(
        ['a.csv', 'b.csv', '--ids=who', f'--config.data.options={own}']
    )
    with pytest.raises(UserError, match=said):
      recommend.settings(asked, rest)


def test_one_argument_may_have_all_files_or_a_semicolon(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  asked, rest = recommend._parsed(['a.csv;b.csv;', '--ids=who'])
  data = recommend.settings(asked, rest)[0].config.data
  assert (data.name, data.split, data.parties) == ('parties', 'held', 2)
  (tmp_path / 'a;2.csv').touch()
  asked, rest = recommend._parsed(['a;2.csv'])
  data = recommend.settings(asked, rest)[0].config.data
  assert (data.name, data.split, data.path) == ('csv', 'even', 'a;2.csv')


@pytest.mark.parametrize('arguments, message', [
    (['{}'], 'Which column is the label?'), (['{}'], ' --label=<name>'),
    (['{}/no.csv', '--label=late'], 'is not there'),
    (['{}', '--label=lat'], "did you mean 'late'? --label=late"),
    (['{}', '--label=late'], 'options=decimal=comma'),
    (['{}', '--seeds=3'], "unknown argument '--seeds=3'."),
    (['{}', '--id=x'], "unknown argument '--id=x' (did you mean --ids?)."),
    (['{}', '--w=x'], "unknown argument '--w=x' (did you mean --workdir?)."),
    (['--label=late'], 'required: file'),
    (['{}', 'b.csv', '--label=late'], "type --ids=<column>: by which ids"),
    (['{}', 'b.csv', '--ids=x', '--named=a;*'], "leave out '--named=a;*'"),
    (['{}', 'b.csv', '--ids=x'], 'b.csv is not there'),
    (['{}', 'b;c.csv', '--ids=x'], "'b;c.csv' has one: rename it"),
    (['{}', 'b.npz', '--ids=x'], "vfljax.data.load('npz', 'b.npz')"),
    (['{}', 'b.csv', '--ids=x', '--config.data.split=even'],
     'config.data.split is set by'),
    (['{}', '--ids=x'], '--ids joins several files; got'),
    (['images.npz'], "vfljax.recommend(vfljax.data.load('npz', 'images.npz'))"),
    (['.', '--label=late'], "numpy, for a program: vfljax.recommend(vfljax."),
    # Each of these won in silence.
    (['{}', '--label=late', '--config.data.path=other.csv'],
     'Leave out --config.data.path=other.csv, or name that file first.'),
    (['{}', '--label=late', '--config.data.name=parquet'],
     'Leave out --config.data.name=parquet: files that end in .parquet'),
    (['{}', '--label=late', '--config.data.label=sex'],
     'is set by --label=late already.\nLeave out --config.data.label=sex.'),
    (['{}', '--label=late', '--named=age;*', '-config.data.parties=3'],
     "is set by '--named=age;*' already.\nLeave out -config.data.parties=3."),
    (['{}', '--label=late', '--named=age;*', '--config.data.named=sex;*'],
     "Leave out '--config.data.named=sex;*'."),
    (['{}', '--label=late', '--named=age;*', '--config.data.split=even'],
     'Leave out --config.data.split=even.'),
])
def test_what_it_refuses(arguments, message, tmp_path, capsys):
  file = people(tmp_path)
  if 'label' in message:  # Else its decimals are what is asked about.
    whole = (tmp_path / 'my.csv').read_text().replace(',', '.')
    (tmp_path / 'my.csv').write_text(whole)
  given = [a.format(file) for a in arguments]
  code = main(['vfljax', 'recommend', *given,
               f'--workdir={tmp_path / "out"}'])
  error = capsys.readouterr().err
  assert code == 2 and message in error and len(error.splitlines()) <= 2
  assert not (tmp_path / 'out').exists()
