"""VFLAIR's names of data sets, networks, defenses and attacks, and ours."""
from collections.abc import Callable, Mapping
import math
from typing import Any

from vfljax.runner.config import Entry
from vfljax.runner.errors import UserError, brief

More = Mapping[str, Any]

# Others are read as CSV files, whose path and label are asked for.
DATA = dict(
    mnist='mnist', cifar10='cifar10', cifar100='cifar100', nuswide='nuswide',
    breast_cancer_diagnose='breast_cancer', credit='credit', criteo='criteo',
)
# Of these VFLAIR can take some of the classes; here there are so many.
CLASSES = dict(
    mnist=10, cifar10=10, cifar100=100, breast_cancer=2, credit=2, criteo=2,
    nuswide=10,
)
# Those that VFLAIR's code chooses, by their number.
CONCEPTS = {2: 'clouds,person', 5: 'buildings,grass,animal,water,person'}
FILES = {*DATA.values(), 'csv'} - {'breast_cancer'}

# Hidden widths before the embedding's.
WIDTHS: dict[str, tuple[int, ...]] = dict(
    MLP2=(32,), MLP2_128=(128,), MLP4=(64, 128, 64), MLP5=(64,) * 4,
    LogisticRegressionModel=(), LogisticRegressionModel_Flatten=(),
)
NETWORKS = dict(resnet18='resnet18')

# VFLAIR bounds the batch's largest norm before it adds noise.
_CLIP = dict(clip_norm=0.2, clip='batch')


def number(
    theirs: Mapping, name: str, default: Any, kind: type = float
) -> Any:
  """An entry that is a number, of this kind; `default` if it is not there.

  Raises:
    UserError: if it is another, and KeyError if it is missing and `default` is
      None.
  """
  value = theirs[name] if default is None else theirs.get(name, default)
  if isinstance(value, bool) or not isinstance(value, (int, float)) or (
      not math.isfinite(value) or kind is int and value != int(value)
  ):
    raise UserError(f'{name!r} must be a number; got {brief(repr(value))}.')
  return kind(value)


def _at_active(name: str, active: bool) -> None:
  if not active:
    raise UserError(
        f'{name} at a passive party, on its embeddings, has no counterpart; '
        "at the active party it has: parameters.party = [k - 1]."
    )


def _laplace(more: More, active: bool) -> Entry:
  _at_active('LaplaceDP', active)
  return Entry('dp_laplace', (number(more, 'dp_strength', None),), dict(_CLIP))


def _gaussian(more: More, active: bool) -> Entry:
  _at_active('GaussianDP', active)
  return Entry('dp_gaussian', (number(more, 'dp_strength', None),), dict(_CLIP))


def _sparse(more: More, active: bool) -> Entry:
  """A rate above 1 is divided by 100 there until it is not."""
  _at_active('GradientSparsification', active)
  dropped = number(more, 'gradient_sparse_rate', None)
  while dropped > 1:
    dropped /= 100
  if not 0 <= dropped < 1:
    raise UserError(
        'gradient_sparse_rate must be 0 or more and not drop all of a gradient;'
        f' 99.5 keeps 0.5 %. Got {more["gradient_sparse_rate"]}.'
    )
  return Entry(
      'gradient_compression', (round(1 - dropped, 9),), dict(residual=True)
  )


def _side(name: str, more: More, active: bool) -> Entry:
  return Entry(
      name, (number(more, 'lambda', None),),
      dict(side='active' if active else 'passive'),
  )


def _coae(more: More, active: bool) -> Entry:
  _at_active('CAE', active)
  return Entry('coae', (number(more, 'lambda', None),))


def _discrete(more: More, active: bool) -> Entry:
  _at_active('DiscreteSGD', active)
  return Entry('discrete_sgd', (number(more, 'bin_numbers', None),))


def _dcae(more: More, active: bool) -> Entry:
  after = (_coae(more, active),)
  bins = (number(more, 'bin_numbers', None),)
  return Entry('discrete_sgd', bins, label='DCAE', after=after)


DEFENSES: dict[str, Callable[[More, bool], Entry]] = dict(
    LaplaceDP=_laplace, GaussianDP=_gaussian, GradientSparsification=_sparse,
    DiscreteSGD=_discrete, CAE=_coae, DCAE=_dcae,
    MID=lambda more, active: _side('mid', more, active),
    DistanceCorrelation=lambda more, active: _side('dcor', more, active),
)


def _plain(name: str, alone: bool = False):
  return lambda more: (name, {}, alone)


def _inversion(more: More):
  options = dict(steps=number(more, 'epochs', 500, int))
  if 'lr' in more:
    options |= dict(learning_rate=number(more, 'lr', None))
  return 'gradient_inversion', options, False


def _completion(more: More):
  options = dict(
      epochs=number(more, 'epochs', 50, int),
      iterations=number(more, 'val_iteration', 1024, int),
  )
  return 'mixmatch', options | dict(stages=min(10, options['epochs'])), False


# Attacks that know some labels, 4 a class if a file does not say how many.
KNOWING = {'PassiveModelCompletion': 4, 'ActiveModelCompletion': 4}
# Parameters -> (our name, its options, whether it needs a run of its own).
ATTACKS: dict[str, Callable[[More], tuple[str, dict[str, Any], bool]]] = dict(
    DirectLabelScoring=_plain('direct_label'),
    BatchLabelReconstruction=_inversion,
    NormbasedScoring=_plain('norm_scoring'),
    DirectionbasedScoring=_plain('direction_scoring'),
    PassiveModelCompletion=_completion,
    ActiveModelCompletion=_plain('active_completion', True),
    ReplacementBackdoor=_plain('label_replacement', True),
    NoisySample=lambda more: ('noisy_sample', dict(
        rate=number(more, 'noise_rate', 0.01),
        std=number(more, 'noise_lambda', 2),
    ), True),
    MissingFeature=lambda more: ('missing_features', dict(
        rate=number(more, 'missing_rate', 0.25),
    ), True),
)
