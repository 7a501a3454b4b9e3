"""Vertical federated learning in JAX: train, attack, defend, measure.

Parties hold different features of the same samples and train one network by
exchanging embeddings and their gradients. Every function here is pure: `jit`,
`scan` and `vmap` apply from outside, and importing changes no JAX setting.
"""

__version__ = '0.1.0'
