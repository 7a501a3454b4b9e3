"""What a script of one's own gets wrong is said, and nothing is stretched.

Each row is a call and what its ValueError says. Shapes and types are seen while
a program is traced, so all of it is told inside `jit`, too.
"""
import types

from flax import linen as nn, nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import (
    algorithms, club, completion, federation, metrics, nets,
    protocol, sampling, stream, sweep, train,
)
from vfljax.adversary import HONEST, Adversary
from vfljax.attacks.gradient_inversion import Dummies, invert
from vfljax.completion import Samples, Schedule
from vfljax.defense import chain, none
from vfljax.defenses import fedpass
from vfljax.types import Batch, Net

KEY = jax.random.key(0)
NONE = none()
NET = nets.mlp(2)
VFL = algorithms.vhnn([NET] * 2, NET)
TXS = (optax.sgd(0.1),) * 2
PLAN = train.Plan(VFL, NONE, TXS, 2, 6)
ONES = np.ones(6, np.float32)
X = np.ones((6, 3), np.float32)
Y = np.eye(2, dtype=np.float32)[[0, 1] * 3]


def batch(labels=Y, parties=2):
  return Batch((X,) * parties, labels)  # pyright: ignore


def begun(vfl=VFL, data=None, parties=2, **txs):
  own = txs.get('txs', TXS[:1] * parties)
  return protocol.init(KEY, vfl, NONE, own, data or batch(parties=parties))


def play(state=None, data=None, txs=TXS):
  shapes = state or jax.eval_shape(begun)
  jax.eval_shape(
      lambda state, data: protocol.play_round(
          KEY, VFL, NONE, txs, state, data
      ), shapes, data or batch(),
  )


def rows(first, data):
  return jax.tree.map(lambda x: x[first:], data)


def of_three():
  vfl = algorithms.vhnn([nets.mlp(2)] * 3, nets.mlp(2))
  return jax.eval_shape(lambda: begun(vfl, parties=3))


def bottom(apply, init=lambda key, x: jnp.ones((3, 2))):
  """A federation whose passive party has this network."""
  return VFL._replace(bottoms=(NET, Net(init, apply)))


def fit(labels=Y, vfl=VFL, txs=TXS, **options):
  options = dict(epochs=1, batch_size=6) | options
  jax.eval_shape(lambda: train.fit(
      KEY, vfl, NONE, txs, batch(np.asarray(labels, np.float32)), **options
  ))


def go_on(run, **options):
  train.advance(PLAN._replace(**options), run, batch(), 0, 1)


def adding(*widths):
  net = algorithms.vhnn([nets.mlp(n) for n in widths], nets.mlp(2), 'sum')
  return lambda: jax.eval_shape(lambda: begun(net))


def complete(known=X, labels=Y, **own):
  completion.complete(
      KEY, Schedule(**own), lambda w, x: x @ w, np.ones((3, 2), np.float32),
      Samples(known, labels, X),  # pyright: ignore
  )


def swept(seeds=1, strengths=(0.0,), **options):
  return sweep.sweep(lambda key, s: s, seeds, strengths, **options)


MISUSES = {
    # A round.
    'two optimizers more': (lambda: play(txs=TXS * 2), 'two or more parties'),
    'a party more': (lambda: play(data=batch(parties=3)), '2, 2, 3'),
    'one optimizer': (lambda: play(txs=TXS[0]), r'\(tx,\) \* 2'),
    'no optimizer': (lambda: begun(txs=None), 'got None'),
    'an optimizer that asks for a loss': (
        lambda: fit(txs=(optax.polyak_sgd(),) * 2), 'no loss, which passive'
    ),
    'an optimizer of pairs': (
        lambda: fit(txs=(optax.lookahead(optax.sgd(0.1), 2, 0.5),) * 2),
        'weights in pairs'
    ),
    'an optimizer without its rate': (
        lambda: play(txs=(optax.sgd,) * 2), 'such as optax.adam'
    ),
    'a state of another optimizer': (
        lambda: play(txs=(optax.adam(0.1),) * 2), 'state is that of another op'
    ),
    'a number for a key': (
        lambda: train.fit(0, VFL, NONE, TXS, batch(), epochs=1, batch_size=6),
        'jax.random.key.0. makes one, and comes first; got an int',
    ),
    'many keys': (
        lambda: protocol.init(
            jax.random.split(KEY, 3), VFL, NONE, TXS, batch()
        ), r'one key; got an array of them, of shape \(3,\).*jax.vmap'
    ),
    'key and networks swapped': (
        lambda: protocol.init(VFL, KEY, NONE, TXS, batch()), 'got a VFL'
    ),
    'key and state swapped': (
        lambda: protocol.play_round(begun(), VFL, NONE, TXS, KEY, batch()),
        'comes first; got a State',
    ),
    'no state': (
        lambda: protocol.play_round(KEY, VFL, NONE, TXS, batch(), begun()),
        'state must be a State.* got a Batch',
    ),
    'no batch': (
        lambda: protocol.play_round(KEY, VFL, NONE, TXS, begun(), (X, X)),
        'batch must be a Batch.* got a tuple',
    ),
    'predicting by key and state swapped': (
        lambda: protocol.predict(begun(), VFL, NONE, KEY, (X, X)),
        'comes first; got a State',
    ),
    'predicting without a state': (
        lambda: protocol.predict(KEY, VFL, NONE, (X, X), begun()),
        'state must be a State.*in `predict` after the defense',
    ),
    'predicting a batch': (
        lambda: protocol.predict(KEY, VFL, NONE, begun(), batch()),
        '.batch.features.*; got a Batch',
    ),
    'predicting for one party': (
        lambda: protocol.predict(KEY, VFL, NONE, begun(), (X,)),
        'each of the 2 parties.*; got 1 arrays',
    ),
    'predicting by one row of a party': (
        lambda: protocol.predict(KEY, VFL, NONE, begun(), (X, X[:1])),
        r'same sample at every party; their shapes are \(6, 3\), \(1, 3\)',
    ),
    'an AUC of swapped arguments': (
        lambda: metrics.roc_auc(jnp.float32([0, 1, 1]), jnp.float32([1, 2, 3])),
        r'The scores come first: roc_auc\(scores, labels\)',
    ),
    "another's state": (lambda: play(of_three()), 'state has 3 parties, the f'),
    'one column': (lambda: play(data=batch(Y[:, :1])), 'one_hot'),
    'class numbers': (lambda: play(data=batch(Y.argmax(1))), 'one_hot'),
    'no sample': (lambda: play(data=rows(6, batch())), 'a sample or more'),
    'rows that are others': (lambda: play(data=batch(Y[1:])), '6 rows, the'),
    'a pair': (
        lambda: train.fit(
            KEY, VFL, NONE, TXS, ((X, X), Y),  # pyright: ignore
            epochs=1, batch_size=6
        ), r'a Batch\(.* got a tuple'
    ),
    # A federation.
    'one party': (lambda: algorithms.vlr(1, 2), 'vlr: parties'),
    'one class': (lambda: algorithms.vlr(2, 1), 'vlr: classes'),
    'widths that do not add up': (adding(3, 1), r"\(3,\), \(1,\).*'concat'"),
    'an output too many': (
        lambda: fit(vfl=algorithms.vlr(2, 3)), r'it makes \(6, 3\)'
    ),
    'one output': (
        lambda: fit(vfl=algorithms.vhnn([nets.mlp(2)] * 2, nets.mlp(1))),
        'nets.binary'
    ),
    'an embedding of all samples': (
        lambda: fit(vfl=bottom(lambda w, x: (x @ w).sum(0, keepdims=True))),
        r'party 1 must make one .* of 6 samples it makes float32 of .*\(1, 2\)'
    ),
    'two embeddings': (
        lambda: fit(vfl=bottom(lambda w, x: (x @ w, x))), 'it makes a tuple'
    ),
    'a forgotten return': (
        lambda: fit(vfl=bottom(lambda w, x: None)), 'it makes None'
    ),
    'an embedding of whole numbers': (
        lambda: fit(vfl=bottom(lambda w, x: (x @ w).argsort())), 'makes int32'
    ),
    'a weight that is a whole number': (
        lambda: fit(vfl=bottom(
            lambda w, x: x[:, w['columns']],
            lambda key, x: dict(columns=jnp.arange(2))
        )), r"\['bottom'\]\['columns'\] is no float"
    ),
    'a weight of the active party that is a whole number': (
        lambda: fit(vfl=VFL._replace(bottoms=(
            Net(lambda key, x: jnp.ones((3, 2), int), lambda w, x: x @ w), NET
        ))), r"weight \[0\]\['bottom'\] is no float"
    ),
    'a weight that is a whole number and is not trained': (
        lambda: fit(
            vfl=bottom(
                lambda w, x: x[:, w['columns']],
                lambda key, x: dict(columns=jnp.arange(2))
            ), txs=(optax.sgd(0.1), optax.set_to_zero()),
        ), r"\[1\]\['bottom'\]\['columns'\] is no float"
    ),
    'a training pass without statistics': (
        lambda: fit(vfl=VFL._replace(bottoms=(NET, NET._replace(
            train=lambda w, key, x: NET.apply(w, x)
        )))), r'`return y, \(\)`; it returned a'
    ),
    'a top of one array': (
        lambda: fit(vfl=VFL._replace(top=NET)),
        r'tuple of embeddings, \(\(6, 2\), \(6, 2\)\).*aggregate\(top\)'
    ),
    'one network': (lambda: algorithms.vhnn(NET, NET), 'must be a list'),
    'a number of networks': (
        lambda: algorithms.vsnn(2, NET),  # pyright: ignore
        r'nets.mlp\(8\)\] \* 2; got an int alone'
    ),
    'no top': (
        lambda: algorithms.vhnn([NET] * 2, None),  # pyright: ignore
        r'top must be a Net; it is None. nets.mlp\(classes\)'
    ),
    'a module as the top': (
        lambda: algorithms.vsnn([NET], nn.Dense(2)),  # pyright: ignore
        'top must be a Net; it is a Dense.*nets.linen'
    ),
    'a network of nobody': (
        lambda: begun(VFL._replace(top=nn.Dense(2))), 'top must be a Net; '
    ),
    'a bottom of nobody': (
        lambda: begun(VFL._replace(bottoms=(NET, nn.Dense(2)))),
        'bottom of party 1 must be a Net; it is a Dense'
    ),
    'a federation without a top': (
        lambda: begun(VFL._replace(top=None)), 'top must be a Net; it is None'
    ),
    'a passive party without features': (
        lambda: begun(data=Batch((X, None), Y)), 'Passive party 1 needs'
    ),
    'a defense that is not made': (
        lambda: protocol.init(KEY, VFL, none, TXS, batch()), 'defense must be'
    ),
    'a chain of what is not made': (
        lambda: chain(none, NONE), 'chain: it takes defenses.*none.., not none'
    ),
    'a chain of a list': (lambda: chain([NONE]), r'chain\(one, other\); got'),
    # A training.
    'a loss of all samples': (
        lambda: fit(vfl=VFL._replace(loss=lambda z, y: (z * y).mean())),
        r'one number a sample, \(6,\); it is \(\)'
    ),
    'losses in a column': (
        lambda: fit(vfl=VFL._replace(loss=lambda z, y: (z * y)[:, :1])),
        r'it is \(6, 1\)'
    ),
    'losses without a slope': (
        lambda: fit(vfl=VFL._replace(
            loss=lambda z, y: (z.argmax(1) != y.argmax(1)).astype(int)
        )),
        r'it is \(6,\) int32. Return floats'
    ),
    'no adversary': (lambda: fit(adversary=None), 'an Adversary; got None'),
    'a best without a name': (
        lambda: fit(best='loss', validate=lambda key, state: ONES[0]),
        'validate must return {name'
    ),
    'negative labels': (lambda: fit(2 * Y - 1), 'row 0 the first: .*-1'),
    'labels of percent': (lambda: fit(100 * Y), 'add up to 1'),
    'half a label': (lambda: fit(Y * ONES[:, None] / 2), '6 of 6 rows'),
    'half an epoch': (lambda: fit(epochs=1.5), 'epochs must be an integer'),
    'half a sample': (lambda: fit(batch_size=2.5), 'batch_size must be'),
    'every second half': (lambda: fit(every=0.5), 'every must be'),
    'an epoch without a round': (
        lambda: train.advance(
            train.Plan(VFL, NONE, TXS, 2, 6),
            train.Run(KEY, 0, (), ()),
            rows(2, batch()), 1, 1
        ), 'batch_size must be between 1 and the 4 training samples, got 6'
    ),
    'a checkpoint without its structure': (
        lambda: go_on(dict(key=KEY, best=())), 'must be a Run.* got a dict'
    ),
    'a run with its history': (
        lambda: go_on((train.Run(KEY, (), (), ()), {})), 'Run.* got a tuple'
    ),
    'the end of a state': (
        lambda: train.finish(jax.eval_shape(begun)), 'Run.* got a State'
    ),
    'a plan after its run': (
        lambda: train.advance(PLAN.txs, PLAN, batch(), 0, 1),  # pyright: ignore
        'plan must be a Plan.* got a tuple'
    ),
    'a state without its structure': (
        lambda: go_on(train.Run(KEY, dict(parties=()), (), ())),
        'Run.state must be a State; got a dict. A checkpoint is restored as'
    ),
    'a best that was not there at the start': (
        lambda: go_on(train.Run(KEY, (), (), ()), best='auc'),
        "best='auc', and the run was started without"
    ),
    'a best that is not wanted any more': (
        lambda: go_on(train.Run(KEY, (), (), train.Best(ONES[0], 0, ()))),
        "best='', and the run was started with a best"
    ),
    'nobody who watches': (lambda: fit(watch=None), 'watch .*; got None'),
    'a score for a validation': (
        lambda: fit(validate=0.5), 'validate must be a function; got a float'
    ),
    'a best that nobody measures': (
        lambda: fit(best='-auc', validate=lambda key, state: dict(loss=ONES[0])
                    ), "best='-auc' must name .* returns loss"
    ),
    'a best of several': (
        lambda: fit(best='loss', validate=lambda key, state: dict(loss=ONES)),
        'a scalar'
    ),
    'embeddings that are no logits': (
        lambda: invert(
            Net(lambda key, x: (), lambda w, x: x), (), X, (), Dummies(X, Y)
        ), r'logits, \(6, 2\) here; they are \(6, 3\)'
    ),
    # A completion.
    'a rate below 0': (lambda: complete(learning_rate=-1.0), 'learning_rate'),
    'a rate that is none': (lambda: complete(learning_rate=np.nan), 'rate'),
    'nothing known': (lambda: complete(X[:0], Y[:0]), '0 samples and 0 rows'),
    'labels of others': (lambda: complete(X, Y[1:]), '6 samples and 5 rows'),
    'no sample a class': (lambda: sampling.per_class(KEY, Y, 0), 'each class'),
    'information of nothing': (
        lambda: club.upper_bound(lambda h, y: h.sum(1), X[:0], X[:0]), 'no samp'
    ),
    # A sweep.
    'one key': (lambda: swept(KEY), 'jax.random.split'),
    'half a seed': (lambda: swept([0.5]), 'seeds must be a whole number'),
    'a seed below 0': (lambda: swept([-1]), 'seeds must be a whole number'),
    'no seeds': (lambda: swept(-2), '0 seeds'),
    'one strength': (lambda: swept(1, 0.5), r'such as \[0.5\]'),
    'a strength that is none': (
        lambda: swept(1, [(0.5, 1), (np.nan, 0)]), 'strengths are numbers'
    ),
    'words for strengths': (
        lambda: swept(1, ['0.5']), r"rows of as many .* got \['0.5'\]"
    ),
    'a strength beyond all floats': (
        lambda: swept(1, [10**400]), 'strengths are numbers of float32'
    ),
    'rows of strengths of two lengths': (
        lambda: swept(1, [(1, 2), (3,)]), 'rows of as many numbers each'
    ),
    'strengths by name': (
        lambda: swept(1, [dict(power=1)]), 'strengths are numbers'
    ),
    'a strength that would be infinite': (
        lambda: swept(1, [1, 1e39]), 'strengths are numbers of float32'
    ),
    'a strength that would be 0': (
        lambda: swept(1, [1, 1e-39]), 'strengths are numbers of float32'
    ),
    'a number of devices': (
        lambda: swept(devices=2), r'list of JAX.*local_devices\(\).*got 2'
    ),
    'devices by name': (lambda: swept(devices='cpu'), "list of JAX.*got 'cpu'"),
    'no devices': (lambda: swept(devices=[]), r'list of JAX.*got \[\]'),
    'less than a cell': (lambda: swept(cells_per_chunk=-1), 'cells_per_chunk'),
    # Networks.
    'a class that takes other arguments': (
        lambda: nets.nnx(nnx.Linear), r'function \(shape, rngs\).* got Linear'
    ),
    'several features of a party, to one array\'s network': (
        lambda: NET.init(KEY, dict(a=X, b=X)), 'one array, .* got a dict'
    ),
    'a side that is an array': (
        lambda: fedpass.fedpass(side=np.array(['both', 'active'])),
        "side must be one of 'both'",
    ),
}


@pytest.mark.parametrize('misuse', MISUSES)
def test_misuse_is_refused(misuse):
  call, message = MISUSES[misuse]
  with pytest.raises(ValueError, match=message):
    call()


def deviating(parties=(1,), **hooks):
  """A training and an inference with such an adversary."""
  liar = Adversary(parties, **hooks)
  plan = train.Plan(VFL, NONE, TXS, 1, 2, adversary=liar)
  yield lambda: train.fit(KEY, VFL, NONE, TXS, batch(), epochs=1, batch_size=2,
                          adversary=liar)
  yield lambda: stream.fit(KEY, plan, batch(), 2)
  yield lambda: play_lying(liar)
  yield lambda: protocol.predict(
      KEY, VFL, NONE, begun(), batch().features, adversary=liar
  )


def play_lying(liar):
  protocol.play_round(KEY, VFL, NONE, TXS, begun(), batch(), liar)


@pytest.mark.parametrize('parties', [(1, 1), (1.0,), 1, None, '1'])
def test_parties_that_deviate_are_each_there_once(parties):
  for call in deviating(parties):
    with pytest.raises(ValueError, match='parties must be a tuple .* got'):
      call()


@pytest.mark.parametrize('hook', ['rows', 'features', 'send', 'update'])
def test_hooks_of_nobody_are_not_ignored(hook):
  """Streaming took the samples that were drawn, whatever `rows` said."""
  for call in deviating((), **{hook: lambda *given: given[-1]}):
    with pytest.raises(ValueError, match='needs the parties that deviate'):
      call()
  for call in deviating((), **{hook: copied(getattr(HONEST, hook))}):
    call()


def copied(function):
  """As another process gets it."""
  return types.FunctionType(function.__code__, {})


@pytest.mark.parametrize('hooks, said', [
    (dict(update=lambda state, *_: (state, X)), 'as init made it'),
    (dict(init=lambda *_: jnp.zeros(3), update=lambda *_: jnp.zeros(4)),
     'in the shapes'),
    (dict(send=lambda state, key, own: tuple(u > 0 for u in own)),
     'send must return floats; it returned bool'),
    (dict(receive=lambda state, key, own: tuple(d.astype(int) for d in own)),
     'receive must return floats; it returned int32'),
    (dict(send=lambda state, key, own: tuple(u.astype('f2') for u in own)),
     'send must .* that it gets, float32; it returned float16'),
])
def test_what_an_adversary_returns_is_of_the_kind_that_it_got(hooks, said):
  with pytest.raises(ValueError, match=f"dversary's .*{said}"):
    next(deviating(**hooks))()


def test_unlabeled_samples_and_distributions_are_labels():
  """Padding, smoothed labels, and labels that a half-float has rounded."""
  third = np.full((6, 2), 0.5, np.float32)
  for labels in (Y * np.arange(6)[:, None].clip(0, 1), third, 0.997 * Y):
    fit(labels)


def test_seeds_may_be_listed_and_keys_too():
  draw = lambda key, s: jax.random.uniform(key) + s
  wanted = np.asarray(sweep.sweep(draw, 4, [0.0])[0])
  for seeds in ([1, 3], np.array([1, 3]), [jax.random.key(i) for i in (1, 3)]):
    found = sweep.sweep(draw, seeds, [0.0])[0]
    np.testing.assert_array_equal(found, wanted[[1, 3]])


def test_the_active_party_may_hand_whole_numbers_on():
  """As to a table in the top, of which a passive party could learn nothing."""
  columns = Net(lambda key, x: (), lambda w, x: (x[:, 0] > 0).astype(int))
  top = Net(
      lambda key, us: jnp.ones((2, 2)),
      lambda w, us: w[us[0]] + us[1],
  )
  fit(vfl=VFL._replace(bottoms=(columns, NET), top=top))


def test_a_round_without_a_batch_is_not_checked_for_its_numbers():
  """Those are looked at once, before a training; a round sees shapes."""
  state = jax.eval_shape(begun)
  federation.check_round(KEY, VFL, none(), TXS, state, batch(2 * Y))


def test_a_round_is_played_with_what_a_factory_makes():
  with pytest.raises(ValueError, match='none\\(\\), not none'):
    protocol.play_round(KEY, VFL, none, TXS, begun(), batch(Y))
