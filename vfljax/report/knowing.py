"""Which attacks have no leakage in a report, and why.

The report names them because its verdict is about the other attacks only.
"""
from vfljax.data.table import listing
from vfljax.report import reading
from vfljax.report.reading import Results


def uncounted(results: Results) -> list[str]:
  """Sentences that name attacks without a leakage, and why; [] if none."""
  strange, idle = [], []
  for attack in results.attacks:
    score = results.about(attack).score
    if not score.metrics:
      strange.append(reading.pretty(attack))
    elif not reading.leak_metric(results, attack):
      seen = results.measured.get(attack, ())
      wanted = [m.format(utility=results.metric) for m in score.metrics]
      idle.append(
          f'{reading.pretty(attack)} measured {listing(sorted(seen), 5)}, but '
          f'its score looks for {listing(dict.fromkeys(wanted), 5)}'
      )
  said = []
  if strange:
    said.append(
        f'NOT COUNTED: {listing(strange, 8)}. No attack of that name is '
        'registered here, and this work directory does not say how to score '
        'it. Run the command again with the config file that registers it.'
    )
  if idle:
    said.append(
        f'NOT COUNTED: {"; ".join(idle)}. Give its recipe a score=Score(...) '
        'with one of the metrics that its measure returns.'
    )
  return said
