"""Checks that networks, parties and attacks on pixels suit the features."""
from collections.abc import Mapping

import jax
import numpy as np

from vfljax import nets
from vfljax.attack import Attack
from vfljax.check import ROUNDED
from vfljax.check import kind as kind_of
from vfljax.data import REGISTRY, options_of
from vfljax.data.source import TEXTS
from vfljax.descent import check_weights
from vfljax.leakage import IMAGES
from vfljax.measure import of_images
from vfljax.runner.config import options, outside
from vfljax.runner.experiment import attackers, federations
from vfljax.runner.experiment.setting import Setting
from vfljax.types import Net


MOST_BUCKETS = 10**8  # As `model.buckets`.


def check(setting: Setting) -> None:
  """Refuses networks, batches and parties that do not suit the features."""
  _check_network(setting)
  _check_numbers(setting)
  _check_pieces(setting)
  _check_rest(setting)


def _check_network(setting: Setting) -> None:
  """Refuses a network on features of another kind."""
  model, data = setting.config.model, setting.config.data
  linear = model.algorithm == 'vlr' or (model.name and not model.trainable_top)
  if model.norm != 'none' and (model.channels or model.buckets or linear):
    raise ValueError(
        'model.norm is for multilayer perceptrons: a top with weights, and '
        'bottoms without model.name, model.channels and model.buckets. Named '
        "networks have a norm option of their own: model.options='norm=batch'."
    )
  if not model.name:
    return
  if model.algorithm == 'vlr':
    raise ValueError(
        f'model.name={model.name} needs model.algorithm=vhnn or vsnn; vlr has '
        'linear bottoms.'
    )
  _check_width(setting)
  reads = nets.REGISTRY[model.name].reads
  if reads == 'images' and not images(setting):
    raise ValueError(
        f'{model.name} is for images; {data.name} is a table. Use '
        '--config.model.name=mlp3, or model.bottom with widths.'
    )
  if reads == 'numbers' and data.scale != 'none':
    raise ValueError(
        f'{model.name} reads the numbers of categories or words, which scaling '
        'would change: set --config.data.scale=none.'
    )


def _check_rest(setting: Setting) -> None:
  """Refuses a round of one sample where rows are normalized by their variance.

  It would be 0, all would be normalized to 0, and the running variance, with
  which a prediction is made, would shrink with each epoch.
  """
  train, model = setting.config.train, setting.config.model
  norms = {model.norm}
  if model.name == 'mlp3':
    norms.add(federations.options_of(model).get('norm', 'none'))
  if 'batch' not in norms:
    return
  none = 'of one sample batch normalization has no variance: set another'
  if train.batch_size == 1:
    raise ValueError(
        f'Rounds have one sample, and {none} --config.train.batch_size.'
    )
  if train.remainder != 'drop' and setting.sizes.train % train.batch_size == 1:
    raise ValueError(
        f'Of {setting.sizes.train} training samples in batches of '
        f'{train.batch_size} one is left for the last round, and {none} '
        '--config.train.batch_size, or --config.train.remainder=drop.'
    )


def _check_pieces(setting: Setting) -> None:
  """Refuses pieces of texts that equal shares of the columns would cut."""
  own = setting.config.data
  source = REGISTRY.get(own.name)
  if not own.path or own.split != 'even' or not source:
    return
  if source.parties != TEXTS:
    return
  given = options.parse(own.options, 'data.options', 'parts=3')
  parts = int(given.get('parts', options_of(own.name).get('parts', 0)))
  features = setting.samples.features
  holders = sum(x is not None for x in features)
  holders += own.unheld and features[0] is None
  if parts % holders:
    raise ValueError(
        f'Texts in {parts} pieces cannot be shared by {holders} parties: add '
        f'parts={holders} to --config.data.options.'
    )


def _check_numbers(setting: Setting) -> None:
  """Refuses categories beyond a network's, and words taken for quantities."""
  model, data = setting.config.model, setting.config.data
  source = REGISTRY.get(data.name)
  if not federations.numbered(model):
    ours = not model.name or outside.is_ours(nets.REGISTRY[model.name])
    if data.path and source and source.parties == TEXTS and ours:
      raise ValueError(
          f'{data.name} has the numbers of words, which are no quantities: use '
          '--config.model.name=encoder or embedding, which read them.'
      )
    return
  known = model.buckets
  if model.name:
    own = nets.REGISTRY[model.name].options | federations.options_of(model)
    known = own.get('buckets', 0)
  most = max(
      np.fmax.reduce(x, axis=None, initial=0)
      for x in setting.samples.features if x is not None
  )
  if not known or most < known:
    return
  what = 'Columns have numbers of categories up to'
  if most >= MOST_BUCKETS:
    raise ValueError(f'{what} {most:g}: these are no categories.')
  more = f'buckets={int(most) + 1}'
  how = f'add {more} to --config.model.options' if model.name else (
      f'set --config.model.{more}'
  )
  raise ValueError(
      f'{what} {int(most)}, of which the network tells {known} apart: {how}.'
  )


def _check_width(setting: Setting) -> None:
  """Refuses a network from outside whose embeddings have another width."""
  name, width = setting.config.model.name, setting.config.model.width
  if outside.is_ours(nets.REGISTRY[name]):
    return
  x = setting.samples.features[1]
  some = jax.ShapeDtypeStruct((2, *x.shape[1:]), x.dtype)
  net = setting.vfl.bottom(1)
  with outside.explained(name, True):
    if not isinstance(net, Net):
      raise ValueError(
          f'{name} must return a Net; it returned {kind_of(net)}. '
          '`nets.linen` and `nets.nnx` make one of a Flax module.'
      )
    weights = jax.eval_shape(net.init, jax.random.key(0), some)
    check_weights(weights)
    made = jax.eval_shape(net.apply, weights, some)
    shape = getattr(made, 'shape', ())
    if len(shape) < 2 or shape[0] != 2:
      raise ValueError(
          f'{name} must make an embedding (samples, width, ...) of each '
          f'sample; of 2 samples it makes {shape}.'
      )
    if width and shape[-1] != width:
      raise ValueError(
          f'{name} must have the width that model.width asks for, {width}; it '
          f'makes {shape[1:]}. Its factory gets it as first argument.'
      )


def check_pixels(
    setting: Setting, given: Mapping[str, Attack | None]
) -> None:
  """Refuses features that are no pixels in 0..1 where such are guessed.

  The guesses lie in 0..1, and so does what SSIM and PSNR count: standardized
  images, or those of up to 255, would look safe whatever leaks. uint8 images
  are divided by 255.

  Args:
    setting: The experiment.
    given: {name: attack}; `None` for one on the training.
  """
  name = next((n for n, made in given.items() if _by_pixels(n, made)), '')
  if not name or setting.config.data.scale == 'minmax':
    return
  if setting.config.data.scale == 'standard':
    raise ValueError(
        f'{name} is measured by the similarity of pixels between 0 and 1: set '
        '--config.data.scale=none, or give its recipe a measure and a score of '
        'its own.'
    )
  for x in setting.samples.features:
    if x is None or x.ndim != 4 or x.dtype == np.uint8:
      continue
    low, high = float(x.min()), float(x.max())
    if low < -ROUNDED or high > 1 + ROUNDED:
      raise ValueError(
          f'{name} guesses pixels between 0 and 1, but the pixels of these '
          f'images are from {low:g} to {high:g}. Write them between 0 and 1, '
          'or between 0 and 255 as uint8.'
      )


def _by_pixels(name: str, attack: Attack | None) -> bool:
  """Whether an attack's guesses at features are compared as images."""
  recipe = attackers.recipe(name)
  by_pixels = recipe.score == IMAGES or recipe.measure in (None, of_images)
  return bool(attack and attack.wants.samples and by_pixels)


def images(setting: Setting) -> bool:
  return all(x is None or x.ndim == 4 for x in setting.samples.features)
