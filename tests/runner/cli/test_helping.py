"""`--help`: what it says of a config's fields."""
import importlib

from vfljax.runner.cli import arguments, helping


def lines() -> dict[str, str]:
  """{field: its line}, of what `--help` says."""
  said = helping.text(arguments._define(['launch.py'])).split('\n')
  found = [line for line in said if line.startswith('  --config.')]
  return {line.strip().partition('=')[0][9:]: line.strip() for line in found}


def test_a_field_has_its_default_its_range_and_its_meaning():
  found = lines()
  assert found['attack.known'] == (
      '--config.attack.known=4  (0 or more)  labels per class that an attacker '
      'knows; 0: all'
  )
  assert found['train.epochs'] == '--config.train.epochs=30  (1 to 1000000)'
  # One comment may begin behind the field's last line and go on below.
  assert found['data.options'].endswith("as in 'samples=500;signal=(1, 0.5)'")
  assert found['quitting'].endswith('after parties have quit')


def test_a_comment_is_its_own_fields(tmp_path, monkeypatch):
  (tmp_path / 'own_config.py').write_text(
      'class Own:\n'
      '  one: int = 1  # the first\n'
      '  # and its end\n'
      '  two: dict = dict(\n      a=1,  # inside\n  )\n\n'
      '  def three(self):  # No field.\n    return 3  # Nor this.\n\n'
      '  four: int = 4\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  own = importlib.import_module('own_config').Own
  assert helping._comments(own) == dict(
      one='the first and its end', two='inside'
  )


def test_without_a_source_nothing_is_said():
  assert helping._comments(type('Made', (), {})) == {}
