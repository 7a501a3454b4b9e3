"""Pictures of a report as people see it, and what axe-core says of it.

  make screens, or python -m docs.screens [--report=out/mine/report.html]

A window, a phone, a dark room and paper, into docs/screens, from where they go
into the documentation; whole pages into out/screens, to be looked at. axe-core
looks for what some cannot read or cannot find, contrasts and names for pictures
among them, in light and dark, on a window and a phone: a violation is an error.

Chromium takes the pictures, npm brings axe-core; neither is part of vfljax.
"""
import argparse
import io
import json
from pathlib import Path
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

from PIL import Image

from docs.browser import Browser, Missing
from vfljax.need import extra

ROOT = Path(__file__).parents[1]
OUT = ROOT / 'out' / 'screens'
SHOWN = Path(__file__).parent / 'screens'
AXE = 'axe-core@4.14.1'
COLORS = 256  # Of the pictures in the documentation, which makes them small.
PAPER_DPI = 80
PAGES = 3  # Of paper, side by side.


class View(NamedTuple):
  """How somebody looks at a page.

  Attributes:
    width: Of the window, in CSS pixels.
    height: What the documentation shows of the page.
    scheme: 'light' or 'dark'.
    scale: Pixels for one of CSS.
  """

  width: int
  height: int
  scheme: str = 'light'
  scale: float = 1

  @property
  def media(self) -> dict[str, str]:
    return {'prefers-color-scheme': self.scheme}


VIEWS = {
    'desktop': View(1200, 1500), 'dark': View(1200, 1500, 'dark'),
    'phone': View(400, 1400, scale=1.5),
    'phone-dark': View(400, 1400, 'dark', 1.5),
}
# In the documentation; the other is looked at by axe-core alone.
PICTURES = ('desktop', 'phone', 'dark')


def axe(folder: Path) -> str:
  """axe-core's script, which npm puts below `folder` if it is not there.

  Raises:
    Missing: without npm, or if it cannot get it.
  """
  script = folder / 'node_modules' / 'axe-core' / 'axe.min.js'
  if not script.is_file():
    if not shutil.which('npm'):
      raise Missing(
          'There is no npm, which brings axe-core. Debian and Ubuntu: apt '
          'install npm. Without it: --no-axe takes the pictures alone.'
      )
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ['npm', 'install', '--prefix', str(folder), '--no-save', '--no-audit',
         '--no-fund', '--ignore-scripts', AXE],
        capture_output=True, text=True, check=False,
    )
    if done.returncode or not script.is_file():
      raise Missing(
          f'npm cannot get {AXE}: {done.stderr.strip()[-300:]}\nIs its '
          'registry reachable? --no-axe takes the pictures alone.'
      )
  return script.read_text('utf-8')


def violations(browser: Browser, script: str) -> list[str]:
  """What axe-core finds on the page that is open, a line a rule."""
  browser.value(f'{script};0')
  found = json.loads(browser.value(
      "axe.run(document, {resultTypes: ['violations']})"
      '.then(all => JSON.stringify(all.violations))'
  ))
  return [
      f'{one["id"]} ({one["impact"]}), in {len(one["nodes"])} places: '
      f'{one["help"]}: {_where(one["nodes"][0])}' for one in found
  ]


def _where(node: dict[str, Any]) -> str:
  why = [c['message'] for kind in ('any', 'all', 'none') for c in node[kind]]
  return f'{" ".join(map(str, node["target"]))}: {"; ".join(why)[:200]}'


def small(png: bytes, height: int = 0) -> Image.Image:
  """A picture of few colours, cut off below `height` pixels."""
  picture = Image.open(io.BytesIO(png)).convert('RGB')
  if height:
    picture = picture.crop((0, 0, picture.width, min(height, picture.height)))
  return picture.quantize(
      COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
  )


def sheets(pdf: bytes) -> list[Image.Image]:
  """A PDF's pages as pictures.

  Raises:
    ValueError: with what to install for it.
  """
  with extra('screens'):
    import pypdfium2  # pyright: ignore[reportMissingImports]
  document = pypdfium2.PdfDocument(pdf)
  zoom: Any = PAPER_DPI / 72  # It is declared to be whole, and need not be.
  return [page.render(scale=zoom).to_pil() for page in document]


def side_by_side(pages: list[Image.Image], gap: int = 12) -> bytes:
  """Sheets of paper on a grey table."""
  width = sum(p.width for p in pages) + gap * (len(pages) + 1)
  height = max(p.height for p in pages) + 2 * gap
  table, x = Image.new('RGB', (width, height), '#8a9097'), gap
  for page in pages:
    table.paste(page, (x, gap))
    x += page.width + gap
  buffer = io.BytesIO()
  table.save(buffer, 'png')
  return buffer.getvalue()


def take(report: Path, browser: Browser, script: str) -> list[str]:
  """Takes all pictures of a report; what axe-core finds, a line each."""
  wrong = []
  for folder in (OUT, SHOWN):
    folder.mkdir(parents=True, exist_ok=True)
  for name, view in VIEWS.items():
    browser.open(report, view.width, view.height, view.scale, view.media)
    whole = browser.picture(whole=True)
    (OUT / f'{name}.png').write_bytes(whole)
    if name in PICTURES:
      cut = small(whole, round(view.height * view.scale))
      cut.save(SHOWN / f'{name}.png', optimize=True)
    if script:
      wrong += [f'{name}: {line}' for line in violations(browser, script)]
  browser.open(report, 800, 1100)
  pdf = browser.paper()
  (OUT / 'paper.pdf').write_bytes(pdf)
  pages = sheets(pdf)
  for i, page in enumerate(pages, start=1):
    page.save(OUT / f'paper-{i}.png')
  small(side_by_side(pages[:PAGES])).save(SHOWN / 'paper.png', optimize=True)
  return wrong


def main(argv: list[str] | None = None) -> int:
  """Returns 0, 1 if axe-core finds something, 2 if something is missing."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument(
      '--report', type=Path, default=ROOT / 'out/quickstart/report.html'
  )
  parser.add_argument('--browser', default='', help='path of Chromium')
  parser.add_argument('--no-axe', action='store_true')
  asked = parser.parse_args(argv)
  try:
    if not asked.report.is_file():
      raise Missing(f'There is no report {asked.report}: make demo makes one.')
    browser = Browser(asked.browser)
    script = '' if asked.no_axe else axe(OUT / 'tools')
    with browser:
      wrong = take(asked.report, browser, script)
  except (Missing, ValueError) as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  print('\n'.join(wrong) or f'Pictures: {SHOWN} and {OUT}', file=(
      sys.stderr if wrong else sys.stdout
  ))
  return 1 if wrong else 0


if __name__ == '__main__':
  sys.exit(main())
