"""Parties pass what is declared, and nothing of theirs can be had otherwise."""
import ast
import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.bench import he_federations as runs
from vfljax import he
from vfljax.he import acml, blindfl, ckks, hardy, party, sfa, spnn
from vfljax.he.arrays import Encrypted, Masked
from vfljax.he.party import FLOATS, MASKED, Channel, Declared, under

PROTOCOLS = (acml, blindfl, hardy, sfa, spnn)


def line_of(keys, kind):
  return Channel(
      [Declared(1, 'a', 'b', 'm', kind)], {'a': keys[0].public}
  )


def test_what_is_not_declared_does_not_get_through(keys):
  sealed = he.Arithmetic().encrypt(keys[0].public, np.ones(2))
  other = he.Arithmetic().encrypt(keys[1].public, np.ones(2))
  masked = Masked(np.array([1], object), 0, 8)
  everything = (sealed, other, masked, np.ones(2), keys[0], np.ones(2, object),
                {'key': keys[0]}, 3, 'text', keys[0].public)
  passes = {under('a'): [0], FLOATS: [3], MASKED: [2], under('b'): []}
  for kind, good in passes.items():
    line = line_of(keys, kind)
    for i, payload in enumerate(everything):
      if i in good:
        line.carry('m', payload)
      else:
        with pytest.raises(ValueError, match='declared|belong'):
          line.carry('m', payload)
    with pytest.raises(ValueError, match='no message of this protocol'):
      line.carry('n', sealed)
    assert len(line.said) == len(good)


def test_what_arrives_is_checked_and_a_copy(keys):
  line = line_of(keys, under('a'))
  sealed = he.Arithmetic().encrypt(keys[0].public, np.ones(2))
  got = line.carry('m', sealed)
  got.values[0] = 1
  assert sealed.values[0] != 1
  sealed.values[0] = -sealed.values[0]
  with pytest.raises(ValueError, match='positive'):
    line.carry('m', sealed)


@pytest.mark.parametrize('kind', [FLOATS, MASKED])
def test_nobody_writes_into_what_another_has(keys, kind):
  """Parties share a process, not their arrays: neither way."""
  own = np.ones(2) if kind == FLOATS else np.array([1, 1], object)
  line = line_of(keys, kind)
  got = line.carry('m', own if kind == FLOATS else Masked(own, 0, 8))
  theirs = got if kind == FLOATS else got.values
  own[0] = theirs[1] = 5
  assert (own[1], theirs[0]) == (1, 1)


def test_bytes_and_flights(keys):
  line = Channel([
      Declared(1, 'a', 'b', 'one', FLOATS),
      Declared(2, 'b', 'a', 'two', MASKED),
      Declared(2, 'b', 'a', 'three', under('a')),
  ], {'a': keys[0].public})
  line.carry('one', np.ones((2, 3), np.float32))
  line.carry('two', Masked(np.array([5, 6], object), 0, 8))
  line.carry('three', he.Arithmetic().encrypt(keys[0].public, np.ones(3)))
  assert line.traffic == (6 * 8 + 2 * 2 + 3 * 256, 2)


@pytest.mark.parametrize('module', PROTOCOLS)
def test_flights_are_numbered_in_order(module):
  sent = module.messages(2) if module is sfa else module.MESSAGES
  flights = [message.flight for message in sent]
  assert flights == sorted(flights)
  assert {*flights} == {*range(1, flights[-1] + 1)}


def test_another_context_is_refused():
  one, other = ckks.PrivateContext(), ckks.PrivateContext()
  count = he.Arithmetic()
  sealed = one.public.seal(count, np.ones(3))
  assert (count.count.encryptions, count.count.additions) == (1, 0)
  with pytest.raises(ValueError, match='another key'):
    other.opened(count, sealed, (3,))
  line = Channel([Declared(1, 'a', 'b', 'm', under('a'))], {'a': other.public})
  with pytest.raises(ValueError, match='another key'):
    line.carry('m', sealed)
  with pytest.raises(ValueError, match='cannot be encoded'):
    one.public.seal(count, np.array([1.0, np.nan]))
  with pytest.raises(ValueError, match='cannot be encoded'):
    one.public.seal(count, np.array([2.0 ** 18]))
  with pytest.raises(TypeError, match='does not leave'):
    one.__reduce__()


@pytest.mark.parametrize('module', [*PROTOCOLS, party])
def test_nobody_reaches_into_a_party(module):
  """What begins with _ is used on self alone, in a party's own methods.

  The exceptions are NumPy's and NamedTuple's own names.
  """
  tree = ast.parse(Path(inspect.getfile(module)).read_text())
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute) and node.attr.startswith('_'):
      own = isinstance(node.value, ast.Name) and node.value.id == 'self'
      assert own or node.attr in ('_replace', '__init__', '__name__'), (
          f'line {node.lineno}: {ast.unparse(node)}'
      )
    if isinstance(node, ast.Call):
      assert getattr(node.func, 'id', '') not in ('getattr', 'vars')


def origins(function):
  """{local name: who made it}: 'carry', a party's name, or 'given'."""
  made = {arg.arg: 'given' for arg in function.args.args}
  for node in ast.walk(function):
    if isinstance(node, ast.Assign):
      calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
      methods = [c.func for c in calls if isinstance(c.func, ast.Attribute)]
      carried = any(m.attr == 'carry' for m in methods)
      by = methods[0].value.id if methods and not carried else 'given'
      for name in ast.walk(node.targets[0]):
        if isinstance(name, ast.Name):
          made[name.id] = 'carry' if carried else by
  return made


@pytest.mark.parametrize('module', PROTOCOLS)
def test_what_a_party_gets_was_carried(module):
  """Arguments of a party's methods are carried, given, or made by itself."""
  function = ast.parse(inspect.getsource(module.step)).body[0]
  made, looked = origins(function), 0
  for node in ast.walk(function):
    method = getattr(node, 'func', None)
    if not isinstance(method, ast.Attribute) or method.attr == 'carry':
      continue
    owner = ast.unparse(method.value)
    for argument in node.args:
      if isinstance(argument, ast.Call):
        called = argument.func
        assert called.attr == 'carry', ast.unparse(argument)
      elif isinstance(argument, ast.Name):
        by = made.get(argument.id, 'given')  # A loop's own names are given.
        assert by in ('carry', 'given', owner), ast.unparse(node)
      looked += 1
  assert looked > 3


def held(value, seen=None):
  """All objects that can be reached from one, by attributes and items."""
  seen = {} if seen is None else seen
  if id(value) in seen or isinstance(value, (int, float, str, bytes)):
    return seen
  seen[id(value)] = value
  inside = []
  if isinstance(value, dict):
    inside = [*value.values()]
  elif isinstance(value, (list, tuple)):
    inside = [*value]
  elif isinstance(value, np.ndarray) and value.dtype == object:
    inside = [*value.flat]
  inside += vars(value).values() if hasattr(value, '__dict__') else []
  for one in inside:
    held(one, seen)
  return seen


@pytest.mark.parametrize('name', runs.ALL)
def test_messages_hold_no_private_key_and_no_masks_twice(keys, name):
  with jax.enable_x64(True):
    played = runs.ALL[name](keys, rows=2, inputs=6, hidden=2)
    first = [s.payload for s in played.line.said]
    for payload in first:
      kinds = {type(one).__name__ for one in held(payload).values()}
      assert not kinds & {'PrivateKey', 'PaillierPrivateKey', 'Bottom', 'Top',
                          'PrivateContext', 'Arithmetic'}
    played.again()
  # The same batch again: no ciphertext and no masked number comes twice.
  numbers = []
  for said in played.line.said:
    if isinstance(said.payload, Encrypted | Masked) and not (
        name == 'hardy' and isinstance(said.payload, Masked)
    ):
      numbers += [int(v) for v in said.payload.values.flat]
  assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow) if name == 'acml' else name
    for name in runs.ALL
])
def test_a_real_mini_batch_is_plain_training(keys, name):
  """B = 3, 14 inputs, 5 hidden."""
  with jax.enable_x64(True):
    played = runs.ALL[name](keys, rows=3, inputs=14, hidden=5)
    assert played.error < 1e-6
  found = played.found()
  if name == 'spnn ckks':  # Its ciphertexts are of no fixed length.
    found = found._replace(traffic=found.traffic._replace(bytes=0))
  assert found == played.cost


def test_half_precision_is_floats():
  """A network's output in bfloat16 was said to be no floats."""
  line = Channel([Declared(1, 'a', 'b', 'm', FLOATS)], {})
  for dtype in (jnp.bfloat16, np.float16, np.float64):
    got = line.carry('m', np.asarray([1.5, -2], dtype))
    assert got.dtype == np.float64 and got.tolist() == [1.5, -2]
  assert line.traffic.bytes == 3 * 16
  for wrong in (np.arange(2), np.ones(2, complex), np.ones(2, bool)):
    with pytest.raises(ValueError, match="'m' is declared to be 'floats'"):
      line.carry('m', wrong)
