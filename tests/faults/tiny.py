"""An experiment without training: all that the disk sees of one, in 0.1 s."""
import jax.numpy as jnp
import numpy as np

from vfljax.runner.machine import disk
from vfljax.runner.workdir import checkpoints, store

UNITS = ('none', 'iso/0.1', 'marvell/2')
CONFIG = dict(data=dict(name='tiny', path=''), seeds=2, rates=[0.1, 2.5])
STEPS = 4


class Left(Exception):
  """The experiment was left in the middle."""


def run(place, leave_at=None, saves=STEPS):
  """Runs what is not done yet, and reads back what a report would.

  Args:
    leave_at: (unit, step) after whose checkpoint to leave.
    saves: How many of a unit's steps are saved.
  """
  with disk.alone(place):
    work = store.open_workdir(place, CONFIG, UNITS)
    for number, unit in enumerate(UNITS):
      if not work.done(unit):
        _unit(work, number, unit, leave_at, saves)
  return (
      store.read_config(place), store.read_results(place),
      store.read_timings(place), store.read_curves(place),
  )


def _unit(work, number, unit, leave_at, saves):
  state = dict(w=jnp.full(3, float(number)), history=np.zeros((2, STEPS)))
  done, state = work.load_checkpoint(unit, state) or (0, state)
  for step in range(done, STEPS):
    history = np.array(state['history'])
    history[:, step] = np.float32(state['w'][0])
    state = dict(w=state['w'] * 1.5 + step, history=history)
    if step >= STEPS - saves and step + 1 < STEPS:
      work.save_checkpoint(unit, step + 1, checkpoints.snapshot(state))
    if leave_at == (unit, step + 1):
      raise Left
  rows = [
      dict(
          experiment='tiny', dataset='tiny', algorithm='vlr', defense=unit,
          strength=None, attack=None, seed=seed, metric='auc', split='test',
          value=float(state['w'][seed]),
      ) for seed in range(2)
  ]
  timing = dict(run_seconds=1.0, classes=2, device='1 x cpu')
  work.save(unit, rows, timing, dict(auc=state['history']))


def results(place):
  """What must be the same bytes whatever has happened."""
  return (place / 'results.jsonl').read_bytes()
