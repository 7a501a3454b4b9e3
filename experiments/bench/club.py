"""What a CLUB bound costs, per call and per round of PlugVFL.

  python experiments/bench/club.py --out=experiments/bench/club.json

A bound's value and its gradient with respect to the embeddings are compiled and
timed on a batch's outputs of q. All contestants take turns, and the best call
of each counts. The rounds are of two MLPs (392-128-64, a 128-128-10 top) at
batch 32, in a scan of 200: undefended, with party dropout alone, and with psi
(64-128-128-10).
"""
import argparse
from collections.abc import Callable
import datetime

import jax
from jax import lax
import jax.numpy as jnp
import optax

from experiments.bench import records
from experiments.bench.ring import race
from vfljax import algorithms, club, nets, protocol
from vfljax.defense import Defense, none
from vfljax.defenses.plugvfl import plugvfl
from vfljax.types import Batch

ROUNDS = 200
Calls = dict[str, Callable[[], object]]


def bounds(samples: int, width: int) -> Calls:
  """Every bound on a batch of `samples` and a y of `width` axes or classes."""
  keys = jax.random.split(jax.random.key(0), 3)
  mean, log_var, y = (
      jax.random.normal(k, (samples, width), jnp.float32) for k in keys
  )
  labels = jax.nn.one_hot(jnp.arange(samples) % width, width)
  others = y[::-1]

  def ready(fn, *args):
    call = jax.jit(jax.value_and_grad(fn))
    return lambda: jax.block_until_ready(call(*args))

  def gaussian(h, y):
    return club.log_gaussian(h, log_var, y)

  return {
      'categorical': ready(club.categorical, mean, labels),
      'categorical, all pairs': ready(
          lambda h: club.upper_bound(club.log_categorical, h, labels), mean
      ),
      'categorical, sampled': ready(
          lambda h: club.sampled_upper_bound(
              club.log_categorical, h, labels, labels[::-1]
          ), mean,
      ),
      'gaussian': ready(lambda h: club.gaussian(h, log_var, y), mean),
      'gaussian, all pairs': ready(
          lambda h: club.upper_bound(gaussian, h, y), mean
      ),
      'gaussian, sampled': ready(
          lambda h: club.sampled_upper_bound(gaussian, h, y, others), mean
      ),
  }


def rounds(defense: Defense) -> Callable[[], object]:
  """200 rounds of the federation in one call."""
  x = jax.random.normal(jax.random.key(1), (2, 32, 392), jnp.float32)
  data = Batch((x[0], x[1]), jax.nn.one_hot(jnp.arange(32) % 10, 10))
  vfl = algorithms.vhnn(
      [nets.mlp(128, 64, final='relu')] * 2, nets.mlp(128, 10)
  )
  txs = (optax.sgd(0.01),) * 2

  def step(state, key):
    state, _ = protocol.play_round(key, vfl, defense, txs, state, data)
    return state, None

  state = jax.jit(
      lambda key: protocol.init(key, vfl, defense, txs, data)
  )(jax.random.key(2))
  play = jax.jit(lambda state: lax.scan(
      step, state, jax.random.split(jax.random.key(3), ROUNDS)
  )[0])
  return lambda: jax.block_until_ready(play(state))


def measure(turns: int) -> dict:
  calls = {
      f'{samples}x{width}': race(bounds(samples, width), turns)
      for samples, width in ((32, 10), (128, 10), (1024, 64))
  }
  played = race({
      'none': rounds(none()),
      'dropout': rounds(plugvfl(0.0, 0.05)),
      'plugvfl': rounds(plugvfl(0.1, 0.05)),
      'plugvfl, 5 psi steps': rounds(plugvfl(0.1, 0.05, psi_steps=5)),
  }, turns)
  micro = lambda times, by: {
      name: float(f'{1e6 * t / by:.4g}') for name, t in times.items()
  }
  return dict(
      microseconds_per_call={k: micro(v, 1) for k, v in calls.items()},
      microseconds_per_round=micro(played, ROUNDS),
  )


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--out', default='experiments/bench/club.json')
  parser.add_argument('--turns', type=int, default=5)
  args = parser.parse_args()
  found = dict(
      date=datetime.date.today().isoformat(), machine=records.machine(),
      jax=jax.__version__, **measure(args.turns),
  )
  records.write(found, args.out)


if __name__ == '__main__':
  main()
