"""What the report says of seeds without a number, and of ties."""
import math

import pytest

from tests.report.test_report import workdir
from vfljax.report import (
    advice, ranks, reading, tables, verdict, writing,
)
from vfljax.report.lost import Lost
from vfljax.runner.cli.goals import Goal

NAN = math.nan


def verdict_of(folder, cells, config=None):
  """(the verdict's sentences, the defenses in their order, summary.md)."""
  work = workdir(folder, cells, config)
  writing.write(work.path)
  results, = reading.read(work.path)
  ranked = ranks.rank(results)
  return (
      verdict.sentences(results, ranked), [r.defense for r in ranked],
      (folder / 'summary.md').read_text(),
  )


def cell_of(utility, leak):
  return {(None, 'auc'): utility, ('a', 'leak_auc'): leak}


def test_what_diverged_is_named_first_and_ranks_last(tmp_path):
  said, order, text = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 4, [0.9] * 4),
      ('dp_laplace', 0.1): cell_of([NAN, NAN, NAN, 0.9], [0.5] * 4),
      ('iso', 1.0): cell_of([0.9] * 4, [0.65] * 4),
  })
  assert 'dp laplace (0.1) diverged in 3 of 4 seeds' in said[0]
  assert said[1].startswith('iso at strength 1 protects best')
  assert order == ['iso', 'none', 'dp_laplace']
  assert '**Without a number: dp laplace (0.1) diverged in 3 of 4' in text
  assert 'no defense > dp laplace (diverged in 3 of 4 seeds)' in text
  assert '**0 (diverged in 3 of 4 seeds)**' in text
  assert '0.900 (1 of 4 seeds)' in text  # Never a mean alone.
  html = (tmp_path / 'report.html').read_text()
  assert html.index('diverged in 3 of 4') < html.index('protects best')


def test_a_strength_that_diverged_is_not_a_defenses_best(tmp_path):
  said, order, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.9] * 2),
      ('iso', 1.0): cell_of([0.9, NAN], [0.5] * 2),
      ('iso', 2.0): cell_of([0.9] * 2, [0.68] * 2),
  })
  assert 'iso (1) diverged in 1 of 2 seeds' in said[0]
  assert 'iso at strength 2 protects best' in said[1]
  assert order == ['iso', 'none']


def test_a_loss_over_some_seeds_says_so(tmp_path):
  """Seeds that no undefended run has, as in a merge: here the bad ones."""
  said, _, text = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.9] * 2),
      ('iso', 1.0): cell_of([0.89, 0.89, 0.5, 0.5], [0.6] * 4),
  })
  assert 'no defense did not finish in 2 of 4 seeds' in said[0]
  assert 'at a cost of 1.0 ± 0.0 (2 of 4 seeds)' in said[1]
  assert '1.0 ± 0.0 (2 of 4)' in text
  results, = reading.read(tmp_path)
  advised = advice.sentences(results, Goal(budget=2))[0]
  assert 'at a cost of 1.0 ± 0.0 (2 of 4 seeds)' in advised


def test_a_leakage_over_some_seeds_says_so(tmp_path):
  """Beyond a baseline that was not measured in all of its seeds."""
  said, *_ = verdict_of(tmp_path, {
      ('none', None): {
          (None, 'auc'): [0.9] * 4, ('model_completion', 'auc_last'): [0.9] * 4,
          ('local_model', 'auc_last'): [0.6] * 2,
      },
      ('iso', 1.0): {
          (None, 'auc'): [0.9] * 4, ('model_completion', 'auc_last'): [0.7] * 4,
      },
  })
  assert 'iso at strength 1' in said[1]
  assert 'leaking 10.0 ± 0.0 points (2 of 4 seeds)' in ' '.join(said)


def test_what_has_no_number_at_all_is_told(tmp_path):
  said, order, text = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.9] * 2),
      ('iso', 1.0): cell_of([NAN, NAN], [NAN, NAN]),
  })
  assert 'iso (1) diverged in 2 of 2 seeds' in said[0]
  assert order == ['none']
  assert 'Not ranked: iso (diverged in 2 of 2 seeds).' in text


@pytest.mark.parametrize('utility, diverged', [
    ([NAN, NAN], True), ([NAN], False), ([0.9, NAN], False),
])
def test_an_undefended_run_that_diverged_is_not_asked_for(
    utility, diverged, tmp_path
):
  """Neither the verdict nor the advice says that it takes one."""
  cells = {
      ('none', None): cell_of(utility, [NAN] * len(utility)),
      ('iso', 1.0): cell_of([0.9] * 2, [0.6] * 2),
  }
  said, _, _ = verdict_of(tmp_path, cells, dict(seeds=2))
  results, = reading.read(tmp_path)
  advised = advice.sentences(results, Goal(budget=2))
  for last in said[-1], advised[-1]:
    assert ('learning_rate' in last) == diverged
    assert not (diverged and 'undefended run' in last)


def test_seeds_that_did_not_finish_are_counted(tmp_path):
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 3, [0.9] * 3),
      ('iso', 1.0): cell_of([0.9], [0.6]),
  }, dict(seeds=3))
  assert 'iso (1) did not finish in 2 of 3 seeds' in said[0]
  assert said[1] == 'No defense can be judged: none has all of its seeds.'


def test_an_attack_without_a_number_is_told_and_ranks_last(tmp_path):
  said, order, text = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.9] * 2),
      ('iso', 1.0): cell_of([0.9] * 2, [0.6, NAN]),
  })
  assert said[0] == (
      'Without a number: a on iso (1) in 1 of 2 seeds. Means are over the '
      'other seeds. A defense ranks last if it diverged, did not finish, or '
      'lacks a number that an attack has for other defenses.'
  )
  assert said[1] == (
      'No defense can be judged: none has all of its seeds and attacks.'
  )
  assert order == ['none', 'iso']
  assert '10.0 (1 of 2)' in text
  assert 'iso (an attack without a number in 1 of 2 seeds)' in text


def test_an_attack_without_a_number_is_as_one_not_run(tmp_path):
  attacks = 'norm_scoring', 'mean_scoring'
  of = lambda *leaks: {(None, 'auc'): [0.9] * 2} | {
      (attack, 'leak_auc'): [leak] * 2 for attack, leak in zip(attacks, leaks)
  }
  said, order, text = verdict_of(tmp_path, {
      ('none', None): of(0.99, 0.7), ('iso', 1.0): of(NAN, 0.51),
      ('max_norm', None): of(0.65, 0.6),
  })
  assert 'norm scoring on iso (1) in 2 of 2 seeds' in said[0]
  assert said[1].startswith('max norm protects best')
  assert 'the only attack' not in ' '.join(said)
  assert order == ['max_norm', 'none', 'iso']
  assert 'iso (an attack without a number in 2 of 2 seeds)' in text
  results, = reading.read(tmp_path)
  advised = advice.sentences(results, Goal(budget=2))
  assert advised[0].startswith('Within 2 points of loss, max_norm leaks least')
  assert 'iso' not in advised[0]


def test_what_a_defense_does_not_know_of_itself_is_told(tmp_path):
  """It ranks as others do: VMask hides on without a number, and seeds that
  diverged are named as such."""
  told = lambda utility, fact: cell_of(utility, [0.6] * 3) | {
      (None, 'simulated_leakage'): fact, (None, 'loss'): [NAN] * 3,
  }
  said, order, text = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 3, [0.9] * 3),
      ('vmask', 0.25): told([0.9] * 3, [0.2, NAN, NAN]),
      ('vmask', 0.5): told([0.9, 0.9, NAN], [0.2, 0.2, NAN]),
  })
  assert said[0] == (
      'Numbers that a defense could not give of itself: simulated leakage of '
      'vmask (0.25) in 2 of 3 seeds.'
  )
  assert said[1].startswith('Without a number: vmask (0.5) diverged in 1 of 3')
  assert order == ['vmask', 'none'] and said[0] in text


@pytest.mark.parametrize('leaks, left', [
    ([0.6, NAN], True), ([NAN, NAN], False),
])
def test_means_are_of_other_seeds_where_there_are_some(tmp_path, leaks, left):
  said, _, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.9] * 2),
      ('iso', 1.0): cell_of([0.9] * 2, leaks),
  })
  assert said[0].startswith('Without a number: a on iso (1)')
  assert ('Means are over the other seeds.' in said[0]) == left


@pytest.mark.parametrize('gone, left', [
    (dict(), False), (dict(diverged=1), True), (dict(unfinished=3), True),
    (dict(diverged=2, unfinished=2), False), (dict(blind=3), True),
    (dict(blind=4), False), (dict(diverged=2, blind=2), True),
    (dict(spared=2), False),
])
def test_a_mean_is_over_some_seeds_if_others_are_gone(gone, left):
  assert Lost(**dict(diverged=0, unfinished=0, of=4) | gone).leaves_some == left


def test_the_only_attack_without_a_number_leaves_no_place(tmp_path):
  said, order, text = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.9] * 2),
      ('iso', 1.0): cell_of([0.9] * 2, [NAN] * 2),
  })
  assert order == ['none']
  assert (
      'Not ranked: iso (an attack without a number in 2 of 2 seeds)'
  ) in text


def test_a_number_that_nobody_has_is_nobodys_loss(tmp_path):
  said, order, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9] * 2, [0.9, NAN]),
      ('iso', 1.0): cell_of([0.9] * 2, [0.6, NAN]),
  })
  assert 'a on iso (1) in 1 of 2 seeds' in said[0]
  assert said[1].startswith('iso at strength 1 protects best')
  assert order == ['iso', 'none']


def test_half_of_the_leak_for_half_a_point_is_not_nothing(tmp_path):
  said, order, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9], [1.0]),
      ('iso', 1.0): cell_of([0.9], [0.95]),
      ('marvell', 4.0): cell_of([0.895], [0.76]),
  })
  assert said[0].startswith('No defense protects well enough at an acceptable')
  assert said[1].startswith('marvell at strength 4 helps most.')
  assert '26.0 points better than guessing, against 50.0' in said[1]
  assert order == ['marvell', 'iso', 'none']  # All of them score 0.


def test_what_wrecks_the_model_is_not_the_only_help(tmp_path):
  said, order, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9], [1.0]),
      ('dp_laplace', 1.0): cell_of([0.6], [0.51]),
      ('marvell', 4.0): cell_of([0.895], [0.76]),
  })
  assert order == ['dp_laplace', 'marvell', 'none']
  assert said[1].startswith('dp laplace at strength 1 helps most.')
  assert said[2].startswith(
      'At a loss of at most 6 points it is marvell at strength 4.'
  )


def test_ties_are_decided_by_leakage_and_then_by_cost(tmp_path):
  _, order, _ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9], [1.0]),
      ('a1', None): cell_of([0.892], [0.60]),  # Each scores 4.
      ('a2', None): cell_of([0.8905], [0.597]),  # The largest sum but one.
      ('a3', None): cell_of([0.894], [0.60]),  # The smallest.
  })
  assert order == ['a2', 'a3', 'a1', 'none']


def test_what_is_shown_is_what_is_scored(tmp_path):
  # Leaks of 5.00 and 5.04 and costs of 0.50 and 0.54 read the same.
  said, order, text = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9], [1.0]),
      ('a1', None): cell_of([0.895], [0.5500]),
      ('a2', None): cell_of([0.8946], [0.5504]),
      ('a3', None): cell_of([0.895], [0.5506]),  # Reads 5.1.
  })
  assert said[0].startswith('a1 and a2 protect best, alike: PU score 5 of 5')
  assert order == ['a1', 'a2', 'a3', 'none']
  assert 'Preference: a1 ≈ a2 > a3 > no defense.' in text
  results, = reading.read(tmp_path)
  assert [t.score for t in ranks.trades(results)] == [0, 5, 5, 4]
  assert [r.groups['gradients'] for r in ranks.rank(results)] == [5, 5, 4, 0]
  tinted = [[c.score for c in row] for row in tables.overview(results).rows]
  assert tinted[2][4:] == [5, 5] and tinted[3][4:] == [5, 4]


def test_a_loss_that_reads_6_is_a_fair_price(tmp_path):
  said, *_ = verdict_of(tmp_path, {
      ('none', None): cell_of([0.9], [1.0]),
      ('iso', 1.0): cell_of([0.8396], [0.76]),  # Costs 6.04.
      ('marvell', 4.0): cell_of([0.85], [0.8]),
  })
  assert said[1].startswith('iso at strength 1 helps most.')
  assert 'At a loss of at most 6' not in ' '.join(said)


def test_better_than_guessing_is_said_of_guessing_alone(tmp_path):
  found = {(None, 'accuracy'): [0.9],
           ('model_completion', 'accuracy_last'): [0.8]}
  local = found | {('local_model', 'accuracy_last'): [0.7]}
  said, _, _ = verdict_of(tmp_path / 'over', {
      ('none', None): local, ('iso', 1.0): local,
  }, dict(seeds=1))
  text = ' '.join(said)
  assert '10.0 points better than a local model trained on the same' in text
  assert 'guessing' not in text
  # Without the baseline, of two classes by the AUC, guessing is what is left.
  plain = {(None, 'auc'): [0.9], ('model_completion', 'auc_last'): [0.8]}
  said, _, _ = verdict_of(tmp_path / 'alone', {
      ('none', None): plain, ('iso', 1.0): plain,
  })
  assert '30.0 points better than guessing' in ' '.join(said)


LISTED = dict(defenses='', listed=[
    dict(defense='iso', strengths=[1.0, 1 / 3]),
    dict(defense='marvell', strengths=[4.0]),
    dict(defense='mid', strengths=[0.1], label='MID', grid=dict(width=[2, 4])),
])
HERE = {
    ('none', None): cell_of([0.9], [0.9]), ('iso', 1.0): cell_of([0.9], [0.6])
}


def test_what_an_interrupted_run_never_began_is_named_first(tmp_path):
  said, order, text = verdict_of(tmp_path, HERE, LISTED)
  assert said[0] == (
      'Not run yet: iso (0.333333), marvell, MID width=2, MID width=4.'
  )
  assert '**Not run yet: iso' in text and order == ['iso', 'none']
  html = (tmp_path / 'report.html').read_text()
  assert html.index('Not run yet') < html.index('protects best')


def test_what_nobody_asked_for_is_not_missed(tmp_path):
  said, _, _ = verdict_of(tmp_path / 'a', HERE, LISTED | dict(defenses='iso'))
  assert said[0] == 'Not run yet: iso (0.333333).'
  whole = HERE | {('iso', 0.3333333): cell_of([0.9], [0.6])}
  said, _, _ = verdict_of(tmp_path / 'b', whole, LISTED | dict(defenses='iso'))
  assert 'Not run' not in ' '.join(said)
  # Marvell is for two classes, and these have no AUC.
  ten = {('none', None): {(None, 'accuracy'): [0.9]}}
  said, _, _ = verdict_of(tmp_path / 'c', ten, LISTED)
  assert said[0].startswith('Not run yet: iso, MID')


@pytest.mark.parametrize('config', [
    dict(listed=[dict(defense='gone')]),
    dict(listed=[dict(defense='gone', strengths=[])]),
])
def test_a_configuration_that_does_not_say_names_nothing(tmp_path, config):
  said, _, _ = verdict_of(tmp_path, HERE, config)
  assert 'Not run' not in ' '.join(said)


def test_the_worst_of_fewer_attacks_does_not_win(tmp_path):
  # As in what `merge` puts together: nobody ran the second on iso.
  attacks = 'norm_scoring', 'mean_scoring'
  of = lambda *leaks: {(None, 'auc'): [0.9] * 2} | {
      (attack, 'leak_auc'): [leak] * 2 for attack, leak in zip(attacks, leaks)
  }
  said, order, text = verdict_of(tmp_path, {
      ('none', None): of(0.7, 0.99), ('iso', 1.0): of(0.51),
      ('max_norm', None): of(0.6, 0.65),
  })
  assert 'Not attacked by all: iso (1) without mean scoring.' in said[0]
  assert said[1].startswith('max norm protects best')
  assert order == ['max_norm', 'none', 'iso']
  assert 'iso (not attacked by all in 2 of 2 seeds)' in text
  results, = reading.read(tmp_path)
  advised = advice.sentences(results, Goal(budget=2))
  assert advised[0].startswith('Within 2 points of loss, max_norm leaks least')


def test_an_attack_that_all_bore_in_some_seeds_spares_nobody(tmp_path):
  cell = {(None, 'auc'): [0.9] * 2, ('norm_scoring', 'leak_auc'): [0.6] * 2,
          ('mean_scoring', 'leak_auc'): [0.7]}
  said, *_ = verdict_of(tmp_path, {('none', None): cell, ('iso', 1.0): cell})
  assert not [each for each in said if 'Not attacked by all' in each]
