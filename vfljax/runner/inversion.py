"""Model inversion in an experiment: its shadow, its samples, its measure.

The attacker is the active party. It inverts the first test samples' embeddings,
as sent, with a shadow trained on samples that no party trained on.
"""
from collections.abc import Callable
from typing import Any

import jax

from vfljax.runner.config import AttackConfig, Config, ModelConfig
from vfljax import attacks, measure, nets, protocol, views
from vfljax.nets import convolutional
from vfljax.attack import Attack
from vfljax.attacks.model_inversion import Inversion
from vfljax.types import VFL, Batch, Key, Net, State

# Attacks with the active party's view; the latter two guess without embeddings.
INVERSIONS = ('model_inversion', 'constant_image', 'mean_image')


def attack(
    name: str, who: AttackConfig, model: ModelConfig, vfl: VFL
) -> Attack:
  """An attack of `INVERSIONS`.

  Raises:
    ValueError: if `who.shadow` is not a structure.
  """
  if name != 'model_inversion':
    factory: Callable[..., Attack] = attacks.REGISTRY[name]
    return factory()
  how = Inversion(who.shadow_steps, variation=who.variation)
  return attacks.model_inversion(vfl, _shadow(who.shadow, model, vfl), how)


def _shadow(structure: str, model: ModelConfig, vfl: VFL) -> Net:
  """The attacker's idea of the passive party's network: Kang et al., Table 17.

  'conv', other convolutions, has windows of 5x5 for 3x3; 'fc', fully connected,
  one hidden layer of 256. Both embed to the width that they must match.
  """
  same = vfl.bottom(1)
  if structure not in ('same', 'conv', 'fc'):
    raise ValueError(
        f'attack.shadow must be same, conv or fc; got {structure!r}.'
    )
  if structure == 'same':
    return same
  if structure == 'conv':
    return convolutional.convolutional(
        model.channels, *model.bottom, kernel=5, activation=model.activation,
        final=model.bottom_final,
    )

  # The width is that of the embedding, which is known once there is an input.
  def dense(x) -> Net:
    key = jax.random.key(0)
    u = jax.eval_shape(lambda x: same.apply(same.init(key, x), x), x)
    return nets.mlp(256, u.size // len(u), activation=model.activation)

  return Net(
      lambda key, x: dense(x).init(key, x),
      lambda params, x: dense(x).apply(params, x),
  )


def check(config: Config, samples: Batch, test: int) -> None:
  """Raises ValueError if no features can be inverted."""
  who, x = config.attack, samples.features[1]
  if not who.auxiliary:
    raise ValueError(
        'model_inversion trains a shadow model on auxiliary samples, and there '
        'are none: set --config.attack.auxiliary, for instance to 10000. They '
        'are taken from the training samples.'
    )
  if x.ndim != 4 or min(x.shape[1:3]) < 7:
    raise ValueError(
        'model_inversion is measured by the similarity of images of 7 x 7 '
        f'pixels or more; party 1 has features of shape {x.shape[1:]}.'
    )
  if config.data.scale != 'none':
    raise ValueError(
        'model_inversion looks for pixels between 0 and 1: set '
        '--config.data.scale=none.'
    )
  if not 1 <= who.inverted <= test:
    raise ValueError(
        f'attack.inverted must be between 1 and the {test} test samples; got '
        f'{who.inverted}.'
    )


def measured(
    setting: Any, name: str, prepared: Any, state: State, k_view: Key,
    k_run: Key,
) -> measure.Metrics:
  """What an attack of `INVERSIONS` achieves on a trained federation."""
  plan, splits = prepared.plan, prepared.splits
  truth = splits.test.features[1][: setting.config.attack.inverted]
  sent = protocol.embed(k_view, plan.vfl, plan.defense, state, 1, truth)
  view = views.trained_top(state, sent, splits.auxiliary)
  guess = setting.after_training[name].run(k_run, view)
  return measure.of_images(guess, truth)
