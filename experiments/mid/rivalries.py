"""Which defenses MID's claims compare, and when MID is below the others.

"Below the others" is judged at equal accuracy (see curves.py). At each loss of
0.5, 1, 2, 5 and 10 points that MID and another defense can keep to, the least
success of the attack under MID must be below that under the others, and at one
of these losses by more than the spread (the deviations of both). A loss at
which MID is above by more than the spread refutes it. If MID is above within
the spread, or nowhere below by more than it, nothing is decided. All losses
count for all attacks. An attack during training counts by its best epoch; an
attack that learns or is replayed, by the better of the start and the end of
training.
"""
from collections.abc import Sequence
from typing import NamedTuple

from experiments import evidence
from experiments.claims import Claim, Verdict
from experiments.mid import curves
from experiments.mid.curves import Compared, Curves

PAPER = 'mid'
GENERAL = ('DP-G', 'DP-L', 'GS')


class Rivalry(NamedTuple):
  """A defense against others, by one attack of a record.

  Attributes:
    attack: The attack; of several, the best counts in each seed.
    metrics: Its metrics; the largest counts in each seed.
    of_best: See `curves.compared`.
  """

  title: str
  record: str
  attack: str | Sequence[str]
  metrics: Sequence[str]
  one: str = 'MID'
  others: Sequence[str] = GENERAL
  of_best: bool = False

  def curves(self) -> Curves:
    results = evidence.load(PAPER, self.record).results
    return curves.curves(results, self.attack, *self.metrics)

  def compared(self) -> list[Compared]:
    return curves.compared(
        self.curves(), self.one, self.others, self.of_best
    )

  def judge(self) -> Verdict:
    lines = self.compared()
    found = decided(lines)
    if lines and lines[0].loss == curves.LOSSES[0]:
      return found
    return found._replace(
        because=f'{found.because}; points lost at least: {self._cheapest()}'
    )

  def _cheapest(self) -> str:
    """What `one` and the others lose at least, where they lose much."""
    found = self.curves()
    top = curves.most(found, self.of_best)
    mine = max(found.by_defense.get(self.one, ()), key=lambda p: p.utility,
               default=None)
    theirs = max(curves.rivals(found, self.one, self.others),
                 key=lambda p: p.utility, default=None)
    return ', '.join(
        f'{p.name} {top - p.utility:z.1f}' for p in (mine, theirs) if p
    )

  def claim(self, where: str, text: str) -> Claim:
    return Claim(where, text, self.judge, (self.record,))


def decided(lines: Sequence[Compared]) -> Verdict:
  """Below the others at every loss, and beyond the spread at one.

  Where that ends, it is said up to which loss it was so. Above within the
  spread refutes nothing: which of two is least then is the seeds' doing.
  """
  if not lines:
    return Verdict(None, 'no two defenses keep to the same accuracy')
  won = below(lines)
  held = won or (False if any(c.lost for c in lines) else None)
  up_to = 0 if won else max(
      (n for n in range(1, len(lines)) if below(lines[:n])), default=0
  )
  said = '; '.join(
      f'{c.loss:g} points lost: {c}{curves.worth(c.mine)}' for c in lines
  )
  if up_to:
    said = f'up to {lines[up_to - 1].loss:g} points it is below; {said}'
  return Verdict(held, said)


def below(lines: Sequence[Compared]) -> bool:
  return all(c.won for c in lines) and not all(c.near for c in lines)


def _either(metric: str) -> Sequence[str]:
  return f'{metric}_start', f'{metric}_end'


LEARNED_END = Rivalry(
    'learned gradients, after training', 'fig4_dli', 'learned_gradient',
    ['accuracy_end'], others=(*GENERAL, 'GS no residual'),
)
LAST = LEARNED_END._replace(
    title='DLI, last epoch', attack='direct_label', metrics=['accuracy_last']
)
DIRECT = LAST._replace(
    title='DLI, best epoch', record='fig4_epochs', metrics=['accuracy']
)
LEARNED = LEARNED_END._replace(
    title='learned gradients, start or end', metrics=_either('accuracy')
)
DISCRETE = LAST._replace(
    title='DLI, last epoch, and DG', record='fig4_dg', others=('DG',)
)
LEARNED_DISCRETE = DISCRETE._replace(
    title='learned gradients, start or end, and DG', attack='learned_gradient',
    metrics=_either('accuracy'),
)
FIRST = Rivalry('batch-level inference, first round', 'fig4_bli',
                'gradient_inversion', ['accuracy_start'])
TRAINED = FIRST._replace(
    title='batch-level inference, trained', metrics=['accuracy_end']
)
MATCHED = FIRST._replace(
    title='batch-level inference, read right, start or end',
    metrics=_either('matched'),
)
ADAPTED = MATCHED._replace(
    title='batch-level inference, with a map between or without, read right, '
    'start or end',
    record='fig4_bli_linear',
    attack=('gradient_inversion', 'gradient_inversion:linear'), others=('GS',),
)
TWO = Rivalry('label replacement, two parties', 'fig5_replacement',
              'label_replacement', ['backdoor_accuracy'],
              others=(*GENERAL, 'RVFR'))
FOUR = TWO._replace(
    title='label replacement, four parties', record='fig9', others=GENERAL
)
NOISY = Rivalry('noisy samples', 'fig5_noisy', 'noisy_sample', ['drop'])
MISSING = Rivalry('missing features', 'fig5_missing', 'missing_features',
                  ['drop'], others=(*GENERAL, 'RVFR'), of_best=True)
LAST_FASHION, LEARNED_END_FASHION, LEARNED_FASHION = (
    one._replace(title=f'{one.title}, Fashion-MNIST', record='fig4_dli_fashion')
    for one in (LAST, LEARNED_END, LEARNED)
)
FIRST_FASHION, TRAINED_FASHION, MATCHED_FASHION = (
    one._replace(title=f'{one.title}, Fashion-MNIST', record='fig4_bli_fashion')
    for one in (FIRST, TRAINED, MATCHED)
)
ADAPTED_FASHION = ADAPTED._replace(
    title=f'{ADAPTED.title}, Fashion-MNIST', record='fig4_bli_linear_fashion'
)
TWO_FASHION = TWO._replace(
    title='label replacement, two parties, Fashion-MNIST',
    record='fig5_replacement_fashion',
)
NOISY_FASHION = NOISY._replace(
    title='noisy samples, Fashion-MNIST', record='fig5_noisy_fashion'
)
MISSING_FASHION = MISSING._replace(
    title='missing features, Fashion-MNIST', record='fig5_missing_fashion'
)
# By the figure that has it with ResNet18s and all of CIFAR-10 or -100.
CIFAR10 = tuple(
    (where, one._replace(title=f'{one.title}, a subset of CIFAR-10',
                         record=f'{one.record}_cifar10'))
    for where, one in (
        ('Fig. 4b', LAST), ('ours', LEARNED_END), ('ours', LEARNED),
        ('Fig. 4d', FIRST), ('ours', TRAINED), ('ours', MATCHED),
        ('Fig. 5b', TWO), ('Fig. 5d', NOISY), ('Fig. 5f', MISSING),
    )
)
DIRECTION = Rivalry(
    'direction scoring, best epoch', 'fig8_epochs', 'direction_scoring',
    ['leak_auc'], others=(*GENERAL, 'MARVELL'),
)
DIRECTION_LAST = DIRECTION._replace(
    title='direction scoring, last epoch', record='fig8',
    metrics=['leak_auc_last'],
)
LEARNED_TWO = DIRECTION_LAST._replace(
    title='learned gradients on two classes, start or end',
    attack='learned_gradient', metrics=_either('leak_auc'),
)
CARS = DIRECTION_LAST._replace(
    title='direction scoring on cars and lorries, last epoch',
    record='fig8_cifar10',
)
LEARNED_CARS = LEARNED_TWO._replace(
    title='learned gradients on cars and lorries, start or end',
    record='fig8_cifar10',
)
DIRECTIONS = DIRECTION, DIRECTION_LAST, CARS
ALL_CIFAR10 = tuple(one for where, one in CIFAR10 if where != 'ours')


def _stolen(
    record: str, who: str, plain: str, others: Sequence[str]
) -> Sequence[Rivalry]:
  """Model completion: its head alone is tuned, or the whole model is."""
  return tuple(
      Rivalry(f'{who} completion, {how}, a subset of CIFAR-10', record, attack,
              ['accuracy_last'], others=others)
      for how, attack in (
          ("MixMatch with the head alone tuned (as in Fu et al.'s code), 40 "
           'labels', 'mixmatch:frozen'),
          ('MixMatch, all tuned, 40 labels', 'mixmatch'),
          ('MixMatch, all tuned, 10 labels', 'mixmatch:10'),
          ('plain, all tuned, 40 labels', plain),
          ('plain, all tuned, 10 labels', f'{plain}:10'),
      )
  )


STOLEN = (
    *_stolen('fig3_pmc', 'passive', 'model_completion', ('DP-L', 'GS', 'DG')),
    *_stolen('fig3_amc', 'active', 'active_completion', ('DP-L', 'GS')),
)
# The paper's own attacks, once each: what lambda does to them.
PAPERS = (
    *STOLEN, DIRECT, LAST, LAST_FASHION, FIRST, FIRST_FASHION, TWO, TWO_FASHION,
    NOISY, NOISY_FASHION, MISSING, MISSING_FASHION, *ALL_CIFAR10, *DIRECTIONS,
    FOUR,
)
RIVALRIES = (
    DIRECT, LAST, LEARNED_END, LEARNED, DISCRETE, LEARNED_DISCRETE, FIRST,
    TRAINED, MATCHED, ADAPTED, TWO, FOUR, NOISY, MISSING, DIRECTION,
    DIRECTION_LAST, LEARNED_TWO, LAST_FASHION, LEARNED_END_FASHION,
    LEARNED_FASHION, FIRST_FASHION, TRAINED_FASHION, MATCHED_FASHION,
    ADAPTED_FASHION, TWO_FASHION, NOISY_FASHION, MISSING_FASHION,
    *(one for _, one in CIFAR10), CARS, LEARNED_CARS,
)
