"""Figures and the page around them: what can be read, without any script."""
import io
import re
import threading
import time

import matplotlib
import numpy as np
from PIL import Image
import pytest

from tests import fake_results
from tests.report.test_report import Page
from vfljax.report import (
    drawing, page, plots, ranks, reading, svg, usual, writing,
)
from vfljax.report.plots import PRINT, Curve


@pytest.fixture(scope='module')
def made(tmp_path_factory):
  path = tmp_path_factory.mktemp('plots')
  fake_results.make(path)
  writing.write(path)
  results, = reading.read(path)
  return path, results


@pytest.fixture(scope='module')
def figures(made):
  return drawing.trade_offs(made[1])


def limits(drawn):
  axes, = drawn.figure.axes
  return (*axes.get_xlim(), *axes.get_ylim())


@pytest.mark.slow
def test_figures_to_be_compared_have_one_frame(made, figures):
  _, results = made
  assert len(figures) == 1 + len(results.attacks)
  assert len({limits(f.drawn) for f in figures}) == 1


def test_axes_go_to_the_data_and_its_intervals():
  near = [Curve(0, [0.0, 0.6], [50.0, 8.0], band=[1.0, np.nan],
                x_band=[0.0, 0.3])]
  left, right, low, high = plots.framed(near)
  assert -0.1 < left < 0 and 0.9 < right < 1.0
  assert -3 < low < 0 and 51 < high < 56
  far = plots.framed([Curve(0, [0.0, 28.0], [50.0, 8.0])])
  assert far.right > 28 and plots.trade_off(
      [Curve(0, [0.0, 28.0], [50.0, 8.0])], far
  ).figure.axes[0].get_xscale() == 'function'


def test_intervals_wider_than_the_data_are_cut():
  """Two seeds have intervals of 100 points: the marks are still apart."""
  wide = [Curve(0, [0.0, 2.0], [50.0, 10.0], band=[90.0, 60.0],
                x_band=[80.0, np.nan])]
  left, right, low, high = plots.framed(wide)
  assert -2.5 < left < -2 and 4 < right < 5
  assert -60 < low < -50 and 100 < high < 112
  # Where nothing differs, intervals show.
  same = [Curve(0, [0.0], [0.0], band=[4.0], x_band=[0.9])]
  left, right, low, high = plots.framed(same)
  assert left < -0.9 and 0.9 < right and low < -4 and 4 < high


def test_only_no_defense_is_grey_and_no_two_look_alike():
  styles = range(len(PRINT.series) * 2)
  hues = [plots.hue(style) for style in styles]
  assert hues.count(0) == 1 and set(hues) == {*range(len(PRINT.series))}
  assert len({(h, s % len(plots.DASHES)) for h, s in zip(hues, styles)}) == 16
  swatches = {svg.swatch(style) for style in styles}
  assert len(swatches) == 16 and sum('var(--s0)' in s for s in swatches) == 1


@pytest.mark.parametrize('epochs', [1, 2, 3, 40])
def test_ticks_of_epochs_are_whole(epochs):
  curve = Curve(0, [*range(1, epochs + 1)], [0.7] * epochs)
  axes, = plots.over_epochs([curve], 'leak AUC').figure.axes
  ticks = axes.get_xticks()
  written = axes.get_xticklabels()[0].get_fontsize()
  for axis in (axes.xaxis, axes.yaxis):
    assert axis.label.get_fontsize() == written + 1  # Names stand out.
  assert len(ticks) and (ticks == np.round(ticks)).all()


def test_an_interval_is_an_area_without_an_edge():
  """A line around it would look like two more curves."""
  curve = Curve(0, [1, 2], [0.7, 0.8], band=[0.1, 0.1])
  axes, = plots.over_epochs([curve], 'leak AUC').figure.axes
  area = next(c for c in axes.collections if c.get_alpha() == 0.15)
  assert area.get_linewidth() == 0


def test_the_frontier_is_what_nothing_beats_in_both():
  points = [(0.0, 50.0), (1.0, 10.0), (0.5, 30.0), (1.0, 9.0), (2.0, 9.5),
            (3.0, 2.0), (0.2, 50.0)]
  assert plots.frontier(points) == [
      (0.0, 50.0), (0.5, 30.0), (1.0, 9.0), (3.0, 2.0)
  ]


def test_a_row_that_lost_seeds_is_on_no_frontier(made):
  """Of what is left of it, nobody knows how far it may be compared."""
  curves = [Curve(
      0, [0.0, 0.5, 1.0], [50.0, 1.0, 9.0], whole=[True, False, True]
  )]
  axes, = plots.trade_off(curves, plots.framed(curves)).figure.axes
  frontier = lambda axes: [
      [*x.get_ydata()] for x in axes.lines if x.get_drawstyle() == 'steps-post'
  ]
  assert frontier(axes) == [[50, 9, 9]]
  every = [curves[0]._replace(whole=())]
  axes, = plots.trade_off(every, plots.framed(every)).figure.axes
  assert frontier(axes) == [[50, 1, 1]]
  first, *rest = [
      t for t in ranks.trades(made[1]) if t.cell[0] == 'iso'
  ]
  partly = first._replace(lost=first.lost._replace(unfinished=1))
  curve, = drawing._curves(made[1], [(t, t.worst) for t in (partly, *rest)], {})
  assert [*curve.whole] == [False, *[True] * len(rest)] and rest


def test_the_best_strength_is_named_and_has_its_intervals(made, figures):
  _, results = made
  worst = figures[0]
  axes, = worst.drawn.figure.axes
  said = {text.get_text() for text in axes.texts}
  best = {
      f'{reading.pretty(r.defense)} {reading.strength(r.best.cell)}'.strip()
      for r in ranks.rank(results)
  }
  assert best <= said and 'iso 25' not in said
  assert len(axes.containers) == len(results.defenses)  # Of intervals.
  assert 'iso 5: leaks 8.1, costs 0.6' in worst.description


def test_a_pointer_finds_every_point_where_it_is_drawn(made, figures):
  _, results = made
  drawn = figures[0].drawn
  assert len(drawn.titles) == len(drawn.spots) == len(ranks.trades(results))
  text = svg.inline(drawn, 'a', 'A figure.')
  found = re.findall(
      r'<circle class="spot" cx="([\d.]+)" cy="([\d.]+)" r="7"><title>(.*?)<',
      text,
  )
  titles = [title for _, _, title in found]
  assert 'iso at strength 5: mean scoring leaks 8.1 ± 0.7 points' in titles[2]
  # Matplotlib's own marker of the same point: its curve's third use.
  width, height = map(float, re.search(
      r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text
  ).groups())
  for x, y, _ in found:
    assert 0 < float(x) < width and 0 < float(y) < height
    # A marker of the curve stands there, to a tenth of a point.
    uses = re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', text)
    near = [abs(float(a) - float(x)) + abs(float(b) - float(y))
            for a, b in uses]
    assert min(near) < 0.2


def test_one_attack_at_a_time_without_a_script(made):
  path, results = made
  html = (path / 'report.html').read_text()
  page = Page(html)
  assert 'script' not in page.tags and not re.search(r' on\w+=', html)
  radios = re.findall(r'<input type="radio" name="attack"( checked)?>', html)
  assert radios == [' checked', *[''] * len(results.attacks)]
  # On paper all of them are there.
  printed = html[html.index('@media print'):]
  assert re.search(r'\.tab figure\s*{\s*display: block', printed)


def test_sections_are_listed_and_found(made):
  html = (made[0] / 'report.html').read_text()
  listed = re.findall(r'<li><a href="#(section-\d+)">(.*?)</a></li>', html)
  there = re.findall(r'<h2 id="(section-\d+)">(.*?)</h2>', html)
  assert listed == there and len(there) > 5
  assert 'Optimal PU scores' not in html  # The ranking is there once.


@pytest.mark.parametrize('sections', [2, 3])
def test_a_page_of_three_sections_has_contents(sections):
  text = page.page('T', ['<h1>T</h1>', *map(page.heading, 'abc'[:sections])])
  assert ('<nav' in text) == (sections == 3)
  if sections == 3:
    assert text.index('</h1>') < text.index('<nav') < text.index('<h2 id="')


def test_zones_end_where_scores_do_and_have_no_edges():
  """Edges would lie over each other, and be darker than the zones."""
  curves = [Curve(0, [0.0, 0.6], [50.0, 8.0])]
  axes, = plots.trade_off(curves, plots.framed(curves)).figure.axes
  zones = [(*p.get_bbox().max, p.get_linewidth()) for p in axes.patches]
  np.testing.assert_allclose(zones, [
      (0.5, 5, 0), (1, 10, 0), (2, 15, 0), (4, 20, 0), (6, 25, 0)
  ], atol=1e-9)
  assert [t.get_text() for t in axes.texts][:5] == ['PU 5', '4', '3', '2', '1']
  low = [Curve(0, [0.0, 0.6], [12.0, 8.0])]  # Scores above it have no place.
  axes, = plots.trade_off(low, plots.framed(low)).figure.axes
  assert {t.get_text() for t in axes.texts} >= {'PU 5', '4'}
  assert not {t.get_text() for t in axes.texts} & {'1'}


def test_a_picture_has_the_figures_size_in_its_dots():
  curves = [Curve(0, [0.0, 0.6], [50.0, 8.0])]
  drawn = plots.trade_off(curves, plots.framed(curves))
  found, again = (svg.saved(drawn, 'a', 'png') for _ in range(2))
  with Image.open(io.BytesIO(found)) as image:
    inches = drawn.figure.get_size_inches()
    np.testing.assert_allclose(image.size, inches * svg.DPI, atol=1)
    assert image.format == 'PNG'
  assert found == again


@pytest.mark.slow
def test_figures_are_files_of_their_own(made):
  _, results = made
  text = b''
  for kind, starts in (('png', b'\x89PNG'), ('svg', b'<svg')):
    found = dict(drawing.files(results, kind))
    assert {'trade-off-worst', 'epochs-mean_scoring'} <= {*found}
    assert all(content.startswith(starts) for content in found.values())
    text = found['trade-off-worst']
  text = text.decode()
  assert 'var(' not in text and PRINT.series[1] in text


@pytest.mark.parametrize('settings', [
    {'text.usetex': True}, {'font.family': ['monospace'], 'font.size': 30.0},
    {'axes.unicode_minus': False, 'markers.fillstyle': 'left'},
    {'savefig.bbox': 'tight', 'figure.constrained_layout.use': True},
])
def test_figures_do_not_follow_the_programs_own_settings(made, settings):
  """Neither a notebook's style, nor LaTeX, which may not be installed."""
  ranked = ranks.rank(made[1])[:2]
  some = made[1]._replace(attacks=made[1].attacks[:1])

  def drawn():
    one, = drawing.over_epochs(some, ranked, PRINT)
    two, *_ = drawing.trade_offs(some)
    return (
        svg.saved(one.drawn, 'a', 'png'), svg.saved(one.drawn, 'a', 'svg'),
        svg.inline(two.drawn, 'b', 'A figure.'), svg.swatch(3),
    )

  plain = drawn()
  with matplotlib.rc_context(settings):
    assert drawn() == plain
    assert {name: matplotlib.rcParams[name] for name in settings} == settings


def test_figures_of_two_threads_leave_the_programs_settings():
  """They are of the process: the later would put back the other's."""
  inside, kinds = threading.Event(), []

  def first():
    with usual.settings(fonttype='none'):
      inside.set()
      time.sleep(0.2)

  def second():
    inside.wait()
    with usual.settings(hashsalt='b'):
      kinds.append(matplotlib.rcParams['svg.fonttype'])
      time.sleep(0.4)

  before = dict(matplotlib.rcParams)
  threads = [threading.Thread(target=draw) for draw in (first, second)]
  for one in threads:
    one.start()
  for one in threads:
    one.join()
  assert kinds == ['path'] and dict(matplotlib.rcParams) == before


def test_sections_of_several_settings_have_ids_of_their_own(tmp_path):
  from tests.fake_results import row
  from vfljax.runner.workdir import store
  rows = [
      row(defense, None, attack, 0, metric, 'test', value) | {'dataset': name}
      for name in ('a', 'b') for defense in ('none', 'iso')
      for attack, metric, value in ((None, 'auc', 0.9),
                                    ('norm_scoring', 'leak_auc', 0.7),
                                    ('mean_scoring', 'leak_auc', 0.6))
  ]
  work = store.open_workdir(tmp_path, {}, ['all'])
  work.save('all', rows, {})
  html = writing.write(tmp_path).read_text()
  # What was run is said before all settings.
  assert 0 < html.index('class="facts"') < html.index('<h2')
  page = Page(html)
  assert len(set(page.ids)) == len(page.ids)
  assert len(set(re.findall(r'type="radio" name="(.*?)"', html))) == 2
