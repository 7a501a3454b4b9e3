"""The claims of the five papers and what became of them: CLAIMS.md.

experiments/<paper>/claims.py has them in CLAIMS. Each verdict is computed from
records; `python -m experiments.tables` writes the table.
"""
from collections.abc import Callable, Sequence
import importlib
import json
from typing import NamedTuple

from experiments import evidence

FILE = evidence.HERE / 'CLAIMS.md'
WORDS = {True: 'held', False: '**did not hold**', None: 'not testable here'}
UNSIGNED = ' °'


class Verdict(NamedTuple):
  """What decides a claim.

  Attributes:
    held: `None` if nothing here can decide it.
    because: The figures, or why there are none.
  """

  held: bool | None
  because: str


class Claim(NamedTuple):
  """A sentence of a paper.

  Attributes:
    where: Section, table or figure of the paper.
    text: The claim, in our words.
    judge: Decides it from the records.
    records: Their names.
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


def unsigned(paper: str, name: str) -> bool:
  """Whether a record says no commit: `verify` cannot make it again."""
  file = evidence.HERE / paper / 'records' / f'{name}.json'
  record = json.loads(file.read_text('utf-8'))
  return not (isinstance(record, dict) and record.get('code'))


def word(paper: str, claim: Claim, held: bool | None) -> str:
  """The verdict, with the mark of what rests on a record without a commit."""
  said = WORDS[held]
  if held is None and claim.records:  # There is a record, and it is not enough.
    said = 'not decided'
  marked = any(unsigned(paper, name) for name in claim.records)
  return said + UNSIGNED * marked


def papers() -> list[str]:
  return [
      paper for paper in evidence.papers()
      if all(isinstance(claim, Claim) for claim in of(paper))
  ]


def text() -> str:
  """CLAIMS.md."""
  parts = [
      '# What became of the papers\' claims\n\n'
      'Written by `python -m experiments.tables` from the records; each '
      'paper\'s README has the tables and what differs from the paper. +- is '
      'the sample standard deviation over seeds. Of attacks in training the '
      'epoch counts in which they learn most, unless it says otherwise. After '
      'a record stand its seeds, and how many of its values came out when its '
      'command ran again (mostly one seed, see `verify.py`); what did not is '
      'of trainings that rounding changes. °: rests on a record that says no '
      'commit, so that `verify.py` cannot run it again; VMask\'s are mostly '
      'older than the attack as it is now (its README, "Settings"). '
      '"Not decided": there are records, which do not tell it.',
  ]
  for paper in papers():
    parts.append(f'## [{paper}]({paper}/README.md)\n\n'
                 + table(paper, f'{paper}/'))
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
