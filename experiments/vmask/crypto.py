"""VMask, Table III: the cryptographic rows, counted, timed and extrapolated.

  python -m experiments.vmask.crypto mnist.npz \
      --out=experiments/vmask/records/crypto.json

The number of operations in a batch follows from vfljax.he's formulas, which
tests compare with real mini-batches. The processor time of each operation is
measured, in microseconds, with keys of 1024 bits, in turns with rounds of plain
training. So a ratio is of one machine, one hour, and one core to one core. An
epoch is 469 batches of 128; it is computed, not run.

The paper gives no widths. `OURS` are those of our MLP3, `AUTHORS` those of the
authors' code (except the top's 64, which are ours). `TEN` has a cut layer and a
top as wide as there are classes, near what the paper's seconds for ACML and SFA
would take. `acml`'s layer and `spnn`'s last one are the top's first layer.
"""
import argparse
from collections.abc import Mapping
import importlib.metadata
import json
import os
from typing import Any, NamedTuple

import jax

from experiments import studies
from experiments.bench import he as bench
from experiments.bench import records
from experiments.vmask import common, study, table3
from vfljax.he import ckks
from vfljax.he.acml import cost as of_acml
from vfljax.he.blindfl import cost as of_blindfl
from vfljax.he.keys import PublicKey
from vfljax.he.packing import Sums
from vfljax.he.party import Cost
from vfljax.he.sfa import cost as of_sfa
from vfljax.he.spnn import cost as of_spnn
from vfljax.mpc import wire
from vfljax.runner import errors
from vfljax.runner.config import Entry
from vfljax.runner.experiment.plans import rounds_an_epoch
from vfljax.runner.machine import device

BATCH, ROUNDS = 128, table3.EPOCH
SAMPLE_KEY = (1 << 1023) + 1  # Formulas ask a key for its length alone.
# Seconds an epoch and in all, MLP3 on TM, Table III.
PAPER = {
    'vanilla': (1.9, 89), 'ACML': (2.6e3, 1.2e5), 'SPNN': (4.5e2, 2.1e4),
    'SFA': (1.6e3, 7.5e4), 'BlindFL': (2.6e6, 1.2e8),
}
TOTALS = {
    'NG': 96, 'CG': 96, 'DG': 96, 'FedPass': 120, 'LabelDP': 230, 'KDk': 100,
    'dCor': 4.1e4, 'MID': 130, 'VMask-RS': 330, 'VMask-AS': 290,
    'VMask-ALLS': 440, 'VMask': 290, 'none': 89,
}


class Widths(NamedTuple):
  """Of MLP3 and what is on it."""

  inputs: int  # Of each party.
  first: int  # Of the first layer.
  embedding: int
  top: int  # Of the top's hidden layer.


OURS = Widths(392, 512, 64, 64)
AUTHORS = Widths(392, 256, 128, 64)
TEN = Widths(392, 256, 10, 10)
# The first layer of LeNet5 on half images: 28 x 14 pixels, 6 channels.
LENET5 = Widths(392, 28 * 14 * 6, 64, 64)
WIDTHS = dict(ours=OURS, authors=AUTHORS, ten=TEN, lenet5=LENET5)


def costs(w: Widths, batch: int = BATCH) -> dict[str, Cost]:
  """What a batch takes, by row of the table."""
  key = PublicKey(SAMPLE_KEY)
  single, packed = (Sums(key, 2, p) for p in (False, True))
  masked = [Sums(key, 2, p, masked=True) for p in (False, True)]
  blind = {'BlindFL': of_blindfl(batch, w.inputs, w.inputs, w.first)}
  return {
      'ACML': of_acml(batch, w.embedding, w.top),
      'SPNN': of_spnn(single, batch, w.first, w.top),
      'SPNN, packed': of_spnn(packed, batch, w.first, w.top),
      'SPNN, CKKS': _of_ckks(batch, w),
      'SFA': of_sfa(masked[0], batch, w.embedding),
      'SFA, packed': of_sfa(masked[1], batch, w.embedding),
  } | (blind if w != LENET5 else {})  # A convolution is another product.


def _of_ckks(batch: int, w: Widths) -> Cost:
  """SPNN's, in vectors of CKKS."""
  single = of_spnn(Sums(PublicKey(SAMPLE_KEY)), batch, w.first, w.top)
  count = ckks.count(2, batch * w.first)
  plain = single.traffic.bytes - 2 * batch * w.first * 256
  return Cost(count, single.traffic._replace(
      bytes=plain + count.encryptions * ckks.BYTES
  ))


# What each operation is, in the record: phe's floats as VMask has it, and ours.
PHE = dict(encryptions='phe encrypt', additions='phe add, floats',
           multiplications='phe multiply, float', decryptions='phe decrypt')
INTEGERS = dict(encryptions='ours encrypt', additions='ours add',
                multiplications='ours multiply', decryptions='ours decrypt')
CKKS = dict(encryptions='CKKS 4096 encrypt', additions='CKKS 4096 add',
            decryptions='CKKS 4096 decrypt')


def took(record: Mapping[str, Any], name: str) -> float:
  """Microseconds of an operation. A product is timed with its addition."""
  found = record['microseconds']
  if name == 'ours multiply':
    return max(found['ours multiply and add'] - found['ours add'], 0.0)
  return found[name]


def seconds(
    record: Mapping[str, Any], row: str, widths: str = 'ours',
    how: str = 'ours',
) -> float:
  """An epoch's computation on one core, all parties one after the other.

  Args:
    record: What `main` measured.
    row: A row of its costs.
    widths: The name of the widths.
    how: 'phe' or 'ours'; there is only one implementation of CKKS.
  """
  counts = record['costs'][widths][row]
  names = CKKS if 'CKKS' in row else PHE if how == 'phe' else INTEGERS
  batch = sum(
      counts[kind] * took(record, name) for kind, name in names.items()
  )
  return 1e-6 * batch * record['rounds']


def network(
    record: Mapping[str, Any], row: str, widths: str = 'ours'
) -> float:
  """An epoch's messages on the paper's network, seconds."""
  counts, net = record['costs'][widths][row], wire.Network()
  batch = 8 * counts['bytes'] / net.bandwidth + counts['flights'] * net.latency
  return record['rounds'] * batch


def vanilla(record: Mapping[str, Any]) -> float:
  """An epoch of plain training in the same run, seconds on one core."""
  return 1e-6 * took(record, 'vanilla') * record['rounds']


def papers(system: str) -> float:
  """The paper's ratio to vanilla."""
  return PAPER[system][0] / PAPER['vanilla'][0]


def rounded(value: float) -> str:
  """Two digits: 0.078, 3.1, 47, 1300, 4.1e+06."""
  short = float(f'{value:.2g}')
  return f'{short:g}' if short < 1e5 else f'{short:.1e}'


def shown(record: Mapping[str, Any]) -> str:
  """MLP3's ratios beside the paper's, a line for each row and widths."""
  lines = []
  for widths in (name for name in record['costs'] if name != 'lenet5'):
    for row in record['costs'][widths]:
      ratios = [
          rounded(seconds(record, row, widths, how) / vanilla(record))
          for how in ('phe', 'ours')
      ]
      paper = rounded(papers(row.split(',')[0]))
      lines.append(f"{widths:8} {row:13} ratio to vanilla {ratios[0]} (phe), "
                   f'{ratios[1]} (ours); paper {paper}')
  return '\n'.join(lines)


def plain(path: str, rounds: int) -> tuple[Any, int]:
  """(a call that plays rounds of plain training, how many)."""
  config = common.config('table3', (), 'mlp3', 'mnist')
  config.data.path, config.alone = path, False
  config.data.limit = rounds * BATCH + config.auxiliary.samples
  setting = study.prepare(config)
  made = table3.programs(setting, Entry('none'))
  return lambda: jax.block_until_ready(made.rounds()), rounds_an_epoch(setting)


@errors.explained()
def main(argv: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=str(__doc__).split('\n')[0])
  parser.add_argument('path')
  parser.add_argument('--turns', type=int, default=25)
  parser.add_argument('--rounds', type=int, default=20)
  parser.add_argument('--out', default='', type=errors.new_file)
  args = parser.parse_args(argv)
  begun = studies.begin('experiments.vmask.crypto', argv)
  if hasattr(os, 'sched_setaffinity'):  # One core, vanilla training, too.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
  device.set_up(1, '~/.cache/vfljax')
  calls: dict[str, bench.Call] = dict(
      vanilla=plain(args.path, args.rounds)
  )
  calls |= bench.of_phe() | bench.of_ours() | bench.of_ckks(large=False)
  record: dict[str, Any] = dict(
      machine=records.machine(), versions=records.versions() | {
          name: importlib.metadata.version(name)
          for name in ('phe', 'gmpy2', 'tenseal')
      },
      path=args.path, turns=args.turns, batch=BATCH, rounds=ROUNDS,
      microseconds=bench.microseconds(calls, args.turns),
      costs={
          name: {
              row: cost.count._asdict() | cost.traffic._asdict()
              for row, cost in costs(widths).items()
          } for name, widths in WIDTHS.items()
      },
  )
  record['machine']['load_after'] = list(os.getloadavg())
  print(json.dumps(record, indent=1) + '\n' + shown(record))
  studies.write(args.out, begun, (), None, record)


if __name__ == '__main__':
  main()
