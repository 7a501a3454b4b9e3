"""Every code block in README, BUILD.md and the documentation runs.

Python blocks are run page by page, one after the other. A block that a page
calls 'the whole of `vfljax/...py`' becomes that module, and functions in a
block that are called test_... are called. Of shell commands, ours are parsed
with their flags; `OTHERS` lists what is not ours. A block behind
`<!-- not run: why -->` does not run, one behind `<!-- needs: package -->` where
that package is.
"""
import contextlib
import importlib
import importlib.util
import inspect
import io
from pathlib import Path
import re
import shlex
import sys
import types

import pytest

from vfljax import algorithms, attacks, data, defenses, nets
from vfljax.commands import dispatch
from vfljax.runner.cli import arguments
from vfljax.runner.machine import device

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in (
        'README.md', 'BUILD.md', 'SECURITY.md', 'CONTRIBUTING.md',
        'experiments/bench/README.md',
    )),
    *sorted((ROOT / 'docs' / 'pages').rglob('*.md')),
]
BLOCK = re.compile(
    r'(?:<!-- (not run|needs): ([^>]+?) -->\n)?^```(\w*)\n(.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
INDENTED = re.compile(r'(?<=\n\n)(?: {4}[^\n]*\n)+')
WHOLE = re.compile(r'whole\s+of\s+`(vfljax/[\w/]+)\.py`[^`]*\Z')
# Not ours to run in a test: installers, gits, the reader's own program, our own
# scripts of two lines, and a registry's line.
OTHERS = re.compile(
    r"(python -m )?pip |git |bash \.ci/run|pytest |python mine\.py|cd |"
    r"\.venv/bin/python -m pytest|python -c 'import jax|[\w.]+=\w+|pip-audit "
)
NOT_RUN = {
    ('BUILD.md', 'part of experiments/mid/fig5.py, whose test compares them'),
    ('docs/pages/use/tables.md', 'there are no images here'),
}


def named(page):
  return page.relative_to(ROOT).as_posix()


def blocks(page, *languages):
  """(text before it, code, 'not run' or 'needs' or None, its reason)."""
  text = page.read_text('utf-8')
  return [
      (text[:m.start()], m[4], m[1], m[2])
      for m in BLOCK.finditer(text) if m[3] in languages
  ]


@pytest.fixture
def at_home(tmp_path, monkeypatch):
  """What a block's run keeps is kept in a folder of the test.

  And JAX stays set up as all tests have it.
  """
  for name in 'HOME', 'USERPROFILE':
    monkeypatch.setenv(name, str(tmp_path))
  monkeypatch.setattr(device, 'set_up', lambda *_: None)


@pytest.fixture
def registries(monkeypatch):
  """Puts them back as they were: a block's own entry is no other test's."""
  for module in (attacks, data, defenses, nets):
    monkeypatch.setattr(module, 'REGISTRY', module.REGISTRY.copy())
  for name in 'ADDED', 'AGGREGATIONS', 'NEEDS_ALL':
    own = getattr(algorithms, name).copy()
    monkeypatch.setattr(algorithms, name, own)


def become(place, code, monkeypatch):
  """Makes a module of a block, under the name that its page gives it."""
  name = place.replace('/', '.')
  parent, _, short = name.rpartition('.')
  module = types.ModuleType(name)
  exec(compile(code, f'{place}.py', 'exec'), module.__dict__)
  monkeypatch.setitem(sys.modules, name, module)
  monkeypatch.setattr(
      importlib.import_module(parent), short, module, raising=False
  )
  if hasattr(module, 'SOURCE'):
    monkeypatch.setitem(data.REGISTRY, short, module.SOURCE)


@pytest.mark.parametrize('page', [
    # What is read first is tried with every change.
    pytest.param(p, marks=() if p == PAGES[0] else pytest.mark.slow)
    for p in PAGES if blocks(p, 'python')
], ids=named)
@pytest.mark.usefixtures('at_home', 'registries')
def test_python_blocks_run(page, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  scope = {'__name__': 'docs'}
  for i, (before, code, mark, why) in enumerate(blocks(page, 'python')):
    if mark == 'not run' or mark and not importlib.util.find_spec(why):
      continue
    if found := WHOLE.search(before):
      become(found[1], code, monkeypatch)
      continue
    known = set(scope)
    exec(compile(code, f'{named(page)}, block {i}', 'exec'), scope)
    for name in set(scope) - known:
      if name.startswith('test_'):
        wants = inspect.signature(scope[name]).parameters
        scope[name](*[tmp_path] * len(wants))


def test_what_does_not_run_is_known():
  found = {
      (named(page), why) for page in PAGES
      for _, _, mark, why in blocks(page, 'python') if mark == 'not run'
  }
  assert found == NOT_RUN


def test_the_part_of_an_experiment_is_one():
  (_, code, _, _), = [
      b for b in blocks(ROOT / 'BUILD.md', 'python') if b[2] == 'not run'
  ]
  whole = (ROOT / 'experiments' / 'mid' / 'fig5.py').read_text('utf-8')
  names = re.findall(r"(\w+)='(\w+)'", code)
  assert names and all(f"{k}='{v}'" in whole for k, v in names)
  assert 'variants.choose(variant, VARIANTS)' in whole


def commands(page):
  """Lines of shell, their continuations joined."""
  text = page.read_text('utf-8')
  shell = [code for _, code, _, _ in blocks(page, 'bash')]
  shell += [m[0] for m in INDENTED.finditer(BLOCK.sub('', text))]
  for part in shell:
    for line in re.sub(r'\\\n\s*', ' ', part).splitlines():
      words = shlex.split(line, comments=True)
      if words:
        yield line.strip(), words


def flags(words):
  return [w.partition('=')[0] for w in words if w.startswith('--')]


def check_ours(words, monkeypatch):
  """An experiment's or a command's line: every flag is one of its flags."""
  if words[1:] and not words[1].startswith('-'):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit):
      dispatch.command(words[1])(['--help'], None)
    wrong = [f for f in flags(words) if f not in said.getvalue()]
    assert not [f for f in wrong if not f.startswith('--config.')], wrong
    return
  monkeypatch.chdir(ROOT)
  mine = re.compile(r'--config=(?!experiments/).*')
  fixed = [mine.sub('--config=experiments/quickstart.py', w) for w in words]
  arguments.parse(['vfljax', *(
      w for w in fixed[1:] if not w.startswith('--record')
  )])


def check_module(name, words):
  spec = importlib.util.find_spec(name)
  assert spec and spec.origin, name
  source = Path(spec.origin).read_text('utf-8')
  for flag in flags(words):
    # 'absl' and 'argparse' write them in different ways.
    assert flag in source or f"'{flag[2:]}'" in source, flag


@pytest.mark.parametrize('page', PAGES, ids=named)
def test_shell_commands_are_commands(page, monkeypatch):
  targets = set(re.findall(
      r'^([\w-]+):', (ROOT / 'Makefile').read_text('utf-8'), re.MULTILINE
  ))
  for line, words in commands(page):
    while re.fullmatch(r'[A-Z_]+=.*', words[0]):  # A variable for the command.
      words = words[1:]
    line = line[max(line.find(words[0]), 0):]  # Not there where it is quoted.
    if words[:2] == ['python', 'launch.py']:
      check_ours(words[1:], monkeypatch)
    elif words[0] == 'vfljax':
      check_ours(words, monkeypatch)
    elif words[0].startswith('--config.'):  # Flags of a run, alone.
      run = ['vfljax', '--config=experiments/quickstart.py']
      check_ours(run + words, monkeypatch)
    elif words[0] == 'make':
      assert {w for w in words[1:] if '=' not in w} <= targets, line
    elif words[:2] == ['python', '-m'] and words[2] != 'pip':
      check_module(words[2], words[3:])
    else:
      assert OTHERS.match(line), line
