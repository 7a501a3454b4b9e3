"""What a patient attacker recovers under GAFM: gradients averaged over epochs.

  python -m experiments.gafm.averaging spambase.data --seeds=10 \
      --out=experiments/gafm/records/averaging.json

The paper's attacks use one epoch. But a passive party knows which sample is
which, so it can average the gradients that it gets for a sample over many
epochs: u and the critic's noise are drawn again every round and average out. It
also knows its own embeddings f(x), and can subtract from every round's
gradients what is a function of f(x) (`attacks.residual_scoring`). Measured are
both, their combination, and f(x) alone, which needs no attack.
"""
import argparse
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import evidence, studies
from experiments.gafm import common
from vfljax import metrics, sweep, train
from vfljax.attacks.residual_scoring import residuals
from vfljax.defenses.gafm import Reading
from vfljax.runner import errors
from vfljax.runner.checking import checks
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Entry
from vfljax.runner.experiment.plans import training_plan
from vfljax.runner.experiment.setting import build, split_samples
from vfljax.runner.machine import device
from vfljax.types import Array, Batch, Net

SPANS = {  # Epochs averaged over
    'last': slice(-1, None), 'last 10': slice(-10, None),
    'last 50': slice(-50, None), 'first 10': slice(10), 'first 50': slice(50),
    'all 300': slice(None),
}
ENTRIES = {
    'gafm': common.gafm(),
    'gafm, u fixed': common.gafm(reading=Reading(redraw=False)),
    'gafm, delta 0.5': common.gafm(delta=0.5),
    'marvell': common.marvell(),
    'max_norm': Entry('max_norm'),
}


def numbered(net: Net) -> Net:
  """`net` without the first column, the sample's number."""
  return Net(
      lambda key, x: net.init(key, x[:, 1:]),
      lambda params, x: net.apply(params, x[:, 1:]),
  )


def watch(key, played):
  """(number, gradient, residual, embedding) of each sample of a round."""
  del key
  sent, received = played.messages.up[0], played.messages.down[0]
  rest = residuals(sent, received, played.batch.labels.sum(-1), 5)
  return (
      played.batch.features[1][:, 0].astype(jnp.int32),
      received[:, 0] * jnp.sqrt(1.0 * len(received)), rest[:, 0], sent[:, 0],
  )


def digest(samples: int, *stacks):
  """[samples, 3] of an epoch: gradient, residual and embedding."""
  flat = [jnp.concatenate([x.ravel() for x in xs]) for xs in zip(*stacks)]
  number, *values = flat
  return jnp.zeros((samples, 3)).at[number].set(jnp.stack(values, -1))


def study(setting, entry, key, samples: Batch) -> dict[str, Array]:
  """One training: the AUC of every attacker."""
  splits = split_samples(setting, jax.random.fold_in(key, 0), samples)
  count = len(splits.train.labels)
  x = splits.train.features[1]
  column = jnp.arange(count, dtype=x.dtype)[:, None]
  data = splits.train._replace(features=(None, jnp.hstack([column, x])))
  strength = entry.strengths[0] if entry.strengths else None
  defense = build(entry, strength)
  plan = training_plan(setting, defense, splits)
  bottom = setting.vfl.bottom(1)
  plan = plan._replace(
      vfl=setting.vfl._replace(bottoms=(None, numbered(bottom))), watch=watch,
      digest=partial(digest, count), validate=None, every=1,
  )
  run = train.start(jax.random.fold_in(key, 1), plan, data)
  _, history = train.advance(plan, run, data, 0, plan.epochs)
  seen = history['watch']  # [epochs, samples, 3]
  y = data.labels[:, 1]
  found = {'f(x), last epoch': metrics.leak_auc(seen[-1, :, 2], y)}
  for span, epochs in SPANS.items():
    mean = seen[epochs].mean(0)
    found[f'gradient, {span}'] = metrics.leak_auc(mean[:, 0], y)
    found[f'residual, {span}'] = metrics.leak_auc(mean[:, 1], y)
  return found


@errors.explained()
def main(argv: Sequence[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description='Averages gradients.')
  parser.add_argument('path', help='spambase.data')
  parser.add_argument('--seeds', type=errors.one_or_more, default=10)
  parser.add_argument(
      '--out', default='', type=errors.new_file, help='JSON file'
  )
  parser.add_argument('--only', default='', help='one defense; default: all')
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.gafm.averaging', argv)
  device.set_up(0, '~/.cache/vfljax')
  config = common.spambase('averaging', [], path=args.path)
  config.listed_attacks = ()
  table = load_data(config.data)
  setting = checks.make(config, table)
  keys = jax.vmap(jax.random.key)(jnp.arange(args.seeds))
  found = {}
  for name, entry in ENTRIES.items():
    if args.only not in ('', name):
      continue
    run = jax.jit(sweep.over_cells(partial(study, setting, entry)))
    cells = sweep.pad(keys, jax.local_device_count())
    got = run(*sweep.place(cells, setting.samples))
    found[name] = {
        k: np.asarray(v[: args.seeds], np.float64).round(5).tolist()
        for k, v in jax.device_get(got).items()
    }
    for what, values in found[name].items():
      print(f'{name}: {what}: {evidence.spread(values, 3)}', flush=True)
  studies.write(args.out, begun, range(args.seeds), table, leak_auc=found)


if __name__ == '__main__':
  main()
