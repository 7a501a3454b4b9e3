"""Whether a verdict depends on the choice of seeds: a bootstrap over seeds.

As many seeds are drawn with replacement (Efron, 1979). If too few of the draws
agree with a verdict, these seeds do not decide it. With ten seeds this is
nearly the same as asking whether a mean's 95 % interval excludes the limit (a
little weaker, as drawn means spread by 0.95 of the standard error). With three
seeds there are only ten different draws, which is too few.
"""
import numpy as np

from experiments.claims import Verdict

DRAWS = 1000
SURE = 0.975  # Of all draws: of 95 % a fortieth is out at either end.


def weights(seeds: int, which: int = 0) -> np.ndarray:
  """[DRAWS, seeds]: each seed's share in each draw.

  Args:
    seeds: Number of seeds, 1 or more.
    which: Different numbers have independent draws, for seeds that are not
      paired.
  """
  rng = np.random.default_rng(which)
  return rng.multinomial(seeds, np.full(seeds, 1 / seeds), DRAWS) / seeds


def decided(held: bool, share: float) -> bool | None:
  """The verdict, if enough of the draws agree with it; else `None`.

  Args:
    held: The verdict on the seeds as they are.
    share: Share of the draws in which the claim holds, in [0, 1].
  """
  return held if (share if held else 1 - share) >= SURE else None


def said(share: float) -> str:
  """How often it holds."""
  return f'with the seeds drawn anew it holds in {100 * share:.0f} %'


def tested(held: bool, share: float, because: str) -> Verdict:
  """The verdict by the means, or none and how often it holds: see `decided`."""
  found = decided(held, share)
  if found is None:
    word = 'held' if held else 'not held'
    because += f'; it is {word} by the means, and {said(share)}'
  return Verdict(found, because)
