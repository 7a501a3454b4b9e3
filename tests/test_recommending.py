"""Advice from Python: the command's numbers, files and messages."""
import contextlib
import dataclasses
import math
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import vfljax
from tests.fake_results import row
from tests.workdirs import everything
from vfljax import data
from vfljax.commands import recommend as command
from vfljax.report import reading
from vfljax.runner import run as running
from vfljax.runner.compiled import kept
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import choosing
from vfljax.runner.machine import device
from vfljax.runner.main import main
from vfljax.runner.workdir import about, store

FLAGS = [
    '--config.defenses=dp_laplace(0.01,0.1,1)', '--config.seeds=2',
    '--config.attacks=norm_scoring,direct_label', '--config.alone=False',
    '--config.model.algorithm=vlr', '--config.train.epochs=2',
    '--config.train.optimizer=sgd',
]
FIELDS = {
    'defenses': 'dp_laplace(0.01,0.1,1)', 'seeds': 2, 'alone': False,
    'attacks': ['norm_scoring', 'direct_label'], 'model.algorithm': 'vlr',
    'train.epochs': np.int64(2), 'train.optimizer': 'sgd',
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def people():
  rng = np.random.default_rng(0)
  y = rng.integers(2, size=120)
  x = y[:, None] + rng.normal(size=(120, 4))
  frame = pd.DataFrame(x.round(3), columns=['age', 'sex', 'pay', 'debt'])
  return frame.assign(late=y)


def advised(*samples, **how):
  return vfljax.recommend(
      *samples, **(dict(config=FIELDS, cache='', workdir='out') | how)
  )


@pytest.fixture
def trained(monkeypatch):
  """Trains nothing: with the strength less leaks, and more is lost."""
  found = []

  def play(config, table, place, before=None, tensorboard=False):
    del before
    found.append((config, table, place, tensorboard))
    cells = [(e.name, s) for e in choosing.entries(config)
             for s in e.strengths or (None,)]
    work = store.open_workdir(
        place, dataclasses.asdict(config), [f'{n}/{s}' for n, s in cells]
    )
    for name, s in cells:
      utility, leak = (0.9, 0.9) if s is None else (
          0.9 - 0.1 * s**0.5, 0.5 + 0.003 * s**-0.5
      )
      unit = f'{name}/{s}'
      if not work.done(unit):
        work.save(unit, [
            row(name, s, who, seed, metric, 'test', value)
            for seed in range(config.seeds)
            for who, metric, value in (
                (None, 'auc', utility),
                ('norm_scoring', 'leak_auc', leak + 1e-3 * seed),
            )
        ], dict(seeds=config.seeds, classes=2))
    return work

  monkeypatch.setattr(running, 'run', play)
  return found


@pytest.mark.slow
def test_it_is_the_command(tmp_path, capsys):
  """Either finds the same bytes, and continues what the other has begun."""
  people().to_csv('my.csv', index=False)
  advice = advised('my.csv', 'late', named='age,sex;*', budget=3)
  said = capsys.readouterr().out
  assert 'Around the budget:' in said and '2 seeds of none' in said
  line = ['vfljax', 'recommend', 'my.csv', '--label=late', '--budget=3',
          '--named=age,sex;*', '--cache=', *FLAGS]
  before = everything(tmp_path / 'out')
  assert main([*line, '--workdir=out']) == 0
  said = capsys.readouterr().out
  after = everything(tmp_path / 'out')
  changed = {p.name for p in before if before[p] != after[p]}
  # They say who called last.
  assert changed <= {'about.json', '.report.json', 'report.html', 'summary.md'}
  text = said.partition('What was measured')[2].strip().splitlines()
  ours = advice.text.partition('What was measured')[2].strip().splitlines()
  assert len(text) == len(ours) and text[-1].endswith('/report.html')
  assert main([*line, '--workdir=theirs']) == 0
  for part in 'coarse', 'finer', 'report':
    for name in 'config.json', 'results.jsonl':
      assert (tmp_path / 'theirs' / part / name).read_bytes() == (
          tmp_path / 'out' / part / name
      ).read_bytes()
  capsys.readouterr()
  again = advised('my.csv', 'late', named='age,sex;*', workdir='theirs',
                  budget=3)
  assert again.rows == advice.rows and again.chosen == advice.chosen
  assert 'epoch' not in capsys.readouterr().out.replace('epochs', '')


def test_what_comes_back(tmp_path, trained, capsys):
  frame = people()
  advice = advised(frame, 'late', budget=2)
  assert advice.path == tmp_path / 'out/report'
  assert repr(advice) == advice.text and str(advice.report) in advice.text
  assert 'Within 2 points of loss' in advice.text and '--' not in advice.text
  assert "config={'defenses': ...}" in advice.text
  found = advice.measured()
  first = found.iloc[0]
  assert (*first[['defense', 'strength', 'utility_loss', 'worst_leakage']],
          first.attack) == advice.chosen
  assert first.utility_loss_half == 0 < first.worst_leakage_half
  assert [*found.remark].count('within') == [*found.remark].index(
      'costs too much'
  )
  assert math.isclose(first.utility_loss, 10 * 0.032**0.5, rel_tol=1e-4)
  assert str(advice.chosen) == 'dp_laplace(0.032)'
  assert advice.chosen.attack == 'norm_scoring'
  assert len(advice.to_frame()) == len(advice.rows) > 0
  assert 'height="300"' in advice.show(300)._repr_html_()
  said = about.read(advice.path)
  assert said['command'] == 'vfljax.recommend(...) in Python'
  config, table, *_ = trained[0]
  assert config.data.name == 'own' and config.train.epochs == 2
  assert config.train.batch_size == 30  # Of what was not typed.
  assert set(frame.columns) - {'late'} == set(table.names)
  assert '120 rows of own' in capsys.readouterr().out


def test_what_came_back_has_its_columns(trained, tmp_path):
  """Also where all has diverged: `measured().defense` was no attribute."""
  advice = advised(people(), 'late', workdir=tmp_path / 'out')
  assert trained and [*advice.measured()] == [*advice.trades[0]]
  assert [*advice._replace(trades=[]).measured()] == [*advice.measured()]


def test_a_strength_keeps_its_digits():
  chosen = vfljax.recommending.Chosen('iso', 0.12345, 1.0, 2.0, 'norm_scoring')
  assert str(chosen) == 'iso(0.12345)'
  assert str(chosen._replace(strength=None)) == 'iso'


@pytest.mark.parametrize('numbers', [[8, 4], (8,), []])
def test_a_list_of_numbers_is_one(numbers, trained):
  advised(people(), 'late', config=FIELDS | {'model.bottom': numbers})
  assert trained[0][0].model.bottom == tuple(numbers)


def test_where_programs_are_kept_is_as_asked(trained, monkeypatch):
  del trained
  asked = []

  def within(cache):
    asked.append(cache)
    return contextlib.nullcontext()

  monkeypatch.setattr(kept, 'within', within)
  advised(people(), 'late')
  monkeypatch.setattr(device, 'set_up', lambda *_: None)  # Nothing is written.
  advised(people(), 'late', cache=None)
  assert asked[0] == '' and asked[1].endswith('vfljax')


def test_jax_keeps_the_programs_own_where_it_did_before(trained, tmp_path):
  del trained
  before = jax.config.jax_compilation_cache_dir
  advised(people(), 'late', cache=str(tmp_path / 'programs'))
  assert (tmp_path / 'programs').exists()  # So JAX was set up.
  assert jax.config.jax_compilation_cache_dir == before


def test_a_warning_names_a_key(trained, capsys):
  del trained
  advised(people().sort_values('late'), 'late',
          config=FIELDS | {'data.limit': 70})
  said = capsys.readouterr()
  assert "type a larger config['data.limit']" in said.err
  assert '--config' not in said.err + said.out


def test_the_defaults_are_the_commands(trained, tmp_path):
  fields = {k: v for k, v in FIELDS.items() if k != 'seeds'}
  people().to_csv('my.csv', index=False)
  for samples, place in (('my.csv', 'my'), (people(), 'own')):
    text = vfljax.recommend(samples, 'late', cache='', config=fields).text
    assert (tmp_path / 'out/recommend' / place / 'report').is_dir()
    assert f'Within {command.BUDGET:g} points of loss' in text
  assert trained[0][0].seeds == 5


def test_a_frame_and_a_table_may_have_a_name(trained):
  fields = FIELDS | {'data.name': 'people'}
  advised(people(), 'late', config=fields, tensorboard=True)
  config, _, place, events = trained[0]
  assert config.data.name == 'people' and events
  assert place.endswith('/out/coarse')
  trained.clear()
  advised(data.load('wine', label=''), config=fields, workdir='wine')
  assert not trained[0][-1]  # No event files, unless one asks for them.
  assert trained[0][0].data.name == 'people'


@pytest.mark.parametrize('goal, chosen', [
    (dict(max_leak=0.1), None), (dict(budget=0.0), 'none'),
    (dict(max_leak=100), 'none'),
])
def test_nothing_or_no_defense_may_be_advised(goal, chosen, trained):
  del trained
  advice = advised(people(), 'late', **goal)
  assert advice.chosen is None if chosen is None else (
      str(advice.chosen) == chosen
  )


@pytest.mark.parametrize('how, message', [
    (dict(data='my.csv', label=''), r'Type label=<name>; the columns'),
    (dict(data='no.csv'), r"no.csv is not there.*: data='my.csv', label='targ"),
    (dict(label='lat'), r"did you mean 'late'\? label='late'$"),
    (dict(label=3), '^label must be text; got 3'),
    (dict(seeds=3), r"no argument 'seeds'.*\? Type config={'seeds': 3}"),
    (dict(budgt=3), r"no argument 'budgt'. Did you mean budget\?$"),
    (dict(device=1), r"argument 'device'. Did you mean devices\?$"),
    (dict(config={'sedes': 3}), "no field 'sedes'. Did you mean seeds"),
    (dict(config={'train': {'epochs': 3}}), "as {'seeds': 10, 'train.epochs"),
    (dict(config=[3]), '^config must be a dictionary of fields, .* got a list'),
    (dict(config={'train.epochs': 'x'}), r"^config\['train.epochs'\] takes a "),
    (dict(config={'data.test': 0.999}), 'than config={.data.test.: 0.999}'),
    (dict(config={'train.epochs': 0}), '^train.epochs must be 1 or more'),
    (dict(config={'train.batch_size': 999}), "type config={'train.batch_size':"
     ' 84} for one round'),
    (dict(config={'data.label': 'sex'}),
     "set by label='late' already.\nLeave out config={'data.label': 'sex'}"),
    (dict(data='my.csv', config={'data.path': 'a.csv'}),
     "Leave out config={'data.path': 'a.csv'}, or name that file first"),
    (dict(config={'data.path': 'a.csv'}), "data.path is 'a.csv', and the sam"),
    (dict(named='age;*', config={'data.parties': 3}),
     "by named='age;\\*' already.\nLeave out config={'data.parties': 3}"),
    (dict(config={'data.options': 'decimal=comma'}), 'frame has no option'),
    (dict(data=[[1]]), 'got a list'),
    (dict(budget=-1), r'^budget is in percentage .*\nType budget=2'),
    (dict(max_leak='2'), "^max_leak must be a number; got '2'"),
    (dict(devices=-1), '^devices must be 0'),
    (dict(devices=1.5), '^devices must be an integer'),
    (dict(workdir='~nobody-here/x'), "^workdir='~nobody-here/x': nobody"),
    (dict(workdir=3), '^workdir must be a folder'),
])
def test_errors_name_arguments(how, message, tmp_path):
  people().to_csv('my.csv', index=False)
  with pytest.raises(ValueError, match=message) as error:
    advised(**dict(data=people(), label='late') | how)
  assert isinstance(error.value, UserError)
  assert len(str(error.value).splitlines()) <= 2
  assert '--' not in str(error.value)
  assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('raised', [running.Interrupted, KeyboardInterrupt])
def test_an_interrupt_says_what_continues(raised, monkeypatch):
  def stopped(*_, **__):
    raise raised

  monkeypatch.setattr(running, 'run', stopped)
  with pytest.raises(vfljax.calling.Stopped, match='same call continues out'):
    advised(people(), 'late')


def test_a_users_modules_are_not_ours(trained):
  """The command's own config has modules beside it, with names like any's."""
  import sys
  del trained
  before = [*sys.path]
  advised(people(), 'late')
  assert sys.path == before
  assert str(Path(command.__file__).parent) not in before  # By another test.


def test_the_commands_folder_is_continued_from_a_file(trained, capsys):
  people().to_csv('my.csv', index=False)
  line = ['vfljax', 'recommend', 'my.csv', '--label=late', '--cache=', *FLAGS]
  monkey = running.run
  running.run = lambda *a, stop=None, **k: monkey(*a, **k)
  try:
    assert main([*line, '--workdir=out']) == 0, capsys.readouterr().err
  finally:
    running.run = monkey
  said = reading.read('out/report')[0].cells
  assert advised('my.csv', 'late').measured().shape[0] == len(said)
  begun, ours = trained[: len(trained) // 2], trained[len(trained) // 2 :]
  assert [config for config, *_ in begun] == [config for config, *_ in ours]


@pytest.mark.parametrize('change', [
    dict(late=[np.nan] * 120), dict(late=range(120)),
    dict(age=['x'] + ['1'] * 119), dict(late=np.linspace(0, 1, 120)),
    dict(late=['a', 'A', 'b'] * 40),
])
def test_a_frame_is_no_file(change):
  with pytest.raises(ValueError) as error:
    advised(people().assign(**change), 'late')
  assert 'file' not in str(error.value) and 'data' in str(error.value)
