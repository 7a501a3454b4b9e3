"""Training on encrypted numbers: the cryptographic baselines of the papers.

`acml`, `spnn`, `sfa` and `blindfl` are those of VMask's Table III; `hardy` is
HardyLR of Kang et al.'s Table 5. Each trains one mini-batch, forwards,
backwards and with its update, on real Paillier ciphertexts (`cipher`, `keys`,
`encoding`). Party objects pass declared messages (`party`). The result equals
plain training within the error of fixed-point numbers. Each protocol counts its
operations; its `cost` gives the same counts by a formula, from which the time
of a whole epoch follows without running it.

They are not `Defense`s: a ciphertext is an integer of 2048 bits, which JAX
arrays cannot hold, and operations on it cannot be traced. But an attacker's
view under them can be: `views` takes it from a round of the plain federation
that the protocol computes.

Needs the extra `he`. It is for measurements only: nothing here runs in constant
time, and all parties share a process.
"""
from vfljax.he.arrays import Count, Encrypted, Masked
from vfljax.he.cipher import Arithmetic
from vfljax.he.encoding import Code
from vfljax.he.keys import PrivateKey, PublicKey, generate

__all__ = [
    'Arithmetic', 'Code', 'Count', 'Encrypted', 'Masked', 'PrivateKey',
    'PublicKey', 'generate',
]
