"""Whether seeds by themselves agree with the verdict on means over seeds."""
import math

from experiments import evidence
from experiments.claims import Claim, Verdict
from experiments.plugvfl.rows import PAPER, of_seed


CHANCE = 1 / 4  # How often three seeds agree on what is as likely as not.


def tolerated(seeds: int) -> int:
  """How many of the seeds may say the opposite of the verdict.

  As many as would do so, of a claim that each seed decides by tossing a coin,
  at most as often as three seeds agree: none of three to five, two of ten. -1
  for two seeds, whose agreement says too little.
  """
  within = [
      k for k in range(seeds) if 2 * sum(
          math.comb(seeds, i) for i in range(k + 1)
      ) <= CHANCE * 2**seeds
  ]
  return max(within, default=-1)


def by_each_seed(claim: Claim) -> Claim:
  """A claim that is not decided if too many seeds alone say the opposite.

  With a single seed the verdict is left unchanged.
  """

  def judge() -> Verdict:
    found = claim.judge()
    seeds = sorted(set.intersection(*(
        {*evidence.load(PAPER, name).results.seeds} for name in claim.records
    )))
    if found.held is None or len(seeds) < 2:
      return found
    alone = [of_seed(seed, claim.judge).held for seed in seeds]
    against = alone.count(not found.held)
    few = against <= tolerated(len(seeds))
    if few and not against:
      return found
    word = 'held' if found.held else 'not held'
    return Verdict(
        found.held if few else None, f'{found.because}; by the means it is '
        f'{word}, by {against} of {len(seeds)} seeds alone the opposite',
    )

  return claim._replace(judge=judge) if claim.records else claim
