"""The report: its arithmetic against hand calculation, its page as a page."""
from html.parser import HTMLParser
import json
import math
import re

import numpy as np
import pytest

from tests import fake_results
from tests.fake_results import PAPER, row
from vfljax.leakage import LABELS, Known
from vfljax.report import (
    asked, ending, page, papers, ranks, reading, spent, tables, verdict,
    writing,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import told
from vfljax.runner.workdir import store

VOID = {'meta', 'br', 'hr', 'img', 'link', 'input'}


# What a timing record says of an attack that is registered nowhere here.
OWN = {told.FIELD: {'a': told.said(Known(LABELS, summary='Mine.'))}}


def workdir(path, cells, config=None):
  """A work directory with one unit per (defense, strength): rows.

  `cells` is {(defense, strength): {(attack, metric): values over seeds}}.
  """
  units = [f'{d}/{s}' for d, s in cells]
  work = store.open_workdir(path, config or {}, units)
  for unit, ((d, s), found) in zip(units, cells.items()):
    work.save(unit, [
        row(d, s, attack, seed, metric, 'test', value)
        for (attack, metric), values in found.items()
        for seed, value in enumerate(values)
    ], OWN)
  return work


def kang(path):
  """Kang et al., Table 10, Credit: the rows of four protections, one seed."""
  columns = ('norm_scoring', 'direction_scoring', 'direct_label')
  table = {
      ('none', None): (0.0, 46.9, 50.0, 50.0),
      ('gradient_compression', 0.1): (11.2, 10.1, 3.3, 11.6),
      ('max_norm', None): (0.1, 6.2, 18.1, 19.8),
      ('dp_laplace', 0.1): (0.9, 1.1, 2.6, 3.7),
  }
  cells = {}
  for cell, (loss, *leaks) in table.items():
    cells[cell] = {(None, 'auc'): [(73.2 - loss) / 100]} | {
        (a, 'leak_auc'): [0.5 + x / 100] for a, x in zip(columns, leaks)
    }
  return workdir(path, cells)


class Page(HTMLParser):
  """Checks that tags are closed in order; collects links, ids and text."""

  def __init__(self, text):
    super().__init__()
    self.open, self.tags, self.links, self.ids = [], set(), [], []
    self.words = []
    self.feed(text)
    assert not self.open

  def handle_starttag(self, tag, attrs):
    self.tags.add(tag)
    if tag not in VOID:
      self.open.append(tag)
    for name, value in attrs:
      if name in ('src', 'href', 'xlink:href'):
        self.links.append(value)
      if name == 'id':
        self.ids.append(value)

  def handle_startendtag(self, tag, attrs):
    self.handle_starttag(tag, attrs)
    if tag not in VOID:
      self.open.pop()

  def handle_endtag(self, tag):
    assert self.open.pop() == tag

  def handle_data(self, data):
    self.words.append(data)


@pytest.fixture(scope='session')
def fake(tmp_path_factory):
  """The big made-up work directory with its report."""
  path = tmp_path_factory.mktemp('fake')
  fake_results.make(path)
  writing.write(path, PAPER)
  return path


def test_the_interval_is_students():
  s = reading.summarize(range(1, 11))
  assert s.mean == 5.5 and s.count == 10 and s.missing == 0
  # Quantile 0.975 at 9 degrees of freedom, from a printed table: 2.262157.
  assert s.half == pytest.approx(2.262157 * 3.0276504 / math.sqrt(10), rel=1e-6)
  assert s.std == pytest.approx(3.0276504)


def test_lost_and_single_seeds_are_counted():
  s = reading.summarize([0.5, math.nan, 0.7])
  assert (s.mean, s.count, s.missing) == (pytest.approx(0.6), 2, 1)
  assert '(2 of 3 seeds)' in tables.interval(s)
  assert tables.interval(reading.summarize([0.5])) == '0.500'
  assert tables.interval(reading.summarize([math.nan])) == '– (0 of 1 seeds)'


def test_scores_and_preference_are_those_of_kangs_table_10(tmp_path):
  results, = reading.read(kang(tmp_path).path)
  ranked = ranks.rank(results)
  scores = {r.defense: r.optimal for r in ranked}
  assert scores == {
      'none': 0, 'gradient_compression': 0, 'max_norm': 2, 'dp_laplace': 4,
  }
  assert ranks.preference(ranked) == (
      'dp laplace > max norm > gradient compression ≈ no defense'
  )
  assert ranked[1].best.worst == 'direct_label'
  assert ranked[1].best.leakage['direct_label'].mean == pytest.approx(19.8)
  assert ranked[1].best.loss.mean == pytest.approx(0.1)
  said = ' '.join(verdict.sentences(results, ranked))
  assert said.startswith('dp laplace at strength 0.1 protects best: PU score 4')
  assert '3.7 points better than guessing, against 50.0 points' in said
  assert '0.9 points of test AUC, which is then 0.723' in said


def test_the_best_strength_is_the_one_with_the_best_score(tmp_path):
  cells: dict[reading.Cell, dict] = {
      ('none', None): {(None, 'auc'): [0.9], ('a', 'leak_auc'): [1.0]}
  }
  for s, loss, leak in [(1.0, 0.0, 30), (2.0, 0.8, 8), (3.0, 1.9, 4),
                        (4.0, 0.9, 6)]:
    cells['iso', s] = {
        (None, 'auc'): [0.9 - loss / 100], ('a', 'leak_auc'): [0.5 + leak / 100]
    }
  results, = reading.read(workdir(tmp_path, cells).path)
  best = ranks.rank(results)[0]
  # Strengths 2 and 4 both score 4; 4 leaks and costs 6.9 in sum, 2 costs 8.8.
  assert (best.optimal, best.best.cell) == (4, ('iso', 4.0))


def test_loss_and_completion_are_paired_by_seed(tmp_path):
  none = {(None, 'auc'): [0.90, 0.80, 0.70],
          ('model_completion', 'auc_last'): [0.80, 0.70, 0.75],
          ('model_completion', 'auc_best'): [0.99, 0.99, 0.99],
          ('local_model', 'auc_last'): [0.70, 0.60, 0.65]}
  iso = {(None, 'auc'): [0.88, 0.77, math.nan],
         ('model_completion', 'auc_last'): [0.75, 0.63, 0.66]}
  work = workdir(tmp_path, {('none', None): none, ('iso', 5.0): iso})
  results, = reading.read(work.path)
  loss = reading.summarize(reading.utility_loss(results, ('iso', 5.0)).values())
  assert (loss.mean, loss.missing) == (pytest.approx(2.5), 1)
  assert loss.std == pytest.approx(math.sqrt(0.5))
  # The local model was run undefended only; it serves all defenses.
  leak = reading.leakage(results, ('iso', 5.0), 'model_completion')
  assert leak == pytest.approx({0: 5.0, 1: 3.0, 2: 1.0})
  assert results.attacks == ['model_completion']
  assert results.baselines == ['local_model']


def test_other_parties_attacks_have_their_own_baseline(tmp_path):
  found = {(None, 'accuracy'): [0.9],
           ('model_completion', 'accuracy_last'): [0.8],
           ('local_model', 'accuracy_last'): [0.7],
           ('model_completion@2', 'accuracy_last'): [0.9],
           ('local_model@2', 'accuracy_last'): [0.5]}
  results, = reading.read(workdir(tmp_path, {('none', None): found}).path)
  none = ('none', None)
  assert reading.leakage(results, none, 'model_completion@2')[0] == (
      pytest.approx(40.0)
  )
  assert reading.leakage(results, none, 'model_completion')[0] == (
      pytest.approx(10.0)
  )


def test_a_variant_has_its_own_baseline_or_that_of_all(tmp_path):
  found = {(None, 'accuracy'): [0.9],
           ('model_completion:linear@2', 'accuracy_last'): [0.8],
           ('model_completion:80@2', 'accuracy_last'): [0.8],
           ('local_model@2', 'accuracy_last'): [0.5],
           ('local_model', 'accuracy_last'): [0.1],
           ('local_model:80@2', 'accuracy_last'): [0.7]}
  results, = reading.read(workdir(tmp_path, {('none', None): found}).path)
  leak = lambda attack: reading.leakage(results, ('none', None), attack)[0]
  assert leak('model_completion:linear@2') == pytest.approx(30.0)
  assert leak('model_completion:80@2') == pytest.approx(10.0)


def test_guessing_among_many_classes(tmp_path):
  found = {(None, 'accuracy'): [0.9], ('direct_label', 'accuracy'): [0.35]}
  work = workdir(tmp_path, {('none', None): found})
  results, = reading.read(work.path, classes=10)
  leak = reading.leakage(results, ('none', None), 'direct_label')
  assert leak[0] == pytest.approx(25.0)
  # Rather no leakage than one against a wrong guess.
  results, = reading.read(work.path)
  assert not reading.leakage(results, ('none', None), 'direct_label')
  timings = [{'unit': 'none/None', 'classes': 10}]
  (tmp_path / 'timings.json').write_text(json.dumps(timings))
  writing.write(tmp_path)
  assert '| 25.0 |' in (tmp_path / 'summary.md').read_text()


def test_the_papers_numbers_are_compared_in_its_deviations(fake):
  results, = reading.read(fake)
  compared = papers.compare(results, PAPER)
  assert len(compared) == 7  # Marvell has four strengths.
  for c in compared:
    values = [
        r['value'] for r in store.read_results(fake)
        if (r['defense'], r['strength'], r['attack'], r['metric'])
        == (c['defense'], c['strength'], c.get('attack'), c['metric'])
    ]
    assert c['ours'].mean == pytest.approx(np.mean(values))
    if c['std'] is None:
      assert c['sds'] is None
    else:
      std = c['std'] or 0.005
      assert c['sds'] == pytest.approx((np.mean(values) - c['mean']) / std)
  text = (fake / 'summary.md').read_text()
  marks = ['DIFFERS' if abs(c['sds'] or 0) > 2 else 'agrees' for c in compared]
  assert text.count('DIFFERS') == marks.count('DIFFERS') == 4
  told = [c for c in compared if c['std'] is not None]
  assert 0 < len(told) < 7
  said = f'In 4 of the {len(told)} rows in which the paper has one, ours is off'
  assert said in text
  assert 'In 4 of these 6 rows ours is off by' in tables.paper(told).note
  bare = [c | dict(std=None, sds=None) for c in compared]
  note = tables.paper(bare).note
  assert 'The paper gives none' in note and 'is off by' not in note
  other = [PAPER[0] | {'dataset': 'criteo'}]
  assert not papers.compare(results, other)


def test_the_page_needs_nothing_but_itself(fake):
  text = (fake / 'report.html').read_text()
  page = Page(text)
  assert not page.tags & {'script', 'link', 'img', 'iframe', 'object'}
  assert all(link.startswith('#') for link in page.links)
  assert {link[1:] for link in page.links} <= set(page.ids)
  assert len(set(page.ids)) == len(page.ids)
  assert not re.search(r'@import|url\((?!#)|http', text)
  assert 'prefers-color-scheme: dark' in text and '@media print' in text
  assert text.count('<figure') == 1 + 5 + 4
  # Everything that Matplotlib drew in a colour follows the page's.
  figures = ''.join(re.findall(r'<figure.*?</figure>', text, re.DOTALL))
  assert not re.search(r'#[0-9a-fA-F]{6}', figures)


def test_the_page_says_first_who_wins(fake):
  words = ' '.join(Page((fake / 'report.html').read_text()).words)
  first = 'iso at strength 5 protects best: PU score 4 of 5, leaking'
  assert words.index(first) < words.index('Which defense, and why')
  for section in ('Privacy against utility', 'Utility and leakage',
                  'What needs no leak', 'active party alone',
                  'Leakage during training', 'Timings', 'Configuration',
                  "The paper's numbers beside ours", 'GAFM Table 2', 'scratch',
                  'train.learning_rate', '412 MiB', 'leak AUC raw'):
    assert section in words


def test_who_has_it_read_out_finds_the_page(fake):
  """All in one landmark; no column has a heading without a word."""
  html = (fake / 'report.html').read_text()
  inside = html[html.index('<body>'):]
  assert inside.startswith('<body>\n<main>')
  assert inside.endswith('</main>\n</body>\n</html>\n')
  shown = page.table(tables.Table('t', '', ('a', ''), []))
  assert '<th scope="col">a</th><td></td></tr>' in shown


def test_a_flag_in_small_print_stays_on_a_line():
  said = page.note('see --config.attacks=..., a - b and x--y')
  assert '<code>--config.attacks</code>=...' in said
  assert said.count('<code>') == 1


def test_the_summary_is_markdown_that_lines_up(fake):
  text = (fake / 'summary.md').read_text()
  assert text.startswith('# quickstart: VHNN on breast cancer, 6 defenses, 5 '
                         'attacks, 10 seeds\n\n**iso at strength 5 protects')
  blocks = re.findall(r'(?:^\|.*\n)+', text, re.MULTILINE)
  assert len(blocks) == 4
  for block in blocks:
    assert len({line.count('|') for line in block.splitlines()}) == 1


@pytest.mark.slow
def test_writing_again_gives_the_same_bytes(fake, tmp_path):
  fake_results.make(tmp_path)
  writing.write(tmp_path, PAPER)
  for name in ('report.html', 'summary.md'):
    assert (tmp_path / name).read_bytes() == (fake / name).read_bytes()


def test_numbers_of_a_paper_come_from_the_configuration_too(tmp_path):
  entry = {'defense': 'none', 'metric': 'auc', 'mean': 0.7, 'std': 0.01,
           'attack': None, 'strength': None, 'source': 'Table 10'}
  found = {('none', None): {(None, 'auc'): [0.732]}}
  work = workdir(tmp_path, found, {'paper': [entry]})
  writing.write(work.path)
  text = (tmp_path / 'summary.md').read_text()
  assert '+3.2 | **DIFFERS** | Table 10' in text
  note = tables.paper(papers.compare(*reading.read(work.path), [entry])).note
  assert ' '.join(note.split()) in ' '.join(ending.text(work.path).split())


def test_cells_are_tinted_by_their_score_and_wrap_beyond_44_letters():
  text = page._row([
      tables.Text('a' * 44, strong=True), tables.Text('b' * 44, 0),
      tables.Text('c' * 45, 5, True), tables.Text('d' * 45),
  ])
  assert text == (
      f'<th scope="row">{"a" * 44}</th><td class="t0">{"b" * 44}</td>'
      f'<td class="t5 wrap"><b>{"c" * 45}</b></td>'
      f'<td class="wrap">{"d" * 45}</td>'
  )


def test_the_podium_has_places_bars_and_scores(tmp_path):
  """Bars are of the widest leakage and cost, but at least of 25 and 6."""
  results, = reading.read(kang(tmp_path).path)
  items = re.findall('<li.*?</li>', page.podium(ranks.rank(results)))
  said = [re.sub(r'<.*?>', ' ', item).split() for item in items]
  assert [one[0] for one in said] == ['1.', '2.', '3.', '4.']
  assert said[0][1:6] == ['dp', 'laplace', 'at', 'strength', '0.1']
  assert '4/5' in items[0] and items[0].count('●') == 4
  assert '<li class=free>' in items[3] and 'no defense' in items[3]
  bars = re.findall(r'width:([\d.]+)%', items[0])
  assert bars == [f'{100 * x:.1f}' for x in (3.7 / 50, 0.9 / 11.2)]


@pytest.mark.parametrize('share, width', [
    (-0.1, 0), (0.25, 25), (1.0, 100), (1.5, 100)
])
def test_a_bar_is_as_wide_as_its_share(share, width):
  text = page._bar('leak', share, tables.Text('7.0', 4), 'leaks')
  assert f'<i class="little" style="width:{width:.1f}%">' in text


def test_one_figure_needs_no_tabs():
  assert page.tabs('g', [('a', '<svg>')]) == '<svg>' and not page.tabs('g', [])
  both = page.tabs('g', [('a', '<svg>'), ('b', '<img>')])
  assert both.count('type="radio"') == 2 and '<svg>' in both and '<img>' in both


@pytest.mark.parametrize('train, epochs', [
    (dict(epochs=30), 30), (dict(epochs=120), 60),
    (dict(epochs=30, measure_every=4), 8), ({}, 0),
    (dict(epochs='30'), 0), (dict(epochs=30, measure_every=-1), 0),
])
def test_as_many_epochs_are_awaited_as_are_measured(train, epochs):
  """None of a configuration that somebody damaged."""
  assert asked.epochs(dict(train=train)) == epochs


def test_what_one_unit_alone_says_has_a_dash_in_others():
  table = spent.timings([
      dict(unit='a', run_seconds=1.25, peak_memory_bytes=3 << 20),
      dict(unit='b', run_seconds=2.0),
  ])
  assert [[cell.text for cell in row[-2:]] for row in table.rows] == [
      ['1.2', '3 MiB'], ['2.0', '–'],
  ]


def test_headings_of_advice_are_below_its_sections():
  evidence = tables.Table('E', '', (), [])
  given = writing.Advice('Within 2', ['a'], evidence, ['u'])
  first, *rest = writing._first(['a', 'b'], given, 2, False)
  assert first == page.verdict(['a']) and rest[1] == page.note('b')
  assert re.findall(r'<h(\d)>(.*?)</h', ''.join(rest)) == [
      ('2', 'By the PU score, at any price'), ('2', 'Within 2: the evidence'),
      ('3', 'E'), ('3', 'Not tested'),
  ]


def test_a_configuration_is_shown_field_by_field():
  config = dict(
      seeds=2, train=dict(widths=[4, 8], name='', rows=()),
      listed=[dict(defense='iso', strengths=[1.0], label='')],
  )
  rows = spent.configuration(config).rows
  assert {key.text: value.text for key, value in rows} == {
      'seeds': '2', 'train.widths': '4, 8', 'train.name': 'empty',
      'train.rows': 'empty', 'listed': '(defense=iso, strengths=1.0)',
  }


@pytest.mark.parametrize('cells', [
    {},
    {('none', None): {(None, 'auc'): [0.9]}},
    {('iso', 5.0): {(None, 'auc'): [0.9], ('a', 'leak_auc'): [0.6]}},
    {('none', None): {('a', 'leak_auc'): [0.6, 0.7]}},
    {('none', None): {(None, 'auc'): [math.nan], ('a', 'leak_auc'): [0.6]}},
    {('none', None): {(None, 'loss'): [0.1], ('a', 'psnr'): [20.0]}},
    {('none', None): {(None, 'auc'): [0.9], ('a', 'leak_auc'): [math.nan]},
     ('iso', 5.0): {(None, 'auc'): [0.9], ('a', 'leak_auc'): [0.6]}},
    {('none', None): {(None, 'auc'): [0.9], ('a', 'leak_auc'): [0.6]},
     ('iso', 1.0): {(None, 'auc'): [0.95], ('b', 'leak_auc'): [0.4]}},
])
def test_unfinished_and_odd_results_are_reported_as_they_are(tmp_path, cells):
  work = workdir(tmp_path, cells)
  Page(writing.write(work.path).read_text())
  text = (tmp_path / 'summary.md').read_text()
  assert 'nan' not in text.lower()


def test_metrics_nobody_knows_are_columns(tmp_path):
  found = {(None, 'auc'): [0.9], ('inversion', 'psnr'): [21.5, 22.5]}
  work = workdir(tmp_path, {('none', None): found})
  words = Page(writing.write(work.path).read_text()).words
  assert 'PSNR' in words and '22.000 ± 6.353' in words


def test_several_data_sets_have_a_section_each(tmp_path):
  rows = [
      row('none', None, None, 0, 'auc', 'test', value) | {'dataset': name}
      for name, value in (('spambase', 0.95), ('a<b>&c', 0.8))
  ]
  work = store.open_workdir(tmp_path, {'experiment': 'both'}, ['all'])
  work.save('all', rows, {})
  text = writing.write(tmp_path).read_text()
  Page(text)
  assert 'both: 2 settings' in text
  assert 'VHNN on spambase' in text and 'a&lt;b&gt;&amp;c' in text
  assert '<b>&' not in text


def test_seeds_in_chunks_are_put_together(tmp_path):
  units = ['none/a', 'none/b', 'alone']
  work = store.open_workdir(tmp_path, {}, units)
  for first, unit in zip((0, 2), units):
    rows = [row('none', None, None, first + i, 'auc', 'test', 0.5 + first / 10)
            for i in range(2)]
    work.save(unit, rows, {}, {'a/leak_auc': np.full((2, 3), first)})
  work.save('alone', [row('none', None, None, 0, 'alone_auc', 'test', 0.4)],
            {}, {'a/leak_auc': np.full((1, 3), 9)})
  results, = reading.read(tmp_path)
  none = ('none', None)
  assert reading.utility(results, none) == {0: 0.5, 1: 0.5, 2: 0.7, 3: 0.7}
  np.testing.assert_array_equal(
      results.curves[none, 'a/leak_auc'][:, 0], [0, 0, 2, 2]
  )
  cells = tables.baselines(results).rows[1]
  assert [c.text for c in cells] == ['active party alone', '0.400']


def test_when_nothing_helps_the_verdict_says_so(tmp_path):
  none = {(None, 'auc'): [0.9], ('a', 'leak_auc'): [0.53]}
  iso = {(None, 'auc'): [0.8], ('a', 'leak_auc'): [0.51]}
  results, = reading.read(
      workdir(tmp_path / 'x', {('none', None): none, ('iso', 1.0): iso}).path
  )
  said = verdict.sentences(results, ranks.rank(results))
  assert said[0].startswith('No defense beats having none here')
  none['a', 'leak_auc'] = [0.99]
  results, = reading.read(
      workdir(tmp_path / 'y', {('none', None): none, ('iso', 1.0): iso}).path
  )
  said = verdict.sentences(results, ranks.rank(results))
  assert 'beats having none' in said[0] or 'acceptable price' in said[0]


@pytest.mark.parametrize('attack, seen, points, sentence', [
    ('noisy_sample', dict(drop=0.3), 30, 'costs 30.0 points of accuracy'),
    ('label_replacement', dict(backdoor_accuracy=0.9, untriggered=0.02), 88,
     'has 88.0 points more of the triggered samples taken for its target'),
    ('cafe', dict(ssim_start=0.7, ssim_end=0.2), 70,
     'rebuilds images to 70.0 points of structural similarity'),
    ('learned_gradient', dict(leak_auc_start=0.6, leak_auc_end=0.9), 40,
     'infers labels 40.0 points better than guessing'),
])
def test_attacks_on_other_things_than_labels_are_scored(
    tmp_path, attack, seen, points, sentence
):
  cell = {(None, 'auc'): [0.9]} | {(attack, m): [x] for m, x in seen.items()}
  folder = workdir(tmp_path, {('none', None): cell, ('mid', 1.0): cell})
  results, = reading.read(folder.path)
  free, _ = ranks.trades(results)
  assert free.leakage[attack].mean == pytest.approx(points)
  assert free.score == 0
  assert sentence in verdict.sentences(results, ranks.rank(results))[0]


def test_a_damaged_configuration_is_told(tmp_path):
  (tmp_path / 'config.json').write_text(json.dumps({'a': 1})[:-2])
  with pytest.raises(UserError, match='config.json'):
    writing.write(tmp_path)
