"""VMask, Table II: main task and model completion under every defense.

  python launch.py --config=experiments/vmask/table2.py:tm

Each column is a variant, on the halves of a data set's images:

  tm, tfm         MLP3 on MNIST and on Fashion-MNIST
  m, fm           LeNet5 on the same
  cf10            VGG13 on CIFAR-10, for a GPU: two CPU cores take days
  cf10_resnet18   ResNet18 on CIFAR-10, for a GPU

Two rows are not in the paper: VMask whose defender imagines the attacker as it
is, and FedPass with passports in both parties' networks.
"""
from experiments.vmask import common, paper
from vfljax.runner import variants
from vfljax.runner.config import Config, Entry, Paper

COLUMNS = dict(  # (network, data set)
    tm=('mlp3', 'mnist'), tfm=('mlp3', 'fashion_mnist'),
    m=('lenet5', 'mnist'), fm=('lenet5', 'fashion_mnist'),
    cf10=('vgg13', 'cifar10'), cf10_resnet18=('resnet18', 'cifar10'),
)
VARIANTS = tuple(COLUMNS)


def column(model: str, dataset: str) -> Config:
  """One column of the table."""
  short = common.ABBREVIATIONS[model][dataset]
  source = 'Table VIII' if 'CN10' in short else 'Table II'
  listed = (
      Entry('none'),
      *(common.masked(kind, model=model) for kind in common.SELECTIONS),
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


def get_config(variant: str = '') -> Config:
  return column(*COLUMNS[variants.choose(variant, VARIANTS)])
