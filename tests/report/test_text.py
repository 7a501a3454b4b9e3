"""Names from anywhere on the page and in the summary."""
import re

from tests.fake_results import row
from tests.report.test_report import Page
from vfljax.leakage import LABELS, Known
from vfljax.report import text, writing
from vfljax.runner.experiment import told
from vfljax.runner.workdir import store

HOSTILE = '`a`|b<script>alert(1)</script>"\' *c* [d](e) &lt; _f_\n# g\u202e\x00'


def test_names_from_anywhere_stay_names(tmp_path):
  rows = [
      row(defense, None, attack, 0, metric, 'test', value) | {
          'dataset': HOSTILE, 'experiment': HOSTILE,
      }
      for defense in ('none', HOSTILE)
      for attack, metric, value in (
          (None, 'auc', 0.9), (HOSTILE, 'leak_auc', 0.7),
          ('norm_scoring', 'leak_auc', 0.6),
          ('norm_scoring:' + HOSTILE, HOSTILE, 0.5),
      )
  ]
  work = store.open_workdir(tmp_path, {'data': {'named': HOSTILE}}, ['all'])
  known = {HOSTILE: told.said(Known(LABELS))}
  work.save('all', rows, {'device': HOSTILE, told.FIELD: known})
  html = writing.write(tmp_path).read_text()
  page = Page(html)
  assert not page.tags & {'script', 'em'}
  assert all(link.startswith('#') for link in page.links)
  assert '<script' not in html and '\x00' not in html
  labels = re.findall(r'aria-label="([^"]*)"', html)
  # The worst attack's figure and two attacks', each with the defense's name.
  assert len([x for x in labels if '&quot;&#x27;' in x]) == 3
  said = (tmp_path / 'summary.md').read_text()
  assert '<script' not in said and '\x00' not in said and '\u202e' not in said
  assert not re.search(r'^# g', said, re.MULTILINE)
  assert not re.search(r'(?<!\\)[`\[]|[^\\*]\*c', said)
  for block in re.findall(r'(?:^\|.*\n)+', said, re.MULTILINE):
    bars = re.compile(r'(?<!\\)\|')
    assert len({len(bars.findall(x)) for x in block.splitlines()}) == 1


def test_markdown_leaves_names_of_fields_as_they_are():
  assert text.markdown('leak_auc > 0.5 at gafm_marvell') == (
      'leak_auc > 0.5 at gafm_marvell'
  )
  assert text.markdown('_a_') == '\\_a\\_'
