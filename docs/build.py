"""Builds the documentation: `make docs`, or `python -m docs.build`.

  out/docs/source   pages: docs/pages, parts of README.md and BUILD.md, the
                    papers' READMEs, and those made from registries and records
  out/docs/site     what a browser opens, from a folder and without a network

Zensical makes HTML of the pages, mkdocstrings of docstrings. A warning of
either, a link into nothing and anything from another host are errors.
"""
import argparse
from collections.abc import Iterator
import json
from pathlib import Path
import re
import shutil
import subprocess
import sys

from docs import gallery, methods, sources
from experiments import evidence

HERE = Path(__file__).parent
OUT = sources.ROOT / 'out' / 'docs'
_SHIM = 'https://unpkg.com/iframe-worker/shim'
_FOREIGN = re.compile(
    r'<(?:script|img|iframe|source)[^>]*\ssrc="?(?:https?:)?//[^">]*|'
    r'<link[^>]*rel="?(?:stylesheet|preconnect|preload)[^>]*https?://[^">]*'
)

Nav = list[dict[str, object]]


def papers() -> dict[str, str]:
  """{README of a paper, or of what else is measured: its page}."""
  names = [*evidence.papers(), 'large', 'bench']
  return {
      f'experiments/{name}/README.md': f'results/{name}.md' for name in names
  } | {
      f'experiments/{name.upper()}.md': f'results/{name}.md'
      for name in ('claims', 'again')
  }


def known() -> dict[str, str]:
  """{file of the repository, or a part of it: the page that it is}."""
  parts = (
      'add-a-defense', 'add-an-attack', 'add-a-data-set', 'add-a-network',
  )
  own = sorted((HERE / 'pages').rglob('*.md'))
  return papers() | {
      p.relative_to(sources.ROOT).as_posix():
          p.relative_to(HERE / 'pages').as_posix() for p in own
  } | {
      'README.md': 'index.md', 'BUILD.md': 'working.md',
      'SECURITY.md': 'security.md',
  } | {f'BUILD.md#{part}': 'add.md' for part in parts}


def write(out: Path) -> None:
  """Writes all pages and the configuration below `out`.

  Raises:
    ValueError: for an include of something that is not there.
  """
  source = out / 'source'
  shutil.rmtree(out, ignore_errors=True)
  for page, text in pages(source):
    place = source / page
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, 'utf-8')
  for file in (HERE / 'theme').iterdir():
    shutil.copyfile(file, source / file.name)
  config = (HERE / 'zensical.toml').read_text('utf-8')
  (out / 'zensical.toml').write_text(config.replace(
      'nav = []', f'nav = {toml(nav())}', 1
  ).replace('ROOT', str(sources.ROOT)), 'utf-8')


def pages(source: Path) -> Iterator[tuple[str, str]]:
  """(page, its Markdown), all of them; pictures are put below `source`."""
  for file in sorted((HERE / 'pages').rglob('*.md')):
    page = file.relative_to(HERE / 'pages').as_posix()
    yield page, sources.included(
        file.read_text('utf-8'), page, known(), source
    )
  for file, page in papers().items():
    text = (sources.ROOT / file).read_text('utf-8')
    yield page, sources.adapted(text, file, page, known(), source)
  yield from methods.pages().items()
  yield 'gallery.md', gallery.page(source)


def nav() -> Nav:
  """The table of contents."""
  named = lambda kind: [
      {'All': f'{kind}/index.md'},
      *({Path(p).stem: p} for p in sorted(methods.pages())
        if p.startswith(f'{kind}/') and not p.endswith('index.md')),
  ]
  return [
      {'Start': [
          {'vfljax': 'index.md'}, {'Ten minutes': 'tutorial.md'},
          {'Which tool': 'which.md'},
          {'A round, and who sees what': 'round.md'},
          {'A report, looked at': 'report.md'},
          {'Numbers for a paper': 'paper.md'},
          {'What it refuses': 'faq.md'},
          {'Tried as a new user': 'new-user.md'},
      ]},
      {'Use one piece': [
          {title(p): f'use/{p.name}'}
          for p in sorted((HERE / 'pages/use').glob('*.md'))
      ]},
      {'Defenses': named('defenses')}, {'Attacks': named('attacks')},
      {'Measured': [
          {'Gallery': 'gallery.md'},
          *({title(sources.ROOT / file): page}
            for file, page in papers().items()),
      ]},
      {'Extend': [
          {'Add your own': 'add.md'}, {'Work on vfljax': 'working.md'},
          {'Security': 'security.md'},
      ]},
      {'Coming from': [
          {'VFLAIR': 'from-vflair.md'}, {'SecretFlow': 'from-secretflow.md'},
      ]},
      {'Reference': [
          {title(p): f'reference/{p.name}'}
          for p in sorted((HERE / 'pages/reference').glob('*.md'))
      ]},
  ]


def title(file: Path) -> str:
  """A page's first heading."""
  found = re.search(r'^# (.+)$', file.read_text('utf-8'), re.MULTILINE)
  return found[1].replace('`', '') if found else file.stem


def toml(value: object) -> str:
  """Lists, one-entry tables and texts as TOML writes them on one line."""
  if isinstance(value, list):
    return '[' + ', '.join(map(toml, value)) + ']'
  if isinstance(value, dict):
    return '{' + ', '.join(
        f'{json.dumps(k)} = {toml(v)}' for k, v in value.items()
    ) + '}'
  return json.dumps(value)


def rendered(out: Path) -> list[str]:
  """Makes HTML; what is wrong with it, in words."""
  program = Path(sys.executable).parent / 'zensical'
  done = subprocess.run(
      [program, 'build', '--strict', '--clean', '-f', out / 'zensical.toml'],
      capture_output=True, text=True, check=False,
  )
  said = [
      line for line in (done.stdout + done.stderr).splitlines()
      if line.strip() and not line.startswith((
          'Build started', 'Build finished', 'No issues found'
      ))
  ]
  if done.returncode or said:
    return said or [f'zensical: exit code {done.returncode}']
  return local(out / 'site')


def local(site: Path) -> list[str]:
  """Has pages take nothing from elsewhere; what they still would, in words.

  The theme's search runs in a worker, which browsers refuse to files; what
  stands in for it there comes with us (`theme/worker.js`).
  """
  wrong = []
  for file in sorted(site.rglob('*.html')):
    up = '../' * (len(file.relative_to(site).parts) - 1)
    text = file.read_text('utf-8').replace(_SHIM, f'{up}worker.js')
    file.write_text(text, 'utf-8')
    wrong += [f'{file}: {found[0]}' for found in _FOREIGN.finditer(text)]
  return wrong


def main(argv: list[str] | None = None) -> int:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument('--pages', action='store_true',
                      help='write the pages alone')
  asked = parser.parse_args(argv)
  try:
    write(OUT)
  except ValueError as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  if asked.pages:
    return 0
  if wrong := rendered(OUT):
    print('\n'.join(wrong), file=sys.stderr)
    return 1
  print(f'Open {OUT / "site" / "index.html"}')
  return 0


if __name__ == '__main__':
  sys.exit(main())
