"""Which of the paper's takeaways hold in results of ours.

  python -m experiments.kang2022.takeaways OUT/vlr-spambase OUT/vnn-... ...

Reads the work directories' results.jsonl and prints, for every evaluation
setting (Table 6), the optimal PU scores (Eq. 22) and the order of preference
that follows from them, then every takeaway of section 8 with the numbers that
decide it, or "not measured". VHNN and VSNN are compared on data sets that both
trained on, if party B has the same features in both (by the work directories'
config.json); data sets that are left out are named.
"""
from collections.abc import Sequence
import sys
from typing import NamedTuple

import numpy as np

from experiments import redrawn
from experiments.kang2022 import quiet
from experiments.kang2022.alike import Run, pairs, read
from experiments.kang2022.paper import OFTEN
from experiments.kang2022.pu_scores import (
    KINDS, SCORING, SETTINGS, THWARTED, as_often, moved, of_setting, order,
    thwarting,
)
from vfljax.report import reading
from vfljax.report.reading import Results

STEP = 1  # The least that a score can move.


class Verdict(NamedTuple):
  """A takeaway of the paper.

  Attributes:
    claim: In our words.
    held: Whether ours agree; `None` if nothing was measured, or the seeds do
      not tell.
    because: The numbers that decide.
  """

  claim: str
  held: bool | None
  because: str


def verdicts(runs: Sequence[Run]) -> list[Verdict]:
  """Every takeaway of section 8."""
  everything = [run.results for run in runs]
  return [
      *_vlr(everything), *_vnn(everything), _harder(runs),
      *_inversion(everything),
  ]


def _vlr(everything: Sequence[Results]) -> list[Verdict]:
  gradients = [of_setting(everything, number) for number in (1, 2)]
  ours = {
      f'{reading.pretty(d)}, setting {i}' + f' ({name})' * (len(tables) > 1):
      table[d]
      for i, tables in enumerate(gradients, 1)
      for name, table in tables.items()
      for d in ('iso', 'dp_laplace') if d in table
  }
  completion = quiet.scores(of_setting(everything, 3))
  any_five = [
      score for number in (1, 2, 3)
      for score in quiet.scores(of_setting(everything, number)).values()
  ]
  return [
      _verdict(
          'VLR 1: generally ISO and DP-L thwart NS, DS, DL, RR and GI (score '
          '4 or more at least as often as in Tables 10 and 11: %d of %d)'
          % OFTEN['vlr_1'],
          _thwarted(ours) or None, lambda so: as_often(so, OFTEN['vlr_1']),
          _list(ours),
          thwarting(everything, (1, 2), ('iso', 'dp_laplace'), OFTEN['vlr_1']),
      ),
      _verdict(
          'VLR 2: protections have difficulty thwarting MC (score below 4 at '
          'least as often as in Table 12: %d of %d)' % OFTEN['vlr_2'],
          _thwarted(completion) or None,
          lambda so: as_often(np.logical_not(so), OFTEN['vlr_2']),
          _list(completion),
      ),
      _verdict(
          'VLR 3: no protection reaches a score of 5',
          max(any_five, default=None), lambda s: s < 5,
          f'the highest score is {max(any_five, default=0)}',
      ),
  ]


def _vnn(everything: Sequence[Results]) -> list[Verdict]:
  marvell = {
      name: table['marvell']
      for name, table in of_setting(everything, 4).items() if 'marvell' in table
  }
  strengths, ranges = moved(
      [r for r in everything if r.title[2] in KINDS['vnn']], 'marvell', SCORING
  )
  tables = of_setting(everything, 5)
  completion = quiet.scores(tables)
  return [
      _verdict(
          'VNN 1a: generally Marvell thwarts NS and DS (score 4 or more at '
          'least as often as in Tables 13 and 14: %d of %d)' % OFTEN['vnn_1'],
          _thwarted(marvell) or None, lambda so: as_often(so, OFTEN['vnn_1']),
          _list(marvell), thwarting(everything, (4,), ('marvell',),
                                    OFTEN['vnn_1']),
      ),
      _verdict(
          'VNN 1b: Marvell is robust to its strength (on each data set its PU '
          f'score against NS and DS moves by {STEP} at most)',
          max(map(np.ptp, strengths.values()), default=None),
          lambda most: most <= STEP, 'by strength: ' + _list(strengths),
          None if ranges is None else float((ranges <= STEP).mean()),
      ),
      _verdict(
          'VNN 2: protections have difficulty thwarting MC (score below 4 at '
          'least as often as in Table 15 without BHI: %d of %d)'
          % OFTEN['vnn_2'],
          _thwarted(completion) or None,
          lambda so: as_often(np.logical_not(so), OFTEN['vnn_2']),
          '; '.join(filter(None, [
              _list(completion), quiet.said(tables),
              quiet.near(everything, tables),
          ])),
      ),
  ]


def _harder(runs: Sequence[Run]) -> Verdict:
  """Takeaway 3 of VNN, on what both algorithms trained on, like with like."""
  alike, left_out = pairs(runs)
  means = {}
  for i, algorithm in enumerate(('vhnn', 'vsnn')):
    chosen = [pair[i] for pair in alike]
    tables = [of_setting(chosen, number, algorithm) for number in (4, 5)]
    scores = [s for table in tables for s in quiet.scores(table).values()]
    if scores:
      means[algorithm.upper()] = float(np.mean(scores))
  both = means['VHNN'] - means['VSNN'] if len(means) == 2 else None
  said = _list({k: f'{v:.2f}' for k, v in means.items()})
  return _verdict(
      'VNN 3: VSNN is harder to protect than VHNN (mean optimal score)', both,
      lambda gap: gap > 0, '; '.join(filter(None, [said, *left_out])),
  )


def _inversion(everything: Sequence[Results]) -> list[Verdict]:
  """Takeaway 4 of VNN and what section 8.5.3 says, algorithm by algorithm."""
  found = []
  for results in everything:
    leak = lambda cell, attack, r=results: reading.summarize(
        reading.find(r, cell, attack, 'ssim').values()
    ).mean
    who = results.title[2].upper()
    own = {
        reading.named(cell): leak(cell, 'model_inversion')
        for cell in results.cells
    }
    own = {name: ssim for name, ssim in own.items() if np.isfinite(ssim)}
    free = own.get('no defense')
    if free is None:
      continue
    text = _list({name: f'{ssim:.3f}' for name, ssim in own.items()})
    names = [f'mixup ({n})' for n in (2, 3, 4)]
    mixed = [own[name] for name in names if name in own]
    if len(mixed) == len(names):
      falling = all(a > b for a, b in zip([free, *mixed], mixed))
      found.append(Verdict(
          f'MI, {who}: SSIM falls with MixUp 2, 3, 4', falling, text
      ))
      found.append(Verdict(
          f'MI, {who}: every MixUp lowers SSIM', max(mixed) < free, text
      ))
    if 'precode' in own:
      floor = leak(('none', None), 'mean_image')
      found.append(Verdict(
          f'MI, {who}: PRECODE stops it (no better than the mean image)',
          own['precode'] <= floor,
          f'{text}; mean image: {floor:.3f}',
      ))
    found += _structures(who, free, leak)
  return found or [Verdict('MI: MixUp and PRECODE stop it', None, '')]


def _structures(who: str, same: float, leak) -> list[Verdict]:
  """Whether an attacker who guesses the structure wrong learns less."""
  none = ('none', None)
  conv, dense = (leak(none, f'model_inversion:{s}') for s in ('conv', 'fc'))
  if not np.isfinite([conv, dense]).all():
    return []
  return [Verdict(
      f'VNN 4, {who}: a confidential structure prevents MI (SSIM: same > other '
      'convolutions > fully connected)',
      bool(same > conv > dense),
      f'same: {same:.3f}, conv: {conv:.3f}, fc: {dense:.3f}',
  )]


def _thwarted(scores: dict[str, int]) -> list[bool]:
  return [score >= THWARTED for score in scores.values()]


def _verdict(
    claim: str, value, holds, because: str, share: float | None = None
) -> Verdict:
  """The verdict on a value; with `share`, only if the seeds drawn anew agree.
  """
  if value is None:
    return Verdict(claim, None, because)
  held = bool(holds(value))
  if share is None or redrawn.decided(held, share) is not None:
    return Verdict(claim, held, because)
  return Verdict(claim, None, f'{because}; {redrawn.said(share)}')


def _list(named: dict) -> str:
  return ', '.join(f'{name}: {value}' for name, value in named.items())


def text(runs: Sequence[Run]) -> str:
  """All of it as Markdown."""
  everything = [run.results for run in runs]
  lines = []
  for number in SETTINGS:
    tables = of_setting(everything, number)
    if tables:
      lines.append(f'Setting {number}, optimal PU scores: {order(tables)}')
      lines += [f'- {name}: {_list(t)}' for name, t in tables.items()]
  words = {
      True: 'HELD', False: 'DID NOT HOLD',
      None: 'not measured, not told by the seeds, or nothing leaks anyway',
  }
  lines += ['', '| takeaway | verdict | ours |', '|---|---|---|']
  lines += [
      f'| {v.claim} | {words[v.held]} | {v.because} |'
      for v in verdicts(runs)
  ]
  return '\n'.join(lines)


def main(workdirs: Sequence[str]) -> int:
  """Prints what the results in `workdirs` say; 2 if there are none."""
  runs = [run for path in workdirs for run in read(path)]
  if not runs:
    print('error: give work directories with a results.jsonl', file=sys.stderr)
    return 2
  print(text(runs))
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
