"""Verdicts on PlugVFL's claims: the criteria, on means over seeds.

For ten classes guessing is right in 10 %; an attacker counts as guessing with
at most 15 %. Every verdict says so, beside the result for an untrained
extractor. Unless a claim says otherwise, PlugVFL's psi learns at ten times the
rate that Algorithm 1 has for everything, which protects better. Of the heads
that complete a network with 40 labels the better one counts (Figure 7's records
have the MLP only); the attacker that knows all labels stands beside it. A
defense's cost is its accuracy in points below no defense. A baseline that costs
less than every row of PlugVFL is not compared and decides nothing. A mean
decides nothing either if too many seeds alone say the opposite (agreed.py).
quits.py has the claims on parties that quit.
"""
from collections.abc import Iterable
import math

from experiments import readers
from experiments.claims import Claim, Verdict, untestable
from experiments.plugvfl import quits
from experiments.plugvfl.agreed import by_each_seed
from experiments.plugvfl.rows import (
    ACTIVE, alone, defended, DROPPED, mean, named, read, results, Row, rows,
    untrained,
)
from experiments.readers import AT_GUESSING

SLOW = 'slow psi'
AS_PRINTED = "psi at the task's learning rate, as Algorithm 1 has it"


def reached(
    found: Iterable[Row], attacker: str, loss: float, record: str
) -> Verdict:
  """Whether an attacker is at guessing for less than `loss` points.

  Args:
    attacker: 'few' or 'all'.
    record: The record with the active party alone and an untrained extractor.
  """
  known = [r for r in found if math.isfinite(getattr(r, attacker))]
  cheap = [r for r in known if r.loss < loss]
  if not cheap:
    return Verdict(
        False if known else None, f'no row costs less than {loss:g} points'
    )
  best, own = min(cheap, key=lambda r: getattr(r, attacker)), alone(record)
  return Verdict(
      getattr(best, attacker) <= AT_GUESSING,
      f'{best.name}: reads {getattr(best, attacker):.1f} % for '
      f'{best.loss:z.1f} points; {best.accuracy - own:+.1f} points against the '
      f'active party alone; {_limit(record, attacker)}',
  )


def _limit(record: str, attacker: str) -> str:
  """What 'at guessing' is, and how near it is without a defense."""
  free = untrained(record)[attacker]
  near = ', nearly the limit without a defense' if (
      free <= AT_GUESSING + 1) else ''
  return (f'at guessing is at most {AT_GUESSING:g} %, in the paper 10; an '
          f'untrained extractor {free:.1f}{near}')


def _labels(record: str, data: str) -> list[Claim]:
  """What Figures 4 and 6 say of PlugVFL, on one data set."""
  judge = lambda attacker, loss: lambda: reached(
      defended(rows(record)), attacker, loss, record
  )

  def useful() -> Verdict:
    own = alone(record)
    kept = [r for r in defended(rows(record)) if r.accuracy > own + 0.5]
    return reached(kept, 'all', 100, record) if kept else Verdict(
        False, 'no row is half a point better than the active party alone'
    )

  return [
      Claim('Section 5.2', 'an attacker with 40 labels is at guessing for '
            f'under 2 points ({data})', judge('few', 2), (record,)),
      Claim('Section 5.2, Fig. 6', 'one with all labels is at guessing for '
            f'under 3 points ({data})', judge('all', 3), (record,)),
      Claim('ours', '... and the model is still half a point better than the '
            f'active party alone ({data})', useful, (record,)),
  ]


def _in_gradients(loss: float) -> Verdict:
  """Whether 40 labels read nothing in gradients, for less than `loss`."""
  kept, found = results('gradients'), rows('gradients')
  seen = {named(c): readers.read(kept, c) for c in kept.cells}
  known = [r for r in defended(found) if math.isfinite(seen[r.name].all)]
  cheap = [r for r in known if r.loss < loss]
  if not cheap:
    return Verdict(
        False if known else None, f'no row costs less than {loss:g} points'
    )
  best = min(cheap, key=lambda r: seen[r.name].all)
  said = (
      f'{name}: {seen[name].start:.1f} % before training, {seen[name].end:.1f} '
      f'after, for {found[name].loss:z.1f} points; completed with the same '
      f'labels {found[name].few:.1f}' for name in (best.name, 'no defense')
  )
  return Verdict(seen[best.name].all <= AT_GUESSING, '; '.join(said))


def _as_good_as_all() -> Verdict:
  """The paper's two numbers are 1.7 points apart."""
  kept = results('table2')
  none = kept.cells[0]
  by = lambda attack: mean(read(kept, none, attack).values())
  few, all_ = by('model_completion'), by('local_model:all')
  return Verdict(
      few >= all_ - 2, f'400 labels read {few:.1f}, all labels from scratch '
      f'{all_:.1f}; the same attacker without the federation '
      f'{by("local_model"):.1f}; the paper, CIFAR-10: 58.0, 59.7'
  )


def _integrated() -> Verdict:
  r = rows('fig6')
  lost = [
      (x, r[f'{x.name.removesuffix("p = 0")}p = 0.05'])
      for x in r.values() if x.label == f'{DROPPED}0'
      and x.after < alone('fig6') - 5
  ]
  return Verdict(
      all(p.after - x.after >= 5 for x, p in lost) if lost else None,
      'where p = 0 loses over 5 points to the active party alone: '
      + ('; '.join(f'lambda {x.strength:g} {x.after:.1f} to {p.after:.1f}'
                   for x, p in lost) or 'nowhere'),
  )


def beaten(record: str, own: str) -> Verdict:
  """Each baseline's reading, beside PlugVFL's of no less accuracy.

  Args:
    record: The baselines'.
    own: PlugVFL's.
  """
  ours, texts, alike, left = defended(rows(own)), [], [], []
  for r in rows(record).values():
    if r.label == 'none':
      continue
    cheap = [x for x in ours if x.loss <= max(r.loss, 0)]
    if not cheap:
      left.append(f'{r.name} {r.few:.0f}')
      continue
    best = min(cheap, key=lambda x: x.few)
    alike.append(best.few < r.few)
    texts.append(f'{r.name} {r.few:.0f} ({best.few:.0f})')
  said = "what 40 labels read, in brackets under PlugVFL's best row that costs "
  said += 'no more: ' + (', '.join(texts) or 'none')
  if left:
    said += '; not compared, as no row of PlugVFL costs so little: '
    said += ', '.join(left)
  return Verdict(all(alike) if alike else None, said)


def _others(record: str, own: str, data: str) -> list[Claim]:
  """What Figure 4 says of the others, on one data set.

  Args:
    record: Theirs.
    own: PlugVFL's.
  """

  def untrained_too() -> Verdict:
    scratch = untrained(record)['few']
    least = min(rows(record).values(), key=lambda r: r.few)
    return Verdict(
        least.few > scratch, f'least: {least.few:.1f} ({least.name}, costs '
        f'{least.loss:.1f}); an untrained extractor {scratch:.1f}'
    )

  return [
      Claim('Section 5.2, Fig. 4', 'NG, GC, PPDL and DSGD leave 40 labels more '
            f'at the same accuracy ({data})', lambda: beaten(record, own),
            (record, own)),
      Claim('ours', '... and none of them brings the attacker below an '
            f'untrained extractor ({data})', untrained_too, (record,)),
  ]


def _active() -> Verdict:
  found = rows('fig5', ACTIVE)
  return reached(
      [r for r in found.values() if r.label == 'plugvfl'], 'few', 1,
      'fig5',
  )


def _raised() -> Verdict:
  """Whether a baseline helps the active attacker; NG alone was run."""
  found = rows('fig5', ACTIVE)
  none = found['no defense'].few
  noisy = [r for r in found.values() if r.label == 'NG']
  # That NG does not says nothing of those that were not run.
  return Verdict(
      True if any(r.few > none + 2 for r in noisy) else None,
      f'no defense {none:.1f}; '
      + ', '.join(f'{r.name} {r.few:.1f}' for r in noisy)
      + '; GC, PPDL and DSGD were not run',
  )


def _malice() -> Verdict:
  mine, theirs = rows('fig5', ACTIVE), rows('fig6')
  a, p = mine['no defense'], theirs['no defense']
  return Verdict(
      a.few > p.few, f'no defense, 40 labels: {p.few:.1f} passive, '
      f'{a.few:.1f} active; all labels: {p.all:.1f}, {a.all:.1f}'
  )


def _as_printed() -> list[Claim]:
  """Section 5.2 with psi at the learning rate that Algorithm 1 has for all."""
  judge = lambda attacker, loss: lambda: reached(
      [r for r in rows('fig7_printed').values() if r.label == SLOW], attacker,
      loss, 'fig7_printed',
  )
  return [
      Claim('Section 5.2, Algorithm 1', f'an attacker with {labels} labels is '
            f'at guessing for under {loss} points, {AS_PRINTED} '
            '(Fashion-MNIST; 4 lambdas)', judge(attacker, loss),
            ('fig7_printed',))
      for attacker, labels, loss in (('few', '40', 2), ('all', 'all', 3))
  ]


def _regularized(strength: float, psi: str = '') -> Claim:
  """Whether L_R helps; `psi` as in the names of Figure 7's rows."""

  def judge() -> Verdict:
    r = rows('fig7')
    with_, without = (r[f'{psi}{name}lambda {strength:g}']
                      for name in ('', 'without L_R, '))
    return Verdict(
        without.few - with_.few > 2 and without.all - with_.all > 2,
        f'40 labels {with_.few:.1f} with, {without.few:.1f} without; all '
        f'{with_.all:.1f}, {without.all:.1f}; accuracy {with_.accuracy:.1f}, '
        f'{without.accuracy:.1f}',
    )

  return Claim(
      'Section 5.4, Fig. 7', f'L_R helps: at lambda {strength:g} both attackers'
      ' read over 2 points less with it' + (f', {AS_PRINTED}' if psi else ''),
      judge, ('fig7',),
  )


RULE = (
    'On means over seeds, limits as the claims name them. Not decided where '
    'one seed alone of three says the opposite, or more than two of ten; that '
    'three agree by chance is no rare thing (a quarter of the time, of what is '
    'as likely as not). "Some" and "best" are chosen by the same seeds.'
)
CLAIMS = tuple(map(by_each_seed, (
    *quits.claims('fig3', 'Fashion-MNIST'),
    *quits.claims('fig3_mnist', 'MNIST'),
    Claim('Table 2', 'a trained extractor and 400 labels read as much as '
          'training from scratch with all, up to 2 points (Fashion-MNIST)',
          _as_good_as_all, ('table2',)),
    *_labels('fig6', 'Fashion-MNIST'), *_labels('fig6_mnist', 'MNIST'),
    *_labels('fig6_cifar10', 'CIFAR-10, MLPs'),
    Claim('ours', 'an attacker with 40 labels who reads the gradients that it '
          'receives is at guessing for under 2 points (Fashion-MNIST)',
          lambda: _in_gradients(2), ('gradients',)),
    *_others('fig4', 'fig6', 'Fashion-MNIST'),
    *_others('fig4_cifar10', 'fig6_cifar10', 'CIFAR-10, MLPs'),
    Claim('Section 5.2, Fig. 5', 'an active attacker with 40 labels is at '
          'guessing for under 1 point', _active, ('fig5',)),
    # What the attack is for, where the paper introduces it.
    Claim('Section 5', 'without a defense active completion reads '
          'more than passive', _malice, ('fig5', 'fig6')),
    Claim('Section 5.2, Fig. 5', 'in some cases a baseline raises what active '
          'completion reads with 40 labels, by over 2 points', _raised,
          ('fig5',)),
    untestable('Section 5.2, Fig. 5', 'GC, PPDL and DSGD beside PlugVFL under '
               'active completion', 'not run; NG was'),
    Claim('Section 5.3, Fig. 6', 'with a defense, too, p = 0.05 returns 5 '
          'points after quitting', _integrated, ('fig6',)),
    *_as_printed(),
    *(_regularized(s, psi) for psi in ('', f'{SLOW}, ') for s in (0.03, 0.3)),
    *quits.claims('fig3_cifar10', 'CIFAR-10, MLPs'), quits.ON_CIFAR100,
    untestable('Tables 1-3, Figs. 3-7', 'the same with ResNet18s on CIFAR-10 '
               'and CIFAR-100', 'not run; cifar100.npz cannot be had'),
)))
