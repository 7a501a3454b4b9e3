"""export: numbers, tables and figures of a finished work directory."""
import csv
import json
import shutil
import subprocess

import pandas as pd
import pytest

from tests import fake_results
from tests.commands.finished import ISO, NONE, call, config, made
from tests.fake_results import row
from vfljax.commands import export
from vfljax.report.tables import Table, Text
from vfljax.runner.workdir import store


def test_numbers_are_exported_whole(tmp_path, capsys):
  made(tmp_path, [NONE, ISO])
  code, out, _ = call(capsys, 'export', tmp_path, '--to=csv,parquet,latex')
  assert code == 0 and len(out.splitlines()) == 5
  rows = store.read_results(tmp_path)
  with (tmp_path / 'export/results.csv').open() as file:
    found = list(csv.DictReader(file))
  assert [float(r['value']) for r in found] == [r['value'] for r in rows]
  assert {r['digest'] for r in found} == {'0123'}
  assert {r['file'] for r in found} == {'my.csv'}
  frame = pd.read_parquet(tmp_path / 'export/results.parquet')
  assert frame['value'].tolist() == [r['value'] for r in rows]
  assert (tmp_path / 'export/ranking.tex').exists()


def test_a_second_export_replaces_the_first(tmp_path, capsys):
  made(tmp_path, [NONE])
  for _ in range(2):
    code, out, _ = call(capsys, 'export', tmp_path, '--to=csv')
    assert code == 0 and 'results.csv' in out


def test_what_a_stopped_run_lacks_is_said(tmp_path, capsys):
  """In every table, too: each looked like that of a whole run."""
  whole, half = tmp_path / 'whole', tmp_path / 'half'
  made(whole, [NONE, ISO])
  made(half, [NONE], asked='none,iso(5)')
  for folder, gone in (whole, False), (half, True):
    code, out, error = call(capsys, 'export', folder, '--to=csv,latex')
    assert code == 0 and 'Not run' not in out
    assert ('Not run yet: iso' in error) == gone == bool(error)
    for file in (folder / 'export').glob('*.tex'):
      assert file.read_text().startswith('% Not run yet: iso') == gone


def test_lines_of_several_runs_can_stand_in_one_file(tmp_path):
  made(tmp_path, [NONE])
  lines = (tmp_path / 'results.jsonl').read_text().splitlines()
  for line in map(json.loads, lines):
    assert (line['file'], line['digest']) == ('my.csv', '0123')
    assert [*line][:-2] == [*store.FIELDS]


@pytest.mark.parametrize('note, cell, said', [
    ('n', '1.0 ± 0.1', '% T: n ± is half the 95 % Student-t interval'),
    ('± is known.', '1.0 ± 0.1', '% T: ± is known.\n'),
    ('n', '1.0', '% T: n\n'),
])
def test_a_table_says_above_it_what_its_intervals_are(note, cell, said):
  assert export.latex(Table('T', note, ('a',), [[Text(cell)]])).startswith(said)


def test_latex_is_what_latex_takes():
  text = export.latex(Table('T', 'n', ('a_b', '± & %'), [
      [Text('x^2 {y}\\', strong=True), Text('1.0 ± 0.1')],
  ]))
  assert text.splitlines()[3:6:2] == [
      r'a\_b & $\pm$ \& \% \\',
      r'\textbf{x\textasciicircum{}2 \{y\}\textbackslash{}} & 1.0 $\pm$ 0.1 \\',
  ]
  if shutil.which('pdflatex'):
    whole = (
        r'\documentclass{article}\usepackage{booktabs}\begin{document}' + text
        + r'\end{document}'
    )
    done = subprocess.run(
        ['pdflatex', '-draftmode', '-halt-on-error', '-output-directory=/tmp'],
        input=whole, text=True, capture_output=True, check=False,
    )
    assert done.returncode == 0, done.stdout


def test_latex_prints_signs_that_its_default_font_has_elsewhere():
  """As ¡b¿ and a dash."""
  assert export.escaped('<b>|') == r'\textless{}b\textgreater{}\textbar{}'


def test_two_settings_have_files_of_their_own(tmp_path, capsys):
  """As where results of an earlier version are in one folder."""
  work = store.open_workdir(tmp_path, config(), ['none/None', 'iso/5.0'])
  for name, s in NONE, ISO:
    work.save(f'{name}/{s}', [
        row(name, s, None, seed, 'auc', 'test', 0.9) | dict(dataset=dataset)
        for dataset in ('my data', 'b/c') for seed in (0, 1)
    ], dict(seeds=2, classes=2))
  code, _, error = call(capsys, 'export', tmp_path, '--to=latex')
  assert code == 0, error
  assert {p.name for p in (tmp_path / 'export').iterdir()} == {
      f'{of}-vhnn-{table}.tex' for of in ('my-data', 'b-c')
      for table in ('baselines', 'utility_and_leakage')
  }


def test_figures_of_any_variant_have_names_of_files(tmp_path, capsys):
  work = store.open_workdir(tmp_path, config(), ['none/None'])
  attacks = (
      'norm_scoring:a/b', 'norm_scoring:a-b', 'norm_scoring:../c\0',
      'norm_scoring:*?"<>|',
  )
  work.save('none/None', [
      row('none', None, who, seed, metric, 'test', 0.9) for seed in (0, 1)
      for who, metric in [(None, 'auc'), *((a, 'leak_auc') for a in attacks)]
  ], dict(seeds=2, classes=2))
  code, out, error = call(capsys, 'export', tmp_path, '--to=svg')
  assert code == 0, error
  names = {path.name for path in (tmp_path / 'export').iterdir()}
  assert names == {
      'trade-off-worst.svg', 'trade-off-norm_scoring-a-b.svg',
      'trade-off-norm_scoring-a-b-2.svg', 'trade-off-norm_scoring-..-c-.svg',
      'trade-off-norm_scoring-------.svg',
  } and len(out.splitlines()) == 5


@pytest.mark.slow
def test_figures_are_exported(tmp_path, capsys):
  fake_results.make(tmp_path / 'run', seeds=2, defenses=('none', 'iso'))
  code, out, _ = call(
      capsys, 'export', tmp_path / 'run', '--to=png,svg',
      f'--out={tmp_path / "figures"}',
  )
  assert code == 0
  names = {path.name for path in (tmp_path / 'figures').iterdir()}
  assert {'trade-off-worst.png', 'trade-off-worst.svg'} <= names
