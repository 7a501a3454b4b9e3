"""ACML on real ciphertexts against the library's plain training."""
import jax

from tests.he import plain
from vfljax.he import acml, local, party

D, H = 4, 3


def test_two_parties_draw_two_noises(keys):
  """A seed, even a default one, would tell the active party what W is."""
  made = [acml.Passive(
      local.Bottom(plain.TANH, (), plain.RATE), (D, H), keys[0]
  ) for _ in range(2)]
  one, other = (party._drawn() for party in made)
  assert (one != other).all()


def test_two_batches_are_plain_training(keys):
  with jax.enable_x64(True):
    bottom = plain.chained(plain.linear(plain.weights(0, 6, D)), plain.TANH)
    layer = plain.linear(plain.weights(1, D, H))
    own = plain.linear(plain.weights(2, 5, H))
    top = plain.chained(
        plain.TANH, plain.linear(plain.weights(3, H, plain.CLASSES))
    )
    samples = [plain.data(seed=i) for i in range(2)]
    played = plain.play(
        [own, plain.chained(bottom, layer)], top,
        [plain.batch(*one) for one in samples],
    )
    passive = acml.Passive(
        local.Bottom(bottom, plain.start(bottom), plain.RATE), (D, H), keys[0]
    )
    params = dict(bottom=plain.start(own), top=plain.start(top))
    active = acml.Active(
        local.Top(plain.head(own, top), params, plain.RATE),
        plain.start(layer)['w'], plain.RATE, passive.public,
    )
    line = acml.channel(passive.public)
    for (x, x0, labels), round_ in zip(samples, played.rounds, strict=True):
      loss = acml.step(passive, active, line, x, (x0, labels))
      plain.near(loss, round_.loss)
    ours, theirs = (p.params for p in played.states[-1].parties)
    plain.near(passive._bottom.params, theirs['bottom'][0])
    plain.near(passive._noise + active._weights, theirs['bottom'][1]['w'])
    plain.near(active._top.params, dict(bottom=ours['bottom'], top=ours['top']))
  assert abs(passive._noise).min() > 1e-3  # V alone is not the layer.
  found, once = party.cost((passive, active), line), acml.cost(4, D, H)
  assert found.count == once.count.plus(once.count)
  assert found.traffic == (2 * once.traffic.bytes, 12)
