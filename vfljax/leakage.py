"""How attacks are named in results, and how their success becomes a leakage.

Leakage is that of Kang et al. (2022), Table 7, in percentage points: an
attack's score minus guessing's, or minus that of an attacker without the
federation.
"""
from typing import NamedTuple


class Score(NamedTuple):
  """How an attack's success becomes a leakage, in percentage points.

  Attributes:
    metrics: Names, of which the first one measured counts; '{utility}' stands
      for the federation's main metric.
    chance: What guessing has: a number; `None` for one in as many as there are
      classes; the name of another measurement of the attack; of several
      metrics one a metric.
    over: A baseline of which the same metric is subtracted in place of chance;
      '' for none.
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
# Scores of gradients say which samples are alike, not which class is which, and
# a defense may swap the two: 'leak_auc' is folded. A completed network has been
# told the classes by its known labels: with an AUC under 0.5 it is wrong, not
# the other way round, and has no use of the labels that would tell. Nor is its
# baseline folded, and the difference of two folded numbers would take the luck
# of attackers who learned nothing, on few samples, for knowledge.
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


NOBODYS = Score((), ())  # Of an attack that nobody knows.


class Known(NamedTuple):
  """What a report has to know of an attack.

  Attributes:
    score: How its success becomes a leakage; `NOBODYS` if nobody knows, and
      then it is not counted.
    is_baseline: Whether it uses nothing that it gets from the federation.
    trained: Whether it attacks the trained federation.
    summary: One line.
  """

  score: Score
  is_baseline: bool = False
  trained: bool = False
  summary: str = ''


class AttackName(NamedTuple):
  """What results call an attack: 'base', 'base:variant', 'base:variant@party'.

  Attributes:
    base: Its name in the registry.
    variant: What is special about it; '' for nothing.
    party: Which of several attackers; 0 for the first or only one.
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
