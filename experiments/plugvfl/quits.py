"""Verdicts on PlugVFL's claims on parties that quit (sections 3.2 and 5.1).

Section 3.2 says what quitting does without a defense (Table 1). Section 5.1 has
two sentences on what party dropout returns. On CIFAR-10, without naming a p:
more than 7 points (its introduction: 8) gained after quitting, at almost no
cost before, which we read as under 0.5. On CIFAR-100: more than 5.5 points for
under 0.5, which its own Table 3 does not show; it is judged at p = 0.05, the
nearest value there.
"""
from experiments.claims import Claim, Verdict, untestable
from experiments.plugvfl import fig3
from experiments.plugvfl.rows import DROPPED, Row, alone, rows

NEARLY_NONE = 0.5  # Points before party 2 quits.
FALL = 20.0  # Points that quitting costs without a defense, section 3.2.


def gains(record: str) -> list[tuple[Row, float]]:
  """Every p above 0 and the accuracy that it recovers after quitting."""
  found = rows(record)
  none = found['no defense']
  return [
      (x, x.after - none.after) for x in found.values()
      if x.label.startswith(DROPPED) and x.label != f'{DROPPED}0'
  ]


def table3() -> str:
  """The accuracy that the paper's Table 3 recovers for under 0.5 points."""
  before, after = fig3.TABLE_3['plugvfl drop=0']
  label, (b, a) = max(
      ((label, pair) for label, pair in fig3.TABLE_3.items()
       if label.startswith(DROPPED) and before - pair[0] < NEARLY_NONE),
      key=lambda item: item[1][1],
  )
  return (f"the paper's own Table 3 has {a - after:.2f} for {before - b:.2f} "
          f'at p = {label.removeprefix(DROPPED)}')


def falls(record: str) -> Verdict:
  none = rows(record)['no defense']
  lost = none.accuracy - none.after
  return Verdict(
      lost > FALL, f'{none.accuracy:.1f} before, {none.after:.1f} after: '
      f'{lost:.1f} points; the paper, CIFAR-10: {fall():.1f}',
  )


def fall() -> float:
  """The points that the paper's Table 1 loses."""
  before, after = fig3.TABLE_1['none']
  return before - after


def below_alone(record: str) -> Verdict:
  after, own = rows(record)['no defense'].after, alone(record)
  return Verdict(
      after < own, f'{after:.1f} after, alone {own:.1f}; the paper, CIFAR-10: '
      f"{fig3.TABLE_1['none'][1]:.1f}, {fig3.ALONE_1:.1f}",
  )


def some_p(record: str) -> Verdict:
  found = gains(record)
  if not found:
    return Verdict(None, 'no p above 0')
  return Verdict(
      any(gain > 7 and x.loss < NEARLY_NONE for x, gain in found),
      'returned, and lost before: ' + ', '.join(
          f'{x.name} {gain:+.1f} for {x.loss:z.1f}' for x, gain in found
      ),
  )


def small_p(record: str) -> Verdict:
  found = rows(record)
  none, p = found['no defense'], found['p = 0.05']
  return Verdict(
      p.after - none.after > 5.5 and p.loss < NEARLY_NONE,
      f'{p.loss:z.1f} points before, {p.after - none.after:+.1f} after '
      f'({none.after:.1f} to {p.after:.1f}); {table3()}',
  )


def enough(record: str) -> Verdict:
  own, found = alone(record), rows(record).values()
  cheap = [x for x in found if x.label.startswith(DROPPED) and x.loss < 1.5]
  best = max(cheap, key=lambda x: x.after, default=None)
  return Verdict(
      best.after > own - 1, f'{best.name}: {best.after:.1f} after for '
      f'{best.loss:z.1f} points before; alone {own:.1f}',
  ) if best else Verdict(None, 'no p costs less than 1.5 points')


def heads(record: str) -> Verdict:
  found = rows(record)
  two, better = found['multi-head'], as_good_as_heads(record)
  return Verdict(
      bool(better), f'multi-head {two.accuracy:.1f} / {two.after:.1f}; as '
      'good on both sides: ' + (', '.join(x.name for x in better) or 'no p'),
  )


def as_good_as_heads(record: str) -> list[Row]:
  """Every p that is as good as multi-head training before and after."""
  found = rows(record)
  two = found['multi-head']
  return [
      x for x in found.values() if x.label.startswith(DROPPED)
      and x.accuracy >= two.accuracy and x.after >= two.after
  ]


def claims(record: str, data: str) -> list[Claim]:
  """What Table 1, Figure 3 and their texts say, on one data set."""
  return [
      Claim(where, f'{text} ({data})', lambda judge=judge: judge(record),
            (record,))
      for where, text, judge in (
          ('Section 3.2, Table 1', 'without a defense quitting costs over '
           f'{FALL:g} points', falls),
          ('Section 3.2, Table 1', '... and leaves less than the active party '
           'alone has', below_alone),
          ('Section 5.1, CIFAR-10', 'some p returns over 7 points of accuracy '
           '(the introduction: 8) after quitting for nearly none before, under '
           f'{NEARLY_NONE:g}', some_p),
          ('Section 5.1, CIFAR-100', 'p = 0.05 returns over 5.5 points after '
           f'quitting for under {NEARLY_NONE:g} before', small_p),
          ('Section 5.1', 'some p ends within a point of the active party '
           'alone, for under 1.5 points before', enough),
          ('Section 5.1', 'no better trade-off by multi-head training: some p '
           'is as good before and after', heads),
      )
  ]


ON_CIFAR100 = untestable(
    'Section 5.1, Table 3', 'over 5.5 points after quitting for under '
    f'{NEARLY_NONE:g} before, CIFAR-100', 'not run, cifar100.npz cannot be '
    f'had; {table3()}, which is its most for so little',
)
