"""GAFM, Figures 2 and 4-6 and Figure 7, drawn from saved arrays.

  python -m experiments.gafm.pictures train spambase.data --out=out/gafm
  python -m experiments.gafm.pictures gradients out/gafm/gradients.npz
  python -m experiments.gafm.pictures ratios \
      experiments/gafm/records/delta_tenth.json

`train` trains vanilla splitNN and GAFM for one seed and saves, for every sample
of the last epoch, its label, its prediction and what was sent: vanilla's
gradient, GAFM's, and GAFM's two terms, computed anew from the round's state.
`gradients` draws them: predictions against gradients, one panel each. `ratios`
charts leak AUC over training AUC for each Delta, of files that `choose_delta`
wrote; the lowest is marked.
"""
import argparse
from functools import partial
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np

from experiments.gafm import common
from vfljax import train
from vfljax.defenses import gafm
from vfljax.runner.checking import checks
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Entry
from vfljax.runner.experiment.plans import training_plan
from vfljax.runner.experiment.setting import build, split_samples
from vfljax.runner.machine import device

PANELS = ('vanilla', 'GAFM', 'GAN term', 'CE term')
COLORS = ('#3b6fb6', '#d1495b')  # negative, positive


def terms(key, played) -> tuple:
  """(GAN term, CE term) of a round's gradient, [batch] each.

  By generator and critic as they were before the round's own steps; the
  gradient that was sent is by those after them.
  """
  f, labels = played.messages.up[0], played.batch.labels
  memory = played.state.defense

  def loss(which, f):
    own = gafm.Settings(
        0.05, 1.0, 0.01, 0.1, 'both', 'f', gafm.Reading(), gafm.GAN()
    )
    return gafm.mean(
        gafm.losses(key, own, memory, f, labels)[which], labels.sum(-1)
    )

  return tuple(jax.grad(partial(loss, i))(f)[:, 0] for i in range(2))


def watch(parts: bool, key, played):
  """(label, prediction, gradient[, GAN term, CE term]) of a round's samples."""
  sent, received = played.messages.up[0], played.messages.down[0]
  row = (played.batch.labels[:, 1], sent[:, 0], received[:, 0])
  return row + terms(key, played) if parts else row


def digest(*stacks):
  """Each of `watch`'s columns, of a whole epoch's samples."""
  return [jnp.concatenate([x.ravel() for x in xs]) for xs in zip(*stacks)]


def last_epoch(setting, entry: Entry, seed: int) -> list[np.ndarray]:
  """What `watch` saw in the last epoch."""
  parts = entry.defense == 'gafm'

  @jax.jit
  def run(key, samples):
    splits = split_samples(setting, key, samples)
    strength = entry.strengths[0] if entry.strengths else None
    plan = training_plan(setting, build(entry, strength), splits)
    plan = plan._replace(
        watch=partial(watch, parts), digest=digest, validate=None,
        every=plan.epochs,
    )
    begun = train.start(key, plan, splits.train)
    _, history = train.advance(plan, begun, splits.train, 0, plan.epochs)
    return [x[-1] for x in history['watch']]

  return jax.device_get(run(jax.random.key(seed), setting.samples))


def save(path: str, out: str, seed: int) -> Path:
  """Trains and saves `gradients.npz`."""
  device.set_up(0, '~/.cache/vfljax')
  config = common.spambase('pictures', [], path=path)
  config.listed_attacks = ()
  setting = checks.make(config, load_data(config.data))
  y0, f0, vanilla = last_epoch(setting, Entry('none'), seed)
  y, f, both, by_gan, by_ce = last_epoch(setting, common.gafm(), seed)
  place = Path(out)
  place.mkdir(parents=True, exist_ok=True)
  file = place / 'gradients.npz'
  np.savez_compressed(
      file, labels=np.stack([y0, y, y, y]), predictions=np.stack([f0, f, f, f]),
      gradients=np.stack([vanilla, both, by_gan, by_ce]),
  )
  return file


def gradients(file: Path) -> Path:
  """Draws Figure 4 from `gradients.npz`, beside it."""
  saved = np.load(file)
  figure = matplotlib.figure.Figure((13, 3.4), layout='constrained')
  for i, axes in enumerate(figure.subplots(1, 4)):
    for label, name in enumerate(('negative', 'positive')):
      own = saved['labels'][i] == label
      g, f = saved['gradients'][i][own], saved['predictions'][i][own]
      axes.scatter(g, f, s=3, alpha=0.4, color=COLORS[label], label=name)
      axes.axvline(g.mean(), color=COLORS[label], lw=1.2)
    axes.set(title=PANELS[i], xlabel='gradient sent')
    axes.set_xticks([])
  figure.axes[0].set_ylabel('prediction f(x)')
  figure.axes[0].legend(markerscale=4, frameon=False)
  return _write(figure, file.with_suffix('.png'))


def ratios(files: list[Path]) -> Path:
  """Charts Figure 7's ratios, a group of bars for each file."""
  figure = bars([json.loads(file.read_text('utf-8')) for file in files])
  return _write(figure, files[0].with_name('ratios.png'))


def bars(found: list[dict]) -> matplotlib.figure.Figure:
  """Figure 7's ratios, a group of bars for each record of `choose_delta`."""
  figure = matplotlib.figure.Figure((7, 3.2), layout='constrained')
  axes = figure.subplots()
  for i, run in enumerate(found):
    place = np.arange(len(run['deltas'])) + 0.8 * i / len(found)
    ratios = run['ratios'][0]
    best = int(np.argmin(ratios))
    colors = [COLORS[j == best] for j in range(len(place))]
    bars = axes.bar(
        place, ratios, 0.75 / len(found), color=colors,
        alpha=1 - 0.4 * i / len(found),
    )
    axes.bar_label(bars, fmt='%.2f', fontsize=7)
  axes.set_xticks(
      np.arange(len(found[0]['deltas'])) + 0.4 * (len(found) - 1) / len(found),
      [f'{d:g}' for d in found[0]['deltas']],
  )
  shares = ', '.join(f'{run["share"]:g}' for run in found)
  axes.set(
      xlabel='Delta', ylabel='leak AUC / training AUC',
      title=f'share of the data: {shares}; red is the lowest',
  )
  return figure


def _write(figure: matplotlib.figure.Figure, file: Path) -> Path:
  figure.savefig(file, dpi=130)
  return file


def main() -> None:
  parser = argparse.ArgumentParser(description="GAFM's figures.")
  parser.add_argument('what', choices=('train', 'gradients', 'ratios'))
  parser.add_argument('paths', nargs='+')
  parser.add_argument('--out', default='out/gafm')
  parser.add_argument('--seed', type=int, default=0)
  args = parser.parse_intermixed_args()
  if args.what == 'train':
    print(save(args.paths[0], args.out, args.seed))
  elif args.what == 'gradients':
    print(gradients(Path(args.paths[0])))
  else:
    print(ratios([Path(p) for p in args.paths]))


if __name__ == '__main__':
  main()
