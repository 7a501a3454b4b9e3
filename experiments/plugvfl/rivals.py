"""PlugVFL's claims on NG, GC, PPDL and DSGD: section 5.2 and Figure 4.

PlugVFL stands beside them as Figure 4 has it, without quits in training.
"""
from collections.abc import Callable

from experiments.claims import Claim, Verdict
from experiments.plugvfl.rows import (
    alone, at_p, named_limit, Row, rows, untrained,
)
from experiments.readers import AT_GUESSING

PRICE = 12  # "drop model accuracy by more than 12%"
NEAR = 1  # Points; "nearly independent training level".


def claims(record: str, own: str, data: str) -> list[Claim]:
  """What Figure 4 says of them, on one data set.

  Args:
    record: Theirs.
    own: PlugVFL's.
    data: The data set's name in the claims' texts.
  """
  return [
      Claim('Section 5.2, Fig. 4', 'NG, GC, PPDL and DSGD leave 40 labels more '
            f'at the same accuracy ({data})', lambda: beaten(record, own),
            (record, own)),
      Claim('Section 5.2', 'those of them that bring 40 labels to guessing '
            f'cost over {PRICE} points ({data})', lambda: price(record),
            (record,)),
      Claim('Section 5.2', '... and end at most a point above the active party '
            f'alone ({data})', lambda: near_alone(record), (record,)),
      Claim('ours', '... and none of them brings the attacker below an '
            f'untrained extractor ({data})', lambda: above_untrained(record),
            (record,)),
  ]


def beaten(record: str, own: str) -> Verdict:
  """Each baseline's reading, beside PlugVFL's of no less accuracy.

  Args:
    record: The baselines'.
    own: PlugVFL's.
  """
  ours, texts, alike, left = at_p(rows(own), 0), [], [], []
  for r in _rivals(record):
    cheap = [x for x in ours if x.loss <= max(r.loss, 0)]
    if not cheap:
      left.append(f'{r.name} {r.few:.0f}')
      continue
    best = min(cheap, key=lambda x: x.few)
    alike.append(best.few < r.few)
    texts.append(f'{r.name} {r.few:.0f} ({best.few:.0f})')
  said = "what 40 labels read, in brackets under PlugVFL's best row that costs "
  said += 'no more: ' + (', '.join(texts) or 'none')
  if left:
    said += '; not compared, as no row of PlugVFL costs so little: '
    said += ', '.join(left)
  return Verdict(all(alike) if alike else None, said)


def price(record: str) -> Verdict:
  """Nothing is decided where none of them is at guessing."""
  low = _at_guessing(record)
  return Verdict(
      all(r.loss > PRICE for r in low) if low else None,
      _told(record, low, lambda r: f'for {r.loss:.1f} points'),
  )


def near_alone(record: str) -> Verdict:
  low, own = _at_guessing(record), alone(record)
  return Verdict(
      all(r.accuracy <= own + NEAR for r in low) if low else None,
      _told(record, low, lambda r: f'at {r.accuracy - own:+.1f}'),
  )


def above_untrained(record: str) -> Verdict:
  scratch = untrained(record)['few']
  least = min(rows(record).values(), key=lambda r: r.few)
  return Verdict(
      least.few > scratch, f'least: {least.few:.1f} ({least.name}, costs '
      f'{least.loss:.1f}); an untrained extractor {scratch:.1f}'
  )


def _rivals(record: str) -> list[Row]:
  return [r for r in rows(record).values() if r.label != 'none']


def _at_guessing(record: str) -> list[Row]:
  return [r for r in _rivals(record) if r.few <= AT_GUESSING]


def _told(record: str, low: list[Row], how: Callable[[Row], str]) -> str:
  """What those at guessing read, and `how` they pay for it."""
  if low:
    said = ', '.join(f'{r.name} {r.few:.0f} % {how(r)}' for r in low)
  else:
    least = min(_rivals(record), key=lambda r: r.few)
    said = f'none of them is; least: {least.few:.1f} % ({least.name})'
  return f'{said}; {named_limit(record, "few")}'
