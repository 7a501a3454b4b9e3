"""The record of what accelerators' compilers make of our programs."""
import argparse
import json
import sys

import pytest

from experiments.bench import accel, accel_compile, accel_programs
from vfljax import defenses, nets
from vfljax.mpc.schemes import SCHEMES

BEFORE = dict(kernels=40, written=1000, host_calls=0)


@pytest.mark.parametrize('now, said', [
    (dict(kernels=48, written=1200), ''),
    (dict(kernels=49), '49 kernels instead of 40'),
    (dict(written=1201), '1201 written instead of 1000'),
    (dict(host_calls=2), '2 calls of the host'),
])
def test_what_is_worse_than_the_record(now, said):
  assert accel.worse(BEFORE | now, BEFORE) == said


def test_what_does_not_compile_is_told_unless_it_never_did():
  assert accel.worse(dict(error='UNIMPLEMENTED'), BEFORE) == 'UNIMPLEMENTED'
  assert not accel.worse(dict(error='x'), dict(error='UNIMPLEMENTED'))


@pytest.mark.parametrize('flag', [
    '--groups=defenses', '--machines=a100', '--names=none,nono',
])
def test_what_there_is_not_is_told(flag, monkeypatch, capsys):
  monkeypatch.setattr(sys, 'argv', ['accel', flag])
  with pytest.raises(SystemExit):
    accel.main()
  said = capsys.readouterr().err
  what, _, given = flag.partition('=')
  assert f'{what}={given.removeprefix("none,")}: there are ' in said


def test_everything_that_is_registered_is_compiled():
  args = argparse.Namespace(machines='', groups='', names='', seeds='')
  asked = list(accel.wanted(args))
  assert len(asked) == len(set(asked))
  assert {m for m, *_ in asked} == {*accel_compile.MACHINES}
  assert {n for _, g, n, _ in asked if g == 'network'} == {*nets.REGISTRY}
  for name in ('none', 'marvell', 'gafm'):
    counts = {s for m, _, n, s in asked if n == name and m == 'v5e'}
    assert counts == {1, 16, 64, 256}
  # 'patches' multiplies matrices as 'naive' does.
  rings = {n for _, g, n, _ in asked if g == 'ring'}
  assert rings == {*SCHEMES} - {'patches'}
  args.seeds, args.groups = '1', 'defense'
  assert {s for *_, s in accel.wanted(args)} == {1}


def test_programs_can_be_traced():
  """None of a group compiled: `make accel` does that."""
  import jax
  for group, name in [('ring', 'int8_rows'), ('network', 'lenet5')]:
    made = accel_programs.MAKERS[group](name, 2)
    with jax.enable_x64(made.wide):
      found = jax.tree.leaves(jax.eval_shape(made.fn, *made.arguments))
    assert found and all(x.shape[0] == 2 for x in found)  # A row a seed.


def test_a_record_goes_on(monkeypatch, tmp_path, capsys):
  """What is there is not compiled again but to be checked."""
  out, calls = tmp_path / 'accel.json', []

  def measured(*one):
    calls.append(one)
    return dict(BEFORE, kernels=40 if len(calls) < 3 else 60)

  monkeypatch.setattr(accel, 'measured', measured)
  monkeypatch.setattr(accel_compile, 'there_is', lambda m: m == 'h100')
  flags = [f'--out={out}', '--groups=ring', '--names=outer', '--seeds=1,64']
  monkeypatch.setattr(sys, 'argv', ['accel', *flags])
  assert accel.main() == accel.main() == 0
  assert calls == [('h100', 'ring', 'outer', n) for n in (64, 1)]
  found = json.loads(out.read_text())
  assert found['what'].startswith('compiled, not run')
  assert {*found['programs']} == {'h100/ring/outer/64', 'h100/ring/outer/1'}
  monkeypatch.setattr(sys, 'argv', ['accel', *flags, '--check'])
  assert accel.main() == 1 and len(calls) == 4
  assert '60 kernels instead of 40' in capsys.readouterr().out


def test_the_record_says_what_it_is():
  found = json.loads(accel.RECORD.read_text())
  assert found['what'].startswith('compiled, not run')
  assert not [k for k, v in found['programs'].items() if v.get('host_calls')]


def test_no_defense_takes_more_than_twice_an_undefended_rounds_kernels():
  """As recorded of an H100, 1 to 256 seeds; undefended 30 (issue 16)."""
  programs = json.loads(accel.RECORD.read_text())['programs']
  found = {
      tuple(key.split('/')[2:]): own['kernels'] for key, own in programs.items()
      if key.startswith('h100/defense/')
  }
  for seeds in ('1', '64'):
    assert {name for name, n in found if n == seeds} == set(defenses.REGISTRY)
  undefended = [k for (name, _), k in found.items() if name == 'none']
  assert len(undefended) == 4 and max(undefended) <= 30
  assert max(found.values()) <= 60
