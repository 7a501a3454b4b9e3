"""By which criteria MID's claims are decided, and what noise does to them."""
import pytest

from experiments import evidence
from experiments.mid import cafe, claims, curves, rebuilt, rivalries
from experiments.mid.curves import Compared, Curves, Point


def point(name, strength, utility, success, spread=0.5):
  return Point(name, strength, utility, success, spread, 0.4)


def use(monkeypatch, *points, undefended=50.0):
  """Curves of these points stand for every record's."""
  by_defense: dict[str, list[Point]] = {}
  for p in points:
    by_defense.setdefault(p.defense, []).append(p)
  found = Curves(point('none', None, undefended, 40), 40, by_defense)
  monkeypatch.setattr(rivalries.Rivalry, 'curves', lambda self: found)


def compared(mine, rival, spread):
  return Compared(1, point('RVFR', None, 50, mine, spread),
                  point('MID', 0, 50, rival, spread))


@pytest.mark.parametrize('mine, rival, spread, like, below', [
    (10, 12, 1, True, True),  # 2 apart and 2 of spread: within 5
    (12, 10, 1, True, True),
    (20, 10, 1, False, False),  # 8 at least
    (10, 20, 1, False, True),
    (10, 18.3, 6.9, None, None),  # 8 apart, but seeds are 14 apart
    (12, 10, 2, None, None),
    (10, 10, 3, None, None),
    (10, 10, float('nan'), None, None),
])
def test_no_defense_is_like_another_by_its_seeds_spread(
    mine, rival, spread, like, below
):
  lines = compared(mine, rival, spread)
  assert claims.within(lines, below=False) is like
  assert claims.within(lines, below=True) is below


def test_more_noise_never_makes_two_defenses_alike():
  for apart in (0, 3, 5, 8):
    found = [claims.within(compared(10 + apart, 10, s), below=False)
             for s in (0, 1, 2, 4, 8)]
    later = found[1:]
    assert not any(now and not before for before, now in zip(found, later))


def test_rvfr_is_judged_where_it_stands(monkeypatch):
  """At 10 points lost MID ignores the passive party."""
  use(monkeypatch, point('RVFR', None, 49.2, 18), point('MID', 0, 49.3, 20),
      point('MID', 1, 41, 0))
  found = claims._like(rivalries.NOISY, below=True)
  assert found.held and 'RVFR: 18.0 > 0.0: MID 1' in found.because
  use(monkeypatch, point('RVFR', None, 49.2, 18, 4),
      point('MID', 0, 49.3, 20, 4))
  found = claims._like(rivalries.NOISY, below=False)
  assert found.held is None and 'not decided' in found.because
  use(monkeypatch, point('RVFR', None, 30, 18), point('MID', 0, 49, 20))
  assert claims._like(rivalries.NOISY, below=True).held is None


def test_what_is_compared_at_ten_points_alone_says_what_it_costs(monkeypatch):
  use(monkeypatch, point('MID', 0.01, 43, 12), point('GS', 0.1, 49, 25),
      point('GS', 0.01, 43.2, 19))
  found = rivalries.FIRST.judge()
  assert found.held
  assert found.because == (
      '10 points lost: MID 0.01: 12.0 < 19.0: GS, drop 99 % (40 % of the worth '
      'left); points lost at least: MID 0.01 7.0, GS, drop 90 % 1.0'
  )


def test_a_loss_of_ten_points_counts_for_all(monkeypatch):
  use(monkeypatch, point('MID', 0, 50, 12), point('DP-L', 1, 49.9, 30),
      point('DP-L', 2, 41, 10.9))
  found = rivalries.FIRST.judge()
  assert found.held is False
  assert found.because.startswith('up to 5 points it is below; 0.5 points')


@pytest.mark.parametrize('first, last, held', [
    (30, 12.1, True), (30, 11.9, None),  # 0.1 apart, and seeds by 1
    (12.4, 12.4, None), (11.6, 11.6, None), (12.4, 10.9, False),
])
def test_what_seeds_do_not_tell_apart_refutes_nothing(
    monkeypatch, first, last, held
):
  use(monkeypatch, point('MID', 0, 50, 12), point('DP-L', 1, 49.9, first),
      point('DP-L', 2, 41, last))
  found = rivalries.FIRST.judge()
  assert found.held is held
  assert ('~' in found.because) == (held is not False or first < 20)


@pytest.mark.parametrize('zero, held', [
    (38, True), (39.5, None), (40.5, None), (42, False),
])
def test_lambda_0_has_an_effect_only_beyond_the_spread(monkeypatch, zero, held):
  """Undefended 40; which way seeds fall within the spread decides nothing."""
  use(monkeypatch, point('MID', 0, 50, zero))
  assert claims._zero(rivalries.TWO).judge().held is held


@pytest.mark.parametrize('least, held', [
    (8, True), (9.5, None), (10.5, None), (12, False),
])
def test_lambda_does_it_only_beyond_the_spread(monkeypatch, least, held):
  """Lambda 0 leaves 10; lambda 0 alone is no lambda above it."""
  use(monkeypatch, point('MID', 0, 50, 10), point('MID', 0.01, 49, least),
      point('MID', 1, 40, 0))
  assert claims._nothing_but_a_network(rivalries.LAST).held is held
  use(monkeypatch, point('MID', 0, 50, 10), point('MID', 1, 40, least))
  assert claims._nothing_but_a_network(rivalries.LAST).held is None


@pytest.mark.parametrize('utility, undefended, last, missing', [
    (45.1, 50, True, True), (44.9, 50, None, None), (44.9, 49, True, None),
])
def test_a_lambda_above_0_costs_five_points_at_most(
    monkeypatch, utility, undefended, last, missing
):
  """Of missing features from the best model's, which is at lambda 0 here."""
  use(monkeypatch, point('MID', 0, 50, 10), point('MID', 1, utility, 5),
      undefended=undefended)
  for rivalry, held in ((rivalries.LAST, last), (rivalries.MISSING, missing)):
    found = claims._nothing_but_a_network(rivalry)
    assert found.held is held
    assert ('(40 % of the worth left)' in found.because) == bool(held)


def test_theorems_are_named():
  found = {c.where: c for c in claims.CLAIMS if c.where.startswith('Theorem')}
  assert list(found) == ['Theorem 4.1', 'Theorem 4.2']
  assert all(c.judge().held is None for c in found.values())


@pytest.mark.parametrize('parts, held', [
    ([True, True], True), ([True, None], None), ([None, False], False),
])
def test_all_parts_hold_or_one_refutes(parts, held):
  assert curves.every(parts) is held


def test_nothing_to_compare_is_no_verdict(monkeypatch):
  use(monkeypatch, point('MID', 0, 30, 12), point('DP-L', 1, 49.9, 30))
  assert rivalries.FIRST.judge().held is None
  use(monkeypatch, point('MID', 0, 49, 90), point('MARVELL', 1, 49, 55))
  assert claims._marvell(rivalries.DIRECTION).held is None
  use(monkeypatch)
  assert claims._all_stop(rivalries.DIRECTION).held is False


@pytest.mark.parametrize('success', [float('nan'), 20.0])
def test_what_is_no_number_is_never_below(monkeypatch, success):
  nan = float('nan')
  use(monkeypatch, point('MID', 0, 50, success),
      point('DP-L', 1, 50, 30 if success != success else nan))
  assert rivalries.FIRST.judge().held is False


def test_claims_on_cafe_have_the_papers_steps():
  """Those of the record and of section 5.2."""
  for record, data, steps in (
      ('cafe_mnist', 'MNIST', 10_000), ('cafe_cifar10', 'CIFAR-10', 20_000),
  ):
    config = evidence.load('mid', record).record['config']
    assert config['attack']['own']['cafe']['steps'] == cafe.STEPS
    for claim in rebuilt.claims(record, data):
      assert f'{cafe.STEPS} steps, the paper has {steps}' in claim.text


def test_the_papers_data_sets_are_named_and_no_other():
  texts = ' '.join(f'{c.text} {c.judge().because}' for c in claims.CLAIMS)
  assert 'NUS' not in texts and 'CIFAR-100' in texts
  left = [c for c in claims.CLAIMS if not c.records]
  assert {c.where.split(',')[0] for c in left} >= {
      'Fig. 3', 'Fig. 9', 'Table 2'
  }


def test_curves_are_as_the_records_have_them():
  """At equal accuracy MID is below GS under the malicious optimizer."""
  results = evidence.load('mid', 'fig3_amc').results
  found = curves.curves(results, 'mixmatch:frozen', 'accuracy_last')
  (line,) = curves.compared(found)
  assert line.loss == 10 and line.mine.name == 'MID 0.01'


@pytest.mark.parametrize('record', [
    'fig5_replacement', 'fig5_replacement_fashion', 'fig5_replacement_cifar10',
    'fig5_missing', 'fig5_missing_fashion', 'fig5_missing_cifar10',
])
def test_lambda_0_is_judged_on_every_figure_that_section_5_6_names(record):
  """Figures 5a, 5b, 5e and 5f."""
  found = [c for c in claims.CLAIMS
           if record in c.records and 'at lambda 0 already' in c.text]
  assert len(found) == 1


@pytest.mark.parametrize('success, spread, held', [
    (59.0, 0.5, True), (59.0, 1.5, None), (61.0, 1.5, None), (62.0, 1.5, False),
])
def test_all_are_low_beyond_their_spread(monkeypatch, success, spread, held):
  use(monkeypatch, point('MID', 1, 49, success, spread),
      point('GS', 0.1, 49, 50.0))
  assert claims._all_stop(rivalries.DIRECTION).held is held


@pytest.mark.parametrize('utility, held', [
    (93.0, True), (90.5, None), (89.5, None), (87.0, False),
])
def test_a_better_model_is_so_beyond_the_spread(monkeypatch, utility, held):
  use(monkeypatch, point('MARVELL', 1, utility, 50)._replace(unsure=0.5),
      point('MID', 1, 90, 50)._replace(unsure=0.5))
  assert claims._marvell(rivalries.DIRECTION).held is held
