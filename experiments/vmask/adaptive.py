"""What a passive party recovers of its masked layers from its own transcript.

  python -m experiments.vmask.adaptive --data=mnist.npz --limit=30000 --epochs=3

Two parties hold halves of MNIST's images (left: passive), bottoms are MLP3 or
LeNet5 (--model), embeddings are added up; all layers of the passive bottom are
masked from the first step, or after some epochs in the clear (--before), to the
last and trained by the exact protocol, word by word. Then
`attacks.layer_recovery` recovers each layer from what the protocol showed the
passive party, and VMask's own attack (model completion, Table VII) is run from
what it recovered:

  full       the true weights, which nobody has: no defense at all
  redrawn    all layers drawn anew: VMask's attacker, who has its shares only
  tracking   the weights it shared plus its updates, without theta_r
  linear n   the same, and theta_r solved from n batches

under T3, which shows the passive party what VMask's protocol shows it, and with
the last layer under T4, which keeps its output and gradient with the active
party: there the attacker has the last layer's weights from before training
('old') or draws others ('redrawn last').

The figures stand in README.md, "Attackers who keep their transcript", as
records/adaptive*.json have them.

What they support: in this setting tracking regains nearly all that redrawing
all layers costs the attacker, and solving all of it, although a batch of 128 is
smaller than every layer's input (the paper's condition, section IV-D). T4 on
the last layer stops both at that layer but leaves the layers before it, which
are worth most of it. So secrecy of masked layers under T3 is against a party
that looks at its shares, not against one that kept its transcript. It rests on
the paper's "the attacker knows the layer input and output" and on its own
update with the layer's gradient. What it does not look at: deeper networks and
other data, all layers under T4 (each would need its activation at the active
party), and what the input gradients of a T4 layer give away. Known labels are
40 drawn at random, 4 a class; accuracies are on the first 2000 test images,
best of 50 epochs (chosen on test images, as in the paper) and last.
"""
import argparse
from collections.abc import Sequence
import functools
import json
import pathlib
import tempfile
from typing import Any
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from experiments import studies
from experiments.vmask import study
from experiments.vmask.transcript import (
    BATCH, ETA, STUDIES, Data, Study, Trained, load, train,
)
from vfljax import attacks, metrics
from vfljax.attacks import layer_recovery
from vfljax.attacks.model_completion import Schedule, mlp_head
from vfljax.data import npz
from vfljax.masked import masking
from vfljax.nets import intercept, named_layers
from vfljax.runner import errors
from vfljax.types import Array, Net
from vfljax.views import MaskedLayer, TrainedBottom


def first(view: MaskedLayer, rounds: int) -> MaskedLayer:
  """The view of who kept fewer rounds."""
  if isinstance(view.inputs, tuple):
    return view
  cut = jax.tree.map(lambda a: a[:rounds], view[1:])
  return MaskedLayer(view.copy, *cut)


def recovered(seen: Trained, rounds: int) -> Any:
  """The network as the attacker puts it together; 0 rounds: tracking."""
  attack = layer_recovery.layer_tracking()
  if rounds:
    attack = layer_recovery.layer_solving()
  run, params = jax.jit(attack.run), seen.weights
  for name, view in seen.views.items():
    guess = run(jax.random.key(0), first(view, rounds))
    params = intercept.with_leaves(params, tuple(name.split('/')), guess)
  return params


def redraw(
    study: Study, params: Any, key: Any, names: tuple[str, ...]
) -> Any:
  """`params` with other random weights in the layers `names`."""
  other = study.net.init(key, jnp.zeros((1, *study.shape), jnp.float32))
  return named_layers.select(named_layers.mask(params, names), params, other)


def networks(
    seed: int, study: Study, seen: Trained, last: str
) -> dict[str, Any]:
  """The attackers' bottom networks, by name."""
  drawn = functools.partial(
      redraw, study, key=jax.random.key(1000 + seed)
  )
  out = {
      'full': seen.weights,
      'redrawn': drawn(seen.weights, names=named_layers.names(seen.weights)),
      'tracking': recovered(seen, 0),
  }
  for n in study.solved_from:
    out[f'linear {n}'] = recovered(seen, n)
  if last:
    most = f'linear {study.solved_from[-1]}'
    best = out[most]
    out = {k: v for k, v in out.items() if k in ('full', 'redrawn')} | {
        'tracking, old last': out['tracking'],
        f'{most}, old last': best,
        f'{most}, redrawn last': drawn(best, names=(last,)),
        'full, redrawn last': drawn(seen.weights, names=(last,)),
    }
  return out


def distances(net: Net, found: Any, true: Any, x: Array) -> dict[str, float]:
  """Relative errors: of each layer's kernel, and of the embedding."""
  ratio = lambda a, b: float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))
  ours, theirs = named_layers.arrays(found), named_layers.arrays(true)
  # As the network calls them: 'Dense_0' for 'Dense_0/Dense_0'.
  out = {
      name.split('/')[0]: ratio(ours[name]['kernel'], theirs[name]['kernel'])
      for name in theirs
  }
  return out | {'embedding': ratio(net.apply(found, x), net.apply(true, x))}


@functools.partial(jax.jit, static_argnums=(0, 5))
def complete(
    study: Study, key: Any, weights: Any, data: Data, test: Data, draws: int
):
  """[draws, epochs] accuracy of the completed models, 4 labels a class."""
  schedule = Schedule(50, study.batch, 50, ETA, 'sgd')
  attack = attacks.model_completion(study.net, mlp_head(10, 64), schedule)

  def one(key):
    k_labels, k_run = jax.random.split(key)
    lot = jax.random.uniform(k_labels, data.labels.shape) * data.labels
    rows = jax.lax.top_k(lot.T, 4)[1].reshape(-1)
    view = TrainedBottom(
        weights, data.passive[rows], data.labels[rows], test.passive)
    guesses = attack.run(k_run, view)
    return jax.vmap(metrics.accuracy, (0, None))(guesses, test.labels)

  return jax.lax.map(one, jax.random.split(key, draws))


def measure(seed, study, data, test, epochs, draws, last) -> dict[str, Any]:
  """One training and all attackers of it."""
  seen = train(seed, study, data, epochs, last)
  some = Data(*(part[:2000] for part in test))
  rows = {}
  for name, weights in networks(seed, study, seen, last).items():
    scores = complete(
        study, jax.random.key(seed), weights, data, some, draws
    )
    rows[name] = dict(
        best=np.asarray(scores.max(1), float).tolist(),
        final=np.asarray(scores[:, -1], float).tolist(),
        errors=distances(study.net, weights, seen.weights, some.passive),
    )
  return rows


def by_seed(runs: list[dict[str, Any]]) -> dict[str, Any]:
  """Of every attacker best and last accuracies and errors, a list a seed."""
  return {
      name: {field: [run[name][field] for run in runs]
             for field in ('best', 'final')} | dict(
                 errors={k: [run[name]['errors'][k] for run in runs]
                         for k in row['errors']})
      for name, row in runs[0].items()
  }


@errors.explained()
def main(argv: Sequence[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description='Adaptive attackers of VMask.')
  parser.add_argument('--data', default='mnist.npz', help='Keras archive')
  parser.add_argument('--model', choices=STUDIES, default='mlp3')
  parser.add_argument('--before', type=int, default=0,
                      help='epochs in the clear before layers are masked')
  parser.add_argument('--seeds', type=errors.one_or_more, default=3)
  parser.add_argument('--epochs', type=int, default=5)
  parser.add_argument('--draws', type=int, default=5,
                      help='choices of known labels')
  parser.add_argument('--limit', type=int, default=0, help='training samples')
  parser.add_argument('--work', type=pathlib.Path,
                      help='folder that keeps finished trainings')
  parser.add_argument('--parts', type=int, default=0,
                      help='stop after so many trainings; 0: all')
  parser.add_argument('--out', type=errors.new_file, default='')
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.vmask.adaptive', argv)
  which = STUDIES[args.model]._replace(before=args.before)
  data, test = load(args.data, which.shape)
  if args.limit:
    data = Data(*(part[: args.limit] for part in data))
  work = args.work or pathlib.Path(tempfile.mkdtemp())
  work.mkdir(parents=True, exist_ok=True)
  made = 0
  modes = {'T3': '', 'T4': which.last}
  setup = (args.model, args.before, args.epochs, len(data.labels), args.draws)
  stem = '_'.join(map(str, setup))
  place = lambda mode, seed: work / f'{stem}_{mode}_{seed}.json'
  for seed in range(args.seeds):
    for mode, last in modes.items():
      if place(mode, seed).exists():
        continue
      if args.parts and made == args.parts:
        return
      row = measure(seed, which, data, test, args.epochs, args.draws, last)
      place(mode, seed).write_text(json.dumps(row), 'utf-8')
      made += 1
  found = {}
  for mode in modes:
    found[mode] = by_seed([
        json.loads(place(mode, seed).read_text('utf-8'))
        for seed in range(args.seeds)
    ])
    for row, values in found[mode].items():
      print(f'{mode} {row}: {study.mean_std(np.asarray(values["best"]))}')
  about = dict(
      train_samples=len(data.labels), batch=BATCH, theta_r=masking.STD
  )
  studies.write(
      args.out, begun, range(args.seeds), npz.load(args.data), about, **found
  )


if __name__ == '__main__':
  warnings.simplefilter('default')
  main()
