"""The script that says which takeaways held, on results made up for it."""
import dataclasses
import json

import pytest

from experiments import evidence
from experiments.kang2022 import alike, by_seed, pu_scores, takeaways, vnn
from vfljax.report import reading


def write(folder, algorithm, cells, config=None):
  """results.jsonl from {(defense, strength): {(attack, metric): value}}."""
  rows = [
      dict(
          experiment='x', dataset='d', algorithm=algorithm, defense=defense,
          strength=strength, attack=attack, seed=seed, metric=metric,
          split='test', value=value,
      )
      for (defense, strength), found in cells.items()
      for (attack, metric), value in found.items() for seed in (0, 1)
  ]
  folder.mkdir()
  text = '\n'.join(map(json.dumps, rows))
  (folder / 'results.jsonl').write_text(text + '\n')
  if config:
    saved = json.dumps(dataclasses.asdict(config))
    (folder / 'config.json').write_text(saved)
  return folder


def cell(auc, scoring, model_gradients, completion):
  leaks = {(a, 'leak_auc'): scoring for a in pu_scores.SETTINGS[1][1]}
  leaks |= {(a, 'leak_auc'): model_gradients for a in pu_scores.SETTINGS[2][1]}
  return leaks | {
      (None, 'auc'): auc, ('model_completion', 'auc_last'): completion
  }


@pytest.fixture
def vlr(tmp_path):
  return write(tmp_path / 'vlr', 'vlr', {
      ('none', None): cell(0.9, 1.0, 0.7, 0.8),
      ('iso', 25.0): cell(0.80, 0.5, 0.5, 0.5),
      ('iso', 5.0): cell(0.893, 0.56, 0.52, 0.75),
      ('dp_laplace', 0.1): cell(0.893, 0.6, 0.58, 0.8),
  })


def verdict(folders, start):
  runs = [run for folder in folders for run in alike.read(folder)]
  found = takeaways.verdicts(runs)
  return next(v for v in found if v.claim.startswith(start))


def test_scores_are_those_of_the_best_strength(vlr):
  everything = reading.read(vlr)
  scores = pu_scores.of_setting(everything, 1)['d, VLR']
  # ISO 5: leakage 6 and loss 0.7 score 4; ISO 25 loses 10 points: 0.
  assert scores == dict(none=0, iso=4, dp_laplace=4)
  assert pu_scores.of_setting(everything, 3)['d, VLR']['iso'] == 1
  assert pu_scores.order(pu_scores.of_setting(everything, 3)) == (
      'iso > dp laplace'
  )


def test_verdicts_follow_the_numbers(vlr):
  assert verdict([vlr], 'VLR 1').held is True
  assert verdict([vlr], 'VLR 2').held is True
  assert verdict([vlr], 'VLR 3').held is True
  assert verdict([vlr], 'VNN 1a').held is None


def test_a_verdict_can_fail(tmp_path):
  bad = write(tmp_path / 'bad', 'vlr', {
      ('none', None): cell(0.9, 1.0, 0.7, 0.8),
      ('iso', 5.0): cell(0.9, 0.7, 0.5, 0.5),
  })
  assert verdict([bad], 'VLR 1').held is False
  assert verdict([bad], 'VLR 2').held is False  # ISO thwarts MC here.


@pytest.mark.parametrize('ssim, held', [
    ((0.5, 0.3, 0.2, 0.1), True), ((0.5, 0.3, 0.4, 0.1), False),
])
def test_mixup_must_fall(tmp_path, ssim, held):
  names = [('none', None), *(('mixup', float(n)) for n in (2, 3, 4))]
  folder = write(tmp_path / 'mi', 'vsnn', {
      name: {(None, 'accuracy'): 0.9, ('model_inversion', 'ssim'): value}
      for name, value in zip(names, ssim)
  })
  assert verdict([folder], 'MI, VSNN: SSIM falls').held is held
  assert verdict([folder], 'MI, VSNN: every').held is True


def test_the_table_is_markdown(vlr, capsys):
  assert takeaways.main([str(vlr)]) == 0
  printed = capsys.readouterr().out
  assert '| VLR 2: protections have difficulty' in printed and 'HELD' in printed
  assert takeaways.main([]) == 2


def test_where_nothing_leaks_there_is_nothing_to_thwart(tmp_path):
  local = {('local_model', 'auc_last'): 0.78}
  quiet = write(tmp_path / 'quiet', 'vhnn', {
      ('none', None): cell(0.9, 1.0, 0.7, 0.8) | local,
      ('iso', 5.0): cell(0.9, 0.5, 0.5, 0.78) | local,
  })
  found = verdict([quiet], 'VNN 2')
  assert found.held is None
  assert found.because.startswith('nothing to thwart') and 'd, VHNN: ' in (
      found.because
  )


def write_both(path, whole, split):
  """Runs of two variants of vnn.py, in which VSNN leaks more."""
  folders = []
  for name, leak in ((whole, 0.5), (split, 0.7)):
    folders.append(write(path / name, name.split(',')[0], {
        ('none', None): cell(0.9, 1.0, 0.7, 0.8),
        ('iso', 5.0): cell(0.9, leak, leak, leak),
    }, vnn.get_config(name)))
  return folders


@pytest.mark.parametrize('data', ['spambase', 'criteo', 'bhi', 'nuswide2_bal'])
def test_algorithms_are_compared_where_party_b_holds_the_same(tmp_path, data):
  found = verdict(
      write_both(tmp_path, f'vhnn,{data}', f'vsnn,{data}'), 'VNN 3'
  )
  assert found.held is True and 'left out' not in found.because


@pytest.mark.parametrize('whole, split', [
    ('vhnn,spambase', 'vsnn,spambase,all'), ('vhnn,criteo', 'vsnn,criteo,all'),
    ('vhnn,nuswide2_bal', 'vsnn,nuswide2_imb'),
])
def test_other_features_are_not_compared_and_it_says_so(tmp_path, whole, split):
  found = verdict(write_both(tmp_path, whole, split), 'VNN 3')
  assert found.held is None
  assert 'does not hold the same features in both' in found.because


def test_a_data_set_of_one_algorithm_alone_does_not_count(tmp_path):
  """Its scores would be of other data, not of another algorithm."""
  one, other = write_both(tmp_path, 'vhnn,spambase', 'vsnn,spambase')
  rows = (other / 'results.jsonl').read_text().replace('"d"', '"e"')
  (other / 'results.jsonl').write_text(rows)
  assert verdict([one, other], 'VNN 3').held is None


def inverted(*rows):
  """Results of (defense, strength, attack, SSIM by seed)."""
  base = dict(experiment='e', dataset='d', algorithm='vhnn', split='test')
  (results,) = reading.of_rows([
      base | dict(defense=defense, strength=strength, attack=attack,
                  metric='ssim', seed=seed, value=value)
      for defense, strength, attack, values in rows
      for seed, value in enumerate(values)
  ], {}, 10)
  return results


def test_inversion_is_compared_within_a_seed(monkeypatch):
  """MixUp's mean is lower, one seed's SSIM is not."""
  found = inverted(
      ('none', None, 'model_inversion', (0.2, 0.5)),
      ('none', None, 'model_inversion:conv', (0.3, 0.1)),
      ('none', None, 'mean_image', (0.16, 0.18)),
      ('mixup', 2.0, 'model_inversion', (0.25, 0.1)),
      ('mixup', 3.0, 'model_inversion', (0.1, 0.12)),
  )
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: evidence.Kept({}, found)
  )
  # Each algorithm's record counts: both are this one.
  assert by_seed.lower('mixup') == '6 of 8'
  assert by_seed.lower('mixup', than='mean_image') == '6 of 8'
  assert by_seed.widest('vsnn') == '0.10 to 0.25'
  changes = by_seed.COMPARED['other convolutions less the same structure'](
      'vhnn'
  )
  assert changes == pytest.approx({0: 0.1, 1: -0.4})
  assert by_seed.below(changes) == '1 of 2'
  assert by_seed.mean('vhnn', 'conv') == pytest.approx(0.2)
  assert by_seed.guessed('mean_image') == '0.170'


@pytest.mark.parametrize('changes, said, less', [
    ((-0.2, -0.1), '-0.150 (-0.785 to 0.485)', None),  # t of one is 12.7.
    ((-0.2, -0.19, float('nan')), '-0.195 (-0.259 to -0.131)', None),
    ((-0.2, -0.19, -0.21), '-0.200 (-0.225 to -0.175)', True),
    ((0.2, 0.19, 0.21), '0.200 (0.175 to 0.225)', False),
])
def test_a_difference_that_seeds_cannot_tell_from_none_is_none(
    changes, said, less
):
  by_number = dict(enumerate(changes))
  assert by_seed.interval(by_number) == said
  assert by_seed.less(by_number) is less


def test_numbers_of_samples_are_averaged_within_a_seed(monkeypatch):
  found = inverted(
      ('none', None, 'model_inversion', (0.5, 0.6)),
      *(('mixup', n, 'model_inversion', (0.1 * n, 0.3)) for n in by_seed.MIXED),
  )
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: evidence.Kept({}, found)
  )
  assert by_seed.lowered('mixup', None, 'vhnn') == pytest.approx(
      {0: -0.2, 1: -0.3}
  )
  assert by_seed.more('vhnn') == pytest.approx({0: 0.2, 1: 0})


def test_what_diverged_in_a_seed_has_no_score(tmp_path):
  """A mean over the seeds that are left would look good."""
  folder = write(tmp_path / 'lost', 'vhnn', {
      ('none', None): cell(0.9, 1.0, 0.7, 0.8),
      ('max_norm', None): cell(0.9, 0.5, 0.5, 0.5),
      ('iso', 5.0): cell(0.9, 0.55, 0.5, 0.5),
      ('iso', 10.0): cell(0.9, 0.5, 0.5, 0.5),
  })
  file = folder / 'results.jsonl'
  rows = [json.loads(line) for line in file.read_text().splitlines()]
  for row in rows:
    broken = ('max_norm', None), ('iso', 10.0)
    if (row['defense'], row['strength']) in broken and row['seed']:
      row['value'] = float('nan')
  file.write_text('\n'.join(map(json.dumps, rows)) + '\n')
  (results,) = reading.read(folder)
  scores = pu_scores.optimal(results, pu_scores.SCORING)
  assert scores['max_norm'] == 0 < scores['iso']
  best = pu_scores.best(results, 'iso', pu_scores.SCORING)
  assert best is not None and best.cell == ('iso', 5.0)
  lost = pu_scores.best(results, 'max_norm', pu_scores.SCORING)
  assert lost is not None and lost.score == 0


def renamed(folder, **names):
  """The folder with other names in its results."""
  file = folder / 'results.jsonl'
  rows = [json.loads(line) | names for line in file.read_text().splitlines()]
  file.write_text('\n'.join(map(json.dumps, rows)) + '\n')
  return folder


def lost(tmp_path, algorithm='vlr'):
  """Where ISO and Marvell thwart nothing."""
  return write(tmp_path / 'lost', algorithm, {
      ('none', None): cell(0.9, 1.0, 0.7, 0.8),
      ('iso', 5.0): cell(0.9, 1.0, 0.7, 0.5),
      ('marvell', 4.0): cell(0.9, 1.0, 0.7, 0.5),
  })


def test_a_second_data_set_takes_no_firsts_place(vlr, tmp_path):
  """Credit and Vehicle both count, whichever is given last."""
  bad = renamed(lost(tmp_path), dataset='e')
  for folders in ([vlr, bad], [bad, vlr]):
    found = verdict(folders, 'VLR 1')
    assert found.held is False
    assert 'iso, setting 1 (d, VLR): 4' in found.because
    assert 'iso, setting 1 (e, VLR): 0' in found.because


@pytest.mark.parametrize('experiment, second', [
    ('y', 'd, VSNN (y)'), ('x', 'd, VSNN (x) #2'),
])
def test_two_readings_of_a_data_set_both_count(tmp_path, experiment, second):
  good = write(tmp_path / 'good', 'vsnn', {
      ('none', None): cell(0.9, 1.0, 0.7, 0.8),
      ('marvell', 4.0): cell(0.9, 0.52, 0.7, 0.5),
  })
  bad = renamed(lost(tmp_path, 'vsnn'), experiment=experiment)
  for folders in ([good, bad], [bad, good]):
    runs = [run.results for path in folders for run in alike.read(path)]
    scores = pu_scores.of_setting(runs, 4)
    assert sorted(table['marvell'] for table in scores.values()) == [0, 5]
    assert len(set(scores)) == 2
    assert verdict(folders, 'VNN 1a').held is False
  assert second in pu_scores.of_setting([
      run.results for path in (good, bad) for run in alike.read(path)
  ], 4)
