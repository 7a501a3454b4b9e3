"""Writes AGAIN.md: what came out when records ran again (verified.json)."""
from typing import Any

from experiments import evidence

FILE = evidence.HERE / 'AGAIN.md'
_TEXT = '''\
# What came out when records ran again

Written by `python -m experiments.tables` from `verified.json`, which has the
last time that each record's command ran again, for one seed or more: {records}
records, {came_out} of {values} values came out, {same} of them to the last
digit. By what rule a value comes out stands in `verify.py`. These did not:

{missed}

A third run can tell whether such a difference is rounding. It uses a commit
that computes the same but rounds differently (`--twin`). Where the second run
lies as far from the third as from the record, values differ no more than
rounding makes them differ:

{apart}

    python -m experiments.verify PAPER RECORD --data=FOLDER --keep=one.json
    python -m experiments.verify PAPER RECORD --data=FOLDER --twin=one.json
'''


def text() -> str:
  """The file."""
  lines = evidence.verified().values()
  total = {
      name: sum(line[name] for line in lines)
      for name in ('values', 'came_out', 'same')
  }
  return _TEXT.format(
      records=len(lines), **total, missed=_missed(), apart=_apart(),
  )


def _missed() -> str:
  """The records of which some values did not come out."""
  rows = [
      [
          _link(line), f"{line['values'] - line['came_out']} of "
          f"{line['values']}", str(line['seeds']), line['missed'],
      ]
      for line in sorted(evidence.verified().values(), key=_name)
      if line['came_out'] < line['values']
  ]
  head = 'record', 'values that did not come out', 'seeds', 'which'
  return evidence.markdown(head, rows)


def _apart() -> str:
  """The records that have a third run, by which rounding is known."""
  rows = [
      [
          _link(line), f"{far['twin']:.3f}, {far['twin_most']:.3f} "
          f"({far['twin_where']})",
          f"{far['recorded']:.3f}, {far['recorded_most']:.3f}",
      ]
      for line in sorted(evidence.verified().values(), key=_name)
      if (far := line.get('apart'))
  ]
  head = (
      'record', "distance from that commit's values, mean and most",
      "from the record's",
  )
  return evidence.markdown(head, rows)


def _name(line: dict[str, Any]) -> str:
  return line['record']


def _link(line: dict[str, Any]) -> str:
  paper, _, file = line['record'].split('/')
  name = file.removesuffix('.json')
  return f"[{paper}, {name}]({line['record']})"

