"""A run from Python: the command line's numbers, files and messages."""
import dataclasses
import errno
import json
import math
import os
from pathlib import Path
import sys

import jax
import numpy as np
import pytest

import vfljax
from experiments import quickstart, verify
from tests.command_line import TINY, main, read
from tests.workdirs import everything
from vfljax import calling, data, defenses, running
from vfljax.defense import Method
from vfljax.runner import run
from vfljax.runner.cli import loading, wording
from vfljax.runner.config import (
    AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig, TrainConfig,
    as_code,
)
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import about, beside, recording

METHODS = ['--config.defenses=none,iso(5)', '--config.attacks=norm_scoring']
SMALL = Config(
    experiment='mine', seeds=1, alone=False, defenses='none,iso(5)',
    attacks='norm_scoring', train=TrainConfig(epochs=2, optimizer='sgd'),
    model=ModelConfig(bottom=(4,), top=(4,)),
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def ran(config=SMALL, *samples, **how):
  return vfljax.run(config, *samples, **(dict(cache='') | how))


def tiny(seeds=2):
  """The configuration of the command line's tests."""
  config = quickstart.get_config()
  config.seeds, config.defenses = seeds, 'none,iso(5)'
  config.attacks = 'norm_scoring'
  config.model.bottom = config.model.top = (4,)
  config.train.epochs, config.train.optimizer = 2, 'sgd'
  return config


@pytest.mark.slow
def test_it_is_the_command_lines_run(capsys, tmp_path, monkeypatch):
  """Either continues what the other has begun, and finds the same bytes."""
  result = ran(tiny(), workdir='ours')
  said = capsys.readouterr().out
  assert '4 federations of 2 parties' in said and 'done: ' in said
  monkeypatch.chdir(sys.modules['tests.command_line'].ROOT)
  assert TINY[1] == '--config.seeds=2'
  code, lines = main(capsys, *METHODS, workdir=tmp_path / 'theirs')
  assert code == 0, lines
  assert read(tmp_path / 'theirs') == read(tmp_path / 'ours')
  found = [json.loads(x) for x in read(tmp_path / 'ours').splitlines()]
  assert result.rows == found and result.path == tmp_path / 'ours'
  assert list(result.to_frame().columns) == list(found[0])
  assert result.report == tmp_path / 'ours/report.html'
  before = everything(tmp_path / 'ours')
  code, lines = main(capsys, *METHODS, workdir=tmp_path / 'ours')
  assert code == 0, lines
  after = everything(tmp_path / 'ours')
  assert before == {p: after[p] for p in before}
  code, lines = main(
      capsys, *METHODS, '--config.seeds=3', workdir=tmp_path / 'ours'
  )
  assert code == 0, lines
  again = ran(tiny(3), workdir=tmp_path / 'theirs')
  assert read(tmp_path / 'theirs') == read(tmp_path / 'ours')
  assert {row['seed'] for row in again.rows} == {0, 1, 2}


def test_what_comes_back_and_what_stays(tmp_path, capsys):
  frame = data.load('wine')
  frame = pd_frame(frame)
  config = dataclasses.replace(
      SMALL, defenses='none', attacks='', data=DataConfig(label='wine')
  )
  before = dataclasses.asdict(config)
  result = ran(config, frame, budget=2)
  assert dataclasses.asdict(config) == before
  assert result.path == tmp_path / 'out/mine'
  assert {row['dataset'] for row in result.rows} == {'own'}
  assert len({row['digest'] for row in result.rows}) == 1
  assert 'Party 1: ' in capsys.readouterr().out
  assert repr(result) == result.text and str(result.report) in result.text
  assert about.read(result.path)['command'] == 'vfljax.run(...) in Python'
  page = result.show(300)
  assert 'height="300"' in page._repr_html_() and len(repr(page)) < 80
  assert '<iframe srcdoc="&lt;!doctype' in page._repr_html_()
  assert 'base href=&quot;about:srcdoc' in page._repr_html_()
  named = dataclasses.replace(config, data=DataConfig('cellar', label='wine'))
  with pytest.raises(UserError) as error:  # The same folder.
    ran(named, frame)
  assert 'data.name is "own" there and "cellar" here' in str(error.value)
  assert 'another workdir.' in str(error.value)
  assert '--' not in str(error.value)


CELL = '''
from vfljax.defense import Defense, each
FACTOR = 2.0

def own(strength):
  return Defense(gradient=each(lambda key, d, labels: d * FACTOR))
'''


@pytest.mark.slow
def test_a_cell_that_is_edited_is_not_given_the_old_numbers(monkeypatch):
  config = dataclasses.replace(SMALL, defenses='none,own')

  def typed(text):
    scope = {'__name__': '__main__'}
    exec(compile(text, '/tmp/ipykernel_1/2.py', 'exec'), scope)
    monkeypatch.setitem(
        defenses.REGISTRY, 'own', Method(scope['own'], (1.0,))
    )
    return ran(config).rows

  first = typed(CELL)
  assert typed(CELL) == first
  with pytest.raises(UserError, match='own in a cell has changed since'):
    typed(CELL.replace('FACTOR = 2.0', 'FACTOR = 3.0'))
  said = json.loads(Path('out/mine/config.json').read_text())
  assert list(said['sources']) == ['own in a cell']


def pd_frame(table):
  import pandas as pd
  found = pd.DataFrame(table.features, columns=list(table.names))
  return found.assign(wine=np.where(table.labels > 0, 'red', 'white'))


@pytest.mark.parametrize('change, how, message', [
    (dict(defenses='marvel'), {}, 'Did you mean marvell'),
    (dict(train=TrainConfig(epochs=0)), {}, 'train.epochs must be 1 or more'),
    (dict(train=TrainConfig(epochs=0), data=DataConfig('csv', 'gone.csv')), {},
     'train.epochs must be 1 or more'),  # Before anything is read.
    (dict(train=TrainConfig(batch_size=999)), {},
     'type config.train.batch_size=398'),
    (dict(data=DataConfig(name='iris5')), {}, "Unknown data set 'iris5'"),
    (dict(data=DataConfig(name='csv')), {}, "config.data.path='my.csv'"),
    ({}, dict(budget=-1), r'^budget is in percentage .*\nType budget=2'),
    ({}, dict(devices=-1), '^devices must be 0'),
    ({}, dict(data='out/mine'), "data is 'out/mine'. A folder of results "),
    ({}, dict(data=[[1.0]]), 'got a list'),
    ({}, dict(workdir='~nobody-here/x'), "^workdir='~nobody-here/x': nobody"),
    ({}, dict(workdir='taken'), 'another workdir'),
    ({}, dict(workdir=3), '^workdir must be a folder, .* got 3'),
    ({}, dict(cache=None), '^cache must be a folder, .* got None'),
    ({}, dict(budget='2'), "^budget must be a number; got '2'"),
    ({}, dict(devices=None), '^devices must be an integer; got None'),
])
def test_errors_say_what_to_type_in_python(change, how, message, tmp_path):
  (tmp_path / 'taken').mkdir()
  (tmp_path / 'taken/results.jsonl').write_text('')
  with pytest.raises(UserError, match=message) as error:
    ran(dataclasses.replace(SMALL, **change), **how)
  assert len(str(error.value).splitlines()) <= 2
  assert '--config' not in str(error.value)
  assert not (tmp_path / 'out').exists()
  assert error.value._render_traceback_() == [f'error: {error.value}']


@pytest.mark.parametrize('flags, python', [
    ("type --config.data.options='a=1;b=(1, 2)'.",
     "type config.data.options='a=1;b=(1, 2)'."),
    ('--config.data.options=\'drop=it\'"\'"\'s\', or',
     'config.data.options="drop=it\'s", or'),
    ('(--config.attacks=a,b)', "(config.attacks='a,b')"),
    ('Or --config.defenses=none,iso(5).', "Or config.defenses='none,iso(5)'."),
    ('--config.model.bottom=(16,8), or', 'config.model.bottom=(16,8), or'),
    ('--config.data.path=e --config.data.label=<name>.',
     "config.data.path='e', config.data.label=<name>."),
    ('--config.train.learning_rate=1e-3; --config.attacks=...',
     'config.train.learning_rate=1e-3; config.attacks=...'),
    ('set --config.attack.completion.head=64, not with vlr.',
     'set config.attack.own=dict(completion=dict(head=64)), not with vlr.'),
    ('raise --config.attack.completion.epochs.',
     "raise config.attack.own['completion']['epochs']."),
    ('--config.attack.replay_rounds.', 'config.attack.replay_rounds.'),
    ('no attack, see --list attacks.', 'no attack, see vfljax --list attacks.'),
    ('See --help, or vfljax --help.', 'See vfljax --help, or vfljax --help.'),
])
def test_flags_become_what_python_reads(flags, python):
  assert wording.in_python(flags) == python


def test_an_experiment_named_as_the_folder_above_stays_below_out():
  for name in ('..', '.', '', '...'):
    config = dataclasses.replace(SMALL, experiment=name)
    assert running._place(config, '') == 'out/custom'


def test_what_is_no_configuration():
  with pytest.raises(UserError, match='got a dict: type Config'):
    vfljax.run({'seeds': 3})  # pyright: ignore


def test_warnings_and_what_is_announced_are_in_python_too(capsys):
  frame = pd_frame(data.load('wine')).assign(id=range(178))
  config = dataclasses.replace(
      SMALL, defenses='none', attacks='', data=DataConfig(label='wine'),
      train=TrainConfig(epochs=3000, batch_size=1),
  )
  with pytest.raises(UserError):  # Nothing is trained.
    ran(dataclasses.replace(config, auxiliary=AuxiliaryConfig(178)), frame)
  out, err = capsys.readouterr()
  assert "config.data.options='drop=id'" in err
  assert 'type config.train.batch_size=' in out and '--' not in out + err


@pytest.mark.parametrize('cache, folder', [('kept', 'kept/data'), ('', '')])
def test_samples_are_kept_where_the_command_line_keeps_them(
    cache, folder, monkeypatch
):
  asked = []
  monkeypatch.setattr(loading, 'load_data', lambda *how: asked.append(how[1]))
  running._samples(SMALL, None, cache)
  assert asked == [folder]


@pytest.mark.parametrize('raised', [run.Interrupted, KeyboardInterrupt])
def test_an_interrupt_stops_a_loop_of_runs(raised, monkeypatch):
  """Which an Exception would not, if the loop goes on after errors."""
  def stopped(*_, **__):
    raise raised

  monkeypatch.setattr(run, 'run', stopped)
  with pytest.raises(KeyboardInterrupt) as error:
    ran(workdir='out/1')
  assert isinstance(error.value, running.Stopped)
  assert str(error.value) == 'Stopped. The same call continues out/1.'
  assert error.value._render_traceback_() == [str(error.value)]


def test_without_the_extra(monkeypatch):
  monkeypatch.setitem(sys.modules, 'absl', None)
  for name in [n for n in sys.modules if n.startswith('vfljax.runner.cli')]:
    monkeypatch.delitem(sys.modules, name)
  with pytest.raises(ValueError, match=r"pip install 'vfljax\[run\]'"):
    ran()


def test_fewer_devices_than_cores_are_told(monkeypatch, capsys):
  from vfljax.runner.machine import device
  monkeypatch.setattr(device, 'cores', lambda: 8)
  calling.tell_of_cores(0)
  assert 'JAX had started with 2 of 8 cores' in capsys.readouterr().out
  calling.tell_of_cores(2)
  monkeypatch.setattr(device, 'cores', lambda: 2)
  calling.tell_of_cores(0)
  assert not capsys.readouterr().out


@pytest.mark.slow
def test_a_record_is_made_again_by_its_command(capsys, tmp_path):
  """By `verify`, too, which looks for the config file beside the record."""
  own = data.load('breast_cancer')
  frame = pd_frame(own).rename(columns={'wine': 'ill'})
  (tmp_path / 'home').mkdir()
  frame.to_csv(tmp_path / 'home/my.csv', index=False)
  config = dataclasses.replace(SMALL, seeds=2, data=DataConfig(
      'csv', str(tmp_path / 'home/my.csv'), 'ill'
  ))
  (tmp_path / 'kept').mkdir()
  ran(config, record=tmp_path / 'kept/r.json')
  said = capsys.readouterr().out
  assert f'Record: {tmp_path}/kept/r.json, and its config file ' in said
  record = recording.read('kept/r.json')
  assert record['command'] == (
      'python launch.py --config=r.py --config.seeds=2'
  )
  assert record['seeds'] == [0, 1] and record['config']['seeds'] == 2
  text = (tmp_path / 'kept/r.py').read_text()
  assert str(tmp_path) not in text and 'seeds' not in text
  found = verify.verify('', str(tmp_path / 'kept/r.json'), 2, 'home')
  assert 'The config is not' not in capsys.readouterr().out
  assert len(found) > 10 and all(c.same for c in found)
  # More seeds go into the same record, another configuration does not.
  ran(dataclasses.replace(config, seeds=3), record='kept/r.json')
  assert recording.read('kept/r.json')['seeds'] == [0, 1, 2]
  changed = dataclasses.replace(config, seeds=3, train=TrainConfig(epochs=3))
  with pytest.raises(UserError, match='r.py beside it is not the config file'):
    ran(changed, record='kept/r.json', workdir='other')
  (tmp_path / 'kept/r.py').unlink()
  with pytest.raises(UserError, match='config file r.py is gone'):
    ran(changed, record='kept/r.json', workdir='other')
  assert not (tmp_path / 'other').exists()


@pytest.mark.parametrize('how, message', [
    (dict(record='gone/r.json'), "^record='gone/r.json': there is no folder"),
    (dict(record='r.py'), "Type record='r.json'"),
    (dict(record='mine.json'), "^record='mine.json': this file exists and is "),
    (dict(record='theirs.json'), 'theirs.py beside it is not the config file'),
    (dict(record='a b.py'), "^record='a b.py': .* Type record='a b.json'$"),
    (dict(record='.'), "^record='.': this file exists and is no record"),
    (dict(record='my own'), "^record='my own': this file exists and is no "),
    (dict(record='odd.json'), 'odd.py beside it is not the config file'),
    (dict(record=3), '^record must be a file, .* got 3. Leave it out for none'),
])
def test_a_record_is_refused_before_anything_runs(how, message, tmp_path):
  (tmp_path / 'mine.json').write_text('{}')
  (tmp_path / 'my own').mkdir()
  (tmp_path / 'theirs.py').write_text('x = 3')
  (tmp_path / 'odd.py').write_bytes(b'\xff')
  with pytest.raises(UserError, match=message) as error:
    ran(**how)
  assert len(str(error.value).splitlines()) <= 2
  assert not (tmp_path / 'out').exists()


def test_jax_keeps_the_programs_own_where_it_did_before(tmp_path):
  """Also after a run that is refused."""
  before = jax.config.jax_compilation_cache_dir
  nothing = dataclasses.replace(SMALL, data=DataConfig('nothing'))
  with pytest.raises(UserError, match='nothing'):
    ran(nothing, cache=str(tmp_path / 'programs'))
  assert (tmp_path / 'programs').exists()  # So JAX was set up.
  assert jax.config.jax_compilation_cache_dir == before


def test_what_no_config_file_can_say_has_no_record(monkeypatch, tmp_path):
  again = 'A record says how to make it again, and '
  frame = pd_frame(data.load('wine'))
  config = dataclasses.replace(
      SMALL, defenses='none', attacks='', data=DataConfig(label='wine')
  )
  with pytest.raises(UserError, match=f'{again}samples that a program has'):
    ran(config, frame, record='r.json')
  monkeypatch.setitem(
      defenses.REGISTRY, 'own', Method(lambda s: defenses.none(), (1.0,))
  )
  mine = dataclasses.replace(SMALL, defenses='none,own')
  with pytest.raises(UserError, match=f'{again}.* is code of this program'):
    ran(mine, record='r.json')
  source = data.REGISTRY['breast_cancer']
  monkeypatch.setitem(data.REGISTRY, 'mine', source._replace(
      load=lambda path='': source.load()
  ))
  loaded = dataclasses.replace(SMALL, data=DataConfig('mine'))
  with pytest.raises(UserError, match=f'{again}mine is code of this program'):
    ran(loaded, record='r.json')
  monkeypatch.setattr(recording, 'settings', lambda: {'jax_x': 'True'})
  with pytest.raises(UserError, match=f'{again}this program has set jax_x=Tru'):
    ran(record='r.json')
  assert not {*tmp_path.iterdir()} - {tmp_path / 'out'}
  assert not (tmp_path / 'out').exists()


def test_what_a_config_file_cannot_have_is_found():
  odd = Entry('iso', (5.0,), options={'a': ({'b': float('inf')},)})
  config = dataclasses.replace(SMALL, listed=(Entry('none'), odd))
  name, value = as_code.unwritable(config) or ('', 0)
  assert name == 'listed.1.options.a.0.b' and value == float('inf')
  assert as_code.unwritable(SMALL) is None


@pytest.mark.parametrize('value', [
    math.nan, -math.inf, np.float64(5), np.int64(5), calling.Page('', 3),
    {1: {2}}, len,
])
def test_what_is_no_code_is_found(value):
  """What is written would not run, or be something else."""
  entry = Entry('iso', (5.0,), options={'a': value})
  name, found = as_code.unwritable(entry) or ('', None)
  assert name == ('options.a.1' if value == {1: {2}} else 'options.a')
  assert found is value or found == {2}


def test_a_record_is_refused_a_configuration_that_is_no_code(tmp_path):
  config = dataclasses.replace(
      SMALL, defenses='', listed=(Entry('none'), Entry('iso', (np.float64(5),)))
  )
  with pytest.raises(UserError, match=(
      r'config.listed.1.strengths.0 is a float64, which cannot be written'
  )):
    ran(config, record='r.json')
  assert not {*tmp_path.iterdir()}


def test_a_records_command_has_what_repeats_the_run():
  """Where the record is kept, and the samples lie, is not in it."""
  config = dataclasses.replace(
      SMALL, seeds=3, first_seed=7, data=DataConfig('csv', 'home/my.csv', 'ill')
  )
  words = ['vfljax', '--config=r.py', '--config.seeds=3']
  assert beside.command('kept/r.json', config, 0) == words
  assert beside.command('kept/r.json', config, 2) == [*words, '--devices=2']
  text = beside._text('kept/r.json', config)
  assert "'my.csv'" in text and 'first_seed=7' in text
  assert not [word for word in ('home', 'kept', ' seeds') if word in text]


def test_a_record_whose_config_file_is_gone_stays(tmp_path, monkeypatch):
  monkeypatch.setattr(beside.overwriting, 'check', lambda *given: None)
  (tmp_path / 'r.json').write_text('{}')
  with pytest.raises(UserError, match='its config file r.py is gone'):
    ran(record='r.json')


def test_numbers_of_a_small_table_are_lowered_and_told(monkeypatch, capsys):
  begun = []

  def play(config, *_):
    begun.append(config)
    raise KeyboardInterrupt

  monkeypatch.setattr(run, 'run', play)
  frame = pd_frame(data.load('wine'))[::3]
  config = dataclasses.replace(
      SMALL, defenses='none', attacks='', data=DataConfig(label='wine')
  )
  with pytest.raises(calling.Stopped):
    ran(config, frame)
  assert begun[0].train.batch_size == 15
  said = capsys.readouterr().out
  assert 'batch_size is 15 here, not 64: there are 42 training' in said


def test_what_is_anothers_is_a_value_error():
  with pytest.raises(ValueError, match='Permission denied: /mine'):
    with calling.own_words():
      raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), '/mine')
