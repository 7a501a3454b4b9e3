"""merge, compare and export: of finished work directories, nothing else."""
import csv
import json
import shutil
import subprocess

import pandas as pd
import pytest

from tests import fake_results
from tests.fake_results import row
from tests.report.test_report import Page
from tests.workdirs import everything
from vfljax.commands import export, merge
from vfljax.report import reading
from vfljax.report.tables import Table, Text
from vfljax.runner.errors import UserError
from vfljax.runner.main import main
from vfljax.runner.workdir import about, parts, store


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


NONE, ISO, MORE = ('none', None), ('iso', 5.0), ('iso', 7.0)


def test_parts_become_one(tmp_path, capsys):
  one = made(tmp_path / 'one', [NONE, ISO])
  two = made(tmp_path / 'two', [NONE, MORE])
  code, out, _ = call(capsys, 'merge', one, two, '--to', tmp_path / 'all')
  assert code == 0 and 'report.html' in out
  results, = reading.read(tmp_path / 'all')
  assert results.cells == [NONE, ISO, MORE]
  rows = store.read_results(tmp_path / 'all')
  assert len(rows) == 3 * 2 * 2  # What both have is there once.
  assert results.wanted == (NONE, ISO, MORE) and results.asked == (0, 1)
  assert 'Not run' not in (tmp_path / 'all/summary.md').read_text()
  # The same again, and not over its own parts.
  assert call(capsys, 'merge', one, two, '--to', tmp_path / 'all')[0] == 0
  code, _, error = call(capsys, 'merge', one, two, '--to', one)
  assert code == 2 and 'is one of those to be merged' in error


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


@pytest.mark.parametrize('asked', [
    dict(), dict(asked='sign_flip'),
    dict(asked='', listed=[dict(defense='sign_flip', strengths=[0.4])]),
])
def test_defenses_of_ones_own_are_merged_where_nobody_knows_them(
    asked, tmp_path, capsys
):
  mine = ('sign_flip', 0.4)
  one = made(tmp_path / 'one', [NONE, ISO])
  two = made(tmp_path / 'two', [NONE, mine], **asked)
  code, _, error = call(capsys, 'merge', one, two, '--to', tmp_path / 'all')
  results, = reading.read(tmp_path / 'all')
  assert code == 0, error
  assert results.cells == [NONE, ISO, mine]
  listed = store.read_config(tmp_path / 'all')['listed']
  assert [(e['defense'], e['strengths']) for e in listed] == [
      ('none', []), ('iso', [5.0]), mine[:1] + ([0.4],)
  ]


def test_parts_of_other_code_are_not_merged(tmp_path, capsys):
  of = lambda name, **sources: made(tmp_path / name, [NONE], sources=sources)
  one, two = of('one', a='1', b='2'), of('two', b='2', c='3')
  code, *_ = call(capsys, 'merge', one, two, '--to', tmp_path / 'all')
  assert code == 0
  kept = store.read_config(tmp_path / 'all')['sources']
  assert kept == dict(a='1', b='2', c='3')
  three = of('three', b='4')
  code, _, error = call(capsys, 'merge', one, three, '--to', tmp_path / 'no')
  assert code == 2 and 'ran other versions of b' in error
  assert not (tmp_path / 'no').exists()


def test_other_seeds_and_attacks_are_parts_too(tmp_path, capsys):
  one = made(tmp_path / 'one', [NONE, ISO])
  two = made(tmp_path / 'two', [NONE, ISO], seeds=(2, 3))
  three = made(tmp_path / 'three', [NONE, ISO], attack='mean_scoring')
  code, *_ = call(capsys, 'merge', one, two, three, '--to', tmp_path / 'all')
  results, = reading.read(tmp_path / 'all')
  assert code == 0 and results.asked == (0, 1, 2, 3)
  assert results.attacks == ['norm_scoring', 'mean_scoring']
  assert [*reading.utility(results, ISO)] == [0, 1, 2, 3]


def test_parts_whose_seeds_were_raised_are_merged_again(tmp_path, capsys):
  one, two = made(tmp_path / 'one', [NONE]), made(tmp_path / 'two', [ISO])
  place = merge.merge([one, two], str(tmp_path / 'all'))
  more = made(tmp_path / 'more', [NONE, ISO], seeds=(2, 3))
  assert call(capsys, 'merge', one, two, more, '--to', place)[0] == 0
  results, = reading.read(place)
  assert results.asked == (0, 1, 2, 3) and results.seeds == [0, 1, 2, 3]
  # With fewer, what is there would be dropped.
  code, _, error = call(capsys, 'merge', one, two, '--to', place)
  assert code == 2 and len(error.splitlines()) == 2
  assert f'{place} has what none of these folders has, for one auc of' in error
  assert 'the federation under iso 5, seed 2.' in error
  assert len(store.read_results(place)) == 16
  # What else differs is said first.
  other = made(tmp_path / 'other', [NONE], train=dict(epochs=9))
  code, _, error = call(capsys, 'merge', other, '--to', place)
  assert code == 2 and 'train.epochs is 5 there and 9 here' in error
  assert 'Choose another folder for what is merged.' in error


@pytest.mark.parametrize('seeds', [((0, 1), (5, 6)), ((5, 6), (0, 1))])
def test_seeds_with_a_gap_are_merged_again(seeds, tmp_path, capsys):
  one, two = (made(tmp_path / f'{s[0]}', [NONE], seeds=s) for s in seeds)
  gap = merge.merge([one, two], str(tmp_path / 'gap'))
  assert 'seeds' not in store.read_config(gap)
  # What was merged is a part, too.
  more = made(tmp_path / 'more', [NONE], seeds=(2, 3))
  code, _, error = call(capsys, 'merge', gap, more, '--to', tmp_path / 'two')
  assert code == 0, error
  results, = reading.read(tmp_path / 'two')
  assert sorted(results.seeds) == [0, 1, 2, 3, 5, 6]
  # A part that fills the gap, or not yet, goes into what was merged before.
  assert call(capsys, 'merge', one, two, more, '--to', gap)[0] == 0
  assert 'seeds' not in store.read_config(gap)
  last = made(tmp_path / 'last', [NONE, ISO], seeds=(4,))
  code, _, error = call(capsys, 'merge', one, two, more, last, '--to', gap)
  assert code == 0, error
  results, = reading.read(gap)
  assert results.asked == (0, 1, 2, 3, 4, 5, 6)
  assert len(store.read_results(gap)) == 2 * 8
  # Never is anything dropped from it.
  for some in ([one, more], [one, two]):
    code, _, error = call(capsys, 'merge', *some, '--to', gap)
    assert code == 2 and 'what none of these folders has' in error
  assert len(store.read_results(gap)) == 2 * 8


def about_it(folder, **changed):
  (folder / about.FILE).write_text(json.dumps(dict(
      rows=9, test_rows=0, classes={'no': 0.2, 'yes': 0.8},
      parties=[['age'], ['pay']], versions=dict(jax='0.9'), date='2026-01-02',
      command=f'python launch.py --config=c.py --config.defenses={folder.name}',
  ) | changed))


@pytest.mark.parametrize('other, parties, command', [
    (dict(date='2026-01-03'), 2, '=one; python'),
    (dict(parties=[['age'], ['wage']], versions={}), 0, '=one; python'),
    (None, 2, ''),  # An earlier version wrote none, of the same samples.
])
def test_what_was_merged_says_of_what_it_is(
    other, parties, command, tmp_path, capsys
):
  one, two = made(tmp_path / 'one', [NONE]), made(tmp_path / 'two', [ISO])
  about_it(one)
  if other is not None:
    about_it(two, **other)
  assert call(capsys, 'merge', one, two, '--to', tmp_path / 'all')[0] == 0
  said = about.read(tmp_path / 'all')
  assert said['rows'] == 9 and said['classes'] == {'no': 0.2, 'yes': 0.8}
  assert len(said.get('parties', ())) == parties
  assert command in said['command'] and bool(said['command']) == bool(command)
  assert said['date'] == (other or {}).get('date', '2026-01-02')
  assert said.get('versions', {}) == ({} if other and 'versions' in other else
                                      dict(jax='0.9'))
  page = (tmp_path / 'all/report.html').read_text()
  assert '9 rows' in page and ('1 column: pay' in page) == bool(parties)


def entry(defense, *strengths, **changed):
  return dict(
      defense=defense, strengths=[*strengths], options={}, label='', after=[],
      grid={},
  ) | changed


@pytest.mark.parametrize('one, two, said', [
    (dict(options=dict(power=1.0)), dict(options=dict(power=100.0)),
     'options.power is 1.0 and 100.0'),
    (dict(options=dict(power=1.0)), {}, "options.power is 1.0 and 'not set'"),
    ({}, dict(after=[entry('dcor', 0.3)]),
     "after is 'not set' and [{'defense': 'dcor', 'strengths': [0.3]}]"),
    (dict(grid=dict(level=[1, 2])), dict(grid=dict(level=[3, 4])),
     'grid.level is [1, 2] and [3, 4]'),
    (dict(label='mine'), dict(defense='max_norm', label='mine'),
     "defense is 'iso' and 'max_norm'"),
])
def test_two_methods_of_one_name_are_not_merged(
    one, two, said, tmp_path, capsys
):
  name = one.get('label') or 'iso'

  def part(folder, changed, seeds=(0, 1)):
    return made(
        tmp_path / folder, [NONE, (name, 5.0)], seeds, asked='',
        listed=[entry('iso', 5.0) | changed],
    )

  # The first one may have nothing of that name.
  base = made(tmp_path / 'base', [NONE])
  parts = base, part('one', one), part('two', two, (2, 3))
  code, _, error = call(capsys, 'merge', *parts, '--to', tmp_path / 'all')
  assert code == 2 and not (tmp_path / 'all').exists()
  assert f'/two have two methods called {name}: {said}' in error
  assert f"label='{name} 2' in its Entry" in error
  assert len(error.splitlines()) == 2
  # What differs is in a report over both, and a name of its own can be merged.
  place = tmp_path / 'both.html'
  code, out, _ = call(capsys, 'compare', *parts[1:], f'--to={place}')
  assert code == 0 and f'{name}: {said.partition(" ")[0]}' in out
  own = made(tmp_path / 'own', [NONE, ('other', 5.0)], asked='', listed=[
      entry('iso', 5.0) | two | dict(label='other')
  ])
  place = merge.merge([*parts[:2], own], str(tmp_path / 'all'))
  *_, last = store.read_config(place)['listed']
  assert last == entry('iso', 5.0) | two | dict(label='other')


def test_other_samples_are_no_parts_where_the_first_seed_splits(
    tmp_path, capsys
):
  data = dict(name='csv', path='/a/my.csv', resplit=False)
  one = made(tmp_path / 'one', [NONE], data=data)
  two = made(tmp_path / 'two', [NONE], seeds=(2, 3), data=data)
  code, _, error = call(capsys, 'merge', one, two, '--to', tmp_path / 'all')
  assert code == 2 and not (tmp_path / 'all').exists()
  assert 'the one split is that of first_seed, 0 and 2.\n' in error
  assert f'raise --config.seeds in {one} instead' in error
  # Where the split is the same, seeds are parts as ever.
  more = made(tmp_path / 'more', [NONE, ISO], seeds=(0, 1, 2), data=data)
  merge.merge([one, more], str(tmp_path / 'all'))
  assert store.read_config(tmp_path / 'all')['seeds'] == 3
  # Nor is anybody who asks for other seeds there sent to merge.
  with pytest.raises(UserError, match='for more seeds of it raise') as e:
    store.open_workdir(one, store.read_config(two), ['none/None'])
  assert 'merge' not in str(e.value) and len(str(e.value).splitlines()) == 2


def test_what_was_merged_says_nothing_where_no_part_does(tmp_path, capsys):
  one, two = made(tmp_path / 'one', [NONE]), made(tmp_path / 'two', [ISO])
  assert call(capsys, 'merge', one, two, '--to', tmp_path / 'all')[0] == 0
  assert not (tmp_path / 'all' / about.FILE).exists()


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


def test_merge_looks_at_parts_and_needs_to_know_which(tmp_path, capsys):
  one, two = made(tmp_path / 'one', [NONE]), made(tmp_path / 'two', [ISO])
  (one / 'results.jsonl').write_text(
      (one / 'results.jsonl').read_text().partition('\n')[0] + '\n'
  )
  place = merge.merge([one, two], str(tmp_path / 'all'))
  assert len(store.read_results(place)) == 8
  (one / 'timings.json').unlink()
  code, _, error = call(capsys, 'merge', one, two, '--to', tmp_path / 'no')
  assert code == 2 and 'one has lost its timings.json' in error
  assert not (tmp_path / 'no').exists()


def test_no_run_goes_on_in_what_was_merged(tmp_path):
  # Its units are the parts': a run would list half of them, and say 'done'.
  one = made(tmp_path / 'one', [NONE])
  two = made(tmp_path / 'two', [NONE], seeds=(2, 3))
  place = merge.merge([one, two], str(tmp_path / 'all'))
  whole, before = store.read_config(place), everything(place)
  assert len(store.read_results(place)) == 8
  asked = {k: v for k, v in whole.items() if k != 'merged'}
  with pytest.raises(UserError, match='was put together by vfljax merge'):
    store.open_workdir(place, asked, ['none/None'])
  # Earlier versions did not note it: then its units tell.
  for name in ('config.json', '.config.json'):
    (place / name).unlink()
  (place / 'config.json').write_text(json.dumps(asked))
  with pytest.raises(UserError, match=r'would drop them: none/None \(2\)'):
    store.open_workdir(place, asked, ['none/None'])
  assert store.read_results(place) == store.read_results(
      merge.merge([one, two], str(place))
  )
  assert everything(place) == before


def test_nothing_is_merged_into_a_run(tmp_path):
  one, two = made(tmp_path / 'one', [NONE]), made(tmp_path / 'two', [NONE])
  lines = two / 'epochs/none.jsonl'
  lines.write_text('{}')
  before = everything(two)
  with pytest.raises(UserError, match='is the work directory of a run'):
    merge.merge([one], str(two))
  assert everything(two) == before


def test_parts_ran_where_the_samples_lie_elsewhere(tmp_path):
  path = lambda path: dict(data=dict(name='csv', path=path))
  one = made(tmp_path / 'one', [NONE])
  two = made(tmp_path / 'two', [ISO], **path('/b/my.csv'), columns='0123')
  merge.merge([one, two], str(tmp_path / 'all'))
  three = made(tmp_path / 'three', [MORE], **path('/b/your.csv'))
  with pytest.raises(UserError, match="data.path is '/a/my.csv' and '/b/your"):
    merge.merge([one, three], str(tmp_path / 'other'))


@pytest.mark.parametrize('changed, message', [
    (dict(train=dict(epochs=6)), 'train.epochs is 5 and 6'),
    (dict(samples='4567'), "samples is '0123' and '4567'"),
    (dict(value=0.8), 'cannot be parts of one experiment'),
])
def test_two_experiments_are_not_merged(changed, message, tmp_path, capsys):
  one = made(tmp_path / 'one', [NONE])
  two = made(tmp_path / 'two', [NONE], **changed)
  code, _, error = call(capsys, 'merge', one, two, '--to', tmp_path / 'all')
  assert code == 2 and message in error and not (tmp_path / 'all').exists()


def test_a_folder_of_somebody_elses_stays_as_it_is(tmp_path, capsys):
  one = made(tmp_path / 'one', [NONE])
  (tmp_path / 'mine').mkdir()
  (tmp_path / 'mine/thesis.tex').write_text('x')
  code, *_ = call(capsys, 'merge', one, '--to', tmp_path / 'mine')
  assert code == 2
  assert [p.name for p in (tmp_path / 'mine').iterdir()] == ['thesis.tex']


def test_curves_of_all_parts_are_kept(tmp_path):
  for name, some in (('one', ('none', 'iso')), ('two', ('none', 'marvell'))):
    fake_results.make(tmp_path / name, defenses=some)
    own = json.loads((tmp_path / name / 'config.json').read_text())
    kept = json.dumps(own | dict(
        first_seed=0, attacks='', listed_attacks=[], listed=[]
    ))
    (tmp_path / name / 'config.json').write_text(kept)
    (tmp_path / name / '.config.json').unlink()
  merge.merge([tmp_path / 'one', tmp_path / 'two'], str(tmp_path / 'all'))
  results, = reading.read(tmp_path / 'all')
  assert {cell[0] for cell, _ in results.curves} == {'none', 'iso', 'marvell'}
  assert all(len(curve) == 10 for curve in results.curves.values())


def test_curves_of_parts_of_a_unit_are_kept_once(tmp_path):
  # All were dropped of whoever had measured anything that was there.
  def part(name, seeds, attack):
    folder = made(tmp_path / name, [NONE], seeds, attack=attack)
    own = store.read_config(folder)
    work = store.open_workdir(folder, own, ['none/None'])
    unit, = store.read_timings(folder)
    rows = parts.read(folder, 'none/None')['rows']
    epochs = [[seed, seed + 0.5] for seed in seeds]
    work.save('none/None', rows, unit, {
        'auc': epochs, f'{attack}/leak_auc': epochs,
    })
    return folder

  folders = [
      part('one', (0, 1), 'norm_scoring'), part('two', (1, 2), 'norm_scoring'),
      part('three', (0, 1), 'mean_scoring'),
  ]
  merge.merge(folders, str(tmp_path / 'all'))
  results, = reading.read(tmp_path / 'all')
  found = {name: curve[:, 0].tolist()
           for (_, name), curve in results.curves.items()}
  assert found == {
      'auc': [0, 1, 2], 'norm_scoring/leak_auc': [0, 1, 2],
      'mean_scoring/leak_auc': [0, 1],
  }


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


@pytest.mark.parametrize('arguments, message', [
    (['compare', '{}'], 'needs two work directories'),
    (['compare', '{}', '{}'], 'given twice'),
    (['compare', '{}', '{}/no'], 'is no folder'),
    (['export', '{}'], 'required: --to'),
    (['export', '{}', '--to=docx'], "no format 'docx'; there are csv"),
    (['export', '{}', '--to='], 'names no format; there are csv, parquet'),
    (['export', '{}', '--to=,'], 'names no format; there are csv, parquet'),
    (['merge', '{}'], 'required: --to'),
])
def test_what_commands_refuse(arguments, message, tmp_path, capsys):
  made(tmp_path, [NONE])
  code, _, error = call(capsys, *(a.format(tmp_path) for a in arguments))
  assert code == 2 and message in error and len(error.splitlines()) <= 2
  assert not (tmp_path / 'export').exists()


def test_figures_of_any_variant_have_names_of_files(tmp_path, capsys):
  work = store.open_workdir(tmp_path, config(), ['none/None'])
  attacks = 'norm_scoring:a/b', 'norm_scoring:a-b', 'norm_scoring:../c\0'
  work.save('none/None', [
      row('none', None, who, seed, metric, 'test', 0.9) for seed in (0, 1)
      for who, metric in [(None, 'auc'), *((a, 'leak_auc') for a in attacks)]
  ], dict(seeds=2, classes=2))
  code, out, error = call(capsys, 'export', tmp_path, '--to=svg')
  assert code == 0, error
  names = {path.name for path in (tmp_path / 'export').iterdir()}
  assert names == {
      'trade-off-worst.svg', 'trade-off-norm_scoring:a-b.svg',
      'trade-off-norm_scoring:a-b-2.svg', 'trade-off-norm_scoring:..-c-.svg',
  } and len(out.splitlines()) == 4


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


def test_numbers_are_exported_whole(tmp_path, capsys):
  made(tmp_path, [NONE, ISO])
  code, out, _ = call(capsys, 'export', tmp_path, '--to=csv,parquet,latex')
  assert code == 0 and len(out.splitlines()) == 5
  rows = store.read_results(tmp_path)
  with (tmp_path / 'export/results.csv').open() as file:
    found = list(csv.DictReader(file))
  assert [float(r['value']) for r in found] == [r['value'] for r in rows]
  assert {r['digest'] for r in found} == {'0123'}
  assert {r['file'] for r in found} == {'my.csv'}
  frame = pd.read_parquet(tmp_path / 'export/results.parquet')
  assert frame['value'].tolist() == [r['value'] for r in rows]
  assert (tmp_path / 'export/ranking.tex').exists()


def test_lines_of_several_runs_can_stand_in_one_file(tmp_path):
  made(tmp_path, [NONE])
  lines = (tmp_path / 'results.jsonl').read_text().splitlines()
  for line in map(json.loads, lines):
    assert (line['file'], line['digest']) == ('my.csv', '0123')
    assert [*line][:-2] == [*store.FIELDS]


def test_latex_is_what_latex_takes():
  text = export.latex(Table('T', 'n', ('a_b', '± & %'), [
      [Text('x^2 {y}\\', strong=True), Text('1.0 ± 0.1')],
  ]))
  assert text.splitlines()[3:6:2] == [
      r'a\_b & $\pm$ \& \% \\',
      r'\textbf{x\textasciicircum{}2 \{y\}\textbackslash{}} & 1.0 $\pm$ 0.1 \\',
  ]
  if shutil.which('pdflatex'):
    whole = (
        r'\documentclass{article}\usepackage{booktabs}\begin{document}' + text
        + r'\end{document}'
    )
    done = subprocess.run(
        ['pdflatex', '-draftmode', '-halt-on-error', '-output-directory=/tmp'],
        input=whole, text=True, capture_output=True, check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_figures_are_exported(tmp_path, capsys):
  fake_results.make(tmp_path / 'run', seeds=2, defenses=('none', 'iso'))
  code, out, _ = call(
      capsys, 'export', tmp_path / 'run', '--to=png,svg',
      f'--out={tmp_path / "figures"}',
  )
  assert code == 0
  names = {path.name for path in (tmp_path / 'figures').iterdir()}
  assert {'trade-off-worst.png', 'trade-off-worst.svg'} <= names
