"""Rows that differ in sizes alone are one program, of the largest."""
import pytest

from tests.runner.compiled.test_families import config, found
from vfljax import defenses, target
from vfljax.completion import Schedule
from vfljax.defenses.shadow import Attacker
from vfljax.runner.config import AuxiliaryConfig, Entry, ModelConfig

DEEP = ModelConfig(algorithm='vhnn', bottom=(4,), top=(4,))
BOTH = 'attacker.epochs', 'attacker.plays'


def who(length, draws, stages=0, **more):
  schedule = Schedule(length, stages=stages or length)
  return Attacker(schedule, draws=draws, **more)


def row(label, attacker, **more):
  return Entry('vmask', (0.9,), dict(attacker=attacker), label, **more)


@pytest.fixture
def told(monkeypatch):
  """Of each row: its program, its numbers, and whom its factory is given."""
  seen, vmask = [], defenses.REGISTRY['vmask']

  def given(*rows):
    for job in found(config(
        listed=(Entry('none'), *rows), model=DEEP,
        auxiliary=AuxiliaryConfig(samples=16),
    )):
      if job.entry.defense == 'vmask':
        one = {name: values[0] for name, values in job.others.items()}
        job.make(0.9, **one)
        yield job.program, job.others, seen[-1]

  def heard(*args, **options):
    seen.append(options['attacker'])
    return vmask.factory(*args, **options)

  heard.__signature__ = vmask.__signature__
  monkeypatch.setitem(defenses.REGISTRY, 'vmask', defenses.Method(
      heard, words=vmask.words, sized=vmask.sized
  ))
  return lambda *rows: list(given(*rows))


def test_each_plays_its_part_of_the_largest(told):
  few, many = told(row('few', who(2, 3)), row('many', who(5, 1)))
  assert few[0] == many[0]
  parts = [[numbers[part] for part in BOTH] for _, numbers, _ in (few, many)]
  assert parts == [[(2,), (3,)], [(5,), (1,)]]
  assert few[2] == who(5, 3, epochs=2, plays=3)
  assert many[2] == who(5, 3, epochs=5, plays=1)


def test_what_differs_otherwise_or_in_nothing_is_as_it_was(told):
  """So are attackers whose sizes cannot be told to a program."""
  same = told(row('one', who(2, 1)), row('two', who(2, 1)))
  assert [attacker for *_, attacker in same] == [who(2, 1)] * 2
  for other in (who(5, 1, known=7), who(6, 1, 2), who(9, 2, epochs=3)):
    rows = told(row('few', who(2, 1)), row('other', other))
    assert len({program for program, *_ in rows}) == 2
    assert [attacker for *_, attacker in rows] == [who(2, 1), other]
    assert not any(part in numbers for _, numbers, _ in rows for part in BOTH)


def test_accelerators_have_a_program_for_each(told):
  with target.tracing_for('gpu'):
    rows = told(row('few', who(2, 3)), row('many', who(5, 1)))
  assert len({program for program, *_ in rows}) == 2
  assert [attacker for *_, attacker in rows] == [who(2, 3), who(5, 1)]


def test_who_sweeps_a_part_says_the_rest_himself(told):
  swept = {BOTH[0]: (3.0,)}
  few, two, four = told(
      row('few', who(2, 1)), row('two', who(9, 2), grid=swept),
      row('four', who(9, 4), grid=swept),
  )
  assert few[2] == who(2, 1) and two[0] != four[0]
  assert [two[2], four[2]] == [who(9, n, epochs=3.0) for n in (2, 4)]


def test_one_of_size_one_is_the_same_for_all_that_differ_in_sizes():
  assert who(3, 4).of_size(1, 1) == who(7, 2).of_size(1, 1)
  assert who(3, 4).of_size(**who(3, 4).sizes) == who(3, 4)
  assert not who(4, 1, 2).sizes and not who(4, 2, plays=1).sizes
