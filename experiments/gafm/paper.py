"""What GAFM's paper prints beside the numbers that the configs have."""

# Table 2, Spambase: worst and best AUC of ten seeds, percent.
RANGES = dict(gafm='91-95', marvell='59-82', max_norm='95-95', none='95-96')
# The same of IMDB.
RANGES_IMDB = dict(
    gafm='88-89', marvell='71-89', max_norm='89-90', none='89-90'
)
# Table 3, Spambase: AUC over leak AUC, median and mean attack.
RATIOS = dict(gafm=(1.39, 1.50), ce_only=(1.39, 1.47))
# Table 10, Spambase: leak AUC over training AUC, by Delta.
CHOSEN = {
    'all data': (0.727, 0.733, 0.722, 0.723, 0.746),
    'a tenth, 5 times': (0.849, 0.856, 0.968, 0.992, 1.043),
}
# The same of IMDB, all data.
CHOSEN_IMDB = (0.627, 0.648, 0.895, 0.833, 0.833)
# Table 7, Spambase: mean gradients of the GAN's and the cross-entropy's loss.
TERMS = (0.054, -0.049)
# The same of IMDB.
TERMS_IMDB = (0.006, -0.006)
