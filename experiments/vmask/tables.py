"""The README's tables of Table II, and where all of its tables are found.

From VMask's own records, see older.py; percent, +- over trainings.
"""
from collections.abc import Sequence

from experiments import evidence
from experiments.evidence import Table
from experiments.claims import unsigned, word
from experiments.vmask import (
    claims, common, numbers, older, paper, tables_costs, tables_crypto,
    tables_runs, tables_studies,
)
from experiments.vmask.older import Row, says

VARIANTS = (*common.SELECTIONS.values(), 'VMask 50x5')
ORDER = (
    'none', *VARIANTS, *(entry.name for entry in common.compared()),
    'FedPass both',
)
COLUMNS = ('TM', 'TFM', 'M', 'FM')
_BASELINES = (
    ('alone', 'alone', 0), ('scratch', 'scratch', 1),
    ("party 1's raw half", 'local_model', None),
)


def _theirs(column: str, defense: str) -> str:
  """'main / attack' of the paper."""
  if defense not in paper.ROWS:
    return ''
  at = paper.ROWS.index(defense)
  return f'{paper.MAIN[column][at]:g} / {paper.ATTACK[column][at]:g}'


def _table2(columns: Sequence[str], of: str) -> str:
  found = {c: older.column(c, of) for c in columns}
  lines = []
  for shown, measure, number in _BASELINES:
    line = [shown]
    for c in columns:
      text = says(found[c]['none'], measure)
      pair = (text, '') if measure == 'alone' else ('', text)
      known = number is not None
      line += [*pair, f'{paper.BASELINES[c][number]:g}' if known else '']
    lines.append(line)
  for defense in ORDER:
    if not any(defense in rows for rows in found.values()):
      continue
    line = ['vanilla' if defense == 'none' else defense]
    for c in columns:
      one = found[c].get(defense, {})
      line += [says(one, 'main'), says(one, 'attack'),
               _theirs(c, defense) if one else '']
    lines.append(line)
  head = ['', *(x for c in columns for x in (f'{c} main', 'attack', 'paper'))]
  return evidence.markdown(head, lines) + _source(columns, of)


def gaps(vanilla: Row, masked: Row) -> list[str]:
  """What masking does to the main accuracy, and how far from scratch it is."""
  return [
      older.signed(older.less(masked['main'], vanilla['main']), 2),
      older.signed(older.less(masked['attack'], vanilla['scratch'])),
  ]


def _hidden(columns: Sequence[str], of: str) -> str:
  """What was hidden, and what that did."""
  lines = []
  for c in columns:
    found, count = older.column(c, of), older.layers(c)
    for variant in (v for v in VARIANTS if v in found):
      one = found[variant]
      lines.append([
          c, variant, *gaps(found['none'], one), says(one, 'mask_ratio', 0),
          ', '.join(f'{count * x / 100:.0f}' for x in one['masked']),
          '' if variant == 'VMask-ALLS' else says(one, 'simulated_leakage', 0),
      ])
  head = ('', '', 'main - vanilla', 'attack - scratch', 'mask ratio, %',
          'layers hidden at the end, by training', 'imagined attack')
  return evidence.markdown(head, lines) + _source(columns, of)


def _source(columns: Sequence[str], of: str) -> str:
  """What stands under a table: the columns' records."""
  return older.source(*(f'{of}_{c.lower()}' for c in columns))


def transcript() -> str:
  """The attacker of the paper, and who has kept its transcript."""
  lines = []
  for name, record in (('TM', 'tm'), ('TFM', 'tfm'), ('M (LeNet5)', 'm')):
    found = older.rows(f'transcript_{record}')['as in Table II']
    vanilla, masked = found['vanilla'], found['VMask']
    lines.append([name, *(says(*x) for x in (
        (vanilla, 'attack 1'), (vanilla, 'scratch 1'), (masked, 'attack 1'),
        (masked, 'recovered 1'),
    ))])
  head = ('', 'vanilla', 'scratch', 'VMask',
          'VMask, with what a kept transcript gives under T3')
  return evidence.markdown(head, lines) + older.source(
      'transcript_tm', 'transcript_tfm', 'transcript_m'
  )


def again() -> str:
  """The trainings of Table II, attacked with other draws."""
  lines = []
  for c, found in older.again().items():
    for what, rows in ((c, older.column(c)), (f'{c}, again', found)):
      none, masked = rows['none'], rows['VMask']
      lines.append([
          what, says(none, 'attack'), says(none, 'scratch'),
          says(masked, 'attack'),
      ])
  head = ('', 'vanilla', 'scratch', 'VMask')
  return evidence.markdown(head, lines) + older.source(
      *(f'transcript_{c.lower()}' for c in older.AGAIN)
  )


def _signed() -> list[claims.Claim]:
  """The claims all of whose records say a commit."""
  return [
      claim for claim in claims.CLAIMS if claim.records
      and not any(unsigned(older.PAPER, name) for name in claim.records)
  ]


def as_it_is() -> str:
  """The verdicts on them."""
  return evidence.markdown(('of the paper', 'claim', 'here', 'records'), [
      [claim.where, claim.text,
       word(older.PAPER, claim, claim.judge().held), ', '.join(
           f'[{name}](records/{name}.json)' for name in claim.records
       )] for claim in _signed()
  ])


def signed_verdicts() -> str:
  judged = [claim for claim in claims.CLAIMS if claim.records]
  return f'{len(_signed())} of {len(judged)}'


MLP3, LENET5 = COLUMNS[:2], COLUMNS[2:]
TABLES: dict[str, Table] = dict(
    table2_mlp3=lambda: _table2(MLP3, 'table2'),
    table2_lenet5=lambda: _table2(LENET5, 'table2'),
    table2_authors=lambda: _table2(COLUMNS, 'authors'),
    hidden_mlp3=lambda: _hidden(MLP3, 'table2'),
    hidden_lenet5=lambda: _hidden(LENET5, 'table2'),
    hidden_authors=lambda: _hidden(COLUMNS, 'authors'),
    transcript=transcript, again=again, as_it_is=as_it_is,
) | tables_runs.TABLES | tables_studies.TABLES | tables_costs.TABLES | (
    tables_crypto.TABLES
)
NUMBERS: dict[str, Table] = numbers.NUMBERS | tables_crypto.NUMBERS | dict(
    signed_verdicts=signed_verdicts,
)
