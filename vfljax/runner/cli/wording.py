"""Messages for who calls `vfljax.run`: in Python's words, not in flags."""
import re
import shlex

# Flags in messages, which are arguments and fields here, with their values: of
# words, quoted parts and parentheses, up to what ends a sentence.
_FLAG = re.compile(
    r'--(config\.[\w.]*\w|(?:budget|cache|devices|max_leak|workdir)\b)'
    r"""(?:=(\.\.\.|(?:'[^']*'|"[^"]*"|\([^()\s]*\)|[^\s'"()])+?"""
    r'(?=[,.:;)]*(?:\s|$))))?(\s+(?=--config\.\w))?'
)
_LIST = re.compile(r'--list[ =](?=\w)')  # What a program does not print.
_OF_ATTACKS = re.compile(r'config\.attack\.(\w+)\.(\w+)')
# Values that Python reads as they are, or that stand for others.
_AS_IT_IS = re.compile(
    r'[-+]?\d[\d.]*(?:e[-+]?\d+)?|True|False|<.*>|\(.*\)|\.\.\.'
)


def in_python(text: str) -> str:
  """A text with arguments and fields of `vfljax.run` in place of flags."""

  def written(flag: re.Match) -> str:
    name, value, more = flag.groups()
    own = _OF_ATTACKS.fullmatch(name)  # Which are no fields.
    if value is None:
      name = f"config.attack.own['{own[1]}']['{own[2]}']" if own else name
      return name + (more or '')
    if not _AS_IT_IS.fullmatch(value):
      quoted = "'" in value or '"' in value
      value = repr(''.join(shlex.split(value)) if quoted else value)
    said = (
        f'config.attack.own=dict({own[1]}=dict({own[2]}={value}))' if own
        else f'{name}={value}'
    )
    return f'{said},{more}' if more else said

  return _FLAG.sub(written, _LIST.sub('vfljax --list ', text))
