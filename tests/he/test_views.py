"""What parties can read, from real transcripts, is what `SIGHTS` says."""
import jax
import numpy as np
import pytest

from experiments.bench import he_federations as runs
from vfljax import views as plain_views
from vfljax.attacks import residue_reconstruction
from vfljax.defense import none
from vfljax.he import cipher, ckks, masks, spnn, views
from vfljax.he.packing import Sums
from vfljax.views import cut_gradients
from vfljax.views.rounds import model_gradients

HUGE = 1e6  # Masked numbers are far above; all that is plain is below.


@pytest.fixture
def x64():
  with jax.enable_x64(True):
    yield


def near(found, wanted):
  np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def is_hidden(found):
  assert np.median(abs(np.asarray(found))) > HUGE


def test_acml_tells_the_passive_party_its_embeddings_gradient(keys, x64):
  run = runs.run_acml(keys)
  read = views.readable(run.line, 'passive', keys[0])
  assert set(read) == {'hidden', 'slope', 'gradient'}
  is_hidden(read['hidden'])
  is_hidden(read['slope'])
  layer = run.plain.state.parties[1].params['bottom'][1]['w']
  near(read['gradient'], run.plain.messages.down[0] @ layer.T)


def test_acml_tells_the_active_party_the_layers_output_and_noisy_steps(
    keys, x64
):
  run = runs.run_acml(keys, rows=8, hidden=6)
  raw = views.readable(run.line, 'active')
  assert set(raw) == {'opened hidden', 'opened slope'}
  is_hidden(raw['opened hidden'])
  is_hidden(raw['opened slope'])
  # Its own masks taken away:
  own = run.own()['active']
  active = views.readable(run.line, 'active', own=own)
  up, down = run.plain.messages.up[0], run.plain.messages.down[0]
  near(active['opened hidden'], up)
  layer = run.plain.state.parties[1].params['bottom'][1]['w']
  a = np.linalg.lstsq(layer.T, up.T, rcond=None)[0].T  # Who knew the layer.
  noise = active['opened slope'] - runs.RATE * a.T @ down
  assert 0.5 < np.std(noise) < 1.7
  # No bit of it is that of the product alone.
  last = views.opened(run.line, 'active', own=own)['opened slope']
  low = np.array([
      [int(v) >> i & 1 for i in range(last.fraction - masks.GRAIN)]
      for v in last.values.flat
  ])
  assert (low.any(0) & ~low.all(0)).all()


@pytest.mark.parametrize('how', ['single', 'packed'])
def test_spnn_tells_the_server_the_hidden_layer(keys, x64, how):
  run = runs.run_spnn(keys, how=how)
  sums = Sums(keys[0].public, 2, how == 'packed')
  served = views.readable(run.line, 'server', keys[0], sums)
  up = run.plain.messages.up[0]
  own = run.plain.batch.features[0] @ (
      run.plain.state.parties[0].params['bottom']['w']
  )
  near(served['sum'][:up.size], (up + own).ravel())
  view = cut_gradients(1, run.plain)
  read = views.readable(run.line, 'passive')
  assert set(read) == {'gradient'}
  near(read['gradient'], view.received)
  # The active party reads no part of the other: only ciphertexts of it.
  assert set(views.readable(run.line, 'active')) == {'last', 'gradient too'}


def test_the_server_reads_the_hidden_layer_in_ckks_too():
  """It was left out, as if the server saw its own network's gradient alone."""
  private, maker = ckks.PrivateContext(), cipher.Arithmetic()
  line, x = spnn.channel(private.public), np.arange(6.0).reshape(2, 3)
  line.carry('part', private.public.seal(maker, x))
  part = line.carry('sum', private.public.seal(maker, x))
  line.carry('sum', private.public.add(maker, part, part))
  near(views.readable(line, 'server', private)['sum'], 2 * x.ravel())
  assert not views.readable(line, 'active', private.public)
  assert not views.readable(line, 'server', ckks.PrivateContext())


def test_sfa_tells_the_sum_to_the_active_party_and_nothing_to_the_key(
    keys, x64
):
  run = runs.run_sfa(keys)
  sums = Sums(keys[0].public, 2, masked=True)
  read = views.readable(run.line, 'passive 1', keys[0], sums)
  near(read['gradient for passive 1'], run.plain.messages.down[0])
  is_hidden(read['masked sum'])
  is_hidden(views.readable(run.line, 'active')['opened sum'])
  own = run.own()['active']
  told = views.readable(run.line, 'active', own=own)['opened sum']
  bottom = run.plain.state.parties[0].params['bottom'][0]['w']
  ours = np.tanh(run.plain.batch.features[0] @ bottom)
  near(told, run.plain.messages.up[0] + ours)


def test_blindfl_tells_the_passive_party_nothing_and_the_active_one_z(
    keys, x64
):
  run = runs.run_blindfl(keys)
  assert not run.own()['passive']
  read = views.readable(run.line, 'passive', keys[0])
  assert set(read) == {"the active party's product"}
  is_hidden(read["the active party's product"])
  # Under the active party's key: what it can read, the passive one cannot.
  active = views.readable(run.line, 'active', keys[1])
  is_hidden(active['share'])
  own = run.own()['active']
  active = views.readable(run.line, 'active', keys[1], own=own)
  bottom = run.plain.state.parties[0].params['bottom']['w']
  ours = run.plain.batch.features[0] @ bottom
  near(active['share'], run.plain.messages.up[0] + ours)
  is_hidden(active['step'])
  is_hidden(active["the passive party's product"])


def test_hardys_residues_follow_from_the_gradient(keys, x64):
  """Four rows, five features: Eq. 8 holds, and the residues come out."""
  run = runs.run_hardy(keys, rows=4)
  read = views.readable(run.line, 'passive', keys[0])
  view = model_gradients(jax.random.key(0), 1, none(), run.plain)
  told = read["the passive party's gradient"]
  near(told / 4, view.gradients['w'])
  attack = residue_reconstruction()
  seen = view._replace(gradients={'w': told / 4})
  scores = attack.run(jax.random.key(0), seen)
  residues = run.plain.messages.down[0][:, 0]
  near(scores[:, 1] - scores[:, 0], -residues)
  labels = plain_views.majority(run.plain.batch.labels)[:, 1]
  assert (((scores[:, 1] - scores[:, 0]) > 0) == (labels > 0)).all()
  assert attack.facts(seen)['exact'] == 1


@pytest.mark.parametrize('masked', [False, True])
def test_hardys_coordinator_reads_gradients_unless_they_are_masked(
    keys, x64, masked
):
  run = runs.run_hardy(keys, masked=masked)
  read = views.readable(run.line, 'coordinator', keys[0])
  assert len(read) == 2
  for found, k in zip(
      (read["the passive party's sums"], read["the active party's sums"]),
      (1, 0),
  ):
    if masked:
      is_hidden(found)
    else:
      d = run.plain.messages.down[0] * 4
      near(found, run.plain.batch.features[k].T @ d)
  own = run.own()['passive']
  view = model_gradients(jax.random.key(0), 1, none(), run.plain)
  told = views.readable(run.line, 'passive', own=own)
  near(told["the passive party's gradient"] / 4, view.gradients['w'])


def test_every_protocol_has_its_sights():
  names = {name.split()[0] for name in runs.ALL}
  assert {sight.protocol for sight in views.SIGHTS} == names
  assert {sight.layers for sight in views.SIGHTS} == {-1, 0, 1}


def test_how_many_layers_are_trained_in_the_clear():
  """All below the layer between the parties, SPNN's first, and SFA's whole
  networks; an attack on the cut is on what is above them."""
  found = {(s.protocol, s.party): s.layers for s in views.SIGHTS if s.layers}
  assert found == {
      ('acml', 'passive'): -1, ('spnn', 'passive'): 1, ('sfa', 'passive'): -1,
  }
