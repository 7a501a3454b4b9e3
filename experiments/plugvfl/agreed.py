"""Whether each seed by itself agrees with the verdict on means over seeds."""
from experiments import evidence
from experiments.claims import Claim, Verdict
from experiments.plugvfl.rows import PAPER, of_seed


def by_each_seed(claim: Claim) -> Claim:
  """A claim that counts as not decided if one seed alone says the opposite.

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
    if not against:
      return found
    word = 'held' if found.held else 'not held'
    return Verdict(
        None, f'{found.because}; by the means it is {word}, by {against} of '
        f'{len(seeds)} seeds alone the opposite',
    )

  return claim._replace(judge=judge) if claim.records else claim
