"""What decides VMask's claims of transcripts and of time."""
import math

from experiments.claims import Verdict
from experiments.vmask import (
    crypto, older, tables_costs, tables_crypto,
)

ADAPTIVE = ('adaptive', 'adaptive_mlp3_later', 'adaptive_lenet5')
VARIANTS = ('VMask', 'VMask-AS', 'VMask-ALLS')


def transcript_is_no_use() -> Verdict:
  """Who keeps it regains under half of what masking takes away (T3)."""
  found = {
      f'{record} {shown}': tables_costs.regained(record, 'T3', name)
      for record in ADAPTIVE
      for name, shown in (('tracking', 'tracking'), ('most', 'solving'))
  }
  known = [x for x in found.values() if math.isfinite(x)]
  held = None if len(known) < len(found) else True
  return Verdict(
      False if any(x >= 50 for x in known) else held,
      'regained: ' + ', '.join(f'{k} {x:.0f} %' for k, x in found.items()),
  )


def costs() -> Verdict:
  """With the modelled network, one layer and two at most the paper's ratio of
  VMask, and all at most that of VMask-ALLS.
  """
  models = older.bench('vmask')['runs']['default']['models']
  found, kept = [], []
  for model, measured in models.items():
    rows = measured['seconds_an_epoch']
    some, whole = (tables_costs.theirs(model, v) for v in VARIANTS[::2])
    ratios = [rows[s]['ratio_with_lan'] for s in ('one', 'two', 'all')]
    kept += [
        None if math.isnan(x) else x <= most
        for x, most in zip(ratios, (some, some, whole))
    ]
    found.append(f'{model} {", ".join(f"{x:.1f}" for x in ratios)} '
                 f'(paper {some:.1f}, all {whole:.1f})')
  return Verdict(
      False if False in kept else None if None in kept or not kept else True,
      'one, two, all layers: ' + '; '.join(found)
      + ', [bench/vmask.json](bench/vmask.json)'
  )


def cheaper() -> Verdict:
  """With all layers in shares and the network, its ratio to vanilla is below
  that of every cryptographic row.
  """
  models = older.bench('vmask')['runs']['default']['models']
  ours = models['mlp3']['seconds_an_epoch']['all']['ratio_with_lan']
  rows = {
      row: tables_crypto.whole_ratio(row)
      for row in older.record('crypto')['costs']['ours']
  }
  known = [x for x in (ours, *rows.values()) if math.isfinite(x)]
  whole = rows and len(known) == 1 + len(rows)
  return Verdict(
      False if any(x <= ours for x in rows.values()) else True if whole
      else None,
      f'{ours:.0f}; ' + ', '.join(
          f'{row} {crypto.rounded(x)}' for row, x in rows.items()
      ),
  )


def faster_than_variants() -> Verdict:
  """VMask's epoch takes less than VMask-AS's and VMask-ALLS's, each trained in
  shares with the layers that it hides; no record has that.
  """
  shown = []
  for model, name in (('mlp3', 'MLP3'), ('lenet5', 'LeNet5')):
    rows = older.record(f'table3_{model}')['rows']
    shown.append(f'{name} ' + ', '.join(
        f"{rows[v]['epoch']:.2f}" for v in VARIANTS
    ))
  column = older.column('TM')
  ratios = ', '.join(
      f"{older.mean(column[v]['mask_ratio']):.0f}" for v in VARIANTS
  )
  models = older.bench('vmask')['runs']['default']['models']
  shares = models['mlp3']['seconds_an_epoch']
  layers = ', '.join(
      f"{shares[s]['ratio_with_lan']:.1f}" for s in ('one', 'two', 'all')
  )
  return Verdict(
      None, f'seconds an epoch of {", ".join(VARIANTS)}, in plain, where '
      f'hiding costs nothing: {"; ".join(shown)}. What speaks for it: they '
      f'hide {ratios} % of the layers (TM), and one, two and all in shares '
      f'take MLP3 {layers} times as long '
      '([bench/vmask.json](bench/vmask.json))',
  )
