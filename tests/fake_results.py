"""A made-up but realistic work directory, to test the report and to look at.

Ten seeds, six defenses at four strengths, five attacks and the attackers'
baselines. `python -m tests.fake_results DIRECTORY` writes one and its report.
"""
import sys

import numpy as np

from vfljax.report import writing
from vfljax.runner.workdir import store
from vfljax.runner.workdir.parts import Finished

DEFENSES = {
    # Strengths; the share of the leakage that is left; utility loss in points.
    'none': ([None], [1.0], [0.0]),
    'iso': ([2.75, 5.0, 10.0, 25.0], [0.45, 0.16, 0.08, 0.03],
            [0.1, 0.6, 2.2, 7.5]),
    'marvell': ([2.0, 4.0, 8.0, 12.0], [0.5, 0.3, 0.17, 0.12],
                [0.2, 0.6, 1.8, 3.6]),
    'max_norm': ([None], [0.6], [0.05]),
    'dp_laplace': ([1e-4, 1e-3, 1e-2, 0.1], [1.0, 0.9, 0.4, 0.05],
                   [0.0, 0.2, 3.0, 28.0]),
    'gradient_compression': ([0.75, 0.5, 0.25, 0.1], [1.0, 0.95, 0.85, 0.7],
                             [0.1, 0.4, 1.3, 5.0]),
    'discrete_sgd': ([18.0, 12.0, 6.0, 4.0], [0.95, 0.9, 0.8, 0.55],
                     [0.2, 0.4, 1.0, 2.7]),
}
# Leak AUC without a defense; model completion's is an accuracy.
ATTACKS = {
    'norm_scoring': 0.88, 'direction_scoring': 0.995, 'mean_scoring': 0.999,
    'median_scoring': 0.97,
}
EPOCHS = 30


def config():
  """A configuration with a bit of everything."""
  return {
      'experiment': 'quickstart', 'seeds': 10, 'defenses': '',
      'data': {'name': 'breast_cancer', 'path': '', 'parties': 2},
      'model': {'algorithm': 'vhnn', 'bottom': [64, 32], 'top': [32]},
      'train': {'epochs': EPOCHS, 'batch_size': 64, 'learning_rate': 0.001},
      'listed': [{'defense': 'iso', 'strengths': [2.75, 5.0]}],
  }


def make(path, seeds=10, defenses=tuple(DEFENSES), dataset='breast_cancer'):
  """Writes the work directory; the same bytes each time."""
  units = ['alone'] + [
      f'{d}/{i}' for d in defenses for i in range(len(DEFENSES[d][0]))
  ]
  work = store.open_workdir(path, config(), units)
  finished = [Finished('alone', [
      row('none', None, None, seed, f'alone_{metric}', 'test', value + noise)
      for seed, noise in enumerate(_noise('alone', seeds, 0.004))
      for metric, value in (('auc', 0.962), ('accuracy', 0.915))
  ], timing(1))]
  for d in defenses:
    for i, (s, left, loss) in enumerate(zip(*DEFENSES[d])):
      rows, curves = _measured(d, s, left, loss, seeds)
      rows = [r | {'dataset': dataset} for r in rows]
      finished.append(Finished(f'{d}/{i}', rows, timing(i), curves))
  work.save_all(finished)  # One by one all that is there would be read again.
  return work


def row(defense, strength, attack, seed, metric, split, value):
  """One line of results.jsonl."""
  return {
      'experiment': 'quickstart', 'dataset': 'breast_cancer',
      'algorithm': 'vhnn', 'defense': defense, 'strength': strength,
      'attack': attack, 'seed': seed, 'metric': metric, 'split': split,
      'value': value,
  }


def timing(i):
  """What `run` would say."""
  return {
      'compile_seconds': 2.5 if i == 0 else 0.0, 'run_seconds': 3.25 + i,
      'rounds_per_second': 5312.0 - 100 * i, 'seeds': 10, 'device': '2 x cpu',
      'peak_memory_bytes': 412 * 2**20,
  }


def _measured(defense, strength, left, loss, seeds):
  name = f'{defense}{strength}'
  rows, curves = [], {}

  def add(attack, metric, split, values):
    rows.extend(
        row(defense, strength, attack, seed, metric, split, float(value))
        for seed, value in enumerate(values)
    )

  easy = _noise('split', seeds, 0.003)  # What all defenses share of a seed.
  auc = 0.991 - loss / 100 + easy + _noise(name, seeds, 0.0005 + loss / 1500)
  add(None, 'auc', 'test', auc)
  add(None, 'accuracy', 'test', auc - 0.03)
  add(None, 'loss', 'test', 0.08 + loss / 50 + easy)
  for attack, leak in ATTACKS.items():
    noise = _noise(name + attack, seeds, 0.01)
    raw = np.clip(0.5 + (leak - 0.5) * left + noise, 0.0, 1.0)
    if attack == 'norm_scoring' and defense == 'max_norm':
      raw = 1 - np.clip(0.53 + noise, 0.0, 1.0)
    folded = np.maximum(raw, 1 - raw)
    add(attack, 'leak_auc_raw', 'train', raw)
    add(attack, 'leak_auc', 'train', folded)
    if attack == 'direction_scoring':
      add(attack, 'accuracy', 'train', folded - 0.02)
    fading = np.linspace(0.06, 0.0, EPOCHS)
    wiggle = _noise(name + attack + 'e', seeds * EPOCHS, 0.01)
    curve = folded[:, None] + fading + wiggle.reshape(seeds, EPOCHS)
    curve[:, 1::2] = np.nan
    curves[f'{attack}/leak_auc'] = np.clip(curve, 0.5, 1.0)
  local = 0.905 + _noise('local', seeds, 0.02)
  gain = 0.035 * (0.6 + 0.4 * left) + _noise(name + 'mc', seeds, 0.01)
  for attack, last in (('model_completion', local + gain),
                       ('local_model', local), ('scratch', local - 0.02)):
    for metric, shift in (('auc', 0.02), ('accuracy', -0.03)):
      add(attack, f'{metric}_last', 'test', last + shift)
      add(attack, f'{metric}_best', 'test', last + shift + 0.01)
  return rows, curves


def _noise(name, size, scale):
  seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
  return np.random.default_rng(seed).normal(0.0, scale, size)


PAPER = [
    {'defense': 'none', 'metric': 'auc', 'mean': 0.95, 'std': None,
     'source': 'GAFM Table 2'},
    {'defense': 'none', 'attack': 'norm_scoring', 'metric': 'leak_auc',
     'mean': 0.85, 'std': 0.07, 'source': 'GAFM Table 2'},
    {'defense': 'none', 'attack': 'mean_scoring', 'metric': 'leak_auc',
     'mean': 1.0, 'std': 0.0, 'source': 'GAFM Table 2'},
    {'defense': 'marvell', 'attack': 'median_scoring', 'metric': 'leak_auc',
     'mean': 0.70, 'std': 0.01, 'source': 'GAFM Table 2'},
]


if __name__ == '__main__':
  make(sys.argv[1])
  print(writing.write(sys.argv[1], PAPER))
