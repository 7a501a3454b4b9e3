"""Writes numbers of READMEs, CLAIMS.md and AGAIN.md from the records.

  python -m experiments.tables              all papers
  python -m experiments.tables kang2022     one paper; CLAIMS.md, AGAIN.md,
                                            benchmarks and README always
  python -m experiments.tables --check      writes nothing; exit code 1 if a
                                            file differs from its records

See experiments/evidence.py for the markers.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path
import sys

from experiments import again, claims, evidence, front
from experiments.bench import quotes
from vfljax.runner.errors import UserError


def changed(papers: Sequence[str]) -> dict[Path, str]:
  """{file: its new text} of all files that differ from their records.

  Raises:
    ValueError: for a marker that names nothing.
    UserError: for a record that is not there.
  """
  wanted = {}
  for paper in papers:
    file = evidence.HERE / paper / 'README.md'
    wanted[file] = evidence.rewritten(file.read_text('utf-8'), paper)
  for whole in (claims, again):
    wanted[whole.FILE] = whole.text()
  for name, made in dict(front=front, bench=quotes).items():
    wanted[made.README] = evidence.rewritten(
        made.README.read_text('utf-8'), name, made.TABLES, made.NUMBERS
    )
  return {
      file: text for file, text in wanted.items()
      if not file.exists() or file.read_text('utf-8') != text
  }


def main(argv: Sequence[str] | None = None) -> int:
  known = evidence.papers()
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument('papers', nargs='*', metavar='paper',
                      help=', '.join(known))
  parser.add_argument('--check', action='store_true')
  asked = parser.parse_intermixed_args(argv)
  if wrong := set(asked.papers) - set(known):
    parser.error(f'{", ".join(wrong)}: there are {", ".join(known)}')
  try:
    found = changed(asked.papers or known)
  except (ValueError, UserError) as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  for file, text in found.items():
    print(f'{file} {"differs from" if asked.check else "written from"} its '
          'records')
    if not asked.check:
      file.write_text(text, 'utf-8')
  return 1 if asked.check and found else 0


if __name__ == '__main__':
  sys.exit(main())
