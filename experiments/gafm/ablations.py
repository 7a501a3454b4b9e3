"""GAFM on Spambase, Tables 3, 6, 8, 10 and 11: what each part of it does.

  python launch.py --config=experiments/gafm/ablations.py:table3 \
      --config.data.path=spambase.data

table3 (and Figure 3, which gives no numbers): without its GAN or cross-entropy
term. The paper's mean ratios of AUC to leak AUC are, median attack: GAFM 1.39,
CE only 1.39; mean attack: 1.50, 1.47. The README has ours.

table6: the deviation sigma of the noise on real labels.

table8 (and 9): the weight gamma of the GAN's gradient. The paper tries 1, 10,
15 and 20 on ISIC. On a tenth of it (Table 8) 20 leaks least at an AUC that
stays. On all of it (Table 9) 15 leaks as little (.61, .66, .68 for .62, .66,
.68), at an AUC of .66 for .68. ISIC's files are the user's to get (`isic.py`);
here they are of Spambase, whose two terms balance at 1 by Table 7.

table10: the bound Delta of the randomized response. The paper's measure is the
mean leak AUC of the three attacks over the training AUC: .727, .733, .722,
.723, .746 for the five values on all data, and .849, .856, .968, .992, 1.043 on
a tenth. `python -m experiments.gafm.choose_delta` applies the paper's rule to a
random tenth (appendix D.3), in one call.

table11: Marvell's noise on GAFM's gradients (G-M). The paper's table is on
Criteo: G-M leaks least, .60, .66 and .65, at an AUC of .64 beside GAFM's .67
and Marvell's .70.
"""
from experiments.gafm import common
from experiments.gafm.common import gafm, marvell, rows, varied
from vfljax.runner import variants
from vfljax.runner.config import Config, Entry

SIGMAS = (0.01, 0.25, 1.0)
GAMMAS = (0.2, 1.0, 5.0, 10.0, 20.0)
DELTAS = (0.05, 0.1, 0.2, 0.3, 0.5)
TABLE_6 = 'Table 6, Spambase'
PAPER = dict(table6=(
    *rows('sigma_0.01', TABLE_6, (0.93, 0.02),
          ((0.56, 0.04), (0.67, 0.05), (0.66, 0.05))),
    *rows('sigma_0.25', TABLE_6, (0.93, 0.01),
          ((0.60, 0.06), (0.67, 0.03), (0.67, 0.03))),
    *rows('sigma_1', TABLE_6, (0.94, 0.01),
          ((0.57, 0.05), (0.68, 0.04), (0.68, 0.04))),
))
LISTED = dict(
    table3=(
        gafm(), gafm('ce_only', part='ce'), gafm('gan_only', part='gan'),
        gafm('gan_only_generator', part='gan', predict='generator'),
    ),
    table6=tuple(varied('sigma', s) for s in SIGMAS),
    table8=tuple(varied('weight', w) for w in GAMMAS),
    table10=(Entry('gafm', DELTAS),),
    table11=(gafm(), marvell(), marvell('gafm_marvell', after=(gafm(),))),
)
ATTACKS = dict(table3=common.STRONGER, table11=common.STRONGER)
VARIANTS = tuple(LISTED)


def get_config(variant: str = '') -> Config:
  name = variants.choose(variant, VARIANTS)
  return common.spambase(
      name, LISTED[name], PAPER.get(name, ()), ATTACKS.get(name, ())
  )
