"""Views have of a round what they declare, by the trace of what makes them."""
import functools
import inspect

import jax
import jax.numpy as jnp
import pytest

from tests.attacks.test_contract import EVERY_ATTACK, make_attack, view_of
from tests.contracts import SAMPLES
from tests.test_audit import ROWS, SHAPES, TXS_OF_3, VFL
from vfljax import crossing, flow, protocol, views
from vfljax.defense import none
from vfljax.types import Batch, Messages, PartyState, Round, State


def name_round(played):
  """By leaf, whose it is."""
  name = lambda tree, what: jax.tree.map(lambda leaf: what, tree)
  every = lambda trees, what, first: tuple(
      name(t, f'{what} {k}') for k, t in enumerate(trees, first)
  )
  parties = tuple(
      PartyState(name(p.params, f'weights {k}'), name(p.opt, 'optimizer'))
      for k, p in enumerate(played.state.parties)
  )
  return Round(
      State(parties, name(played.state.defense, 'memory'), ()),
      Batch(every(played.batch.features, 'features', 0), 'labels'),  # pyright: ignore
      Messages(*(
          every(m, way, 1) for m, way in zip(played.messages, ('up', 'down'))
      )), 'loss',  # pyright: ignore
      every(played.gradients, 'gradients', 1),
      every(played.added, 'gradients', 1),
  )


def mark(name, taint, made_by) -> flow.Taint:
  return {'rows': None} if name == crossing.ROWS else taint


def fields(make_view, known, names):
  """By field of a view, all that it is made of."""
  traced, shape = jax.make_jaxpr(make_view, return_shape=True)(known)
  taints = flow.follow(traced, jax.tree.leaves(names), flow.Rules(mark=mark))
  view = jax.tree.unflatten(jax.tree.structure(shape), taints)
  is_taint = lambda x: x in taints
  return {
      field: set().union(*jax.tree.leaves(own, is_leaf=is_taint))
      for field, own in view._asdict().items()
  }


OWN = dict(features={'features 1'}, sent={'up 1'}, received={'down 1'},
           valid={'rows'})
OF_A_ROUND = {
    views.CutGradients: OWN,
    views.KnownPositive: OWN | dict(known={'labels'}),
    views.ClassCenters: OWN | dict(
        known={'rows'}, means={'labels', 'rows', 'down 1'},
        medians={'labels', 'rows', 'down 1'},
    ),
    views.ModelGradients: dict(
        features={'features 1'}, weights={'weights 1'},
        gradients={'gradients 1'}, valid={'rows'},
    ),
}


@functools.cache
def a_round():
  state = jax.eval_shape(
      lambda key, data: protocol.init(key, VFL, none(), TXS_OF_3, data),
      jax.random.key(0), SHAPES,
  )
  return state, jax.eval_shape(
      lambda key, s, data: protocol.play_round(
          key, VFL, none(), TXS_OF_3, s, data
      )[1], jax.random.key(0), state, SHAPES,
  )


@pytest.mark.parametrize('kind', views.OF_A_ROUND)
def test_views_of_a_round_have_what_they_declare(kind):
  _, played = a_round()
  found = fields(
      lambda played: views.in_training(
          kind, jax.random.key(0), 1, none(), played
      ), played, name_round(played),
  )
  assert found == OF_A_ROUND[kind]


def test_views_of_a_trained_federation_have_what_they_declare():
  state, played = a_round()
  names = name_round(played)

  def seen(kind):
    def view(given):
      state, data = given
      return views.after_training(kind, jax.random.key(0), 1, views.Finished(
          VFL, none(), state, data, data, ROWS, data, data
      ))

    return fields(view, (state, SHAPES), (names.state, names.batch))

  bottom = dict(
      weights={'weights 1'}, labeled_features={'features 1'},
      labeled={'labels'}, features={'features 1'},
  )
  assert seen(views.TrainedBottom) == bottom
  assert seen(views.UnlabeledBottom) == bottom | dict(
      unlabeled={'features 1'}
  )
  top = seen(views.TrainedTop)
  assert top['weights'] == {'weights 0'}
  assert top['received'] == {'weights 1', 'features 1'}  # Sent by party 1.


@pytest.mark.parametrize('name', EVERY_ATTACK)
def test_attacks_have_a_key_and_a_view_and_no_samples_beside(name):
  attack = make_attack(name)
  assert len(inspect.signature(attack.run).parameters) == 2
  view = jax.eval_shape(lambda: view_of(attack.view))
  traced = jax.make_jaxpr(attack.run)(jax.random.key(0), view)
  beside = [x for x in traced.consts if jnp.shape(x)[:1] == (SAMPLES,)]
  assert not beside
