"""Which rows of two runs stand for the same method."""
import pytest

from vfljax.runner.config import Entry
from vfljax.runner.workdir import mergeable

ROW = Entry('marvell', (4.0,), {'power': 1}, label='mine')


@pytest.mark.parametrize('change, odd', [
    (dict(strengths=(1.0, 2.0)), None), (dict(options={'power': 1.0}), None),
    (dict(options={'power': 2}), ('options.power', 1, 2)),
    (dict(options={'power': 0}), ('options.power', 1, 0)),
    (dict(options={}), ('options.power', 1, mergeable.UNSAID)),
    (dict(defense='iso'), ('defense', 'marvell', 'iso')),
    (dict(label='another'), None),  # It is another row.
])
def test_a_name_stands_for_one_method(change, odd):
  other = ROW.__class__(**vars(ROW) | change)
  wanted = [mergeable.Odd('mine', *odd)] if odd else []
  assert mergeable.odds([ROW], [other]) == wanted
  swapped = [o._replace(one=o.other, other=o.one) for o in wanted]
  assert mergeable.odds([other], [ROW]) == swapped
