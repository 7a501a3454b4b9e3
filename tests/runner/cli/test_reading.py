"""A large file is announced, since reading it takes a while."""
import os

from vfljax.runner.cli import reading


def test_only_a_large_file_is_announced(tmp_path, capsys):
  small, large = tmp_path / 'small.csv', tmp_path / 'large.csv'
  small.write_text('x,y')
  with large.open('wb') as file:  # It takes no room on the disk.
    file.truncate(reading.LARGE)
  for path in ('', str(tmp_path), str(tmp_path / 'none.csv'), 'a\0b',
               str(small)):
    reading.announce(path)
    assert not capsys.readouterr().out
  reading.announce(str(large))
  assert capsys.readouterr().out == f'Reading {large} (100 MiB) ...\n'


def test_a_file_that_goes_away_is_no_error_here(tmp_path, monkeypatch, capsys):
  (tmp_path / 'a.csv').write_text('x,y')

  def gone(path):
    raise FileNotFoundError(path)

  monkeypatch.setattr(os.path, 'getsize', gone)
  reading.announce(str(tmp_path / 'a.csv'))
  assert not capsys.readouterr().out
