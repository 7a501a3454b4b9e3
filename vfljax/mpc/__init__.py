"""Secret-shared arithmetic: exact products mod 2^64 and protocols over them.

`ring`, `fixed_point` and `sharing` are for any caller. `one_sided` (T3),
`to_active` (T4) and `beaver` (T1) are protocols over a `bilinear` layer, with
`prg` for their randomness and `wire` for their messages; they and `kernels`
need 64-bit types on. `vfljax.masked` makes a network's layers of them.
"""
from vfljax.mpc import beaver
from vfljax.mpc import bilinear
from vfljax.mpc import fixed_point
from vfljax.mpc import kernels
from vfljax.mpc import one_sided
from vfljax.mpc import prg
from vfljax.mpc import ring
from vfljax.mpc import sharing
from vfljax.mpc import to_active
from vfljax.mpc import wire
from vfljax.mpc.x64 import entry
from vfljax.mpc.x64 import jit

__all__ = (
    'beaver', 'bilinear', 'entry', 'fixed_point', 'jit', 'kernels', 'one_sided',
    'prg', 'ring', 'sharing', 'to_active', 'wire',
)
