"""A record made by hand."""
from vfljax.runner.workdir import recording


def record(**changed):
  """One with two defenses and three seeds, of which one diverged."""
  return dict(
      format=recording.FORMAT, command='python launch.py --config=a.py',
      config={'data': {'path': 'a.csv'}, 'attack': {'when': 'max'}},
      samples='abc', title=['e', 'd', 'vhnn'], seeds=[0, 1, 2], classes=2,
      date='2026-01-01', code='', versions=dict(jax='1', python='3'),
      device='1 x cpu', seconds=dict(compiling=60, running=120), rows=[
          ['none', None, None, 'auc', 'test', [0.9, 0.8, 0.7]],
          ['none', None, None, 'alone_auc', 'test', [0.6, 0.6, 0.6]],
          ['none', None, 'norm_scoring', 'leak_auc', 'train', [0.9, 0.8, 0.7]],
          ['none', None, 'norm_scoring', 'leak_auc_last', 'train',
           [0.6, 0.6, 0.6]],
          ['iso', 5.0, None, 'auc', 'test', [0.8, 0.8, None]],
      ],
  ) | changed
