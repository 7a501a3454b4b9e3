"""What views show: whose, of which samples, and how a defense lets it be read.
"""
import jax
import numpy as np
import pytest

from tests.contracts import SAMPLES, batch, federation, play, start
from vfljax import views
from vfljax.defense import Defense, none

KEY = jax.random.key(0)
# What a party can read of its weights says whose they are.
SHIFTED = Defense(
    expose=lambda state, key, k, weights: jax.tree.map(
        lambda x: x + 100 * k, weights
    )
)


def finished(defense=none(), wanted=5):
  """A federation (which has not trained) and its samples."""
  data = batch()
  known = jax.tree.map(lambda x: x[:3], data)
  return views.Finished(
      federation(), defense, start(KEY, defense, data), known, data, wanted,
      data, known,
  )


@pytest.mark.parametrize('kind', [views.TrainedBottom, views.UnlabeledBottom])
def test_a_party_reads_its_weights_as_the_defense_lets_it(kind):
  seen = finished(SHIFTED)
  view = views.after_training(kind, KEY, 1, seen)
  true = seen.state.parties[1].params['bottom']
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b + 100, rtol=1e-6),
      view.weights, true,
  )
  np.testing.assert_array_equal(view.features, seen.test.features[1])
  np.testing.assert_array_equal(view.labeled, seen.known.labels)


def test_the_active_party_gets_embeddings_of_the_samples_it_wants():
  seen = finished(wanted=5)
  view = views.after_training(views.TrainedTop, KEY, 1, seen)
  first = seen.test.features[1][:5]
  np.testing.assert_array_equal(views.wanted_features(1, seen), first)
  net, own = seen.vfl.bottom(1), seen.state.parties
  np.testing.assert_allclose(
      view.received, net.apply(own[1].params['bottom'], first), rtol=1e-6
  )
  assert set(view.weights) == {'bottom', 'top'}
  jax.tree.map(
      np.testing.assert_array_equal, view.weights['top'], own[0].params['top']
  )


def test_each_kind_is_of_its_stage():
  seen = finished()
  _, played = play(KEY, none(), seen.state, seen.training)
  cut = views.in_training(views.CutGradients, KEY, 1, played)
  assert len(cut.received) == SAMPLES
  with pytest.raises(ValueError, match='not a view of a round'):
    views.in_training(views.TrainedTop, KEY, 1, played)
  with pytest.raises(ValueError, match='not a view of a trained'):
    views.after_training(views.CutGradients, KEY, 1, seen)
