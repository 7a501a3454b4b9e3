"""The report's words: what was run, what they mean, who has no place."""
from vfljax.data.table import counted
from vfljax.report import ranks, reading
from vfljax.report.reading import Results


def headline(results: Results) -> str:
  """What was run, in one line."""
  experiment, dataset, algorithm = results.title
  defenses = [d for d in results.defenses if d != 'none']
  counts = [
      counted(len(defenses), 'defense'),
      counted(len(results.attacks), 'attack'),
      counted(len(results.seeds), 'seed'),
  ]
  return (
      f'{experiment}: {algorithm.upper()} on {reading.pretty(dataset)}, '
      + ', '.join(counts)
  )


def not_ranked(results: Results) -> str:
  """Which defenses have no place in the ranking; '' if all have one."""
  gone = [
      f'{reading.pretty(defense)} ({said})'
      for defense, said in ranks.unranked(results)
  ]
  return f'Without a place, last: {", ".join(gone)}.' if gone else ''


def terms(results: Results) -> list[tuple[str, str]]:
  """The words a newcomer needs, and what they mean here."""
  return [
      ('Leakage', _leakage(results)),
      ('Utility loss', f'percentage points of test {name(results.metric)} that '
       'a defense costs against having none, seed by seed.'),
      ('PU score', '5 for a leakage of at most 5 and a loss of at most 0.5 '
       'points, down to 0 for a leakage above 25 or a loss above 6 (Kang et '
       'al. 2022, Table 8, Eq. 21). Each defense is ranked by its best '
       'strength (Eq. 22); of equal scores the one that leaks less is better, '
       'and then the one that costs less. All by the tenth of a point that is '
       'shown.'),
  ]


def name(metric: str) -> str:
  """A metric for people: 'leak_auc_raw' is 'leak AUC raw'."""
  text = metric.replace('_', ' ')
  for word in ('auc', 'ssim', 'psnr'):
    text = ' '.join(w.upper() if w == word else w for w in text.split())
  return text


def _leakage(results: Results) -> str:
  """What leakage means for the attacks that there are."""
  scores = [results.about(a).score for a in results.attacks]
  said = list(dict.fromkeys(s.means for s in scores))
  return '; '.join(said) + '. The worst attack counts.' + which_epoch(results)


def which_epoch(results: Results) -> str:
  """Which epoch counts of attacks in training, a sentence after a space."""
  which = dict(
      max=' Of an attack in training the measured epoch counts in which it '
      "learns most, for an attacker chooses; the last one's is beside it.",
      mean=' Of an attack in training the mean of the measured epochs counts; '
      "the last one's is beside it.",
      last=' Of an attack in training the last epoch counts.',
  )
  watched = any(m.endswith('_max') for _, a, m, _ in results.values if a)
  return which.get(results.when, '') if watched else ''


def about(results: Results, attack: str | None) -> str:
  if attack is None:
    return 'What the federation itself predicts.'
  if attack in results.baselines:
    return 'A baseline of the attackers, which uses no leak.'
  metric = reading.leak_metric(results, attack)
  return f'Its leakage is measured by {name(metric)}.' if metric else ''
