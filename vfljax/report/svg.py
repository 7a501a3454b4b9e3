"""Figures as SVG elements of a page, or as files.

In a page, text stays text, and colours become CSS variables, so that the page's
light or dark theme applies. Points have a <title>, which a browser shows under
the pointer without any script.
"""
import io
import re

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.markers import MarkerStyle
import numpy as np

from vfljax.report import usual
from vfljax.report.plots import DASHES, MARKERS, PAGE, Drawn, hue
from vfljax.report.text import markup

_VARIABLES = {PAGE.ink: '--ink', PAGE.faint: '--line', PAGE.zone: '--zone'} | {
    color: f'--s{i}' for i, color in enumerate(PAGE.series)
}
DPI = 200  # Of PNG files.


def inline(drawn: Drawn, name: str, description: str) -> str:
  """A figure drawn in `PAGE` as an <svg> element, the same bytes each time.

  Args:
    drawn: The figure.
    name: Its name: letters, digits, '-'.
    description: What it shows, for readers who cannot see it.
  """
  text = _svg(drawn, name)
  for color, variable in _VARIABLES.items():
    text = text.replace(color, f'var({variable})')
  box = re.search(r'viewBox="[^"]*"', text)
  assert box
  start = f'<svg {box[0]} role="img" aria-label="{markup(description)}">'
  inner = text[text.index('>') + 1:]
  # var() works in a style, but not in an SVG attribute.
  inner = re.sub(r'(fill|stroke)="(var\([^)]*\))"', r'style="\1: \2"', inner)
  inner = inner.replace('</svg>', f'{_spots(drawn)}</svg>')
  return start + re.sub(r'\n\s*', '\n', inner).strip()


def saved(drawn: Drawn, name: str, kind: str) -> bytes:
  """A figure drawn in `PRINT` as a file: 'svg' or 'png'."""
  if kind == 'svg':
    return _svg(drawn, name).encode()
  content = io.BytesIO()
  FigureCanvasAgg(drawn.figure)
  with usual.settings():
    drawn.figure.savefig(content, format='png', dpi=DPI, metadata={})
  return content.getvalue()


@usual.settings()
def swatch(style: int) -> str:
  """A defense's line and marker for a legend, as a small SVG."""
  path = MarkerStyle(MARKERS[style % len(MARKERS)])
  outline = path.get_path().transformed(path.get_transform())
  points = ' '.join(
      'M' + ' '.join(f'{15 + 9 * x:.1f},{6 - 9 * y:.1f}' for x, y in polygon)
      for polygon in map(np.asarray, outline.to_polygons())
  )
  dash = {'-': '', '--': '6 3', '-.': '6 3 2 3', ':': '2 3'}[
      DASHES[style % len(DASHES)]
  ]
  color = f'var(--s{hue(style)})'
  return (
      '<svg class="swatch" viewBox="0 0 30 12" aria-hidden="true">'
      f'<path d="M0 6H30" stroke="{color}" stroke-width="1.6"'
      f' stroke-dasharray="{dash}"/><path d="{points}" fill="{color}"/></svg>'
  )


def _svg(drawn: Drawn, name: str) -> str:
  buffer = io.StringIO()
  with usual.settings(hashsalt=name, fonttype='none'):
    FigureCanvasSVG(drawn.figure).print_svg(buffer, metadata={
        'Date': None, 'Creator': None, 'Format': None, 'Type': None,
    })
  text = buffer.getvalue()
  text = text[text.index('<svg'):]
  text = re.sub(r'<metadata>.*?</metadata>', '', text, flags=re.DOTALL)
  text = re.sub(r'<style.*?</style>', '', text, flags=re.DOTALL)
  text = re.sub(r' id="[\w.]+_\d+"', '', text)  # Not unique on a page.
  text = re.sub(r'<!--.*?-->', '', text, flags=re.DOTALL)
  return re.sub(r'font-family: [^;"]*; ', '', text)  # The page's font is used.


def _spots(drawn: Drawn) -> str:
  """Invisible circles over the points, with the texts under a pointer."""
  height = drawn.figure.get_figheight() * 72
  return ''.join(
      f'<circle class="spot" cx="{x:.1f}" cy="{height - y:.1f}" r="7">'
      f'<title>{markup(said)}</title></circle>'
      for (x, y), said in zip(drawn.spots, drawn.titles, strict=True)
  )
