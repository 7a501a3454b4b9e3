"""Which work directories are parts of one experiment, and which are not."""
from pathlib import Path

import pytest

from tests.commands.finished import ISO, MORE, NONE, call, made
from tests.report.test_report import Page
from vfljax.commands import merge, same
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import store


def test_parts_of_other_code_are_not_merged(tmp_path, capsys):
  of = lambda name, row=ISO, **sources: made(
      tmp_path / name, [row], sources=sources
  )
  one, two = of('one', a='1', b='2'), of('two', OTHER, b='2', c='3')
  code, *_ = call(capsys, 'merge', one, two, '--to', tmp_path / 'all')
  assert code == 0
  kept = store.read_config(tmp_path / 'all')['sources']
  assert kept == dict(a='1', b='2', c='3')
  three = of('three', b='4')
  code, _, error = call(capsys, 'merge', one, three, '--to', tmp_path / 'no')
  assert code == 2 and 'ran other versions of b' in error
  assert not (tmp_path / 'no').exists()


OWN, OTHER = ('mine', 0.5), ('max_norm', None)


@pytest.mark.parametrize('rows, others, said', [
    # The first part has nothing of the file in which the others differ.
    ([NONE, OWN], {'mine.py': '2'}, '/two and {}/three ran other versions'),
    ([NONE, OWN], {'copy.py': '2'}, '/two ran mine.py, and {}/three ran copy.'),
    # A file has taken the place of a defense of vfljax's.
    ([NONE, ISO], {}, "ran mine.py, and {}/one ran vfljax's own code under"),
])
def test_nor_are_two_codes_of_one_name(
    rows, others, said, tmp_path, capsys
):
  one = made(tmp_path / 'one', [NONE, ISO])
  two = made(tmp_path / 'two', rows, (2, 3), sources={'mine.py': '1'})
  parts = [one, two]
  if others:
    parts.append(made(tmp_path / 'three', rows, (4, 5), sources=others))
  code, _, error = call(capsys, 'merge', *parts, '--to', tmp_path / 'all')
  assert code == 2 and said.format(tmp_path) in error
  assert len(error.splitlines()) == 2 and not (tmp_path / 'all').exists()


def test_a_file_may_be_renamed_and_an_earlier_version_have_named_none(tmp_path):
  one = made(tmp_path / 'one', [NONE, OWN], sources={'mine.py': '1'})
  two = made(tmp_path / 'two', [NONE, OWN], (2, 3), sources={'copy.py': '1'})
  more = {'copy.py': '1', 'more.py': '2'}  # Of another defense.
  three = made(tmp_path / 'three', [NONE, OWN, ISO], sources=more)
  four = made(tmp_path / 'four', [NONE, OWN], (4, 5))
  configs = [store.read_config(p) for p in (one, two, three, four)]
  same.check([one, two, three, four], configs)


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
  field, _, values = said.partition(' is ')
  assert code == 0 and f'{name}: {field}' in out
  first = values.partition(' and ')[0].strip("'").replace('not set', '–')
  assert f'{name}: {field} {first}' in ' '.join(Page(place.read_text()).words)
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
  assert 'the only split is that of first_seed, 0 and 2.\n' in error
  assert f'raise --config.seeds in {one} instead' in error
  # Where the split is the same, seeds are parts as ever.
  more = made(tmp_path / 'more', [NONE, ISO], seeds=(0, 1, 2), data=data)
  merge.merge([one, more], str(tmp_path / 'all'))
  assert store.read_config(tmp_path / 'all')['seeds'] == 3
  # Nor is anybody who asks for other seeds there sent to merge.
  with pytest.raises(UserError, match='with the same split raise') as e:
    store.open_workdir(one, store.read_config(two), ['none/None'])
  assert 'merge' not in str(e.value) and len(str(e.value).splitlines()) == 2


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


def test_rounds_that_no_attack_needs_are_no_other_experiment():
  config = lambda attacks, rounds: dict(
      attacks=attacks, attack=dict(replay=False, replay_rounds=rounds)
  )
  rounds = lambda *of: [c['attack']['replay_rounds'] for c in same.agreed(of)]
  idle, later = config('norm_scoring', 1), config('norm_scoring', 0)
  assert rounds(idle, later) == [1, 1]
  needed, more = (config('learned_gradient', k) for k in (0, 8))
  assert rounds(idle, needed) == [0, 0] and idle['attack']['replay_rounds'] == 1
  assert rounds(needed, more, idle) == [0, 8, 0]  # Two experiments.
  assert same.agreed([dict(attack={}), {}]) == [dict(attack={}), {}]


def test_labels_that_no_attack_knows_are_no_other_experiment():
  """A small table lowers them where an attack knows them, and only there."""
  config = lambda asked, known: dict(
      attacks=asked, attack=dict(known=known),
      listed_attacks=['norm_scoring', 'model_completion'],
  )
  known = lambda *of: [c['attack']['known'] for c in same.agreed(of)]
  idle, few = config('norm_scoring', 5), config(' model_completion', 4)
  assert known(idle, few) == [4, 4] and known(few, idle) == [4, 4]
  assert known(idle, config('', 3)) == [3, 3]  # All that are listed.
  assert known(idle, config('mine', 3)) == [3, 3]  # Of a program's own.
  replayed = config('gradient_clustering:a,norm_scoring', 2)
  assert known(few, idle, replayed) == [4, 4, 2]  # Two experiments.


def test_a_variant_may_say_itself_how_many_labels_it_knows():
  """So that a small table lowers what others know beside it, not what it does.
  """
  variants = [
      dict(name='mixmatch:9', options=dict(known=9)),
      dict(name='mixmatch:slow', options=dict(epochs=9)),
  ]
  config = lambda asked, known: dict(
      attacks=asked, attack=dict(known=known), variants=variants,
      listed_attacks=[],
  )
  known = lambda *of: [c['attack']['known'] for c in same.agreed(of)]
  few = config('model_completion', 2)
  assert known(few, config('mixmatch:9, norm_scoring', 4)) == [2, 2]
  for asked in ('mixmatch:slow', 'mixmatch', 'mixmatch:9,mixmatch'):
    assert known(few, config(asked, 4)) == [2, 4]  # Two experiments.


@pytest.mark.parametrize('attack', [
    'noisy_sample', 'missing_features:often@2', 'active_completion',
])
def test_what_attackers_trained_differently_is_no_part(
    attack, tmp_path, capsys
):
  """Also where no value shows it, as other seeds and defenses have none."""
  one = made(tmp_path / 'one', [NONE, ISO])
  two = made(tmp_path / 'two', [NONE, MORE], (2, 3), attack=attack)
  for parts in ([one, two], [two, one]):
    code, _, error = call(capsys, 'merge', *parts, '--to', tmp_path / 'all')
    name = attack.partition('@')[0]
    assert code == 2 and f'{name} changes how the federation trains' in error
    assert f'only {two} has it' in error and len(error.splitlines()) == 2
    assert not (tmp_path / 'all').exists()
  # One that does nothing, as at rate 0: both have a training of one seed, and
  # values are compared.
  like = made(tmp_path / 'like', [NONE, ISO], attack=attack)
  code, _, error = call(capsys, 'merge', one, like, '--to', tmp_path / 'both')
  assert code == 0, error
  more = made(tmp_path / 'more', [NONE, ISO], (4, 5), attack=attack)
  code, _, error = call(capsys, 'merge', two, more, '--to', tmp_path / 'all')
  assert code == 0, error


def test_variants_of_an_optimizer_train_alike():
  def row(attack, seed):
    return dict(defense='none', strength=None, attack=attack, seed=seed)

  one, two = [row('active_completion', 0)], [row('active_completion:80', 1)]
  same.check_training({Path('one'): one, Path('two'): two})
  with pytest.raises(UserError, match='noisy_sample:b changes'):
    same.check_training({
        Path('one'): [row('noisy_sample', 0)],
        Path('two'): [row('noisy_sample', 1), row('noisy_sample:b', 1)],
    })


def test_hundreds_of_parts_with_other_seeds_are_not_compared_in_pairs(
    tmp_path, monkeypatch
):
  folder = made(tmp_path / 'one', [NONE, ISO])
  config, looked = store.read_config(folder), []
  check_fields = same._check_fields
  monkeypatch.setattr(same, '_check_fields', lambda *pair: looked.append(
      check_fields(*pair)
  ))
  many = [config | dict(first_seed=2 * i) for i in range(200)]
  same.check([folder] * 200, many)
  assert not looked
  fixed = [c | dict(data=c['data'] | dict(resplit=False)) for c in many[:2]]
  with pytest.raises(UserError, match='test other samples'):
    same.check([folder] * 2, fixed)
  with pytest.raises(UserError, match='train.epochs'):
    same.check([folder] * 201, [*many, config | dict(train=dict(epochs=6))])


def test_a_part_that_does_not_say_what_it_was_asked_for_is_named(
    tmp_path, capsys
):
  one, two = made(tmp_path / 'one', [NONE]), made(tmp_path / 'two', [ISO])
  file = two / 'config.json'
  file.write_text(file.read_text().replace('"attacks"', '"attack s"'))
  code, _, error = call(capsys, 'merge', one, two, '--to', tmp_path / 'all')
  assert code == 2 and f'{file} lacks attacks.\n' in error
