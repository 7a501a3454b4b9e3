"""Options of attacks, as they are typed."""
import pytest

from vfljax.runner.cli import own_flags


@pytest.mark.parametrize('typed, flags, rest', [
    (['--config.attack.cafe.steps=5'], [('cafe', 'steps', '5')], []),
    (['--config.attack.cafe.steps', '5'], [('cafe', 'steps', '5')], []),
    (['-config.attack.cafe.steps=a=b'], [('cafe', 'steps', 'a=b')], []),
    # Without a value it is left to whoever refuses what is no flag.
    (['--config.attack.cafe.steps', '--config.seeds=2'], [],
     ['--config.attack.cafe.steps', '--config.seeds=2']),
    (['--config.attack.cafe.steps'], [], ['--config.attack.cafe.steps']),
    (['--config.attack.known', '5'], [], ['--config.attack.known', '5']),
    (['a', '--config.attack.cafe.steps=1', 'b'], [('cafe', 'steps', '1')],
     ['a', 'b']),
])
def test_they_are_taken_from_the_command_line(typed, flags, rest):
  assert own_flags.taken(typed) == (rest, flags)
  assert typed  # The caller's own list stays.
