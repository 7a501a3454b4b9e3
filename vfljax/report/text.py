"""Names from anywhere, made safe for a page and for Markdown.

A data set, a defense's label, a column: people and files name them, so that
they may have whatever a page or a table would take for its own.
"""
import html
import re
import unicodedata

_SPECIAL = re.compile(r'([\\`*\[\]|~$])')  # Of Markdown, anywhere in a line.
_OUTER = re.compile(r'(?<![^\W_])_|_(?![^\W_])')  # Inside a word it is itself.


def printable(text: str) -> str:
  """One line; what has no shape of its own shows as a question mark.

  That is control characters, marks that turn the direction of what follows,
  and halves of a character, which no file takes.
  """
  return ''.join(
      '\ufffd' if unicodedata.category(c) in ('Cc', 'Cf', 'Cs') else c
      for c in ' '.join(text.split())
  )


def markup(text: str) -> str:
  """Text for HTML, between tags or in an attribute."""
  return html.escape(printable(text))


def markdown(text: str) -> str:
  """Text for a line of Markdown or a cell of a table."""
  plain = printable(text).replace('&', '&amp;').replace('<', '&lt;')
  return _OUTER.sub(r'\\_', _SPECIAL.sub(r'\\\1', plain))
