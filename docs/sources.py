"""Pages from the project's own Markdown, with links that still work.

README.md, BUILD.md and the papers' READMEs are written for a clone. On the site
a link leads to the page that their target has become; what is no page is named,
and pictures come along.
"""
from collections.abc import Mapping
import posixpath
import re
import shutil
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
INCLUDE = re.compile(r'^<!-- include: (\S+?)(?:#(.+?))? -->$', re.MULTILINE)
_MARKER = '<!-- (?:(?:table|is|needs|not run): [^>]+|end) -->'
_COMMENT = re.compile(rf'^{_MARKER}\n|{_MARKER}', re.MULTILINE)
_LINK = re.compile(r'(!?)\[([^\]]*)\]\(([^)\s]+)\)')
_FENCE = re.compile(
    r'(^```.*?^```|^(?: {4}[^\n]*\n)+)', re.MULTILINE | re.DOTALL
)


def section(text: str, title: str) -> str:
  """A section of second level without its heading.

  Raises:
    ValueError: if there is none of that title.
  """
  found = re.search(
      rf'^## {re.escape(title)}\n(.*?)(?=^## |\Z)', text,
      re.MULTILINE | re.DOTALL,
  )
  if not found:
    raise ValueError(f'There is no section {title!r}.')
  return found[1].strip() + '\n'


def included(text: str, page: str, pages: Mapping[str, str], out: Path) -> str:
  """A page's text with what its include lines name.

  Args:
    text: '<!-- include: BUILD.md#Add a defense -->' on a line of its own.
    page: Where the page will be below `out`.
    pages: {file of the repository: the page that it has become}.
    out: Where pictures are copied to.

  Raises:
    ValueError: if a file or a section is not there.
  """

  def put(match: re.Match) -> str:
    file = ROOT / match[1]
    if not file.is_file():
      raise ValueError(f'{page} includes {match[1]}, which is not there.')
    whole = file.read_text('utf-8')
    part = section(whole, match[2]) if match[2] else whole
    return adapted(part, match[1], page, pages, out)

  return INCLUDE.sub(put, _COMMENT.sub('', text))


def adapted(
    text: str, source: str, page: str, pages: Mapping[str, str], out: Path
) -> str:
  """Markdown of a file as that of a page: no markers, links that lead on."""
  text = _COMMENT.sub('', text)
  where = posixpath.dirname(source)

  def relink(match: re.Match) -> str:
    image, label, target = match.groups()
    if target.startswith(('http', '#')):
      return match[0]
    path, hash_, anchor = target.partition('#')
    path = posixpath.normpath(posixpath.join(where, path))
    if image:
      shown = f'images/{path.replace("/", "-")}'
      (out / 'images').mkdir(parents=True, exist_ok=True)
      shutil.copyfile(ROOT / path, out / shown)
      return f'![{label}]({relative(shown, page)})'
    known = next(
        (pages[p] for p in (f'{path}#{anchor}', path) if p in pages), None
    )
    if known is None:
      return label if path in label else f'{label} (`{path}`)'
    keep = hash_ + anchor if f'{path}#{anchor}' not in pages else ''
    return f'[{label}]({relative(known, page)}{keep})'

  parts = _FENCE.split(text)  # Odd ones are code.
  return ''.join(
      part if i % 2 else _LINK.sub(relink, part)
      for i, part in enumerate(parts)
  )


def relative(target: str, page: str) -> str:
  """A link from a page to another file of the site."""
  return posixpath.relpath(target, str(PurePosixPath(page).parent))
