"""GAFM, Table 7 and what Figures 2 and 4 show: the two terms of its gradient.

  python -m experiments.gafm.terms spambase.data \
      --out=experiments/gafm/records/terms.json
  python -m experiments.gafm.terms movie_reviews.tsv --of=reviews \
      --out=experiments/gafm/records/terms_reviews.json

The paper says that the class centers of the GAN's and of the cross-entropy's
gradient lie on opposite sides and cancel (section 3.4), and gives each term's
mean (Table 7). Here both terms are computed in every round of every epoch, from
the round's own embeddings, with u and the critic's noise drawn again. The
networks are those before the round's own steps of generator and critic
(`pictures.terms`), which matters in the first epoch: its first critic is not
clipped yet. Beside the gradient that was sent, each epoch has their means and
the distances between the class centers, positives minus negatives. Delta is
Table 7's, 0.05, which the paper prints for IMDB, too; reviews stand in for
that.
"""
import argparse
from collections.abc import Callable, Sequence
from functools import partial
import json
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments import evidence, redrawn, studies
from experiments.claims import Verdict
from experiments.gafm import common, paper, pictures, reviews, scripts
from vfljax import sweep, train
from vfljax.report import reading
from vfljax.runner import errors
from vfljax.runner.checking import checks
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Config
from vfljax.runner.experiment.plans import training_plan
from vfljax.runner.experiment.setting import build, split_samples
from vfljax.runner.machine import device
from vfljax.types import Array, Batch

WHAT = ('GAN', 'CE', 'sent')


class Of(NamedTuple):
  """What is trained.

  Attributes:
    record: The name of its record.
    config: (rows to list) -> the experiment.
    epochs: Those that the record has; the last ends the training.
    printed: The paper's means of the GAN's and the cross-entropy's gradient.
  """

  record: str
  config: Callable[[tuple], Config]
  epochs: tuple[int, ...]
  printed: tuple[float, float]


DATA = dict(
    spambase=Of(
        'terms', partial(common.spambase, 'terms'), (1, 10, 50, 100, 200, 300),
        paper.TERMS,
    ),
    reviews=Of(
        'terms_reviews', partial(reviews.with_words, 'terms_reviews'),
        (1, 125, 625, 1250, 2500, 3750), paper.TERMS_IMDB,
    ),
)


def digest(*stacks) -> Array:
  """[2, 3] of an epoch: means, distances of class centers; of GAN, CE, sent."""
  labels, _, sent, by_gan, by_ce = pictures.digest(*stacks)
  terms = jnp.stack([by_gan, by_ce, sent])
  positive = terms @ labels / labels.sum()
  negative = terms @ (1 - labels) / (1 - labels).sum()
  return jnp.stack([terms.mean(1), positive - negative])


def study(setting, key, samples: Batch) -> Array:
  """[epochs, 2, 3] of one training, see `digest`."""
  splits = split_samples(setting, key, samples)
  entry = common.gafm()
  plan = training_plan(setting, build(entry, entry.strengths[0]), splits)
  plan = plan._replace(
      watch=partial(pictures.watch, True), digest=digest, validate=None,
      every=1,
  )
  run = train.start(key, plan, splits.train)
  _, history = train.advance(plan, run, splits.train, 0, plan.epochs)
  return history['watch']


@errors.explained()
def main(arguments: Sequence[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description="The two terms of GAFM's loss.")
  parser.add_argument('path', help='spambase.data or movie_reviews.tsv')
  parser.add_argument('--of', choices=DATA, default='spambase')
  parser.add_argument('--seeds', type=errors.one_or_more, default=10)
  parser.add_argument(
      '--epochs', type=errors.one_or_more,
      help="fewer than the record's last one"
  )
  parser.add_argument(
      '--out', default='', type=errors.new_file, help='JSON file'
  )
  args = parser.parse_args(arguments)
  begun = studies.begin('experiments.gafm.terms', arguments)
  device.set_up(0, '~/.cache/vfljax')
  of = DATA[args.of]
  config = of.config(())
  config.data.path, config.listed_attacks = args.path, ()
  config.train.epochs = args.epochs or of.epochs[-1]
  table = load_data(config.data)
  setting = checks.make(config, table)
  keys = jax.vmap(jax.random.key)(jnp.arange(args.seeds))
  run = jax.jit(sweep.over_cells(partial(study, setting)))
  cells = sweep.pad(keys, jax.local_device_count())
  got = run(*sweep.place(cells, setting.samples))
  got = np.asarray(got, np.float64)[: args.seeds]
  epochs = [e for e in of.epochs if e <= config.train.epochs]
  found = recorded(got, epochs)
  print(json.dumps(found))
  studies.write(
      args.out, begun, range(args.seeds), table, dict(epochs=epochs), **found
  )


def recorded(got: np.ndarray, epochs: Sequence[int]) -> dict:
  """`got` [seeds, epochs, 2, 3] as the record has it, by term and by seed."""
  chosen = got[:, [e - 1 for e in epochs]].round(5)
  means, centers = (
      {w: chosen[:, :, i, j].tolist() for j, w in enumerate(WHAT)}
      for i in range(2)
  )
  opposed = (got[:, :, 1, 0] * got[:, :, 1, 1] < 0).mean(1).round(4)
  return dict(means=means, centers=centers, opposed=opposed.tolist())


def table(of: Of) -> str:
  """Both terms of GAFM's gradient by epoch: Table 7, Figures 2 and 4."""
  found = scripts.read(of.record)
  shown = lambda x: f'{np.mean(x):.3f} +- {np.std(x, ddof=1):.3f}'
  rows = []
  for i, epoch in enumerate(found['epochs']):
    at = {
        what: {w: np.array(v)[:, i] for w, v in found[what].items()}
        for what in ('means', 'centers')
    }
    apart = at['centers']['GAN'] * at['centers']['CE'] < 0
    rows.append([
        f'{epoch}', *(shown(at['means'][w]) for w in ('GAN', 'CE')),
        *(shown(at['centers'][w]) for w in ('GAN', 'CE', 'sent')),
        f'{apart.sum()} of {len(apart)}',
    ])
  rows.append(['paper', *(f'{x:.3f}' for x in of.printed), '', '', '', ''])
  head = ('epoch', 'mean, GAN', 'mean, CE', 'centers, GAN', 'centers, CE',
          'centers, sent', 'opposed, seeds')
  return evidence.markdown(head, rows) + scripts.written(of.record)


def opposed(of: Of) -> Verdict:
  """Of the last epoch: apart the paper's way, and what is sent nearer to zero.

  Positives minus negatives, the GAN's is below zero and the cross-entropy's
  above it (appendix B). Opposite signs alone bring the sum below the larger of
  the two. Terms that cancel bring it below the smaller one, too. Not decided
  where an interval has zero in it and no other contradicts.
  """
  found = scripts.read(of.record)
  centers = {w: np.array(found['centers'][w]) for w in WHAT}
  gan, ce, sent = (centers[w][:, -1] for w in WHAT)
  apart = (gan < 0) & (ce > 0)
  epochs = 100 * np.mean(found['opposed'])
  nearer = {
      f'size of {w} less that of sent': np.abs(centers[w][:, -1]) - np.abs(sent)
      for w in ('GAN', 'CE')
  }
  since = np.abs(sent) - np.abs(centers['sent'][:, 0])
  told = [-sign(gan), sign(ce), *(sign(x) for x in nearer.values())]
  return Verdict(
      False if -1 in told else None if 0 in told else True,
      f'positives minus negatives in the last epoch: GAN {gan.mean():.3f}, CE '
      f'{ce.mean():.3f}, sent {sent.mean():.3f}; GAN below and CE above zero '
      f'in {apart.sum()} of {len(apart)} seeds, either way opposed in '
      f'{epochs:.0f} % of all epochs; by seed, GAN {interval(gan)}, CE '
      f'{interval(ce)}, '
      + ', '.join(f'{name}: {interval(x)}' for name, x in nearer.items())
      + f'; size of sent less that in the first epoch: {interval(since)}',
  )


def sign(x: np.ndarray) -> int:
  """1 or -1 where the mean's 95 % interval has that sign, else 0.

  0 if a seed diverged: what the others say is not what all say.
  """
  s = reading.summarize(x.tolist())
  told = not s.missing and abs(s.mean) > s.half
  return int(np.sign(s.mean)) if told else 0


def interval(x: np.ndarray) -> str:
  """'-0.003 (-0.011 to 0.004)': the mean and its 95 % Student-t interval."""
  s = reading.summarize(x.tolist())
  return f'{s.mean:.3f} ({s.mean - s.half:.3f} to {s.mean + s.half:.3f})'


def comparable(of: Of) -> Verdict:
  """What the paper calls comparable: not ten times as large."""
  found = scripts.read(of.record)['means']
  sizes = np.abs([np.asarray(found[w])[:, -1] for w in ('GAN', 'CE')])
  gan, ce = sizes.mean(1)
  drawn = np.divide(*(redrawn.weights(sizes.shape[1]) @ sizes.T).T)
  return redrawn.tested(
      bool(0.1 < gan / ce < 10),
      float(np.mean((0.1 < drawn) & (drawn < 10))),
      f'means in the last epoch, without their signs: GAN {gan:.3f}, CE '
      f'{ce:.3f}; the paper: {of.printed[0]:.3f}, {of.printed[1]:.3f}',
  )


if __name__ == '__main__':
  main()
