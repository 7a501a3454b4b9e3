"""What decides each of the VMask paper's claims, from its records.

'Our' settings are those that we read out of the paper's text, the authors'
those of its code. Each judge's docstring is its criterion and stands in the
table; a training counts once, the mean of its attack runs.
"""
from collections.abc import Iterable, Sequence

from experiments import evidence
from experiments.claims import Verdict
from experiments.vmask import (
    crypto, fig8, numbers, older, tables_costs, tables_crypto, tables_runs,
    tables_studies,
)
from experiments.vmask.older import mean, signed

COLUMNS = numbers.COLUMNS
SETTINGS = dict(table2='our', authors="authors'")
MOST_LOST = 0.34  # Points of main accuracy that the paper loses at most.
MOST_LEFT = 1.5  # Points above scratch that it leaves at most, in Table II.
NEAR = 5.0  # Points that count as near scratch, or hardly less.
USUAL = '64 a class'  # Auxiliary samples, of `sizes`.
ADAPTIVE = ('adaptive', 'adaptive_mlp3_later', 'adaptive_lenet5')


def keeps_main(of: str) -> Verdict:
  """At most 0.34 points less, or less than trainings deviate."""
  found, held = [], True
  for c in COLUMNS:
    rows = older.column(c, of)
    lost = older.less(rows['none']['main'], rows['VMask']['main'])
    held &= mean(lost) <= max(MOST_LOST, _deviation(lost))
    found.append(f'{c} {signed((-x for x in lost), 2)}')
  return Verdict(bool(held), ', '.join(found) + ' points')


def at_scratch(of: str, variant: str = 'VMask') -> Verdict:
  """At most 1.5 points above scratch, or above what VMask-ALLS leaves."""
  found, held = [], True
  for c in COLUMNS:
    rows = older.column(c, of)
    gap = older.less(rows[variant]['attack'], rows['none']['scratch'])
    least = 0.0
    if 'VMask-ALLS' in rows:
      least = mean(rows['VMask-ALLS']['attack']) - mean(rows['none']['scratch'])
    held &= mean(gap) - max(0.0, least) <= MOST_LEFT
    found.append(f'{c} {signed(gap)}')
  return Verdict(bool(held), ', '.join(found) + ' points from scratch')


def at_full_size() -> Verdict:
  """Main and attack as in the two claims above."""
  lost = older.less(
      numbers.full('none', 'accuracy'), numbers.full('VMask', 'accuracy')
  )
  gap = numbers.full_gap()
  held = mean(lost) <= max(MOST_LOST, _deviation(lost))
  return Verdict(
      bool(held and mean(gap) <= MOST_LEFT),
      f'main {signed((-x for x in lost), 2)} points, attack {signed(gap)} '
      f'points from scratch, layers hidden {numbers.hidden()} of 3',
  )


def within_budget(who: str, from_scratch_up: bool) -> Verdict:
  """The attack's mean is at most the budget, of 0.8 to 0.25."""
  rows = older.fig8_authors()
  scratch = mean(rows['none None']['scratch'])
  over = {
      b: evidence.spread(rows[f'{who} {b}']['attack']) for b in fig8.BUDGETS
      if mean(rows[f'{who} {b}']['attack']) > 100 * b
      and not (from_scratch_up and 100 * b < scratch)
  }
  text = ', '.join(f'{a} at {b}' for b, a in over.items())
  return Verdict(not over, f'above it: {text or "none"}; scratch {scratch:.1f}')


def recorded_within_budget(record: str) -> Verdict:
  """The attack is at most every budget that is above scratch; one training."""
  results = evidence.load('vmask', record).results
  none, *cells = results.cells
  says = lambda c, who: mean(evidence.quantity(
      results, c, f'{who}/accuracy_best'
  ).values())
  scratch = says(none, tables_runs.SCRATCH)
  found = {c[1] or 0.0: says(c, tables_runs.ATTACK) for c in cells}
  over = {b: a for b, a in found.items() if scratch <= 100 * b < a}
  text = ', '.join(f'{a:.1f} at {b}' for b, a in over.items())
  return Verdict(not over, f'above it: {text or "none"}; scratch {scratch:.1f}')


def smaller_hides_more() -> Verdict:
  """The mask ratio never falls as the budget does, and rises in all."""
  ours = older.record('fig8')['facts']['mask_ratio']
  rows, found, held = older.fig8_authors(), [], True
  ratios = {'ours': [100 * x for x in ours]} | {
      f"authors', {who}": [
          mean(rows[f'{who} {b}']['mask_ratio']) for b in fig8.BUDGETS
      ] for who in ('20 epochs', 'VMask 50x5')
  }
  for name, values in ratios.items():
    held &= values == sorted(values) and values[0] < values[-1]
    found.append(f'{name}: {values[0]:.0f} to {values[-1]:.0f} %')
  return Verdict(held, '; '.join(found))


def falling(which: Sequence[str], rising: bool, *names: str) -> Verdict:
  """The attack rises, or falls, from each set of layers to the next."""
  found, held = [], True
  for name in names:
    values = [mean(older.sets(name)[one]) for one in which]
    held &= values == sorted(values, reverse=not rising)
    found.append(f'{name} ' + ', '.join(f'{x:.1f}' for x in values))
  return Verdict(held, f'{", then ".join(which)} hidden: ' + '; '.join(found))


def not_adjacent(*names: str) -> Verdict:
  """1 and 3 hidden leave less than 1 and 2, by more than trainings deviate."""
  found, held = [], True
  for name in names:
    sets = older.sets(name)
    gap = older.less(sets['1,3'], sets['1,2'])
    held &= mean(gap) < -_deviation(gap)
    found.append(f'{name} {signed(gap)}')
  return Verdict(bool(held), "1,3's attack - 1,2's: " + '; '.join(found))


def more_parties(record: str) -> Verdict:
  """Main kept as above, every attack at most 5 points above scratch."""
  found, held = [], True
  for what, rows in older.rows(record).items():
    vanilla, masked = rows['vanilla'], rows['VMask']
    lost = older.less(vanilla['main'], masked['main'])
    held &= mean(lost) <= max(MOST_LOST, _deviation(lost))
    for name in (n for n in masked if n.startswith('attack')):
      k = name.split()[1]
      gap = older.less(masked[name], vanilla[f'scratch {k}'])
      held &= mean(gap) <= NEAR
      who = f', attacker {k}' if record == 'attackers' else ''
      found.append(f'{what}{who} {signed(gap)}')
  return Verdict(bool(held), '; '.join(found) + ' points from scratch')


def robust(suffix: str) -> Verdict:
  """At most 0.34 off main, attack at most 5 points above the usual samples'."""
  usual = older.rows('sizes' + suffix)[USUAL]['VMask']
  found, held = [f"attack with the usual {mean(usual['attack 1']):.1f}"], True
  for name in tables_studies.AUXILIARY:
    rows = older.rows(name + suffix)
    plain = next(iter(rows.values()))['vanilla']
    attacks = [mean(r['VMask']['attack 1']) for r in rows.values()]
    lost = [mean(plain['main']) - mean(r['VMask']['main'])
            for r in rows.values()]
    held &= max(attacks) <= mean(usual['attack 1']) + NEAR
    held &= max(lost) <= MOST_LOST
    found.append(
        f'{name} {numbers.span(attacks, 1)}, main {-max(lost):+.2f} at worst'
    )
  return Verdict(held, '; '.join(found))


def random_is_worse() -> Verdict:
  """Its attack is higher by more than trainings deviate, in most columns."""
  found, worse, count = [], 0, 0
  for of, settings in SETTINGS.items():
    for c in COLUMNS:
      rows = older.column(c, of)
      if 'VMask-RS' in rows:
        gap = older.less(rows['VMask-RS']['attack'], rows['VMask']['attack'])
        worse += mean(gap) > _deviation(gap)
        count += 1
        found.append(f'{c} ({settings} settings) {signed(gap)}')
  return Verdict(2 * worse > count, ', '.join(found) + ' points')


def hardly_help(defenses: Sequence[str]) -> Verdict:
  """The attack is at most 5 points lower than undefended, in all columns."""
  found, held = [], True
  for defense in defenses:
    drops = {
        c: mean(older.column(c)['none']['attack'])
        - mean(older.column(c)[defense]['attack']) for c in COLUMNS
    }
    held &= max(drops.values()) <= NEAR
    found.append(f'{defense} ' + ', '.join(
        f'{c} {-x:+.1f}' for c, x in drops.items()
    ))
  return Verdict(held, '; '.join(found) + ' points')


def best_trade(others: Iterable[str]) -> Verdict:
  """No other's main is within half a point of VMask's or above, its attack not
  above.
  """
  better = []
  for c in COLUMNS:
    rows = older.column(c)
    main, attack = (mean(rows['VMask'][m]) for m in ('main', 'attack'))
    better += [
        f'{c} {d}' for d in others if mean(rows[d]['main']) >= main - 0.5
        and mean(rows[d]['attack']) <= attack
    ]
  return Verdict(not better, f'as good: {", ".join(better) or "none"} (our '
                 "settings, the paper's attacker)")


def best_of_strengths(record: str = 'fig6') -> Verdict:
  """Of no other at any strength main is within half a point of one of VMask's
  points or above, its attack not above.
  """
  found = tables_runs.points(record)
  masked = [p for c, p in found.items() if c[0] == 'VMask']
  better = [
      f'{c[0]} {c[1]:g} {main:.1f} / {attack:.1f}'
      for c, (main, attack) in found.items() if c[0] not in ('none', 'VMask')
      and any(main >= m - 0.5 and attack <= a for m, a in masked)
  ]
  return Verdict(
      not better, 'VMask ' + ', '.join(f'{m:.1f} / {a:.1f}' for m, a in masked)
      + f'; as good: {", ".join(better) or "none"} (one training a point, our '
      "settings, the paper's attacker)"
  )


def transcript_is_no_use() -> Verdict:
  """Who keeps it regains under half of what masking takes away (T3)."""
  found = {
      f'{record} {shown}': tables_costs.regained(record, 'T3', name)
      for record in ADAPTIVE
      for name, shown in (('tracking', 'tracking'), ('most', 'solving'))
  }
  return Verdict(
      max(found.values()) < 50,
      'regained: ' + ', '.join(f'{k} {x:.0f} %' for k, x in found.items()),
  )


def costs() -> Verdict:
  """With the modelled network, at most the paper's ratio, in every case."""
  models = older.bench('vmask')['runs']['default']['models']
  found, held = [], True
  for model, measured in models.items():
    rows, most = measured['seconds_an_epoch'], measured['paper_ratio']
    ratios = [rows[s]['ratio_with_lan'] for s in ('one', 'two', 'all')]
    held &= max(ratios) <= most
    found.append(
        f'{model} {", ".join(f"{x:.1f}" for x in ratios)} (paper {most})'
    )
  return Verdict(
      held, 'one, two, all layers: ' + '; '.join(found)
      + ', [bench/vmask.json](bench/vmask.json)'
  )


def cheaper() -> Verdict:
  """With all layers in shares and the network, its ratio to vanilla is below
  that of every cryptographic row.
  """
  models = older.bench('vmask')['runs']['default']['models']
  ours = models['mlp3']['seconds_an_epoch']['all']['ratio_with_lan']
  rows = {
      row: tables_crypto.whole_ratio(row)
      for row in older.record('crypto')['costs']['ours']
  }
  return Verdict(ours < min(rows.values()), f'{ours:.0f}; ' + ', '.join(
      f'{row} {crypto.rounded(x)}' for row, x in rows.items()
  ))


def _deviation(values: Iterable[float]) -> float:
  return evidence.reading.summarize(values).std
