"""What decides VMask's claims of more parties, other samples and epochs."""
import numpy as np

from experiments.claims import Verdict
from experiments.vmask import numbers, older, tables_studies
from experiments.vmask.deciding import (
    Found, apart, every, finite, remarks, within,
)
from experiments.vmask.judges import MOST_LOST
from experiments.vmask.older import mean, signed

NEAR = 5.0  # Points that count as near scratch, or as an attack's usual.
# Points of main accuracy that more parties lose at most, section V-G.
LOST = dict(parties=0.1, attackers=0.5)
USUAL = '64 a class'  # Auxiliary samples, of `sizes`.


def more_parties(record: str) -> Verdict:
  """Main clearly at most 0.1 points less (all attacking: 0.5), as the paper has
  it, every attack of every training at most 5 points above scratch; attackers
  who get no more than that undefended are left out.
  """
  shown, empty, found = [], [], {}
  for what, rows in older.rows(record).items():
    plain, masked = rows.get('vanilla', {}), rows.get('VMask', {})
    lost = apart(plain, 'main', masked)
    found[f'{what}, main'] = within(lost, LOST[record])
    for name in (n for n in plain if n.startswith('attack')):
      k = name.split()[1]
      who = what + (f', attacker {k}' if record == 'attackers' else '')
      scratch = f'scratch {k}'
      before = apart(plain, name, plain, scratch)
      if finite(before) and mean(before) <= NEAR:
        empty.append(f'{who} ({signed(before)})')
        continue
      gap = apart(masked, name, plain, scratch)
      found[who] = every(map(_near, gap))
      shown.append(f'{who} ' + ', '.join(f'{x:+.1f}' for x in gap))
  return Verdict(
      every(found.values()) if shown else None,
      f'{"; ".join(shown)} points from scratch, by training; left out, with '
      f'what undefended attacks are above it: {", ".join(empty) or "none"}'
      + _again(record) + remarks(found),
  )


def _near(gap: float) -> Found:
  return gap <= NEAR if finite([gap]) else None


def _again(record: str) -> str:
  """What else was measured with the two parties of Table V."""
  if record != 'parties':
    return ''
  gaps = {
      'table2': older.column('TM'), 'other attack runs': older.again()['TM']
  }
  texts = [
      f'{name} ' + signed(apart(
          rows.get('VMask', {}), 'attack', rows.get('none', {}), 'scratch'
      )) for name, rows in gaps.items()
  ]
  return (
      f'; 2 parties were measured three times more: {", ".join(texts)}, '
      f'tm_full {signed(numbers.full_gap())}'
  )


def robust(suffix: str) -> Verdict:
  """Main clearly at most 0.34 points off vanilla, attack clearly at most 5
  points above the usual samples'.
  """
  usual = older.rows('sizes' + suffix)[USUAL]['VMask']
  shown, found = [f"attack with the usual {mean(usual['attack 1']):.1f}"], {}
  for name in tables_studies.AUXILIARY:
    rows = older.rows(name + suffix)
    plain = next((r['vanilla'] for r in rows.values() if 'vanilla' in r), {})
    attacks, losses = [], []
    for what, row in rows.items():
      masked = row.get('VMask', {})
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


def close_throughout() -> Verdict:
  """After every epoch of every training the attack is at most 5 points above
  scratch, or above what it gets from VMask-ALLS.
  """
  masked, scratch, least = (_curve(*which) for which in (
      ('VMask', 'attack'), ('none', 'scratch'), ('VMask-ALLS', 'attack')
  ))
  if masked.shape != scratch.shape or not np.isfinite(masked - scratch).any():
    return Verdict(None, 'not measured, or diverged')
  floor = np.fmax(scratch, least) if least.shape == scratch.shape else scratch
  over = masked - floor > NEAR
  unknown = ~np.isfinite(masked - scratch)
  held = False if over.any() else None if unknown.any() else True
  worst = int(np.nanargmax(np.nanmean(masked - scratch, axis=0)))
  return Verdict(
      held, f'farther off in {over.sum()} of {over.size} (epochs of '
      f'{len(masked)} trainings); most after epoch {worst + 1}: '
      f'{mean(masked[:, worst]):.1f} against {mean(scratch[:, worst]):.1f}'
      + (f'; {unknown.sum()} not measured' if unknown.any() else ''),
  )


def lowest_throughout() -> Verdict:
  """After every epoch the attack's mean is below that of every other defense
  (VMask's variants aside), clearly below in most epochs.
  """
  masked = _curve('VMask', 'attack')
  curves = {
      name: _curve(name, 'attack') for name in older.record('fig5_tm')['curves']
      if name != 'none' and not name.startswith('VMask')
  }
  shown, found = [], {}
  for name, theirs in curves.items():
    if theirs.shape != masked.shape or not masked.size:
      found[name] = None
      continue
    gaps = (masked - theirs).T
    lower = sum(mean(gap) >= 0 for gap in gaps)
    clear = sum(within(gap) is True for gap in gaps)
    known = np.isfinite(gaps).all()
    found[name] = (False if lower else None if not known
                   else 2 * clear > len(gaps) or None)
    if lower:
      shown.append(f'{name} in {lower}')
  return Verdict(
      every(found.values()), 'attacked no better than VMask: '
      f'{", ".join(shown) or "none"} of {masked.shape[-1]} epochs'
      + remarks(found),
  )


def _curve(who: str, what: str) -> np.ndarray:
  """Figure 5's attack after each epoch, [trainings, epochs], in percent."""
  found = older.record('fig5_tm')['curves'].get(who, {}).get(what, [])
  return 100 * np.asarray(found, float).mean(-1) if found else np.zeros((0, 0))
