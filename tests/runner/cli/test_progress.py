"""What the live display and the plain lines say."""
import io

import pytest
import rich.console
from rich.console import Console
from rich.text import Text

from vfljax.runner.cli.progress import Progress
from vfljax.runner.machine import notebook


class Clock:
  """Time that passes when told to."""

  def __init__(self):
    self.now = 100.0

  def __call__(self):
    return self.now


class Counted(io.StringIO):
  """A stream that knows how much of it was flushed."""

  flushed = 0

  def flush(self):
    self.flushed = len(self.getvalue())
    super().flush()


def plain(units=3, **options):
  clock, stream = Clock(), Counted()
  return Progress(units, stream=stream, clock=clock, **options), clock, stream


def test_the_estimate_knows_that_some_units_take_longer():
  progress, clock, _ = plain(units=[10.0, 40.0, 20.0], finished=1)
  with progress:
    progress.unit('iso', seeds=10, epochs=4)
    clock.now += 10.0
    progress.advance(1)  # A quarter of 40 in 10 s; 30 and 20 to go.
    assert progress.eta() == pytest.approx(50.0)
    clock.now += 30.0
    progress.finish()
    assert progress.eta() == pytest.approx(20.0)


def test_plain_lines_are_rare_flushed_and_complete():
  progress, clock, stream = plain(metric='auc', every=3.0)
  with progress:
    progress.compiling('none')
    progress.unit('none', seeds=10, epochs=40)
    for epoch in range(40):
      clock.now += 0.5
      progress.advance(epoch + 1, 5312.4, 0.9 + epoch / 1000)
      assert stream.flushed == len(stream.getvalue())
    progress.finish()
    progress.note('a [note] with brackets')
  lines = stream.getvalue().splitlines()
  assert lines[0] == '3 units'
  assert lines[1] == '[1/3] none, compiling ...'
  # Half a second an epoch: 59.5 s for the other 39 and two more units.
  assert lines[2] == (
      'about 1 min 00 s to go, judging by the start, not compiling'
  )
  assert ' to go' not in ''.join(lines[3:])
  # 3 s are 6 of the 40 epochs; 57 s for the other 34 and two more units.
  assert lines[3] == ('[1/3] none, epoch 6/40, auc 0.905, 5,312 rounds/s,'
                      ' 10 seeds, ETA 57 s')
  assert len([line for line in lines if 'epoch' in line]) == 6
  assert lines[-2] == 'a [note] with brackets'
  assert lines[-1] == 'done: 1 of 3 units, 20 s'
  assert '\x1b' not in stream.getvalue()


def test_the_estimate_leaves_out_what_was_done_before():
  progress, clock, stream = plain(finished=1)
  with progress:
    assert progress.eta() is None
    progress.unit('iso/0', seeds=1, epochs=10, epoch=5)
    assert progress.eta() is None
    clock.now += 8.0
    progress.advance(9)  # 0.4 of a unit in 8 s; 1.1 units to go.
    assert progress.eta() == pytest.approx(22.0)
    progress.finish()
    assert progress.eta() == pytest.approx(16.0)  # 0.5 in 8 s, 1 to go.
  assert stream.getvalue().startswith('3 units, 1 done before\n')
  assert '1 seed,' in stream.getvalue()


def test_the_estimate_does_not_take_compiling_for_training():
  progress, clock, _ = plain()
  with progress:
    progress.compiling('none')
    clock.now += 100.0
    assert progress.eta() is None
    progress.unit('none', seeds=1, epochs=10)
    clock.now += 2.0
    progress.advance(5)
    assert progress.eta() == pytest.approx(10.0)  # Of 3 units 2.5.
    clock.now += 2.0
    progress.finish()
    progress.compiling('iso')
    clock.now += 50.0
    assert progress.eta() == pytest.approx(8.0)


def test_nor_does_it_take_the_wait_for_a_units_last_programs_for_training():
  progress, clock, _ = plain()
  with progress:
    progress.compiling('none')
    progress.unit('none', seeds=2, epochs=10)
    clock.now += 4.0
    progress.advance(10)
    clock.now += 60.0
    progress.trained(60.0)
    clock.now += 1.0  # Attacks on the trained federation.
    progress.finish()
    assert progress.eta() == pytest.approx(10.0)


def test_what_is_left_of_a_unit_is_told_by_its_own_pace():
  progress, clock, _ = plain()
  with progress:
    progress.unit('none', seeds=1, epochs=10)
    clock.now += 10.0
    progress.advance(10)
    progress.finish()
    progress.unit('dcor', seeds=1, epochs=10, epoch=5)
    clock.now += 100.0
    progress.advance(9)  # 25 s an epoch; 110 s for 1.4 units, and one to go.
    assert progress.eta() == pytest.approx(25.0 + 110 / 1.4)
    progress.finish()
    progress.compiling('iso')
    clock.now += 50.0
    assert progress.eta() == pytest.approx(110 / 1.5)


def test_in_a_long_run_the_start_of_a_unit_is_shown():
  for seconds, shown in ((10.0, True), (1.0, False)):
    progress, clock, stream = plain(every=3.0)
    with progress:
      progress.compiling('none')
      progress.unit('none', seeds=1, epochs=5)
      clock.now += seconds
      progress.advance(5)
      progress.finish()
      progress.compiling('dcor')
      clock.now += 0.1  # The program was kept from an earlier run.
      progress.unit('dcor', seeds=1, epochs=5)
    assert ('dcor, epoch 0/5, 1 seed' in stream.getvalue()) == shown


def test_units_that_run_together_finish_together():
  progress, clock, stream = plain()
  with progress:
    progress.unit('none', seeds=2, epochs=2)
    progress.finish()
    progress.unit('iso', seeds=2, epochs=2, units=2)
    clock.now += 4.0
    progress.advance(1, None, 'auc 0.5, so far')
    assert progress.eta() == pytest.approx(4.0)
    progress.finish()
    assert progress.eta() == 0.0
  assert '[2-3/3] iso, epoch 1/2, auc 0.5, so far, 2 seeds' in (
      stream.getvalue()
  )


def test_an_interrupted_run_says_so_and_errors_pass():
  progress, _, stream = plain()
  with pytest.raises(KeyboardInterrupt):
    with progress:
      progress.unit('none', seeds=2, epochs=2)
      raise KeyboardInterrupt
  assert stream.getvalue().endswith('stopped after 0 of 3 units, 0 s\n')


@pytest.mark.parametrize('width', [60, 80, 120])
def test_a_terminal_shows_the_unit_and_all_of_them(width):
  clock, stream = Clock(), io.StringIO()
  console = Console(
      file=stream, force_terminal=True, width=width, record=True,
      color_system='standard', _environ={},
  )
  names = ['none', 'gradient_compression/0.25']
  with Progress(2, console=console, metric='auc', clock=clock) as progress:
    progress.unit('none', seeds=10, epochs=50)
    progress.finish()
    progress.compiling(names[1])
    progress._bars.refresh()
    assert 'compiling' in stream.getvalue()
    assert '/100' not in stream.getvalue()
    progress.unit(names[1], seeds=10, epochs=50)
    clock.now += 10.0
    progress.advance(25, 5312.0, 0.951)
    stream.seek(stream.truncate(0))
    progress._bars.refresh()
    shown = stream.getvalue()
    progress.note('saved a checkpoint')
  lines = Text.from_ansi(shown).plain.split('\n')[-2:]
  assert all(len(line) <= width for line in lines)
  for words in ('auc 0.9', '25/', '1/2', 'ETA 10 s'):
    assert words in lines[0] + lines[1]
  if width >= 80:
    assert '25/50 epochs auc 0.951, 5,312 rounds/s, 10 seeds' in lines[1]
    assert lines[1].startswith('gradient_compression/0.')
  recorded = console.export_text()
  assert 'saved a checkpoint' in recorded
  assert 'done: 1 of 2 units, 10 s' in recorded
  assert '\x1b[?25h' in stream.getvalue()  # The cursor is back.


def test_attacks_after_training_are_shown_and_no_estimate_forgets_them():
  progress, clock, stream = plain(units=2)
  with progress:
    progress.unit('none', seeds=2, epochs=2, attacked=True)
    clock.now += 5.0
    progress.advance(1)
    clock.now += 5.0
    progress.advance(2)
    progress.trained()
    clock.now += 90.0  # Of which nothing could be known.
    progress.finish()
    assert progress.eta() == pytest.approx(100.0)
    progress.unit('iso', seeds=2, epochs=2, attacked=True)
    clock.now += 4.0
    progress.advance(1)
    assert progress.eta() == pytest.approx(4.0 + 90.0)
    clock.now += 4.0
    progress.advance(2)
    progress.trained()
    clock.now += 20.0
    assert progress.eta() == pytest.approx(70.0)
    clock.now += 90.0  # They take longer than the first unit's.
    assert progress.eta() == 0.0
    progress.finish()
  told = [line for line in stream.getvalue().splitlines() if 'unit' not in line]
  assert told == [
      '[1/2] none, epoch 0/2, 2 seeds',
      'about 15 s to go, judging by the start, not compiling or attacking',
      '[1/2] none, epoch 1/2, 2 seeds, ETA 15 s and attacks',
      '[1/2] none, epoch 2/2, 2 seeds, ETA 10 s and attacks',
      '[1/2] none, epoch 2/2, attacks after training, 2 seeds',
      '[2/2] iso, epoch 0/2, 2 seeds, ETA 1 min 40 s',
      '[2/2] iso, epoch 1/2, 2 seeds, ETA 1 min 34 s',
      '[2/2] iso, epoch 2/2, 2 seeds, ETA 1 min 30 s',
      '[2/2] iso, epoch 2/2, attacks after training, 2 seeds, ETA 1 min 30 s',
  ]


def test_attacks_of_a_larger_unit_are_expected_to_take_longer():
  progress, clock, _ = plain(units=[1.0, 3.0, 1.0])
  with progress:
    for attacked in (True, False):  # The second, of three times the work, none.
      progress.unit('none', seeds=1, epochs=1, attacked=attacked)
      clock.now += 1.0
      progress.advance(1)
      progress.trained()
      if attacked:
        clock.now += 10.0
      else:
        # A second for four of work; the third's attacks are those of the first.
        assert progress.eta() == pytest.approx(2.0 / 4 + 10.0)
      progress.finish()
    assert progress.eta() == pytest.approx(2.0 / 4 + 10.0)
  larger, clock, _ = plain(units=[1.0, 3.0])
  with larger:
    for _ in range(2):
      larger.unit('none', seeds=1, epochs=2, attacked=True)
      clock.now += 1.0
      larger.advance(1)
      found = larger.eta()
      larger.advance(2)
      larger.trained()
      clock.now += 10.0
      larger.finish()
  assert found == pytest.approx(1.0 + 30.0)


def test_attacks_of_a_unit_that_was_trained_before_are_no_training():
  """Its checkpoint has all epochs: only its attacks are played."""
  progress, clock, _ = plain(units=3)
  with progress:
    progress.unit('none', seeds=1, epochs=10, epoch=10, attacked=True)
    progress.trained()
    clock.now += 90.0
    progress.finish()
    progress.unit('iso', seeds=1, epochs=10, attacked=True)
    clock.now += 1.0
    progress.advance(1)
    assert progress.eta() == pytest.approx(9.0 + 90.0 + 100.0)


def test_a_unit_that_starts_again_is_not_attacked_yet():
  """Its attacks had no memory: it is compiled, and plays, in smaller pieces."""
  progress, clock, stream = plain(units=1)
  with progress:
    for _ in range(2):
      progress.compiling('none')
      progress.unit('none', seeds=1, epochs=2, attacked=True)
      clock.now += 8.0
      progress.advance(1)
      line = stream.getvalue().splitlines()[-1]
      assert line == '[1/1] none, epoch 1/2, 1 seed, ETA 8 s and attacks'
      progress.advance(2)
      progress.trained()
      clock.now += 50.0


def test_in_a_cell_there_are_no_bars_and_ever_fewer_lines(monkeypatch):
  """Though FORCE_COLOR, which kernels set, says that it is a terminal."""
  monkeypatch.setenv('FORCE_COLOR', '1')
  monkeypatch.setenv('JPY_PARENT_PID', '12')
  progress, clock, stream = plain(every=3.0)
  with progress:
    progress.unit('none', seeds=10, epochs=10_000)
    for epoch in range(10_000):  # Some three hours.
      clock.now += 1.0
      progress.advance(epoch + 1, 5312.4, 0.9)
    progress.finish()
  said = stream.getvalue()
  assert '\x1b' not in said and '\r' not in said
  lines = said.splitlines()
  assert 60 < len(lines) < 150 and 'epoch 3/' in lines[3]


def test_in_a_log_lines_do_not_become_rarer(monkeypatch):
  monkeypatch.setattr(notebook, 'is_shown_in_a_cell', lambda: False)
  progress, clock, stream = plain(every=3.0)
  with progress:
    progress.unit('none', seeds=10, epochs=3000)
    for epoch in range(3000):
      clock.now += 1.0
      progress.advance(epoch + 1, 5312.4, 0.9)
    progress.finish()
  assert len(stream.getvalue().splitlines()) > 900


def test_rich_writes_no_html_in_a_cell(monkeypatch):
  monkeypatch.setattr(rich.console, '_is_jupyter', lambda: True)
  progress, _, _ = plain()
  assert not progress._console.is_jupyter
