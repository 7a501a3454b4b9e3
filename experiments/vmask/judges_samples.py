"""What decides VMask's claims of other auxiliary samples, section V-G.

The paper's own cases: LeNet5 on M with a budget of 0.4 for Figure 9, ResNet18
and VGG13 on CIFAR-10 with 0.3 for Figure 10, and six for Table IV.
"""
from collections.abc import Mapping, Sequence

from experiments import evidence
from experiments.claims import Verdict
from experiments.vmask import numbers, older, tables_studies
from experiments.vmask.deciding import (
    Found, apart, every, finite, remarks, trend, within,
)
from experiments.vmask.judges import MOST_LOST
from experiments.vmask.older import Row, mean, signed

NEAR = 5.0  # Points that count as an attack's usual: ours.
USUAL = '64 a class'  # Auxiliary samples, of `sizes`.
# Of what the paper says that the attack is within the budget.
FEWEST, FEWEST_CLASSES = 64, 4
# Points above scratch that Table IV leaves at most: 43.37 - 37.67, of M.
MOST_OUTSIDE = 5.7
# What more samples do, and what fewer classes or noise do: whether it rises.
MORE = {'shadow': True, 'attack 1': False, 'mask_ratio': True}
WORSE = {'shadow': False, 'simulated_leakage': False, 'mask_ratio': False}
SAID = {
    'shadow': "shadow's accuracy", 'attack 1': 'attack',
    'simulated_leakage': 'imagined attack', 'mask_ratio': 'mask ratio',
}


def within_budget(suffix: str, budget: float) -> Verdict:
  """Main clearly at most 0.34 points off vanilla, attack clearly at most the
  budget, from 64 samples a class up and 4 classes up and with all noises, as
  the paper says it of these. What is not within a budget that is below scratch
  decides nothing.
  """
  shown, found = [], {}
  for name in tables_studies.AUXILIARY[:3]:
    plain, rows = _masked(name + suffix)
    scratch = mean(plain.get('scratch 1', []))
    rows = {what: row for what, row in rows.items() if _said(what)}
    for what, row in rows.items():
      lost = apart(plain, 'main', row)
      kept = within(row.get('attack 1', []), budget)
      if scratch > budget and not kept:
        kept = None
      found[what] = every((within(lost, MOST_LOST), kept))
    shown.append(', '.join(
        f'{what} {evidence.spread(row.get("attack 1", []))}'
        for what, row in rows.items()
    ) + f' (scratch {scratch:.1f})')
  return Verdict(
      every(found.values()), f'{"; ".join(shown)}; budget {budget:g}'
      + remarks(found),
  )


def _said(what: str) -> bool:
  """Whether the paper says of a row that its attack is within the budget."""
  count, _, unit = what.partition(' ')
  least = {'a class': FEWEST, 'classes': FEWEST_CLASSES}.get(unit)
  return least is None or int(count) >= least


def other_task(suffix: str) -> Verdict:
  """Attack clearly at most 5.7 points above scratch, the most in Table IV (M
  with FM's, as here); main clearly at most 0.34 points off vanilla.
  """
  plain, rows = _masked('outside' + suffix)
  shown, found = [], {}
  for what, row in rows.items():
    gap = apart(row, 'attack 1', plain, 'scratch 1')
    lost = apart(plain, 'main', row)
    found[f'{what} attack'] = within(gap, MOST_OUTSIDE)
    found[f'{what} main'] = within(lost, MOST_LOST)
    shown.append(
        f"{what}'s samples: attack {evidence.spread(row.get('attack 1', []))}, "
        f'{signed(gap)} points from scratch, main '
        f'{signed((-x for x in lost), 2)}'
    )
  return Verdict(every(found.values()), '; '.join(shown) + remarks(found))


def trends(
    names: Sequence[str], suffix: str, ways: Mapping[str, bool]
) -> Verdict:
  """From the first samples to the last each of these clearly goes the way that
  the paper says, and its mean at no step the other way; a step that does so
  clearly decides against it, one that does so less decides nothing.
  """
  shown, found = [], {}
  for name in names:
    rows = list(_masked(name + suffix)[1].values())
    for measure, up in ways.items():
      steps = [row.get(measure, []) for row in rows]
      key = f'{name}, {SAID[measure]}'
      found[key] = trend(steps, up)
      shown.append(f'{key} {", ".join(evidence.mean(x, 0) for x in steps)}'
                   + _mark(found[key], up))
  return Verdict(every(found.values()), '; '.join(shown) + remarks(found))


def _mark(found: Found, up: bool) -> str:
  way = 'rise' if up else 'fall'
  return {
      True: f' ({way}s)', False: f' (does not {way})', None: ''
  }[found]


def near_the_usual(suffix: str) -> Verdict:
  """Main clearly at most 0.34 points off vanilla, attack clearly at most 5
  points above the usual samples'.
  """
  usual = older.rows('sizes' + suffix)[USUAL]['VMask']
  shown, found = [f"attack with the usual {mean(usual['attack 1']):.1f}"], {}
  for name in tables_studies.AUXILIARY:
    plain, rows = _masked(name + suffix)
    attacks, losses = [], []
    for what, masked in rows.items():
      lost = apart(plain, 'main', masked)
      more = apart(masked, 'attack 1', usual)
      found[what] = every((within(lost, MOST_LOST), within(more, NEAR)))
      attacks.append(mean(masked.get('attack 1', [])))
      losses.append(mean(lost))
    if finite(attacks) and finite(losses):
      shown.append(f'{name} {numbers.span(attacks, 1)}, main '
                   f'{-max(finite(losses)):+.2f} at worst')
    else:
      found[name] = None
  return Verdict(every(found.values()), f'{"; ".join(shown)}{remarks(found)}')


def _masked(record: str) -> tuple[Row, dict[str, Row]]:
  """Vanilla's row, and VMask's for every kind of samples."""
  both = older.rows(record)
  plain = next((r['vanilla'] for r in both.values() if 'vanilla' in r), {})
  return plain, {what: row.get('VMask', {}) for what, row in both.items()}
