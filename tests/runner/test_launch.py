"""The command line: what it refuses, and what it writes."""
import errno
import json
import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import launch
import vfljax
from tests.command_line import ROOT, TINY, main, read
from vfljax.runner import main as of_launch


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
  monkeypatch.chdir(ROOT)


def csv(path, **columns):
  rng = np.random.default_rng(0)
  table = dict(a=rng.normal(size=40), b=rng.normal(size=40),
               target=['yes', 'no'] * 20)
  pd.DataFrame(table | columns).to_csv(path / 'mine.csv', index=False)
  return ['--config.data.name=csv', f'--config.data.path={path}/mine.csv',
          '--config.data.label=target', '--config.train.batch_size=8']


REFUSED = {
    'two configs': (['--config=a.py', '--config=b.py'], 'more than once'),
    'unknown field': (['--config.train.epoch=3'], 'train.epochs'),
    'wrong type': (['--config.train.epochs=many'], 'many'),
    'a group': (['--config.train=3'], 'group of fields'),
    'unknown flag': (['--worker=3'], 'worker'),
    'stray argument': (['quickstart'], 'quickstart'),
    'fields of nothing': (
        ['--config=', '--config.seeds=3'], '--config= names no file'
    ),
    'unknown config': (['--config=experiments/nope.py'], 'experiments/nope.py'),
    'unknown variant': (
        ['--config=experiments/kang2022/table16.py:vlr'], 'vhnn vsnn'
    ),
    'no variant': (['--config=experiments/kang2022/table16.py'], ':vhnn'),
    'variant of what has none': (
        ['--config=experiments/quickstart.py:tiny'], 'no variants'
    ),
    'unknown data': (['--config.data.name=iris5'], 'iris5'),
    'missing file': (
        ['--config.data.name=spambase', '--config.data.path=/no/such'],
        '/no/such',
    ),
    'unknown defense': (['--config.defenses=marvel'], 'marvell'),
    'unknown attack': (['--config.attacks=norm'], 'norm_scoring'),
    'more parties than columns': (['--config.data.parties=31'], '30'),
    'binary defense': (
        ['--config.data.name=digits', '--config.defenses=marvell'],
        'two classes',
    ),
    'binary attack': (
        ['--config.data.name=digits', '--config.attacks=norm_scoring'],
        'two classes',
    ),
    'direct labels behind a top': (
        ['--config.attacks=direct_label'], 'trainable_top'
    ),
    'no epochs': (['--config.train.epochs=0'], 'epochs must be 1'),
    'large batch': (['--config.train.batch_size=9999'], '398'),
    'no seeds': (['--config.seeds=0'], 'seeds must be 1'),
    'negative chunk': (['--config.seeds_per_chunk=-1'], '0 or more'),
    'no number': (['--config.train.learning_rate=nan'], 'finite'),
    'no repeats': (['--config.attack.repeats=0'], '1 or more'),
    'one party': (['--config.data.parties=1'], '2 or more'),
    'large seed': (['--config.first_seed=2147483647'], '2147483648'),
    'not a flag': (['--config.listed_attacks=norm'], 'config file only'),
    'limit too small': (
        ['--config.data.name=wine', '--config.data.limit=50'], 'class'
    ),
    'records too small for the classes': (
        [
            '--config.data.name=digits', '--config.train.batch_size=16',
            '--config.attack.replay_rounds=1', '--config.attack.known=1',
            '--config.attacks=gradient_clustering',
        ],
        'two or more for each of 10 classes'
    ),
    'strength twice': (['--config.defenses=iso(5,5)'], 'Type each once'),
    'option that is a field': (
        ['--config.data.options=path=x'],
        'does not take path, which has a flag: --config.data.path',
    ),
    'option that is a flag': (
        ['--config.data.options=cache=x'], 'which has a flag: --cache'
    ),
    'option of a wrong type': (
        ['--config.data.name=synthetic', '--config.data.options=samples=abc'],
        'a whole number',
    ),
    'convolutions on a table': (['--config.model.channels=8'], 'images'),
    'negative rate': (['--config.train.learning_rate=-1'], 'above 0'),
    'unknown optimizer': (['--config.train.optimizer=lion'], 'momentum'),
    'decay of a growing kind': (
        ['--config.train.weight_decay=-1'], 'weight_decay must be 0'
    ),
    'attack at no rate': (
        ['--config.attack.completion.bottom_rate=0'],
        'attack.completion.bottom_rate must be'
    ),
    'attack by steps': (
        ['--config.attack.completion.schedule=step'],
        'attack.completion.schedule must be one of'
    ),
    'norm that there is not': (
        ['--config.model.norm=layer'], 'norm must be one of batch'
    ),
    'nothing to normalize': (
        ['--config.model.algorithm=vlr', '--config.model.norm=batch'],
        'a top with weights'
    ),
    'head without hidden layers': (
        ['--config.attack.completion.head=()',
         '--config.attack.completion.norm=batch'],
        'inference head'
    ),
    'rate of what stays as it is': (
        ['--config.attack.completion.tune=False',
         '--config.attack.model_completion.bottom_rate=0.1'],
        'attack.completion.tune=True'
    ),
    'unknown aggregation': (['--config.model.aggregation=median'], 'product'),
    'option that an attack has not': (
        ['--config.attack.completion.epoch=5'], 'Did you mean epochs?'
    ),
    'option of another type': (
        ['--config.attack.completion.epochs=many'], 'must be a whole number'
    ),
    'endless option': (
        ['--config.attack.completion.epochs=1e999'], 'must be a whole number'
    ),
    'option beyond all numbers': (
        ['--config.attack.completion.learning_rate=' + 400 * '9'],
        'must be a finite number'
    ),
    'option apart from its value': (
        ['--config.attack.completion.epochs', 'many'], 'must be a whole number'
    ),
    'attack without options': (
        ['--config.attack.norm_scoring.epochs=5'], 'No attack has options under'
    ),
    'field that has moved': (
        ['--config.attack.inversion_steps=5'],
        'It is attack.gradient_inversion.steps now.'
    ),
    'too many labels known': (
        ['--config.attack.known=500'], 'or 0 for all of them'
    ),
    'too many labels known of three classes': (
        ['--config.data.name=wine', '--config.attack.known=500'],
        'the rarest class has 48 samples); got 500.'
    ),
    'nothing to train on': (
        ['--config.data.test=0.9999'], 'No training samples are left'
    ),
    'inversion without samples': (
        ['--config.attacks=model_inversion'], 'for instance to 99.'
    ),
    'attacker who is not there': (['--config.attack.party=2'], 'passive party'),
    'best without validation': (['--config.train.best=True'], 'validation'),
    'logits of another width': (
        ['--config.model.trainable_top=False'], 'must be 1'
    ),
}


def test_a_class_that_a_limit_leaves_out_is_told(capsys, tmp_path):
  code, lines = main(
      capsys, '--config.data.name=wine', '--config.data.limit=100',
      workdir=tmp_path / 'out',
  )
  assert code == 2 and len(lines) == 2
  assert "are 0.0% of class 'class_2', all 178 rows 27.0%" in lines[0]
  assert lines[1].startswith('error: No sample is of class 2 of 3')


@pytest.mark.parametrize('case', REFUSED)
def test_refused_in_two_lines(case, capsys, tmp_path):
  arguments, message = REFUSED[case]
  code, lines = main(capsys, *arguments, workdir=tmp_path / 'out')
  assert code == 2
  assert 1 <= len(lines) <= 2 and lines[0].startswith('error: ')
  assert message in ' '.join(lines)
  assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('entry, message', [
    ("Entry('dp_laplace', (-1.0,))", '-1'),
    ("Entry('dp_gaussian', (-0.5,))", '-0.5'),
    ("Entry('gradient_compression', (1.5,))", '1.5'),
    ("Entry('gradient_compression', (0.0,))", '0.0'),
    ("Entry('marvell', (-2.0,))", '-2'),
    ("Entry('marvel', (2.0,))", 'marvell'),
    ("Entry('iso')", 'iso'),
    ("Entry('max_norm', (1.0,))", 'max_norm'),
    ("Entry('iso', (5.0, 5.0))", 'twice'),
    ("Entry('iso', (5.0,)), Entry('iso', (2.0,))", 'same name'),
    ("Entry('iso', (5.0,), dict(colour=1))", 'colour'),
    ("1 / 0", 'zero'),
])
def test_strengths_out_of_range_are_refused(entry, message, capsys, tmp_path):
  config = tmp_path / 'mine.py'
  config.write_text(
      'from experiments import quickstart\n'
      'from vfljax.runner.config import Entry\n'
      'def get_config():\n'
      '  config = quickstart.get_config()\n'
      f'  config.listed = ({entry},)\n'
      '  return config\n'
  )
  code, lines = main(
      capsys, f'--config={config}', workdir=tmp_path / 'out'
  )
  assert code == 2 and message in ' '.join(lines) and len(lines) <= 2
  assert not (tmp_path / 'out').exists()


def test_a_config_of_another_type(capsys, tmp_path):
  config = tmp_path / 'mine.py'
  config.write_text('def get_config():\n  return dict(seeds=3)\n')
  assert launch.main(['launch.py', f'--config={config}']) == 2
  assert 'vfljax.runner.config.Config' in capsys.readouterr().err


@pytest.mark.parametrize('text, message', [
    ('def get_config():\n  return Config(seed=3)', 'mine.py, line 3: Type'),
    ('def get_config():\n  return Config(seed=3)', 'Did you mean seeds?'),
    ('def get_config():\n  return {}[1]', 'mine.py, line 3: KeyError: 1'),
    ('import nosuch', 'mine.py, line 2: ModuleNotFoundError'),
    ('def get_config():\n  raise ValueError("bad")', 'line 3: ValueError: bad'),
    ('x = 1', 'The config file has no function get_config().'),
    ('def get_config():\n  return 3', 'Config, not int.'),
    ('def get_config(a, b):\n  return 3', 'error: TypeError: get_config()'),
    ('def get_config()', 'mine.py, line 2: '),
])
def test_it_says_where_a_config_file_is_wrong(
    text, message, capsys, tmp_path, monkeypatch
):
  # ml_collections' module of the last one: what is not in a file was in that.
  monkeypatch.delitem(sys.modules, 'config_config', raising=False)
  file = tmp_path / 'mine.py'
  file.write_text(f'from vfljax.runner.config import Config\n{text}\n')
  argv = ['launch.py', f'--config={file}', '--config.train.epochs=1']
  assert launch.main(argv) == 2
  lines = capsys.readouterr().err.splitlines()
  assert message in lines[0] and len(lines) == 1


@pytest.mark.parametrize('columns, message', [
    (dict(a=[np.nan] + [1.0] * 39), 'a'),
    (dict(a=[np.inf] + [1.0] * 39), 'a'),
    (dict(target=['yes'] * 40), 'class'),
    (dict(target=['yes', 'no'] * 12 + [None] * 16), '40'),
])
def test_data_that_cannot_be_trained_on(columns, message, capsys, tmp_path):
  code, lines = main(
      capsys, *csv(tmp_path, **columns), workdir=tmp_path / 'out'
  )
  assert code == 2 and message in ' '.join(lines) and len(lines) <= 2
  assert not (tmp_path / 'out').exists()


def test_a_label_column_that_is_not_there(capsys, tmp_path):
  code, lines = main(
      capsys, *csv(tmp_path), '--config.data.label=targets',
      workdir=tmp_path / 'out',
  )
  assert code == 2 and 'target' in ' '.join(lines)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  """A small experiment, run once."""
  workdir = tmp_path_factory.mktemp('finished') / 'out'
  os.chdir(ROOT)
  chosen = [
      '--config.defenses=iso', '--config.attacks=norm_scoring',
      '--config.model.algorithm=vlr',
  ]
  assert not launch.main(
      ['launch.py', *TINY, *chosen, f'--workdir={workdir}']
  )
  return workdir, chosen


def test_results_have_the_fields_that_are_promised(finished):
  rows = [json.loads(line) for line in read(finished[0]).splitlines()]
  assert list(rows[0]) == [
      'experiment', 'dataset', 'algorithm', 'defense', 'strength', 'attack',
      'seed', 'metric', 'split', 'value', 'file', 'digest',
  ]
  saved = json.loads((finished[0] / 'config.json').read_text())
  assert {row['digest'] for row in rows} == {saved['samples']}
  assert {row['defense'] for row in rows} == {'none', 'iso'}
  assert {row['attack'] for row in rows} == {None, 'norm_scoring'}
  assert {row['seed'] for row in rows} == {0, 1}
  strengths = {row['strength'] for row in rows if row['defense'] == 'iso'}
  assert strengths == {25, 10, 5, 2.75}
  assert any(row['metric'] == 'alone_auc' for row in rows)
  for name in ('config.json', 'timings.json', 'summary.md', 'report.html',
               'about.json'):
    assert (finished[0] / name).stat().st_size


def test_a_finished_run_is_not_run_again(finished, capsys):
  workdir, chosen = finished
  before = (workdir / 'timings.json').read_bytes()
  code, _ = main(capsys, *chosen, workdir=workdir)
  assert code == 0 and (workdir / 'timings.json').read_bytes() == before


def test_another_config_does_not_get_the_workdir(finished, capsys):
  workdir, chosen = finished
  before = read(workdir)
  other = '--config.train.epochs=3'
  code, lines = main(capsys, *chosen, other, workdir=workdir)
  assert code == 2 and 'train.epochs' in ' '.join(lines) and len(lines) <= 2
  assert read(workdir) == before


@pytest.mark.slow
def test_chunks_give_the_same_numbers(finished, capsys, tmp_path):
  """Of seeds, and of strengths, of which the last chunk has fewer."""
  workdir, chosen = finished
  sizes = ['--config.seeds_per_chunk=1', '--config.strengths_per_chunk=3']
  code, _ = main(capsys, *chosen, *sizes, workdir=tmp_path / 'out')
  assert code == 0
  want, found = (
      sorted(read(place).splitlines()) for place in (workdir, tmp_path / 'out')
  )
  assert found == want


def test_a_file_in_the_way(capsys, tmp_path):
  (tmp_path / 'out').write_text('')
  code, lines = main(capsys, workdir=tmp_path / 'out')
  assert code == 2 and 'out is a file, not a folder' in lines[0]
  assert 'another --workdir' in lines[1] and len(lines) <= 2


def test_a_read_only_workdir(capsys, tmp_path, monkeypatch):
  # Root may write anywhere, so the system's refusal is played.
  def refuse(self, *args, **kwargs):
    raise PermissionError(13, 'Permission denied', str(self))

  monkeypatch.setattr(Path, 'mkdir', refuse)
  code, lines = main(capsys, workdir=tmp_path / 'out')
  assert code == 2 and 'out' in ' '.join(lines) and len(lines) <= 2


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_error():
  """As `| head`: nobody takes what is printed."""
  command = [sys.executable, 'launch.py', '--help']
  with subprocess.Popen(
      command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
  ) as child:
    assert child.stdout and child.stderr
    child.stdout.close()
    assert child.stderr.read() == b'' and child.wait() == 0


@pytest.mark.slow
def test_a_run_whose_reader_has_gone_is_no_success(tmp_path):
  command = [
      sys.executable, 'launch.py', '--config=experiments/quickstart.py',
      '--config.defenses=none', '--config.seeds=1', '--cache=',
      '--config.attacks=norm_scoring', '--config.model.algorithm=vlr',
      '--config.alone=False',
      f'--workdir={tmp_path / "out"}',
  ]
  with subprocess.Popen(
      command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
  ) as child:
    assert child.stdout and child.stderr
    child.stdout.close()
    assert b'The same command continues' in child.stderr.read()
    assert child.wait() == 130


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='not on Linux')
@pytest.mark.slow
def test_what_is_printed_onto_a_full_disk():
  with open('/dev/full', 'w') as full:
    done = subprocess.run(
        [sys.executable, 'launch.py', '--help'], cwd=ROOT, stdout=full,
        stderr=subprocess.PIPE, text=True, check=False,
    )
  assert done.returncode == 2
  assert done.stderr == 'error: No room for what is printed.\n'


@pytest.mark.skipif(os.name != 'posix', reason='no numbers of streams')
def test_output_that_is_closed_goes_nowhere():
  """As by `>&-`: it was a traceback, and errors went to standard output."""
  run = lambda number, flag: subprocess.run(
      [sys.executable, '-c', f'import os, sys; os.close({number}); '
       'os.execv(sys.executable, [sys.executable, "launch.py", sys.argv[1]])',
       flag], cwd=ROOT, capture_output=True, check=False,
  )
  done = run(1, '--version')
  assert (done.returncode, done.stderr) == (0, b'')
  done = run(2, '--config=none.py')
  assert (done.returncode, done.stdout) == (2, b'')


@pytest.mark.skipif(os.name != 'posix', reason='no numbers of streams')
def test_files_do_not_get_the_numbers_of_closed_streams(tmp_path):
  """Libraries write to number 2 whatever Python has there."""
  inner = (
      'from vfljax.runner import main; main._open_what_is_closed(); '
      f'file = open({str(tmp_path / "f")!r}, "w"); '
      'file.write(str(file.fileno()))'
  )
  subprocess.run([sys.executable, '-c', (
      'import os, sys; [os.close(i) for i in range(3)]; '
      'os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])'
  ), inner], cwd=ROOT, check=True)
  assert int((tmp_path / 'f').read_text()) > 2


@pytest.mark.parametrize('encoding', ['ascii', 'cp1252'])
def test_what_an_encoding_lacks_is_no_traceback(encoding, finished):
  """As where the system has no UTF-8, or on Windows into a file."""
  workdir, _ = finished
  done = subprocess.run(
      [sys.executable, 'launch.py', 'advise', str(workdir), '--budget=2'],
      cwd=ROOT, capture_output=True, check=False,
      env=os.environ | dict(PYTHONIOENCODING=encoding),
  )
  assert done.returncode == 0, done.stderr
  assert b'???' in done.stdout and b'Not tested' in done.stdout


def test_help_and_lists(capsys):
  for asked in ('--help', '--help=all'):
    assert launch.main(['launch.py', asked]) == 0
    assert '--config.train.epochs=30' in capsys.readouterr().out
  assert launch.main(['launch.py', '--list']) == 0
  text = capsys.readouterr().out
  for name in ('quickstart.py', 'breast_cancer', 'vhnn', 'marvell(power)',
               'model_completion'):
    assert name in text
  assert launch.main(['launch.py', '--list', 'colours']) == 2


def test_a_home_folder_is_found(capsys, tmp_path, monkeypatch):
  """As in --workdir=~/mine, of which shells leave the '~'."""
  monkeypatch.setenv('HOME', str(tmp_path))
  (tmp_path / 'mine').mkdir()
  (tmp_path / 'mine/notes').write_text('')
  code, lines = main(capsys, workdir='~/mine')
  assert code == 2 and f'{tmp_path}/mine holds files' in lines[0]
  code, lines = main(capsys, workdir='~nobody-here/mine')
  assert code == 2 and './~nobody-here/mine' in lines[1]


def test_a_folder_of_others_does_not_even_get_a_lock(capsys, tmp_path):
  (tmp_path / 'parts').mkdir()
  (tmp_path / 'parts/none.json').write_text('{}')
  code, lines = main(capsys, workdir=tmp_path)
  assert code == 2 and 'no config.json' in lines[0] and len(lines) == 2
  assert [p.name for p in tmp_path.rglob('*')] == ['parts', 'none.json']


def test_python_m_is_the_same_command(tmp_path):
  run = lambda *flags: subprocess.run(
      [sys.executable, '-m', 'vfljax', *flags], cwd=tmp_path,
      capture_output=True, text=True, check=False,
  )
  assert run('--version').stdout == f'vfljax {vfljax.__version__}\n'
  refused = run('--config=none.py')
  assert refused.returncode == 2 and 'config file none.py' in refused.stderr


def test_it_says_which_version_it_is(capsys):
  assert launch.main(['launch.py', '--version']) == 0
  assert capsys.readouterr().out == f'vfljax {vfljax.__version__}\n'


@pytest.mark.parametrize('system', ['win32', 'linux'])
def test_windows_has_its_own_word_for_a_closed_pipe(system, monkeypatch):
  odd = OSError(errno.EINVAL, 'Invalid argument')
  monkeypatch.setattr(os, 'dup2', lambda *_: None)
  monkeypatch.setattr(sys, 'platform', system)
  if system == 'win32':
    assert of_launch._unread(odd, ['vfljax', '--list'], None) == 0
    return
  with pytest.raises(OSError, match='Invalid argument'):
    of_launch._unread(odd, ['vfljax', '--list'], None)
