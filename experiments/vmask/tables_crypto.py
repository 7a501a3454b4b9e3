"""The README's tables of the cryptographic baselines."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments import evidence
from experiments.evidence import Table
from experiments.vmask import crypto, older, table3
from experiments.vmask.crypto import papers, rounded
from vfljax.he.hardy import cost as of_hardy

SYSTEMS = ('ACML', 'SPNN', 'SFA', 'BlindFL')
THRESHOLD = 0.96  # Main accuracy that counts as trained; ours ends near 97 %.
TRAINED = 19360 / 60000  # Of fig5_tm's epoch: 20000 images less auxiliary ones.
SHOWN = dict(
    ours='512-256-64, top 64', authors='256-128-128, top 64',
    ten='256, cut layer 10, top 10',
)


def record() -> dict[str, Any]:
  return older.record('crypto')


def seconds(row: str, widths: str = 'ours', how: str = 'ours') -> float:
  """An epoch's computation, see `crypto.seconds`."""
  return crypto.seconds(record(), row, widths, how)


def network(row: str, widths: str = 'ours') -> float:
  return crypto.network(record(), row, widths)


def vanilla() -> float:
  return crypto.vanilla(record())


def ratio(row: str, widths: str = 'ours', how: str = 'phe') -> float:
  """To vanilla, computation alone."""
  return seconds(row, widths, how) / vanilla()


def plain_lan() -> float:
  """An epoch's embeddings and gradients on the paper's network, seconds."""
  models = older.bench('vmask')['runs']['default']['models']
  return models['mlp3']['seconds_an_epoch']['plain']['lan']


def whole_ratio(row: str, how: str = 'ours') -> float:
  """To vanilla, both with the network."""
  each = seconds(row, 'ours', how) + network(row)
  return each / (vanilla() + plain_lan())


def counted() -> str:
  """Operations of a batch, and what an epoch of them takes."""
  lines = []
  for widths, shown in SHOWN.items():
    for system in SYSTEMS:
      counts = record()['costs'][widths][system]
      lines.append([
          system, shown, *(f'{counts[kind]:,}' for kind in crypto.PHE),
          f"{counts['bytes'] / 1e6:.1f}", str(counts['flights']),
          rounded(network(system, widths)),
          *(rounded(x) for how in ('phe', 'ours') for x in (
              seconds(system, widths, how), ratio(system, widths, how)
          )),
          rounded(crypto.PAPER[system][0]), rounded(papers(system)),
      ])
  head = ('', 'MLP3', 'encryptions', 'additions', 'multiplications',
          'decryptions', 'MB', 'flights', 'LAN, s/epoch',
          "phe's floats, s/epoch", 'ratio', 'our integers, s/epoch', 'ratio',
          'paper, s/epoch', 'ratio')
  return evidence.markdown(head, lines) + _from_run()


def packing() -> str:
  """SPNN and SFA with several numbers a ciphertext."""
  lines = []
  for row in ('SPNN', 'SPNN, packed', 'SPNN, CKKS', 'SFA', 'SFA, packed'):
    counts, system = record()['costs']['ours'][row], row.split(',')[0]
    lines.append([
        row, f"{counts['encryptions']:,}", f"{counts['bytes'] / 1e6:.2f}",
        rounded(seconds(row)), rounded(network(row)),
        rounded(ratio(row, how='ours')), rounded(papers(system)),
        rounded(seconds(system) / seconds(row)),
    ])
  head = ('', 'encryptions a batch', 'MB a batch', 's/epoch', 'LAN, s/epoch',
          'ratio to vanilla', "paper's ratio", 'times faster than unpacked')
  return evidence.markdown(head, lines) + _from_run()


def operations() -> str:
  """What an operation takes, by library."""
  found = older.bench('he')
  longer = found['microseconds_2048']
  lines = [
      [name, rounded(value),
       rounded(found['older'][name]) if name in found['older'] else '',
       rounded(longer[name]) if name in longer else '']
      for name, value in found['microseconds'].items()
  ]
  head = ('microseconds of one core', 'here', 'a first study, quieter',
          'here, 2048 bits')
  machine = found['machine']
  return evidence.markdown(head, lines) + (
      f"\n\nFrom [`bench/he.json`](../bench/he.json): {machine['cpu']}, load "
      f"{machine['load'][0]:.1f}, {found['date']}."
  )


def epochs(curve: str) -> float | None:
  """Epochs of fig5_tm until the threshold, mean of the trainings."""
  found = older.record('fig5_tm')['curves'][curve]['main']
  first = [next((i + 1 for i, x in enumerate(run) if x >= THRESHOLD), None)
           for run in found]
  known = [x for x in first if x is not None]
  return float(np.mean(known)) if len(known) == len(first) else None


def _total(each: float, curve: str) -> str:
  """Seconds until the threshold, of an epoch's."""
  count = epochs(curve)
  return '' if count is None else rounded(count * TRAINED * each)


def everything() -> str:
  """Table III in one: what learns in the clear, in shares, in ciphertexts."""
  found = older.record('table3_mlp3')['rows']
  shares = older.bench('vmask')['runs']['default']['models']['mlp3']
  shared = shares['seconds_an_epoch']
  lan = plain_lan()
  lines = []
  for name, one in found.items():
    base = found['none']['epoch'] + lan
    theirs = table3.PAPER['mlp3'][name]
    lines.append([
        'vanilla' if name == 'none' else name, 'plain',
        rounded(one['epoch'] + lan), rounded((one['epoch'] + lan) / base),
        rounded(theirs / 1.9), _total(one['epoch'] + lan, name),
        rounded(crypto.TOTALS[name]), leak(name),
    ])
  for which in ('one', 'two', 'all'):
    plain = shared['plain']['compute'] + lan
    each = shared[which]['compute'] + shared[which]['lan']
    lines.append([
        f'VMask, {which} in shares', 'shares', rounded(each),
        rounded(each / plain), rounded(papers_vmask()), _total(each, 'VMask'),
        rounded(crypto.TOTALS['VMask']), leak('VMask'),
    ])
  for row, how in (
      *((s, 'phe') for s in SYSTEMS), *((s, 'ours') for s in SYSTEMS),
      ('SPNN, packed', 'ours'), ('SPNN, CKKS', 'ours'), ('SFA, packed', 'ours'),
  ):
    each = seconds(row, 'ours', how) + network(row)
    system = row.split(',')[0]
    lines.append([
        row, "phe's floats" if how == 'phe' else 'ours', rounded(each),
        rounded(whole_ratio(row, how)), rounded(papers(system)),
        _total(each, 'none'), rounded(crypto.PAPER[system][1]), leak(system),
    ])
  head = ('', 'how', 's/epoch', 'ratio', "paper's ratio", 'total, s',
          "paper's total, s", 'attack, %')
  return evidence.markdown(head, lines) + older.source(
      'table3_mlp3', 'crypto', 'fig5_tm', 'table2_tm', 'table1_mlp3_known4'
  ) + ' Shares: [`bench/vmask.json`](../bench/vmask.json).'


def papers_vmask() -> float:
  return table3.PAPER['mlp3']['VMask'] / table3.PAPER['mlp3']['none']


# Layers whose weights the passive party has not in the clear.
HIDDEN = {'ACML': 'none', 'SFA': 'none', 'SPNN': '2,3', 'BlindFL': '1,2,3'}


def leak(name: str) -> str:
  """Model completion with 4 labels a class, TM."""
  if name in HIDDEN:
    return evidence.spread(older.sets('table1_mlp3_known4')[HIDDEN[name]])
  return older.says(older.column('TM').get(name, {}), 'attack')


def leaks() -> str:
  """Attacks in training, on what parties see by design."""
  found = older.record('crypto_leaks')['rows']
  lines = []
  for who, attacks in found.items():
    for attack, one in attacks.items():
      exact = one.get('exact')
      lines.append([
          who, attack, *(evidence.spread([100 * x for x in one[when]])
                         for when in ('last', 'best')),
          '' if exact is None else evidence.spread([100 * x for x in exact]),
      ])
  lines.append(['blindfl, passive', 'none: uniform numbers only', '', '', ''])
  head = ('who', 'attack', 'leak AUC, last epoch', 'best epoch',
          'rounds solved exactly, %')
  return evidence.markdown(head, lines) + older.source('crypto_leaks')


def _from_run() -> str:
  """Where the times are from."""
  run = record()
  machine = run['machine']
  return older.source('crypto') + (
      f" {machine['cpu']}, {machine['cores']} cores, load "
      f"{machine['load'][0]:.1f} to {machine['load_after'][0]:.1f}, "
      f"{run['date']}: seconds of one core's time, vanilla {vanilla():.2f} an "
      'epoch.'
  )


def off(system: str, widths: str = 'ours', how: str = 'phe') -> Table:
  """How many times our ratio is the paper's."""
  return lambda: rounded(ratio(system, widths, how) / papers(system))


CREDIT = (30000, 13, 10)  # Default Credit: rows, columns of each party.


def hardy(how: str) -> Table:
  """HardyLR's epoch on Default Credit's shape, seconds of one core."""
  def made() -> str:
    rows, passive, active = CREDIT
    count = of_hardy(crypto.BATCH, passive, active).count
    names = crypto.PHE if how == 'phe' else crypto.INTEGERS
    batch = sum(
        getattr(count, kind) * crypto.took(record(), name)
        for kind, name in names.items()
    )
    return rounded(1e-6 * batch * rows / crypto.BATCH)
  return made


def _each(names: Sequence[str], make: Any) -> dict[str, Table]:
  return {name.lower().replace(', ', '_'): make(name) for name in names}


TABLES: dict[str, Table] = dict(
    crypto=counted, packing=packing, operations=operations,
    everything=everything, leaks=leaks,
)
NUMBERS: dict[str, Table] = {
    **{f'off_{k}': v for k, v in _each(SYSTEMS, off).items()},
    **{f'off_ten_{k}': v for k, v in _each(
        SYSTEMS, lambda s: off(s, 'ten')).items()},
    'lenet5_spnn': lambda: rounded(seconds('SPNN', 'lenet5', 'phe')),
    'hardy_phe': hardy('phe'), 'hardy_ours': hardy('ours'),
    'off_ours_blindfl': off('BlindFL', how='ours'),
    'crypto_error': lambda: rounded(
        max(one['error'] for one in older.bench('he')['batches'].values())
    ),
    'crypto_slowest': lambda: rounded(
        max(one['seconds'] for one in older.bench('he')['batches'].values())
    ),
    'crypto_vanilla': lambda: f'{vanilla():.2f}',
    'crypto_threshold': lambda: f'{100 * THRESHOLD:.0f}',
    'off_spnn_packed': lambda: rounded(
        ratio('SPNN, packed', how='ours') / papers('SPNN')
    ),
    'off_spnn_ckks': lambda: rounded(
        ratio('SPNN, CKKS', how='ours') / papers('SPNN')
    ),
    'off_sfa_packed': lambda: rounded(
        ratio('SFA, packed', how='ours') / papers('SFA')
    ),
}
