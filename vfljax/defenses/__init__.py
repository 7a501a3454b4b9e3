"""Defenses by name. A new one is one file and a line in each table here.

The modules keep their names (`defenses.marvell.solve`), so the factories are in
`REGISTRY` or in their modules (`defenses.marvell.marvell`).
"""
from collections.abc import Callable

from vfljax.defense import Defense, chain, none
from vfljax.defenses import (
    coae, dcor, discrete_sgd, dp_gaussian, dp_laplace, dp_weights,
    fedpass, gafm, gradient_compression, iso, kdk, label_dp, marvell, max_norm,
    mid, mixup, multi_head, plugvfl, ppdl, precode, residue_mask, rvfr, vmask,
)

REGISTRY: dict[str, Callable[..., Defense]] = dict(
    none=none,
    coae=coae.coae,
    dcor=dcor.dcor,
    discrete_sgd=discrete_sgd.discrete_sgd,
    dp_gaussian=dp_gaussian.dp_gaussian,
    dp_laplace=dp_laplace.dp_laplace,
    dp_weights=dp_weights.dp_weights,
    fedpass=fedpass.fedpass,
    gafm=gafm.gafm,
    gradient_compression=gradient_compression.gradient_compression,
    iso=iso.iso,
    kdk=kdk.kdk,
    label_dp=label_dp.label_dp,
    marvell=marvell.marvell,
    max_norm=max_norm.max_norm,
    mid=mid.mid,
    mixup=mixup.mixup,
    multi_head=multi_head.multi_head,
    plugvfl=plugvfl.plugvfl,
    ppdl=ppdl.ppdl,
    precode=precode.precode,
    residue_mask=residue_mask.residue_mask,
    rvfr=rvfr.rvfr,
    vmask=vmask.vmask,
)

# What a sweep tries unless told otherwise: Kang et al. (2022), section 8.1, for
# what they evaluate; Fu et al.'s shares for ppdl; Zou et al.'s range for coae;
# our choice around VMask's settings (dcor 0.15, fedpass 0.5, kdk 0.45, label_dp
# 3) and, for mid, between no effect and a passive party that is ignored; ours
# too for dp_gaussian (the levels of dp_laplace), plugvfl, residue_mask and
# vmask (chance for two classes is 0.5; VMask takes 0.25 for ten).
# Empty where there is nothing to choose.
STRENGTHS: dict[str, tuple[float, ...]] = dict(
    none=(),
    coae=(2, 1, 0.5, 0),
    dcor=(0.05, 0.15, 0.5),
    discrete_sgd=(18, 12, 6, 4),
    dp_gaussian=(0.0001, 0.001, 0.01, 0.1),
    dp_laplace=(0.0001, 0.001, 0.01, 0.1),
    dp_weights=(0.1, 1, 10),
    fedpass=(0.5, 2),
    gafm=(0.05, 0.1, 0.2, 0.3, 0.5),
    gradient_compression=(0.1, 0.25, 0.5, 0.75),
    iso=(25, 10, 5, 2.75),
    kdk=(0.15, 0.3, 0.45),
    label_dp=(4, 3, 2, 1),
    marvell=(12, 8, 4, 2),
    max_norm=(),
    mid=(0.1, 0.01, 0.001, 0),
    mixup=(2, 3, 4),
    multi_head=(),
    plugvfl=(0.03, 0.1, 0.5, 0.9),
    ppdl=(0.75, 0.5, 0.25, 0.1),
    precode=(),
    residue_mask=(0.1, 0.25, 0.5, 0.75),
    rvfr=(),
    vmask=(0.8, 0.7, 0.6, 0.5),
)

# Defenses that are for two classes only.
BINARY = frozenset({'gafm', 'marvell'})

__all__ = [
    'BINARY', 'REGISTRY', 'STRENGTHS', 'chain', 'coae', 'dcor',
    'discrete_sgd', 'dp_gaussian', 'dp_laplace', 'dp_weights', 'fedpass',
    'gafm', 'gradient_compression', 'iso', 'kdk', 'label_dp', 'marvell',
    'max_norm', 'mid', 'mixup', 'multi_head', 'none', 'plugvfl', 'ppdl',
    'precode', 'residue_mask', 'rvfr', 'vmask',
]
