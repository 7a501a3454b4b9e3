"""READMEs and CLAIMS.md say what the records say, and nothing measured else."""
import dataclasses
import importlib
import json
import shlex
import sys

import pytest

from experiments import claims, evidence, studies, tables, verify
from tests.recorded import record
from vfljax.report import ranks, reading
from vfljax.runner.cli import arguments
from vfljax.runner.workdir import recording, saved

PAPERS = evidence.papers()
RECORDS = [
    evidence.HERE / paper / 'records' / f'{name}.json'
    for paper in PAPERS for name in verify.runnable(paper)
]
STUDIES = [f for f in RECORDS if verify.read(f)['format'] == studies.FORMAT]


@pytest.fixture
def kept(tmp_path, monkeypatch):
  monkeypatch.setattr(evidence, 'HERE', tmp_path)
  evidence.load.cache_clear()
  folder = tmp_path / 'p' / 'records'
  folder.mkdir(parents=True)
  (folder / 'r.json').write_text(recording.text(record()))
  yield folder
  evidence.load.cache_clear()


@pytest.mark.parametrize('asked, said', [
    ('r none auc', '80.0 +- 10.0'),  # n - 1: with n it would be 8.2
    ('r none auc mean 2', '80.00'),
    ('r none norm_scoring', '30.0 +- 10.0'),
    ('r none norm_scoring/last', '10.0 +- 0.0'),
    ('r none alone', '60.0 +- 0.0'),
    ('r iso:5 auc', '80.0 +- 0.0 (1 of 3 diverged)'),
    ('r iso loss', '5.0 +- 7.1 (1 of 3 diverged)'),
])
def test_quoted_numbers(kept, asked, said):
  assert evidence.quoted('p', asked) == said


def test_between_markers_stands_what_the_records_say(kept):
  text = (
      'AUC <!-- is: r none auc -->1.0<!-- end -->, paper 3.0 +- 1.0\n'
      '<!-- table: t -->\n| old 1.0 +- 0.5 |\n<!-- end -->\nmine: 5.0 +- 1.0\n'
  )
  made = evidence.rewritten(text, 'p', {'t': lambda: '| new |'})
  assert '-->80.0 +- 10.0<!--' in made
  assert '<!-- table: t -->\n| new |\n<!-- end -->' in made
  assert evidence.rewritten(made, 'p', {'t': lambda: '| new |'}) == made
  assert evidence.outside(made) == ['mine: 5.0 +- 1.0']


@pytest.mark.parametrize('text, said', [
    ('<!-- table: u -->\n<!-- end -->', "no table 'u'"),
    ('<!-- is: r none auc -->1', 'without its'),
    ('<!-- is: r gafm auc -->1<!-- end -->', 'No row'),
    ('<!-- is: r none mse -->1<!-- end -->', 'was not measured'),
])
def test_a_marker_that_names_nothing_is_refused(kept, text, said):
  with pytest.raises(ValueError, match=said):
    evidence.rewritten(text, 'p', {'t': lambda: ''})


@pytest.fixture(scope='module')
def asked_once():
  """What claims and tables ask of a record again and again is kept."""
  def remembered(fn):
    kept = {}

    def found(results, *more):
      key = id(results), *more
      if key not in kept:
        kept[key] = results, fn(results, *more)
      return kept[key][1]

    return found

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(ranks, 'trades', remembered(ranks.trades))
    patch.setattr(reading, 'at_epoch', remembered(reading.at_epoch))
    yield


@pytest.mark.parametrize('paper', PAPERS)
def test_the_readme_says_what_the_records_say(paper, asked_once):
  file = evidence.HERE / paper / 'README.md'
  text = file.read_text('utf-8')
  assert evidence.rewritten(text, paper) == text, (
      f'python -m experiments.tables {paper}'
  )
  assert not evidence.outside(text)


def test_the_claims_are_those_of_the_records(asked_once):
  """And the first page's numbers."""
  assert tables.changed([]) == {}


def test_the_papers_that_are_asked_for_are_compared(monkeypatch):
  for whole in (tables.claims, tables.again):
    monkeypatch.setattr(whole, 'text', whole.FILE.read_text)
  monkeypatch.setattr(
      evidence, 'rewritten',
      lambda text, paper, *made: text + 'other' * (paper == 'mid'),
  )
  file = evidence.HERE / 'mid' / 'README.md'
  found = tables.changed(['gafm', 'mid'])
  assert found == {file: file.read_text('utf-8') + 'other'}
  assert tables.main(['gafm', 'mid', '--check']) == 1
  assert tables.main(['gafm', '--check']) == 0


def test_tables_of_no_paper_are_refused(capsys):
  with pytest.raises(SystemExit, match='2'):
    tables.main(['--check', 'mid', 'nopaper'])
  assert 'nopaper: there are gafm, ' in capsys.readouterr().err


@pytest.mark.parametrize(
    'file', [f for f in RECORDS if f not in STUDIES], ids=lambda f: f.stem
)
def test_a_records_command_still_means_its_configuration(file):
  record = verify.read(file)
  argv = ['launch.py', *shlex.split(record['command'])[2:]]
  now = arguments.parse(argv).config
  asked = json.loads(json.dumps(dataclasses.asdict(now)))
  then = saved.completed(record['config'], now=now)
  assert asked | dict(paper=[]) == then | dict(paper=[])


@pytest.mark.parametrize('file', STUDIES, ids=lambda f: f.stem)
def test_a_studys_command_is_still_one(file, monkeypatch):
  begun = []
  monkeypatch.setattr(
      studies, 'begin', lambda *which: begun.extend(which) or sys.exit()
  )
  _, _, module, *argv = shlex.split(verify.read(file)['command'])
  with pytest.raises(SystemExit):
    importlib.import_module(module).main(argv)
  assert begun == [module, argv]  # All of its words were understood.


@pytest.mark.parametrize('paper', PAPERS)
def test_a_papers_rule_stands_above_its_verdicts(paper):
  text = claims.FILE.read_text('utf-8')
  assert f'{paper}/README.md)\n\n{claims.rule(paper)}\n\n|' in text
  assert 'not decided' in claims.rule(paper).lower()


def test_the_counts_are_of_all_claims():
  text = claims.FILE.read_text('utf-8')
  rows = {
      cells[0]: [int(c) for c in cells[1:]] for line in text.split('\n')
      if len(cells := line.strip('| ').split(' | ')) > 1
      and all(c.isdigit() for c in cells[1:])
  }
  assert {p: sum(rows[p]) for p in claims.papers()} == {
      p: len(claims.of(p)) for p in claims.papers()
  }
  assert f'({sum(rows["all"][:2])} decided)' in text


@pytest.mark.parametrize('paper', PAPERS)
def test_claims_have_records_or_a_reason(paper):
  for claim in claims.of(paper):
    if not claim.records:
      found = claim.judge()
      # A benchmark's record is not the paper's, and is linked to.
      assert found.held is None or '.json' in found.because, claim.text
      assert found.because


def test_one_record_a_paper_came_out_elsewhere():
  lines = json.loads((evidence.HERE / 'verified.json').read_text())
  off = {x['record'] for x in lines if x['came_out'] != x['values']}
  assert all(x['missed'] for x in lines if x['record'] in off)
  whole = {x['record'].split('/')[0] for x in lines if x['record'] not in off}
  assert whole >= set(PAPERS)
  for line in lines:
    assert (evidence.HERE / line['record']).exists() and line['values'] > 0
