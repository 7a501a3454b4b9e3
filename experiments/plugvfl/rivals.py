"""PlugVFL's claims on NG, GC, PPDL and DSGD: section 5.2, Figures 4 and 5.

PlugVFL stands beside them as the figures have it, without quits in training.
"""
from collections.abc import Callable
import math

from experiments.claims import Claim, Verdict
from experiments.plugvfl.rows import (
    ACTIVE, alone, at_p, named_limit, PASSIVE, Row, rows, untrained,
)
from experiments.readers import AT_GUESSING

PRICE = 12  # "drop model accuracy by more than 12%"
PLUGVFL = 'plugvfl'
NEAR = 1  # Points; "nearly independent training level".


def claims(
    record: str, own: str, data: str, kind: str = PASSIVE
) -> list[Claim]:
  """What a figure says of them, on one data set.

  Args:
    record: Theirs.
    own: PlugVFL's, which may be the same.
    data: The data set's name in the claims' texts.
    kind: The attack, `PASSIVE` (Figure 4) or `ACTIVE` (Figure 5).
  """
  active = kind == ACTIVE
  figure = 'Fig. 5' if active else 'Fig. 4'
  data += ', active completion' if active else ''
  return [
      Claim(f'Section 5.2, {figure}', 'NG, GC, PPDL and DSGD leave 40 labels '
            f'more at the same accuracy ({data})',
            lambda: beaten(record, own, kind),
            tuple(dict.fromkeys((record, own)))),
      # The paper says so of passive completion alone.
      Claim('ours' if active else 'Section 5.2',
            'those of them that bring 40 labels to guessing '
            f'cost over {PRICE} points ({data})', lambda: price(record, kind),
            (record,)),
      Claim('Section 5.2', '... and end at most a point above the active party '
            f'alone ({data})', lambda: near_alone(record, kind), (record,)),
      Claim('ours', '... and none of them brings the attacker below an '
            f'untrained extractor ({data})',
            lambda: above_untrained(record, kind), (record,)),
  ]


def beaten(record: str, own: str, kind: str = PASSIVE) -> Verdict:
  """Each baseline's reading, beside PlugVFL's of no less accuracy.

  Args:
    record: The baselines'.
    own: PlugVFL's.
    kind: The attack.
  """
  found = rows(own, kind)
  # Figure 5's rows all have p = 0, which their names leave out.
  ours = at_p(found, 0) if kind == PASSIVE else [
      r for r in found.values() if r.label == PLUGVFL
  ]
  texts, alike, left = [], [], []
  for r in whole(record, kind):
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
  said += _gone(record, kind)
  return Verdict(all(alike) if alike else None, said)


def price(record: str, kind: str = PASSIVE) -> Verdict:
  """Nothing is decided where none of them is at guessing."""
  low = _at_guessing(record, kind)
  return Verdict(
      all(r.loss > PRICE for r in low) if low else None,
      _told(record, kind, low, lambda r: f'for {r.loss:.1f} points'),
  )


def near_alone(record: str, kind: str = PASSIVE) -> Verdict:
  low, own = _at_guessing(record, kind), alone(record)
  return Verdict(
      all(r.accuracy <= own + NEAR for r in low) if low else None,
      _told(record, kind, low, lambda r: f'at {r.accuracy - own:+.1f}'),
  )


def above_untrained(record: str, kind: str = PASSIVE) -> Verdict:
  scratch = untrained(record)['few']
  least = min(whole(record, kind), key=lambda r: r.few)
  return Verdict(
      least.few > scratch, f'least: {least.few:.1f} ({least.name}, costs '
      f'{least.loss:.1f}); an untrained extractor {scratch:.1f}'
  )


def _rivals(record: str, kind: str = PASSIVE) -> list[Row]:
  """The rows of other defenses."""
  own = 'none', PLUGVFL
  return [r for r in rows(record, kind).values() if r.label not in own]


def whole(record: str, kind: str) -> list[Row]:
  """Those of which no training diverged."""
  return [
      r for r in _rivals(record, kind)
      if math.isfinite(r.few) and math.isfinite(r.loss)
  ]


def _gone(record: str, kind: str) -> str:
  kept = whole(record, kind)
  names = [r.name for r in _rivals(record, kind) if r not in kept]
  return f'; diverged: {", ".join(names)}' if names else ''


def _at_guessing(record: str, kind: str) -> list[Row]:
  return [r for r in whole(record, kind) if r.few <= AT_GUESSING]


def _told(
    record: str, kind: str, low: list[Row], how: Callable[[Row], str]
) -> str:
  """What those at guessing read, and `how` they pay for it."""
  if low:
    said = ', '.join(f'{r.name} {r.few:.0f} % {how(r)}' for r in low)
  else:
    least = min(whole(record, kind), key=lambda r: r.few)
    said = f'none of them is; least: {least.few:.1f} % ({least.name})'
  return f'{said}{_gone(record, kind)}; {named_limit(record, "few")}'
