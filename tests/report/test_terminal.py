"""Tables in a terminal: as wide as there is room, and nothing is cut off."""
from hypothesis import given
from hypothesis import strategies as st
import pytest

from vfljax.report import terminal
from vfljax.report.tables import Table, Text

NAMES = Table(
    'Names', '', ('defense', 'worst leakage', 'by'), [
        [Text('gradient_compression'), Text('46.4 ± 9.5'),
         Text('gradient clustering')],
        [Text('iso'), Text('-100.0 ± 12.5'), Text('norm scoring')],
    ],
)


def lines(columns):
  return terminal.table(NAMES, columns).splitlines()


@pytest.mark.parametrize('columns, first', [
    (60, 'gradient_compression  46.4±9.5       gradient clustering'),
    (52, 'gradient_compression  46.4±9.5       gradient'),
    (45, 'gradient_compression  46.4±9.5     gradient'),
    (40, 'gradient_compre  46.4±9.5     gradient'),
])
def test_words_stay_whole_before_names_are_broken(columns, first):
  text = lines(columns)
  assert first in text and max(map(len, text)) <= columns


def test_a_table_has_a_line_for_each_row_and_one_below_its_head():
  assert lines(60) == [
      'Names',
      'defense               worst leakage  by',
      '─' * 56,
      'gradient_compression  46.4±9.5       gradient clustering',
      'iso                   -100.0±12.5    norm scoring',
  ]


@given(
    st.lists(st.lists(
        st.text('ab1_ ', min_size=1, max_size=30), min_size=3, max_size=3
    ), min_size=1, max_size=4),
    st.integers(12, 90),
)
def test_nothing_is_cut_off(cells, columns):
  made = Table('T', '', ('one', 'two', 'three'), [
      [Text(cell) for cell in row] for row in cells
  ])
  text = terminal.table(made, columns)
  assert max(map(len, text.splitlines())) <= columns
  for letter in 'ab1_':
    assert text.count(letter) == sum(
        cell.count(letter) for row in cells for cell in row
    )


def test_in_a_notebook_a_table_is_text_too(monkeypatch):
  """Rich would show it by itself, before the words around it."""
  from rich import console
  monkeypatch.setattr(console, '_is_jupyter', lambda: True)
  assert lines(60)[-1].split()[0] == 'iso'


@pytest.mark.parametrize('count, fits', [(10, True), (11, False)])
def test_too_many_columns_for_a_terminal_are_not_tried(count, fits):
  """Of so many it printed lines without a letter."""
  names = tuple(f'n{i}' for i in range(count))
  made = Table('What differs', '', names, [[*map(Text, names)]])
  said = terminal.table(made, 40)
  assert max(map(len, said.splitlines())) <= 40 or not fits
  assert said.startswith('What differs\n') == fits
  if not fits:
    assert said == (
        'What differs: 11 columns, too many for lines of 40 characters.'
    )
