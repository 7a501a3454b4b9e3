"""GAFM, Table 10's second row and Figure 7: Delta from a tenth of Spambase.

  python -m experiments.gafm.choose_delta spambase.data

This is the rule of appendix D.3, `vfljax.tuning.least_ratio`: 5 random tenths,
300 epochs (of one batch), and the lowest mean of leak AUC over training AUC.
With --share=1 it gives Table 10's first row. `pictures.py` charts the ratios.
"""
import argparse
from collections.abc import Sequence
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import studies
from experiments.gafm import common
from experiments.gafm.ablations import DELTAS
from vfljax import tuning
from vfljax.data import scale
from vfljax.defenses.gafm import gafm
from vfljax.runner import errors
from vfljax.runner.checking import checks
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.machine import device


@errors.explained()
def main(argv: Sequence[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description="GAFM's rule for Delta.")
  parser.add_argument('path', help='spambase.data')
  parser.add_argument(
      '--share', type=float, default=0.1, help='share of the rows to train on'
  )
  parser.add_argument(
      '--repeats', type=int, default=5, help='random choices of these rows'
  )
  parser.add_argument('--epochs', type=int, default=300)
  parser.add_argument(
      '--out', default='', type=errors.new_file, help='JSON file'
  )
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.gafm.choose_delta', argv)
  device.set_up(0, '~/.cache/vfljax')
  config = common.spambase('choose_delta', [], path=args.path)
  table = load_data(config.data)
  setting = checks.make(config, table)
  x = setting.samples.features[1]
  stats = scale.fit(x, jnp.ones(len(x), bool))
  data = setting.samples._replace(features=(None, scale.transform(x, stats)))
  choice = tuning.least_ratio(
      jax.random.key(0), gafm, DELTAS, setting.vfl,
      (optax.adam(config.train.learning_rate),) * 2, data,
      setting.in_training, tuning.Trial(
          args.share, args.repeats, args.epochs, config.train.batch_size
      ),
  )
  found = dict(
      delta=choice.strength, ratios=choice.ratios, leak=choice.leak.mean(1),
      auc=choice.auc.mean(1), flipped=(choice.auc < 0.5).mean(1),
  )
  one = {name: [_rounded(values)] for name, values in found.items()}
  print(json.dumps(one, indent=1))
  about = dict(share=args.share, repeats=args.repeats, deltas=DELTAS)
  studies.write(args.out, begun, (0,), table, about, **one)


def _rounded(values: np.typing.ArrayLike) -> list:
  """Nested lists of numbers with five digits."""
  return np.asarray(values, np.float64).round(5).tolist()


if __name__ == '__main__':
  main()
