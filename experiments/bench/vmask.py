"""Training with masked layers against plain training, in one process.

  python experiments/bench/vmask.py --out=experiments/bench/vmask.json

Timed is one step of two parties with batches of 128 halves of 28x28 images, SGD
and the top MLP2: the running time of VMask's Table III, for MLP3 and LeNet5.
Images are random numbers, because the time does not depend on them. Contestants
take turns, and the best call of each counts (`bench.ring.race`). 'compute' is
both parties, one after the other in this process, on ring elements. The
dealer's randomness, made offline, is listed separately; so is the time that the
messages would take on the paper's network, modelled from their bytes and
flights. An epoch is 468 steps (60000 images in whole batches), extrapolated
from the best step.

Everything is measured twice: as a user runs it, where masked steps use vectors
of 512 bits (`mpc.jit`) and plain training uses XLA's default; and with wide
vectors for plain training too (XLA_FLAGS=--xla_cpu_prefer_vector_width=512,
before JAX is imported).
"""
import argparse
import datetime
import functools
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, NamedTuple
import warnings

import jax
import jax.numpy as jnp
import optax

from experiments.bench import records
from experiments.bench.ring import race
from vfljax import mpc, nets
from vfljax.masked import masking, training
from vfljax.masked.shares import Public
from vfljax.masked.training import Setup
from vfljax.mpc import dispatch, one_sided, prg, wire

BATCH, STEPS, ETA = 128, 60000 // 128, 0.1
SHAPES = {'mlp3': (392,), 'lenet5': (28, 14, 1)}
TARGET = 3.0  # Compute of VMask over plain training.
PAPER = {'mlp3': 3.3, 'lenet5': 5.6}  # Table III's VMask, gigabit Ethernet.
FLAGS = {'default': '', 'wide': '--xla_cpu_prefer_vector_width=512'}
KEYS = one_sided.seeds(prg.THREEFRY, jax.random.key(5))


def federation(model: str):
  """(Setup, nothing masked; parameters; active's, its batch, features)."""
  net, top = nets.make(model), nets.mlp(64, 10)
  keys = jax.random.split(jax.random.key(0), 5)
  shape = (BATCH, *SHAPES[model])
  x, x0 = (jax.random.normal(k, shape, jnp.float32) for k in keys[:2])
  y = jax.nn.one_hot(jnp.arange(BATCH) % 10, 10, dtype=jnp.float32)
  params = jax.jit(net.init)(keys[2], x)
  u = jax.eval_shape(net.apply, params, x)
  active = dict(
      bottom=jax.jit(net.init)(keys[3], x),
      top=top.init(keys[4], jnp.zeros(u.shape, u.dtype)),
  )

  def head(params, u, batch):
    own = net.apply(params['bottom'], batch[0])
    logits = top.apply(params['top'], u + own)
    return optax.softmax_cross_entropy(logits, batch[1]).mean()

  sgd = optax.sgd(ETA)
  return Setup(net, head, (sgd, sgd), eta=ETA), params, active, (x0, y), x


def masked_sets(job: Setup, params: Any, x: Any) -> dict[str, tuple]:
  """Which layers are masked, by contestant."""
  found = masking.layers(job.net, params, x)
  names = [f.name for f in found]
  return {
      'one': masking.choose(found, names[:1]),
      'two': masking.choose(found, names[:2]),
      'all': masking.choose(found, names),
      'all, last T4': masking.choose(found, names, names[-1]),
  }


def contestant(job: Setup, params, active, batch, x) -> dict[str, Any]:
  """Calls of a step and of its dealer, and what is said."""
  key = jax.random.key(1)
  noise = masking.noise(jax.random.key(2), job.chosen)
  weights, _ = masking.mask(
      Public(), job.chosen, KEYS, params, noise, 0
  )
  state = training.start(job, weights, active)
  step = functools.partial(training.step, job)
  said, deal, dealt = (), None, {}
  if job.chosen:
    said = training.transcript(job, state, KEYS, key, x, batch)
    deal = mpc.jit(functools.partial(training.deal, job))
    dealt, _ = deal(KEYS, weights, 0, 0)
    step = mpc.jit(step, donate_argnums=0)
  else:
    step = jax.jit(step, donate_argnums=0)
  # As in training, a step's weights take the place of those before it. The
  # first ones are other contestants', too.
  now = [mpc.entry(lambda s: jax.tree.map(jnp.copy, s))(state)]

  def play():
    now[0], _ = step(now[0], dealt, key, x, batch)
    jax.block_until_ready(now)

  if deal is None:
    return dict(step=play)
  return dict(
      step=play, said=said,
      deal=lambda: jax.block_until_ready(deal(KEYS, weights, 0, 0)[0]),
  )


def plain_transcript(job: Setup, params: Any, x: Any) -> wire.Transcript:
  """The embedding and its gradient, float32, which all contestants send."""
  u = jax.eval_shape(job.net.apply, params, x)
  return (wire.Message(u, 'u', 'passive', 'active', 1, 4),
          wire.Message(u, 'd', 'active', 'passive', 2, 4))


class Field(NamedTuple):
  """A model's contestants, compiled."""

  sets: dict[str, tuple]
  rivals: dict[str, dict[str, Any]]
  base: wire.Transcript


def prepare(model: str) -> Field:
  """Compiles all contestants."""
  job, params, active, batch, x = federation(model)
  sets = {'plain': (), **masked_sets(job, params, x)}
  rivals = {
      name: contestant(job._replace(chosen=chosen), params, active, batch, x)
      for name, chosen in sets.items()
  }
  for rival in rivals.values():
    rival['step']()
  return Field(sets, rivals, plain_transcript(job, params, x))


def measure(model: str, field: Field, turns: int) -> dict[str, Any]:
  """Seconds an epoch of each contestant, and ratios to plain training."""
  sets, rivals, base = field
  calls = {name: c['step'] for name, c in rivals.items()}
  calls |= {f'{n} dealer': c['deal'] for n, c in rivals.items() if 'deal' in c}
  best = race(calls, turns, 0.2)
  plain, cut_layer = best['plain'], wire.seconds(base)
  rows: dict[str, dict[str, Any]] = {'plain': dict(
      compute=_short(plain * STEPS), lan=_short(cut_layer * STEPS), ratio=1.0)}
  for name, c in rivals.items():
    if name == 'plain':
      continue
    total = wire.count(c['said'])
    lan = cut_layer + wire.seconds(c['said'])
    whole = (best[name] + lan) / (plain + cut_layer)
    rows[name] = dict(
        layers=[layer.name for layer in sets[name]],
        compute=_short(best[name] * STEPS),
        ratio=_short(best[name] / plain),
        dealer=_short(best[f'{name} dealer'] * STEPS),
        ratio_with_dealer=_short(
            (best[name] + best[f'{name} dealer']) / plain),
        lan=_short(lan * STEPS), ratio_with_lan=_short(whole),
        megabytes_a_step=_short(total.bytes / 1e6), flights=total.flights,
        dealer_megabytes_a_step=_short(total.offline_bytes / 1e6),
        target=TARGET, met=best[name] / plain <= TARGET,
    )
  print(model, {k: v['ratio'] for k, v in rows.items()}, file=sys.stderr)
  return dict(paper_ratio=PAPER[model], seconds_an_epoch=rows)


def _short(value: float) -> float:
  return float(f'{value:.3g}')


def run_children(command: list[str], vectors: list[str]) -> dict[str, Any]:
  """One process for each set of flags; all compile, then each runs alone."""
  children = {
      name: subprocess.Popen(
          command, env=dict(os.environ, XLA_FLAGS=FLAGS[name]), text=True,
          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
      ) for name in vectors
  }
  for child in children.values():
    assert child.stdout is not None
    if child.stdout.readline().strip() != 'ready':
      raise RuntimeError(f'a benchmark process ended: {child.args}')
  load = list(os.getloadavg())
  runs = {n: json.loads(c.communicate('go')[0]) for n, c in children.items()}
  return {name: dict(run, load=load) for name, run in runs.items()}


def main() -> None:
  parser = argparse.ArgumentParser(description='Masked against plain training.')
  parser.add_argument('--out', type=pathlib.Path, help='JSON file to write')
  parser.add_argument('--turns', type=int, default=8, help='turns of a race')
  parser.add_argument('--models', default='mlp3,lenet5')
  parser.add_argument('--vectors', default='default,wide', help='runs to make; '
                      'those in the file at --out stay')
  parser.add_argument('--child', action='store_true', help='one set of flags')
  args = parser.parse_args()
  if args.child:
    warnings.simplefilter('ignore', UserWarning)  # Condition B < n1.
    names = args.models.split(',')
    fields = {m: prepare(m) for m in names}
    print('ready', flush=True)
    sys.stdin.readline()
    results = {m: measure(m, fields[m], args.turns) for m in names}
    print(json.dumps(dict(ranking=dispatch.ranking('cpu'), models=results)))
    return
  old = args.out.read_text('utf-8') if args.out and args.out.exists() else '{}'
  record: dict[str, Any] = dict(
      date=datetime.date.today().isoformat(), machine=records.machine(),
      versions=records.versions(), batch=BATCH, steps_an_epoch=STEPS,
      network=wire.Network()._asdict(), turns=args.turns,
      runs=json.loads(old).get('runs', {}))
  command = [sys.executable, '-m', 'experiments.bench.vmask', '--child',
             f'--turns={args.turns}', f'--models={args.models}']
  record['runs'] |= run_children(command, args.vectors.split(','))
  records.write(record, args.out)


if __name__ == '__main__':
  main()
