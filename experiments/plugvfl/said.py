"""Numbers in the README's sentences, from the records and verified.json."""
import json

from experiments import evidence
from experiments.plugvfl import quits
from experiments.plugvfl.rows import PAPER, Row, alone, defended, rows
from experiments.readers import AT_GUESSING

QUITTING = ('fig3', 'fig3_mnist', 'fig3_cifar10')
# PlugVFL's records that did not come out whole when they ran again.
AGAIN = (
    'fig4', 'fig4_cifar10', 'fig6', 'fig6_cifar10', 'fig6_mnist',
    'fig7', 'fig7_printed', 'gradients',
)
LABELS = {'fig6': 'Fashion-MNIST', 'fig6_mnist': 'MNIST',
          'fig6_cifar10': 'CIFAR-10'}


def again(record: str) -> str:
  """'80 of 132': how many values came out when it last ran again."""
  file = evidence.HERE / 'verified.json'
  found = [line for line in json.loads(file.read_text('utf-8'))
           if line['record'] == f'{PAPER}/records/{record}.json']
  return f"{found[-1]['came_out']} of {found[-1]['values']}"


def both(row: Row) -> str:
  """Accuracy before and after party 2 quits."""
  return f'{row.accuracy:.1f} / {row.after:.1f}'


def heads(record: str) -> str:
  return both(rows(record)['multi-head'])


def as_good(record: str) -> str:
  """Every p as good as multi-head training on both sides."""
  return ', '.join(
      f'{x.name} {both(x)}' for x in quits.as_good_as_heads(record)
  ) or 'no p'


def over_alone() -> str:
  """The rows that hold off all labels in a model above the active party's."""
  return '; '.join(
      f'{data}, {x.name}: reads {x.all:.2f} % at {x.accuracy:.2f}, alone '
      f'{alone(record):.2f}'
      for record, data in LABELS.items() for x in defended(rows(record))
      if x.all <= AT_GUESSING and x.accuracy > alone(record)
  ) or 'none'


NUMBERS = {
    **{f'again_{r}': lambda r=r: again(r) for r in AGAIN},
    **{f'heads_{r}': lambda r=r: heads(r) for r in QUITTING},
    **{f'as_good_{r}': lambda r=r: as_good(r) for r in QUITTING},
    'over_alone': over_alone,
}
