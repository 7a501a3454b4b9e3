"""A few rounds of an experiment on a subset: does the loss fall?

  python -m experiments.large.steps vmask.table2:cf10 --rounds=20 --passes=2

This is for machines on which a whole training takes days. The undefended
federation of the experiment is trained, with its optimizer and batches, on the
first rows: --passes passes of --rounds rounds. The loss of every round, and its
mean over the first and the last quarter, are added to a JSON file.
"""
import argparse
from datetime import date
import importlib
import json
from pathlib import Path
import time
from typing import Any

import jax
import numpy as np

from vfljax import defenses, train
from vfljax.runner import errors, variants
from vfljax.runner.checking import checks
from vfljax.runner.cli import arguments
from vfljax.runner.config import Config
from vfljax.runner.experiment.plans import training_plan
from vfljax.runner.experiment.setting import split_samples
from vfljax.runner.machine import device

FOLDER = Path(__file__).parents[1]


def losses(config: Config, rounds: int, passes: int):
  """(loss of every round, seconds for all of them, seconds to compile)."""
  config.data.limit = 0 if config.data.name == 'texts' else (
      rounds * config.train.batch_size
  )
  config.train.epochs, config.train.measure_every = passes, 1
  config.listed, config.listed_attacks, config.seeds = (), (), 1
  config.auxiliary.samples = 0
  setting = checks.make(config, arguments.load_data(config.data))
  k_split, k_train = jax.random.split(jax.random.key(0))
  splits = split_samples(setting, k_split, setting.samples)
  plan = training_plan(setting, defenses.none(), splits)._replace(
      watch=lambda key, played: played.loss, digest=lambda row: row,
      validate=None, best='',
  )
  samples = jax.tree.map(
      lambda x: x[: rounds * plan.batch_size], splits.train
  )
  run = jax.jit(lambda key: train.start(key, plan, samples))(k_train)
  advance = lambda run, first: train.advance(
      plan, run, samples, first, 1, aligned=True
  )
  began = time.perf_counter()
  program = jax.jit(advance).lower(run, 0).compile()
  compiled = time.perf_counter() - began
  began, found = time.perf_counter(), []
  for i in range(passes):
    run, history = program(run, i)
    found.append(np.asarray(history['watch'])[0])
  return np.concatenate(found), time.perf_counter() - began, compiled


@errors.explained()
def main() -> None:
  parser = argparse.ArgumentParser(
      description='A few rounds of an experiment on a subset.'
  )
  parser.add_argument('experiment', help='like vmask.table2:cf10')
  parser.add_argument('--rounds', type=int, default=20, help='in a pass')
  parser.add_argument('--passes', type=int, default=2)
  parser.add_argument('--test_limit', type=int, default=64)
  parser.add_argument('--data_options', default='', help='for data.options')
  parser.add_argument('--model_options', default='', help='for model.options')
  parser.add_argument('--out', default='', help='JSON file to add to')
  args = parser.parse_args()
  device.set_up(1, '')
  name, variant = variants.split(args.experiment)
  if not (FOLDER / f'{name.replace(".", "/")}.py').is_file():
    parser.error(f'There is no experiments/{name}.py; say one as vmask.table2.')
  module = importlib.import_module(f'experiments.{name}')
  config: Config = module.get_config(*[variant] if variant else [])
  if config.data.name != 'texts':
    config.data.test_limit = args.test_limit
  config.data.options = args.data_options or config.data.options
  config.model.options = args.model_options or config.model.options
  found, seconds, compiled = losses(config, args.rounds, args.passes)
  quarter = max(len(found) // 4, 1)
  row: dict[str, Any] = dict(
      date=date.today().isoformat(), device=str(jax.devices()[0]),
      batch=config.train.batch_size, rounds=len(found),
      rows=args.rounds * config.train.batch_size,
      first_quarter=round(float(found[:quarter].mean()), 3),
      last_quarter=round(float(found[-quarter:].mean()), 3),
      losses=[round(float(x), 3) for x in found],
  )
  speed = len(found) * config.train.batch_size / seconds
  print(json.dumps({k: v for k, v in row.items() if k != 'losses'}, indent=1))
  print(f'{speed:.1f} rows a second, {compiled:.1f} s to compile')
  if args.out:
    place = Path(args.out)
    known = json.loads(place.read_text('utf-8')) if place.exists() else {}
    known[args.experiment] = row
    place.write_text(json.dumps(known, indent=1) + '\n', 'utf-8')


if __name__ == '__main__':
  main()
