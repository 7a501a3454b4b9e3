"""What commands on finished work directories have in common; compare."""
import errno
import os
from pathlib import Path

import pytest

from tests.commands.finished import ISO, MORE, NONE, call, config, made
from tests.fake_results import row
from tests.report.test_report import Page
from vfljax.commands import advise, compare
from vfljax.report import reading
from vfljax.runner.cli.goals import Goal
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import store


@pytest.mark.parametrize('command', ['merge', 'compare'])
@pytest.mark.parametrize('order', [
    ['one', '--to=new', 'two'], ['one', '--to', 'new', 'two'],
    ['--to', 'new', 'one', 'two'],
])
def test_a_flag_may_stand_between_folders(
    command, order, tmp_path, capsys, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  made(tmp_path / 'one', [NONE, ISO])
  made(tmp_path / 'two', [NONE, MORE])
  code, out, error = call(capsys, command, *order)
  assert code == 0 and 'Report: new' in out, error


def test_runs_are_compared_on_one_page(tmp_path, capsys, monkeypatch):
  monkeypatch.setenv('COLUMNS', '90')
  one = made(tmp_path / 'a/run', [NONE, ISO])
  two = made(tmp_path / 'b/run', [NONE, ISO], value=0.7,
             train=dict(epochs=6))
  page = tmp_path / 'both.html'
  code, out, _ = call(capsys, 'compare', one, two, '--to', page)
  assert code == 0 and max(map(len, out.splitlines()[:-1])) <= 90
  assert 'train.epochs' in out and 'a/run' in out and 'b/run' in out
  html = page.read_text()
  parsed = Page(html)
  assert len(set(parsed.ids)) == len(parsed.ids)
  words = ' '.join(parsed.words)
  assert 'What differs' in words and words.count('Every measurement') >= 2
  assert 'data.name' not in words.partition('a/run: VHNN')[0].partition(
      'What differs')[2]  # It does not differ.


@pytest.mark.parametrize('epochs, fields, columns', [
    ((5, 6, 7), {}, ('run', 'train.epochs')),
    ((5, 6), {}, ('run', 'train.epochs')),
    ((5, 6), dict(experiment='b'), ('field', 'r0', 'r1')),
])
def test_many_runs_that_differ_in_little_have_a_row_each(
    epochs, fields, columns, tmp_path
):
  """A column each left none of them a letter's room in a terminal."""
  folders = [
      made(tmp_path / f'r{i}', [NONE], train=dict(epochs=n),
           **(fields if i else {})) for i, n in enumerate(epochs)
  ]
  table, = compare.differences(compare.read(folders))
  rows = [[cell.text for cell in row] for row in table.rows]
  assert table.columns == columns
  if columns[0] == 'run':
    assert rows == [[f'r{i}', f'{n}'] for i, n in enumerate(epochs)]
  else:
    assert ['train.epochs', '5', '6'] in rows and len(rows) == 2
  assert all(row[0].strong for row in table.rows)


def test_many_runs_have_their_figures_in_their_own_reports(
    tmp_path, monkeypatch
):
  """Of 100 runs they took a minute and ten megabytes."""
  runs = compare.read([made(tmp_path / name, [NONE, ISO]) for name in 'ab'])
  drawn = compare.written(runs)
  monkeypatch.setattr(compare, 'DRAWN', 1)
  text = compare.written(runs)
  assert '<figure>' in drawn and 'are no figures here' not in drawn
  assert '<figure>' not in text and 'are no figures here' in text
  for said in ('Every measurement', 'Utility and leakage', 'class="podium"'):
    assert text.count(said) == drawn.count(said) > 1


def test_what_diverged_is_told_without_figures_too(tmp_path, monkeypatch):
  folders = [tmp_path / name for name in 'ab']
  for folder in folders:
    work = store.open_workdir(
        folder, config(defenses='none,iso(5)'), ['none', 'iso']
    )
    for name, cell, last in (('none', NONE, 0.8), ('iso', ISO, float('nan'))):
      work.save(name, [
          row(*cell, who, seed, metric, 'test', value)
          for seed, value in enumerate((0.9, last))
          for who, metric in ((None, 'auc'), ('norm_scoring', 'leak_auc'))
      ], dict(seeds=2, classes=2))
  runs = compare.read(folders)
  assert all(one.ranked for one in runs)
  for drawn in (2, 1):
    monkeypatch.setattr(compare, 'DRAWN', drawn)
    text = compare.written(runs)
    assert text.count('Without a number: iso (5) diverged in 1 of 2') >= 4
  for said in compare.verdicts(runs):  # A warning is no verdict yet.
    assert 'Without a number: ' in said
    assert said.endswith('none has all of its seeds.')


def test_a_run_without_a_row_is_told_in_words(tmp_path, capsys):
  """Beside a run with one it was not in the terminal at all."""
  one = made(tmp_path / 'one', [NONE, ISO])
  folder = tmp_path / 'no_attack'
  store.open_workdir(folder, config(listed_attacks=[]), ['none']).save('none', [
      row('none', None, None, seed, 'auc', 'test', 0.9) for seed in (0, 1)
  ], dict(seeds=2, classes=2))
  code, said, _ = call(capsys, 'compare', one, folder, '--to', tmp_path / 'c')
  assert code == 0 and 'no_attack: VHNN on ' in said
  assert '\none: VHNN on ' not in said


def test_one_run_at_two_places_is_given_twice(tmp_path, capsys):
  """It stood there as two runs that agree."""
  made(tmp_path / 'a', [NONE])
  (tmp_path / 'link').symlink_to(tmp_path / 'a')
  made(tmp_path / 'b', [NONE])
  folders = [tmp_path / name for name in ('b', 'a', 'link')]
  code, _, error = call(capsys, 'compare', *folders, '--to', tmp_path / 'c')
  assert code == 2 and 'link is given twice, first as' in error
  with pytest.raises(UserError, match='a is given twice: leave one out'):
    compare.read(folders[1:2] * 2)  # Nor does the very same object hang.
  assert len(error.splitlines()) == 1


def test_of_a_defense_there_is_a_row_for_each_run_that_has_it(tmp_path):
  folders = [
      made(tmp_path / 'a', [NONE]), made(tmp_path / 'b', [NONE, ISO]),
  ]
  rows = [
      [cell.text for cell in row[:3]]
      for row in compare.best(compare.read(folders)).rows
  ]
  assert rows == [
      ['no defense', 'a', ''], ['no defense', 'b', ''], ['iso', 'b', '5'],
  ]


def test_a_defense_that_did_not_finish_says_so_in_its_row(tmp_path):
  """Its mean of one seed stood there like one of all."""
  folders = [made(tmp_path / name, [NONE, ISO], (0, 1)) for name in 'ab']
  store.open_workdir(folders[0], config(defenses='none,iso(5)', seeds=2), [
      'none/None', 'iso/5.0',
  ]).save('iso/5.0', [
      row('iso', 5.0, who, 0, metric, 'test', 0.9)
      for who, metric in ((None, 'auc'), ('norm_scoring', 'leak_auc'))
  ], dict(seeds=2, classes=2))
  cells = {
      (r[0].text, r[1].text): r[3].text
      for r in compare.best(compare.read(folders)).rows
  }
  assert 'did not finish in 1 of 2 seeds' in cells['iso', 'a']
  assert 'finish' not in cells['iso', 'b'] + cells['no defense', 'a']


@pytest.mark.parametrize('names', ['a', 'ab'])
def test_of_several_settings_each_is_named(names, tmp_path):
  """And of a single one none, as there is nothing to tell it from."""
  rows = [
      row(name, None, attack, 0, metric, 'test', 0.9)
      | dict(dataset=dataset) for dataset in names for name in ('none', 'iso')
      for attack, metric in ((None, 'auc'), ('norm_scoring', 'leak_auc'))
  ]
  store.open_workdir(tmp_path, {}, ['all']).save('all', rows, {})
  text = advise.text(str(tmp_path), Goal(budget=2))
  titles = [' '.join(results.title) for results in reading.read(tmp_path)]
  assert text.count('What was measured') == len(titles) == len(names)
  assert [title in text for title in titles] == [len(names) > 1] * len(names)


@pytest.mark.parametrize('known', ['known', 'of one unit', 'of none', 'gone'])
def test_without_timings_the_number_of_classes_is_unknown(
    known, tmp_path, monkeypatch
):
  folder, asked, read = made(tmp_path / 'run', [NONE, ISO]), [], reading.read
  file = folder / 'timings.json'
  if known == 'gone':
    file.unlink()
  elif known != 'known':
    text = file.read_text()
    times = 1 if known == 'of one unit' else -1
    file.write_text(text.replace('"classes": 2', '"seconds": 2', times))

  def noted(path, classes):
    asked.append(classes)
    return read(path, classes)

  monkeypatch.setattr(reading, 'read', noted)
  one, = compare.read([folder])
  advise.text(str(folder), Goal(budget=2))
  want = 2 if known in ('known', 'of one unit') else 0
  assert (one.name, one.results.classes) == ('run', want)
  assert asked == [want, want]


def test_a_run_of_recommend_goes_by_its_own_folder(tmp_path, capsys):
  for name in ('mine', 'yours'):
    made(tmp_path / name / 'report', [NONE, ISO])
  (tmp_path / 'mine' / 'coarse').mkdir()
  page = tmp_path / 'both.html'
  folders = (tmp_path / 'mine', tmp_path / 'yours')
  code, _, error = call(capsys, 'compare', *folders, '--to', page)
  words = ' '.join(Page(page.read_text()).words)
  assert code == 0 and 'mine: VHNN' in words and 'report: VHNN' in words, error


def test_runs_without_an_attack_say_so_instead_of_an_empty_table(
    tmp_path, capsys
):
  one, two = (
      made(tmp_path / name, [NONE], attack=None, listed_attacks=[])
      for name in ('one', 'two')
  )
  page = tmp_path / 'both.html'
  code, out, _ = call(capsys, 'compare', one, two, '--to', page)
  said = ' '.join(out.split())
  assert code == 0 and said.count('No defense can be scored') == 2
  assert 'Every defense at its best' not in out + page.read_text()


@pytest.mark.parametrize('arguments, message', [
    (['compare', '{}'], 'needs two work directories'),
    (['compare', '{}', '{}'], 'given twice'),
    (['compare', '{}', '{}/no'], 'is no folder'),
    (['merge', '{0}/a', '{0}', '{0}/b', '', '--to={0}/d'],
     "report is in.\nOthers without results: '{0}/b', ''."),
    (['compare', '{0}', ''], 'An empty name has no results.jsonl: give'),
    (['export', '{}'], 'required: --to'),
    (['export', '{}', '--to=docx'], "no format 'docx'; there are csv"),
    (['export', '{}', '--to='], 'names no format; there are csv, parquet'),
    (['export', '{}', '--to=,'], 'names no format; there are csv, parquet'),
    (['merge', '{}'], 'required: --to'),
    (['compare', '{}', '--t=x'], "argument '--t=x' (did you mean --to?)."),
    (['advise', '{}', '--budge=0.123456789'], 'did you mean --budget?'),
    (['export', '{}', '--zzzzzzz', '--to=csv'], "argument '--zzzzzzz'."),
])
def test_what_commands_refuse(arguments, message, tmp_path, capsys):
  made(tmp_path, [NONE])
  code, _, error = call(capsys, *(a.format(tmp_path) for a in arguments))
  assert code == 2 and len(error.splitlines()) <= 2
  assert message.replace('{0}', f'{tmp_path}') in error
  assert not (tmp_path / 'export').exists()


def test_a_page_that_cannot_be_written_asks_for_another_place(
    tmp_path, capsys
):
  """By the flag of its own: compare has no --workdir."""
  one, two = (made(tmp_path / name, [NONE]) for name in ('one', 'two'))
  code, _, error = call(
      capsys, 'compare', one, two, f'--to={tmp_path}/no/page.html'
  )
  assert code == 2 and error.rstrip().endswith('or choose another --to.')


def test_a_page_overwrites_only_its_like(tmp_path, capsys):
  one, two = (made(tmp_path / name, [NONE, ISO]) for name in ('one', 'two'))
  page, results = tmp_path / 'page.html', one / 'results.jsonl'
  for _ in range(2):
    assert call(capsys, 'compare', one, two, f'--to={page}')[0] == 0
  before = results.read_bytes()
  code, _, error = call(capsys, 'compare', one, two, f'--to={results}')
  assert code == 2 and 'exists and is no page' in error
  assert results.read_bytes() == before and len(error.splitlines()) == 2


def test_a_run_that_was_stopped_says_what_is_missing(tmp_path, capsys):
  one = made(tmp_path / 'one', [NONE, ISO], asked='iso(5,7),max_norm')
  two = made(tmp_path / 'two', [NONE, ISO])
  code, out, _ = call(capsys, 'advise', one, '--budget=2')
  assert code == 0 and 'Not run yet: iso (7), max norm.' in out
  others = out.partition('Defenses that were not run:')[2].partition('(--')[0]
  assert 'marvell' in others and 'max_norm' not in others
  place = tmp_path / 'page.html'
  _, out, _ = call(capsys, 'compare', one, two, f'--to={place}')
  assert 'one: Not run yet: iso (7), max norm.' in out and 'two: N' not in out


@pytest.mark.parametrize('command', [
    ('advise', 'none', '--budget=2'), ('export', 'none', '--to=csv'),
    ('compare', 'one', 'none', '--to=x'), ('merge', 'one', 'none', '--to=x'),
])
def test_a_run_stopped_before_its_first_result_is_none_yet(
    command, tmp_path, capsys, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  made(tmp_path / 'one', [NONE])
  store.open_workdir('none', config(), ['none'])
  code, _, error = call(capsys, *command)
  assert code == 2 and not (tmp_path / 'x').exists()
  assert 'none has no results yet' in error


@pytest.mark.parametrize('command', [
    ['advise', '--budget=2'], ['compare', 'two', '--to=new.html'],
    ['export', '--to=csv', '--out=new'],
])
@pytest.mark.parametrize('timings, left', [(True, 5), (False, 5), (False, 0)])
def test_results_that_lost_their_last_lines_are_not_believed(
    command, timings, left, tmp_path, capsys, monkeypatch
):
  """A full disk or a copy that was broken off may leave whole lines."""
  monkeypatch.chdir(tmp_path)
  for name in ('one', 'two'):
    made(tmp_path / name, [NONE, ISO])
  file = tmp_path / 'one/results.jsonl'
  whole = file.read_text()
  file.write_text(''.join(whole.splitlines(keepends=True)[:left]))
  if not timings:  # Which is written, and mostly copied, after the results.
    (tmp_path / 'one/timings.json').unlink()
  code, _, error = call(capsys, command[0], 'one', *command[1:])
  assert code == 2 and not [*tmp_path.glob('new*')]
  assert f'one/results.jsonl has lost its end: {left} of 8 lines' in error
  assert 'The command that made it' in error and len(error.splitlines()) == 2
  file.write_text(whole)
  assert call(capsys, command[0], 'one', *command[1:])[0] == 0


def test_what_is_anothers_is_no_traceback(tmp_path, capsys, monkeypatch):
  folder = made(tmp_path / 'mine', [NONE])

  def denied(place):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))

  monkeypatch.setattr(Path, 'is_file', denied)
  code, _, error = call(capsys, 'advise', folder, '--budget=2')
  assert code == 2 and len(error.splitlines()) == 2
  assert error.startswith(f'error: Permission denied: {folder}')
