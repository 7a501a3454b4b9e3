"""Vertical federated learning in JAX: train, attack, defend, measure.

Parties hold different features of the same samples and train one network by
exchanging embeddings and their gradients. Every function here is pure: `jit`,
`scan` and `vmap` apply from outside, and importing changes no JAX setting.

  run = jax.jit(lambda key: vfljax.fit(
      key, vfl, defense, txs, data, epochs=30, batch_size=64))
  state, history = run(key)  # A second call compiles nothing.
  logits = vfljax.predict(key, vfl, defense, state, test.features)

`algorithms` and `nets` make a `VFL`, `defenses` and `attacks` are registries,
`sweep` runs seeds x strengths in one program, `measure`, `metrics` and
`evaluation` score utility and leakage, `audit` proves what crosses between
parties, and `data` loads and splits tables. `run` runs an experiment, and
`recommend` says which defense to choose, as the command line does, also in a
notebook.
"""
import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from vfljax import (
      algorithms, attacks, audit, defenses, evaluation, measure, metrics, nets,
      protocol, sweep, train, views,
  )
  from vfljax.adversary import Adversary
  from vfljax.attack import Attack
  from vfljax.defense import Defense, chain, none
  from vfljax.protocol import init, play_round, predict
  from vfljax.train import Plan, fit
  from vfljax.types import VFL, Batch, Messages, Net, Round, State

__version__ = '0.2.0'

__all__ = [
    'VFL', 'Adversary', 'Attack', 'Batch', 'Defense', 'Messages', 'Net', 'Plan',
    'Round', 'State', 'algorithms', 'attacks', 'audit', 'chain',
    'defenses', 'evaluation', 'fit', 'init', 'measure', 'metrics', 'nets',
    'none', 'play_round', 'predict', 'protocol', 'sweep', 'train', 'views',
]

# The module of each public name that is not a module itself. Names are imported
# on first use, so that the command line handles ctrl-C before it imports JAX.
_HOMES = dict(
    Adversary='adversary', Attack='attack', Defense='defense', chain='defense',
    none='defense', init='protocol', play_round='protocol', predict='protocol',
    Plan='train', fit='train', VFL='types', Batch='types', Messages='types',
    Net='types', Round='types', State='types', run='running',
    recommend='recommending',
)


# Modules that are used by their names, which `import *` leaves to the user.
_MORE = (
    'club', 'completion', 'contracts', 'crossing', 'data', 'defense', 'scene',
    'recommend', 'run', 'stream', 'types',
)


def __getattr__(name: str) -> Any:
  """A public name or a submodule, imported on first use."""
  if name in _HOMES:
    module = importlib.import_module(f'vfljax.{_HOMES[name]}')
    found = globals()[name] = getattr(module, name)
    return found
  if name.startswith('_') or not find_spec(f'vfljax.{name}'):
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return importlib.import_module(f'vfljax.{name}')


def __dir__() -> list[str]:
  """What is meant to be used, for a shell that completes names."""
  own = {name for name in globals() if name.startswith('__')}
  return sorted(own.union(__all__, _MORE))
