"""Which networks a configuration describes."""
import functools

import jax
import jax.numpy as jnp
import pytest

from vfljax import nets
from vfljax.runner.config import Config, DataConfig, ModelConfig
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import federations


def shapes(classes, parties=3, **model):
  """Of each party's embedding of 7 samples with 5 columns, and the logits."""
  config = Config(data=DataConfig(parties=parties), model=ModelConfig(**model))
  vfl, x = federations.federation(config, classes), jnp.zeros((7, 5))

  def all_of(key):
    embed = lambda net: net and net.apply(net.init(key, x), x)
    own = tuple(map(embed, vfl.bottoms))
    return own, vfl.top.apply(vfl.top.init(key, own), own)

  own, logits = jax.eval_shape(all_of, jax.random.key(0))
  return [u and u.shape[1:] for u in own], logits.shape[1:]


@pytest.mark.parametrize('classes', [2, 3])
@pytest.mark.parametrize('model, embeddings', [
    (dict(), [(32,)] * 3),
    (dict(algorithm='vsnn'), [None, (32,), (32,)]),
    (dict(bottom=(8,), top=()), [(8,)] * 3),
    (dict(name='mlp3'), [(64,)] * 3),
    (dict(name='mlp3', width=6), [(6,)] * 3),
])
def test_parties_have_embeddings_and_the_top_a_logit_a_class(
    classes, model, embeddings
):
  assert shapes(classes, **model) == (embeddings, (classes,))


@pytest.mark.parametrize('classes, width', [(2, 1), (3, 3)])
def test_without_weights_in_the_top_embeddings_are_logits(classes, width):
  expected = [(width,)] * 3, (classes,)
  bare = dict(trainable_top=False)
  assert shapes(classes, algorithm='vlr') == expected
  assert shapes(classes, bottom=(8, width), **bare) == expected
  assert shapes(classes, name='mlp3', **bare) == expected
  assert shapes(classes, name='mlp3', width=width, **bare) == expected
  first, logits = shapes(
      classes, algorithm='vsnn', bottom=(8, width), aggregation='mean', **bare
  )
  assert first == [None, (width,), (width,)] and logits == (classes,)


@pytest.mark.parametrize('model, message', [
    (dict(bottom=(8, 2)), r'last width of model.bottom must be 1, not \(2,\)'),
    (dict(name='mlp3', width=8), 'model.width must be 1, not 8'),
])
def test_other_widths_are_refused_there(model, message):
  with pytest.raises(ValueError, match=message):
    shapes(2, trainable_top=False, **model)


def test_what_is_no_network_is_refused():
  with pytest.raises(ValueError, match='model.bottom needs at least one width'):
    shapes(2, bottom=())
  with pytest.raises(UserError, match='must be one of vlr, vhnn, vsnn'):
    shapes(2, algorithm='vhn')


@pytest.mark.parametrize('options, message', [
    ('hidden', "must look like 'dtype=bfloat16'; got 'hidden'"),
    ('2=3', "must look like 'dtype=bfloat16'; got '2=3'"),
    ('norm=batch;norm=none', 'model.options has norm twice'),
    ('hidden=64', r'hidden must be like its default, \(512, 256\); got the i'),
    ('norm=(1,)', "norm must be like its default, 'none'; got the tuple"),
    ('hidden=(64,x)', 'hidden must be like its .*got the str'),
    ('hidden=(64,"x")', 'hidden must be like its default.*got the tuple'),
    ('dropout=True', 'dropout must be like its default, 0.0; got the bool'),
    ('dropout=3e9', 'dropout must be a number of at most 2147483647; got 30'),
])
def test_options_of_a_network_are_like_its_defaults(options, message):
  with pytest.raises(UserError, match=message):
    federations.options_of(ModelConfig(name='mlp3', options=options))


def test_options_are_what_a_network_takes(monkeypatch):
  """Whole numbers where fractions are; of an empty default, anything."""
  own = lambda width, rate=0.5, sizes=(), other=None: nets.mlp(width)
  monkeypatch.setitem(nets.REGISTRY, 'mine', nets.Network(own))
  found = federations.options_of(ModelConfig(
      name='mine', options='rate=1; sizes=(3,4); other={[]:1}'
  ))
  assert found == dict(rate=1, sizes=(3, 4), other='{[]:1}')


def test_a_pretrained_network_that_is_not_there_is_told():
  with pytest.raises(ValueError, match='no/such/config.json is not there. '):
    shapes(2, name='encoder', options='path=no/such')


@pytest.mark.parametrize('aggregation', ['concat', 'sum'])
def test_logits_are_added_and_not_put_together(aggregation):
  config = Config(model=ModelConfig(
      bottom=(3,), trainable_top=False, aggregation=aggregation
  ))
  vfl = federations.federation(config, 3)
  us = jnp.array([[1.0, 2.0, 3.0]]), jnp.array([[10.0, 20.0, 30.0]])
  made = vfl.top.apply(vfl.top.init(jax.random.key(0), us), us)
  assert made.tolist() == [[11.0, 22.0, 33.0]]


@pytest.mark.parametrize('skips, model, data', [
    (True, dict(norm='batch'), {}),
    (True, dict(name='resnet20'), {}),
    (False, dict(dropout=0.5), {}),
    (False, dict(name='vgg13', options='dropout=0.5'), {}),
    (False, dict(name='resnet20'), dict(flips=True)),
    (False, dict(name='resnet20'), dict(shifts=4)),
    (False, dict(name='somebodys'), {}),
    (False, dict(name='around_ours'), {}),
])
def test_whose_training_skips_blanks(monkeypatch, skips, model, data):
  """Not one that draws for each sample, nor one that may measure all."""
  somebodys = nets.Network(lambda width=8: nets.mlp(width, norm='batch'))
  monkeypatch.setitem(nets.REGISTRY, 'somebodys', somebodys)
  around = functools.wraps(nets.mlp3.mlp3)(somebodys.factory)
  monkeypatch.setitem(nets.REGISTRY, 'around_ours', nets.Network(around))
  config = Config(data=DataConfig(**data), model=ModelConfig(**model))
  assert federations.scene(config, 3).skips_blank == skips


@pytest.mark.parametrize('model, trained', [
    (dict(channels=(2,)), True), (dict(bottom=(4,)), True),
    (dict(name='lenet5'), True), (dict(algorithm='vlr'), False),
])
def test_an_attackers_own_network_trains_as_the_federations(model, trained):
  """On flipped images where these are: an attack's baseline is trained so."""
  config = Config(
      data=DataConfig(parties=2, flips=True), model=ModelConfig(**model)
  )
  own = federations.scene(config, 2).own((4, 2), 'none')
  x = jax.random.uniform(jax.random.key(0), (9, 8, 8, 1))
  params = own.init(jax.random.key(1), x)
  flipped = (own.run(params, jax.random.key(2), x)[0]
             != own.apply(params, x)).any(1)
  assert 0 < flipped.sum() < 9 if trained else not flipped.any()
