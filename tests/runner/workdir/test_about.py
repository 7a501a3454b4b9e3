"""What a run was of: whose columns, which classes, and the report's head."""
import dataclasses
import json
import os
import sys
import time

import numpy as np
import pytest

from tests import fake_results
from vfljax.data.table import Table
from vfljax.report import head, reading, writing
from vfljax.runner.config import Config, DataConfig, ModelConfig
from vfljax.runner.workdir import about, store

TABLE = Table(
    np.zeros((4, 5), np.float32), np.array([0, 1, 1, 1], np.int32),
    ('age', 'city=Oslo', 'city=Rome', 'pay', 'debt'), ('no', 'yes'),
    (0, 1, 1, 2, 3),
)


@pytest.mark.parametrize('data, algorithm, parties', [
    ({}, 'vhnn', [['age', 'city'], ['pay', 'debt']]),
    (dict(split='named', named='pay;*'), 'vhnn',
     [['pay'], ['age', 'city', 'debt']]),
    (dict(split='ratios', ratios='1:3'), 'vhnn',
     [['age'], ['city', 'pay', 'debt']]),
    ({}, 'vsnn', [[], ['age', 'city', 'pay', 'debt']]),
    (dict(unheld=True), 'vsnn', [[], ['pay', 'debt']]),
])
def test_whose_column_is_which(data, algorithm, parties):
  config = Config(data=DataConfig(**data), model=ModelConfig(algorithm))
  assert about.holders(config, TABLE) == parties


def test_images_have_a_shape():
  images = Table(
      np.zeros((3, 28, 28, 1), np.uint8), np.array([0, 1, 1], np.int32), (),
      ('a', 'b'), (),
  )
  assert about.holders(Config(), images) == [['28 x 14 x 1 pixels']] * 2
  parties = about.holders(Config(), images)
  assert dict(head.facts(dict(parties=parties), {}, [], [])) == {
      'party 0, active': 'the labels and 28 x 14 x 1 pixels',
      'party 1': '28 x 14 x 1 pixels',
  }


@pytest.mark.parametrize('said, shares, training', [
    (dict(classes=dict(no=0.25, yes=0.75), training=8),
     dict(no=0.25, yes=0.75), (2.0, 6.0)),
    (dict(classes=dict(no=0, yes=1)), dict(no=0, yes=1), ()),
    (dict(classes=dict(no='a', yes=0.5), training=8), {}, ()),
    (dict(classes=[0.5], training=8), {}, ()), (dict(training=8), {}, ()),
    (dict(classes=dict(no=1.0), training='8'), dict(no=1.0), ()), ({}, {}, ()),
])
def test_what_is_no_share_is_unknown(said, shares, training):
  assert about.shares(said) == shares and about.training(said) == training


def test_what_is_said_of_a_table():
  said = about.of_run(Config(), TABLE, ['launch.py', '--config=q.py'])
  assert said['classes'] == dict(no=0.25, yes=0.75)
  assert (said['rows'], said['test_rows']) == (4, 0)
  assert about.training(said) == tuple(
      said['training'] * share for share in (0.25, 0.75)
  )
  held = TABLE._replace(test=np.array([True, False, False, False]))
  assert about.of_run(Config(), held, [])['test_rows'] == 1


@pytest.mark.slow
def test_the_head_says_what_was_run(tmp_path):
  config = dataclasses.replace(
      Config(), data=DataConfig('csv', '/home/me/my.csv', 'y')
  )
  fake_results.make(tmp_path)
  (tmp_path / 'config.json').write_text(json.dumps(
      dataclasses.asdict(config) | dict(samples='0123abcd')
  ))
  (tmp_path / '.config.json').unlink()
  about.write(tmp_path, config, TABLE, [
      'launch.py', '--config=q.py', '--config.data.path=/home/me/my.csv',
      '--workdir=/home/me/out',
  ])
  writing.write(tmp_path)
  html = (tmp_path / 'report.html').read_text()
  words = (
      'csv (my.csv), 4 rows, digest 0123abcd', 'no 25.0%, yes 75.0%',
      'the labels and 2 columns: age, city', '2 columns: pay, debt', '0 to 9',
      '2 x cpu', 'jax ', '--config.data.path=my.csv',
  )
  summary = (tmp_path / 'summary.md').read_text().replace('\\', '')
  for said in words:
    assert said in html and said in summary
  assert '/home/me' not in html.partition('<h2')[0]
  # It is at the head: after the verdict, before the sections.
  assert html.index('protects best') < html.index(words[0]) < html.index('<nav')


@pytest.mark.parametrize('content', [None, '', '[1]', '{', '[' * 99999])
def test_a_run_without_it_has_a_report(content, tmp_path):
  fake_results.make(tmp_path, seeds=2, defenses=('none',))
  if content is not None:
    (tmp_path / about.FILE).write_text(content)
  assert about.read(tmp_path) == {}
  found = reading.read(tmp_path)
  facts = dict(head.facts({}, {}, found, [{'device': 'a'}]))
  assert facts == dict(seeds='0, 1', devices='a')


def test_who_looks_again_has_trained_nothing(tmp_path):
  fake_results.make(tmp_path, seeds=2, defenses=('none',))
  for part in (tmp_path / 'parts').glob('*.json'):
    os.utime(part, (86400 * 365.25 * 40,) * 2)  # 2010.
  about.write(tmp_path, Config(), TABLE, ['launch.py', '--first'])
  about.write(tmp_path, Config(), TABLE, ['launch.py', '--second'])
  said = about.read(tmp_path)
  assert '--first' in said['command'] and said['date'][:4] in ('2009', '2010')
  os.utime(tmp_path / about.FILE, (0, 0))  # Something was trained since.
  about.write(tmp_path, Config(), TABLE, ['launch.py', '--third'])
  assert '--third' in about.read(tmp_path)['command']


def test_a_file_from_the_future_is_not_newer_than_all_results(tmp_path):
  """A clock went wrong, and more seeds were trained since it was set right."""
  fake_results.make(tmp_path, seeds=2, defenses=('none',))
  about.write(tmp_path, Config(), TABLE, ['launch.py', '--first'])
  os.utime(tmp_path / about.FILE, (time.time() + 1e6,) * 2)
  about.write(tmp_path, Config(), TABLE, ['launch.py', '--second'])
  assert '--second' in about.read(tmp_path)['command']


def test_who_looks_with_other_versions_has_trained_nothing(tmp_path):
  # A copy has files of another day, so it is written again there.
  work = fake_results.make(tmp_path, seeds=1, defenses=('none',))
  made = dict(date='2010-01-02', code='', versions=dict(jax='0.1'))
  work.save('none/0', store.read_results(tmp_path), dict(made=made))
  about.write(tmp_path, Config(), TABLE, ['launch.py'])
  said = about.read(tmp_path)
  assert (said['date'], said['versions']) == ('2010-01-02', dict(jax='0.1'))
  assert 'code' not in said


@pytest.mark.parametrize('called, said', [
    ('/usr/bin/vfljax', 'vfljax --config=q.py'),
    ('launch.py', 'python launch.py --config=q.py'),
    ('/site-packages/vfljax/__main__.py', 'python -m vfljax --config=q.py'),
])
def test_a_command_has_the_name_that_it_was_called_by(
    called, said, tmp_path, monkeypatch
):
  """A wheel has no launch.py to be run again."""
  monkeypatch.setattr(sys, 'argv', [called, '--help'])
  about.write(tmp_path, Config(), TABLE, ['vfljax', '--config=q.py'])
  assert about.read(tmp_path)['command'] == said


def test_no_head_says_in_which_folders_files_were():
  data = dict(name='csv', path='mine/bank.csv;theirs/telecom.csv')
  said = dict(head.facts({}, dict(data=data), [], []))
  assert said == dict(samples='csv (bank.csv;telecom.csv)')
