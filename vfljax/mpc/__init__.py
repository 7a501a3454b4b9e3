"""Secret-shared arithmetic: exact products mod 2^64 and protocols over them.

`ring`, `fixed_point` and `sharing` are for any caller. `one_sided` (T3),
`to_active` (T4) and `beaver` (T1) are protocols over a `bilinear` layer, with
`prg` for their randomness and `wire` for their messages; they and `kernels`
need 64-bit types on. `vfljax.masked` makes a network's layers of them.
"""
from vfljax.mpc import (
    beaver, bilinear, fixed_point, kernels, one_sided, prg, ring, sharing,
    to_active, wire,
)
from vfljax.mpc.x64 import entry, jit

__all__ = (
    'beaver', 'bilinear', 'entry', 'fixed_point', 'jit', 'kernels', 'one_sided',
    'prg', 'ring', 'sharing', 'to_active', 'wire',
)
