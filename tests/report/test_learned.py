"""A federation that is no better than a constant answer is said to be that."""
import json
import re

import pytest

from tests.report.test_report import workdir
from vfljax.report import (
    advice, ending, learned, ranks, reading, verdict, writing,
)
from vfljax.runner.cli.goals import Goal


def results_of(folder, utility, metric='auc', shares=None, leak='leak_auc'):
  cells = {
      ('none', None): {(None, metric): utility, ('a', leak): [0.95] * 3},
      ('iso', 5.0): {(None, metric): utility, ('a', leak): [0.6] * 3},
  }
  work = workdir(folder, cells)
  if shares:
    (work.path / 'about.json').write_text(json.dumps(dict(classes=shares)))
  return reading.read(work.path, len(shares or 'ab'))[0]


@pytest.mark.parametrize('utility, metric, shares, said', [
    ([0.49, 0.5, 0.52], 'auc', None,
     'NOTHING LEARNED: undefended, the federation has a test AUC of 0.503 ± '),
    ([0.45] * 3, 'auc', None, 'more than guessing: a coin has 0.500'),
    ([0.91, 0.9, 0.89], 'accuracy', dict(a=0.05, b=0.9, c=0.05),
     "NOTHING LEARNED: .* accuracy of .*: always saying 'b' has 0.900"),
    ([0.55] * 3, 'auc', None, 'Little to lose: .*that costs 5.0 points leaves'),
    ([0.93] * 3, 'accuracy', dict(a=0.05, b=0.9, c=0.05),
     "Little to lose: .* 0.930, and always saying 'b' has 0.900"),
    ([0.7] * 3, 'auc', dict(a=0.99, b=0.01), ''),
    ([0.6] * 3, 'accuracy', dict(a=0.3, b=0.3, c=0.4), ''),
    ([0.4] * 3, 'accuracy', None, ''),  # Nobody knows how many are of which.
])
def test_what_there_is_to_lose_is_said(
    utility, metric, shares, said, tmp_path
):
  found = learned.sentences(results_of(tmp_path, utility, metric, shares))
  assert len(found) == bool(said)
  assert not found or re.search(said, found[0])


@pytest.mark.parametrize('shares, said', [
    (dict(a=0.2, b=0.7, c=0.1), '70.0%, 36.7 points more than one of 3 equal'),
    (dict(a=0.3, b=0.4, c=0.3), '40.0%, 6.7 points more'),
    (dict(a=0.3, b=0.37, c=0.33), ''),
    (dict(b=0.02) | {f'c{i}': 0.01 for i in range(98)}, '2.0%, 1.0 points'),
])
def test_unequal_classes_make_accuracies_say_little(shares, said, tmp_path):
  results = results_of(tmp_path, [0.9] * 3, 'accuracy', shares, 'accuracy')
  found = learned.sentences(results)
  assert len(found) == bool(said)
  assert not found or found[0].startswith(
      f"Classes are unequal: always saying 'b' is right in {said}"
  )


def test_it_comes_before_advice_and_verdict(tmp_path):
  results = results_of(tmp_path, [0.5] * 3)
  given = advice.sentences(results, Goal(budget=2))
  said = verdict.sentences(results, ranks.rank(results))
  for first, second, *_ in (given, said):
    assert first.startswith('NOTHING LEARNED') and 'iso' in second
  # Both stand at the end of a run, and what they share is said once.
  writing.write(tmp_path, goal=Goal(budget=2))
  text = ending.text(tmp_path, Goal(budget=2))
  assert text.count('NOTHING LEARNED') == 1


@pytest.mark.parametrize('utility, warns', [([0.5] * 3, 1), ([0.8] * 3, 0)])
def test_a_verdict_about_nothing_looks_like_a_warning(
    utility, warns, tmp_path
):
  results_of(tmp_path, utility)
  for goal in (Goal(), Goal(budget=2)):
    page = writing.write(tmp_path, goal=goal).read_text()
    assert page.count('class="verdict warns"') == warns
    assert page.count('class="verdict"') == 1 - warns
