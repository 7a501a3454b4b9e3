"""Training on encrypted numbers: the cryptographic baselines of the papers.

`acml`, `spnn`, `sfa` and `blindfl` are those of VMask's Table III, `hardy` is
HardyLR of Kang et al.'s Table 5: each trains one mini-batch, forwards,
backwards and with its update, between party objects that pass declared messages
(`party`), on real Paillier ciphertexts (`cipher`, `keys`, `encoding`), equal to
plain training within the error of fixed-point numbers. Each counts what it
does, and `count` of each says the same as a formula, from which a whole epoch's
time follows without running it.

They are no `Defense`s: a ciphertext is an integer of 2048 bits, which JAX
arrays cannot hold, and operations on it cannot be traced. An attacker's view
under them can: `views` takes it out of a round of the plain federation that
each of them computes.

Needs the extra `he`. For measuring: nothing here is constant in time, and
parties share a process.
"""
from vfljax.he.arrays import Count, Encrypted, Masked
from vfljax.he.cipher import Arithmetic
from vfljax.he.encoding import Code
from vfljax.he.keys import PrivateKey, PublicKey, generate

__all__ = [
    'Arithmetic', 'Code', 'Count', 'Encrypted', 'Masked', 'PrivateKey',
    'PublicKey', 'generate',
]
