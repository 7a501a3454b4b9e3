"""Attacks by name. A new one is one file and one line here.

`layer_recovery` is not among them: it attacks a masked layer's transcript.
"""
from collections.abc import Callable
from typing import Any

from vfljax.attacks.active_completion import active_completion
from vfljax.attacks.cafe import cafe
from vfljax.attacks.direct_label import direct_label
from vfljax.attacks.direction_scoring import direction_scoring
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

REGISTRY: dict[str, Callable[..., Any]] = dict(
    active_completion=active_completion,
    cafe=cafe,
    constant_image=constant_image,
    direct_label=direct_label,
    direction_scoring=direction_scoring,
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

# Attacks that rank samples of two classes; the others take any number.
BINARY = frozenset({
    'direction_scoring', 'mean_scoring', 'median_scoring', 'norm_scoring',
    'residual_scoring', 'value_scoring',
})

# What attackers do in training and strike with afterwards: these factories make
# a `backdoor.Backdoor`, the others an `Attack`.
BACKDOORS = frozenset({
    'label_replacement', 'missing_features', 'noisy_sample',
})

# What an attacker achieves without anything from the federation.
BASELINES = frozenset({
    'constant_image', 'local_model', 'mean_image', 'scratch',
})

__all__ = [
    'BACKDOORS', 'BASELINES', 'BINARY', 'REGISTRY', 'active_completion', 'cafe',
    'constant_image', 'direct_label', 'direction_scoring', 'gradient_inversion',
    'label_replacement', 'learned_gradient', 'local_model', 'mean_image',
    'mean_scoring', 'median_scoring', 'missing_features', 'mixmatch',
    'model_completion', 'model_inversion', 'noisy_sample', 'norm_scoring',
    'residual_scoring', 'residue_reconstruction', 'scratch', 'value_scoring',
]
