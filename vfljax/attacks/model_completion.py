"""Passive model completion (Fu et al. 2022): a head on the stolen bottom.

After training, a passive party puts an inference head on its own bottom network
and trains it on the few samples whose labels it knows. Fu et al. also let it
learn from unlabeled samples: that is `mixmatch`. Two baselines tell what the
stolen weights are worth: the same procedure from a randomly initialised bottom
(`scratch`), and a model of its own choice on its raw features (`local_model`).
An attacker cannot select by test accuracy, so the guesses of all stages are
returned, and the best and the last are reported.
"""
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from vfljax import nets
from vfljax import check as checks
from vfljax.attack import TRAINED, Attack, in_halves, recipe
from vfljax.completion import (
    RATES, Samples, Schedule, check, complete, with_statistics,
)
from vfljax.leakage import COMPLETION
from vfljax.scene import Amounts, Scene
from vfljax.types import VFL, Array, Key, Net, Params
from vfljax.views import TrainedBottom

__all__ = [
    'Options', 'Schedule', 'baselines', 'check', 'check_options', 'complete',
    'head_of', 'local_model', 'mlp_head', 'model_completion', 'schedule_of',
    'scratch', 'standardized',
]
_OWN = 'attack.completion.'


class Options(NamedTuple):
  """How attacks that complete a network train, and their baselines."""

  epochs: int = 50
  batch_size: int = 0  # 0: all known labels at once
  stages: int = 10
  learning_rate: float = 1e-3
  optimizer: str = 'adam'  # or 'sgd', 'momentum'
  schedule: str = 'constant'  # or 'cosine'
  bottom_rate: float = 1.0  # of the stolen bottom, as a share of learning_rate
  weight_decay: float = 0.0
  head: tuple[int, ...] = (32,)  # hidden widths of its head; () is linear
  tune: bool = True  # whether it trains the stolen bottom too
  norm: str = 'none'  # of its head's hidden layers: 'batch' or 'group'
  standardize: bool = False  # whether it scales its head's input


def schedule_of(options: Options) -> Schedule:
  """The schedule that the options describe.

  Raises:
    ValueError: naming the option, if it makes no sense.
  """
  checks.one_of(f'{_OWN}schedule', options.schedule, RATES)
  found = Schedule(
      options.epochs, options.batch_size, options.stages, options.learning_rate,
      options.optimizer, options.schedule, options.bottom_rate,
      options.weight_decay,
  )
  check(found, _OWN)
  return found


def head_of(options: Options, scene: Scene) -> Net:
  """The inference head; for logistic regression a linear one."""
  hidden = () if scene.linear else options.head
  return nets.mlp(*hidden, scene.classes, norm=options.norm)


def baselines(scene: Scene) -> tuple[str, ...]:
  """Names of the baselines; none for VLR, which is completed without labels."""
  return () if scene.linear else ('local_model', 'scratch')


def check_options(options: Options, scene: Scene, samples: Amounts) -> None:
  """Refuses options that make no sense or would change nothing.

  Raises:
    ValueError: naming the option.
  """
  del samples
  checks.one_of(f'{_OWN}norm', options.norm, nets.NORMS)
  if options.norm != 'none' and (scene.linear or not options.head):
    raise ValueError(
        f'{_OWN}norm normalizes the hidden layers of an inference head, but '
        'there are none: set --config.attack.completion.head=64, not with vlr.'
    )
  if options.bottom_rate != 1 and (scene.linear or not options.tune):
    raise ValueError(
        f'{_OWN}bottom_rate is for a stolen bottom network that is trained '
        'with a head: set --config.attack.completion.tune=True, not with vlr.'
    )
  schedule_of(options)


def rest(options: Options, scene: Scene) -> str:
  """What a completed network is trained by, see `recipe`; '' for VLR's."""
  del options
  return '' if scene.linear else 'completion'


def skips_blank(options: Options, scene: Scene) -> bool:
  """Whether steps, on all known samples, owe nothing to unlabeled ones."""
  alone = not options.batch_size and not options.standardize
  return alone and scene.skips_blank


def _rest_of_local(options: Options, scene: Scene) -> str:
  """A model that is the bottom network with its head is trained like it."""
  plain = options.tune and not options.standardize and options.bottom_rate == 1
  return rest(options, scene) if scene.network and plain else ''


def _make(options: Options, scene: Scene, vfl: VFL) -> Attack:
  head = None if scene.linear else head_of(options, scene)
  return model_completion(
      vfl.bottom(1), head, schedule_of(options), options.tune,
      standardize=options.standardize,
  )


def _make_scratch(options: Options, scene: Scene, vfl: VFL) -> Attack:
  return scratch(
      vfl.bottom(1), head_of(options, scene), schedule_of(options),
      options.tune, standardize=options.standardize,
  )


def _make_local(options: Options, scene: Scene, vfl: VFL) -> Attack:
  if scene.own is None:
    raise ValueError('local_model needs a network: `Scene.own`.')
  hidden = () if scene.linear else options.head
  net = scene.own((*hidden, scene.classes), options.norm)
  return local_model(net, schedule_of(options))


@recipe(
    stage=TRAINED, options=Options, group='completion', make=_make,
    check=check_options, baselines=baselines, score=COMPLETION, rest=rest,
    rest_skips_blank=skips_blank,
)
def model_completion(
    bottom: Net, head: Net | None, schedule: Schedule = Schedule(),
    tune: bool = True, stolen: bool = True, standardize: bool = False,
) -> Attack:
  """Completes a stolen bottom network with an inference head.

  Args:
    bottom: The attacker's own architecture.
    head: Maps its (flattened) embeddings to logits [batch, classes]. `None`
      reads the embedding itself as logits, which needs no training (VLR).
    schedule: How to train.
    tune: Train the bottom's weights too; else the head alone.
    stolen: Start from the trained weights; else from random ones ("scratch").
    standardize: Standardize the head's input by the embeddings of the known
      samples, for embeddings that a defense made small or uneven.

  Returns:
    An attack whose guess is [stages, samples, classes].

  Raises:
    ValueError: if the schedule makes no sense, as for weights it leaves alone.
  """
  check(schedule)
  if schedule.bottom_rate != 1 and not (tune and head):
    raise ValueError(f'bottom_rate needs a head, and {_OWN}tune=True.')

  def of_bottom(key, view: TrainedBottom):
    """Its weights at the start, and the keys of the head and the training."""
    k_bottom, k_head, k_train = jax.random.split(key, 3)
    if stolen:
      return view.weights, k_head, k_train
    return bottom.init(k_bottom, view.labeled_features), k_head, k_train

  if head is None:
    return Attack(TrainedBottom, lambda key, view: _as_logits(
        bottom.apply(of_bottom(key, view)[0], view.features)
    )[None])

  return _with_head(bottom, head, schedule, tune, standardize, of_bottom)


def _with_head(
    bottom: Net, head: Net, schedule: Schedule, tune: bool, standardize: bool,
    of_bottom: Callable[[Key, TrainedBottom], tuple[Params, Key, Key]],
) -> Attack:
  """See `model_completion`."""

  def start(key, view: TrainedBottom):
    weights, k_head, k_train = of_bottom(key, view)
    embedded, top = completed(weights, view)
    return k_train, dict(first=weights, second=top.init(k_head, embedded[:1]))

  def completed(weights, view: TrainedBottom) -> tuple[Array, Net]:
    """Embeddings of the known samples, and the head to put on them."""
    embedded = bottom.apply(weights, view.labeled_features)
    return embedded, standardized(head, embedded) if standardize else head

  def rest(begun, view: TrainedBottom):
    key, begun = begun
    weights = begun['first']
    top = head
    if standardize or not tune:
      embedded, top = completed(weights, view)
    if tune:
      whole = nets.then(bottom, top)
      return complete(
          key, schedule, whole.apply, begun,
          Samples(view.labeled_features, view.labeled, view.features),
          with_statistics(whole, begun, view.labeled_features), 'first',
      )
    # A frozen bottom is applied once, not once a step.
    wanted = bottom.apply(weights, view.features)
    return complete(
        key, schedule, top.apply, begun['second'],
        Samples(embedded, view.labeled, wanted),
        with_statistics(top, begun['second'], embedded),
    )

  return in_halves(TrainedBottom, start, rest)


@recipe(
    stage=TRAINED, options=Options, group='completion', make=_make_scratch,
    check=check_options, is_baseline=True, score=COMPLETION, rest=rest,
    rest_skips_blank=skips_blank,
)
def scratch(
    bottom: Net, head: Net, schedule: Schedule = Schedule(),
    tune: bool = True, standardize: bool = False,
) -> Attack:
  """Baseline: the same completion of a randomly initialised bottom."""
  return model_completion(
      bottom, head, schedule, tune, stolen=False, standardize=standardize
  )


@recipe(
    stage=TRAINED, options=Options, group='completion', make=_make_local,
    check=check_options, is_baseline=True, score=COMPLETION,
    rest=_rest_of_local, rest_skips_blank=skips_blank,
)
def local_model(net: Net, schedule: Schedule = Schedule()) -> Attack:
  """Baseline: `net`, from features to logits, on the same labeled samples.

  Raises:
    ValueError: if the schedule makes no sense.
  """
  check(schedule)

  def start(key, view: TrainedBottom):
    k_init, k_train = jax.random.split(key)
    return k_train, net.init(k_init, view.labeled_features)

  def rest(begun, view: TrainedBottom):
    key, params = begun
    return complete(
        key, schedule, net.apply, params,
        Samples(view.labeled_features, view.labeled, view.features),
        with_statistics(net, params, view.labeled_features),
    )

  return in_halves(TrainedBottom, start, rest)


def standardized(head: Net, embedded: Array) -> Net:
  """`head` on embeddings scaled to mean 0 and deviation 1 over `embedded`.

  Args:
    embedded: [known, ...]; a unit that is constant over them, but for rounding
      or a millionth of the largest unit's deviation, has no scale, and is 0.
  """
  mean, std = embedded.mean(0), embedded.std(0)
  eps = min(jnp.finfo(t).eps for t in (std.dtype, jnp.float32))
  rounding = 4 * eps * jnp.abs(embedded).max(0)
  # Of the largest: a defense may shrink all. Not `>`, as NaN is no constant.
  varies = ~(std <= jnp.maximum(1e-6 * std.max(), rounding))
  width = jnp.where(varies, std, 1)[None]
  scale = lambda u: jnp.where(varies, (u - mean[None]) / width, 0)
  train = head.train
  return head._replace(
      init=lambda key, u: head.init(key, scale(u)),
      apply=lambda params, u: head.apply(params, scale(u)),
      train=train and (lambda params, key, u: train(params, key, scale(u))),
  )


def mlp_head(classes: int, *hidden: int) -> Net:
  """An inference head, embedding to logits; linear without hidden widths."""
  return nets.mlp(*hidden, classes)


def _as_logits(u: Array) -> Array:
  u = u.reshape(len(u), -1)
  return nets.pair(u) if u.shape[1] == 1 else u
