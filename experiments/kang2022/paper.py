"""The paper's numbers: Tables 10 to 17, as measurements that ours stand beside.

The paper prints utility losses and leakages, in points, at the best strength.
The report compares measurements, so they are converted: AUC = 0.5 + leakage,
and utility = undefended utility - loss. The tables do not say which strength is
best; the text names three with a good trade-off (section 8.4: DP-L's 0.1 on
Credit and 0.01 on Vehicle, ISO's 2.75 against MC on Vehicle). With `strength`
None each of ours is compared. Each table has its own best strengths, so a
protection's loss differs between Tables 10, 11 and 12. A loss stands only
beside the leakages of its own table.
"""
from vfljax.runner.config import Paper

SOURCE = 'Kang et al. (2022), Table '

# Protection: utility loss, then the leakages of NS, DS and DL; 'none' also has
# the utility. Table 10.
GRADIENTS = dict(
    credit=(73.2, dict(
        none=(0, 46.9, 50.0, 50.0),
        gradient_compression=(11.2, 10.1, 3.3, 11.6),
        discrete_sgd=(7.5, 25.9, 24.6, 33.1), max_norm=(0.1, 6.2, 18.1, 19.8),
        dp_laplace=(0.9, 1.1, 2.6, 3.7), iso=(0.8, 0.8, 2.2, 2.6),
    )),
    vehicle=(95.1, dict(
        none=(0, 5.6, 50.0, 50.0), gradient_compression=(2.3, 0.4, 1.3, 4.6),
        discrete_sgd=(2.8, 0.1, 0.3, 0.2), max_norm=(0.3, 0.4, 5.1, 13.9),
        dp_laplace=(1.0, 0.4, 1.3, 6.1), iso=(1.0, 0.6, 0.8, 3.1),
    )),
)
# Protection: utility loss, then the leakages of RR and GI. Table 11.
MODEL_GRADIENTS = dict(
    credit=dict(
        none=(0, 16.0, 18.1), gradient_compression=(3.5, 14.8, 12.7),
        discrete_sgd=(0.6, 15.5, 16.5), max_norm=(0.1, 7.8, 15.8),
        dp_laplace=(0.9, 1.4, 0.8), iso=(0.8, 1.4, 1.0),
    ),
    vehicle=dict(
        none=(0, 26.4, 36.1), gradient_compression=(2.3, 10.9, 9.2),
        discrete_sgd=(2.8, 0.3, 2.1), max_norm=(0.3, 14.1, 25.9),
        dp_laplace=(1.0, 6.7, 8.3), iso=(1.0, 5.0, 8.3),
    ),
)
# Protection: utility loss, then the leakage of MC. Table 12.
COMPLETION = dict(
    credit=dict(
        none=(0, 21.8), gradient_compression=(3.5, 17.5),
        discrete_sgd=(0.5, 19.9), max_norm=(0.1, 21.7),
        dp_laplace=(1.0, 19.9), iso=(0.8, 19.6),
    ),
    vehicle=dict(
        none=(0, 41.7), gradient_compression=(2.3, 0.0),
        discrete_sgd=(0.9, 41.0), max_norm=(0.3, 40.5),
        dp_laplace=(1.0, 39.2), iso=(0.8, 1.0),
    ),
)
# Algorithm and data set: utility; protection: utility loss, NS, DS. Tables 13
# (VHNN) and 14 (VSNN).
VNN = dict(
    vhnn=dict(
        nuswide2_imb=(93.5, dict(
            none=(0, 36.9, 50), gradient_compression=(0.2, 33.9, 38.9),
            discrete_sgd=(3.5, 2.3, 0.4), max_norm=(0.7, 3.1, 9.9),
            dp_laplace=(1.4, 1.8, 3.7), iso=(0.7, 1.9, 4.6),
            marvell=(1.0, 0.7, 5.9),
        )),
        criteo=(70.1, dict(
            none=(0, 49.9, 50.0), gradient_compression=(0.5, 49.7, 49.8),
            discrete_sgd=(0.7, 1.2, 0.3), max_norm=(1.5, 5.9, 22.3),
            dp_laplace=(1.8, 0.8, 1.6), iso=(1.5, 0.6, 4.3),
            marvell=(1.4, 1.1, 4.9),
        )),
        nuswide2_bal=(99.0, dict(
            none=(0, 17.7, 50.0), gradient_compression=(0.0, 6.3, 5.8),
            discrete_sgd=(0.3, 0.7, 0.3), max_norm=(0.2, 0.7, 1.4),
            dp_laplace=(0.2, 0.5, 1.1), iso=(0.3, 0.7, 1.0),
            marvell=(0.1, 0.4, 2.0),
        )),
        bhi=(97.4, dict(
            none=(0, 33.3, 50.0), gradient_compression=(0.3, 31.1, 47.7),
            discrete_sgd=(0.3, 24.7, 27.5), max_norm=(0.6, 1.5, 3.5),
            dp_laplace=(0.9, 3.6, 6.1), iso=(1.0, 3.4, 4.5),
            marvell=(0.4, 0.8, 3.8),
        )),
    ),
    vsnn=dict(
        nuswide2_imb=(89.3, dict(
            none=(0, 39.8, 50.0), gradient_compression=(0.2, 49.1, 49.9),
            discrete_sgd=(13.2, 1.4, 0.6), max_norm=(1.1, 5.6, 13.6),
            dp_laplace=(1.5, 3.8, 7.1), iso=(0.8, 6.8, 9.8),
            marvell=(1.0, 2.1, 9.6),
        )),
        criteo=(68.2, dict(
            none=(0, 49.9, 50.0), gradient_compression=(0.6, 49.9, 50.0),
            discrete_sgd=(1.9, 32.1, 19.4), max_norm=(17.6, 4.2, 11.1),
            dp_laplace=(13.2, 0.3, 1.8), iso=(4.6, 13.3, 17.8),
            marvell=(4.9, 8.3, 13.3),
        )),
        nuswide2_bal=(96.1, dict(
            none=(0, 20.5, 50.0), gradient_compression=(0.1, 12.7, 29.5),
            discrete_sgd=(11.7, 7.7, 6.8), max_norm=(0.4, 1.0, 3.8),
            dp_laplace=(0.4, 0.8, 2.2), iso=(0.4, 1.1, 2.4),
            marvell=(0.4, 0.2, 3.1),
        )),
        bhi=(93.7, dict(
            none=(0, 36.2, 50.0), gradient_compression=(0.7, 34.5, 48.4),
            discrete_sgd=(0.2, 37.2, 50.0), max_norm=(0.3, 2.6, 6.3),
            dp_laplace=(0.5, 6.0, 14.0), iso=(0.5, 4.9, 8.8),
            marvell=(0.3, 2.8, 9.3),
        )),
    ),
)
# Of how many scores a takeaway of section 8 is so in the paper's own tables,
# which is what its "generally" and "have difficulty" leave room for: 4 or more
# of ISO and DP-L (Tables 10, 11) and of Marvell (13, 14), below 4 against MC
# (12; 15 without BHI, where it is 4 without a protection).
OFTEN = dict(vlr_1=(8, 8), vlr_2=(9, 10), vnn_1=(6, 8), vnn_2=(27, 27))
# How many scores are the same in Tables 13 (VHNN) and 14 (VSNN), and of all.
EQUAL = (13, 24)
# Undefended accuracy, Table 15.
_TEN_CLASSES = {
    ('vhnn', 'nuswide10'): 79.2, ('vhnn', 'cifar10'): 74.0,
    ('vsnn', 'cifar10'): 65.7,
}
# Protection: utility loss, leakage of MI (SSIM). Table 16.
INVERSION = dict(
    vhnn=(90.67, {
        ('none', None): (0, 0.34), ('mixup', 2): (0.16, 0.22),
        ('mixup', 3): (2.32, 0.12), ('mixup', 4): (3.08, 0.07),
        ('precode', None): (0.07, 0.02),
    }),
    vsnn=(86.58, {
        ('none', None): (0, 0.52), ('mixup', 2): (0.10, 0.30),
        ('mixup', 3): (1.67, 0.19), ('mixup', 4): (1.98, 0.17),
        ('precode', None): (0.68, 0.02),
    }),
)
# SSIM with the same structure, other convolutions, fully connected. Table 17.
STRUCTURES = dict(vhnn=(0.34, 0.26, 0.08), vsnn=(0.52, 0.22, 0.01))
SHADOWS = ('model_inversion', 'model_inversion:conv', 'model_inversion:fc')


def vlr(data: str) -> tuple[Paper, ...]:
  """Tables 10 to 12 for 'credit' or 'vehicle', each with its own losses."""
  utility, table = GRADIENTS[data]
  rows = []
  for number, found, names in (
      ('10', table, ('norm_scoring', 'direction_scoring', 'direct_label')),
      ('11', MODEL_GRADIENTS[data],
       ('residue_reconstruction', 'gradient_inversion')),
      ('12', COMPLETION[data], ()),
  ):
    for defense, (loss, *leaks) in found.items():
      rows.append(_utility(defense, utility - loss, number, 'auc'))
      # MC is of the trained model alone and has a metric of its own, below.
      rows += [_leak(defense, *pair, number) for pair in zip(names, leaks)]
  rows += [
      Paper(
          defense, 'auc_last', 0.5 + leak / 100, attack='model_completion',
          source=SOURCE + '12',
      )
      for defense, (_, leak) in COMPLETION[data].items()
  ]
  return tuple(rows)


def vnn(algorithm: str, data: str) -> tuple[Paper, ...]:
  """Table 13 or 14 for one data set; none for ten classes, see Table 15.

  Table 15's leakages of model completion are differences to local models whose
  scores it does not give, so no measurement of ours can stand beside them.
  """
  if data not in VNN[algorithm]:
    undefended = _TEN_CLASSES.get((algorithm, data))
    if undefended is None:
      return ()
    return (_utility('none', undefended, '15', 'accuracy'),)
  utility, table = VNN[algorithm][data]
  number = dict(vhnn='13', vsnn='14')[algorithm]
  rows = []
  for defense, (loss, ns, ds) in table.items():
    rows.append(_utility(defense, utility - loss, number, 'auc'))
    rows.append(_leak(defense, 'norm_scoring', ns, number))
    rows.append(_leak(defense, 'direction_scoring', ds, number))
  return tuple(rows)


def inversion(algorithm: str) -> tuple[Paper, ...]:
  """Table 16's column."""
  utility, table = INVERSION[algorithm]
  rows = []
  for (defense, strength), (loss, ssim) in table.items():
    main = _utility(defense, utility - loss, '16', 'accuracy')
    main.strength = strength
    rows += [main, Paper(
        defense, 'ssim', ssim, attack='model_inversion', strength=strength,
        source=SOURCE + '16',
    )]
  return tuple(rows)


def structures(algorithm: str) -> tuple[Paper, ...]:
  """Table 17's column."""
  rows = [
      Paper('none', 'ssim', ssim, attack=attack, source=SOURCE + '17')
      for attack, ssim in zip(SHADOWS, STRUCTURES[algorithm])
  ]
  utility = INVERSION[algorithm][0]
  return (_utility('none', utility, '17', 'accuracy'), *rows)


def _utility(defense: str, points: float, table: str, metric: str) -> Paper:
  return Paper(defense, metric, round(points, 4) / 100, source=SOURCE + table)


def _leak(defense: str, attack: str, points: float, table: str) -> Paper:
  return Paper(
      defense, 'leak_auc', 0.5 + points / 100, attack=attack,
      source=SOURCE + table,
  )
