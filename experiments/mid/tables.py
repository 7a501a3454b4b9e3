"""The README's tables from the records of runs.

Numbers are in percent unless stated otherwise. 'Worth left' is the share that a
defense leaves of what the passive party adds to the best model's accuracy (or
AUC, for two classes). At 0 the model is no better than the active party's own.
"""
from collections.abc import Mapping
from typing import NamedTuple

from experiments import claims, evidence
from experiments.evidence import Table
from experiments.mid import cafe, curves, knowing, rebuilt, rivalries
from vfljax.report import reading
from vfljax.report.reading import Cell, Results

PAPER = 'mid'
MNIST = '--config.data.path=mnist.npz'
FASHION = ('--config.data.name=fashion_mnist '
           '--config.data.path=fashion_mnist.npz')
CIFAR10 = ('--config.data.name=cifar10 --config.data.path=cifar10.npz '
           '--config.data.limit=10000')
DLI = ("fig4.py:dli --config.data.path=mnist.npz "
       "'--config.defenses=none,{}'")
# A benign optimizer with momentum, at fig3's learning rate and a tenth of it.
RATES = dict(fig3_momentum=0.02, fig3_momentum_slow=0.002)
RUNS = dict(
    fig4_dli=DLI.format('MID,DP-G,DP-L,GS,GS no residual'),
    fig4_epochs=DLI.format('MID,DP-G,DP-L,GS,GS no residual')
    + ' --config.attacks=direct_label --config.train.measure_every=1',
    fig4_dg=DLI.format('MID,DG'),
    fig4_bli=f'fig4.py:bli {MNIST} '
             '--config.attack.gradient_inversion.steps=300',
    fig4_bli_linear=f'fig4.py:bli_linear {MNIST}',
    fig4_bli_linear_fashion=f'fig4.py:bli_linear {FASHION}',
    fig4_bli_fashion=f'fig4.py:bli {FASHION} '
                     '--config.attack.gradient_inversion.steps=300',
    fig5_replacement=f'fig5.py:replacement {MNIST} --config.data.limit=0',
    fig5_noisy=f'fig5.py:noisy {MNIST}',
    fig5_missing=f'fig5.py:missing {MNIST}',
    fig4_dli_fashion=DLI.format('MID,DP-G,DP-L,GS,GS no residual').replace(
        MNIST, FASHION
    ),
    fig5_replacement_fashion=f'fig5.py:replacement {FASHION} '
                             '--config.data.limit=0',
    fig5_noisy_fashion=f'fig5.py:noisy {FASHION}',
    fig5_missing_fashion=f'fig5.py:missing {FASHION}',
    fig4_dli_cifar10=DLI.format('MID,DP-G,DP-L,GS,GS no residual').replace(
        MNIST, CIFAR10
    ),
    fig4_bli_cifar10=f'fig4.py:bli {CIFAR10} --config.seeds=3 '
                     '--config.attack.gradient_inversion.steps=300',
    **{
        f'fig5_{which}_cifar10': f'fig5.py:{which} {CIFAR10}'
        for which in ('replacement', 'noisy', 'missing')
    },
    fig8='fig8.py --config.data.path=fashion_0_6.npz',
    fig8_epochs='fig8.py --config.data.path=fashion_0_6.npz '
    '--config.attacks=direction_scoring --config.train.measure_every=1',
    fig8_cifar10='fig8.py --config.data.path=cars_lorries.npz',
    fig9=f'fig9.py {MNIST} --config.data.limit=0 --config.seeds=3',
    **rebuilt.RUNS,
    **knowing.RUNS,
    fig3_pmc='fig3.py:pmc,cpu --config.data.path=cifar10.npz',
    fig3_amc='fig3.py:amc,cpu --config.data.path=cifar10.npz',
    **{
        name: 'fig3.py:pmc,cpu --config.data.path=cifar10.npz '
        f'--config.train.optimizer=momentum --config.train.learning_rate={rate}'
        " '--config.defenses=none,MID(1)' --config.seeds=1"
        ' --config.train.epochs=2 --config.train.measure_every=1'
        for name, rate in RATES.items()
    },
)


class Column(NamedTuple):
  """What an attack reaches, by one of its metrics.

  Attributes:
    beside: Another metric, in brackets.
  """

  attack: str
  metric: str
  beside: str = ''
  digits: int = 1


LEARNED = {
    'learned, start': Column('learned_gradient', 'accuracy_start'),
    'learned, end': Column('learned_gradient', 'accuracy_end'),
}
EPOCHS = {
    'DLI, best epoch (last)': Column(
        'direct_label', 'accuracy', 'accuracy_last'
    ),
}
DIRECT = {
    'DLI, last epoch': Column('direct_label', 'accuracy_last'),
    'DLI, first round': Column('direct_label:replayed', 'accuracy_start'),
} | LEARNED
INVERTED = {
    name: Column('gradient_inversion', f'accuracy_{when}', f'matched_{when}')
    for name, when in (('first round', 'start'), ('trained', 'end'))
}
ADAPTED = INVERTED | {
    f'{name}, linear, read right': Column(
        'gradient_inversion:linear', f'matched_{when}'
    ) for name, when in (('first round', 'start'), ('trained', 'end'))
}
DIRECTION_EPOCHS = {
    'DS, best epoch (last)': Column(
        'direction_scoring', 'leak_auc', 'leak_auc_last'
    ),
}
DIRECTION = {
    'DS, last epoch': Column('direction_scoring', 'leak_auc_last'),
    'learned, start': Column('learned_gradient', 'leak_auc_start'),
    'learned, end': Column('learned_gradient', 'leak_auc_end'),
}
REPLACED = {
    'success': Column('label_replacement', 'backdoor_accuracy'),
    'without a trigger': Column('label_replacement', 'untriggered'),
}
NOISY = {'lost on noisy samples': Column('noisy_sample', 'drop')}
MISSING = {'lost on missing features': Column('missing_features', 'drop')}
CAFED = {
    f'{when}: {metric.upper()}': Column('cafe', f'{metric}_{stage}', '', digits)
    for when, stage in (('untrained', 'start'), ('trained', 'end'))
    for metric, digits in (('psnr', 1), ('ssim', 2))
}
COMPLETED = {
    'MixMatch, frozen': Column('mixmatch:frozen', 'accuracy_last'),
    'tuned': Column('mixmatch', 'accuracy_last'),
    'tuned, 10': Column('mixmatch:10', 'accuracy_last'),
}


def completed(kind: str) -> dict[str, Column]:
  return {
      'plain, 40': Column(kind, 'accuracy_last'),
      'plain, 10': Column(f'{kind}:10', 'accuracy_last'),
  } | COMPLETED


def _shown(results: Results, cell: Cell, column: Column) -> str:
  values = curves.success(results, cell, column.attack, [column.metric])
  scaled = (v / 100 for v in values.values()) if column.metric.startswith(
      'ssim') else values.values()
  if not values:
    return ''
  text = evidence.spread(scaled, column.digits)
  if column.beside:
    beside = curves.success(results, cell, column.attack, [column.beside])
    text += f' ({evidence.mean(beside.values(), column.digits)})'
  return text


def table(name: str, columns: Mapping[str, Column]) -> str:
  """A row for each defense at a strength."""
  head, rows = _laid_out(evidence.load(PAPER, name).results, columns)
  return evidence.markdown(head, rows)


def _laid_out(
    results: Results, columns: Mapping[str, Column]
) -> tuple[list[str], list[list[str]]]:
  """A table's head and its rows, the last one of the active party alone."""
  some = next(iter(columns.values()))
  left = {
      (p.defense, p.strength): 100 * p.left
      for p in curves.curves(results, some.attack, some.metric).points
  }
  rows = [
      [curves.named(c), evidence.spread(
          100 * v for v in reading.utility(results, c).values()
      ), evidence.mean([left[c]], 0) if c in left else '',
       *(_shown(results, c, column) for column in columns.values())]
      for c in results.cells
  ]
  rows.append([
      'the active party alone',
      evidence.spread(100 * v for v in evidence.alone(results).values()), '0',
      *[''] * len(columns),
  ])
  utility = 'AUC' if results.metric == 'auc' else results.metric
  return ['', utility, 'worth left', *columns], rows


def stolen(name: str, kind: str) -> str:
  """Completed models, and what their attacker has without the federation."""
  results = evidence.load(PAPER, name).results
  head, rows = _laid_out(results, completed(kind))
  none = results.cells[0]
  for attack, said in (
      ('local_model', 'a local model, no federation'),
      ('scratch', 'the same network from scratch'),
  ):
    known = (
        _shown(results, none, Column(attack + labels, 'accuracy_last'))
        for labels in ('', ':10')
    )
    rows.append([said, '', '', *known, '', '', ''])
  return evidence.markdown(head, rows)


def momentum() -> str:
  """Whether SGD with momentum alone ends in NaN under MID at lambda 1."""
  head, rows = [], []
  for name, rate in RATES.items():
    results = evidence.load(PAPER, name).results
    rows.append([f'{rate:g}', *(
        evidence.spread(100 * v for v in reading.utility(results, c).values())
        for c in results.cells
    )])
    head = ['learning rate', *map(curves.named, results.cells)]
  return evidence.markdown(head, rows)


def cafed(name: str) -> str:
  """CAFE, what guessing the mean image has, and the paper's CIFAR-10."""
  results = evidence.load(PAPER, name).results
  head, rows = _laid_out(results, CAFED)
  guess = reading.find(
      results, ('none', None), 'cafe', 'mean_image_psnr_start'
  )
  psnr = evidence.spread(guess.values())
  rows.append(['mean image, no attack', '', '', psnr, '', psnr, ''])
  theirs = [
      [f'{100 * accuracy:.1f}', f'{psnr:.1f}']
      for psnr, accuracy in (cafe.TABLE2[c] for c in results.cells)
  ]
  theirs += [['', '']] * (len(rows) - len(theirs))
  return evidence.markdown(
      [*head, "paper's accuracy, CIFAR-10", 'PSNR'],
      [row + more for row, more in zip(rows, theirs, strict=True)],
  )


def equal() -> str:
  """MID and its best rival at equal accuracy, for every attack recorded."""
  rows = []
  for rivalry in rivalries.RIVALRIES:
    if not evidence.exists(PAPER, rivalry.record):
      continue
    lines = {c.loss: c for c in rivalry.compared()}
    rows.append([rivalry.title, *(
        f'{lines[loss]}' if loss in lines else '' for loss in curves.LOSSES
    )])
  head = ('attack', *(f'{loss:g} points lost' for loss in curves.LOSSES))
  return evidence.markdown(head, rows)


def _of(name: str, made: Table) -> Table:
  return evidence.of_records(PAPER, RUNS, name)(made)


def _recorded(name: str, columns: Mapping[str, Column]) -> Table:
  return _of(name, lambda: table(name, columns))


def _stolen(name: str, kind: str) -> Table:
  return _of(name, lambda: stolen(name, kind))


TABLES: dict[str, Table] = dict(
    fig4_dli=_recorded('fig4_dli', DIRECT),
    fig4_dli_fashion=_recorded('fig4_dli_fashion', DIRECT),
    fig4_epochs=_recorded('fig4_epochs', EPOCHS),
    fig4_dg=_recorded('fig4_dg', DIRECT),
    fig4_bli=_recorded('fig4_bli', INVERTED),
    fig4_bli_linear=_recorded('fig4_bli_linear', ADAPTED),
    fig4_bli_linear_fashion=_recorded('fig4_bli_linear_fashion', ADAPTED),
    fig4_bli_fashion=_recorded('fig4_bli_fashion', INVERTED),
    fig5_replacement=_recorded('fig5_replacement', REPLACED),
    fig5_noisy=_recorded('fig5_noisy', NOISY),
    fig5_replacement_fashion=_recorded('fig5_replacement_fashion', REPLACED),
    fig5_noisy_fashion=_recorded('fig5_noisy_fashion', NOISY),
    fig5_missing=_recorded('fig5_missing', MISSING),
    fig5_missing_fashion=_recorded('fig5_missing_fashion', MISSING),
    fig4_dli_cifar10=_recorded('fig4_dli_cifar10', DIRECT),
    fig4_bli_cifar10=_recorded('fig4_bli_cifar10', INVERTED),
    fig5_replacement_cifar10=_recorded('fig5_replacement_cifar10', REPLACED),
    fig5_noisy_cifar10=_recorded('fig5_noisy_cifar10', NOISY),
    fig5_missing_cifar10=_recorded('fig5_missing_cifar10', MISSING),
    fig8=_recorded('fig8', DIRECTION),
    fig8_epochs=_recorded('fig8_epochs', DIRECTION_EPOCHS),
    fig8_cifar10=_recorded('fig8_cifar10', DIRECTION),
    fig9=_recorded('fig9', REPLACED),
    **{r: _of(r, lambda r=r: cafed(r)) for r in rebuilt.RUNS},
    **{told.record: _of(told.record, told.table) for told in knowing.RECORDS},
    fig3_pmc=_stolen('fig3_pmc', 'model_completion'),
    fig3_amc=_stolen('fig3_amc', 'active_completion'),
    fig3_momentum=evidence.of_records(PAPER, RUNS, *RATES)(momentum),
    equal=equal,
    claims=lambda: claims.table(PAPER),
)
NUMBERS: dict[str, Table] = rebuilt.NUMBERS | knowing.NUMBERS
