"""Defenses by name. A new one is one file and one line here.

The modules keep their names (`defenses.marvell.solve`), so the factories are in
`REGISTRY` or in their modules (`defenses.marvell.marvell`).
"""
from vfljax.defense import Method, chain, none
from vfljax.defenses import (
    coae, dcor, discrete_sgd, dp_gaussian, dp_laplace, dp_weights, fedpass,
    fedpass_cut, gafm, gradient_compression, iso, kdk, label_dp, marvell,
    max_norm, mid, mixup, multi_head, plugvfl, ppdl, precode, residue_mask,
    rvfr, vmask,
)

# The numbers are the strengths that a sweep tries by default: those of Kang et
# al. (2022), section 8.1, for the defenses that they evaluate; of Fu et al. for
# ppdl; of Zou et al. for coae. Our choice: around VMask's settings (dcor 0.15,
# fedpass 0.5, kdk 0.45, label_dp 3); for mid between no effect and a passive
# party that is ignored; the levels of dp_laplace for dp_gaussian; plugvfl,
# residue_mask and vmask (chance for two classes is 0.5; VMask takes 0.25 for
# ten). A defense without a strength has none.
REGISTRY: dict[str, Method] = dict(
    none=Method(none),
    coae=Method(coae.coae, (2, 1, 0.5, 0)),
    dcor=Method(dcor.dcor, (0.05, 0.15, 0.5), keeps_shapes=True),
    discrete_sgd=Method(discrete_sgd.discrete_sgd, (18, 12, 6, 4)),
    dp_gaussian=Method(dp_gaussian.dp_gaussian, (0.0001, 0.001, 0.01, 0.1)),
    dp_laplace=Method(dp_laplace.dp_laplace, (0.0001, 0.001, 0.01, 0.1)),
    dp_weights=Method(dp_weights.dp_weights, (0.1, 1, 10)),
    fedpass=Method(
        fedpass.fedpass, (0.5, 2), words=dict(side=fedpass.NUMBERED),
        light=('active',),
    ),
    fedpass_cut=Method(fedpass_cut.fedpass_cut, (0.5, 2)),
    gafm=Method(gafm.gafm, (0.05, 0.1, 0.2, 0.3, 0.5), binary=True),
    gradient_compression=Method(
        gradient_compression.gradient_compression, (0.1, 0.25, 0.5, 0.75)
    ),
    iso=Method(iso.iso, (25, 10, 5, 2.75)),
    kdk=Method(kdk.kdk, (0.15, 0.3, 0.45)),
    label_dp=Method(label_dp.label_dp, (4, 3, 2, 1)),
    marvell=Method(marvell.marvell, (12, 8, 4, 2), binary=True),
    max_norm=Method(max_norm.max_norm),
    mid=Method(mid.mid, (0.1, 0.01, 0.001, 0), keeps_shapes=True),
    mixup=Method(mixup.mixup, (2, 3, 4), mixes=True),
    multi_head=Method(multi_head.multi_head),
    plugvfl=Method(plugvfl.plugvfl, (0.03, 0.1, 0.5, 0.9)),
    ppdl=Method(ppdl.ppdl, (0.75, 0.5, 0.25, 0.1)),
    precode=Method(precode.precode),
    residue_mask=Method(residue_mask.residue_mask, (0.1, 0.25, 0.5, 0.75)),
    rvfr=Method(rvfr.rvfr),
    vmask=Method(
        vmask.vmask, (0.8, 0.7, 0.6, 0.5),
        words=dict(selection=(*vmask.SELECTIONS, vmask.ALL)),
        sized=('attacker',), light=(vmask.ALL,),
    ),
)

__all__ = [
    'Method', 'REGISTRY', 'chain', 'coae', 'dcor', 'discrete_sgd',
    'dp_gaussian', 'dp_laplace', 'dp_weights', 'fedpass', 'fedpass_cut',
    'gafm', 'gradient_compression', 'iso', 'kdk', 'label_dp', 'marvell',
    'max_norm', 'mid', 'mixup', 'multi_head', 'none', 'plugvfl', 'ppdl',
    'precode', 'residue_mask', 'rvfr', 'vmask',
]
