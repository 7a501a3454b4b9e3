"""What is registered from outside of the package is like ours: it runs, it is
listed and reported, refused where it must be, and held to the contracts."""
import inspect
import json

import jax
import numpy as np
import pytest

from tests import contracts, toy_data, toys
from tests.attacks.test_contract import (
    test_attacks_are_pure_functions_of_key_and_view as keeps_its_contract,
)
from tests.defenses import test_contract as contract
from vfljax import algorithms, attacks, data, defenses, nets
from vfljax.defenses import Method
from vfljax.runner import listing
from vfljax.runner.main import main

CONFIG = '''
from vfljax.runner.config import *

def get_config():
  return Config(
      experiment='toys', seeds=2, alone=False,
      listed=(Entry('none'), default_entry('toy_rounding')),
      listed_attacks=(
          'toy_scoring', 'toy_scoring:wide', 'toy_lot', 'toy_lot:b',
          'toy_same_lot', 'toy_same_lot:b',
      ),
      variants=(
          Variant('toy_scoring:wide', dict(columns=(0, 1))),
          Variant('toy_lot:b', dict(name=1)),
          Variant('toy_same_lot:b', dict(name=1)),
      ),
      data=DataConfig('toy', split='even', test=0.25),
      model=ModelConfig(name='toy_net', width=4, top=(4,)),
      train=TrainConfig(epochs=2, batch_size=16, optimizer='sgd'),
      attack=AttackConfig(own=dict(toy_scoring=dict(power=3.0))),
  )
'''


@pytest.fixture(autouse=True)
def registered(monkeypatch):
  """One line a toy, in its family's registry."""
  for toy in (toys.toy_scoring, toys.toy_lot, toys.toy_same_lot):
    monkeypatch.setitem(attacks.REGISTRY, toy.factory.__name__, toy)
  monkeypatch.setitem(
      defenses.REGISTRY, 'toy_rounding', Method(toys.toy_rounding, (1e-3, 0.1))
  )
  monkeypatch.setitem(nets.REGISTRY, 'toy_net', nets.Network(toys.toy_net))
  monkeypatch.setitem(
      data.REGISTRY, 'toy', toy_data.SOURCE._replace(facts=None)
  )


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
  """(flags) -> (exit code, standard error) of the command line."""
  rng = np.random.default_rng(0)
  x, y = rng.normal(size=(80, 2)), np.arange(80) % 2
  np.savetxt(tmp_path / 'toy.txt', np.column_stack([x + y[:, None], y]))
  (tmp_path / 'my.py').write_text(CONFIG)
  monkeypatch.chdir(tmp_path)

  def started(*flags):
    code = main([
        'vfljax', '--config=my.py', f'--config.data.path={tmp_path}/toy.txt',
        '--workdir=out', '--devices=2', '--cache=', *flags,
    ])
    return code, capsys.readouterr().err

  return started


def test_they_run_from_the_command_line_to_the_report(run, tmp_path):
  code, said = run('--config.attack.toy_scoring.power=2')
  assert code == 0, said
  rows = [
      json.loads(line)
      for line in (tmp_path / 'out/results.jsonl').read_text().splitlines()
  ]
  assert {(r['defense'], r['strength']) for r in rows} == {
      ('none', None), ('toy_rounding', 0.001), ('toy_rounding', 0.1)
  }
  scored = [r for r in rows if r['attack'] == 'toy_scoring']
  assert {r['metric'] for r in scored} >= {'leak_auc', 'leak_auc_max'}
  assert all(np.isfinite(r['value']) and r['split'] == 'train' for r in scored)
  assert any(r['attack'] == 'toy_scoring:wide' for r in rows)
  lots = {
      name: [r['value'] for r in rows if r['attack'] == name]
      for name in ('toy_lot', 'toy_lot:b', 'toy_same_lot', 'toy_same_lot:b')
  }
  assert lots['toy_same_lot'] == lots['toy_same_lot:b']
  assert lots['toy_lot'] != lots['toy_lot:b']
  page = (tmp_path / 'out/report.html').read_text()
  assert 'toy scoring' in page and 'toy rounding' in page
  assert 'What crosses between the parties' in page
  assert '[16, 4] float32' in page and 'no audit' not in page
  config = json.loads((tmp_path / 'out/config.json').read_text())
  assert config['attack']['own'] == dict(toy_scoring=dict(power=2))


@pytest.mark.parametrize('flags, message', [
    (['--config.attack.toy_scoring.powr=2'], 'Did you mean power?'),
    (['--config.attack.toy_scoring.power=much'], 'must be a finite number'),
    (['--config.attack.toy_scoring.power=0'], 'power must be above 0'),
    (['--config.attack.toy_score.power=2'], 'Did you mean toy_scoring?'),
    (['--config.attacks=toy_scoring', '--config.data.name=wine',
      '--config.data.path='], 'toy_scoring ranks samples of two classes'),
    (['--config.model.options=hiden=3'], "no option 'hiden'"),
    (['--config.data.options=row=3'], "no option 'row'"),
])
def test_they_are_refused(run, tmp_path, flags, message):
  code, said = run(*flags)
  assert code == 2 and message in said and len(said.splitlines()) <= 2
  assert not (tmp_path / 'out').exists()


def test_they_are_listed():
  text = listing.text('all')
  assert 'toy_scoring.power=1.0' in text and 'of toy_scoring' in text
  for name in ('toy_scoring', 'toy_rounding(step)', 'model.name=toy_net'):
    assert name in text


def test_they_keep_the_contracts():
  keeps_its_contract('toy_scoring')
  name = 'toy_rounding'
  compiled = contract.compile_round(name)
  defense, data_ = contracts.make(name), contracts.batch()
  begun = contracts.start(jax.random.key(0), defense, data_)
  played = contract.play_once(name, compiled, begun)
  kept = 0
  for test in vars(contract).values():
    wanted = getattr(test, '__name__', '').startswith('test_')
    if wanted and [*inspect.signature(test).parameters] == ['played']:
      test(played)
      kept += 1
  assert kept >= 9  # Else this looks for them under another name.
  contract.test_seeds_and_strengths_vmap(name, compiled, begun)
  contract.test_a_strength_may_be_a_number_or_traced(name)
  contract.test_works_inside_a_64_bit_program(name)


@pytest.mark.parametrize('needs_all', [False, True])
def test_an_aggregation_from_outside_says_whether_one_party_may_be_alone(
    run, tmp_path, monkeypatch, needs_all
):
  """Zeros for the others would leave nothing of a product."""
  monkeypatch.setitem(
      algorithms.AGGREGATIONS, 'gated', lambda us: us[0] * us[1]
  )
  if needs_all:
    monkeypatch.setattr(
        algorithms, 'NEEDS_ALL', algorithms.NEEDS_ALL | {'gated'}
    )
  code, said = run(
      '--config.model.aggregation=gated', '--config.alone=True',
      '--config.defenses=none', '--config.attacks=norm_scoring',
  )
  assert code == 0, said
  text = (tmp_path / 'out/results.jsonl').read_text()
  assert ('"alone_' in text) == (not needs_all)
