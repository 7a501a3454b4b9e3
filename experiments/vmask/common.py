"""What VMask's experiments share: federations, attackers, Table VII's settings.

Two parties hold the left and the right half of every image, bottoms are MLP3 or
LeNet5, embeddings are added up, top and inference head have one hidden layer of
64. As in Table VII: SGD at 0.1, batches of 128, 4 known labels a class, 50
epochs of an attack that trains the whole completed model, budget 0.25, 640
auxiliary samples. The paper trains 50 epochs on all 60000 images; here fewer,
so that a row takes two cores minutes: see README.md.
"""
from typing import Any

from experiments.vmask import paper
from vfljax.completion import Schedule
from vfljax.defenses.shadow import Attacker
from vfljax.runner.config import (
    AttackConfig, AuxiliaryConfig, Config, DataConfig, Entry, ModelConfig,
    Paper, TrainConfig,
)

BUDGET = 0.25
LIMITS = dict(mlp3=(20_000, 10), lenet5=(10_000, 8))  # (images, epochs)
SOURCE = 'VMask (NDSS 2025)'
ABBREVIATIONS = {
    'mlp3': dict(mnist='TM', fashion_mnist='TFM'),
    'lenet5': dict(mnist='M', fashion_mnist='FM'),
    'vgg13': dict(cifar10='VGG13 CF10', cinic10='VGG13 CN10'),
    'resnet18': dict(cifar10='ResNet18 CF10', cinic10='ResNet18 CN10'),
}
SELECTIONS = dict(
    critical='VMask', accumulative='VMask-AS', random='VMask-RS',
    all='VMask-ALLS',
)


def config(
    name: str, listed: tuple[Entry, ...], model: str = 'mlp3',
    dataset: str = 'mnist', **fields: Any,
) -> Config:
  """An experiment on the halves of a data set's images.

  MLP3 trains 10 epochs on the first 20000 images, LeNet5 8 on 10000:
  --config.data.limit=0 and --config.train.epochs=50 are the paper's, and what
  VGG13 and ResNet18 do, which are for a GPU. MLP3's attacker takes all 40
  labels a step, the others' 8 of them: with one step an epoch a LeNet5 that
  starts at random stays at chance, far from the paper's "Scratch".
  """
  large = model in ('vgg13', 'resnet18')
  limit, epochs = (0, 50) if large else LIMITS[model]
  images = model != 'mlp3'
  return Config(
      experiment=f'vmask_{name}',
      seeds=3,
      listed=listed,
      listed_attacks=('model_completion',),
      data=DataConfig(
          name=dataset, path=f'{dataset}.npz', split='left_right',
          limit=limit,
      ),
      model=ModelConfig(name=model, top=(64,), aggregation='sum'),
      train=TrainConfig(
          epochs=epochs, batch_size=128, optimizer='sgd', learning_rate=0.1,
      ),
      attack=AttackConfig(known=4, repeats=5, own=dict(completion=dict(
          head=(64,), epochs=50, stages=50, optimizer='sgd',
          batch_size=8 if images else 0, learning_rate=0.1,
      ))),
      auxiliary=AuxiliaryConfig(samples=2560 if large else 640),
      **fields,
  )


def attacker(model: str = 'mlp3', draws: int = 1, epochs: int = 20) -> Attacker:
  """Whom the defender imagines: the attacker above, for 20 epochs.

  The best of all epochs counts, of both (Algorithm 3).
  """
  batch = 0 if model == 'mlp3' else 8
  return Attacker(Schedule(epochs, batch, epochs, 0.1, 'sgd'), draws=draws)


def masked(
    selection: str = 'critical', budgets: tuple[float, ...] = (BUDGET,),
    model: str = 'mlp3', label: str = '', **options: Any,
) -> Entry:
  """VMask or one of its variants."""
  imagined = options.pop('attacker', attacker(model))
  options |= dict(selection=selection, attacker=imagined)
  return Entry(
      'vmask', budgets, options, label=label or SELECTIONS[selection]
  )


def imagined(model: str, budgets: tuple[float, ...] = (BUDGET,)) -> Entry:
  """VMask whose imagined attacker is the real one: 50 epochs, five draws."""
  return masked(
      budgets=budgets, model=model, label='VMask 50x5',
      attacker=attacker(model, draws=5, epochs=50),
  )


def compared() -> tuple[Entry, ...]:
  """The other defenses, at the paper's settings (appendix B)."""
  return (
      Entry('dp_gaussian', (1e-3,), dict(clip_norm=None), 'NG'),
      Entry('gradient_compression', (0.2,), label='CG'),
      # As Fu et al. have it: Kang's Eq. 19 zeroes the largest, and diverged.
      Entry('discrete_sgd', (60,), dict(bound=0.03), 'DG'),
      # Where the authors' MLP3 has it: in the active party's network alone.
      Entry('fedpass', (0.5,), dict(side='active'), 'FedPass'),
      Entry('label_dp', (3,), label='LabelDP'),
      Entry('kdk', (0.45,), dict(k=3), label='KDk'),
      Entry('dcor', (0.15,), label='dCor'),
      Entry('mid', (5e-5,), label='MID'),
  )


def table(column: str, source: str) -> tuple[Paper, ...]:
  """Main and attack accuracy of a column of Table II or VIII, by defense."""
  where, found = f'{SOURCE}, {source}', []
  for defense, main, attacked in zip(
      paper.ROWS, paper.MAIN[column], paper.ATTACK[column]
  ):
    found.append(Paper(defense, 'accuracy', main / 100, source=where))
    found.append(Paper(
        defense, 'accuracy_best', attacked / 100, attack='model_completion',
        source=where,
    ))
  return tuple(found)
