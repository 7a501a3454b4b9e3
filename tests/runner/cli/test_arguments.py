"""Where a config file may lie, and where its results go by default."""
import ntpath
import os
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache
import pytest

from vfljax.runner.cli import arguments
from vfljax.runner.config import DataConfig
from vfljax.runner.errors import UserError
from vfljax.runner.machine import device

CONFIG = (
    'from {neighbour} import SEEDS\n'
    'from vfljax.runner.config import Config\n'
    'def get_config():\n'
    '  return Config(seeds=SEEDS)\n'
)


@pytest.mark.parametrize('typed, meant', [
    ('--list', '--list=all'), ('--list data', '--list=data'),
    ('--list --seeds=2', '--list=all --seeds=2'), ('--list=data', ''),
    ('--workdir=x --list data y', '--workdir=x --list=data y'), ('', ''),
])
def test_what_is_listed_may_follow_a_blank(typed, meant):
  found = arguments._spell_out_list(typed.split())
  assert found == (meant or typed).split()


@pytest.fixture
def write(tmp_path, monkeypatch):
  """A function that writes a config and its neighbour; we are in `here`."""
  monkeypatch.syspath_prepend('')  # It takes back what is added to sys.path.
  (tmp_path / 'here').mkdir()
  monkeypatch.chdir(tmp_path / 'here')

  def make(folder, neighbour):
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / f'{neighbour}.py').write_text('SEEDS = 3\n')
    (Path(folder) / 'my.py').write_text(CONFIG.format(neighbour=neighbour))
    return arguments.parse(['vfljax', f'--config={folder}/my.py'])

  return make


@pytest.mark.parametrize('folder, neighbour, workdir', [
    ('.', 'beside_us', 'out/my'),
    ('deep/er/yet', 'below_us', 'out/yet/my'),
    ('experiments', 'as_in_a_clone', 'out/my'),
    ('experiments/paper', 'of_a_paper', 'out/paper/my'),
    ('../there', 'elsewhere', 'out/there/my'),
])
def test_neighbours_and_the_default_workdir(write, folder, neighbour, workdir):
  found = write(folder, neighbour)
  assert found.config.seeds == 3
  assert found.workdir == str(Path(workdir))


def config_file(path, body):
  (path / 'my.py').write_text(
      'from vfljax.runner.config import *\nimport sys\n'
      f'def get_config():\n  {body}\n'
  )
  return ['vfljax', f'--config={path}/my.py']


@pytest.mark.parametrize('body, message', [
    ('sys.exit()', r'ends the program \(sys.exit\(None\)\)'),
    ('sys.exit(0)', r'ends the program \(sys.exit\(0\)\)'),
    ('raise KeyError("x")', "KeyError: 'x'"),
    ('raise GeneratorExit', 'GeneratorExit'),
    ('raise ZeroDivisionError("a\\n" * 90)', 'ZeroDivisionError: a'),
    ('return 3 +', 'my.py, line 4: invalid syntax'),
    ('return', 'must return an vfljax.runner.config.Config, not None'),
    ('return Config(seeds="3")', "seeds must be a whole number; got '3'"),
    ('return Config(model=ModelConfig(bottom=4))', 'must be a tuple; got 4'),
    ('return Config(data=None)', 'data must be a DataConfig; got None'),
    ('return Config(nope=3)', 'nope'),
])
def test_a_file_that_fails_is_told_in_two_lines(tmp_path, body, message):
  with pytest.raises(UserError, match=message) as refused:
    arguments.parse(config_file(tmp_path, body))
  assert len(str(refused.value).splitlines()) <= 2


def test_a_command_line_needs_something_to_run():
  with pytest.raises(UserError, match='Nothing to run: type --config=FILE'):
    arguments.parse(['vfljax', '--devices=2'])


@pytest.mark.parametrize('text, message', [
    ('import nothing_there', "No module named 'nothing_there'"),
    ('import vfljax.nothing_there', "No module named 'vfljax.nothing_there'"),
    ('x = open("nothing_there")', 'nothing_there'),
    ('def get_config(): return open("/nothing_there")', 'nothing_there'),
])
def test_a_file_that_cannot_be_loaded_says_why(tmp_path, text, message):
  (tmp_path / 'my.py').write_text(text)
  with pytest.raises(UserError, match=message) as refused:
    arguments.parse(['vfljax', f'--config={tmp_path}/my.py'])
  assert len(str(refused.value).splitlines()) <= 2


def test_a_file_may_print(tmp_path, capsys):
  body = 'print("hello"); return Config(seeds=3)'
  assert arguments.parse(config_file(tmp_path, body)).config.seeds == 3
  assert capsys.readouterr().out == 'hello\n'


@pytest.mark.parametrize('flags, message', [
    (['--config.model.bottom=abc'], r'bottom\[0\] must be a whole number'),
    (['--config.seeds=x'], "^--config.seeds takes a whole number; got 'x'.$"),
    ([f'--config.seeds={"x" * 9999}'], r'^.{9,999} \.\.\. x+'),
    (['--devices='], "^--devices takes a whole number; got ''.$"),
    (['--config.train.learning_rate=.1x'], "rate takes a number; got '.1x'.$"),
    (['--config.alone=yes?'], "alone takes true or false; got 'yes\\?'.$"),
    ([f'--config.seeds={"9" * 400}'], 'seeds must be a finite number'),
    ([f'--config.seeds={"9" * 5000}'], 'digits'),
    (['--config.data.parties=2147483648'], 'parties must be 256 or less'),
    (['--devices=100000'], '--devices must be 0 .one for each core. or 1 to '),
    (['--devices=-1'], 'devices'),
    (['--config.attack.noisy_sample.rate=2'], 'none of the attacks that run'),
    (['--config.attacks=norm_scoring', '--config.attack.completion.epochs=3'],
     r'that run \(norm_scoring\) has it'),
    (['--config.attacks=noisy_sample',
      '--config.attack.noisy_sample.std=1e300'], 'at most 1e'),
    (['--config.attacks=label_replacement',
      '--config.attack.label_replacement.amplify=1e300'], 'at most 1e'),
    (['--flagfile'], 'flagfile'),
    (['--confg.seeds=3'], "'confg.seeds'. Did you mean config.seeds?"),
    (['--epochs=3'], "'epochs'. Did you mean --config.train.epochs\\?$"),
    (['--name', 'csv'], 'mean --config.data.name or --config.model.name\\?$'),
    (['--work_dir=x'], 'Did you mean --workdir'),
    (['--lst=data'], "'lst'. Did you mean --list\\?$"),
    (['--epoch=3'], 'Did you mean --config.train.epochs\\?$'),
    (['--seed', '3'], 'Did you mean --config.seeds\\?$'),
    (['--zzz=3'], "'zzz'. See --help.$"),
    (['--cofig.sed=3'], "Unknown command line flag 'cofig.sed'.$"),
    (['--max_leak', '-0.5'], 'max_leak'),
    (['--record='], '^--record= names nothing. Leave it out'),
    (['--workdir='], 'Leave it out for the default, out/<config>.$'),
    ([f'--config={"x" * 5000}'], 'no config file'),
    (['--config=none.py:a', '--config.seeds=2'], 'no config file none.py'),
])
def test_odd_flags_are_refused(tmp_path, flags, message):
  given = config_file(tmp_path, 'return Config()')
  given = given[:1] if flags[0].startswith('--config=') else given
  with pytest.raises(UserError, match=message):
    arguments.parse([*given, *flags])


def test_options_of_baselines_are_of_the_attack_that_they_measure(tmp_path):
  given = config_file(tmp_path, 'return Config()') + [
      '--config.attacks=model_completion',
      '--config.attack.local_model.epochs=3',
  ]
  own = arguments.parse(given).config.attack.own
  assert own == {'completion': {'epochs': 3}}


def test_a_file_may_have_options_of_attacks_that_are_not_chosen(tmp_path):
  given = config_file(
      tmp_path, 'return Config(listed_attacks=("model_completion", "cafe"), '
      'attack=AttackConfig(own=dict(completion=dict(epochs=3))))'
  )
  assert arguments.parse([*given, '--config.attacks=norm_scoring'])


def test_too_many_devices_are_refused_before_they_are_made():
  with pytest.raises(UserError, match='64 for each core'):
    device.set_up(10**6, '')


@pytest.fixture
def environment(monkeypatch):
  """What is set is put back."""
  for variable in 'XLA_FLAGS', 'LIBTPU_INIT_ARGS', 'OPENBLAS_NUM_THREADS':
    monkeypatch.setenv(variable, '')


@pytest.mark.usefixtures('environment')
def test_devices_are_those_of_a_process_in_which_jax_has_started(monkeypatch):
  """As in a notebook, on a machine of any number of cores."""
  assert jax.local_device_count('cpu') == 2
  monkeypatch.setattr(device, 'cores', lambda: 8)
  device.set_up(0, '')
  assert not os.environ['XLA_FLAGS']  # Which XLA would not read any more.
  with pytest.raises(UserError, match='--devices=3 comes too late.* with 2. L'):
    device.set_up(3, '')
  assert jax.local_device_count('cpu') == 2


@pytest.mark.usefixtures('environment')
def test_the_next_run_of_a_process_has_its_own_cache(tmp_path, monkeypatch):
  """Also none: then programs are kept where they were before the first."""
  before, changed = jax.config.jax_compilation_cache_dir, []
  again = compilation_cache.reset_cache
  monkeypatch.setattr(
      compilation_cache, 'reset_cache', lambda: changed.append(again())
  )
  for name in '1', '', '2', '2', '3', '', '':
    cache = str(tmp_path / name) if name else ''
    device.set_up(2, cache)
    assert jax.config.jax_compilation_cache_dir == (cache or before)
  assert len(changed) == 5


@pytest.mark.usefixtures('environment')
def test_a_cache_that_cannot_be_is_told(capsys):
  before = jax.config.jax_compilation_cache_dir
  device.set_up(2, '~nobody-of-that-name/cache')
  assert 'not kept' in capsys.readouterr().err
  assert jax.config.jax_compilation_cache_dir == before


@pytest.mark.parametrize('given', [
    ['--config.seeds=3'], ['--config.seeds', '3'], ['-config.seeds=3'],
    ['--workdir=there', '--config.seeds=3', '--budget=2'],
])
def test_fields_of_no_experiment(given):
  with pytest.raises(UserError, match='config.seeds is a field of an experime'):
    arguments.parse(['vfljax', *given])


def test_a_config_of_the_clone_is_found_from_elsewhere(tmp_path, monkeypatch):
  """What `--list experiments` shows there is no file in this folder."""
  monkeypatch.chdir(tmp_path)
  own = Path(arguments.__file__).parents[3] / 'experiments/quickstart.py'
  with pytest.raises(UserError, match='has it') as error:
    arguments.parse(['vfljax', '--config=experiments/quickstart.py'])
  assert str(error.value).endswith(f': --config={own}') and own.exists()
  with pytest.raises(UserError, match='come with a clone of vfljax'):
    arguments.parse(['vfljax', '--config=experiments/quickest.py'])


def test_a_warning_keeps_the_options_that_are_typed(tmp_path, capsys):
  file = tmp_path / 'mine.csv'
  file.write_bytes('id,stra\xdfe,y\n1,a,0\n2,b,1\n'.encode('latin-1'))
  config = DataConfig('csv', str(file), 'y', options='drop=id')
  assert len(arguments.load_data(config).labels) == 2
  said = capsys.readouterr().err
  assert "--config.data.options='drop=id;encoding=cp1250'" in said


def test_a_drives_colon_is_no_variants(tmp_path, monkeypatch):
  """As of 'C:\\my.py:large' on Windows; recommend's own config lies there."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(os.path, 'splitdrive', ntpath.splitdrive)
  Path('C:my.py').write_text(
      'from vfljax.runner.config import Config\n'
      'def get_config(variant="small"):\n'
      '  return Config(experiment=variant)\n', 'utf-8'
  )
  for variant, experiment in (('', 'small'), (':large', 'large')):
    found = arguments.parse(['vfljax', f'--config=C:my.py{variant}'])
    assert found.config.experiment == experiment
    assert found.workdir.endswith(f'my{variant.replace(":", "-")}')


def test_the_results_of_a_config_in_the_root_are_below_out(monkeypatch):
  monkeypatch.setattr(arguments, '_config_file', lambda _: (Path('/my.py'), ''))
  assert arguments._default_workdir(None) == str(Path('out/my'))
