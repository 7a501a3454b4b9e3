"""The report's table of what crosses in a round."""
import json

import pytest

from tests.report.test_report import Page, workdir
from vfljax.commands import advise, compare
from vfljax.report import crossings, ending, writing
from vfljax.runner.cli.goals import Goal

OWN = dict(
    defense='dp_laplace', messages=[
        [1, 'up', [64, 8], 'float32', 2048], [1, 'down', [64, 8], 'float32',
                                              2048],
        [2, 'up', [64, 8], 'float32', 2048], [2, 'down', [64, 4], 'float16',
                                              512],
    ], samples=64, rounds=10, epoch_bytes=dict(up=40960, down=3 << 29),
    borrowers=[], leaks=[], count=0,
)


def cells(*own):
  table, = crossings.taken([dict(unit='x', crossing=one) for one in own])
  return [[text.text for text in row] for row in table.rows]


def test_messages_are_put_together():
  assert cells(OWN, OWN) == [[
      'dp laplace', '2 × [64, 8] float32, 4.0 KiB',
      '[64, 8] float32 + [64, 4] float16, 2.5 KiB', '40.0 KiB', '1.5 GiB',
      'nothing',
  ]]


def test_what_else_there_is_is_told():
  lent = OWN | dict(borrowers=[1, 2])
  anew = lent | dict(defense='d', made_anew_of=['labels', 'weights'])
  leak = OWN | dict(defense='b', leaks=['labels -> x', 'y'], count=7)
  gone = dict(defense='c', error='TypeError: no')
  said = [row[-1] for row in cells(lent, leak, gone, anew)]
  assert said == [
      'only what the defense lends to party 1, 2',
      'LEAK: labels -> x (and 6 more)', 'not known, no audit: TypeError: no',
      'only what the defense lends to party 1, 2, which it renews '
      'between epochs from labels, weights',
  ]
  table, = crossings.taken([dict(crossing=leak)])
  assert table.rows[0][-1].strong and '64 samples' in table.note
  assert cells(gone)[0][1:-1] == ['–'] * 4


@pytest.mark.parametrize('size, text', [
    (1023, '1023 B'), (1024, '1.0 KiB'), (1.5 * 2**20, '1.5 MiB'),
    (2**40, '1.0 TiB'), (2**40 - 2**30, '1023.0 GiB'), (2**51, '2048.0 TiB'),
])
def test_sizes_are_in_the_largest_unit_that_they_fill(size, text):
  assert crossings._size(size) == text


def report_of(folder, *own):
  found = {(None, 'auc'): [0.9], ('a', 'leak_auc'): [0.8]}
  work = workdir(folder, {('none', None): found})
  timings = [dict(unit='none/None', run_seconds=1.0) | one for one in own]
  (work.path / 'timings.json').write_text(json.dumps(timings))
  writing.write(work.path)
  return [(work.path / n).read_text() for n in ('summary.md', 'report.html')]


def test_it_is_in_the_report_and_not_among_the_timings(tmp_path):
  text, html = report_of(
      tmp_path / 'new', dict(crossing=OWN | dict(leaks=['<b>'], count=1))
  )
  Page(html)
  for said in text, html:
    assert crossings.TITLE in said and 'an epoch 10 rounds' in said
    assert 'LEAK: &lt;b' in said
    assert 'epoch_bytes' not in said
  assert html.index(crossings.TITLE) < html.index('Timings')


def test_a_proven_leak_is_said_first_wherever_numbers_are(tmp_path, capsys):
  leak = dict(crossing=OWN | dict(leaks=['labels -> up[1]', 'y'], count=2))
  texts = report_of(tmp_path / 'one', leak)
  assert texts[0].index('WARNING') < texts[0].index('## What was run')
  assert texts[1].index('WARNING') < texts[1].index('No defense')
  report_of(tmp_path / 'two', dict(crossing=OWN))
  texts += [
      ending.text(tmp_path / 'one'),
      advise.text(str(tmp_path / 'one'), Goal(budget=2)),
  ]
  compare.run([f'{tmp_path}/one', f'{tmp_path}/two', f'--to={tmp_path}/c.html'])
  texts += [capsys.readouterr().out, (tmp_path / 'c.html').read_text()]
  for said in texts:
    plain = ' '.join(said.replace('\\', '').replace('&gt;', '>').split())
    assert 'the audit proves that dp laplace leaks beside the' in plain
    assert 'messages: labels -> up[1] (and 1 more).' in plain
  assert '<div class="verdict warns"><p>WARNING' in texts[1]
  assert 'WARNING' not in ending.text(tmp_path / 'two')
  assert 'WARNING' not in (tmp_path / 'two/report.html').read_text()


def test_what_was_run_before_has_no_such_table(tmp_path):
  for said in report_of(tmp_path / 'old', {}):
    assert crossings.TITLE not in said
