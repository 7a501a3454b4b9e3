"""Whether a verdict hangs on which seeds there were: they are drawn anew.

Of as many seeds, with replacement (the bootstrap of Efron, 1979): a verdict
that too few of the draws share is not decided by these seeds. Of ten seeds that
asks of a mean nearly what its 95 % interval does (a little less, as such means
spread by 0.95 of the standard error); of three there are ten draws that differ,
which is too few to ask.
"""
import numpy as np

DRAWS = 1000
SURE = 0.975  # Of all draws: of 95 % a fortieth is out at either end.


def weights(seeds: int, which: int = 0) -> np.ndarray:
  """[DRAWS, seeds]: how often each seed is in a draw, as a share of the draw.

  Args:
    seeds: How many there are, 1 or more.
    which: Another number has draws of its own: for seeds that are not paired.
  """
  rng = np.random.default_rng(which)
  return rng.multinomial(seeds, np.full(seeds, 1 / seeds), DRAWS) / seeds


def decided(held: bool, share: float) -> bool | None:
  """The verdict, if enough of the draws have it; else `None`.

  Args:
    held: On the seeds as they are.
    share: Of the draws in which it holds, in [0, 1].
  """
  return held if (share if held else 1 - share) >= SURE else None


def said(share: float) -> str:
  """How often it holds."""
  return f'with the seeds drawn anew it holds in {100 * share:.0f} %'
