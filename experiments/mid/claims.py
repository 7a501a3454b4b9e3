"""Verdicts on MID's claims: the criteria, on means over seeds.

Most compare MID with other defenses at equal accuracy, see rivalries.py. The
spread is the sum of two sample deviations (or one, if a number has none). Two
numbers that differ by less decide nothing.
"""
from functools import partial

from experiments.claims import Claim, Verdict, untestable
from experiments.mid import curves, knowing, rebuilt
from experiments.mid.curves import Compared, Curves, Point
from experiments.mid.rivalries import (
    ADAPTED, ADAPTED_FASHION, CARS, CIFAR10, DIRECT, DIRECTION, DIRECTION_LAST,
    DISCRETE, FIRST, FIRST_FASHION, FOUR, LAST, LAST_FASHION, LEARNED,
    LEARNED_CARS, LEARNED_DISCRETE, LEARNED_END, LEARNED_END_FASHION,
    LEARNED_FASHION, LEARNED_TWO, MATCHED, MATCHED_FASHION, MISSING,
    MISSING_FASHION, NOISY, NOISY_FASHION, PAPERS, Rivalry, STOLEN, TRAINED,
    TRAINED_FASHION, TWO, TWO_FASHION,
)

LOW = 60.0  # AUC of direction scoring that is 'low'; guessing is 50.
MARGIN = 5.0  # Points of success within which two defenses are 'like'.
AFFORDED = 5.0  # Points of accuracy that a lambda above 0 may cost.
# Of means of so many seeds, drawn from one normal distribution: see its test.
CHANCES = {5: 127, 3: 24, 2: 9}
RULE = (
    'On means over seeds. `<` and `>`: apart by more than the sum of both '
    'sample deviations (what is alike is so to either side in one of '
    f'{CHANCES[5]} comparisons of five seeds, of {CHANCES[3]} of three, of '
    f'{CHANCES[2]} of two); `~`: by less, which '
    'neither holds nor refutes. MID is below the others if its mean is at '
    'every loss of accuracy that both keep to, once by `<`; that is refuted '
    'by a `>`, and else not decided. Every defense counts at the strength '
    'that leaves least by the same seeds, of which the others together have '
    'more than MID; in section 5.3 the best of several lambdas meets one '
    'lambda 0. That section speaks of "certain gradient-based" attacks, and '
    'section 5.6 excepts Figures 5a, 5b, 5e and 5f, where lambda 0 is low '
    'already; all are judged.'
)


def _at_zero(found: Curves) -> Point:
  """MID without regularization: only the network that it adds."""
  return next(p for p in found.by_defense['MID'] if p.strength == 0)


def _zero(rivalry: Rivalry) -> Claim:
  """A claim that is decided only beyond the spread of both numbers."""
  def judge() -> Verdict:
    found = rivalry.curves()
    zero, free = _at_zero(found), found.undefended
    return Verdict(
        curves.above(free.success - zero.success, free.spread + zero.spread),
        f'{free.success:.1f} +- {free.spread:.1f} without, {zero.success:.1f} '
        f'+- {zero.spread:.1f} with MID 0',
    )

  return Claim('Section 5.6', 'MID has an effect at lambda 0 already: '
               + rivalry.title, judge, (rivalry.record,))


def _nothing_but_a_network(rivalry: Rivalry) -> Verdict:
  """Whether lambda does more against an attack than the layers it is in."""
  found = rivalry.curves()
  zero = _at_zero(found)
  least = curves.lowest(
      (p for p in found.by_defense['MID'] if p.strength),
      curves.most(found, rivalry.of_best) - AFFORDED,
  )
  said = f'MID 0 {zero.success:.1f} +- {zero.spread:.1f}; '
  if not least:
    return Verdict(
        None, f'{said}every lambda above 0 costs over {AFFORDED:g} points'
    )
  return Verdict(
      curves.above(zero.success - least.success, zero.spread + least.spread),
      f'{said}least above 0 for {AFFORDED:g} points: {least.name} '
      f'{least.success:.1f} +- {least.spread:.1f}{curves.worth(least)}',
  )


def _like(rivalry: Rivalry, below: bool) -> Verdict:
  """Whether RVFR is within the margin of MID, or at least (`below`) that.

  RVFR has no strength: it is judged where it stands, at the least loss that
  both keep to. Seeds that spread make neither verdict easier.
  """
  lines = curves.compared(rivalry.curves(), 'RVFR', ['MID'])
  if not lines:
    return Verdict(None, f'RVFR costs over {curves.LOSSES[-1]:g} points')
  first = lines[0]
  held = within(first, below)
  open_ = ': not decided' if held is None else ''
  if held and below and all(_is_above(c) for c in lines):
    held, open_ = None, ', but it is above at every loss: not decided'
  said = '; '.join(f'{c.loss:g} points lost: {c}' for c in lines)
  return Verdict(
      held, f'like is within {MARGIN:g} points at the least loss, the seeds\' '
      f'spread of {first.mine.spread + first.rival.spread:.1f} included'
      f'{open_}; {said}',
  )


def _is_above(c: Compared) -> bool:
  """Whether it is by more than the spread."""
  return c.mine.success - c.rival.success > c.mine.spread + c.rival.spread


def within(compared: Compared, below: bool) -> bool | None:
  """Whether a success is less than MARGIN from the rival's; `None`: unclear.

  Args:
    below: Any success below the rival's will do.
  """
  apart = compared.mine.success - compared.rival.success
  spread = compared.mine.spread + compared.rival.spread
  apart = apart if below else abs(apart)
  if apart + spread <= MARGIN:
    return True
  return False if apart - spread > MARGIN else None


def _all_stop(rivalry: Rivalry) -> Verdict:
  """Whether all bring an attack on two classes down for 2 points of AUC.

  One that is above `LOW` by more than its spread refutes it.
  """
  found = rivalry.curves()
  least = {
      name: curves.lowest(points, found.undefended.utility - 2)
      for name, points in found.by_defense.items()
  }
  low = [
      p is not None and curves.above(LOW - p.success, p.spread)
      for p in least.values()
  ]
  return Verdict(
      curves.every(low) if low else False,
      ', '.join(f'{p.name} {p.success:.1f}' if p else f'{name}: none'
                for name, p in least.items()),
  )


def _marvell(rivalry: Rivalry) -> Verdict:
  """Whether MARVELL's model is better where direction scoring is low."""
  found = rivalry.curves()
  best = {
      name: max((p for p in found.by_defense[name] if p.success <= LOW),
                key=lambda p: p.utility, default=None)
      for name in ('MARVELL', 'MID')
  }
  marvell, mid = best['MARVELL'], best['MID']
  return Verdict(
      curves.above(
          marvell.utility - mid.utility, marvell.unsure + mid.unsure
      ) if marvell and mid else None,
      ', '.join(f'{p.name}: AUC {p.utility:.1f}, read {p.success:.1f}'
                for p in (marvell, mid) if p) or f'neither is at {LOW:g}',
  )


CLAIMS = (
    DIRECT.claim('Fig. 4a', 'MID below DP-G, DP-L, GS: direct label inference, '
                 'best epoch (the paper: below most of DP-L, GS, DG)'),
    LAST.claim('Fig. 4a', '... last epoch'),
    LEARNED_END.claim('ours', '... an attacker who learns from gradients of '
                      'the trained federation'),
    LEARNED.claim('ours', '... who chooses the start or the end of training'),
    LAST_FASHION.claim('Fig. 4a', 'MID below DP-G, DP-L, GS: direct label '
                       'inference, last epoch, Fashion-MNIST'),
    LEARNED_END_FASHION.claim('ours', '... an attacker who learns from '
                              'gradients of the trained federation'),
    LEARNED_FASHION.claim('ours', '... who chooses the start or the end'),
    DISCRETE.claim('Fig. 4a', 'MID below DG: direct label inference, last '
                   'epoch'),
    LEARNED_DISCRETE.claim('ours', '... an attacker who learns, start or end'),
    FIRST.claim('Fig. 4c', 'MID below DP-G, DP-L, GS: batch-level inference of '
                'the first round'),
    TRAINED.claim('ours', '... of a round of the trained federation'),
    MATCHED.claim('ours', '... guessed classes read as what they mostly are, '
                  'start or end'),
    ADAPTED.claim('ours', '... below GS (to 99 %): the better of this attacker '
                  'and one who searches for a map between its embedding and '
                  'the sum'),
    FIRST_FASHION.claim('Fig. 4c', 'MID below DP-G, DP-L, GS: batch-level '
                        'inference of the first round, Fashion-MNIST'),
    TRAINED_FASHION.claim('ours', '... of a round of the trained federation'),
    MATCHED_FASHION.claim('ours', '... guessed classes read as what they '
                          'mostly are, start or end'),
    ADAPTED_FASHION.claim('ours', '... below GS (to 99 %): the better of this '
                          'attacker and one who searches for a map'),
    FIRST._replace(one='CAE', others=('MID',)).claim(
        'Fig. 4c', 'CAE is slightly below MID'),
    MATCHED._replace(one='CAE', others=('MID',)).claim(
        'ours', '... read right, start or end'),
    *(adapted._replace(one='CAE', others=('MID',)).claim(
        'ours', '... the better of this attacker and one who searches for a '
        f'map{data}')
      for adapted, data in ((ADAPTED, ''), (ADAPTED_FASHION, ', Fashion-MNIST'))
      ),
    TWO.claim('Fig. 5a', 'MID below DP-G, DP-L, GS, RVFR: label replacement, '
              'two parties'),
    TWO_FASHION.claim('Fig. 5a', '... on Fashion-MNIST'),
    FOUR.claim('Fig. 9', '... below DP-G, DP-L, GS: four parties'),
    Claim('Section C.2', "RVFR's defense is like MID's: four parties",
          lambda: _like(FOUR, below=False), ('fig9',)),
    NOISY.claim('Fig. 5c', 'MID below DP-G, DP-L, GS: noisy samples'),
    NOISY_FASHION.claim('Fig. 5c', 'MID below DP-G, DP-L, GS: noisy samples, '
                        'Fashion-MNIST'),
    *(Claim(where, 'RVFR is below MID or like it, at most '
            f'{MARGIN:g} points above (above at every loss decides nothing): '
            f'{one.title}',
            partial(_like, one, below=True), (one.record,))
      for where, one in (('Fig. 5c', NOISY), ('Fig. 5c', NOISY_FASHION),
                         *CIFAR10) if where in ('Fig. 5c', 'Fig. 5d')),
    MISSING.claim('Fig. 5e', 'MID below DP-G, DP-L, GS, RVFR: missing '
                  'features'),
    MISSING_FASHION.claim('Fig. 5e', '... on Fashion-MNIST'),
    *(one.claim(where, f'MID below {", ".join(one.others)}: {one.title}')
      for where, one in CIFAR10),
    *map(_zero, (TWO, TWO_FASHION, MISSING, MISSING_FASHION)),
    *(_zero(one) for where, one in CIFAR10 if where in ('Fig. 5b', 'Fig. 5f')),
    Claim('Fig. 8', f'every defense brings direction scoring to {LOW:g} % for '
          '2 points of AUC, best epoch', lambda: _all_stop(DIRECTION),
          ('fig8_epochs',)),
    Claim('Fig. 8', '... last epoch', lambda: _all_stop(DIRECTION_LAST),
          ('fig8',)),
    Claim('ours', f'... and an attacker who learns, start or end, to {LOW:g}',
          lambda: _all_stop(LEARNED_TWO), ('fig8',)),
    Claim('Fig. 8', 'MARVELL keeps the better model where it is so low, best '
          'epoch', lambda: _marvell(DIRECTION), ('fig8_epochs',)),
    Claim('Fig. 8', f'every defense brings direction scoring to {LOW:g} % for '
          '2 points of AUC, last epoch (cars and lorries of CIFAR-10)',
          lambda: _all_stop(CARS), ('fig8_cifar10',)),
    Claim('ours', f'... and an attacker who learns, start or end, to {LOW:g}',
          lambda: _all_stop(LEARNED_CARS), ('fig8_cifar10',)),
    Claim('Fig. 8', 'MARVELL keeps the better model where it is so low, last '
          'epoch (cars and lorries)', lambda: _marvell(CARS),
          ('fig8_cifar10',)),
    *rebuilt.claims('cafe_mnist', 'MNIST'),
    *rebuilt.claims('cafe_cifar10', 'CIFAR-10'),
    *(claim for name, data in (('mnist', 'MNIST'), ('cifar10', 'CIFAR-10'))
      for claim in rebuilt.claims(
          f'cafe_{name}_published', data, "its authors' weights"
      )),
    *knowing.CLAIMS,
    *(one.claim('Fig. 3', f'MID below {", ".join(one.others)} at every loss of '
                'up to 10 points, whatever it leaves of the passive party\'s '
                'worth (the paper: at a "high" accuracy, without a number): '
                f'{one.title}') for one in STOLEN),
    *(Claim('Section 5.3', 'the bottleneck does more than its layers: the best '
            f'lambda above 0 for up to {AFFORDED:g} points leaves less than '
            f'lambda 0: {one.title}',
            partial(_nothing_but_a_network, one), (one.record,))
      for one in PAPERS),
    untestable('Theorem 4.1', 'I(H, T) and I(H\', T\') bound what a backdoor '
               'changes of I(Y, T)', 'the bound has the number of values of T '
               'and the least probability of an embedding: with normal noise '
               'and real embeddings the one is infinite and the other 0; of '
               'what is to follow, that MID stops backdoors, see Figs. 5 and '
               '9'),
    untestable('Theorem 4.2', 'I(X, Z) <= I(H, T), so that MID protects the '
               'passive party\'s samples', 'no record has mutual information; '
               'the inequality is the data processing inequality, whose proof '
               'needs no measurement; of what is to follow, that samples are '
               'not rebuilt, see Section 5.7, and who knows MID below it'),
    untestable('Fig. 3', 'MID below DG: active model completion', 'not run'),
    untestable('Fig. 9', 'MID below DP-G, DP-L, GS on CIFAR-10: four parties',
               'not run'),
    untestable('Table 2', 'PSNR and accuracy at lambda 0.1, 10 and 1000 and '
               'under DP-G 1 and 10', 'not run'),
    untestable('Figs. 3-9, Tables 1, 2', 'the same with ResNets and on '
               'CIFAR-100', 'not run: a GPU was lent for minutes, and '
               "CIFAR-100's file cannot be had"),
)
