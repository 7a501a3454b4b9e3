"""What is typed after --config.defenses and --config.attacks."""
import pytest

from vfljax.report import asked
from vfljax.runner.config import (
    AttackConfig, Config, Entry, ModelConfig, Variant, default_entry,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import attackers, choosing
from vfljax.runner.main import main

LISTED = (
    Entry('none'), Entry('iso', (5.0, 25.0)),
    Entry('marvell', (4.0,), {'x': 1}, label='Marvell'),
)


def chosen(text):
  config = Config(defenses=text, listed=LISTED)
  return [(e.name, e.strengths) for e in choosing.entries(config)]


@pytest.mark.parametrize('text, strengths', [
    ('iso', [('iso', (5.0, 25.0))]),
    ('iso(3)', [('iso', (3.0,))]),
    ('iso(3,6.5)', [('iso', (3.0, 6.5))]),
    (' iso ( 3 , 1e1 ) , max_norm', [('iso', (3.0, 10.0)), ('max_norm', ())]),
    ('marvell(3,6),iso', [('marvell', (3.0, 6.0)), ('iso', (5.0, 25.0))]),
    ('iso(3),iso(3)', [('iso', (3.0,))]),
    ('iso,,', [('iso', (5.0, 25.0))]),
    (',iso,,max_norm', [('iso', (5.0, 25.0)), ('max_norm', ())]),
])
def test_strengths_may_stand_behind_a_defense(text, strengths):
  assert chosen(text) == [('none', ()), *strengths]


def test_two_listed_ones_of_one_name_are_refused():
  config = Config(listed=(*LISTED, Entry('iso', (7.0,))))
  with pytest.raises(UserError, match="same name, 'iso'; give one a label"):
    choosing.entries(config)


def test_a_listed_one_that_there_is_not_is_told():
  config = Config(listed=(*LISTED, Entry('isoo')), defenses='iso')
  with pytest.raises(UserError, match="no defense 'isoo'. Did you mean iso?"):
    choosing.entries(config)


@pytest.mark.parametrize('listed', [(), LISTED, LISTED[1:]])
def test_what_is_recorded_begins_with_no_defense(listed):
  """Also where the list has none: losses are measured against it."""
  config = Config(listed=listed, defenses='Marvell(7),gone')
  found = choosing.recorded(config, dict(gone=(1.0,), Marvell=(7.0,)))
  assert [(e.name, e.strengths) for e in found] == [
      ('none', ()), ('Marvell', (7.0,)), ('gone', (1.0,))
  ]


def test_what_is_special_about_a_listed_one_stays():
  config = Config(defenses='Marvell(7)', listed=LISTED)
  entry = choosing.entries(config)[1]
  assert (entry.defense, entry.strengths, entry.options) == (
      'marvell', (7.0,), {'x': 1}
  )
  assert default_entry('marvell').strengths != (7.0,)


@pytest.mark.parametrize('text, message', [
    ('iso(a)', "strengths must be numbers, as in --config.defenses='iso"),
    ('iso()', 'strengths must be num'), ('iso(nan)', 'strengths must be num'),
    ('iso(inf)', 'strengths must be numbers'),
    ('max_norm(1)', 'max_norm has no strength to choose'),
    ('iso(1),iso(2)', 'iso twice. Put all its strengths together'),
    ('iso(1', 'must look like marvell'), ('iso)1(', 'must look like marvell'),
    ('(1)', 'must look like marvell'), ('iso(1)(2)', 'must look like marvell'),
    ('isoo', "no defense 'isoo'. Did you mean iso?"),
    ('marvel(3)', "no defense 'marvel'. Did you mean marvell?"),
])
def test_what_is_typed_wrong_is_told(text, message):
  with pytest.raises(UserError) as error:
    chosen(text)
  assert message in str(error.value) and len(str(error.value)) < 600


def test_attacks_are_guessed_at_too():
  config = Config(attacks='norm_scorin', listed_attacks=('norm_scoring',))
  with pytest.raises(UserError, match='Did you mean norm_scoring?'):
    choosing.attack_names(config)


def test_reports_know_what_was_asked_for():
  config = dict(defenses='iso(3,6)', listed=[])
  assert asked.cells(config, 2) == (('none', None), ('iso', 3), ('iso', 6))


def test_a_command_that_there_is_not_is_told(capsys):
  assert main(['vfljax', 'advice', 'out']) == 2
  error = capsys.readouterr().err
  assert "no command 'advice'" in error and 'Did you mean advise?' in error


def test_who_knows_more_is_measured_by_who_knows_as_much():
  """A variant's baselines know what it knows, and no more is run than that."""
  config = Config(
      attacks='model_completion:80,model_completion:linear',
      variants=(
          Variant('model_completion:80', dict(known=40)),
          Variant('model_completion:linear', dict(head=())),
      ), attack=AttackConfig(known=4), model=ModelConfig(algorithm='vhnn'),
  )
  names = choosing.attack_names(config)
  assert names[2:] == ['local_model:80', 'scratch:80', 'local_model', 'scratch']
  known = {name: attackers.attacker(config, name).who.known for name in names}
  assert known == {
      'model_completion:80': 40, 'local_model:80': 40, 'scratch:80': 40,
      'model_completion:linear': 4, 'local_model': 4, 'scratch': 4,
  }


@pytest.mark.parametrize('classes, names, left', [
    (2, ['norm_scoring', 'mean_scoring', 'learned_gradient'], []),
    (3, ['gradient_clustering', 'learned_gradient'], ['mean_scoring']),
])
def test_of_alternatives_the_first_that_works_is_run(classes, names, left):
  """And one that two of them come to is run once."""
  config = Config(listed_attacks=(
      'norm_scoring | gradient_clustering', 'mean_scoring',
      'direct_label|learned_gradient', 'gradient_clustering|norm_scoring',
  ))
  ran = ['gradient_clustering'] if classes == 2 else []
  assert choosing.attack_names(config, classes) == names + ran
  assert choosing.left_out(config, classes) == left
  assert set(choosing.attacks_meant(config)) == {
      'norm_scoring', 'gradient_clustering', 'mean_scoring', 'direct_label',
      'learned_gradient',
  }
  config.attacks = 'norm_scoring'  # Asked for by name.
  assert choosing.attack_names(config, classes) == ['norm_scoring']
  assert choosing.left_out(config, classes) == []


def test_an_alternative_that_there_is_not_is_told():
  config = Config(listed_attacks=('norm_scoring|gradient_clusterin',))
  with pytest.raises(UserError, match='Did you mean gradient_clustering'):
    choosing.attack_names(config)
