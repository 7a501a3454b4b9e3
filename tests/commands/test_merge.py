"""merge: several work directories become one."""
import json

import pytest

from tests import fake_results
from tests.commands.finished import ISO, MORE, NONE, call, made
from tests.workdirs import everything
from vfljax.commands import merge
from vfljax.report import reading
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import about, collecting, parts, store


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
  assert code == 2 and 'is one of the folders to merge' in error


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


def test_many_units_are_read_again_as_often_as_few(
    tmp_path, capsys, monkeypatch
):
  """After each unit, all before it were: hundreds took a quarter of an hour."""
  calls, collect = [], collecting.collect
  monkeypatch.setattr(collecting, 'collect', lambda place, units, *more: (
      calls.append(units), collect(place, units, *more)
  )[1])
  for name, units in dict(few=[NONE], many=[NONE, ISO]).items():
    one = made(tmp_path / f'{name}1', units)
    two = made(tmp_path / f'{name}2', units, seeds=(2, 3))
    calls.clear()
    assert call(capsys, 'merge', one, two, '--to', tmp_path / name)[0] == 0
    assert len(calls) == 2  # Once it is made, and once all is there.


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


def test_parts_with_labels_that_were_lowered_are_merged_again(tmp_path):
  def part(attack, known):
    folder = made(tmp_path / attack, [NONE], attack=attack, attacks=attack)
    own = store.read_config(folder) | dict(attack=dict(known=known))
    (folder / 'config.json').write_text(json.dumps(own))
    (folder / '.config.json').unlink()
    return folder

  one, two = part('norm_scoring', 5), part('mean_scoring', 5)
  place = merge.merge([one, two], str(tmp_path / 'all'))
  assert store.read_config(place)['attack'] == dict(known=5)
  more = part('model_completion', 4)
  merge.merge([one, two, more], str(place))
  assert store.read_config(place)['attack'] == dict(known=4)
  results, = reading.read(place)
  assert len(results.attacks) == 3


def test_seeds_without_a_gap_are_the_runs_of_one_config(tmp_path):
  one, two = (
      made(tmp_path / f'{s[0]}', [NONE], seeds=s) for s in ((4, 5), (2, 3))
  )
  found = store.read_config(merge.merge([one, two], str(tmp_path / 'all')))
  assert (found['first_seed'], found['seeds']) == (2, 4)


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
  # Parts are added to what was merged before, whether they fill the gap or not.
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


def test_what_was_merged_says_nothing_where_no_part_does(tmp_path, capsys):
  one, two = made(tmp_path / 'one', [NONE]), made(tmp_path / 'two', [ISO])
  assert call(capsys, 'merge', one, two, '--to', tmp_path / 'all')[0] == 0
  assert not (tmp_path / 'all' / about.FILE).exists()


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
  with pytest.raises(UserError, match='was made by vfljax merge'):
    store.open_workdir(place, asked, ['none/None'])
  # Earlier versions did not note it: then its units tell.
  for name in ('config.json', '.config.json'):
    (place / name).unlink()
  (place / 'config.json').write_text(json.dumps(asked))
  with pytest.raises(UserError, match=r'would be lost: none/None \(2\)'):
    store.open_workdir(place, asked, ['none/None'])
  assert store.read_results(place) == store.read_results(
      merge.merge([one, two], str(place))
  )
  assert everything(place) == before


def test_nor_into_a_part_under_another_name(tmp_path, capsys):
  one, two = (made(tmp_path / name, [NONE], seeds)
              for name, seeds in (('one', (0, 1)), ('two', (2, 3))))
  before = (one / 'config.json').read_bytes()
  code, _, error = call(
      capsys, 'merge', one, two, f'--to={tmp_path}/new/../one'
  )
  assert code == 2 and 'is one of the folders to merge' in error
  assert (one / 'config.json').read_bytes() == before
  assert not (tmp_path / 'new').exists()


def test_a_damaged_part_is_named(tmp_path, capsys):
  one, two = (made(tmp_path / name, [NONE]) for name in ('one', 'two'))
  file = parts.file(two, 'none/None', '.json')
  file.write_text(file.read_text().replace('0.9', '0.8', 1))
  code, _, error = call(capsys, 'merge', one, two, f'--to={tmp_path}/all')
  assert code == 2 and error == (
      f'error: {file} is damaged: it is not what was written.\nRunning the '
      'experiment again mends it.\n'
  )
  assert not (tmp_path / 'all').exists()


@pytest.mark.parametrize('before, now, field', [
    (dict(listed=[dict(defense='iso', options=dict(clip=1))]),
     dict(listed=[dict(defense='iso', options=dict(clip=2))]), 'listed'),
    (dict(sources={'mine.py': 'a'}), dict(sources={'mine.py': 'b'}), 'mine.py'),
])
def test_nothing_is_merged_into_what_another_method_made(
    before, now, field, tmp_path, capsys
):
  """Its rows would stand under one name with those of another method."""
  one = made(tmp_path / 'one', [NONE, ISO], **before)
  two = made(tmp_path / 'two', [NONE, ISO], seeds=(2, 3), **now)
  whole = merge.merge([one], str(tmp_path / 'all'))
  kept = everything(whole)
  code, _, error = call(capsys, 'merge', two, f'--to={whole}')
  assert code == 2 and field in error and '--workdir' not in error
  assert everything(whole) == kept


def test_a_part_that_has_lost_its_configuration(tmp_path, capsys):
  one, two = (made(tmp_path / name, [NONE]) for name in ('one', 'two'))
  (two / 'config.json').unlink()
  (two / '.config.json').unlink()
  code, _, error = call(capsys, 'merge', one, two, f'--to={tmp_path}/all')
  assert code == 2 and f'{two} has lost its config.json' in error
  assert not (tmp_path / 'all').exists()


@pytest.mark.parametrize('one, other, alike', [
    (0.5, 0.50009, True), (0.5, 0.5002, False), (27.5, 27.502, True),
    (27.5, 27.504, False), (-3e6, -3.0002e6, True), (None, None, True),
    (None, 0.5, False), (0.5, None, False),
])
def test_what_another_program_rounds_is_the_same(one, other, alike):
  """A PSNR of 27 and a loss of a million are rounded at other digits."""
  fields = dict.fromkeys(merge.Key._fields, 'x') | dict(strength=1.0)
  rows = [fields | dict(value=value) for value in (one, other)]
  seen = {}
  assert not merge._seen(seen, rows[0], 'first')
  if alike:
    assert merge._seen(seen, rows[1], 'second')
    return
  with pytest.raises(UserError, match='cannot be parts of one experiment'):
    merge._seen(seen, rows[1], 'second')


def test_nothing_is_merged_into_a_run(tmp_path):
  one, two = made(tmp_path / 'one', [NONE]), made(tmp_path / 'two', [NONE])
  lines = two / 'epochs/none.jsonl'
  lines.write_text('{}')
  before = everything(two)
  with pytest.raises(UserError, match='is the work directory of a run'):
    merge.merge([one], str(two))
  assert everything(two) == before


def test_a_folder_of_somebody_elses_stays_as_it_is(tmp_path, capsys):
  one = made(tmp_path / 'one', [NONE])
  (tmp_path / 'mine').mkdir()
  (tmp_path / 'mine/thesis.tex').write_text('x')
  code, _, said = call(capsys, 'merge', one, '--to', tmp_path / 'mine')
  assert code == 2 and 'another --to,' in said and '--workdir' not in said
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
