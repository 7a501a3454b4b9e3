"""A network with layers in secret shares, and its training.

`masking` finds a network's layers and puts them into shares, `training` trains
them exactly, `shares` and `autodiff` are one layer's weights and passes, and
`ranges` says what a masked layer must not be given. The arithmetic is
`vfljax.mpc`'s.
"""
from vfljax.masked import autodiff, masking, ranges, shares, training

__all__ = ['autodiff', 'masking', 'ranges', 'shares', 'training']
