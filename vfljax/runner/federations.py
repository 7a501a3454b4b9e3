"""Networks, federations and attackers, as a configuration describes them."""
from collections.abc import Callable

import optax

from vfljax.runner import config as configs, inversion, options, whitebox
from vfljax.runner.config import Config, ModelConfig
from vfljax import algorithms, attacks, nets
from vfljax.nets import augment, convolutional, wide_deep
from vfljax.attack import Attack
from vfljax.attacks.gradient_inversion import Search
from vfljax.attacks.mixmatch import MixMatch, normalized_head
from vfljax.attacks.model_completion import Schedule
from vfljax.types import VFL, Net

# What takes over a trained bottom network, and is measured by its baselines.
COMPLETIONS = ('model_completion', 'active_completion')


def federation(config: Config, classes: int) -> VFL:
  model, parties = config.model, config.data.parties
  configs.choices(model, algorithm=('vlr', 'vhnn', 'vsnn'))
  if model.algorithm == 'vlr':
    return algorithms.vlr(parties, classes)
  if not (model.bottom or model.channels or model.name):
    raise ValueError('model.bottom needs at least one width.')
  width = 1 if classes == 2 else classes
  if model.name:
    bottom = named(model, 0 if model.trainable_top else width)
  else:
    bottom = network(config, model.bottom, model.bottom_final)
  bottom = augment.augmented(bottom, config.data.flips, config.data.shifts)
  if not model.trainable_top:
    if not model.name and model.bottom[-1:] != (width,):
      raise ValueError(
          'With a top without weights the embedding is the logits: the last '
          f'width of model.bottom must be {width}, not {model.bottom[-1:]}.'
      )
    # Logits are added up, not laid side by side.
    fuse = 'sum' if model.aggregation == 'concat' else model.aggregation
    top = algorithms.plain(fuse)
    bottoms = [bottom] * (parties - (model.algorithm == 'vsnn'))
    own = [None] if model.algorithm == 'vsnn' else []
    return VFL((*own, *bottoms), top, optax.softmax_cross_entropy)
  top = nets.mlp(
      *model.top, width, activation=model.activation, norm=model.norm
  )
  top = nets.binary(top) if width == 1 else top
  if model.algorithm == 'vsnn':
    return algorithms.vsnn([bottom] * (parties - 1), top, model.aggregation)
  return algorithms.vhnn([bottom] * parties, top, model.aggregation)


def named(model: ModelConfig, width: int = 0) -> Net:
  """The network that `model.name` names.

  Args:
    width: That its embedding must have; 0 leaves it to `model.width`.

  Raises:
    ValueError: for an unknown name, option or value, or another width.
  """
  if width and model.width not in (0, width):
    raise ValueError(
        'With a top without weights the embedding is the logits: model.width '
        f'must be {width}, not {model.width}.'
    )
  given = options.parse(model.options, 'model.options', 'dtype=bfloat16')
  try:
    return nets.make(model.name, width or model.width, **given)
  except OSError as error:  # A pretrained network's files.
    raise ValueError(str(error)) from None


def network(
    config: Config, widths: tuple[int, ...], final: str = 'linear'
) -> Net:
  """A network of linear layers of `widths`, after the configured convolutions
  or beside a linear model of the categories, if any."""
  model = config.model
  if model.buckets:
    return wide_deep.wide_and_deep(
        model.buckets, *widths, activation=model.activation, final=final
    )
  if not model.channels:
    return nets.mlp(
        *widths, activation=model.activation, final=final,
        dropout=model.dropout, norm=model.norm,
    )
  return convolutional.convolutional(
      model.channels, *widths, pools=model.pools, activation=model.activation,
      final=final, same=model.padding,
  )


def attacker(name: str, config: Config, vfl: VFL, classes: int) -> Attack:
  """An attack with what the configuration says of the attacker."""
  who, model = configs.attacker(config, name), config.model
  reason = configs.why_not(name, config, classes)
  if reason:
    raise ValueError(reason)
  name = configs.base(name)
  if name == 'median_scoring':
    return attacks.median_scoring(who.median)
  schedule = Schedule(
      who.epochs, who.batch_size, who.stages, who.learning_rate, who.optimizer,
      who.schedule, who.bottom_rate, who.weight_decay,
  )
  linear = model.algorithm == 'vlr'
  head = nets.mlp(*(() if linear else who.head), classes, norm=who.norm)
  bottom = vfl.bottom(1)
  if name == 'mixmatch':
    how = MixMatch(
        who.epochs, who.iterations, stages=min(who.stages, who.epochs)
    )
    return attacks.mixmatch(bottom, normalized_head(classes), how, who.tune)
  if name == 'cafe':
    return whitebox.attack(who, model, vfl)
  if name == 'gradient_inversion':
    search = Search(who.inversion_steps, who.inversion_restarts)
    return attacks.gradient_inversion(bottom, classes, search)
  factory: Callable[..., Attack] = attacks.REGISTRY[name]
  if name in COMPLETIONS:
    return factory(
        bottom, None if linear else head, schedule, who.tune,
        standardize=who.standardize,
    )
  if name == 'scratch':
    return attacks.scratch(
        bottom, head, schedule, who.tune, standardize=who.standardize
    )
  if name == 'local_model':
    if model.name and not linear:
      return attacks.local_model(nets.then(bottom, head), schedule)
    hidden = () if linear else (*model.bottom, *who.head)
    return attacks.local_model(network(config, (*hidden, classes)), schedule)
  if name in inversion.INVERSIONS:
    return inversion.attack(name, who, model, vfl)
  return factory()
