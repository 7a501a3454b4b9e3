"""Who is a branch of a program of several defenses."""
import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.devices import of_a_cpu
from tests.runner.compiled.test_families import DEEP, config, found
from vfljax import defenses
from vfljax.defense import Defense, Method, Spec, none
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import families, joining
from vfljax.runner.config import DataConfig, Entry, ModelConfig

IMAGES = dict(
    data=DataConfig(name='digits', limit=120, split='left_right'),
    model=ModelConfig(algorithm='vhnn', name='lenet5', width=16, top=(4,)),
    listed_attacks=(),
)
MID = Entry('mid', (0.1,), label='MID')
LISTED = (
    Entry('none'), Entry('iso', (5.0,)), MID,
    Entry('dcor', (0.1,), label='dCor'),
    Entry('mid', (0.1,), dict(side='passive'), 'sent'),
    Entry('mid', (0.1,), label='chained', after=(Entry('iso', (5.0,)),)),
    Entry('fedpass_cut', (0.5,), label='FedPass'),
    Entry('mine', (1.0,), label='mine'),
    Entry('narrow', (1.0,), label='narrow'),
)


@pytest.fixture
def mine(monkeypatch):
  """Two methods of a user's own: one says that it keeps shapes."""

  def made(strength):
    return Defense(receive=lambda active, state, key, up, labels: (
        tuple(u * strength for u in up), 0.0
    ))

  monkeypatch.setitem(
      defenses.REGISTRY, 'mine', Method(made, (1.0,), keeps_shapes=True)
  )
  monkeypatch.setitem(defenses.REGISTRY, 'narrow', Method(made, (1.0,)))


@pytest.mark.usefixtures('mine')
@pytest.mark.parametrize('given, joined', [
    (IMAGES, {'none', 'iso', 'MID', 'dCor', 'mine'}),
    (dict(model=DEEP), {'none', 'iso'}),
], ids=['convolutions', 'layers'])
def test_who_joins(given, joined):
  everything = found(config(listed=LISTED, **given))
  assert {j.entry.name for j in everything if joining.joins(j)} - {'alone'} == (
      joined
  )


@pytest.mark.parametrize('width, joined', [(16, True), (400, False)])
def test_a_bottleneck_of_more_weights_than_the_network_stays_apart(
    width, joined
):
  """It grows with the square of the width, and all trainings would have it."""
  given = dict(IMAGES, model=dataclasses.replace(IMAGES['model'], width=width))
  jobs = {j.entry.name: j for j in found(config(listed=LISTED[:4], **given))}
  assert joining.joins(jobs['MID']) == joined
  assert joining.joins(jobs['dCor'])  # It has none.


def test_an_active_party_with_labels_only_has_no_bottom_network():
  """The passive parties' embeddings are made by their own."""
  model = dataclasses.replace(IMAGES['model'], algorithm='vsnn')
  given = dict(IMAGES, model=model)
  jobs = {j.entry.name: j for j in found(config(listed=LISTED[:4], **given))}
  assert jobs['MID'].setting.vfl.bottoms[0] is None
  assert joining.joins(jobs['MID'])


@of_a_cpu
@pytest.mark.usefixtures('mine')
def test_who_joins_shares():
  everything = found(config(listed=LISTED, **IMAGES))
  shared = families.families(everything)
  names = {n for n, family in shared.items() if family is shared['none']}
  assert names == {'none', 'alone', 'iso', 'MID', 'dCor', 'mine'}
  assert shared['none'].weights == ('MID', 'dCor', 'mine')
  assert shared['none'].memories == ('MID',)


def test_the_active_party_alone_receives_nothing():
  """And no other's penalty is lost."""
  made = Defense(receive=lambda active, state, key, up, labels: (
      tuple(u + active for u in up), 2.5
  ))
  up = np.full((3, 2), 3.0), np.ones((3, 1))
  for alone, heard in (True, (0, 0)), (np.bool_(False), (7, 5)):
    got, penalty = joining.deaf(made, alone).receive(4, (), None, up, None)
    assert penalty == 2.5
    assert [set(u.ravel().tolist()) for u in got] == [{x} for x in heard]


@pytest.mark.parametrize('name', [
    name for name, method in defenses.REGISTRY.items() if method.keeps_shapes
])
@pytest.mark.parametrize('kind', [jnp.float32, jnp.bfloat16])
def test_who_says_so_keeps_shapes(name, kind):
  method, key = defenses.REGISTRY[name], jax.random.key(0)
  assert not Method(none).keeps_shapes
  made, labels = method(*method.strengths[:1]), jnp.eye(2)[jnp.arange(4) % 2]
  up = jnp.ones((4, 3, 2), kind), jnp.ones((4, 5), kind)
  begun = made.init(key, Spec(tuple(jax.eval_shape(lambda: up)), 2))
  got, _ = made.receive(begun.active, begun.state, key, up, labels)
  for u, z in zip(up, got, strict=True):
    assert (u.shape, u.dtype) == (z.shape, z.dtype)


@pytest.fixture
def results(tmp_path):
  """(what to call it, rows) -> a list of results by row."""

  def of(place, listed, **given):
    asked = config(listed=listed, seeds=2, listed_attacks=(), **given)
    asked.train = dataclasses.replace(asked.train, optimizer='momentum')
    table = arguments.load_data(asked.data)
    work = run.run(asked, table, str(tmp_path / place))
    rows = {}
    for line in (work.path / 'results.jsonl').read_text().splitlines():
      line = json.loads(line)
      rows.setdefault(line['defense'], []).append(line)
    return rows

  return of


@of_a_cpu
@pytest.mark.slow
@pytest.mark.parametrize('given', [
    dict(model=DEEP), dict(model=IMAGES['model'], data=IMAGES['data'])
], ids=['layers', 'convolutions'])
def test_numbers_do_not_know_who_is_a_branch(results, monkeypatch, given):
  """Neither those of others nor its own, and up to rounding as by its own."""
  monkeypatch.setattr(joining, '_convolves', lambda setting: True)
  monkeypatch.setattr(joining, '_is_small', lambda *_: True)
  together = results('all', LISTED[:4], **given)
  assert set(together) == {'none', 'iso', 'MID', 'dCor'}
  assert results('plain', LISTED[:2], **given) == {
      name: together[name] for name in ('none', 'iso')
  }  # Also without the passive parties.
  for row in LISTED[2:4]:
    name = row.label
    one = results(name, (row,), **given)
    assert one[name] == together[name]
  monkeypatch.setattr(joining, '_convolves', lambda setting: False)
  own = results('own', LISTED[2:4], **given)
  for name in ('MID', 'dCor'):
    for one, other in zip(together[name], own[name], strict=True):
      assert one | dict(value=0) == other | dict(value=0)
      assert one['value'] == pytest.approx(other['value'], abs=0.01), one
