"""The README's tables from the records of runs, in percent.

An attacker's column is the accuracy of its completed network on test samples:
'40' knows 4 labels a class and trains MLP(512, 256), '40 linear' the paper's
MLP_sim, 'all' knows every label, scales its input and trains longer.
"""
from collections.abc import Callable, Iterable, Sequence

from experiments import claims, evidence, readers
from experiments.evidence import Table
from experiments.plugvfl import said
from experiments.plugvfl.rows import ACTIVE, named, PAPER, PASSIVE, read
from vfljax.report.reading import Cell, Results

FASHION = '--config.data.path=fashion_mnist.npz'
MNIST = '--config.data.name=mnist --config.data.path=mnist.npz'
CIFAR = '--config.data.name=cifar10 --config.data.path=cifar10.npz'
RUNS = dict(
    fig3=f'fig3.py:fashion_mnist {FASHION}',
    fig4=f'fig4.py {FASHION}',
    fig5=f'fig5.py {FASHION}',
    fig6=f'fig6.py {FASHION}',
    fig7=f'fig7.py {FASHION}',
    gradients=f'gradients.py {FASHION}',
    fig7_printed=f'fig7.py {FASHION} '
                 "'--config.defenses=none,slow psi(0.03,0.1,0.5,0.9)'",
    table2=f'fig6.py {FASHION} --config.defenses=none '
           '--config.attack.known=40',
    fig3_mnist=f'fig3.py:fashion_mnist {MNIST}',
    fig6_mnist=f'fig6.py {MNIST}',
    fig3_cifar10='fig3.py:cifar10 --config.data.path=cifar10.npz',
    fig4_cifar10=f'fig4.py {CIFAR}',
    fig5_cifar10=f'fig5.py {CIFAR}',
    fig6_cifar10=f'fig6.py {CIFAR}',
)
HEADS = {'40': '', '40 linear': ':linear', 'all': ':all'}
UNTRAINED = {'untrained extractor': 'scratch', "party 2's raw half":
             'local_model'}


def recorded(*names: str) -> Callable[[Table], Table]:
  return evidence.of_records(PAPER, RUNS, *names)


def models(results: Results, cell: Cell) -> list[str]:
  """Before and after party 2 quits."""
  return [
      evidence.spread(evidence.quantity(results, cell, what).values())
      for what in ('accuracy', 'quit_accuracy')
  ]


def alone(results: Results) -> str:
  values = evidence.alone(results).values()
  return evidence.spread(100 * v for v in values)


def quitting(name: str) -> str:
  """Before and after party 2 quits."""
  results = evidence.load(PAPER, name).results
  rows = [[named(c), *models(results, c)] for c in results.cells]
  rows.append(['the active party alone', '', alone(results)])
  return evidence.markdown(('', 'before', 'after'), rows)


def completed(
    name: str, kind: str = PASSIVE, heads: Iterable[str] = HEADS,
    known: str = '40',
) -> str:
  """The model, and what attackers read in the extractor.

  `known`: How many labels those have who do not have all.
  """
  results = evidence.load(PAPER, name).results
  heads = [h for h in heads if f'{kind}{HEADS[h]}' in results.attacks]
  rows = [
      [named(c), *models(results, c), *(
          evidence.spread(read(results, c, f'{kind}{HEADS[h]}').values())
          for h in heads
      )] for c in results.cells
  ]
  for what, baseline in UNTRAINED.items():
    rows.append([what, '', '', *(_without(results, baseline, heads))])
  rows.append(['the active party alone', '', alone(results),
               *[''] * len(heads)])
  named_heads = [h.replace('40', known) for h in heads]
  return evidence.markdown(('', 'before', 'after', *named_heads), rows)


def gradients() -> str:
  """What is read in gradients, beside completion with the same labels."""
  results = evidence.load(PAPER, 'gradients').results
  return readers.table(
      results, named,
      lambda c: evidence.spread(read(results, c, PASSIVE).values()),
      evidence.spread(read(results, results.cells[0], 'scratch').values()),
  )


def _without(
    results: Results, baseline: str, heads: Sequence[str]
) -> list[str]:
  """What the same attackers have without the federation."""
  names = [f'{baseline}{HEADS[h]}' for h in heads]
  none = results.cells[0]
  return [
      evidence.spread(read(results, none, n).values())
      if n in results.baselines else '' for n in names
  ]


TABLES: dict[str, Table] = dict(
    fig3=recorded('fig3')(lambda: quitting('fig3')),
    fig3_mnist=recorded('fig3_mnist')(lambda: quitting('fig3_mnist')),
    fig3_cifar10=recorded('fig3_cifar10')(lambda: quitting('fig3_cifar10')),
    fig4=recorded('fig4')(lambda: completed('fig4')),
    fig4_cifar10=recorded('fig4_cifar10')(lambda: completed('fig4_cifar10')),
    fig5=recorded('fig5')(lambda: completed('fig5', ACTIVE)),
    fig5_cifar10=recorded('fig5_cifar10')(
        lambda: completed('fig5_cifar10', ACTIVE)
    ),
    fig6=recorded('fig6')(lambda: completed('fig6')),
    fig6_mnist=recorded('fig6_mnist')(lambda: completed('fig6_mnist')),
    fig6_cifar10=recorded('fig6_cifar10')(lambda: completed('fig6_cifar10')),
    fig7=recorded('fig7')(lambda: completed('fig7')),
    fig7_printed=recorded('fig7_printed')(lambda: completed('fig7_printed')),
    gradients=recorded('gradients')(gradients),
    table2=recorded('table2')(lambda: completed('table2', known='400')),
    claims=lambda: claims.table(PAPER),
)
NUMBERS: dict[str, Table] = said.NUMBERS
