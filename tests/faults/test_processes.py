"""Processes that share a work directory are killed, or do not come."""
import pytest

from tests.processes import names, start


@pytest.mark.faults
def test_the_first_is_killed_and_another_number_goes_on(tmp_path):
  """Whoever is left finishes; so does one process alone in the end."""
  place, two = tmp_path / 'out', ['--num_processes=2']
  first = start(
      place, *two, '--process_id=0', fault='*/parts/*.json:3:kill'
  )
  second = start(place, *two, '--process_id=1')
  for process, code in (first, -9), (second, 0):
    said, _ = process.communicate(timeout=300)
    assert process.returncode == code, said
  assert names(place) == [f'none@seeds{i}-{i}.json' for i in (0, 2, 3)]
  lonely = start(place, '--num_processes=4', '--process_id=0', patience=1)
  said, _ = lonely.communicate(timeout=300)
  assert lonely.returncode == 2 and '1 result of process 1 of 4' in said
  alone, one = start(place), start(tmp_path / 'one')
  for process in alone, one:
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and 'Report: ' in said, said
  results = (tmp_path / 'one' / 'results.jsonl').read_bytes()
  assert (place / 'results.jsonl').read_bytes() == results
