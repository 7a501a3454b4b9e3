"""How good a defense is: privacy against utility, in one number.

Two families of scores. Kang et al. (2022), sections 8.1-8.3: privacy leakage
and utility loss in percentage points, a score table (Table 8), the PU score
(Eq. 21) and the optimal PU score over strengths (Eq. 22). VFLAIR (Zou et al.,
2024): the defense capability score (DCS) on fractions, its mean over attacks of
a type (T-DCS) and the weighted mean of those (C-DCS). Plain NumPy, on results.

Measured metrics (AUC, accuracy, SSIM) are fractions in both families.
"""
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Table 8 of Kang et al.: upper ends of the ranges that score 5, 4, 3, 2 and 1;
# each range contains its upper end.
LEAKAGE_RANGES = (5.0, 10.0, 15.0, 20.0, 25.0)
LOSS_RANGES = (0.5, 1.0, 2.0, 4.0, 6.0)

# Percentage points are compared with the table to this many decimals, so that
# an AUC of 0.65 in 32 bits is a leakage of 15 and not of 15.0000006.
_DECIMALS = 4


def privacy_leakage(attack, prior: Any = 0.5) -> Any:
  """Privacy leakage in percentage points: Table 7's first column.

  Args:
    attack: What the attack achieves, a fraction (AUC, accuracy, SSIM); arrays
      broadcast.
    prior: What the attacker achieves without the federation, a fraction: 0.5
      for the AUC of a guess; the same attacker's local model for model
      completion; 0 for SSIM.
  """
  return _points(attack, prior)


def utility_loss(undefended, defended) -> Any:
  """Utility loss in percentage points: Table 7's second column.

  Args:
    undefended: The main task's metric without the defense, a fraction; arrays
      broadcast.
    defended: The same metric with it.
  """
  return _points(undefended, defended)


def leakage_score(leakage) -> Any:
  """Table 8's score, 5 (best) to 0, of a leakage in percentage points."""
  return _score(leakage, LEAKAGE_RANGES)


def loss_score(loss) -> Any:
  """Table 8's score, 5 (best) to 0, of a utility loss in percentage points."""
  return _score(loss, LOSS_RANGES)


def pu_score(leakage, loss) -> Any:
  """PU score, Eq. 21: the smaller of the scores of leakage and utility loss.

  Args:
    leakage: Percentage points, any sign; below 0 counts as 0. Arrays broadcast.
      NaN (not measured, or diverged) scores 0.
    loss: The same for the utility loss.

  Returns:
    Integers from 0 to 5.
  """
  return np.minimum(leakage_score(leakage), loss_score(loss))


def optimal_pu_score(leakage, loss) -> int:
  """Optimal PU score, Eq. 22: the best strength against its worst attack.

  Args:
    leakage: [strengths, attacks] percentage points.
    loss: [strengths] percentage points.

  Returns:
    max over strengths of the PU score of (max over attacks of leakage, loss).

  Raises:
    ValueError: if the shapes do not agree or there is nothing to score.
  """
  leakage, loss = np.asarray(leakage, float), np.asarray(loss, float)
  if leakage.ndim != 2 or loss.shape != leakage.shape[:1] or not leakage.size:
    raise ValueError(
        'optimal_pu_score needs leakage [strengths, attacks] and loss'
        f' [strengths]; got {leakage.shape} and {loss.shape}.'
    )
  return int(pu_score(leakage.max(1), loss).max())


def preference(
    scores: Mapping[str, float | Sequence[float]],
) -> tuple[tuple[str, ...], ...]:
  """Defenses in order of their optimal PU scores, the best ones first.

  Kang et al. also look at the trade-off curves to part those that tie here.

  Args:
    scores: By defense, an optimal PU score or one for each evaluation task; the
      mean counts.

  Returns:
    Groups of defenses with equal means, each in alphabetic order. Those whose
    mean is NaN, as a score is missing, are the last group.
  """
  means = {name: round(float(np.mean(s)), 9) for name, s in scores.items()}
  unknown = tuple(sorted(name for name in means if np.isnan(means[name])))
  known = {name: means[name] for name in means if name not in unknown}
  groups = (
      tuple(sorted(name for name, mean in known.items() if mean == level))
      for level in sorted(set(known.values()), reverse=True)
  )
  return (*groups, *([unknown] if unknown else ()))


def dcs(
    attack, main, ideal_attack: Any = 0.0, ideal_main: Any = 1.0,
    beta: float = 0.5,
) -> Any:
  """VFLAIR's defense capability score, in (0, 1]; 1 is an ideal defense.

  1 / (1 + sqrt((1-beta) max(AP - AP*, 0)^2 + beta max(MP* - MP, 0)^2)).

  Args:
    attack: AP, the attack's performance against the defense, a fraction.
    main: MP, the main task's performance under the defense, a fraction.
    ideal_attack: AP*, that of an attack on an ideal defense.
    ideal_main: MP*, the performance that an ideal defense keeps; VFLAIR takes
      the undefended federation's.
    beta: Weight of the main task, in [0, 1].

  Raises:
    ValueError: if `beta` is outside [0, 1].
  """
  if not 0 <= beta <= 1:
    raise ValueError(f'dcs: beta must be in [0, 1]; got {beta}.')
  leak = np.maximum(np.subtract(attack, ideal_attack), 0)
  lost = np.maximum(np.subtract(ideal_main, main), 0)
  return 1 / (1 + np.sqrt((1 - beta) * leak**2 + beta * lost**2))


def t_dcs(scores) -> float:
  """Type-level DCS: the mean of the DCS [attacks] of one type's attacks.

  Raises:
    ValueError: if there are none.
  """
  scores = np.asarray(scores, float)
  if not scores.size:
    raise ValueError('t_dcs: there are no scores.')
  return float(scores.mean())


def c_dcs(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
  """Comprehensive DCS: the weighted mean of the T-DCS of all attack types.

  Args:
    scores: T-DCS by attack type.
    weights: Weight by attack type, 0 or more, with sum 1.

  Raises:
    ValueError: if the types differ, a weight is negative or the sum is not 1.
  """
  if scores.keys() != weights.keys():
    raise ValueError(
        f'c_dcs: scores are of {sorted(scores)}, weights of {sorted(weights)}.'
    )
  total = sum(weights.values())
  if any(w < 0 for w in weights.values()) or abs(total - 1) > 1e-6:
    raise ValueError(
        f'c_dcs: weights must be 0 or more with sum 1; the sum is {total:g}.'
    )
  return float(sum(weights[kind] * scores[kind] for kind in scores))


def _points(above, below) -> Any:
  """above - below in percentage points."""
  return 100 * (np.asarray(above, float) - np.asarray(below, float))[()]


def _score(points, ends: tuple[float, ...]) -> Any:
  """5 minus the number of range ends that lie below `points`; 0 for NaN."""
  points = np.round(np.asarray(points, float), _DECIMALS)
  exceeded = (points[..., None] > np.asarray(ends)).sum(-1)
  return np.where(np.isnan(points), 0, len(ends) - exceeded)[()]
