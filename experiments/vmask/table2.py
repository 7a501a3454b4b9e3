"""VMask, Table II: main task and model completion under every defense.

  python launch.py --config=experiments/vmask/table2.py

MLP3 on MNIST's halves ("TM"); table2_tfm.py, table2_m.py and table2_fm.py are
the other three columns that two cores can run. Two rows are not in the paper:
VMask whose defender imagines the attacker as it is, and FedPass with passports
in both parties' networks.
"""
from vfljax.runner.config import Config, Entry, Paper
from experiments.vmask import common, paper


def column(model: str, dataset: str) -> Config:
  """One column of the table."""
  short = common.ABBREVIATIONS[model][dataset]
  source = 'Table VIII' if 'CN10' in short else 'Table II'
  listed = (
      Entry('none'),
      *(common.masked(kind, model=model) for kind in common.VARIANTS),
      common.imagined(model),
      *common.compared(),
      Entry('fedpass', (0.5,), label='FedPass both'),
  )
  alone, scratch = paper.BASELINES[short]
  where = f'{common.SOURCE}, {source}'
  return common.config(
      f"table2_{short.replace(' ', '_')}", listed, model, dataset,
      paper=(
          *common.table(short, source),
          Paper('none', 'alone_accuracy', alone / 100, source=where),
          Paper(
              'none', 'accuracy_best', scratch / 100, attack='scratch',
              source=where,
          ),
      ),
  )


def get_config() -> Config:
  return column('mlp3', 'mnist')
