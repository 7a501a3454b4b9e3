"""VMask, Figure 8: what a budget buys.

  python launch.py --config=experiments/vmask/fig8.py:mlp3

Two defenders: one who imagines the attack as the paper does, 20 epochs, once;
and one who imagines the attacker as it is, 50 epochs, and averages five draws.
On MNIST's halves:

  mlp3, lenet5   with the settings of `common`; LeNet5 has five layers to choose
                 from
  mlp3,authors   with the settings of `authors`, 20000 images, 15 epochs
"""
from experiments.vmask import authors, common
from vfljax.runner import variants
from vfljax.runner.config import Config, Entry

BUDGETS = (0.8, 0.7, 0.6, 0.5, 0.4, 0.25)
VARIANTS = ('mlp3', 'lenet5', 'mlp3,authors')


def budgets(model: str) -> Config:
  """The sweep for a network."""
  listed = (
      Entry('none'),
      common.masked(budgets=BUDGETS, model=model, label='20 epochs'),
      common.imagined(model, BUDGETS),
  )
  found = common.config(f'fig8_{model}', listed, model)
  found.alone = False
  return found


def of_authors() -> Config:
  """The sweep for MLP3 as the authors' code trains, masks and attacks it."""
  masked = lambda label, **imagined: authors.masked(
      'mlp3', budgets=BUDGETS, label=label, **imagined
  )
  found = authors.apply(common.config('fig8', (
      Entry('none'), masked('20 epochs'),
      masked('VMask 50x5', epochs=50, draws=5),
  )))
  found.data.limit, found.train.epochs = 20_000, 15
  return found


def get_config(variant: str = '') -> Config:
  if variants.choose(variant, VARIANTS) == 'mlp3,authors':
    return of_authors()
  return budgets(variant)
