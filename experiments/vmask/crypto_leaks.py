"""What the cryptographic baselines leak, by attacks in training.

  python -m experiments.vmask.crypto_leaks \
      --out=experiments/vmask/records/crypto_leaks.json

Each protocol trains the same as a plain federation (vfljax.he.views, tested on
ciphertexts). So registered attacks run on that federation, with the views that
parties have by design. Data are breast cancer (bundled with scikit-learn), 15
columns at each party, in batches of 8, with SGD at 0.1, for 10 epochs. A score
is the leak AUC pooled over an epoch's rounds; those of the last epoch and of
the best one are recorded, because an attacker can choose.

HardyLR's residues are those of a regression on +-2, u / 4 - t / 2, whose sign
is not the label's if u overshoots. An attacker who knows the loss solves for t
with its own part of u: 'residues and own part', which is not a registered
attack.
"""
import argparse
from collections.abc import Callable
import json
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import studies
from experiments.bench.he_plain import taylor
from vfljax import algorithms, attacks, data, measure, nets, train
from vfljax.attack import Attack
from vfljax.attacks.residue_reconstruction import linear_gradient
from vfljax.defense import none
from vfljax.runner import errors
from vfljax.types import VFL, Array, Batch, Net
from vfljax.views import ModelGradients

ROWS, EPOCHS, RATE, WIDTH = 8, 10, 0.1, 8
KNOWING = 'residues and own part'
SCORING = ('norm_scoring', 'direction_scoring', 'mean_scoring')


class Case(NamedTuple):
  """A party under a protocol, and the federation whose messages it sees.

  Attributes:
    vfl: The plain federation, in which it is party 1.
    attacks: Registered ones, on the view that it has.
    whole: Whether it computes on all features, as a server does.
  """

  vfl: VFL
  attacks: tuple[str, ...]
  whole: bool = False


def knowing_the_loss() -> Attack:
  """HardyLR's passive party: t = u / 2 - 2 B d, with its own part for u.

  Scores: [batch], how positive.
  """
  solve = attacks.residue_reconstruction()

  def attack(key, view: ModelGradients):
    scores = solve.run(key, view)
    d = scores[:, 0] - scores[:, 1]
    kernel, bias = linear_gradient(view.weights)
    own = (view.features @ kernel)[:, 0] + (0 if bias is None else bias[0])
    return own / 2 - 2 * view.valid.sum() * d
  return Attack(ModelGradients, attack)


def _then(*widths: int) -> Net:
  """What follows a layer: its activation, and layers."""
  net = nets.mlp(*widths)
  return Net(
      lambda key, z: net.init(key, jnp.tanh(z)),
      lambda p, z: net.apply(p, jnp.tanh(z)),
  )


def _mixing(top: Net) -> Net:
  """ACML's layer on the passive party's embedding, below the top."""
  layer = nets.mlp(WIDTH)

  def init(key, us):
    one, two = jax.random.split(key)
    params = layer.init(one, us[1])
    z = us[0] + layer.apply(params, us[1])
    return dict(layer=params, top=top.init(two, z))

  def apply(p, us):
    return top.apply(p['top'], us[0] + layer.apply(p['layer'], us[1]))
  return Net(init, apply)


def cases() -> dict[str, Case]:
  """By what stands in the record."""
  bottom = lambda: nets.mlp(WIDTH, WIDTH, activation='tanh')
  loss = optax.softmax_cross_entropy
  split = algorithms.vhnn([bottom(), bottom()], _then(2), 'sum')
  layers = [nets.mlp(WIDTH), nets.mlp(WIDTH)]
  first = algorithms.vhnn(layers, _then(WIDTH, 2), 'sum')
  served = algorithms.vsnn([bottom()], _then(2))
  lr = algorithms.vlr(2, 2)
  return {
      'plain, passive': Case(split, SCORING),
      'acml, passive': Case(
          VFL((bottom(), bottom()), _mixing(_then(2)), loss), SCORING
      ),
      'spnn, passive': Case(first, SCORING),
      'spnn, server': Case(served, SCORING, whole=True),
      'sfa, passive': Case(split, SCORING),
      'hardy, passive': Case(
          lr._replace(loss=taylor), ('residue_reconstruction', KNOWING)
      ),
  }


def samples(whole: bool) -> Batch:
  """Standardized; half of the columns at each party, or all at party 1."""
  table = data.load('breast_cancer')
  x = np.asarray(table.features, np.float32)
  x = (x - x.mean(0)) / x.std(0)
  labels = jax.nn.one_hot(np.asarray(table.labels), 2)
  half = x.shape[1] // 2
  if whole:
    return Batch((None, jnp.asarray(x)), labels)
  return Batch((jnp.asarray(x[:, half:]), jnp.asarray(x[:, :half])), labels)


def run(case: Case) -> Callable[[Array], dict[str, Any]]:
  """(key) -> of each attack the leak AUC and facts, by epoch."""
  made: dict[str, Any] = {
      name: knowing_the_loss() if name == KNOWING
      else attacks.REGISTRY[name]() for name in case.attacks
  }
  watch, digest = measure.watcher(made, none())
  batch = samples(case.whole)

  def trained(key):
    _, history = train.fit(
        key, case.vfl, none(), (optax.sgd(RATE),) * 2, batch, epochs=EPOCHS,
        batch_size=ROWS, watch=watch, digest=digest,
    )
    return history['watch']
  return trained


def scores(watched: dict[str, Any]) -> dict[str, dict[str, list[float]]]:
  """Of each attack, by seed: leak AUC of the last epoch and of the best."""
  found = {}
  for name, rows in watched.items():
    auc = np.asarray(rows['leak_auc'])  # [seeds, epochs]
    found[name] = dict(
        last=auc[:, -1].tolist(), best=auc.max(-1).tolist(),
    )
    if 'exact' in rows:
      found[name]['exact'] = np.asarray(rows['exact'])[:, -1].tolist()
  return found


@errors.explained()
def main(argv: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=str(__doc__).split('\n')[0])
  parser.add_argument('--seeds', type=errors.one_or_more, default=5)
  parser.add_argument('--out', default='', type=errors.new_file)
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.vmask.crypto_leaks', argv)
  keys = jax.random.split(jax.random.key(0), args.seeds)
  rows = {
      name: scores(jax.jit(jax.vmap(run(case)))(keys))
      for name, case in cases().items()
  }
  print(json.dumps(rows, indent=1))
  studies.write(
      args.out, begun, range(args.seeds), data.load('breast_cancer'),
      dict(rows_a_round=ROWS, epochs=EPOCHS, rate=RATE, width=WIDTH),
      rows=rows,
  )


if __name__ == '__main__':
  main()
