"""VMask, Table II, with the settings of the authors' code.

  python launch.py --config=experiments/vmask/authors.py:tm

tm and tfm are MLP3 on MNIST and Fashion-MNIST, m and fm LeNet5. Where
github.com/tanjuntao/Backdoor (commit 7c723c2; read, not run) differs from what
we read out of the paper (`common`), taken over is:

- The federation trains by SGD with momentum 0.9, weight decay 5e-4 and a cosine
  from 0.1 to 0. MLP3 is 256-128-128 with BatchNorm and ReLU after each layer;
  LeNet5 has the original's convolutions, on 32 x 16 pixels, and 10 outputs.
- Each party has a cut layer after its network, and what comes out is added up.
  Its linear map is in our top: a sum of linear maps is one of all that they are
  applied to, side by side. So the attacker steals the network without it.
- The attacker trains cut layer and head, with BatchNorm, by momentum at 0.01,
  what it stole at a hundredth of that, in batches of 4, by a cosine.
- The defender ranks layers by the mean gradient of a weight, hides one at
  least, and imagines an attacker who trains in that way.

Other than in their code:

- Parties have left and right halves (the paper: "evenly split"); theirs have
  upper and lower ones. Images get a border of zeros to be 32 x 32, theirs are
  resized, and half of them mirrored.
- A passive party attacks; their attack.py completes the active party's network
  (every_epoch_attack.py the passive one's), and VMask's noise goes there.
- Their cut layer begins with BatchNorm and ReLU. With MLP3, which ends with
  both, we leave that second pair out; with LeNet5 the pair is in the network
  that is stolen.
- Their imagined attack keeps the shadow's trained cut layer, has one initial
  head for all tries, ends its 20 epochs early in a cosine of 50 and is scored
  on the passive party's test samples; ours on the auxiliary ones, by Algorithm
  2. Their selection begins with what is hidden already where the order of
  layers has not changed; ours with the first layer in the order.
- Their VMask-RS draws layers with replacement (numpy's `random.choice`), so
  that it hides fewer than VMask where that hides several: three draws of three
  layers are all different in 2 cases of 9. The paper says as many, as ours.
- Their shadow learns from up to 1000 samples a class in batches of 64, with
  momentum, decay and a cosine; ours from Table VII's 640 by plain SGD.
- They report the epoch that is best on the test set, and the best of 50 epochs
  of an attack; we the last one, and the best of 50 epochs, too.

MLP3 trains 50 epochs on 60000 images, as in the paper, LeNet5 10 on 10000.
"""
import dataclasses
from typing import Any

from experiments.vmask import common, table2
from vfljax.completion import Schedule
from vfljax.defenses.shadow import Attacker
from vfljax.runner import variants
from vfljax.runner.config import Config, Entry
from vfljax.runner.errors import UserError

SIZES = dict(mlp3=(0, 50), lenet5=(10_000, 10))  # (images, epochs)
SCHEDULE: dict[str, Any] = dict(
    batch_size=4, learning_rate=0.01, optimizer='momentum', bottom_rate=0.01,
    weight_decay=5e-4,
)
# (width of what is stolen, its options, width of the cut layer)
NETWORKS = dict(
    mlp3=(128, 'hidden=(256, 128)', 64),
    lenet5=(10, 'padding=VALID;border=(2, 1)', 10),
)
VARIANTS = ('tm', 'tfm', 'm', 'fm')
OURS = ('none', *common.SELECTIONS.values())


def masked(
    model: str, selection: str = 'critical',
    budgets: tuple[float, ...] = (common.BUDGET,), label: str = '',
    epochs: int = 20, draws: int = 1,
) -> Entry:
  """VMask or a variant, as their code has it."""
  schedule = Schedule(epochs, stages=epochs, rate='cosine', **SCHEDULE)
  imagined = Attacker(
      schedule, head=(NETWORKS[model][2],), draws=draws, norm='batch'
  )
  return common.masked(
      selection, budgets, model, label, norms='mean', least=1,
      attacker=imagined,
  )


def apply(config: Config) -> Config:
  """A configuration of `common` with their networks, training and attacker.

  Raises:
    UserError: for a network other than MLP3 and LeNet5.
  """
  if config.model.name not in NETWORKS:
    raise UserError(
        f"The authors' settings are for {' and '.join(NETWORKS)} here; got "
        f'{config.model.name}.'
    )
  width, options, cut = NETWORKS[config.model.name]
  config.experiment += '_authors'
  config.model = dataclasses.replace(
      config.model, width=width, options=f'{options};norm=batch;final=relu',
      top=(cut,), aggregation='concat', norm='batch',
  )
  config.data.limit, config.train.epochs = SIZES[config.model.name]
  config.train = dataclasses.replace(
      config.train, optimizer='momentum', weight_decay=5e-4, schedule='cosine'
  )
  config.attack = config.attack.but(completion=dict(
      head=(cut,), norm='batch', schedule='cosine', **SCHEDULE
  ))
  return config


def settings(model: str, dataset: str) -> Config:
  """A column of Table II."""
  config = apply(table2.column(model, dataset))
  config.listed = (
      Entry('none'),
      *(masked(model, kind) for kind in common.SELECTIONS),
      masked(model, label='VMask 50x5', epochs=50, draws=5),
  )
  config.paper = tuple(p for p in config.paper if p.defense in OURS)
  return config


def get_config(variant: str = '') -> Config:
  return settings(*table2.COLUMNS[variants.choose(variant, VARIANTS)])
