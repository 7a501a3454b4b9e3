"""What a job knows of itself before anything is compiled."""
from types import SimpleNamespace

import pytest

from vfljax.runner.experiment.jobs import Job


@pytest.mark.parametrize('after, replayed', [
    ({}, {}), (dict(a=1), {}), ({}, dict(b=2)), (dict(a=1), dict(b=2)),
])
def test_stolen_weights_and_replayed_rounds_are_attacked_after_training(
    after, replayed
):
  setting = SimpleNamespace(after_training=after, replayed=replayed)
  job = Job(**dict.fromkeys(Job._fields) | dict(setting=setting))
  assert job.attacked == bool(after or replayed)
