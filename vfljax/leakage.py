"""How attacks are named in results, and how their success becomes a leakage.

Leakage is that of Kang et al. (2022), Table 7, in percentage points: the
attack's score minus that of guessing, or of an attacker without the federation.
"""
from typing import NamedTuple


class Score(NamedTuple):
  """How an attack's success becomes a leakage, in percentage points.

  Attributes:
    metrics: Names in order of preference: the first that was measured is the
      score; '{utility}' stands for the federation's main metric.
    chance: The score of guessing, one entry per metric: a number; `None` for
      1 / classes; or the name of another metric of the attack.
    over: A baseline whose score is subtracted in place of chance; '' for none.
    does: What the attack does, for a sentence; '{}' is the leakage.
    means: What leakage means, for a glossary.
  """

  metrics: tuple[str, ...]
  chance: tuple[float | str | None, ...]
  over: str = ''
  does: str = 'infers labels {} better than guessing'
  means: str = (
      'how much better than guessing an attacker infers the labels, in '
      'percentage points'
  )


LABELS = Score(('leak_auc', 'auc', 'accuracy'), (0.5, 0.5, None))
# Scores of gradients tell which samples are alike, not which class is which,
# and a defense may swap the two: 'leak_auc' is folded. A completed network has
# learned from labels which class is which: an AUC under 0.5 is a failure and
# not a swap that the attacker could undo, so it is not folded. Nor is its
# baseline: the difference of two folded numbers would count the luck of
# attackers who learned nothing, on few samples, as leakage.
COMPLETION = Score(
    ('{utility}_last', 'auc_last', 'accuracy_last'), (None, None, None),
    over='local_model', does=(
        'infers labels {} better than a local model trained on the same known '
        'labels'
    ), means=(
        'how much better an attacker who completes its network infers the '
        'labels than a local model trained on the same known labels, in '
        'percentage points'
    ),
)
IMAGES = Score(
    ('ssim',), (0.0,), does='rebuilds images to {} of structural similarity',
    means='the structural similarity (times 100) of rebuilt images',
)
DIVERTED = Score(
    ('backdoor_accuracy',), ('untriggered',), does=(
        'has {} more of the triggered samples taken for its target than '
        'without the trigger'
    ), means=(
        'how many more of the triggered samples are taken for the target than '
        'without the trigger'
    ),
)
DROP = Score(
    ('drop',), (0.0,), does='costs {} of accuracy on what it touches',
    means='how much accuracy an attack costs on what it touches',
)


NOBODYS = Score((), ())  # The score of an attack that is not registered.


class Known(NamedTuple):
  """What a report has to know of an attack.

  Attributes:
    score: How its success becomes a leakage; an attack with `NOBODYS`, which is
      not registered, is not counted.
    is_baseline: Whether it uses nothing that it gets from the federation.
    trained: Whether it attacks the trained federation.
    summary: One line.
  """

  score: Score
  is_baseline: bool = False
  trained: bool = False
  summary: str = ''


class AttackName(NamedTuple):
  """An attack's name in results: 'base', 'base:variant', 'base:variant@party'.

  Attributes:
    base: Its name in the registry.
    variant: The name of a variant in the configuration; '' for none.
    party: The attacking party; 0 for the first or only one.
  """

  base: str
  variant: str = ''
  party: int = 0

  @classmethod
  def parse(cls, text: str) -> 'AttackName':
    """The parts of a result's name."""
    name, _, party = text.partition('@')
    base, _, variant = name.partition(':')
    return cls(base, variant, int(party) if party.isdigit() else 0)

  @property
  def named(self) -> str:
    """Without the party: the name in a configuration."""
    return f'{self.base}:{self.variant}' if self.variant else self.base

  def __str__(self) -> str:
    return f'{self.named}@{self.party}' if self.party else self.named
