"""A network with layers in secret shares, and its training.

`masking` finds a network's layers and puts them into shares, `training` trains
them exactly, `shares` and `autodiff` are one layer's weights and passes,
`ranges` checks a masked layer's values and size, and `optimizers` what trains
it. The arithmetic is `vfljax.mpc`'s.
"""
from vfljax.masked import (
    autodiff, masking, optimizers, ranges, shares, training,
)

__all__ = [
    'autodiff', 'masking', 'optimizers', 'ranges', 'shares', 'training',
]
