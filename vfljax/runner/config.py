"""What an experiment is, as typed data that the command line can change.

A config file's `get_config()` returns a `Config`. Every field can be set with
`--config.<field>=...` or `--config.<group>.<field>=...`.
"""
import dataclasses
from dataclasses import field
from typing import Any

from vfljax import defenses


@dataclasses.dataclass
class DataConfig:
  """Which samples, and who holds which of their features."""

  name: str = 'breast_cancer'  # a name of `--list data`
  path: str = ''  # of the file or folder, where the data set needs one
  label: str = ''  # the label column of a CSV or Parquet file
  missing: str = 'refuse'  # or 'impute'
  options: str = ''  # the loader's own, as in 'samples=500;signal=(1, 0.5)'
  limit: int = 0  # use so many training rows, the first; 0 uses all
  test_limit: int = 0  # likewise of a test set that the data set has
  stream: int = 0  # rounds of training samples at a time on the device; 0: all
  # that there are, if they fit, -1: all
  parties: int = 2  # with the active one; 2..10 tried
  split: str = 'even'  # how columns or pixels are divided among the parties
  ratios: str = ''  # '2:1' gives party 0 two thirds of the columns
  named: str = ''  # 'age,sex;income' names the columns of each party
  split_seed: int = 0  # of split='random', 'importance', 'correlation'
  split_strength: float = 1.0  # of the latter two, see data/controlled.py
  scale: str = 'standard'  # 'standard', 'minmax' or 'none'; fitted on train
  test: float = 0.3  # share of test samples where no test set is given
  validation: float = 0.0  # share of the training samples held out
  resplit: bool = True  # new train/test split for every seed
  flips: bool = False  # mirror half of the images in training
  shifts: int = 0  # pixels by which images are shifted in training, at most


@dataclasses.dataclass
class ModelConfig:
  """Who computes what."""

  algorithm: str = 'vhnn'  # 'vlr', 'vhnn' or 'vsnn'
  name: str = ''  # of the bottoms' network, see `--list models`; '': as below
  width: int = 0  # of a named network's embedding; 0: the network's own
  options: str = ''  # a named network's own, as in 'dtype=bfloat16'
  channels: tuple[int, ...] = ()  # convolutions before the bottom's widths
  pools: int = 1  # the first so many convolutions are pooled 2x2
  padding: bool = True  # whether convolutions keep the images' size
  bottom: tuple[int, ...] = (64, 32)  # widths of every bottom network
  top: tuple[int, ...] = (32,)  # hidden widths of the top; () is linear
  trainable_top: bool = True  # else softmax/sigmoid of the aggregate
  aggregation: str = 'concat'  # 'sum', 'mean', 'max', 'product'
  activation: str = 'relu'
  bottom_final: str = 'linear'  # activation of the embeddings
  dropout: float = 0.0  # share of a bottom's hidden units dropped in training
  norm: str = 'none'  # 'batch' or 'group': before activations, of the top and
  # of unnamed bottoms; named ones have an option
  buckets: int = 0  # > 0: Wide & Deep bottoms on columns of category numbers


@dataclasses.dataclass
class TrainConfig:
  """How the federation trains; every party alike."""

  epochs: int = 30
  batch_size: int = 64
  optimizer: str = 'adam'  # 'sgd', 'momentum', 'adamw'
  learning_rate: float = 1e-3
  defense_learning_rate: float = 0.0  # of weights a defense adds; 0: the same
  schedule: str = 'constant'  # or 'cosine'
  weight_decay: float = 0.0  # of all weights; 0: none (adamw: optax's 1e-4)
  remainder: str = 'drop'  # 'keep' or 'pad': an epoch's last partial batch
  best: bool = False  # keep the epoch of the best validation score
  patience: int = 0  # with `best`: stop after so many epochs without a new one
  measure_every: int = 0  # epochs between measurements; 0: about 50 in all


@dataclasses.dataclass
class AttackConfig:
  """What every attacker has: who it is, what it knows, when it strikes.

  What is an attack's own (`--list attacks`) is in `own`, by the name under
  which the attack has it: own=dict(gradient_inversion=dict(steps=300)). On the
  command line that is --config.attack.gradient_inversion.steps=300.
  """

  party: int = 1  # the attacking passive party, 1..; 0 for all of them
  pool: str = 'epoch'  # score gradients by 'epoch' or by 'round'
  when: str = 'last'  # 'last', 'max' or 'mean' of the measured epochs
  known: int = 4  # labels per class that an attacker knows; 0: all
  repeats: int = 1  # label draws a training; the recorded value is their mean
  replay: bool = False  # attack rounds played again before and after training
  replay_rounds: int = 1  # how many
  replay_at: str = 'both'  # or 'start' or 'end' of training alone
  auxiliary: int = 0  # training samples set aside for attackers
  own: dict[str, dict[str, Any]] = field(default_factory=dict)

  def but(self, **groups: dict[str, Any]) -> 'AttackConfig':
    """The same with other options: `but(completion=dict(epochs=5))`."""
    own = {k: self.own.get(k, {}) | given for k, given in groups.items()}
    return dataclasses.replace(self, own=self.own | own)


@dataclasses.dataclass
class AuxiliaryConfig:
  """The defender's own samples of all parties' features, with labels."""

  samples: int = 0  # how many; training samples that are set aside for it
  classes: int = 0  # of the first so many classes only; 0: of all
  noise: float = 0.0  # deviation of noise on their (scaled) features
  data: str = ''  # from another data set of the same shape; '' is the same
  path: str = ''  # of that data set


@dataclasses.dataclass
class Variant:
  """An attack with settings of its own, beside the others.

  Its name is '<attack>:<what is special>'. The options are fields of
  `AttackConfig` and the attack's own.
  """

  name: str
  options: dict[str, Any] = field(default_factory=dict)


@dataclasses.dataclass
class Entry:
  """A row of a table: a defense, its strengths and its other arguments.

  `grid` has other arguments to sweep in the same program: every combination of
  them, with every strength, is a row called '<name> <argument>=<value>'.
  """

  defense: str
  strengths: tuple[float, ...] = ()  # () for a defense without a strength
  options: dict[str, Any] = field(default_factory=dict)  # factory arguments
  label: str = ''  # what the results call it; the defense's name by default
  after: tuple['Entry', ...] = ()  # defenses chained before it
  grid: dict[str, tuple[float, ...]] = field(default_factory=dict)

  @property
  def name(self) -> str:
    return self.label or self.defense


@dataclasses.dataclass
class Paper:
  """A number that a paper reports. `strength` None: whatever ours is."""

  defense: str
  metric: str
  mean: float
  std: float | None = None
  attack: str | None = None
  strength: float | None = None
  source: str = ''


@dataclasses.dataclass
class Config:
  """An experiment.

  `defenses` and `attacks` choose by name among what the experiment lists, and
  may name others: those get their default strengths. Empty: all listed.
  """

  experiment: str = 'custom'
  seeds: int = 10
  first_seed: int = 0
  seeds_per_chunk: int = 0  # trainings of one strength at a time; 0: all
  strengths_per_chunk: int = 0  # strengths of one defense at a time; 0: all
  alone: bool = True  # also train the active party without the others
  defenses: str = ''
  attacks: str = ''
  data: DataConfig = field(default_factory=DataConfig)
  model: ModelConfig = field(default_factory=ModelConfig)
  train: TrainConfig = field(default_factory=TrainConfig)
  attack: AttackConfig = field(default_factory=AttackConfig)
  auxiliary: AuxiliaryConfig = field(default_factory=AuxiliaryConfig)
  listed: tuple[Entry, ...] = ()
  listed_attacks: tuple[str, ...] = ()
  variants: tuple[Variant, ...] = ()  # of the listed attacks
  quitting: bool = False  # also measure the model after parties have quit
  paper: tuple[Paper, ...] = ()


def default_entry(name: str) -> Entry:
  """A defense at its default strengths."""
  return Entry(name, defenses.REGISTRY[name].strengths)
