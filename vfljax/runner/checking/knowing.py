"""How many labels of a class attackers of the trained federation may know."""
import sys

from vfljax.runner.experiment import attackers
from vfljax.runner.experiment.setting import Setting
from vfljax.views import RecordedGradients, TrainedBottom, UnlabeledBottom

LABELED = {TrainedBottom, UnlabeledBottom}  # Views with known labels.


def rarest(setting: Setting) -> tuple[int, int]:
  """Samples of the rarest class: in all, and for training in any split."""
  counts = setting.samples.labels.sum(0)
  # A random split may leave a class fewer training samples than its share.
  share = setting.sizes.train / len(setting.samples.labels)
  return int(counts.min()), int(counts.min() * share * 0.8)


def most_known(setting: Setting) -> int:
  """How many labels of a class attackers of the trained federation may know.

  Without such an attacker there is no limit, nor do variants count that say
  themselves how many they know.
  """
  views = {
      attack.view for name, attack in setting.after_training.items()
      if not attackers.differs(setting.config, name, 'known')
  }
  if not views & LABELED:
    return sys.maxsize
  return max(rarest(setting)[1], 1)


def check(setting: Setting, known: int) -> None:
  """Refuses a number of known labels per class that a split may not have.

  Raises:
    ValueError: says how many there can be.
  """
  all_of_it, least = rarest(setting)
  if known and not all_of_it:
    raise ValueError(
        f'No sample is of class {int(setting.samples.labels.sum(0).argmin())} '
        f'of {setting.classes}, so that nobody can know its label: use rows of '
        'all classes, or attacks that know no labels (--config.attacks=...).'
    )
  if known and not 1 <= known <= max(least, 1):
    # An attack that learns from recorded gradients is refused all labels.
    seen = {attack.view for attack in setting.replayed.values()}
    every = '' if RecordedGradients in seen else ', or 0 for all of them'
    raise ValueError(
        f'attack.known must be between 1 and {max(least, 1)} labels per class '
        f'(the rarest class has {all_of_it} samples){every}; got {known}.'
    )
