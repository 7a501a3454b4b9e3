"""Independent random draws of a function as few operations, with the same bits.
"""
from vfljax.draws.bundled import bundled

__all__ = ['bundled']
