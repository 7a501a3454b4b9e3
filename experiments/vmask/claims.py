"""Verdicts on the VMask paper's claims, from records.

Each judge's docstring is its criterion, and is printed in the table.
"""
from collections.abc import Callable, Sequence
from typing import Any

from experiments.claims import Claim, Verdict, untestable
from experiments.vmask import (
    deciding, judges, judges_costs, judges_samples, judges_studies,
    judges_trades, older, tables_runs, tables_studies,
)


RULE = (
    'Each claim has its criterion. A limit is kept, or passed, clearly: '
    f'{deciding.CLEARLY}; what diverged is never kept, and one training alone '
    'can only pass it. The deviation is one sample deviation, which of three '
    'trainings is little: what is just at a limit passes to either side in one '
    'of nine.'
)


def _claim(
    where: str, text: str, judge: Callable[..., Verdict],
    records: Sequence[str], *args: Any,
) -> Claim:
  """A claim with its criterion behind the figures."""
  held_if = ' '.join((judge.__doc__ or '').split()).rstrip('.')
  if 'clearly' in held_if.lower():
    held_if += f' (clearly: {deciding.CLEARLY})'

  def decide() -> Verdict:
    found = judge(*args)
    return found._replace(because=f'{found.because}. Held if: {held_if}')

  return Claim(where, text, decide, records)


def _of_samples(
    suffix: str, setting: str, budget: int, beyond: str
) -> tuple[Claim, ...]:
  """The claims of section V-G on auxiliary samples, in a setting."""
  names = tuple(name + suffix for name in tables_studies.AUXILIARY)
  return (
      _claim('Section V-G, Figures 9, 10', 'main accuracy is kept and the '
             'attack stays within the budget with auxiliary samples that are '
             'few (64 a class), of some classes (4) or noisy (10) '
             f'({setting}, budget {budget / 100:g}{beyond})',
             judges_samples.within_budget,
             names[:3], suffix, budget),
      _claim('Section V-G, Table IV', 'with samples of another task main '
             'accuracy is kept and the attack is near or below "Scratch" '
             f'({setting})',
             judges_samples.other_task, names[3:], suffix),
      _claim('Section V-G, Figure 9', 'more auxiliary samples make a better '
             f'shadow, a lower attack and more hidden layers ({setting})',
             judges_samples.trends, names[:1], ('sizes',), suffix,
             judges_samples.MORE),
      _claim('Section V-G, Figure 10', 'fewer classes or more noise make a '
             'worse shadow, a lower imagined attack and fewer hidden layers '
             f'({setting})', judges_samples.trends, names[1:3],
             tables_studies.AUXILIARY[1:3], suffix, judges_samples.WORSE),
      _claim('ours, of Figures 9, 10, Table IV', 'other auxiliary samples '
             'leave the attacker about what the usual ones do '
             f'({setting}, budget {budget / 100:g})',
             judges_samples.near_the_usual, names, suffix),
  )


BUDGETS = {
    ('fig8', 'fig8_authors'): "MLP3, our and the authors' settings",
    ('fig8_lenet5',): 'LeNet5, our settings, imagined as it is',
}
# Setting, budget in percent, and what to say of one below scratch.
SAMPLES = {
    '_lenet5': ("LeNet5, authors' settings", 40, ''),
    '': ('MLP3, our settings', 25, ', which is below scratch, so that no '
         "layers can keep it; the paper's are above"),
}
READ = ('gradients_tm', 'table2_tm')
TABLE1 = ('table1_mlp3', 'table1_mlp3_authors', 'table1_lenet5_authors')
# What the columns of Table II are from, see `older.column`.
RECORDS = {
    of: tuple(f'{of}_{c.lower()}' for c in judges.COLUMNS)
    for of in judges.SETTINGS
}
AGAIN = dict(  # Other attack runs.
    table2=tuple(f'transcript_{c.lower()}' for c in older.AGAIN), authors=(),
)
_OTHERS = ('NG', 'CG', 'DG', 'FedPass', 'LabelDP', 'KDk', 'dCor', 'MID')
CLAIMS = (
    *(_claim('Table II', f'VMask keeps the main accuracy ({settings} settings)',
             judges.keeps_main, RECORDS[of], of)
      for of, settings in judges.SETTINGS.items()),
    *(_claim('Table II', f'the attack falls to "Scratch" ({settings} settings)',
             judges.at_scratch, RECORDS[of] + AGAIN[of], of)
      for of, settings in judges.SETTINGS.items()),
    *(_claim('Table II', 'main accuracy is kept and the attack falls to '
             '"Scratch" at the paper\'s size: 60000 images, 50 epochs '
             f'({settings} settings)', judges.at_full_size, names, *names)
      for settings, names in tables_runs.FULL.items()),
    *(_claim('Section V-G, Table II', f'VMask-AS {text} ({settings} settings)',
             judge, RECORDS[of], of, 'VMask-AS')
      for judge, text in (
          (judges.at_scratch, 'reduces the attack to "Scratch", too'),
          (judges.keeps_main, 'keeps the main accuracy, too'),
      ) for of, settings in judges.SETTINGS.items()),
    _claim('Table II', 'the attack falls to "Scratch" where the imagined '
           'attack is the real one (our settings)', judges.at_scratch,
           RECORDS['table2'], 'table2', 'VMask 50x5'),
    *(part for record, settings in (
        ('fig8', 'our'), ('fig8_authors', "authors'")
    ) for part in (
        _claim('Figure 8', f'the attack stays within every budget ({settings} '
               'settings)', judges.within_budget, (record,), record,
               '20 epochs', False),
        _claim('Figure 8', 'the same from scratch up, where the imagined '
               'attack is the real one', judges.within_budget, (record,),
               record, 'VMask 50x5', True),
    )),
    _claim('Figure 8', 'the attack stays within every budget from scratch up, '
           'where the imagined attack is the real one (LeNet5, our settings)',
           judges.recorded_within_budget, ('fig8_lenet5',), 'fig8_lenet5'),
    *(_claim('Section V-D, Figure 8', f'{text} ({network})', judge, names,
             *names)
      for names, network in BUDGETS.items() for judge, text in (
          (judges.smaller_hides_more, 'a smaller budget hides more'),
          (judges.smaller_leaves_less, 'the attack falls with the budget'),
          (judges.main_at_budgets, 'main accuracy stays that of vanilla'),
      )),
    _claim('Figure 2', 'hiding a lower layer takes more from the attack (but '
           'from ours on LeNet5, which nothing hinders)', judges.falling,
           TABLE1, ('1', '2', '3'), True, *TABLE1),
    _claim('Figure 2', 'hiding more layers takes more', judges.falling, TABLE1,
           ('1', '1,2', '1,2,3'), False, *TABLE1),
    _claim('Table I', 'critical layers are not adjacent',
           judges.not_adjacent, TABLE1, *TABLE1),
    _claim('Table V', 'more parties, one attacker: main kept, attack near '
           'scratch', judges_studies.more_parties,
           ('parties', 'table2_tm', 'transcript_tm', 'tm_full'), 'parties'),
    _claim('Table VI', 'the same where all passive parties attack (MLP3 here)',
           judges_studies.more_parties, ('attackers',), 'attackers'),
    _claim('Figure 5', 'the attack is close to "Scratch" after every epoch '
           '(MLP3, our settings)', judges_studies.close_throughout,
           ('fig5_tm',)),
    _claim('Figure 5', 'it gets less than from every other defense, after '
           'every epoch', judges_studies.lowest_throughout, ('fig5_tm',)),
    _claim('Section V-B, Figure 5', "vanilla's attack increases with each "
           'epoch (MLP3, our settings)', judges_studies.rises_each_epoch,
           ('fig5_tm',), 'none'),
    _claim('Section V-B, Figure 5', 'under dCor, LabelDP and MID it still has '
           'a rising trend', judges_studies.still_rises, ('fig5_tm',),
           ('dCor', 'LabelDP', 'MID')),
    _claim('Appendix D2, Figure 14', 'the two layers of the largest '
           'accumulated gradient norms are not adjacent (MLP3; the paper: '
           'VGG13, ResNet18)', judges_studies.top_two_apart, ('fig5_tm',)),
    _claim('Appendix D2, Figure 14', "the first layer's norm is significantly "
           "larger than all others' (MLP3; the paper: VGG13, ResNet18)",
           judges_studies.first_is_largest, ('fig5_tm',)),
    *(part for suffix, (setting, budget, beyond) in SAMPLES.items()
      for part in _of_samples(suffix, setting, budget, beyond)),
    _claim('Table II', 'VMask-RS protects worse', judges_trades.random_is_worse,
           RECORDS['table2'] + RECORDS['authors']),
    *(_claim('Table II', f'hardly any help: {", ".join(some)}',
             judges_trades.hardly_help, RECORDS['table2'], some)
      for some in (('NG', 'FedPass'), ('CG', 'DG', 'LabelDP'))),
    _claim('Table II, Figure 6', 'VMask has the best trade of accuracy and '
           'attack', judges_trades.best_trade, RECORDS['table2'], _OTHERS),
    *(_claim('Figure 6', 'VMask has the best trade at every strength '
             f'({network})', judges_trades.best_of_strengths, (record,), record)
      for record, network in (('fig6', 'MLP3'), ('fig6_lenet5', 'LeNet5'))),
    _claim('Section I', 'completion is the attack that infers most labels '
           '(MLP3, MNIST, against two on gradients)',
           judges_trades.most_by_completion, READ),
    _claim('Section I', 'existing defenses mitigate attacks on other things '
           'that are exchanged (the same two on gradients)',
           judges_trades.gradients_mitigated, READ[:1], _OTHERS),
    _claim('Section VII', 'dCor, to be combined with VMask, '
           'mitigates them', judges_trades.gradients_mitigated, READ[:1],
           ('dCor',)),
    _claim('Section IV-D', 'a party does not learn hidden layers from what it '
           'sends and receives', judges_costs.transcript_is_no_use,
           judges_costs.ADAPTIVE),
    _claim('Table III', 'training in shares costs 3.3 (MLP3) and 5.6 (LeNet5) '
           'times plain training, with all layers (VMask-ALLS) 4.9 and 7.6',
           judges_costs.costs, ()),
    untestable(
        'Section V-F, Table III', 'to a target accuracy VMask takes 531, '
        '60846, 251 and 506 times less time than ACML, SPNN, SFA and BlindFL '
        '(VGG13, CF100), and 1.8 times vanilla\'s (DistilBERT, TREC)',
        'neither data set has a configuration here, and no training in shares '
        'was run to a target accuracy',
    ),
    _claim('Table III', 'cheaper than protection by cryptography (MLP3; '
           'packed and unpacked)', judges_costs.cheaper, ('crypto',)),
    _claim('Sections V-F, V-G, Table III', 'VMask takes less time than '
           'VMask-AS and VMask-ALLS', judges_costs.faster_than_variants,
           ('table3_mlp3', 'table3_lenet5', 'table2_tm')),
    untestable(
        'Table II', 'the same for SVHN (LeNet5) and CRITEO (MLP3)',
        'not run, as neither data set was at hand; vfljax reads both, but no '
        'file of this folder asks for them',
    ),
    untestable(
        'Tables II, VIII', 'the same for VGG13, ResNet18 and texts',
        'for a GPU; `table2.py` and `table8.py` run CIFAR-10 and CINIC-10. '
        'CIFAR-100, TinyImageNet and TREC have no configuration, and '
        '`large/vmask_texts.py` trains stand-ins for the other texts, without '
        'a defense',
    ),
)
