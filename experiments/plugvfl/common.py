"""What PlugVFL's experiments share: federation, attackers, baselines.

Two parties hold the left and the right half of every image; the active one has
the left. The paper trains ResNet18s on CIFAR; here every bottom is an MLP whose
embedding ends in a ReLU, so that two cores can train it. As in the paper: SGD
at 0.01 and batches of 32.
"""
from typing import Any

from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, Paper, TrainConfig,
    Variant,
)

SOURCE = 'PlugVFL (under review)'
NOISES = (1e-4, 1e-3, 1e-2)  # Laplace scales of NG, PPDL and DSGD.
DROPS = (0.0, 0.05, 0.1, 0.3, 0.5)
MLP = (512, 256)  # The paper's head of an attacker; its MLP_sim is linear.
COMPLETION = dict(head=MLP, tune=False, epochs=200, stages=1)
# A strong attacker: every label, its input scaled, enough steps.
ALL = dict(known=0, head=MLP, standardize=True, batch_size=128, epochs=12)


def config(
    name: str, listed: tuple[Entry, ...], dataset: str = 'fashion_mnist',
    path: str = '', **fields: Any,
) -> Config:
  """An experiment on the halves of a data set's images.

  20000 training rows, 20 epochs: 12500 rounds. --config.data.limit=0 takes all.
  """
  return Config(
      experiment=f'plugvfl_{name}',
      seeds=3,
      listed=listed,
      data=DataConfig(
          name=dataset, path=path or f'{dataset}.npz', split='left_right',
          limit=20_000,
      ),
      model=ModelConfig(
          bottom=(128, 64), bottom_final='relu', top=(128,),
      ),
      train=TrainConfig(
          epochs=20, batch_size=32, optimizer='sgd', learning_rate=0.01,
          measure_every=5,
      ),
      attack=AttackConfig(known=4, own=dict(completion=COMPLETION)),
      quitting=True,
      **fields,
  )


def completions(kind: str = 'model_completion') -> dict[str, Any]:
  """The attackers of Figures 4 to 6, and what each has without the federation.

  `kind` with MLP and 4 labels a class; ':linear' with MLP_sim; ':all' with
  every label, a standardised input and more steps; 'scratch:...' from an
  untrained extractor, and 'local_model...' from its raw half.
  """
  names = (kind, 'scratch', 'local_model')
  variants = [Variant(f'{name}:all', ALL) for name in names]
  variants.append(Variant(f'{kind}:linear', dict(head=())))
  return dict(
      listed_attacks=(*names, *(v.name for v in variants)),
      variants=tuple(variants),
  )


def dropout(label: str = 'plugvfl', **options: Any) -> Entry:
  """Party dropout alone, lambda 0, at every p of Figure 3."""
  return Entry(
      'plugvfl', options=dict(weight=0.0) | options, label=label,
      grid=dict(drop=DROPS),
  )


def baselines() -> tuple[Entry, ...]:
  """The defenses PlugVFL is compared with, in the ranges of its section 5.

  PPDL: theta up to 0.01, tau 0.001. Its bound on an element is Fu et al.'s
  0.001, as the paper has none. DSGD: 1 and 2 levels, which we take to be bins,
  and noise as in PPDL. It is Fu et al.'s, whom the paper cites: their bound of
  0.03 is for batches of 32, too. By Kang et al.'s Eq. 19 a level is not a value
  of its own but two deviations of the batch, and zero beyond: 'DSGD Eq. 19'.
  """
  return (
      Entry('dp_laplace', NOISES, label='NG'),
      Entry('gradient_compression', (0.1, 0.01), label='GC'),
      Entry(
          'ppdl', (0.001, 0.01), dict(tau=1e-3), 'PPDL',
          grid=dict(scale=NOISES),
      ),
      Entry(
          'discrete_sgd', (1, 2), dict(bound=0.03), 'DSGD',
          grid=dict(noise=NOISES),
      ),
      Entry(
          'discrete_sgd', (1, 2), label='DSGD Eq. 19', grid=dict(noise=NOISES)
      ),
  )


def quit_paper(rows: dict[str, tuple[float, float]], table: str):
  """Accuracy (%) before and after quitting, by defense, as the paper has it."""
  return tuple(
      Paper(defense, metric, value / 100, source=f'{SOURCE}, {table}')
      for defense, values in rows.items()
      for metric, value in zip(('accuracy', 'quit_accuracy'), values)
  )
