"""Attacks by name. A new one is one file and one line in `REGISTRY`.

`layer_recovery` is not among them: it attacks a masked layer's transcript.
"""
from vfljax.attack import Recipe, recipe_of
from vfljax.attacks.active_completion import active_completion
from vfljax.attacks.cafe import cafe
from vfljax.attacks.direct_label import direct_label
from vfljax.attacks.direction_scoring import direction_scoring
from vfljax.attacks.gradient_clustering import gradient_clustering
from vfljax.attacks.gradient_inversion import gradient_inversion
from vfljax.attacks.label_replacement import label_replacement
from vfljax.attacks.learned_gradient import learned_gradient
from vfljax.attacks.mean_scoring import mean_scoring
from vfljax.attacks.median_scoring import median_scoring
from vfljax.attacks.missing_features import missing_features
from vfljax.attacks.mixmatch import mixmatch
from vfljax.attacks.model_completion import (
    local_model, model_completion, scratch,
)
from vfljax.attacks.model_inversion import (
    constant_image, mean_image, model_inversion,
)
from vfljax.attacks.noisy_sample import noisy_sample
from vfljax.attacks.norm_scoring import norm_scoring
from vfljax.attacks.residual_scoring import residual_scoring
from vfljax.attacks.residue_reconstruction import residue_reconstruction
from vfljax.attacks.value_scoring import value_scoring
from vfljax.leakage import NOBODYS, AttackName, Known

REGISTRY: dict[str, Recipe] = dict(
    active_completion=active_completion,
    cafe=cafe,
    constant_image=constant_image,
    direct_label=direct_label,
    direction_scoring=direction_scoring,
    gradient_clustering=gradient_clustering,
    gradient_inversion=gradient_inversion,
    label_replacement=label_replacement,
    learned_gradient=learned_gradient,
    local_model=local_model,
    mean_image=mean_image,
    mean_scoring=mean_scoring,
    median_scoring=median_scoring,
    missing_features=missing_features,
    mixmatch=mixmatch,
    model_completion=model_completion,
    model_inversion=model_inversion,
    noisy_sample=noisy_sample,
    norm_scoring=norm_scoring,
    residual_scoring=residual_scoring,
    residue_reconstruction=residue_reconstruction,
    scratch=scratch,
    value_scoring=value_scoring,
)


def known(name: str) -> Known:
  """What a report has to know of an attack, or of a variant of it.

  The score of an attack that is not registered here is `NOBODYS`.
  """
  made = REGISTRY.get(AttackName.parse(name).base)
  return recipe_of(made).known() if made else Known(NOBODYS)


def is_baseline(name: str) -> bool:
  """Whether an attack uses nothing that it gets from the federation."""
  return known(name).is_baseline


__all__ = [
    'REGISTRY', 'active_completion', 'cafe',
    'constant_image', 'direct_label', 'direction_scoring',
    'gradient_clustering', 'gradient_inversion', 'is_baseline', 'known',
    'label_replacement', 'learned_gradient', 'local_model', 'mean_image',
    'mean_scoring', 'median_scoring', 'missing_features', 'mixmatch',
    'model_completion', 'model_inversion', 'noisy_sample', 'norm_scoring',
    'residual_scoring', 'residue_reconstruction', 'scratch', 'value_scoring',
]
