"""Verdicts on the claims of the five papers: CLAIMS.md.

experiments/<paper>/claims.py lists a paper's claims in CLAIMS and states in
RULE how they are decided, because papers print different things over different
numbers of seeds. Each verdict is computed from records;
`python -m experiments.tables` writes the table.
"""
from collections.abc import Callable, Sequence
import importlib
import json
from typing import Any, NamedTuple

from experiments import evidence

FILE = evidence.HERE / 'CLAIMS.md'
WORDS = {True: 'held', False: '**did not hold**', None: 'not testable here'}
UNSIGNED, ONE_SEED = ' °', ' ¹'


class Verdict(NamedTuple):
  """The verdict on a claim.

  Attributes:
    held: Whether it holds; `None` if nothing here can decide it.
    because: The figures that decide, or why there are none.
  """

  held: bool | None
  because: str


class Claim(NamedTuple):
  """A sentence of a paper.

  Attributes:
    where: Section, table or figure of the paper.
    text: The claim, in our words.
    judge: Returns its verdict, from the records.
    records: The names of those records.
  """

  where: str
  text: str
  judge: Callable[[], Verdict]
  records: Sequence[str] = ()


def untestable(where: str, text: str, why: str) -> Claim:
  """A claim that nothing here can decide."""
  return Claim(where, text, lambda: Verdict(None, why))


def of(paper: str) -> Sequence[Claim]:
  return importlib.import_module(f'experiments.{paper}.claims').CLAIMS


def rule(paper: str) -> str:
  """By what a paper's claims are decided."""
  return importlib.import_module(f'experiments.{paper}.claims').RULE


def unsigned(paper: str, name: str) -> bool:
  """Whether a record says no commit: `verify` cannot make it again."""
  record = _read(paper, name)
  return not (isinstance(record, dict) and record.get('code'))


def one_seed(paper: str, name: str) -> bool:
  """Whether a record is of one seed: nobody knows how much seeds differ."""
  record = _read(paper, name)
  seeds = record.get('seeds') if isinstance(record, dict) else None
  return seeds == 1 or isinstance(seeds, list) and len(seeds) == 1


def _read(paper: str, name: str) -> Any:
  file = evidence.HERE / paper / 'records' / f'{name}.json'
  return json.loads(file.read_text('utf-8'))


def word(paper: str, claim: Claim, held: bool | None) -> str:
  """The verdict, with the marks of what the records it rests on lack."""
  said = WORDS[held]
  if held is None and claim.records:  # There is a record, and it is not enough.
    said = 'not decided'
  marked = any(unsigned(paper, name) for name in claim.records)
  alone = held is not None and any(one_seed(paper, n) for n in claim.records)
  return said + ONE_SEED * alone + UNSIGNED * marked


def papers() -> list[str]:
  return [
      paper for paper in evidence.papers()
      if all(isinstance(claim, Claim) for claim in of(paper))
  ]


def decided(tables: str) -> int:
  """How many claims of some tables held or did not."""
  return sum(tables.count(f'| {WORDS[held]}') for held in (True, False))


def counts(tables: dict[str, str]) -> str:
  """How many of each paper's claims have which verdict, and of all papers'.

  Args:
    tables: {paper: its `table`}.
  """
  said = (*WORDS.values(), 'not decided', 'no record yet')
  rows = [
      [paper, *(made.count(f' | {word}') for word in said)]
      for paper, made in (tables | {'all': ''.join(tables.values())}).items()
  ]
  shown = [i for i in range(1, len(said) + 1) if any(row[i] for row in rows)]
  head = ('paper', *(said[i - 1].strip('*') for i in shown))
  return evidence.markdown(
      head, [[row[0], *(str(row[i]) for i in shown)] for row in rows]
  )


def text() -> str:
  """CLAIMS.md."""
  tables = {paper: table(paper, f'{paper}/') for paper in papers()}
  parts = [
      '# What became of the papers\' claims\n\n'
      'Written by `python -m experiments.tables` from the records; each '
      'paper\'s README has the tables and what differs from the paper. By what '
      'rule a verdict falls stands above each table, as papers and their '
      'records differ; no rule is corrected for how many verdicts there are '
      f'({decided("".join(tables.values()))} decided), so that a few may be '
      'chance. +- is the sample '
      'standard deviation over seeds. Of attacks in training the epoch counts '
      'in which they learn most, unless it says otherwise. After a record '
      'stand its seeds, and how many of its values came out when its command '
      'ran again (mostly one seed; within three of the record\'s deviations or '
      'half a percent, of one seed half a percent alone, see `verify.py`); '
      'what did not is of trainings that rounding changes. ¹: rests on a '
      'record of one seed, so that nothing says how far another would be off. '
      '°: rests on a record that says no commit, so that `verify.py` cannot '
      'run it again; VMask\'s are mostly older than the attack as it is now '
      '(its README, "Settings"). "Not decided": there are records, which do '
      'not tell it.\n\n' + counts(tables),
  ]
  for paper, made in tables.items():
    parts.append(
        f'## [{paper}]({paper}/README.md)\n\n{rule(paper)}\n\n{made}'
    )
  return '\n\n'.join(parts) + '\n'


def table(paper: str, place: str = '') -> str:
  """What became of a paper's claims.

  Args:
    place: The paper's folder, from where the table stands.
  """
  rows = []
  for claim in of(paper):
    missing = [n for n in claim.records if not evidence.exists(paper, n)]
    if missing:
      rows.append([
          claim.where, claim.text, 'no record yet', '', ', '.join(missing)
      ])
      continue
    found = claim.judge()
    links = ', '.join(
        f'[{name}]({place}records/{name}.json)'
        + UNSIGNED * unsigned(paper, name) + evidence.remark(paper, name)
        for name in claim.records
    )
    rows.append([
        claim.where, claim.text, word(paper, claim, found.held),
        found.because, links,
    ])
  head = ('of the paper', 'claim', 'here', 'what decides', 'records')
  return evidence.markdown(head, rows)
