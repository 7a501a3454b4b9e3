"""What the documentation is made by: pages, their numbers, their links."""
import functools
import re

import pytest

from docs import build, gallery, measured, methods, sources
from experiments import evidence
from vfljax import attacks, defenses
from vfljax.report import reading


@pytest.fixture(scope='module', autouse=True)
def made_once():
  """Pages of methods, which tests and the contents ask for."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(methods, 'pages', functools.cache(methods.pages))
    yield


@pytest.mark.slow
def test_every_method_has_a_page():
  made = methods.pages()
  for kind, registry in (
      ('defenses', defenses.REGISTRY), ('attacks', attacks.REGISTRY)
  ):
    for name in registry:
      page = made[f'{kind}/{name}.md']
      assert page.startswith(f'# {name}\n') and '## Arguments' in page
      assert f']({name}.md)' in made[f'{kind}/index.md']


def test_numbers_are_those_of_the_record():
  results = evidence.load('kang2022', 'vlr').results
  cell = evidence.cell(results, 'iso:5')
  leak = reading.leakage(results, cell, 'direct_label').values()
  loss = reading.utility_loss(results, cell).values()
  row = next(
      line for part in measured.of_defense('iso').split('**') if 'vlr' in part
      or '| iso (5)' in part for line in part.split('\n')
      if line.startswith('| iso (5)') and evidence.spread(leak) in line
  )
  assert evidence.spread(loss) in row
  assert evidence.spread(leak) in measured.of_attack('direct_label')


def test_a_file_of_the_users_own_is_named_and_one_seed_is_one():
  assert '**fashion_0_6.npz, vhnn**, 5 seeds' in measured.of_defense('marvell')
  said = measured.of_attack('model_completion')
  assert ', 1 seed (' in said and '1 seeds' not in said


@pytest.mark.parametrize('name, said', [
    ('norm_scoring', 'curious passive | labels | two |'),
    ('model_inversion', 'curious active | features | any |'),
    ('active_completion', 'malicious passive | labels | any |'),
    ('label_replacement', 'malicious passive | a backdoor | any |'),
    ('scratch', 'none: a baseline | labels | any |'),
])
def test_a_list_says_who_attacks_and_for_what(name, said):
  page = methods.pages()['attacks/index.md']
  assert f'| [{name}]({name}.md) | {said}' in page


def test_what_has_no_record_says_how_to_get_one():
  assert measured.of_defense('residue_mask') == ''  # It has theorems.
  page = methods.defense('residue_mask')
  assert '--config.defenses=none,residue_mask' in page
  said = measured.unknown('attacks', 'mixmatch')
  assert 'No record' in said and '--config.attacks=mixmatch' in said


def test_vmasks_own_records_are_quoted():
  page = methods.defense('vmask')
  assert '| VMask 50x5 (0.25) |' in page
  assert all(f'table2_{c}.json' in page for c in ('tm', 'tfm', 'm', 'fm'))


def test_a_docstring_is_parted():
  idea, differs = methods.parts(
      'First.\n\nWhat it is.\n\n  a = b\n\nThe public code has c.\n\nArgs:\n  x'
  )
  assert idea == 'First.\n\nWhat it is.\n\n```text\na = b\n```'
  assert differs == 'The public code has c.'


def test_a_part_of_a_file_is_included(tmp_path):
  text = sources.included(
      'A\n\n<!-- include: BUILD.md#Add a network -->\n', 'add.md', {}, tmp_path
  )
  assert text.startswith('A\n\nA network is a factory that')


@pytest.mark.parametrize('line, said', [
    ('<!-- include: NONE.md -->', 'NONE.md, which is not there'),
    ('<!-- include: BUILD.md#No such -->', "no section 'No such'"),
])
def test_an_include_of_nothing_is_refused(line, said, tmp_path):
  with pytest.raises(ValueError, match=said):
    sources.included(line, 'x.md', {}, tmp_path)


def test_links_lead_to_pages_or_are_named(tmp_path):
  text = (
      '[a](../gafm/README.md#x) [b](code.py) [c](https://x.y) '
      '<!-- is: z -->5<!-- end -->\n\n    [d](e.md)\n'
  )
  found = sources.adapted(
      text, 'experiments/mid/README.md', 'results/mid.md',
      {'experiments/gafm/README.md': 'results/gafm.md'}, tmp_path,
  )
  assert found == (
      '[a](gafm.md#x) b (`experiments/mid/code.py`) [c](https://x.y) '
      '5\n\n    [d](e.md)\n'
  )


def test_pages_that_the_readme_names_are_linked_to(tmp_path):
  text = sources.included(
      '<!-- include: README.md#From the command line -->', 'index.md',
      build.known(), tmp_path,
  )
  assert '[its fields](use/results.md)' in text


def test_what_a_page_would_load_from_elsewhere_is_found(tmp_path):
  (tmp_path / 'a').mkdir()
  (tmp_path / 'a' / 'b.html').write_text(
      '<script src="https://unpkg.com/iframe-worker/shim"></script>'
      '<a href="https://x.y">x</a><img src="pic.png">'
  )
  assert build.local(tmp_path) == []
  assert 'src="../worker.js"' in (tmp_path / 'a' / 'b.html').read_text()
  (tmp_path / 'c.html').write_text('<img alt="" src="https://x.y/z.png">')
  assert 'x.y/z.png' in build.local(tmp_path)[0]


def test_the_contents_name_each_page_once():
  listed = re.findall(r'"([\w/-]+\.md)"', build.toml(build.nav()))
  assert len(listed) == len(set(listed))
  own = {
      p.relative_to(build.HERE / 'pages').as_posix()
      for p in (build.HERE / 'pages').rglob('*.md')
  }
  made = own | set(methods.pages()) | set(build.papers().values())
  assert set(listed) == made | {'gallery.md'}


def test_every_record_is_a_figure_or_a_table():
  """A new one is drawn, or said to be nothing that can be."""
  drawn = {(own.paper, own.record) for own in gallery.OWN}
  runs = {(run.paper, run.name) for run in measured.runs()}
  tables = {(p, name) for p, names in gallery.TABLES.items() for name in names}
  there = {
      (file.parts[-3], file.stem)
      for file in evidence.HERE.glob('*/records/*.json')
  }
  assert there == drawn | runs | tables
  assert not tables & (drawn | runs)


@pytest.mark.parametrize('own', gallery.OWN, ids=lambda own: own.caption[:20])
def test_records_are_there_for_the_papers_figures(own):
  assert (
      evidence.HERE / own.paper / 'records' / f'{own.record}.json'
  ).is_file()
