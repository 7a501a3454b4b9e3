"""What an experiment is, as typed data that the command line can change.

A config file's `get_config()` returns a `Config`. Every field can be set with
`--config.<field>=...` or `--config.<group>.<field>=...`. A number's field has
its range, a word's field its choices; `ranges.check` checks a configuration
against them.
"""
import dataclasses
from dataclasses import field
from typing import Any

from vfljax import algorithms, defenses, nets
from vfljax.data.split import COLUMN_SPLITS, IMAGE_SPLITS
from vfljax.plan import REMAINDERS
from vfljax.runner.config.ranges import (
    LARGE, WHOLE, Range, listing, needed, number, numbers, word,
)
from vfljax.runner.machine import precision

SPLITS = tuple(dict.fromkeys([*COLUMN_SPLITS, *IMAGE_SPLITS]))
WIDEST = 2**20  # Units of a layer.
DEEPEST = 100  # Layers of a network.
OR = '|'  # Between listed attacks of which the first that works is run.
MOST = 10**6  # Epochs, and numbers counted in epochs.


@dataclasses.dataclass
class DataConfig:
  """Which samples, and who holds which of their features."""

  name: str = 'breast_cancer'  # a name in `--list data`
  path: str = listing()  # of the file or folder, where the data set needs one
  label: str = listing()  # the label column of a CSV or Parquet file
  missing: str = word('refuse', ('refuse', 'impute'))  # gaps of a table
  options: str = listing()  # the loader's own, as in
  # 'samples=500;signal=(1, 0.5)'
  limit: int = number(0, 0, WHOLE)  # use the first so many training rows; 0:
  # all
  test_limit: int = number(0, 0, WHOLE)  # likewise of a test set that the data
  # set has
  stream: int = number(0, -1, WHOLE)  # rounds of training samples at a time on
  # the device; 0: all that there are, if they fit, -1: all
  parties: int = number(2, 2, 256)  # with the active one; 2..10 tried
  split: str = word('even', SPLITS)  # how columns or pixels are divided among
  # the parties
  ratios: str = listing()  # '2:1' gives party 0 two thirds of the columns
  named: str = listing()  # 'age,sex;income' names the columns of each party
  split_seed: int = number(0, 0, WHOLE)  # of split='random', 'importance' and
  # 'correlation'
  split_strength: float = number(1.0, 0, LARGE)  # of the latter two, see
  # data/controlled.py
  unheld: bool = False  # vsnn: no party holds the columns that the active party
  # would hold in vhnn
  scale: str = word('standard', ('standard', 'minmax', 'none'))  # fitted on
  # the training samples
  test: float = number(0.3, 0, 1, above=True, below=True)  # share of test
  # samples if the data set has no test set
  validation: float = number(0.0, 0, 1, below=True)  # share of the training
  # samples held out
  resplit: bool = True  # new train/test split for every seed
  flips: bool = False  # mirror half of the images in training
  shifts: int = number(0, 0, 1000)  # pixels by which images are shifted in
  # training, at most


@dataclasses.dataclass
class ModelConfig:
  """The parties' networks and how embeddings are aggregated."""

  algorithm: str = word('vhnn', ('vlr', 'vhnn', 'vsnn'))  # see `--list models`
  name: str = ''  # of the bottoms' network, see `--list models`; '': as below
  width: int = number(0, 0, WIDEST)  # of a named network's embedding; 0: the
  # network's own
  options: str = listing()  # a named network's own, as in 'dtype=bfloat16'
  channels: tuple[int, ...] = numbers((), 1, WIDEST, DEEPEST)  # convolutions
  # before the bottom's widths
  pools: int = number(1, 0, DEEPEST)  # the first so many convolutions are
  # pooled 2x2
  padding: bool = True  # whether convolutions keep the images' size
  bottom: tuple[int, ...] = numbers((64, 32), 1, WIDEST, DEEPEST)  # widths of
  # every bottom network
  top: tuple[int, ...] = numbers((32,), 1, WIDEST, DEEPEST)  # hidden widths of
  # the top; () is linear
  trainable_top: bool = True  # False: softmax or sigmoid of the aggregate
  aggregation: str = word('concat', algorithms.AGGREGATIONS)  # of embeddings
  activation: str = word('relu', nets.ACTIVATIONS)
  bottom_final: str = word('linear', nets.ACTIVATIONS)  # of the embeddings
  dropout: float = number(0.0, 0, 1, below=True)  # share of a bottom's hidden
  # units dropped in training
  norm: str = word('none', nets.NORMS)  # before activations, of the top and of
  # unnamed bottoms; named ones have an option
  buckets: int = number(0, 0, 10**8)  # > 0: Wide & Deep bottoms on columns of
  # category numbers


@dataclasses.dataclass
class TrainConfig:
  """How the federation trains; the same for every party."""

  epochs: int = number(30, 1, MOST)
  batch_size: int = number(64, 1, WHOLE)
  optimizer: str = word('adam', ('adam', 'adamw', 'sgd', 'momentum'))
  learning_rate: float = number(1e-3, 0, 1000, above=True)
  defense_learning_rate: float = number(0.0, 0, 1000)  # of weights a defense
  # adds; 0: the same
  schedule: str = word('constant', ('constant', 'cosine'))
  weight_decay: float = number(0.0, 0, 1000)  # of all weights; 0: none (adamw:
  # optax's 1e-4)
  remainder: str = word('drop', REMAINDERS)  # an epoch's last partial batch
  best: bool = False  # keep the epoch of the best validation score
  patience: int = number(0, 0, MOST)  # with `best`: stop after so many measured
  # epochs without a new one
  measure_every: int = number(0, 0, MOST)  # epochs between measurements; 0:
  # about 50 in all
  precision: str = word('highest', precision.WORDS)  # of products of float32
  # matrices on accelerators: 'default' rounds to TF32 or bfloat16


@dataclasses.dataclass
class AttackConfig:
  """Common to all attackers: which party, what it knows, when it attacks.

  An attack's own options are in `own`, by the names in `--list attacks`:
  own=dict(gradient_inversion=dict(steps=300)). On the command line that is
  --config.attack.gradient_inversion.steps=300.
  """

  party: int = number(1, 0, 255)  # the attacking passive party, 1..; 0 for all
  # of them
  pool: str = word('epoch', ('epoch', 'round'))  # score gradients over an
  # epoch's rounds together, or round by round, averaged
  when: str = word('max', ('last', 'max', 'mean'))  # which of the measured
  # epochs counts: 'max' is an attacker who chooses the best one
  known: int = number(4, 0, WHOLE)  # labels per class that an attacker knows;
  # 0: all
  repeats: int = number(1, 1, 10_000)  # label draws a training, of attacks
  # after it; the recorded value is their mean
  replay: bool = False  # attack rounds played again before and after training
  replay_rounds: int = number(0, 0, MOST)  # how many; 0: as many as the attack
  # needs
  replay_at: str = word('both', ('both', 'start', 'end'))  # of training
  auxiliary: int = number(0, 0, WHOLE)  # training samples set aside for
  # attackers
  own: dict[str, dict[str, Any]] = field(default_factory=dict)

  def but(self, **groups: dict[str, Any]) -> 'AttackConfig':
    """The same with other options: `but(completion=dict(epochs=5))`."""
    own = {k: self.own.get(k, {}) | given for k, given in groups.items()}
    return dataclasses.replace(self, own=self.own | own)


@dataclasses.dataclass
class AuxiliaryConfig:
  """The defender's own samples of all parties' features, with labels."""

  samples: int = number(0, 0, WHOLE)  # how many training samples are set aside
  # for the defender
  classes: int = number(0, 0, MOST)  # of the first so many classes only; 0: all
  noise: float = number(0.0, 0, LARGE)  # deviation of noise on their (scaled)
  # features
  augment: str = word('none', ('none', 'held_out', 'training'))  # flip and crop
  # images, or reword texts: those set aside, or copies of training samples
  data: str = ''  # from another data set of the same shape; '' is the same
  path: str = listing()  # of that data set


@dataclasses.dataclass
class Variant:
  """An attack that also runs with other settings.

  Its name is '<attack>:<a word for the settings>'. The options are the attack's
  own, and `known` and those of replayed rounds of `AttackConfig`; its other
  fields are one for all attacks.
  """

  name: str
  options: dict[str, Any] = field(default_factory=dict)


@dataclasses.dataclass
class Entry:
  """A row of a table: a defense, its strengths and its other arguments.

  `grid` has other arguments to sweep in the same program, or numbers inside
  them ('attacker.plays' of VMask's): every combination, with every strength, is
  a row called '<name> <argument>=<value>', or '<name>' where each argument has
  one value. Entries that differ only in their grids' values share their
  programs.
  """

  defense: str
  strengths: tuple[float, ...] = numbers((), -LARGE, LARGE, 1000)  # () for a
  # defense without a strength
  options: dict[str, Any] = field(default_factory=dict)  # factory arguments
  label: str = ''  # its name in results; by default the defense's name
  after: tuple['Entry', ...] = ()  # defenses chained before it
  grid: dict[str, tuple[float, ...]] = field(
      default_factory=dict, metadata={'range': Range(-LARGE, LARGE, most=1000)}
  )

  @property
  def name(self) -> str:
    return self.label or self.defense


@dataclasses.dataclass
class Paper:
  """A number that a paper reports; with `strength` None for any of ours."""

  defense: str
  metric: str
  mean: float = needed(-LARGE, LARGE)
  std: float | None = number(None, 0, LARGE)
  attack: str | None = None
  strength: float | None = number(None, -LARGE, LARGE)
  source: str = ''


@dataclasses.dataclass
class Config:
  """An experiment.

  `defenses` and `attacks` choose by name among those that the experiment lists,
  and may name others, which get their default strengths. Strengths may follow
  a defense: 'marvell(3,6),iso'. Empty: all listed.

  Of listed attacks between bars, 'norm_scoring|gradient_clustering', the first
  is run that works in the federation: the second with three classes or more.
  """

  experiment: str = 'custom'  # its name in results
  seeds: int = number(10, 1, 100_000)  # trainings of every row
  first_seed: int = number(0, 0, WHOLE)  # the first one's number
  seeds_per_chunk: int = number(0, 0, WHOLE)  # trainings of one strength at a
  # time; 0: all
  strengths_per_chunk: int = number(0, 0, WHOLE)  # strengths of one defense at
  # a time; 0: all
  alone: bool = True  # also train the active party without the others
  defenses: str = ''  # 'none,iso(5)'; '': all that the experiment lists
  attacks: str = ''  # 'norm_scoring,model_completion'; '': likewise
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
