"""Messages for who calls from Python: in its words, not in flags."""
import re
import shlex

# Flags in messages, which are arguments and fields here, with their values: of
# words, quoted parts and parentheses, up to what ends a sentence.
_FLAG = re.compile(
    r'--(config\.[\w.]*\w|(?:budget|cache|devices|label|max_leak|named|'
    r'record|workdir)\b)'
    r"""(?:=(\.\.\.|(?:'[^']*'|"[^"]*"|\([^()\s]*\)|[^\s'"()])+?"""
    r'(?=[,.:;)]*(?:\s|$))))?(\s+(?=--config\.\w))?'
)
# What a program does not print.
_LIST = re.compile(r'--list[ =](?=\w)')
# Whole flags in quotes, as a shell needs them.
_QUOTED = re.compile(r"'(--[\w.]+)=([^']*)'")
# How a file is named to `vfljax.recommend`, which has an argument for it.
_FILE = '--config.data.path=my.csv --label=', "data='my.csv', --label="
_HELP = re.compile(r'(?<!vfljax )--help\b')
_OF_ATTACKS = re.compile(r'config\.attack\.(\w+)\.(\w+)')
# Values that Python reads as they are, or that stand for others.
_AS_IT_IS = re.compile(
    r'[-+]?\d[\d.]*(?:e[-+]?\d+)?|True|False|<.*>|\(.*\)|\.\.\.'
)


def in_python(text: str, keys: bool = False) -> str:
  """A text with arguments and a configuration's fields in place of flags.

  Args:
    text: A message of the command line.
    keys: Whether fields are keys of a dictionary, as of `vfljax.recommend`,
      and not attributes.
  """

  def field(name: str, value: str | None) -> str:
    key = name.removeprefix('config.')
    if keys and key != name:
      if value is None:
        return f'config[{key!r}]'
      return f'config={{{key!r}: {value}}}'
    own = _OF_ATTACKS.fullmatch(name)  # Which are no fields.
    if not own:
      return name if value is None else f'{name}={value}'
    if value is None:
      return f"config.attack.own['{own[1]}']['{own[2]}']"
    return f'config.attack.own=dict({own[1]}=dict({own[2]}={value}))'

  def written(flag: re.Match) -> str:
    name, value, more = flag.groups()
    if value is None:
      return field(name, None) + (more or '')
    if not _AS_IT_IS.fullmatch(value):
      quoted = "'" in value or '"' in value
      value = repr(''.join(shlex.split(value)) if quoted else value)
    said = field(name, value)
    return f'{said},{more}' if more else said

  text = text.replace(*_FILE) if keys else text
  text = _QUOTED.sub(lambda m: f'{m[1]}={shlex.quote(m[2])}', text)
  text = _HELP.sub('vfljax --help', _LIST.sub('vfljax --list ', text))
  return _FLAG.sub(written, text)
