"""What an attack is: the view it needs and a pure function of that view."""
from collections.abc import Callable
from typing import Any, NamedTuple

from vfljax.types import Array, Key


class Attack(NamedTuple):
  """An attacker, as an algorithm and what it gets to see.

  Attributes:
    view: A class of `vfljax.views`. Its fields are the threat model.
    run: (key, view) -> guess. It never gets the truth. Guesses at labels are
      scores: [batch] for "how positive", or [batch, classes], the larger the
      likelier. Attacks on a trained federation give one such array for each
      stage of their own training, [stages, samples, classes], the last one
      being their final guess. Guesses at features have the features' shape,
      guesses at weights their structure.
    facts: (view) -> {name: number}; what the attacker knows of its own success,
      such as whether it had enough equations. Recorded beside its score.
  """

  view: type
  run: Callable[[Key, Any], Any]
  facts: Callable[[Any], dict[str, Array]] = lambda view: {}
