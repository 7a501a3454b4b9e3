"""What an experiment is, as typed data that the command line can change.

A config file's `get_config()` returns a `Config`. Every field can be set with
`--config.<field>=...` or `--config.<group>.<field>=...`.
"""
import dataclasses
from dataclasses import field
from typing import Any

from vfljax.runner.errors import UserError
from vfljax import attacks, defenses


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
  """What attackers know and how they train."""

  party: int = 1  # the attacking passive party, 1..; 0 for all of them
  pool: str = 'epoch'  # score gradients by 'epoch' or by 'round'
  when: str = 'last'  # 'last', 'max' or 'mean' of the measured epochs
  median: str = 'class'  # or 'batch', see attacks/median_scoring.py
  known: int = 4  # labels per class that model completion knows; 0: all
  head: tuple[int, ...] = (32,)  # hidden widths of its head; () is linear
  tune: bool = True  # whether it trains the stolen bottom too
  norm: str = 'none'  # of its head's hidden layers: 'batch' or 'group'
  standardize: bool = False  # whether it scales its head's input
  epochs: int = 50
  batch_size: int = 0  # 0: all known labels at once
  stages: int = 10
  learning_rate: float = 1e-3
  optimizer: str = 'adam'  # or 'sgd', 'momentum'
  schedule: str = 'constant'  # or 'cosine'
  bottom_rate: float = 1.0  # of the stolen bottom, as a share of learning_rate
  weight_decay: float = 0.0
  iterations: int = 100  # MixMatch's steps an epoch; Fu et al. take 1024
  repeats: int = 1  # label draws a training; the recorded value is their mean
  inversion_steps: int = 500  # Adam's, of gradient inversion, at a rate of 0.05
  inversion_restarts: int = 4  # its starting points, searched side by side
  triggered: float = 0.01  # share of a round, label replacement's
  targets: int = 10  # samples that it knows to be of its target class
  amplify: float = 1.0  # factor on its gradients
  noisy: float = 0.01  # share of a round that a noisy-sample backdoor disturbs
  noise: float = 2.0  # its deviation, in the features' unit
  missing: float = 0.25  # share of embeddings that do not arrive in training
  replay: bool = False  # attack rounds played again before and after training
  replay_rounds: int = 1  # how many
  replay_at: str = 'both'  # or 'start' or 'end' of training alone
  cafe_pool: int = 200  # samples that CAFE rebuilds
  cafe_batch: int = 40  # of them in each of its (replayed) rounds
  cafe_steps: int = 2000  # the paper takes 10000 for MNIST
  cafe_restarts: int = 1  # starting points, searched side by side
  auxiliary: int = 0  # training samples set aside for model inversion's shadow
  shadow: str = 'same'  # its structure: as the victim's, 'conv' or 'fc'
  shadow_steps: int = 1500  # Adam's, on the shadow model
  inverted: int = 64  # test samples that model inversion guesses
  variation: float = 0.1  # weight of total variation in model inversion


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

  Its name is '<attack>:<what is special>'.
  """

  name: str
  options: dict[str, Any] = field(default_factory=dict)  # of AttackConfig


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


def flat(config: Any, prefix: str = '') -> list[tuple[str, Any]]:
  """(path, value) of every field that is not a group of fields."""
  found = []
  for f in dataclasses.fields(config):
    value = getattr(config, f.name)
    if dataclasses.is_dataclass(value):
      found += flat(value, f'{prefix}{f.name}.')
    else:
      found.append((prefix + f.name, value))
  return found


def default_entry(name: str) -> Entry:
  """A defense at its default strengths."""
  return Entry(name, defenses.REGISTRY[name].strengths)


def entries(config: Config, classes: int = 2) -> list[Entry]:
  """The table's rows: those chosen, after the undefended baseline.

  Listed defenses that are for two classes are left out where there are more;
  those asked for by name are not, and `checks.make` refuses them.

  Raises:
    UserError: for a name that is not a defense.
  """
  listed = {entry.name: entry for entry in config.listed}
  if len(listed) < len(config.listed):
    raise UserError(
        'Two listed defenses have the same name; give one a label: '
        f'{[entry.name for entry in config.listed]}.'
    )
  for entry in config.listed:
    _refuse_unknown('defense', [entry.defense], list(defenses.REGISTRY))
  names = _names(config.defenses)
  known = [*dict.fromkeys([*listed, *defenses.REGISTRY])]
  _refuse_unknown('defense', names, known)
  if not names:
    names = [
        name for name, entry in listed.items()
        if classes == 2 or not defenses.REGISTRY[entry.defense].binary
    ]
  chosen = [listed.get(name) or default_entry(name) for name in names]
  # Everything is measured against the undefended federation.
  if 'none' not in names:
    chosen.insert(0, listed.get('none') or Entry('none'))
  return sorted(chosen, key=lambda entry: entry.name != 'none')


def attack_names(config: Config, classes: int = 2) -> list[str]:
  """The attacks, with the baselines that model completion is measured by.

  Listed attacks that cannot work here are left out; those asked for by name are
  not, and `checks.make` refuses them.

  Raises:
    UserError: for a name that is not an attack.
  """
  names = _names(config.attacks)
  variants = [variant.name for variant in config.variants]
  known = [*attacks.REGISTRY, *variants]
  _refuse_unknown('attack', [*names, *config.listed_attacks], known)
  if not names:
    names = [
        name for name in config.listed_attacks
        if not why_not(name, config, classes)
    ]
  # Logistic regression is completed by a sigmoid, without any labels.
  completed = {
      'model_completion', 'active_completion', 'mixmatch',
  } & set(map(base, names))
  if completed and config.model.algorithm != 'vlr':
    names += ['local_model', 'scratch']
  return list(dict.fromkeys(names))


def base(attack: str) -> str:
  """'model_completion' of its variant 'model_completion:all'."""
  return attack.partition(':')[0]


def attacker(config: Config, attack: str) -> AttackConfig:
  """What an attack's attacker knows, and how it trains."""
  found = {v.name: v.options for v in config.variants}
  return dataclasses.replace(config.attack, **found.get(attack, {}))


def why_not(attack: str, config: Config, classes: int) -> str:
  """Why an attack cannot work on this federation; '' if it can."""
  attack = base(attack)
  if attack in attacks.BINARY and classes != 2:
    return (
        f'{attack} ranks samples of two classes; this data set has {classes}. '
        'Use direct_label or model_completion instead.'
    )
  model, attack = config.model, base(attack)
  trainable = model.algorithm != 'vlr' and model.trainable_top
  summed = model.algorithm == 'vlr' or model.aggregation in (
      'concat', 'sum', 'mean'
  )
  if attack in ('direct_label', 'gradient_inversion') and not summed:
    return (
        f'{attack} needs embeddings that are added up: use '
        '--config.model.aggregation=sum.'
    )
  if attack == 'residue_reconstruction' and model.algorithm != 'vlr':
    return (
        'residue_reconstruction solves for the gradients of a linear bottom '
        'network: use --config.model.algorithm=vlr.'
    )
  if attack == 'gradient_inversion' and trainable:
    return (
        'gradient_inversion takes the sum of the embeddings for the logits; '
        'with a trainable top they are not. Use --config.model.trainable_top='
        'False or --config.model.algorithm=vlr.'
    )
  if attack == 'mixmatch' and model.algorithm == 'vlr':
    return (
        'mixmatch trains a head on an embedding, which vlr has none of: use '
        'model_completion.'
    )
  if attack == 'cafe' and (model.name != 'cafe' or model.algorithm == 'vlr'):
    return (
        'cafe starts at the first linear layer of the network that it was made '
        'for: use --config.model.name=cafe.'
    )
  if attack == 'direct_label' and trainable:
    return (
        'direct_label reads labels from the signs of gradients at the logits; '
        'with a trainable top there are none. Use --config.model.trainable_top='
        'False or --config.model.algorithm=vlr.'
    )
  return ''


def _names(text: str) -> list[str]:
  names = [name.strip() for name in text.split(',')]
  return list(dict.fromkeys(name for name in names if name))


def _refuse_unknown(kind: str, names: list[str], known: list[str]) -> None:
  for name in names:
    if name not in known:
      raise UserError(
          f'There is no {kind} {name!r}. There are: {", ".join(sorted(known))}.'
      )


def choices(group: Any, **allowed: tuple[str, ...]) -> None:
  """Refuses a text field that is none of its choices.

  Raises:
    UserError: naming the field and the choices.
  """
  for name, values in allowed.items():
    value = getattr(group, name)
    if value not in values:
      raise UserError(
          f'{name} must be one of {", ".join(values)}; got {value!r}.'
      )
