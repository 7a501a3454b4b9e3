"""VMask's Figures 8, 9 and 10, drawn from records of our runs."""
from typing import Any

import matplotlib.figure
import numpy as np

from experiments.vmask import older


def budgets(rows: dict[str, older.Row]) -> matplotlib.figure.Figure:
  """What a budget buys: the attack's accuracy, imagined and real (Figure 8).

  Args:
    rows: `older.budgets`.
  """
  runs = {
      float(name.rsplit(' ', 1)[1]): row for name, row in rows.items()
      if name.startswith('VMask 50x5')
  }
  at = sorted(runs, reverse=True)
  real, imagined = (
      [np.asarray(runs[b][what]) / 100 for b in at]
      for what in ('attack', 'simulated_leakage')
  )
  figure, axes = _axes()
  _line(axes, at, real, 'attack', 'o-')
  _line(axes, at, imagined, 'attack as the defender imagines it', 's--')
  axes.plot(at, 100 * np.asarray(at), ':', color='0.5', label='budget')
  axes.invert_xaxis()
  axes.set(xlabel='budget', ylabel='accuracy (%)')
  axes.legend(fontsize=8)
  return figure


def samples(record: dict[str, Any]) -> matplotlib.figure.Figure:
  """By the defender's own samples (Figures 9 and 10).

  The attack's accuracy, and the mask ratio: layers hidden, over all epochs.
  """
  names, rows = list(record['rows']), record['rows'].values()
  figure, axes = _axes()
  places = range(len(names))
  _line(axes, places, [np.asarray(row['VMask']['attack 1']) for row in rows],
        'attack', 'o-')
  _line(axes, places, [np.asarray(row['VMask']['mask_ratio']) for row in rows],
        'layers hidden', 's--')
  plain = np.asarray(record['rows'][names[0]]['vanilla']['attack 1'])
  scratch = np.asarray(record['rows'][names[0]]['vanilla']['scratch 1'])
  for level, word in ((plain, 'attack, nothing hidden'), (scratch, 'scratch')):
    axes.axhline(100 * level.mean(), color='0.5', ls=':')
    axes.annotate(word, (0, 100 * level.mean()), fontsize=8, va='bottom')
  axes.set_xticks(list(places), names)
  axes.set(ylabel='%', ylim=(0, 105))
  axes.legend(fontsize=8)
  return figure


def _axes():
  figure = matplotlib.figure.Figure((6, 4))
  return figure, figure.add_subplot()


def _line(axes, at, values: list[np.ndarray], label: str, form: str) -> None:
  """Means over trainings; bars are their standard deviation."""
  runs = [v.reshape(len(v), -1).mean(1) if v.ndim else v[None] for v in values]
  axes.errorbar(
      list(at), [100 * r.mean() for r in runs],
      [100 * r.std(ddof=1) if len(r) > 1 else 0.0 for r in runs],
      fmt=form, capsize=3, label=label,
  )
