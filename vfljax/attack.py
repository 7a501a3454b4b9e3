"""What an attack is: a view and a function of it, and a recipe for the runner.

`Attack` is the algorithm. The decorator `recipe` adds to an attack's factory
what a runner has to know: when the attack strikes, its options, what it needs
of a federation, and how it is scored.
"""
from collections.abc import Callable
import functools
import inspect
import re
import sys
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import check, converting, importing
from vfljax.leakage import COMPLETION, IMAGES, LABELS, Known, Score
from vfljax.scene import Amounts, Scene
from vfljax.types import VFL, Array, Key

P = ParamSpec('P')
T = TypeVar('T')

ROUND = 'a round'
REPLAYED = 'rounds played again'
TRAINED = 'the trained federation'
TRAINING = 'training itself'
STAGES = (ROUND, REPLAYED, TRAINED, TRAINING)


class Wants(NamedTuple):
  """Which samples' features an attack wants.

  Attributes:
    samples: How many; 0 for attacks that do not want features.
    batch: How many of them are in each round played for it.
  """

  samples: int = 0
  batch: int = 0


class Halves(NamedTuple):
  """An attack in two steps: how it starts, and what it does from there.

  Attributes:
    start: (key, view) -> what `rest` starts from, such as a key and weights.
    rest: (that, view) -> guess.
  """

  start: Callable[[Key, Any], Any]
  rest: Callable[[Any, Any], Any]


class Attack(NamedTuple):
  """An attacker, as an algorithm and what it gets to see.

  Attributes:
    view: A class of `vfljax.views`. Its fields are the threat model.
    run: (key, view) -> guess. It never gets the truth. Guesses at labels are
      scores: [batch] for "how positive", or [batch, classes], the larger the
      likelier. Attacks on a trained federation give one such array for each
      stage of their own training, [stages, samples, classes], the last one
      being their final guess. Guesses at features have the features' shape,
      guesses at weights their structure.
    facts: (view) -> {name: number}; what the attacker knows of its own success,
      such as whether it had enough equations. Recorded beside its score.
    wants: For attacks on features: how many samples' features it guesses.
    against: (defense) -> Attack; the same attacker, knowing that the federation
      has this defense. The defense is an argument here since views hold arrays
      only. `None` for attacks that do not depend on the defense.
    halves: `run` in two steps, if other attacks have the same second one;
      `in_halves` makes such an attack.
  """

  view: type
  run: Callable[[Key, Any], Any]
  facts: Callable[[Any], dict[str, Array]] = lambda view: {}
  wants: Wants = Wants()
  against: Callable[[Any], 'Attack'] | None = None
  halves: Halves | None = None

  def knowing(self, defense: Any) -> 'Attack':
    """The attacker who is told the federation's defense, if it asks for it."""
    return self.against(defense) if self.against else self


def in_halves(
    view: type, start: Callable[[Key, Any], Any],
    rest: Callable[[Any, Any], Any],
) -> Attack:
  """An attack that does `rest` from its `start`; see `Halves`."""
  return Attack(
      view, lambda key, seen: rest(start(key, seen), seen),
      halves=Halves(start, rest),
  )


class NoOptions(NamedTuple):
  """The options of an attack that has none."""


def _guarded(name: str, made: Any) -> Any:
  """An attack that refuses what is not its view, in one sentence.

  NumPy's arrays become JAX's: a view may be recorded elsewhere, and NumPy's own
  are not indexed by a traced number.
  """
  if not isinstance(made, Attack) or not isinstance(made.view, type):
    return made
  run, kind = made.run, made.view

  @functools.wraps(run)
  def guarded(key: Any = None, view: Any = None) -> Any:
    if not isinstance(view, kind):
      got = 'no view' if view is None else check.kind(view)
      raise ValueError(
          f'{name}: run(key, view) needs a {kind.__name__}{_maker(kind)}; got '
          f'{got}.'
      )
    return run(key, jax.tree.map(_of_jax, view))

  return made._replace(run=guarded)


def _of_jax(x: Any) -> Any:
  return jnp.asarray(x) if isinstance(x, np.ndarray) else x


def _maker(view: type) -> str:
  """', as views.cut_gradients makes it', of a view that is made so."""
  package = view.__module__.rpartition('.')[0]
  made = re.sub(r'(?<!^)(?=[A-Z])', '_', view.__name__).lower()
  there = hasattr(sys.modules.get(package), made)
  return f', as {package}.{made} makes it' if there else ''


def _usual(stage: str, measure: Callable | None) -> Score:
  """The default score of an attack at `stage`, measured by `measure`."""
  if getattr(measure, '__name__', '') == 'of_images':
    return IMAGES
  return COMPLETION if stage == TRAINED else LABELS


def _fits(options: Any, scene: Scene, samples: Amounts) -> None:
  """The default of `Recipe.check`: refuses nothing."""


class Recipe(Generic[P, T]):
  """A factory of attacks with what a runner must know; calling it calls that.

  Attributes: the arguments of `recipe`, and
    factory: The factory.
    is_scored: Whether `score` was given, and is not the default.
  """

  def __init__(self, factory: Callable[P, T], **about: Any):
    self.factory = factory
    self.stage: str = about.pop('stage', ROUND)
    self.options: Any = about.pop('options', NoOptions)
    converting.check_options(self.options)
    self.__name__ = importing.called(factory)
    self.group: str = about.pop('group', '') or self.__name__
    plain: Callable[..., T] = factory
    self.make: Callable[[Any, Scene, VFL], T] = about.pop('make', None) or (
        lambda options, scene, vfl: plain(**options._asdict())
    )
    self.needs: tuple[Callable[[Scene], str], ...] = about.pop('needs', ())
    self.check = about.pop('check', _fits)
    self.baselines = about.pop('baselines', lambda scene: ())
    self.is_baseline: bool = about.pop('is_baseline', False)
    self.apart: tuple[str, ...] = about.pop('apart', ())
    self.plant = about.pop('plant', None)
    self.optimizer = about.pop('optimizer', None)
    self.measure = about.pop('measure', None)
    own: Score | None = about.pop('score', None)
    self.is_scored = own is not None
    self.score: Score = own or _usual(self.stage, self.measure)
    self.one_luck: bool = about.pop('one_luck', False)
    self.skips_blank: bool = about.pop('skips_blank', False)
    self.rest = about.pop('rest', lambda options, scene: '')
    self.rest_skips_blank = about.pop(
        'rest_skips_blank', lambda options, scene: False
    )
    if about or self.stage not in STAGES:
      raise TypeError(
          f'recipe: unknown {", ".join(about) or f"stage {self.stage!r}"}.'
      )
    if self.stage == TRAINING and not self.plant:
      raise TypeError('recipe: an attack on training itself needs `plant`.')
    functools.update_wrapper(self, factory, updated=())

  def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
    made = self.factory(*args, **kwargs)
    return _guarded(self.__name__, made)

  def __getattr__(self, name: str) -> Any:
    # Who looks for them wants an attack.
    if name in ('run', 'view', 'knowing'):
      called = self.__dict__.get('__name__', 'the attack')
      raise AttributeError(
          f'{called} makes an attack: call it, {called}(...).{name}'
      )
    raise AttributeError(f'A recipe has no attribute {name!r}.')

  def __reduce_ex__(self, protocol: Any) -> Any:
    if importing.goes_by_name(self):  # Which is the factory's no more.
      return self.__name__
    return super().__reduce_ex__(protocol)

  def __repr__(self) -> str:
    names = ', '.join(getattr(self.options, '_fields', ())) or 'none'
    return f'<attack {self.__name__}; options: {names}>'

  def why_not(self, name: str, scene: Scene) -> str:
    """Why the attack `name` cannot run on such a federation; '' if it can."""
    reason = next(filter(None, (need(scene) for need in self.needs)), '')
    return reason and f'{name} {reason}'

  def known(self, attack: Attack | None = None) -> Known:
    """What a report has to know of the attack.

    Args:
      attack: The attack that was made, if it was: it tells whether features are
        guessed.
    """
    score = self.score
    features = attack is not None and bool(attack.wants.samples)
    if features and not (self.is_scored or self.measure):
      score = IMAGES
    return Known(score, self.is_baseline, self.stage == TRAINED, self.summary)

  @functools.cached_property
  def summary(self) -> str:
    """One line: the module's docstring's first; a baseline's own first.

    Found once: a report asks thousands of times.
    """
    made = importing.behind(self.factory)
    module = None if self.is_baseline else inspect.getmodule(made)
    in_file = getattr(module, '__file__', None)  # IPython's own says nothing.
    own = in_file and inspect.getdoc(module)
    return (own or inspect.getdoc(made) or '').partition('\n')[0]


def recipe(**about: Any) -> Callable[[Callable[P, T]], Recipe[P, T]]:
  """A decorator that adds to a factory of attacks what a runner has to know.

  Args:
    stage: When the attack strikes: on a `ROUND` of training, on `REPLAYED`
      rounds, on the `TRAINED` federation, or on `TRAINING` itself.
    options: A NamedTuple class with defaults: the attack's options.
    group: The name in a configuration under which the options are set; by
      default the factory's. Attacks of one group share their options, as a
      baseline does with the attack that it is compared with.
    make: (options, scene, vfl) -> Attack; by default the factory with the
      options as keyword arguments.
    needs: Functions (scene) -> reason, each '' or a sentence's end: what the
      attack needs that such a federation lacks, and what to choose instead.
    check: (options, scene, samples); raises ValueError for options that make no
      sense with such samples.
    baselines: (scene) -> names of attacks that run beside it, for comparison.
    is_baseline: Whether it uses nothing that it gets from the federation.
    apart: Names of attacks that cannot run in the same federation.
    plant: With `TRAINING`: (options, ground) -> `backdoor.Backdoor`.
    optimizer: (pace) -> the attacking party's own optimizer, in training.
    measure: (guess, truth) -> {metric: number}, for attacks on the trained
      federation and on features; by default `measure.of_completion` or
      `of_images`. Guesses at a round's labels are all measured alike.
    score: How its success becomes a leakage. By default `leakage.COMPLETION` on
      the trained federation, `IMAGES` for guesses at features, else `LABELS`; a
      `measure` with metrics of its own needs one.
    one_luck: Whether its variants draw the same random numbers, so that they
      can be compared.
    skips_blank: Whether known samples whose labels are zeros change no guess.
      Variants that only know other numbers of labels are then compiled once.
    rest: (options, scene) -> a name for the second of the attack's `halves`,
      '' if no other attack has the same. It is compiled once for attacks with
      the same name, options and knowledge.
    rest_skips_blank: (options, scene) -> whether `rest` owes nothing to known
      samples whose labels are zeros, which it computes all the same. Attacks
      that know few labels are then compiled once.

  Returns:
    The decorator: factory -> `Recipe`.

  Raises:
    TypeError: for an unknown argument or stage, `TRAINING` without `plant`, or
      options of another kind.
  """
  return lambda factory: Recipe(factory, **about)


def recipe_of(factory: Callable[..., Any]) -> Recipe:
  """A registered factory's recipe; by default of an attack on a `ROUND`."""
  return factory if isinstance(factory, Recipe) else Recipe(factory)
