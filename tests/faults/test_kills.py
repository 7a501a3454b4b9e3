"""Runs are killed at every kind of moment, and the same command goes on.

After each the same results, byte for byte, as of a run that nobody touched.
"""
import random
import shutil
import signal
import time

import jax
import pytest

from tests.faults import child

# `make test` kills two runs in test_interrupted; these take minutes.
pytestmark = pytest.mark.faults

# Files, and how many moments of writing them are tried: see `disk.fault`.
MOMENTS = {
    '*/.config.json': 3, '*/config.json': 3, '*/results.jsonl': 9,
    '*/timings.json': 5, '*/parts/*.npz': 6, '*/parts/*.json': 6,
    '*/checkpoints/*': 12, '*/summary.md': 3, '*/report.html': 3,
}
KILLS = [(name, n + 1) for name, most in MOMENTS.items() for n in range(most)]


@pytest.fixture(scope='module')
def start(tmp_path_factory):
  """Starts the command line; its compiled programs are kept for all."""
  cache = jax.config.jax_compilation_cache_dir or (
      tmp_path_factory.mktemp('cache')
  )

  def begin(place, fault='', seconds=0.0):
    return child.Child(place, fault, [f'--cache={cache}'], seconds)

  return begin


@pytest.fixture(scope='module')
def whole(start, tmp_path_factory):
  """The results of a run that nobody touched."""
  place = tmp_path_factory.mktemp('whole') / 'out'
  code, said = start(place).ended()
  assert code == 0, said
  return (place / 'results.jsonl').read_bytes()


def goes_on(start, place, whole):
  """The same command ends with the same bytes; nothing is left unfinished."""
  code, said = start(place).ended()
  assert code == 0, said
  assert (place / 'results.jsonl').read_bytes() == whole
  assert not list(place.rglob('.vfljax-*'))
  assert not list((place / 'checkpoints').iterdir())
  assert not (place / 'damaged').exists(), said
  assert (place / 'report.html').read_text().endswith('</html>\n')
  shutil.rmtree(place)


def killed(start, place, whole, name, number):
  code, said = start(place, f'{name}:{number}:kill').ended()
  assert code == -signal.SIGKILL, (name, number, said)
  goes_on(start, place, whole)


def filled(start, place, whole, name, number):
  code, said = start(place, f'{name}:{number}:full').ended()
  assert code == 2 and 'No space left' in said, (name, number, said)
  goes_on(start, place, whole)


def test_kills_while_files_are_written(start, whole, tmp_path, tally):
  for name, number in KILLS:
    killed(start, tmp_path / 'out', whole, name, number)
    tally('kills while writing')


def test_kills_at_any_moment(start, whole, tmp_path, tally):
  luck, began = random.Random(0), time.monotonic()
  goes_on(start, tmp_path / 'out', whole)
  seconds = time.monotonic() - began
  for _ in range(12):
    run = start(tmp_path / 'out')
    time.sleep(luck.uniform(0, seconds))
    run.send_signal(signal.SIGKILL)
    code, _ = run.ended()
    goes_on(start, tmp_path / 'out', whole)
    tally('kills at any moment', 'survived' if code else 'came too late')


def test_full_disks_while_files_are_written(start, whole, tmp_path, tally):
  for name, number in KILLS[::4]:
    filled(start, tmp_path / 'out', whole, name, number)
    tally('full disks in a run')


def test_sigterm_at_any_moment(start, whole, tmp_path, tally):
  """Within ten seconds, with the code and a line that says how to go on."""
  luck, began = random.Random(1), time.monotonic()
  goes_on(start, tmp_path / 'out', whole)
  seconds = time.monotonic() - began
  for _ in range(12):
    run = start(tmp_path / 'out')
    run.wait_for('begun')
    time.sleep(luck.uniform(0, 0.9 * seconds))
    code = stops(run)
    goes_on(start, tmp_path / 'out', whole)
    tally('SIGTERM at any moment', 'survived' if code else 'came too late')


def stops(run):
  asked = time.monotonic()
  run.send_signal(signal.SIGTERM)
  code, said = run.ended()
  assert time.monotonic() - asked < 10
  # Before it knows its work directory it has nothing that could be continued.
  assert code == 130 and 'Stopped.' in said or (
      code == 0 and 'Report: ' in said
  ), said
  return code


def test_sigterm_while_compiling(start, tmp_path, tally):
  """Without a cache, so that it does compile."""
  for name in ('a', 'b'):
    run = child.Child(tmp_path / name, more=['--cache='])
    run.wait_for('compiling')
    time.sleep(0.5)
    began = time.monotonic()
    run.send_signal(signal.SIGTERM)
    code, said = run.ended()
    assert code == 130 and time.monotonic() - began < 5
    assert 'The same command continues' in said.splitlines()[-1]
    tally('SIGTERM while compiling')


def test_kills_of_the_run_that_goes_on(start, whole, tmp_path, tally):
  """Killed again and again, at a later moment each time."""
  for number in range(1, 11):
    fault = f'*/checkpoints/*:{number}:kill'
    code, said = start(tmp_path / 'out', fault).ended()
    assert code == -signal.SIGKILL, (number, said)
    tally('kills again and again')
  goes_on(start, tmp_path / 'out', whole)


def test_damaged_compiled_programs(whole, tmp_path, tally):
  """A process that is killed may leave half of one in the cache."""
  more = [f'--cache={tmp_path}/cache']
  assert child.Child(tmp_path / 'first', more=more).ended()[0] == 0
  for entry in (tmp_path / 'cache').glob('*-cache'):
    entry.write_bytes(entry.read_bytes()[:1000])
  code, said = child.Child(tmp_path / 'out', more=more).ended()
  assert code == 0, said
  assert (tmp_path / 'out/results.jsonl').read_bytes() == whole
  tally('damaged compiled programs')


def test_two_runs_in_one_folder(start, whole, tmp_path, tally):
  place = tmp_path / 'out'
  first = start(place)
  first.wait_for('units')  # It has the lock.
  second = child.Child(place, more=['--cache='])
  code, said = second.ended()
  assert code == 2 and 'Another process is running' in said or code == 0
  assert first.ended()[0] == 0
  assert (place / 'results.jsonl').read_bytes() == whole
  tally('two runs in one folder')
