"""Pictures of a report: what is said where a program for them is missing."""
import io

from PIL import Image

from docs import browser, screens


def test_without_a_report_it_says_what_makes_one(tmp_path, capsys):
  assert screens.main([f'--report={tmp_path}/report.html']) == 2
  assert 'make demo' in capsys.readouterr().err


def test_without_chromium_it_says_what_to_install(
    tmp_path, capsys, monkeypatch
):
  monkeypatch.setattr(browser.shutil, 'which', lambda name: None)
  report = tmp_path / 'report.html'
  report.write_text('')
  assert screens.main([f'--report={report}']) == 2
  said = capsys.readouterr().err
  assert 'apt install chromium' in said and '--browser=' in said
  assert screens.main([f'--report={report}', '--browser=/no/such']) == 2
  assert 'There is no /no/such' in capsys.readouterr().err


def test_without_npm_it_says_so_before_it_starts(
    tmp_path, capsys, monkeypatch
):
  found = dict(chromium='/bin/false').get
  monkeypatch.setattr(browser.shutil, 'which', found)
  monkeypatch.setattr(screens, 'OUT', tmp_path / 'out')
  report = tmp_path / 'report.html'
  report.write_text('')
  assert screens.main([f'--report={report}']) == 2
  said = capsys.readouterr().err
  assert 'apt install npm' in said and '--no-axe' in said
  assert not (tmp_path / 'out').exists()


def test_pictures_are_cut_and_have_few_colours():
  picture = Image.linear_gradient('L').convert('RGB')  # 256 x 256
  buffer = io.BytesIO()
  picture.save(buffer, 'png')
  assert screens.small(buffer.getvalue(), 100).size == (256, 100)
  assert screens.small(buffer.getvalue(), 1000).mode == 'P'


def test_sheets_lie_side_by_side():
  sheets = [Image.new('RGB', (10, 20), 'white') for _ in range(2)]
  table = Image.open(io.BytesIO(screens.side_by_side(sheets, gap=2)))
  assert table.size == (26, 24)


def test_every_picture_is_there_and_shown():
  text = (screens.SHOWN / 'README.md').read_text('utf-8')
  for name in (*screens.PICTURES, 'paper'):
    assert (screens.SHOWN / f'{name}.png').stat().st_size < 250_000
    assert f']({name}.png)' in text
