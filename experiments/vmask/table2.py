"""VMask, Table II: main task and model completion under every defense.

  python launch.py --config=experiments/vmask/table2.py

MLP3 on MNIST's halves ("TM"); table2_tfm.py, table2_m.py and table2_fm.py are
the other three columns that two cores can run.
"""
from experiments.config import Config, Entry, Paper
from experiments.vmask import common

# (main, attack) accuracy in %, Table II.
PAPER: dict[str, dict[str, tuple[float, float]]] = {
    'none': dict(
        TM=(99.02, 80.72), TFM=(90.59, 67.34), M=(98.72, 79.44),
        FM=(90.99, 75.21),
    ),
    'NG': dict(
        TM=(98.97, 77.26), TFM=(90.44, 65.83), M=(98.55, 77.90),
        FM=(91.11, 75.62),
    ),
    'CG': dict(
        TM=(99.05, 81.32), TFM=(90.72, 67.80), M=(98.71, 78.70),
        FM=(91.03, 75.14),
    ),
    'DG': dict(
        TM=(98.91, 78.25), TFM=(90.25, 68.67), M=(98.45, 77.99),
        FM=(90.16, 67.02),
    ),
    'FedPass': dict(
        TM=(98.98, 80.61), TFM=(90.21, 67.34), M=(98.29, 76.40),
        FM=(90.89, 75.32),
    ),
    'LabelDP': dict(
        TM=(98.98, 82.54), TFM=(90.34, 71.11), M=(97.49, 76.83),
        FM=(89.97, 74.86),
    ),
    'KDk': dict(
        TM=(97.36, 81.93), TFM=(88.68, 72.85), M=(94.70, 73.09),
        FM=(86.74, 69.84),
    ),
    'dCor': dict(
        TM=(99.01, 75.13), TFM=(90.35, 61.81), M=(98.72, 76.97),
        FM=(91.05, 73.03),
    ),
    'MID': dict(
        TM=(98.46, 72.01), TFM=(89.67, 57.26), M=(97.82, 59.79),
        FM=(90.58, 60.31),
    ),
    'VMask-RS': dict(
        TM=(98.95, 43.81), TFM=(90.45, 61.12), M=(98.70, 41.84),
        FM=(90.73, 40.62),
    ),
    'VMask-AS': dict(
        TM=(99.01, 43.44), TFM=(90.53, 50.92), M=(98.72, 37.95),
        FM=(90.83, 43.97),
    ),
    'VMask-ALLS': dict(
        TM=(99.02, 42.60), TFM=(90.52, 48.61), M=(98.69, 38.27),
        FM=(90.85, 45.09),
    ),
    'VMask': dict(
        TM=(99.00, 42.85), TFM=(90.49, 50.76), M=(98.66, 38.64),
        FM=(90.64, 44.14),
    ),
}
# (alone, scratch) in %.
BASELINES = dict(
    TM=(91.87, 41.35), TFM=(85.61, 50.25), M=(93.92, 37.67), FM=(86.33, 45.37),
)


def column(model: str, dataset: str) -> Config:
  """One column of the table."""
  short = common.ABBREVIATIONS[model][dataset]
  listed = (
      Entry('none'),
      *(common.masked(kind, model=model) for kind in common.VARIANTS),
      *common.compared(),
  )
  alone, scratch = BASELINES[short]
  where = f'{common.SOURCE}, Table II'
  return common.config(
      f'table2_{short}', listed, model, dataset,
      paper=(
          *common.table(PAPER, short, 'Table II'),
          Paper('none', 'alone_accuracy', alone / 100, source=where),
          Paper(
              'none', 'accuracy_best', scratch / 100, attack='scratch',
              source=where,
          ),
      ),
  )


def get_config() -> Config:
  return column('mlp3', 'mnist')
