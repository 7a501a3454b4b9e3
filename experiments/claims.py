"""The claims of the five papers and what became of them: CLAIMS.md.

experiments/<paper>/claims.py has them in CLAIMS. Each verdict is computed from
records; `python -m experiments.tables` writes the table.
"""
from collections.abc import Callable, Sequence
import importlib
from typing import NamedTuple

from experiments import evidence

FILE = evidence.HERE / 'CLAIMS.md'
WORDS = {True: 'held', False: '**did not hold**', None: 'not testable here'}


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
      'of trainings that rounding changes.',
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
        f'[{name}]({place}records/{name}.json)' + evidence.remark(paper, name)
        for name in claim.records
    )
    rows.append([
        claim.where, claim.text, WORDS[found.held], found.because, links
    ])
  head = ('of the paper', 'claim', 'here', 'what decides', 'records')
  return evidence.markdown(head, rows)
