"""VMask, Figures 7, 11 and 14 drawn, and the curves of Figures 2, 5 and 8.

  python -m experiments.vmask.pictures embeddings mlp3 mnist.npz --out=fig7.png
  python -m experiments.vmask.pictures budgets mlp3 mnist.npz --out=fig11.png
  python -m experiments.vmask.pictures curves fig5_tm.json --out=fig5.png
  python -m experiments.vmask.pictures norms fig5_tm.json --out=fig14.png
  python -m experiments.vmask.pictures layers table1_mlp3.json --out=fig2.png

`embeddings`: t-SNE of the embeddings that the attacker's bottom makes of 1000
test images, undefended, from scratch and under every defense (Figure 7);
`budgets`: of VMask at several budgets (Figure 11). The others draw records of
`fig5` and `table1`.
"""
import argparse
import json
from pathlib import Path
from typing import Any

import jax
import matplotlib.figure
import numpy as np
from sklearn.manifold import TSNE

from experiments.vmask import common, fig5, study
from vfljax.nets import named_layers
from vfljax.runner import errors
from vfljax.runner.config import Entry
from vfljax.runner.machine import device

SHOWN = 1000  # Test images in a t-SNE.
BUDGETS = (0.8, 0.7, 0.6, 0.5, 0.4, 0.25)


def embedded(key, seen: study.Seen):
  """What party 1's bottom, as it can read it, makes of test images."""
  k_view, _ = jax.random.split(key)
  plan, state = seen.plan, seen.state
  weights = plan.defense.expose(
      state.defense, k_view, 1, state.parties[1].params['bottom']
  )
  x = seen.splits.test.features[1][:SHOWN]
  return plan.vfl.bottom(1).apply(weights, x)


def from_scratch(key, seen: study.Seen):
  """The same, of random weights."""
  weights = named_layers.redraw(key, seen.state.parties[1].params['bottom'])
  x = seen.splits.test.features[1][:SHOWN]
  return seen.plan.vfl.bottom(1).apply(weights, x)


def gathered(which: str, model: str, path: str, dataset: str):
  """Embeddings [n, width] by panel, and the test images' classes [n]."""
  config = common.config('pictures', (), model, dataset)
  config.data.path, config.seeds, config.alone = path, 1, False
  setting = study.prepare(config)
  panels: dict[str, np.ndarray] = {}
  look = dict(embedded=embedded)
  plain = study.run(setting, Entry('none'), look | dict(scratch=from_scratch))
  panels['vanilla'] = plain['embedded'][0, 0]
  if which == 'budgets':
    entry = common.masked(model=model)
    for budget in BUDGETS:
      found = study.run(setting, entry, look, budget)
      panels[f'budget {budget:g}'] = found['embedded'][0, 0]
  else:
    panels['scratch'] = plain['scratch'][0, 0]
    for name, entry in fig5.entries(model).items():
      if name in ('none', 'VMask-AS', 'VMask-RS', 'VMask-ALLS'):
        continue
      panels[name] = study.run(setting, entry, look)['embedded'][0, 0]
  labels = np.asarray(setting.samples.labels)[-setting.sizes.test:]
  return panels, labels[:SHOWN].argmax(-1)


def tsne(panels: dict[str, np.ndarray], classes: np.ndarray):
  """One scatter of two dimensions for each panel."""
  columns = 4
  rows = -(-len(panels) // columns)
  figure = matplotlib.figure.Figure((3 * columns, 3 * rows))
  for i, (name, u) in enumerate(panels.items(), start=1):
    axes = figure.add_subplot(rows, columns, i)
    points = TSNE(random_state=0, init='pca').fit_transform(
        u.reshape(len(u), -1)
    )
    axes.scatter(*points.T, c=classes, cmap='tab10', s=3)
    axes.set(title=name, xticks=[], yticks=[])
  return figure


def curves(record: dict[str, Any]):
  """Attack accuracy after every epoch, of each defense (Figure 5)."""
  figure = matplotlib.figure.Figure((8, 4.5))
  axes = figure.add_subplot()
  for i, (name, found) in enumerate(record['curves'].items()):
    attack = 100 * np.asarray(found['attack']).mean((0, -1))
    # Ten colours go round; VMask's curves are the thick ones.
    axes.plot(
        np.arange(1, len(attack) + 1), attack, ('-', '--')[i // 10],
        color=f'C{i % 10}', label=name,
        lw=2.5 if name.startswith('VMask') else 1,
    )
  kept = record['curves'].get('VMask', {}).get('recovered')
  if kept:
    attack = 100 * np.asarray(kept).mean((0, -1))
    axes.plot(
        np.arange(1, len(attack) + 1), attack, ':k', lw=2.5,
        label='VMask, transcript kept',
    )
  scratch = record['curves'].get('none', {}).get('scratch')
  if scratch:
    level = 100 * np.asarray(scratch).mean()
    axes.axhline(level, color='0.5', ls=':', label='scratch')
  axes.set(xlabel='epoch', ylabel='attack accuracy (%)')
  axes.legend(fontsize=8, loc='center left', bbox_to_anchor=(1, 0.5))
  return figure


def norms(record: dict[str, Any]):
  """Accumulated gradient norm of each layer after every epoch (Figure 14)."""
  found = np.asarray(record['curves']['VMask']['norms'])[0]
  epochs, count = found.shape
  figure = matplotlib.figure.Figure((6, 4))
  axes = figure.add_subplot()
  image = axes.imshow(
      found.T / found.sum(-1), aspect='auto', origin='lower',
      extent=(0.5, epochs + 0.5, 0.5, count + 0.5),
  )
  axes.set(
      xlabel='epoch', ylabel='layer', yticks=range(1, count + 1),
      title='share of the accumulated L1 gradient norm',
  )
  figure.colorbar(image)
  return figure


def hidden_layers(record: dict[str, Any]):
  """Attack accuracy by the set of layers hidden (Figure 2)."""
  fewest_first = lambda row: (row[0] != 'none', len(row[0]), row[0])
  found = dict(sorted(record['attack_accuracy'].items(), key=fewest_first))
  values = [100 * np.asarray(x) for x in found.values()]
  figure = matplotlib.figure.Figure((8, 4))
  axes = figure.add_subplot()
  axes.bar(
      list(found), [v.mean() for v in values], yerr=[v.std() for v in values]
  )
  axes.set(xlabel='layers hidden', ylabel='attack accuracy (%)')
  return figure


@errors.explained()
def main(argv: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=str(__doc__).split('\n')[0])
  parser.add_argument('what', choices=(
      'embeddings', 'budgets', 'curves', 'norms', 'layers'
  ))
  parser.add_argument('source', nargs='+', help='a record; or model and data')
  parser.add_argument('--dataset', default='mnist')
  parser.add_argument('--out', required=True, type=errors.new_file)
  args = parser.parse_intermixed_args(argv)
  if args.what in ('embeddings', 'budgets'):
    device.set_up(1, '~/.cache/vfljax')
    model, path = args.source
    figure = tsne(*gathered(args.what, model, path, args.dataset))
  else:
    record = json.loads(Path(args.source[0]).read_text('utf-8'))
    draw = dict(curves=curves, norms=norms, layers=hidden_layers)
    figure = draw[args.what](record)
  figure.tight_layout()
  figure.savefig(args.out, dpi=120)


if __name__ == '__main__':
  main()
