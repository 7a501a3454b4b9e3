"""Records are run again, and what comes out is compared value by value."""
import json
import math
import os
from pathlib import Path
import runpy
import sys

import jax
import pytest

from experiments import changes, evidence, verify
from tests.recorded import record
from vfljax.runner import main
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import recording


def test_what_is_run_again_is_compared_value_by_value():
  again = record(seeds=[1], rows=[
      ['none', None, None, 'auc', 'test', [0.81]],  # within 3 x 0.1
      ['none', None, None, 'alone_auc', 'test', [0.61]],  # 0.005 is allowed
      ['none', None, 'norm_scoring', 'leak_auc', 'train', [0.8]],
      ['none', None, 'norm_scoring', 'leak_auc_last', 'train', [0.6]],
      ['iso', 5.0, None, 'auc', 'test', [None]],
  ])
  found = verify.compare(record(), again)
  assert [c.came_out for c in found] == [True, False, True, True, False]
  assert [c.same for c in found] == [False, False, True, True, False]
  assert 'alone_auc' in verify.said('r', found)
  with pytest.raises(UserError, match='samples differ'):
    verify.compare(record(), again | dict(samples='x'))
  first = again | dict(samples='abc-def')  # As of now; records have the first.
  assert len(verify.compare(record(), first)) == len(found)
  with pytest.raises(UserError, match='no row'):
    verify.compare(record(), again | dict(rows=[]))


def test_a_third_run_tells_how_far_rounding_leads():
  """A training that diverged is no part of it."""
  again = record(seeds=[2], rows=[
      [*key, [None if x is None else x + 0.03]]
      for *key, (_, _, x) in record()['rows']
  ])
  twin = again | dict(rows=[
      [*key, [None if x is None else x + by]]
      for by, (*key, (x,)) in zip([0.01, -0.02] * 3, again['rows'])
  ])
  assert not verify.apart(verify.compare(record(), again))
  found = verify.compare(record(), again, twin)
  far, count = verify.apart(found), sum(math.isfinite(c.twin) for c in found)
  turns = ([0.01, 0.02] * 3)[:count]
  assert far == pytest.approx(dict(
      recorded=0.03, recorded_most=0.03, twin=sum(turns) / count,
      twin_most=0.02, twin_where='none alone_auc test',
  ), abs=1e-5)
  assert ', its twin ' in verify.said('r', found)
  assert verify.noted('p', 'r', 1, found)['apart'] == far


@pytest.mark.parametrize('changed, said', [
    (dict(samples='x'), 'another training'),
    (dict(rows=[]), 'another training'),
    (dict(seeds=[1]), r'seeds \[1\], this run \[0\]'),
])
def test_a_third_run_of_something_else_is_refused(changed, said):
  verify.check_twin(record(), record(seeds=[0]), [0])
  with pytest.raises(UserError, match=said):
    verify.check_twin(record(), record(seeds=[0]) | changed, [0])


def test_a_record_is_made_again_under_its_own_settings_of_jax(tmp_path):
  line, head = 'python launch.py --config=my.py --config.seeds=3', 'JAX_ENABLE_'
  own = record() | dict(command=line, config=dict(data=dict(path='')))
  made = tmp_path / 'r.json'
  plain = verify.command(own, 1, '', made)
  assert plain[:2] == ['vfljax', '--config=my.py']
  other = own | dict(command=f'{head}X64=True {line}')
  with pytest.raises(UserError, match='JAX_ENABLE_X64=True; here are none'):
    verify.command(other, 1, '', made)
  with jax.enable_x64(True):
    assert verify.command(other, 1, '', made) == plain


def test_a_run_without_its_data_says_how_verify_is_told(tmp_path, monkeypatch):
  """Not how a run is: its path is the record's."""
  monkeypatch.setattr(verify.runner, 'main', lambda argv: 3)
  with pytest.raises(UserError, match='--data=FOLDER. How to get it: Get spam'):
    verify.verify('gafm', 'table2', 1, str(tmp_path))
  (tmp_path / 'spambase.data').write_text('')
  with pytest.raises(UserError, match='exit code 3'):
    verify.verify('gafm', 'table2', 1, str(tmp_path))


@pytest.fixture
def own(tmp_path, monkeypatch):
  """A folder with a record of one's own; runs write `again` and keep argv."""
  folder, runs = tmp_path / 'mine', []
  folder.mkdir()
  made = record(
      command='python launch.py --config=my.py:wide --config.seeds=3',
      config=dict(data=dict(path='', name='wine'), train=dict(epochs=2)),
  )
  (folder / 'r.json').write_text(recording.text(made))

  def run(argv):
    runs.append(argv)
    again = made | dict(config=dict(train=dict(epochs=3, new=1)))
    Path(argv[-1].partition('=')[2]).write_text(recording.text(again))
    return 0

  monkeypatch.setattr(verify.runner, 'main', run)
  return folder, runs


@pytest.mark.parametrize('attacks', ['', 'learned_gradient'])
def test_a_setting_that_no_attack_needs_has_not_changed(attacks):
  then, now = (
      record(config=dict(
          attacks=attacks, listed_attacks=[], attack=dict(replay_rounds=rounds)
      )) for rounds in (1, 0)
  )
  said = 'attack.replay_rounds is 1 in the record and 0 now' if attacks else ''
  assert changes.told(then, now) == said


@pytest.mark.parametrize('now, said', [
    (dict(options=dict(attacker=[1, [2, 3], None])), ''),
    (dict(options=dict(attacker=[1, [2, 3]]), new=4), ''),
    (dict(options=dict(attacker=[1, [2, 3]], power=4)), (
        'listed[1].options.power is unset in the record and 4 now'
    )),
    (dict(options={}), (
        'listed[1].options.attacker is [1, [2, 3]] in the record and unset now'
    )),
    (dict(options=dict(attacker=[1, [2, 3], 0])), (
        'listed[1].options.attacker is [1, [2, 3]] in the record and '
        '[1, [2, 3], 0] now'
    )),
    (dict(options=dict(attacker=[1])), (
        'listed[1].options.attacker is [1, [2, 3]] in the record and [1] now'
    )),
    (None, 'len(listed) is 2 in the record and 1 now'),
])
def test_of_a_list_what_changed_is_said(now, said):
  """Options that came later and are not set have changed nothing."""
  then = [dict(defense='none'), dict(options=dict(attacker=[1, [2, 3]]))]
  both = then, then[:1] + [now] * (now is not None)
  old, new = (record(config=dict(listed=listed)) for listed in both)
  assert changes.told(old, new) == said


@pytest.mark.parametrize('then, now, said', [
    (dict(listed=[]), dict(listed=[dict(defense='iso')]),
     'len(listed) is 0 in the record and 1 now'),
    (dict(variants=[dict(name='a')]), dict(variants=[]),
     'len(variants) is 1 in the record and 0 now'),
    (dict(listed=[dict(after=[])]), dict(listed=[dict(after=['iso'])]),
     "listed[0].after is [] in the record and ['iso'] now"),
    (dict(attack=dict(own={})), dict(attack=dict(own=dict(cafe=dict(steps=2)))),
     "attack.own.cafe is unset in the record and {'steps': 2} now"),
    (dict(strengths=[1.0]), dict(strengths=[1.0, 2.0]),
     'strengths is [1.0] in the record and [1.0, 2.0] now'),
    (dict(seeds=1), dict(seeds=2, new=3), ''),
])
def test_what_was_empty_has_changed(then, now, said):
  assert changes.told(record(config=then), record(config=now)) == said


def test_not_all_that_changed_is_said():
  old, new = (
      record(config=dict(train=dict.fromkeys('abcde', number)))
      for number in (1, 2)
  )
  said = changes.told(old, new)
  assert said.count('in the record') == 3 and said.endswith('; and 2 more')


def test_ones_own_record_is_run_again_from_any_folder(own, capsys):
  """And it is said if its config file is another one now."""
  folder, runs = own
  assert verify.main([str(folder / 'r.json')]) == 1
  assert 'my.py is neither here nor beside' in capsys.readouterr().err
  (folder / 'my.py').write_text('')
  assert verify.main([str(folder / 'r.json')]) == 0
  assert f'--config={folder / "my.py"}:wide' in runs[0]
  assert runs[0][-1].startswith('--record=')  # A study has --out=.
  kept = folder / 'kept.json'  # Of one record this run's may be kept.
  capsys.readouterr()
  assert verify.main([str(folder / 'r.json'), f'--keep={kept}']) == 0
  assert kept.exists()
  said = capsys.readouterr().out
  assert 'recorded: train.epochs is 2 in the record and 3 now.' in said
  assert f'{folder / "r.json"}: 15 of 15 values came out' in said


def test_a_papers_config_is_found_in_the_clone(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  word = '--config=experiments/gafm/table2.py'
  assert verify._with_config(word, tmp_path) == (
      f'--config={verify.CLONE}/experiments/gafm/table2.py'
  )


@pytest.mark.parametrize('typed, said', [
    (['nothing'], 'nothing is no paper'), (['gafm', 'no'], 'there are averag'),
    (['no.json'], 'no.json is no record of vfljax'),
])
def test_what_verify_does_not_know_is_told(typed, said, capsys):
  try:
    assert verify.main(typed) == 1
  except SystemExit as error:
    assert error.code == 2
  assert said in capsys.readouterr().err


def test_data_of_a_config_has_no_advice(tmp_path):
  unknown = record(config=dict(data=dict(path='a.txt', name='own')))
  with pytest.raises(UserError, match='has a.txt: --data=FOLDER.$'):
    verify.check_data(unknown, str(tmp_path))


def test_each_party_s_file_is_found_in_the_folder(tmp_path):
  """A file of one's own may have a ; in its name."""
  path = 'bank.csv;shop.csv'
  kept = record(
      config=dict(data=dict(path=path, name='parties')), seeds=[0],
      command=f"python launch.py '--config.data.path={path}'",
  )
  (tmp_path / 'bank.csv').touch()
  with pytest.raises(UserError, match='/shop.csv is not there'):
    verify.check_data(kept, str(tmp_path))
  (tmp_path / 'shop.csv').touch()
  verify.check_data(kept, str(tmp_path))
  typed = verify.command(kept, 1, str(tmp_path), tmp_path / 'r.json')
  both = f'{tmp_path}/bank.csv;{tmp_path}/shop.csv'
  assert f'--config.data.path={both}' in typed
  kept['config']['data']['name'] = 'csv'
  with pytest.raises(UserError, match='/bank.csv;shop.csv is not there'):
    verify.check_data(kept, str(tmp_path))


def test_where_a_record_is_kept_is_known_before_it_is_made(
    tmp_path, monkeypatch
):
  """Nor is a twin that cannot be read found out after an hour."""
  monkeypatch.setattr(verify.runner, 'main', lambda argv: pytest.fail('ran'))
  for asked, said in (
      (dict(keep=tmp_path / 'no' / 'a.json'), 'no folder'),
      (dict(twin=tmp_path / 'a.json'), 'no record'),
  ):
    with pytest.raises(UserError, match=said):
      verify.verify('gafm', 'table2', 1, '.', **asked)


@pytest.mark.slow
def test_a_record_is_run_again_from_its_own_command(tmp_path, monkeypatch):
  """On the bundled data, with one seed of two."""
  small = [
      'launch.py', '--config=experiments/quickstart.py', '--config.seeds=2',
      '--config.defenses=none', '--config.attacks=norm_scoring',
      '--config.train.epochs=1', '--config.train.optimizer=sgd',
      '--config.model.algorithm=vlr', '--config.alone=False',
  ]
  folder = tmp_path / 'p' / 'records'
  folder.mkdir(parents=True)
  ours = ['--cache=', '--devices=2']  # As many as the tests have.
  assert main.main([
      *small, f'--workdir={tmp_path / "out"}', f'--record={folder / "r.json"}',
      *ours,
  ]) == 0
  monkeypatch.setattr(evidence, 'HERE', tmp_path)
  evidence.load.cache_clear()
  kept = tmp_path / 'kept.json'
  found = verify.verify('p', 'r', 1, str(tmp_path), ours, keep=kept)
  assert found and all(c.same for c in found)
  assert recording.read(kept)['seeds'] == [0]
  assert {c.seed for c in found} == {0}
  evidence.load.cache_clear()


STUDY = '''
import argparse
parser = argparse.ArgumentParser()
for name in ('seeds', 'out', 'plus'):
  parser.add_argument(f'--{name}')
args = parser.parse_args()
from experiments import studies
from vfljax import data
begun, seeds = studies.begin('own_study', None), range(int(args.seeds))
found = dict(attack=[[seed + 0.5, float(args.plus or 0)] for seed in seeds])
studies.write(args.out, begun, seeds, data.load('wine'), found=found)
'''


@pytest.mark.slow
def test_a_study_is_run_again_from_its_own_command(tmp_path, monkeypatch):
  folder = tmp_path / 'p' / 'records'
  folder.mkdir(parents=True)
  (tmp_path / 'own_study.py').write_text(STUDY)
  monkeypatch.setenv(
      'PYTHONPATH', os.pathsep.join([str(tmp_path), *sys.path])
  )
  monkeypatch.setattr(evidence, 'HERE', tmp_path)
  with monkeypatch.context() as patch:  # Here: starting Python takes longest.
    patch.setattr(
        sys, 'argv', ['own_study', '--seeds=2', f'--out={folder / "r.json"}']
    )
    runpy.run_path(str(tmp_path / 'own_study.py'))
  assert verify.runnable('p') == ['r']
  found = verify.verify('p', 'r', 1, str(tmp_path), ['--plus=1'])
  assert [c.key for c in found] == [
      ('found', 'attack', '[0]'), ('found', 'attack', '[1]')
  ]
  assert [c.same for c in found] == [True, False]
  assert {c.seed for c in found} == {0}
  assert [c.came_out for c in found] == [True, False]
  assert 'found attack [1], seed 0: 1, recorded 0' in verify.said('r', found)
  with pytest.raises(UserError, match='exit code 2'):
    verify.verify('p', 'r', 1, str(tmp_path), ['--wrong'])


def test_the_processor_is_named_by_the_system(tmp_path, monkeypatch):
  file = tmp_path / 'cpuinfo'
  monkeypatch.setattr(verify, 'Path', lambda name: file)
  monkeypatch.setattr(os, 'cpu_count', lambda: 1)
  monkeypatch.setattr(verify.platform, 'machine', lambda: 'riscv')
  assert verify.processor() == '1 x riscv'
  file.write_text('processor : 0\nmodel name : Fast 9 @ 3 GHz\ncores : 1\n')
  assert verify.processor() == '1 x Fast 9 @ 3 GHz'


def test_what_came_out_is_kept_line_by_line(tmp_path):
  same = verify.Compared(('none', None, '', 'accuracy', ''), 0, 0.5, 0.5, 0.01)
  near, off = same._replace(again=0.504), same._replace(again=0.7)
  line = verify.noted('gafm', 'table2', 1, [same, near, off])
  assert (line['values'], line['came_out'], line['same']) == (3, 2, 1)
  assert line['missed'] == 'none accuracy, seed 0: 0.7 for 0.5'
  assert 'missed' not in verify.noted('gafm', 'table2', 1, [same, near])
  far = [off._replace(seed=i, again=0.7 + i / 100) for i in range(6)]
  told = verify.missed([*far, off._replace(seed=9, again=math.nan)])
  assert told.startswith('none accuracy, seed 9: nan for 0.5; none accuracy, se'
                         'ed 5: 0.75 for 0.5; ')
  assert told.endswith('seed 3: 0.73 for 0.5; and 3 more')
  wide = off._replace(allowed=0.3)  # Seeds differ more than this one did.
  assert verify.noted('p', 'r', 1, [wide, near])['came_out'] == 2
  assert verify.noted('p', 'r', 1, [wide, near])['near'] == 1
  assert line['record'] == 'gafm/records/table2.json'
  file = tmp_path / 'verified.json'
  verify.add(file, line)
  verify.add(file, line)
  assert json.loads(file.read_text()) == [line, line]
