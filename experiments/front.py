"""The numbers from records that the project's own README quotes."""
from experiments import evidence, readers
from experiments.bench import quotes
from experiments.evidence import Table
from experiments.gafm import common, measured, table2
from experiments.plugvfl import rows
from experiments.vmask import older

README = evidence.HERE.parent / 'README.md'


def gafm() -> str:
  """Table 2 in short: the paper's, and ours by the last and the best epoch."""
  results = measured.load('table2')
  lines = []
  for defense, name in (
      ('none', 'no defense'), ('max_norm', 'Max-Norm'), ('marvell', 'Marvell'),
      ('gafm', 'GAFM'),
  ):
    cell = evidence.cell(results, defense)
    paper = {p.attack: p.mean for p in table2.PAPER if p.defense == defense}
    texts = [
        f'{100 * paper[None]:.0f} / {measured.auc(results, cell).mean():.0f}'
    ]
    for attack in common.ATTACKS:
      ours = [measured.leak(results, cell, attack, epoch).mean()
              for epoch in ('last', 'max')]
      texts.append(
          ' / '.join(f'{x:.0f}' for x in (100 * paper[attack], *ours))
      )
    lines.append([name, *texts])
  head = ('paper / last epoch / best epoch', 'AUC', 'leak AUC: norm', 'mean',
          'median')
  return evidence.markdown(head, lines)


def _completed(row: str) -> Table:
  """The attack on MNIST with the authors' settings, percent."""
  return lambda: f"{older.mean(_authors()[row]['attack']):.0f}"


def _authors() -> dict[str, older.Row]:
  return older.column('TM', 'authors')


def _transcript(row: str) -> Table:
  """The attack of `adaptive`, under T3, percent."""
  def made() -> str:
    found = older.adaptive('adaptive')['T3'][row]['best']
    return f'{older.mean(found):.0f}'
  return made


def _plugvfl(what: str) -> Table:
  """What 40 labels read under PlugVFL at lambda 0.1, percent."""
  def made() -> str:
    row = rows.rows('gradients')['lambda 0.1']
    read = readers.read(rows.results('gradients'), (row.label, row.strength))
    return f'{row.few if what == "completed" else read.start:.0f}'
  return made


TABLES: dict[str, Table] = dict(
    gafm=gafm, speed=quotes.speed, waiting=quotes.waiting
)
NUMBERS: dict[str, Table] = quotes.NUMBERS | dict(
    vmask=_completed('VMask'), vanilla=_completed('none'),
    kept=_transcript('linear 1'), known=_transcript('full'),
    redrawn=_transcript('redrawn'),
    **{f'plugvfl_{what}': _plugvfl(what) for what in ('completed', 'read')},
)
