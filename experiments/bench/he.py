"""What encrypted arithmetic costs: libraries, operations, mini-batches.

  python -m experiments.bench.he --out=experiments/bench/he.json

Keys have 1024 bits and there is one thread. Times are microseconds of processor
time for each operation; all take turns, and the least of `--turns` counts.
lightphe and sf-heu are timed if they are installed; they are no dependencies.
`workers` has the wall-clock time of encryptions in threads and in processes.
`batches` has one real mini-batch of every protocol (B = 4, 32 inputs, 8
hidden): its seconds, its largest error against plain training in float64, and
its counts. `older` has figures of a first study of the same libraries on
another machine.
"""
import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import datetime
import importlib
import importlib.metadata
import multiprocessing
import os
import pathlib
import secrets
import time
from typing import Any

import jax
import numpy as np

from experiments.bench import he_federations, records
from vfljax import he
from vfljax.he import ckks
from vfljax.he.library import gmp, paillier, tenseal

BITS = 1024
# Microseconds of a first study, 2 Xeon cores, one of them used.
OLDER = {
    'phe encrypt': 1100, 'phe decrypt': 340, 'phe add, integers': 3.2,
    'phe add, floats': 11.8, 'phe multiply, 20-bit integer': 28,
    'phe multiply, float': 77, 'gmpy2 multiply mod n^2': 1.4,
    'gmpy2 power, 16 bits': 20, 'gmpy2 power, 20 bits': 26,
    'sf-heu encrypt': 103, 'sf-heu decrypt': 550, 'sf-heu add': 1.5,
    'TenSEAL 8192 encrypt 392': 3700, 'TenSEAL 8192 392 @ 392x256': 2.8e6,
}
Call = tuple[Callable[[], Any], int]  # And how many operations it makes.


def of_phe() -> dict[str, Call]:
  """python-paillier, as VMask uses it: floats."""
  key, own = paillier().generate_paillier_keypair(n_length=BITS)
  a, b = (key.encrypt(int(x)) for x in (123456, 765432))
  x, y = (key.encrypt(v) for v in (1.234567, -0.000765))
  return {
      'phe encrypt': (lambda: key.encrypt(1.2345), 1),
      'phe decrypt': (lambda: own.decrypt(x), 1),
      'phe add, integers': (lambda: [a + b for _ in range(50)], 50),
      'phe add, floats': (lambda: [x + y for _ in range(50)], 50),
      'phe multiply, 20-bit integer':
          (lambda: [a * 765432 for _ in range(20)], 20),
      'phe multiply, float': (lambda: [x * 0.12345 for _ in range(20)], 20),
  }


def of_gmpy2() -> dict[str, Call]:
  """The integers below all of it."""
  n = he.generate(BITS).public.n
  square, g = n * n, gmp()
  a, b = (g.mpz(secrets.randbelow(int(square))) for _ in range(2))
  return {
      'gmpy2 multiply mod n^2':
          (lambda: [a * b % square for _ in range(200)], 200),
      'gmpy2 power, 16 bits':
          (lambda: [g.powmod(a, 54321, square) for _ in range(50)], 50),
      'gmpy2 power, 20 bits':
          (lambda: [g.powmod(a, 765432, square) for _ in range(50)], 50),
  }


def of_ours(bits: int = BITS, name: str = 'ours') -> dict[str, Call]:
  """vfljax.he, on arrays."""
  private = he.generate(bits)
  party, key = he.Arithmetic(), private.public
  draws = np.random.default_rng(0)
  x, w = draws.standard_normal((4, 8)), 0.1 * draws.standard_normal((8, 16))
  sealed = party.encrypt(key, x)
  wide = party.encrypt(key, draws.standard_normal((4, 64)))
  found = {
      f'{name} encrypt': (lambda: party.encrypt(key, x), 32),
      f'{name} decrypt': (lambda: party.decrypt(private, sealed), 32),
      f'{name} add': (lambda: party.add(wide, wide), 256),
      # With an addition each but for a row's first.
      f'{name} multiply and add': (lambda: party.matmul(sealed, w), 512),
  }
  return found


def of_ckks(large: bool = True) -> dict[str, Call]:
  """TenSEAL: as `vfljax.he.ckks` has it; `large`: with room for a product."""
  private, party = ckks.PrivateContext(), he.Arithmetic()
  x = np.random.default_rng(0).standard_normal(ckks.SLOTS)
  sealed = private.public.seal(party, x)
  found: dict[str, Call] = {
      'CKKS 4096 encrypt': (lambda: private.public.seal(party, x), 1),
      'CKKS 4096 decrypt':
          (lambda: private.opened(party, sealed, x.shape), 1),
      'CKKS 4096 add':
          (lambda: private.public.add(party, sealed, sealed), 1),
  }
  if not large:
    return found
  ts = tenseal()
  context = ts.context(
      ts.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40, 60]
  )
  context.global_scale = 2.0 ** 40
  context.generate_galois_keys()
  short = x[:392]
  vector = ts.ckks_vector(context, short)
  matrix = np.ones((392, 256)).tolist()
  return found | {
      'TenSEAL 8192 encrypt 392':
          (lambda: ts.ckks_vector(context, short), 1),
      'TenSEAL 8192 392 @ 392x256': (lambda: vector.matmul(matrix), 1),
  }


def of_others() -> dict[str, Call]:
  """What is installed of what was not chosen."""
  found: dict[str, Call] = {}
  try:
    light = importlib.import_module('lightphe').LightPHE(
        algorithm_name='Paillier', key_size=BITS
    )
    a, b = light.encrypt(12345), light.encrypt(222)
    found |= {
        'lightphe encrypt': (lambda: light.encrypt(123456), 1),
        'lightphe decrypt': (lambda: light.decrypt(a), 1),
        'lightphe add': (lambda: a + b, 1),
    }
  except ImportError:
    pass
  try:
    phe = importlib.import_module('heu.phe')
    kit = phe.setup(phe.SchemaType.ZPaillier, BITS)
    x, y = kit.encryptor().encrypt_raw(123456), kit.encryptor().encrypt_raw(7)
    found |= {
        'sf-heu encrypt': (lambda: kit.encryptor().encrypt_raw(123456), 1),
        'sf-heu decrypt': (lambda: kit.decryptor().decrypt_raw(x), 1),
        'sf-heu add': (lambda: kit.evaluator().add(x, y), 1),
    }
  except ImportError:
    pass
  return found


def microseconds(
    calls: dict[str, Call], turns: int, clock: Callable[[], float]
    = time.process_time,
) -> dict[str, float]:
  """The least that an operation takes, all calls taking turns.

  By the processor's time of this process, of all its threads: other work on the
  machine, of which there may be a lot, does not count as ours.
  """
  best = dict.fromkeys(calls, float('inf'))
  for _ in range(turns):
    for name, (call, count) in calls.items():
      if 1e6 < best[name] < float('inf'):
        continue  # Seconds are measured once.
      began = clock()
      call()
      best[name] = min(best[name], 1e6 * (clock() - began) / count)
  return {name: float(f'{took:.4g}') for name, took in best.items()}


def blinded(job: tuple[list[int], int]) -> int:
  """What an encryption's time goes into; in another process, too."""
  numbers, n = job
  return len(gmp().powmod_base_list(numbers, n, gmp().mpz(n) ** 2))


def workers(turns: int) -> dict[str, float]:
  """Seconds of 128 encryptions' powers, in one thread and in several."""
  n = int(he.generate(BITS).public.n)
  numbers = [secrets.randbelow(n) for _ in range(128)]
  half = [(numbers[:64], n), (numbers[64:], n)]
  found = {}
  spawned = multiprocessing.get_context('spawn')
  with (
      ThreadPoolExecutor(2) as threads,
      ProcessPoolExecutor(2, mp_context=spawned) as processes,
  ):
    began = time.perf_counter()
    list(processes.map(blinded, half))
    found['processes, first call'] = time.perf_counter() - began
    rivals = {
        'one thread': lambda: blinded((numbers, n)),
        'two threads': lambda: list(threads.map(blinded, half)),
        'two processes': lambda: list(processes.map(blinded, half)),
    }
    found |= {
        name: took / 1e6 for name, took in microseconds(
            {k: (call, 1) for k, call in rivals.items()}, turns,
            time.perf_counter,
        ).items()
    }
  return {name: float(f'{took:.3g}') for name, took in found.items()}


def batches() -> dict[str, Any]:
  """One step of every protocol, twice: the second is timed."""
  keys, found = [he.generate(BITS) for _ in range(2)], {}
  with jax.enable_x64(True):
    for name, make in he_federations.ALL.items():
      run = make(keys, rows=4, inputs=32, hidden=8)
      error = run.error
      began = time.perf_counter()
      run.again()
      found[name] = dict(
          seconds=float(f'{time.perf_counter() - began:.3g}'),
          error=float(f'{error:.2g}'), **run.cost.count._asdict(),
          **run.cost.traffic._asdict(),
      )
  return found


def versions() -> dict[str, str]:
  """Of what is timed."""
  found = records.versions()
  for name in ('phe', 'gmpy2', 'tenseal', 'lightphe', 'sf-heu', 'openfhe'):
    try:
      found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
      found[name] = 'not installed'
  return found


def main() -> None:
  parser = argparse.ArgumentParser(description='What encryption costs.')
  parser.add_argument('--out', type=pathlib.Path, help='JSON file to write')
  parser.add_argument('--turns', type=int, default=7)
  args = parser.parse_args()
  calls = of_phe() | of_gmpy2() | of_ours() | of_ckks() | of_others()
  record: dict[str, Any] = dict(
      date=datetime.date.today().isoformat(), machine=records.machine(),
      versions=versions(), bits=BITS, turns=args.turns,
      microseconds=microseconds(calls, args.turns),
      microseconds_2048=microseconds(of_ours(2048), 3),
      older=OLDER, workers=workers(args.turns), batches=batches(),
      sizes=dict(
          paillier=BITS // 4,
          ckks_4096=len(ckks.PrivateContext().public.seal(
              he.Arithmetic(), np.ones(ckks.SLOTS)
          ).vectors[0]),
      ),
  )
  record['machine']['load_after'] = list(os.getloadavg())
  records.write(record, args.out)


if __name__ == '__main__':
  main()
