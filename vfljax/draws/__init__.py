"""Independent random draws of a function as few operations, with the same bits.
"""
from vfljax.draws.asked import asking, where_asked
from vfljax.draws.bundled import bundled

__all__ = ['asking', 'bundled', 'where_asked']
