"""What is registered from outside of the package is like ours: it runs, it is
listed and reported, refused where it must be, and held to the contracts."""
import functools
import inspect
import json
import sys

import jax
import numpy as np
import pytest

from tests import contracts, toy_data, toys
from tests.attacks.test_contract import (
    test_attacks_are_pure_functions_of_key_and_view as keeps_its_contract,
)
from tests.defenses import test_contract as contract
from vfljax import algorithms, attack, attacks, data, defenses, nets
from vfljax.defenses import Method, iso
from vfljax.report import knowing, ranks, reading
from vfljax.runner.cli import listing
from vfljax.runner.config import outside
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
MINE = '''
from vfljax import defenses
from vfljax.defense import Defense, Method, each
from vfljax.runner.config import *

def doubled() -> Defense:
  return Defense(gradient=each(lambda key, d, labels: d * 2))

defenses.REGISTRY['doubled'] = Method(doubled)

def get_config():
  return Config(
      experiment='mine', seeds=1, alone=False, defenses='doubled',
      attacks='norm_scoring', data=DataConfig('breast_cancer'),
      model=ModelConfig('vlr'),
      train=TrainConfig(epochs=1, batch_size=64, optimizer='sgd'),
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


@pytest.mark.parametrize('method', [
    Method(functools.wraps(iso.iso)(lambda ratio: iso.iso(2 * ratio))),
    Method(functools.update_wrapper(functools.partial(iso.iso, 2.0), iso.iso)),
    attack.recipe(stage=attack.TRAINED, measure=lambda guess, truth: {})(
        attack.recipe_of(attacks.REGISTRY['norm_scoring']).factory
    ),
    attack.recipe(needs=(lambda scene: '',))(
        attack.recipe_of(attacks.REGISTRY['norm_scoring']).factory
    ),
])
def test_what_is_made_of_ours_is_not_ours(method):
  """Programs of what wraps ours were kept, and read after it was edited."""
  assert not outside.is_ours(method)


def test_all_of_ours_is_ours():
  for family in defenses, attacks, nets, data:
    for name, method in family.REGISTRY.items():
      ours = 'toy' not in name
      assert outside.is_ours(method) == ours, name


@pytest.mark.slow
def test_they_run_from_the_command_line_to_the_report(
    run, tmp_path, monkeypatch
):
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
  assert [*config['sources']] == ['toys.py']
  text = (tmp_path / 'out/summary.md').read_text()
  assert 'NOT COUNTED' not in text and 'against attacks on trained' in text
  # Who has registered none of them reads the same.
  before, = reading.read(tmp_path / 'out')
  for toy in ('toy_scoring', 'toy_lot', 'toy_same_lot'):
    monkeypatch.delitem(attacks.REGISTRY, toy)
  results, = reading.read(tmp_path / 'out')
  assert reading.leak_metric(results, 'toy_lot:b') == 'auc_last'
  assert ranks.rank(results) == ranks.rank(before)
  assert knowing.uncounted(results) == []


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


@pytest.mark.slow
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
  contract.test_a_strength_may_be_a_number_or_traced(name)


MISTAKES = '''
import jax
import jax.numpy as jnp
from typing import NamedTuple

from vfljax import attacks, data, defenses, nets
from vfljax.attack import TRAINED, Attack, Wants, recipe
from vfljax.data.table import Table
from vfljax.defense import Defense, Method, each, slots
from vfljax.nets import mlp
from vfljax.runner.config import *
from vfljax.views import CutGradients, TrainedBottom, TrainedTop

class Options(NamedTuple):
  power: float = 1.0

{code}

def get_config():
  return Config(
      experiment='mine', seeds=1, alone=False, data=DataConfig({data!r}),
      model=ModelConfig({model}),
      train=TrainConfig(epochs=1, batch_size=64), {methods},
  )
'''
ATTACK = 'attacks.REGISTRY["bad"] = bad'
LABELS = (
    'Attack(TrainedBottom, lambda key, v: jnp.zeros((1, len(v.features), 2)))'
)
DEFENSE = 'defenses.REGISTRY["bad"] = Method(bad, (.01, .1))'
NET = 'nets.REGISTRY["bad"] = nets.Network(bad)'


def attack(code, **about):
  said = ', '.join(f'{k}={v}' for k, v in about.items())
  return f"""
@recipe({said})
def bad():
  return {code}
{ATTACK}
""", 'bad.py', dict(methods="defenses='none', attacks='bad'")


def defense(code):
  return f"""
def bad(s):
  {code}
{DEFENSE}
""", 'bad.py', dict(methods="defenses='bad', attacks='norm_scoring'")


def net(code, width=8, default='=4'):
  return f"""
def bad(width{default}):
  return {code}
{NET}
""", 'bad.py', dict(model=f"name='bad', width={width}, top=()")


@pytest.mark.parametrize('made, message', [
    (attack('Attack(CutGradients, lambda key, v: v.received.sum())'),
     'bad must return scores'),
    (attack('Attack(CutGradients, lambda key, v: v.received @ v.sent)'),
     'line 20: TypeError: dot_general'),
    (attack('Attack(TrainedBottom, lambda key, v: 0)'),
     'a view of the trained federation: recipe(stage=TRAINED)'),
    (attack('Attack(Options, lambda key, v: 0)'), 'Options is none of its v'),
    (attack('None'), 'bad must make an Attack(view, run); its factory ret'),
    (attack('Attack(CutGradients, lambda key, v: 0)', options='Options'),
     "unexpected keyword argument 'power'"),
    (attack('Attack(TrainedBottom, lambda key, v: jnp.zeros((3, 2)))',
            stage='TRAINED'), 'bad: A guess at labels after training must be'),
    (attack('Attack(TrainedBottom, lambda key, v: '
            'jnp.zeros((1, len(v.features), 2)))', stage='TRAINED',
            measure='lambda guess, truth: dict(mine=guess.sum())'),
     'bad measures mine, and its score looks at auc_last, accuracy_last: '),
    (attack(LABELS, stage='TRAINED', measure='lambda guess, y: [y.sum()]'),
     'bad: measure must return numbers by their names, as dict(mine=...); it'),
    (attack(LABELS, stage='TRAINED', measure='lambda guess, y: dict(mine=y)'),
     "'mine' is of the shape (171, 2)"),
    (attack('Attack(CutGradients, lambda key, v: v.valid, '
            'lambda v: dict(accuracy=1.))'),
     "none of accuracy, leak_auc, leak_auc_raw; got 'accuracy', a float"),
    (defense('return Defense(facts=lambda state: dict(mine=None))'),
     'bad: facts are numbers by names of their own, as own_number, and none'),
    (defense('return Defense(facts=lambda state: {"mine": "much"})'),
     "got 'mine', a str"),
    (net('mlp(width)._replace(init=lambda key, x: jnp.ones((15, 8), int), '
         'apply=lambda w, x: x @ (1.0 * w), train=None)'),
     'bad: The weight array is no float, and has no gradient'),
    (attack('Attack(CutGradients, lambda key, v: v.valid)',
            baselines='lambda scene: ("nobody",)'),
     "has the baseline 'nobody', which is not registered"),
    (defense('return None'), 'bad: its factory must return a Defense; it ret'),
    (defense('return Defense() if s > .05 else Defense()'),
     'jnp.where(s > 0, ...) in place of `if s > 0:`'),
    (defense('return Defense(gradient=lambda state, key, cut, y: cut)'),
     'bad: gradient must return a tuple of ((64, 4) float32,), one a passive '
     'party, and the state; it returned ((64, 4) float32,).'),
    (defense('return Defense(send=lambda passive, key, u: (u, u.sum(-1)))'),
     'bad: the penalty of send must be one number'),
    (defense('return Defense(init=lambda key, spec: slots(spec, passive=()))'),
     'bad: init has made weights for 0 passive parties'),
    (defense('return Defense(gradient=each(lambda key, d, y: d @ d))'),
     'TypeError: dot_general'),
    (defense('raise ValueError("s must be odd")'), 'line 19: s must be odd'),
    (defense('raise SystemExit(0)'),
     'line 19: SystemExit: 0\nA method must not end the program.'),
    (net('mlp(1 // 0)'), 'mine.py, line 19: ZeroDivisionError: integer div'),
    (net('mlp(width)', 0, ''), 'Network bad has no default width: give one'),
    (net('mlp(5)'), 'the width that model.width asks for, 8; it makes (5,)'),
    (net('dict(width=width)'), 'bad must return a Net; it returned a dict. `n'),
    (net('mlp(width)._replace(apply=lambda p, x: x.sum(-1), train=None)'),
     'bad must make an embedding (samples, width, ...) of each sample; of'),
])
def test_mistakes_take_two_lines(made, message, edited, tmp_path, capsys):
  code, file, asked = made
  (tmp_path / 'mine.py').write_text(MISTAKES.format(code=code, **dict(
      data='breast_cancer', model='bottom=(4,), top=()',
      methods="defenses='none', attacks='norm_scoring'",
  ) | asked))
  assert mine(tmp_path) == 2
  said = capsys.readouterr().err
  assert message in said and len(said.splitlines()) <= 2
  assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('code, message', [
    ('defenses.REGISTRY["bad"] = lambda s: Defense()',
     "defenses.REGISTRY['bad'] = Method(factory, (0.1, 1))"),
    ('nets.REGISTRY["bad"] = mlp', 'nets.Network(factory)'),
    ('data.REGISTRY["bad"] = lambda path: 0', 'data.Source(load'),
    ('attacks.REGISTRY["bad"] = 3', 'cannot run: make it'),
    ('Method(lambda s: Defense(), 0.5)', 'strengths must be a tuple of numb'),
    ('Method(lambda how="few": Defense(), light=("all",))',
     "light=('all',) names words of `words` that leave out work; all is none"),
    ('Method(lambda s: Defense(), (jnp.nan,))', 'a tuple of numbers, as in'),
    ('defenses.REGISTRY["none"] = Method(lambda: Defense())',
     "defenses.REGISTRY['none'] is the undefended federation"),
    ('class Strict(NamedTuple):\n  power: float\nrecipe(options=Strict)(mlp)',
     'options must be a NamedTuple class with a default for every field'),
    ('recipe(options=dict(power=1))(mlp)', "every field; got {'power': 1}"),
    ('Method(3)', 'must have a function that returns a Defense; got 3'),
    ('nets.Network(lambda width=3, *, hidden: 0)',
     'Network: the argument hidden of <lambda> needs a default'),
    ('nets.Network("mlp")', "must have a function (width, **options) -> Net"),
])
def test_what_is_registered_must_be_of_its_kind(
    code, message, edited, tmp_path, capsys
):
  (tmp_path / 'mine.py').write_text(MISTAKES.format(
      code=code, data='breast_cancer', model='bottom=(4,), top=()',
      methods="attacks='norm_scoring'",
  ))
  assert mine(tmp_path) == 2
  said = capsys.readouterr().err
  assert message in said and len(said.splitlines()) <= 2


def mine(place, *flags):
  """Runs a config file with a defense in another file of this name."""
  return main([
      'vfljax', f'--config={place}/mine.py', '--workdir=out', '--devices=2',
      '--cache=', *flags,
  ])


def forget(place):
  """What was imported from there is imported anew, as in a new process."""
  for name, module in [*sys.modules.items()]:
    if (getattr(module, '__file__', None) or '').startswith(str(place)):
      del sys.modules[name]


@pytest.fixture
def edited(tmp_path, monkeypatch):
  """A config file whose defense stands beside it; (change) of its code."""
  (tmp_path / 'mine.py').write_text(MINE)
  monkeypatch.chdir(tmp_path)
  kept = [(m.REGISTRY, dict(m.REGISTRY)) for m in (
      attacks, data, defenses, nets
  )]
  def change(old, new):
    file = tmp_path / 'mine.py'
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))

  yield change
  forget(tmp_path)
  for registry, before in kept:
    registry.clear()
    registry.update(before)


@pytest.mark.slow
def test_edited_code_is_not_given_the_old_numbers(edited, tmp_path, capsys):
  assert mine(tmp_path) == 0
  made_of = json.loads((tmp_path / 'out/config.json').read_text())['sources']
  assert list(made_of) == ['mine.py']
  edited('seeds=1', 'seeds=2')  # In get_config: compared by what it returns.
  assert mine(tmp_path) == 0
  edited('d * 2', 'd * 3')
  capsys.readouterr()
  assert mine(tmp_path) == 2
  said = capsys.readouterr().err
  assert 'mine.py has changed since' in said and 'another --workdir' in said
  assert len(said.splitlines()) == 2
  assert mine(tmp_path, '--config.defenses=none') == 2
  said = capsys.readouterr().err  # More differs: that is what is said.
  assert 'belongs to another configuration: defenses' in said


@pytest.mark.slow
def test_so_is_code_that_own_code_imports(edited, tmp_path, capsys):
  """By any of its names, from a package and from beside itself."""
  pack = tmp_path / 'own_pack'
  pack.mkdir()
  (pack / '__init__.py').write_text('from . import deep\n')
  (pack / 'deep.py').write_text('from .deeper import TWICE as FACTOR\n')
  (pack / 'deeper.py').write_text('TWICE = 2\n')
  (tmp_path / 'own_unused.py').write_text('')
  edited('d * 2', 'd * own_pack.deep.FACTOR')
  edited('Method, each\n', 'Method, each\nimport own_pack.deep, numpy\n')
  assert mine(tmp_path) == 0
  config = tmp_path / 'out/config.json'
  said = json.loads(config.read_text())
  assert sorted(said['sources']) == [
      '__init__.py', 'deep.py', 'deeper.py', 'mine.py'
  ]
  (pack / 'deeper.py').write_text('TWICE = 3\n')
  forget(tmp_path)
  capsys.readouterr()
  assert mine(tmp_path) == 2
  assert 'deeper.py has changed since' in capsys.readouterr().err
  # A work directory of before: of the file with the methods alone.
  (tmp_path / 'out/.config.json').unlink()
  said['sources'] = {'mine.py': said['sources']['mine.py']}
  config.write_text(json.dumps(said))
  assert mine(tmp_path) == 0


@pytest.mark.slow
def test_a_directory_of_before_digests_goes_on(edited, tmp_path):
  assert mine(tmp_path) == 0
  (tmp_path / 'out/.config.json').unlink()
  config = json.loads((tmp_path / 'out/config.json').read_text())
  del config['sources']
  (tmp_path / 'out/config.json').write_text(json.dumps(config))
  edited('d * 2', 'd * 3')
  assert mine(tmp_path) == 0


@pytest.mark.slow
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
