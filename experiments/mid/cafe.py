"""MID, Figure 6 and Tables 1 and 2: CAFE, four parties with a quarter each.

  python launch.py --config=experiments/mid/cafe.py \\
      --config.data.path=mnist.npz

The active party rebuilds one passive party's samples from the gradients of its
weights, before training (`psnr_start`; CAFE's authors attack a network that
hardly learns, at a rate of 1e-6) and after it (`psnr_end`), beside that of
guessing the mean image. The attacked party has MID, with a linear decoder; DP-G
is clipping to 3 and noise on the passive parties' own gradients. CAFE's network
with 16 and 32 channels for 64 and 128, a pool of 100 samples for 800, and 1500
steps for 10000 (MNIST) or 20000 (CIFAR-10), so that two cores can do it
(--config.model.options, --config.attack.cafe.pool and cafe.steps).
--config.data.name=cifar10 for Tables 1 and 2, whose numbers are the paper's in
the report; of Table 2's rows only those of Table 1 are run.
"""
from experiments.mid import common
from vfljax.runner.config import AttackConfig, Config, Entry, Paper

LAMBDAS = (0.0, 1.0, 100.0, 1e4)  # Table 1's.
STEPS = 1500
ONE = dict(side='passive', hidden=0, parties=(1,))
MID = Entry('mid', LAMBDAS, ONE, label='MID')
DP_G = Entry('dp_weights', (0.1,), label='DP-G')
TABLE2 = {  # CIFAR-10: PSNR and main accuracy.
    ('none', None): (21.4417, 0.6015), ('MID', 0.0): (20.2628, 0.5956),
    ('MID', 0.1): (20.0116, 0.5944), ('MID', 1.0): (18.6929, 0.5920),
    ('MID', 10.0): (15.4265, 0.5908), ('MID', 100.0): (8.6667, 0.5881),
    ('MID', 1e3): (7.1028, 0.5873), ('MID', 1e4): (6.1831, 0.5844),
    ('DP-G', 0.1): (7.1257, 0.2754), ('DP-G', 1.0): (7.1126, 0.2742),
    ('DP-G', 10.0): (7.1174, 0.2722),
}


def paper() -> tuple[Paper, ...]:
  """Table 2's CIFAR-10 columns."""
  source = 'Zou et al. 2023, Table 2, CIFAR-10'
  found = []
  for (name, s), (psnr, accuracy) in TABLE2.items():
    for metric, value, attack in (
        ('accuracy', accuracy, None), ('psnr_start', psnr, 'cafe'),
        ('psnr_end', psnr, 'cafe'),
    ):
      found.append(Paper(name, metric, value, None, attack, s, source))
  return tuple(found)


def get_config() -> Config:
  made = common.config(
      'cafe', (common.NONE, MID, DP_G), ('cafe',),
      AttackConfig(replay_rounds=150, own=dict(
          cafe=dict(pool=100, steps=STEPS)
      )),
      paper=paper(),
  )
  return common.on(
      made, data=dict(parties=4, split='quadrants', limit=5000),
      model=dict(
          name='cafe', trainable_top=True, top=(),
          options='channels=(16, 32);hidden=(64, 32)',
      ),
      train=dict(batch_size=64),
  )
