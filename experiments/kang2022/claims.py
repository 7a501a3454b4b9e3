"""What became of Kang et al.'s takeaways and orders of preference.

The verdicts are `takeaways.py`'s, on the epoch in which an attack learns most;
where the last epoch says otherwise, so does the verdict.
"""
from collections.abc import Sequence

from experiments import evidence
from experiments.claims import Claim, Verdict, untestable
from experiments.kang2022 import alike, by_seed, pu_scores, takeaways
from vfljax.report import reading

PAPER = 'kang2022'
VNN = tuple(
    f'{algorithm}_{data}'
    for data in ('spambase', 'fashion_imbalanced', 'fashion10')
    for algorithm in ('vhnn', 'vsnn')
)
# Section 8's orders, by evaluation setting.
ORDERS = {
    1: 'ISO > DP-L > MN > D-SGD = GC', 2: 'ISO > DP-L > GC = D-SGD > MN',
    3: 'ISO > GC > DP-L = D-SGD > MN',
}


def _runs(records: Sequence[str]) -> list[alike.Run]:
  kept = [evidence.load(PAPER, name) for name in records]
  return [
      alike.Run(one.results, alike.held_by_b(one.record['config']))
      for one in kept
  ]


def _takeaway(start: str, where: str, records: Sequence[str]) -> Claim:
  """The one whose text begins so."""
  text = next(
      v.claim for v in takeaways.verdicts([]) if v.claim.startswith(start)
  )

  def judge() -> Verdict:
    best = _runs(records)
    last = [
        run._replace(results=reading.at_epoch(run.results, 'last'))
        for run in best
    ]
    found = [
        next(v for v in takeaways.verdicts(runs) if v.claim.startswith(start))
        for runs in (best, last)
    ]
    because = found[0].because
    if found[0].held != found[1].held:
      held = {True: 'held', False: 'not held', None: 'not decided'}
      because = (
          f'best epoch: {because}; by the last epoch it is '
          f'{held[found[1].held]}: {found[1].because}'
      )
    return Verdict(found[0].held, because)

  return Claim(where, text.partition(': ')[2], judge, records)


def _order(number: int) -> Claim:
  def judge() -> Verdict:
    tables = pu_scores.of_setting(
        [evidence.load(PAPER, 'vlr').results], number
    )
    ours = pu_scores.order(tables)
    return Verdict(
        _signs(ours) == _signs(ORDERS[number].lower()), f'{ours} on Spambase'
    )

  return Claim(
      f'Section 8, setting {number}', f'Preference: {ORDERS[number]}', judge,
      ('vlr',),
  )


def _signs(order: str) -> list[set[str]]:
  """An order's groups, whichever way their members are named."""
  long = dict(
      mn='max norm', gc='gradient compression', **{
          'd-sgd': 'discrete sgd', 'dp-l': 'dp laplace'
      }
  )
  groups = [g.split('=') for g in order.replace('≈', '=').split('>')]
  return [{long.get(n.strip(), n.strip()) for n in group} for group in groups]


def _inversion(
    start: str, text: str, records: Sequence[str], compared: Sequence[str]
) -> Claim:
  """What `takeaways` says of model inversion, in VHNN and VSNN.

  It says so of means. Seeds have to agree: each of `compared`, differences of
  `by_seed`, has to be below zero by more than seeds differ.
  """

  def judge() -> Verdict:
    found = [
        v for v in takeaways.verdicts(_runs(records)) if start in v.claim
    ]
    changes = {
        f'{name}, {algorithm.upper()}': by_seed.COMPARED[name](algorithm)
        for name in compared for algorithm in by_seed.ALGORITHMS
    }
    return Verdict(
        all(v.held for v in found) and all(map(by_seed.less, changes.values())),
        '; '.join([
            *(f'{v.claim.split(":")[0]}: {v.because}' for v in found),
            *(f'{name}: {by_seed.interval(change)}, below 0 in '
              f'{by_seed.below(change)} seeds'
              for name, change in changes.items()),
        ]),
    )

  return Claim('Tables 16, 17', text, judge, records)


def _prevents() -> Verdict:
  """Whether a wrong guess of the structure learns no more than a mean image."""
  leaks = {
      f'{algorithm.upper()}, {shadow}': by_seed.mean(algorithm, shadow)
      for algorithm in by_seed.ALGORITHMS for shadow in ('conv', 'fc')
  }
  floor = float(by_seed.guessed('mean_image'))
  return Verdict(
      max(leaks.values()) <= floor, ', '.join(
          f'{name}: {ssim:.3f}' for name, ssim in leaks.items()
      ) + f'; mean image: {floor:.3f}',
  )


INVERTED = ('table16_vhnn', 'table16_vsnn')
STRUCTURES = ('table17_vhnn', 'table17_vsnn')
CLAIMS = (
    _takeaway('VLR 1', 'VLR, takeaway 1', ('vlr',)),
    _takeaway('VLR 2', 'VLR, takeaway 2', ('vlr',)),
    _takeaway('VLR 3', 'VLR, takeaway 3', ('vlr',)),
    *map(_order, ORDERS),
    _takeaway('VNN 1a', 'VNN, takeaway 1', VNN),
    _takeaway('VNN 1b', 'VNN, takeaway 1', VNN),
    _takeaway('VNN 2', 'VNN, takeaway 2', VNN),
    _takeaway('VNN 3', 'VNN, takeaway 3', VNN),
    _inversion('PRECODE', 'PRECODE stops MI', INVERTED,
               ('PRECODE less the mean image',)),
    _inversion('every MixUp', 'MixUp lowers SSIM', INVERTED,
               ('MixUp, mean of the three, less none',)),
    _inversion('SSIM falls', 'more samples mixed, lower SSIM', INVERTED,
               ('MixUp (4) less MixUp (2)',)),
    _inversion(
        'VNN 4', 'MI learns less with other convolutions, least with a fully '
        'connected shadow', STRUCTURES, (
            'other convolutions less the same structure',
            'fully connected less other convolutions',
        ),
    ),
    Claim(
        'VNN, takeaway 4', 'a confidential structure prevents MI (SSIM no '
        "better than the mean image's)", _prevents, STRUCTURES,
    ),
    untestable(
        'Tables 13-15', 'the same on NUS-WIDE, Criteo and BHI',
        'the files cannot be had here; `vnn.py` takes your path',
    ),
)
