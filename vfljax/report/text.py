"""Escapes names and sentences for HTML and Markdown.

Data sets, columns and defenses' labels get their names from users and files, so
they may contain characters that have a meaning in a page or a table.
"""
import html
import re
import unicodedata

_SPECIAL = re.compile(r'([\\`*\[\]|~$])')  # Special anywhere in Markdown.
_OUTER = re.compile(r'(?<![^\W_])_|_(?![^\W_])')  # Plain inside a word.


def printable(text: str) -> str:
  """The text in one line, with invisible characters replaced by U+FFFD.

  These are control characters, marks that change the direction of writing, and
  lone surrogates, which no file can store.
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
