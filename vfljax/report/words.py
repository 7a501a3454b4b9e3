"""The report's title, its explanations of terms, and names of metrics."""
from vfljax.data.table import counted
from vfljax.report import ranks, reading
from vfljax.report.reading import Results

INTERVAL = '± is half the 95 % Student-t interval of the mean over seeds.'


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
  """A sentence that names defenses without a place; '' if all have one."""
  gone = [
      f'{reading.pretty(defense)} ({said})'
      for defense, said in ranks.unranked(results)
  ]
  return f'Not ranked: {", ".join(gone)}.' if gone else ''


def terms(results: Results) -> list[tuple[str, str]]:
  """(term, its meaning in this report) for each term."""
  return [
      ('Leakage', _leakage(results)),
      ('Utility loss', f'percentage points of test {name(results.metric)} that '
       'a defense costs, compared seed by seed with having none.'),
      ('PU score', '5 for a leakage of at most 5 and a loss of at most 0.5 '
       'points, down to 0 for a leakage above 25 or a loss above 6 (Kang et '
       'al. 2022, Table 8, Eq. 21). Each defense is ranked at its best '
       'strength (Eq. 22). If scores are equal, the defense that leaks less '
       'is better, then the one that costs less. Scores and ranks use points '
       'rounded to the tenth that is shown. A leakage below 0 counts as 0.'),
      *_chosen(results),
  ]


def _chosen(results: Results) -> list[tuple[str, str]]:
  """What the choice among several rows does to the numbers of the best one."""
  rows = [t for t in ranks.trades(results)
          if t.cell[0] != 'none' and not t.lost.any]
  if len(rows) < 2:
    return []
  return [(
      'Best', f'chosen of {len(rows)} rows by the numbers that stand beside '
      'it. So they are too favourable, and its interval does not show that. '
      f'Other seeds would: --config.first_seed={max(results.seeds) + 1} in '
      'another --workdir.'
  )]


def name(metric: str) -> str:
  """A metric's name as readers see it: 'leak_auc_raw' is 'leak AUC raw'."""
  text = metric.replace('_', ' ')
  for word in ('auc', 'ssim', 'psnr'):
    text = ' '.join(w.upper() if w == word else w for w in text.split())
  return text


def _leakage(results: Results) -> str:
  """What leakage means for the attacks that were run."""
  scores = [results.about(a).score for a in results.attacks]
  said = list(dict.fromkeys(s.means for s in scores))
  return '; '.join(said) + '. The worst attack counts.' + which_epoch(results)


def which_epoch(results: Results) -> str:
  """Which epoch counts for attacks during training.

  A sentence after a space; '' if no attack was measured epoch by epoch.
  """
  which = dict(
      max=' An attack during training counts at the measured epoch in which it '
      'learns most, because an attacker can choose; its leakage in the last '
      'epoch is beside it.',
      mean=' An attack during training counts by its mean over the measured '
      'epochs; its leakage in the last epoch is beside it.',
      last=' An attack during training counts at the last epoch.',
  )
  watched = any(m.endswith('_max') for _, a, m, _ in results.values if a)
  return which.get(results.when, '') if watched else ''


def about(results: Results, attack: str | None) -> str:
  if attack is None:
    return "How good the federation's own predictions are."
  if attack in results.baselines:
    return 'A baseline: what an attacker reaches without using any leak.'
  metric = reading.leak_metric(results, attack)
  return f'Its leakage is measured by {name(metric)}.' if metric else ''
