"""Files of a work directory are damaged in every way, and the run goes on.

With the same command it ends with the same results, byte for byte, or refuses
in two lines. What no digest covers is found by what depends on it.
"""
import random
import shutil

import pytest

from tests.faults import tiny
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk

KINDS = {'finished': None, 'half done': ('iso/0.1', 3)}


@pytest.fixture(scope='module')
def places(tmp_path_factory):
  """A finished and a half-done work directory; and an untouched run's bytes."""
  folder, found = tmp_path_factory.mktemp('places'), {}
  for kind, leave_at in KINDS.items():
    found[kind] = folder / kind
    try:
      tiny.run(found[kind], leave_at)
    except tiny.Left:
      pass
    # What a report leaves there; a half-done run may have one of before.
    for name in ('summary.md', 'report.html'):
      disk.write_text(found[kind] / name, 'A report.')
    (found[kind] / '.lock').touch()
  return found


def gone(file):
  file.unlink()


def folder(file):
  file.unlink()
  file.mkdir()
  (file / 'inside').write_text('')


def to(change):
  """A damage that makes other bytes of a file's bytes."""
  return lambda file: file.write_bytes(change(file.read_bytes()))


def flipped(place):
  """A bit is flipped at a share of the file's length."""
  def flip(content):
    if not content:
      return b'\0'
    at = min(int(place * len(content)), len(content) - 1)
    return content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1:]
  return to(flip)


HOWS = {
    'gone': gone, 'a folder': folder, 'empty': to(lambda c: b''),
    'cut': to(lambda c: c[:len(c) // 2]), 'cut by one': to(lambda c: c[:-1]),
    'longer': to(lambda c: c + b'\0'), 'twice': to(lambda c: c + c),
    'zeros': to(lambda c: bytes(len(c))),
    'garbage': to(lambda c: random.Random(len(c)).randbytes(len(c) + 1)),
    'another object': to(lambda c: b'{"rows": 3}'),
    'not an object': to(lambda c: b'[[], null, "x"]'),
} | {f'flipped at {x:.2f}': flipped(x) for x in (0, 0.05, 0.3, 0.61, 0.9, 1)}


def check(template, name, how, place, whole):
  """Damages a copy and runs twice; says how that ended."""
  shutil.rmtree(place, ignore_errors=True)
  shutil.copytree(template, place)
  HOWS[how](place / name)
  try:
    tiny.run(place, saves=1)
  except UserError as error:
    assert len(str(error).splitlines()) <= 2, error
    return 'refused'
  assert tiny.results(place) == whole, (name, how)
  tiny.run(place, saves=1)  # Whatever was set aside, the rest is in order.
  assert tiny.results(place) == whole, (name, how)
  return 'survived'


def cases(template):
  files = sorted(p for p in template.rglob('*') if p.is_file())
  return [(f.relative_to(template), how) for f in files for how in HOWS]


def damage(template, kind, some, folder, tally, whole):
  """Only a folder where the lock should be may be refused."""
  assert some
  for name, how in some:
    ending = check(template, name, how, folder / 'copy', whole)
    tally(f'damages, {kind}', ending)
    refusable = (name.name, how) == ('.lock', 'a folder')
    assert ending == ('refused' if refusable else 'survived'), (name, how)


@pytest.mark.faults
@pytest.mark.parametrize('kind', KINDS)
def test_every_damage_to_every_file(places, kind, tmp_path, tally, capsys):
  whole = tiny.results(places['finished'])
  damage(places[kind], kind, cases(places[kind]), tmp_path, tally, whole)


@pytest.mark.parametrize('kind', KINDS)
def test_some_damages_to_some_files(places, kind, tmp_path, tally, capsys):
  whole = tiny.results(places['finished'])
  some = random.Random(0).sample(cases(places[kind]), 12)
  damage(places[kind], kind, some, tmp_path, tally, whole)


@pytest.mark.faults
def test_both_checkpoints_damaged_at_once(places, tmp_path, tally, capsys):
  whole, template = tiny.results(places['finished']), places['half done']
  for how in HOWS:
    copy = tmp_path / how
    shutil.copytree(template, copy)
    for step in ('2', '3'):
      HOWS[how](copy / 'checkpoints/iso@0.1' / step / 'digests.json')
    tiny.run(copy)
    assert tiny.results(copy) == whole, how
    tally('damages, both checkpoints')
  assert 'its unit starts again' in capsys.readouterr().err
