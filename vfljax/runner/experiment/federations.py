"""Makes the networks and the federation that a configuration describes."""
from typing import Any

from vfljax import algorithms, fusing, nets
from vfljax.nets import augment
from vfljax.nets.convolutional import convolutional
from vfljax.nets.wide_deep import wide_and_deep
from vfljax.runner.config import Config, ModelConfig, options, outside
from vfljax.runner.errors import choices
from vfljax.scene import Scene
from vfljax.types import VFL, Net


def federation(config: Config, classes: int) -> VFL:
  model, parties = config.model, config.data.parties
  choices(model, algorithm=('vlr', 'vhnn', 'vsnn'))
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
    # Embeddings are logits here: concatenating them would make no sense.
    fuse = 'sum' if model.aggregation == 'concat' else model.aggregation
    top = algorithms.plain(fuse)
    bottoms = [bottom] * (parties - (model.algorithm == 'vsnn'))
    own = [None] if model.algorithm == 'vsnn' else []
    return VFL((*own, *bottoms), top, fusing.cross_entropy)
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
    model: The configuration of the networks.
    width: The width that the embedding must have; 0 for `model.width`.

  Raises:
    ValueError: for an unknown name, option or value, or a `model.width` that
      is not `width`.
    UserError: for any error of a network from outside.
  """
  if width and model.width not in (0, width):
    raise ValueError(
        'With a top without weights the embedding is the logits: model.width '
        f'must be {width}, not {model.width}.'
    )
  known = nets.REGISTRY.get(model.name)
  mine = known is not None and not outside.is_ours(known)
  try:
    with outside.explained(model.name, mine):
      return nets.make(model.name, width or model.width, **options_of(model))
  except OSError as error:  # A pretrained network's files.
    raise ValueError(str(error)) from None


def network(
    config: Config, widths: tuple[int, ...], final: str = 'linear'
) -> Net:
  """A network of linear layers with these widths.

  They follow convolutions (`model.channels`), or stand beside a linear model of
  the categories (`model.buckets`), if the configuration has them.
  """
  model = config.model
  if model.buckets:
    return wide_and_deep(
        model.buckets, *widths, activation=model.activation, final=final
    )
  if not model.channels:
    return nets.mlp(
        *widths, activation=model.activation, final=final,
        dropout=model.dropout, norm=model.norm,
    )
  return convolutional(
      model.channels, *widths, pools=model.pools, activation=model.activation,
      final=final, same=model.padding,
  )


def scene(config: Config, classes: int) -> Scene:
  """The kind of federation, from which attacks decide whether they apply."""
  model = config.model
  linear = model.algorithm == 'vlr'

  def own(widths: tuple[int, ...], norm: str) -> Net:
    if model.name and not linear:
      head = nets.mlp(*widths, norm=norm)
      passive = federation(config, classes).bottom(1)
      return nets.then(passive, head)
    if linear:
      return network(config, widths)
    return augment.augmented(
        network(config, (*model.bottom, *widths)), config.data.flips,
        config.data.shifts,
    )

  return Scene(
      classes, linear, model.trainable_top, model.aggregation, model.name,
      model.width, options_of(model), model.channels, model.bottom,
      model.activation, model.bottom_final, own, numbered(model),
      _skips_blank(config),
  )


def numbered(model: ModelConfig) -> bool:
  """Whether bottoms read numbers of categories or words."""
  if model.algorithm == 'vlr':
    return False
  if model.name:
    known = nets.REGISTRY.get(model.name)  # `named` refuses unknown names.
    return known is not None and known.reads == 'numbers'
  return model.buckets > 0


def _skips_blank(config: Config) -> bool:
  """See `Scene.skips_blank`; of a network that is not ours, nobody knows."""
  model, data = config.model, config.data
  own = nets.REGISTRY.get(model.name)
  ours = own is None or outside.is_ours(own)
  dropout = options_of(model).get('dropout', 0) if model.name else model.dropout
  return ours and not (dropout or data.flips or data.shifts)


def options_of(model: ModelConfig) -> dict[str, Any]:
  """What `model.options` sets, in the types of the network's defaults."""
  own = options.parse(model.options, 'model.options', 'dtype=bfloat16')
  if model.name in nets.REGISTRY:
    known = nets.REGISTRY[model.name].options
    options.as_defaults(own, known, 'model.options')
  return own
