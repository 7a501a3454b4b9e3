"""VMask, Table III: seconds an epoch under every defense, one run.

  python -m experiments.vmask.table3 mlp3 mnist.npz --out=table3_mlp3.json
  python -m experiments.vmask.table3 lenet5 fashion_mnist.npz \
      --dataset=fashion_mnist --rounds=20 --masked=experiments/bench/vmask.json

It times --rounds of 128 rows and, separately, what a defense does after the
second epoch. An epoch is 469 rounds, 60000 images. VMask's rows are the fast
mode: the cost of choosing layers, without secret shares. --masked names the
record of `bench.vmask` on the same machine; its times with shares are printed
below.
"""
import argparse
from collections.abc import Callable
import os
from pathlib import Path
import time
from typing import Any, NamedTuple

import jax

from experiments import studies
from experiments.vmask import common, fig5, study
from vfljax import train
from vfljax.defense import Holdings, none
from vfljax.runner import errors
from vfljax.runner.config import Entry
from vfljax.runner.experiment.plans import rounds_an_epoch, training_plan
from vfljax.runner.experiment.setting import Setting, build, split_samples
from vfljax.runner.machine import device

EPOCH = 469  # Rounds in an epoch of 60000 images.
# Seconds an epoch, Table III: MLP3 on TM, LeNet5 on FM.
PAPER = {
    'mlp3': {
        'none': 1.9, 'NG': 2.0, 'CG': 2.0, 'DG': 2.0, 'FedPass': 2.6,
        'LabelDP': 4.8, 'KDk': 2.0, 'dCor': 840, 'MID': 2.6, 'VMask': 6.2,
        'VMask-AS': 6.3, 'VMask-RS': 6.5, 'VMask-ALLS': 9.3,
    },
    'lenet5': {
        'none': 4.1, 'NG': 4.2, 'CG': 4.2, 'DG': 4.2, 'FedPass': 4.4,
        'LabelDP': 5.1, 'KDk': 4.5, 'dCor': 860, 'MID': 4.4, 'VMask': 23,
        'VMask-AS': 23, 'VMask-RS': 23, 'VMask-ALLS': 31,
    },
}


class Timed(NamedTuple):
  """What is timed of a defense: calls that take no arguments."""

  rounds: Callable[[], Any]  # An epoch's, without ...
  end: Callable[[], Any]  # ... what it does after an epoch.


def programs(setting: Setting, entry: Entry) -> Timed:
  """A defense's compiled programs, called once."""
  strength = entry.strengths[0] if entry.strengths else None
  defense = build(entry, strength)
  splits = jax.jit(
      lambda samples: split_samples(
          setting, jax.random.key(0), samples
      )
  )(setting.samples)

  def plan(splits, which=defense):
    made = training_plan(setting, which, splits)
    return made._replace(validate=None)

  epoch = jax.jit(
      lambda run, s: train.advance(plan(s), run, s.train, 0, 1)
  )
  # VMask's search for layers is short or long by what it finds: a difference of
  # two epochs' times would not be that of their rounds.
  without = defense._replace(epoch=none().epoch)
  rounds = jax.jit(
      lambda run, s: train.advance(plan(s, without), run, s.train, 0, 1)
  )
  held = setting.vfl._replace(top=defense.top(setting.vfl.top))
  end = jax.jit(lambda run, s: defense.epoch(
      run.state.defense, jax.random.key(2),
      Holdings(held, run.state.parties[0].params, s.spare),
  ))
  run = jax.jit(
      lambda s: train.start(jax.random.key(1), plan(s), s.train)
  )(splits)
  run = epoch(run, splits)[0]
  jax.block_until_ready([rounds(run, splits), end(run, splits)])
  return Timed(lambda: rounds(run, splits), lambda: end(run, splits))


def seconds(call: Callable[[], Any]) -> float:
  """Of one call."""
  began = time.perf_counter()
  jax.block_until_ready(call())
  return time.perf_counter() - began


def timed(
    setting: Setting, entries: dict[str, Entry], repeats: int
) -> dict[str, dict[str, float]]:
  """Of each defense, the least of `repeats` turns, all of them taking turns."""
  made = {name: programs(setting, entry) for name, entry in entries.items()}
  turns = [
      {name: (seconds(m.rounds), seconds(m.end)) for name, m in made.items()}
      for _ in range(repeats)
  ]
  found, count = {}, rounds_an_epoch(setting)
  for name in made:
    played, after = (min(turn[name][i] for turn in turns) for i in range(2))
    each = played / count
    found[name] = dict(
        round_ms=1e3 * each, after_epoch=after, epoch=each * EPOCH + after
    )
  return found


@errors.explained()
def main(argv: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=str(__doc__).split('\n')[0])
  parser.add_argument('model', choices=PAPER)
  parser.add_argument('path')
  parser.add_argument('--dataset', default='mnist')
  parser.add_argument('--repeats', type=int, default=7)
  parser.add_argument('--rounds', type=int, default=100)
  parser.add_argument('--masked', default='')
  parser.add_argument('--out', default='', type=errors.new_file)
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.vmask.table3', argv)
  device.set_up(1, '~/.cache/vfljax')
  config = common.config('table3', (), args.model, args.dataset)
  config.data.path, config.alone = args.path, False
  config.data.limit = args.rounds * 128 + config.auxiliary.samples
  setting = study.prepare(config)
  rows = timed(setting, fig5.entries(args.model), args.repeats)
  for name, found in rows.items():
    ratio = found['epoch'] / rows['none']['epoch']
    paper = PAPER[args.model][name]
    theirs = paper / PAPER[args.model]['none']
    print(
        f'{name:11} {found["round_ms"]:7.2f} ms a round, {found["epoch"]:6.2f}'
        f' s an epoch, {ratio:5.2f}x; paper {paper} s, {theirs:.2f}x',
    )
  if args.masked:
    print(Path(args.masked).read_text('utf-8'))
  studies.write(
      args.out, begun, (), None, dict(cores=os.cpu_count(), rows=rows)
  )


if __name__ == '__main__':
  main()
