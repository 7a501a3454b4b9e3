"""`vfljax from-vflair`: what is translated, what is refused."""
import json
import math

import pytest

from vfljax.attack import recipe_of
from vfljax.attacks import REGISTRY
from vfljax.commands import from_vflair
from vfljax.runner.cli import arguments
from vfljax.runner.config import Entry, ModelConfig
from vfljax.runner.errors import UserError

# In the form of VFLAIR's src/configs; its party k - 1 is the active one.
THEIRS = dict(
    epochs=2, lr=0.05, k=2, batch_size=256, num_exp=1,
    communication=dict(
        communication_protocol='FedSGD', iteration_per_aggregation=1
    ),
    dataset=dict(dataset_name='breast_cancer_diagnose', num_classes=2),
    model_list={
        str(k): dict(type='MLP2_128', input_dim=15, output_dim=2)
        for k in range(2)
    } | dict(apply_trainable_layer=0),
    attack_list={
        '0': dict(name='NormbasedScoring', parameters=dict(party=[0])),
        '1': dict(name='NoisySample', parameters=dict(
            party=[0], noise_lambda=3, noise_rate=0.02)),
        '2': dict(name='ResSFL', parameters=dict(party=[1])),
    },
)


def made(**changed):
  return from_vflair.translated(THEIRS | changed)


def defended(name, party=(1,), **more):
  defense = dict(name=name, parameters=dict(party=list(party), **more))
  return made(defense=defense)[0].listed[1]


def test_a_config_file_comes_out_that_runs(tmp_path, capsys):
  source, target = tmp_path / 'breast.json', tmp_path / 'mine.py'
  source.write_text(json.dumps(THEIRS))
  assert from_vflair.run([str(source), f'--to={target}']) == 0
  said = capsys.readouterr().out
  assert 'Left out: ResSFL' in said and 'config.attacks=noisy_sample' in said
  config = arguments.parse(['vfljax', f'--config={target}']).config
  assert config.data.name == 'breast_cancer'
  assert config.model.bottom == (128, 1) and not config.model.trainable_top
  assert config.train.batch_size == 256 and config.train.learning_rate == 0.05
  assert config.listed_attacks == ('norm_scoring',) and config.seeds == 1
  assert config.attack.own['noisy_sample'] == dict(rate=0.02, std=3.0)
  assert config.attack.party == 1


@pytest.mark.parametrize('left, typed', [
    (dict(name='ResSFL'), '.py --config.attacks=...'),
    (dict(name='NormbasedScoring'), '.py'),
    (dict(name='NoisySample'), '.py'),
])
def test_without_an_attack_it_says_that_one_is_needed(
    left, typed, tmp_path, capsys
):
  source = tmp_path / 'breast.json'
  source.write_text(json.dumps(THEIRS | dict(attack_list={'0': left})))
  from_vflair.run([str(source), f'--to={tmp_path / "mine.py"}'])
  said = capsys.readouterr().out
  assert ('No attack is left' in said) == (left['name'] == 'ResSFL')
  run = next(s for s in said.split('\n') if s.startswith('Run: '))
  assert run.endswith(f'mine{typed}')


def test_ten_classes_keep_an_embedding_for_each():
  config = made(dataset=dict(dataset_name='mnist', num_classes=10))[0]
  assert config.data.name == 'mnist' and config.model.bottom == (128, 2)


@pytest.mark.parametrize('entry, expected', [
    (('LaplaceDP', (1,), dict(dp_strength=0.1)),
     Entry('dp_laplace', (0.1,), dict(clip_norm=0.2, clip='batch'))),
    (('GaussianDP', (1,), dict(dp_strength=0.3)),
     Entry('dp_gaussian', (0.3,), dict(clip_norm=0.2, clip='batch'))),
    (('DiscreteSGD', (1,), dict(bin_numbers=12)),
     Entry('discrete_sgd', (12.0,))),
    (('MID', (0,), {'lambda': 0.5}), Entry('mid', (0.5,),
                                           dict(side='passive'))),
    (('GradientSparsification', (1,), dict(gradient_sparse_rate=99.5)),
     Entry('gradient_compression', (0.005,), dict(residual=True))),
    (('DCAE', (1,), {'lambda': 1, 'bin_numbers': 12}),
     Entry('discrete_sgd', (12.0,), label='DCAE',
           after=(Entry('coae', (1.0,)),))),
])
def test_defenses_keep_their_strengths(entry, expected):
  name, party, more = entry
  assert defended(name, party, **more) == expected


def test_what_a_file_does_not_say_is_as_in_vflairs_code():
  """The active party defends; the attacker is the first of the others."""
  attack = {'0': dict(name='NoisySample'), '1': dict(name='MissingFeature')}
  config, apart, _ = made(
      k=3, model_list={str(k): {} for k in range(3)}, attack_list=attack,
      defense=dict(name='MID', parameters={'lambda': 0.5}),
  )
  assert config.listed[1] == Entry('mid', (0.5,), dict(side='active'))
  assert apart == ['noisy_sample', 'missing_features']
  assert config.attack.own == dict(
      noisy_sample=dict(rate=0.01, std=2.0), missing_features=dict(rate=0.25)
  )
  assert (config.attack.party, config.attack.known) == (1, 4)
  assert config.model.bottom == (32, 1)


@pytest.mark.parametrize('more, options', [
    ({}, dict(steps=500)),
    (dict(epochs=9, lr=0.25), dict(steps=9, learning_rate=0.25)),
])
def test_label_reconstruction_is_gradient_inversion(more, options):
  attack = dict(name='BatchLabelReconstruction', parameters=more)
  config, apart, left = made(attack_list={'0': attack})
  assert config.listed_attacks == ('gradient_inversion',)
  assert config.attack.own == dict(gradient_inversion=options)
  assert not apart and not left
  known = recipe_of(REGISTRY['gradient_inversion']).options
  assert {*options} <= {*known._fields}


@pytest.mark.parametrize('classes, trainable, head', [
    (10, 0, dict(width=10, aggregation='sum', trainable_top=False)),
    (2, 0, dict(width=1, aggregation='sum', trainable_top=False)),
    (2, 1, dict(width=2, aggregation='concat')),
])
def test_a_network_of_a_name_keeps_it(classes, trainable, head):
  own = dict(type='resnet18', output_dim=classes)
  config = made(
      model_list=dict(
          {str(k): own for k in range(2)}, apply_trainable_layer=trainable
      ),
      dataset=dict(dataset_name='mine', num_classes=classes),
  )[0]
  assert config.model == ModelConfig(name='resnet18', top=(), **head)


def listing(*attacks, parties=4):
  """A file with some attacks, each (its name, its parameters)."""
  return dict(
      k=parties, model_list={str(k): {} for k in range(parties)},
      attack_list={
          str(i): dict(name=name, parameters=more)
          for i, (name, more) in enumerate(attacks)
      },
  )


@pytest.mark.parametrize('attacks, said', [
    ([('NormbasedScoring', dict(party=[0])),
      ('DirectionbasedScoring', dict(party=[1]))], "differ in 'party'"),
    ([('NormbasedScoring', dict(party=[0, 1]))], r'by parties \[0, 1\] has no'),
    ([('NormbasedScoring', dict(party=[0, 3]))], 'the active one'),
    ([('NormbasedScoring', dict(party=[-2]))], '0 to 3; got'),
    ([('PassiveModelCompletion', dict(n_labeled_per_class=4)),
      ('ActiveModelCompletion', dict(n_labeled_per_class=9))],
     "differ in 'n_labeled_per_class'"),
    ([('PassiveModelCompletion', dict(n_labeled_per_class=9)),
      ('ActiveModelCompletion', {})], "differ in 'n_labeled_per_class'"),
    ([('PassiveModelCompletion', dict(n_labeled_per_class='x'))],
     "'n_labeled_per_class' must be a number; got 'x'"),
    ([('NoisySample', dict(noise_rate=0.1)),
      ('NoisySample', dict(noise_rate=0.2))], 'is in the file twice'),
])
def test_no_attack_takes_the_settings_of_another(attacks, said):
  """A config has one attacker, and each attack once: the last would win."""
  with pytest.raises(UserError, match=said):
    made(**listing(*attacks))


def test_attacks_with_the_same_settings_are_translated_together():
  attacks = [
      ('NormbasedScoring', dict(party=[2, 0, 1])),
      ('PassiveModelCompletion', dict(party=[0, 1, 2], n_labeled_per_class=9)),
      ('NormbasedScoring', dict(party=[0, 1, 2])),
  ]
  config = made(**listing(*attacks))[0]
  assert config.listed_attacks == ('norm_scoring', 'mixmatch')
  assert (config.attack.party, config.attack.known) == (0, 9)
  config = made(**listing(('NormbasedScoring', dict(party=[1]))))[0]
  assert config.attack.party == 2


@pytest.mark.parametrize('party, said', [
    ([0], 'has no counterpart'), ([0, 1, 2, 3], 'has no counterpart'),
    (3, 'of another kind than in VFLAIR'), ([4], '0 to 3; got'),
])
def test_a_defense_of_some_parties_is_not_taken_for_one_of_others(party, said):
  defense = dict(name='MID', parameters={'party': party, 'lambda': 0.5})
  with pytest.raises(UserError, match=said):
    made(**listing(), defense=defense)


@pytest.mark.parametrize('name, count, options', [
    ('mnist', 10, ''), ('breast_cancer_diagnose', 2, ''), ('mine', 7, ''),
    ('nuswide', 5, 'concepts=buildings,grass,animal,water,person'),
    ('nuswide', 2, 'concepts=clouds,person'),
])
def test_the_classes_are_those_of_vflair(name, count, options):
  config = made(dataset=dict(dataset_name=name, num_classes=count))[0]
  assert config.data.options == options


@pytest.mark.parametrize('changed, said', [
    (dict(dataset=dict(dataset_name='mnist', num_classes=5)), 'num_classes 5'),
    (dict(dataset=dict(dataset_name='mnist', num_classes='5')),
     "'num_classes' must be a number"),
    (dict(model_list={str(k): dict(output_dim=5.7) for k in range(2)}),
     "'output_dim' must be a number; got 5.7"),
    (dict(model_list=THEIRS['model_list'] | dict(apply_trainable_layer='0')),
     "'apply_trainable_layer' must be 0 or 1; got '0'"),
    *((dict(attack_list={'0': dict(
        name='PassiveModelCompletion', parameters=dict(
            party=[0], n_labeled_per_class=known))}),
       "'n_labeled_per_class' must be 1 or more") for known in (0, -1)),
    (dict(attack_list={'0': dict(name='PassiveModelCompletion', parameters=dict(
        party=[0], epochs=2.5))}), "'epochs' must be a number; got 2.5"),
    (dict(defense=dict(name='LaplaceDP', parameters=dict(
        party=[1], dp_strength='0.1'))), "'dp_strength' must be a number"),
    (dict(k=0), "'k' must be 2 parties or more; got 0"),
    (dict(tree_type='xgboost'), "counterpart of 'tree_type'"),
    (dict(communication=dict(communication_protocol='CELU')), "'CELU'"),
    (dict(k='two'), "'k' must be a number"),
    (dict(defense=dict(name='GradPerturb')), "defense 'GradPerturb'"),
    (dict(defense=dict(name='CAE', parameters=dict(party=[1]))), 'lambda'),
    (dict(defense=dict(name='LaplaceDP', parameters=dict(
        party=[0], dp_strength=1))), 'at a passive party'),
    *((dict(defense=dict(name=name, parameters=dict(party=[0]))),
       f'{name} at a passive party, .* at the active party it has: param')
      for name in ('GaussianDP', 'DiscreteSGD', 'GradientSparsification')),
    (dict(dataset=['mnist']), r"'dataset' must be {...}; got .'mnist'.\."),
    (dict(defense='MID'), "'defense' must be {...}; got 'MID'"),
    (dict(model_list={'0': dict(type='GCN'), '1': dict(type='GCN')}), "'GCN'"),
    (dict(model_list={'0': dict(type='MLP4'), '1': {}}), 'same network'),
    (dict(attack_list={'0': dict(name='NormbasedScoring', parameters=dict(
        party=[1]))}), 'the active one'),
    (dict(epochs=math.inf), "'epochs' must be a number"),
    (dict(num_exp=1.5), "'num_exp' must be a number; got 1.5"),
    (dict(num_exp=-1.5), "'num_exp' must be a number; got -1.5"),
    (dict(lr=math.nan), "'lr' must be a number"),
    (dict(attack_list={'0': dict(name='NormbasedScoring', parameters=dict(
        party=0))}), 'of another kind than in VFLAIR'),
    (dict(attack_list={'0': dict(name='NoisySample', parameters=dict(
        noise_rate='x'))}), "'noise_rate' must be a number; got 'x'"),
    (dict(defense=dict(name=['MID'])), 'of another kind than in VFLAIR'),
    *((dict(defense=dict(name='GradientSparsification', parameters=dict(
        party=[1], gradient_sparse_rate=rate))), 'and not drop all')
      for rate in (1, 100, -1)),
    *((dict(defense=dict(name='GradientSparsification', parameters=dict(
        party=[1], gradient_sparse_rate=rate))), 'must be a number')
      for rate in (math.inf, math.nan)),
])
def test_what_has_no_counterpart_is_refused(changed, said):
  with pytest.raises(UserError, match=said):
    made(**changed)


def test_a_data_set_that_vfljax_has_not_is_told_to_be_read_from_a_file(
    tmp_path, capsys
):
  (tmp_path / 'x.json').write_text(json.dumps(
      THEIRS | dict(dataset=dict(dataset_name='minst'))
  ))
  from_vflair.run([str(tmp_path / 'x.json'), f'--to={tmp_path / "x.py"}'])
  said = capsys.readouterr().out
  assert "'minst' is no data set of vfljax" in said and ', cifar10, ' in said


def test_a_file_that_cannot_be_read_is_named(tmp_path):
  for name, why in (('none.json', 'No such file'), ('', 'Is a directory')):
    with pytest.raises(UserError, match=f'cannot be read: {why}'):
      from_vflair.run([str(tmp_path / name), f'--to={tmp_path / "x.py"}'])
  assert not (tmp_path / 'x.py').exists()


@pytest.mark.parametrize('text', ['[]', '{', '{"epochs": 3}'])
def test_a_file_that_is_none_is_refused(tmp_path, text):
  (tmp_path / 'x.json').write_text(text)
  with pytest.raises(UserError, match='x.json is no'):
    from_vflair.run([str(tmp_path / 'x.json')])
  assert not (tmp_path / 'x.py').exists()


def test_nothing_is_written_over(tmp_path):
  (tmp_path / 'x.json').write_text(json.dumps(THEIRS))
  (tmp_path / 'x.py').write_text('mine')
  with pytest.raises(UserError, match='exists already'):
    from_vflair.run([str(tmp_path / 'x.json'), f'--to={tmp_path / "x.py"}'])
  assert (tmp_path / 'x.py').read_text() == 'mine'
