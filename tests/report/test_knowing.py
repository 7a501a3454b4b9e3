"""Attacks that are registered elsewhere keep their score; what nobody can score
is named, and never left out of a verdict without a word."""
import json

import pytest

from tests.report.test_report import OWN, workdir
from vfljax import measure
from vfljax.attack import ROUND, TRAINED, Attack, Wants, recipe
from vfljax.commands import advise
from vfljax.leakage import COMPLETION, IMAGES, LABELS, Known, Score
from vfljax.report import ending, ranks, reading, verdict, writing
from vfljax.runner.cli.goals import Goal
from vfljax.runner.experiment import told
from vfljax.runner.workdir import store
from vfljax.views import TrainedBottom


def cells(attack='a', metric='leak_auc'):
  return {
      ('none', None): {
          (None, 'auc'): [0.9] * 3, ('norm_scoring', 'leak_auc'): [0.6] * 3,
          (attack, metric): [0.9] * 3,
      },
      ('iso', 5.0): {
          (None, 'auc'): [0.9] * 3, ('norm_scoring', 'leak_auc'): [0.55] * 3,
          (attack, metric): [0.8] * 3,
      },
  }


def of_its_own(guess, truth):
  return dict(mine=(guess * truth).mean())


@pytest.mark.parametrize('about, wanted, score', [
    (dict(), 0, LABELS), (dict(stage=ROUND), 0, LABELS),
    (dict(stage=TRAINED), 0, COMPLETION), (dict(stage=TRAINED), 3, IMAGES),
    (dict(stage=TRAINED, measure=measure.of_images), 3, IMAGES),
    (dict(stage=TRAINED, measure=measure.of_completion), 0, COMPLETION),
    (dict(stage=TRAINED, score=LABELS), 3, LABELS),
])
def test_the_score_is_by_default_that_of_what_is_measured(about, wanted, score):
  made = recipe(**about)(lambda: None)
  attack = Attack(TrainedBottom, lambda key, view: 0, wants=Wants(wanted))
  assert made.known(attack).score is score
  assert made.known().trained == (about.get('stage') == TRAINED)


@pytest.mark.parametrize('found', [
    Known(LABELS), Known(COMPLETION, True, True, 'One line.'),
    Known(Score(('mine',), (0.5,))), Known(Score(('mine',), ('other',))),
])
def test_timing_records_keep_it(found):
  again = json.loads(json.dumps({told.FIELD: {'a': told.said(found)}}))
  assert told.read([{}, again, OWN]) == {'a': found}


@pytest.mark.parametrize('damaged', [
    None, [], {'a': None}, {'a': {}}, {'a': {'score': {'metrics': 1}}},
    {'a': {'score': LABELS._asdict(), 'more': 1}},
])
def test_of_what_is_damaged_nothing_is_known(damaged):
  assert told.read([{told.FIELD: damaged}]) == {}


def test_who_has_not_registered_it_ranks_it_as_who_ran_it(tmp_path):
  results, = reading.read(workdir(tmp_path, cells()).path)
  assert {r.best.worst for r in ranks.rank(results)} == {'a'}
  said = ' '.join(verdict.sentences(results, ranks.rank(results)))
  assert 'NOT COUNTED' not in said and 'more than 25 points' in said


def test_its_baseline_is_none_of_the_attacks(tmp_path):
  work = workdir(tmp_path, cells())
  known = told.read([{told.FIELD: {'a': told.said(Known(LABELS, True))}}])
  results, = reading.of_rows(store.read_results(work.path), {}, known=known)
  assert results.attacks == ['norm_scoring'] and results.baselines == ['a']


def test_what_nobody_can_score_is_named_everywhere(tmp_path):
  """A directory of before, read where its attack is not registered."""
  work = workdir(tmp_path, cells('strange'))
  results, = reading.read(work.path)
  assert reading.leak_metric(results, 'strange') == ''
  writing.write(work.path)
  for said in (
      ending.text(work.path), (work.path / 'summary.md').read_text(),
      (work.path / 'report.html').read_text(),
      advise.text(str(work.path), Goal(budget=2)),
  ):
    assert 'NOT COUNTED: strange. No attack' in ' '.join(said.split())


def test_a_score_that_looks_at_nothing_measured_is_told(tmp_path):
  results, = reading.read(workdir(tmp_path, cells(metric='mine')).path)
  said = ' '.join(verdict.sentences(results, ranks.rank(results)))
  assert (
      'NOT COUNTED: a measured mine, but its score looks for leak_auc, auc, '
      'accuracy. Give its recipe a score=Score(...)'
  ) in said


def test_attacks_are_grouped_by_what_they_attack(tmp_path):
  found = cells()
  for cell in found.values():
    cell['model_inversion', 'ssim'] = [0.5] * 3
  results, = reading.read(workdir(tmp_path, found).path)
  assert ranks.attack_groups(results) == {
      'gradients': ['norm_scoring', 'a'], 'trained model': ['model_inversion'],
  }
