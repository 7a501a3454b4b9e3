"""What crosses in a round: in a list of all that there is, and of a run."""
import json

import jax.numpy as jnp
import pytest

from vfljax import defenses, target
from vfljax.attack import recipe
from vfljax.attacks import REGISTRY
from vfljax.defense import Defense, Method
from vfljax.runner.checking import checks
from vfljax.runner.cli import listing
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import Config, DataConfig, Entry, TrainConfig
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import auditing, jobs
from vfljax.runner.workdir import parts


def telltale(silent: int = 0) -> Defense:
  """Labels that a hook tells the passive party's, in rounds of another size."""
  said = []

  def look(key, batch):
    said.append(batch.labels)
    return batch

  return Defense(batch=look, send=lambda own, key, u: (
      u if len(u) == silent else u + said[-1][:, :1], jnp.zeros(())
  ))


def broken() -> Defense:
  """Nobody can trace it; a run would not start."""
  def send(own, key, u):
    raise RuntimeError('out of\norder')

  return Defense(send=send)


@pytest.fixture(autouse=True)
def few(monkeypatch):
  names = 'fedpass', 'none', 'vmask'
  some = {name: defenses.REGISTRY[name] for name in names}
  some |= dict(
      broken=Method(broken), telltale=Method(telltale),
      of_the_rest=Method(lambda: telltale(50)),
  )
  monkeypatch.setattr(defenses, 'REGISTRY', some)


def test_the_list_has_every_message_and_every_view():
  lines = listing.text('audit').splitlines()
  row = lambda name: next(x for x in lines if x.strip().startswith(name + ' '))
  assert row('none').split('  ')[-1] == 'nothing else'
  assert 'up, party 1' in row('none') and '[16, 6]  float32' in row('none')
  assert lines[lines.index(row('none')) + 1].split('  ')[-1].strip() == '24'
  assert row('fedpass').endswith('memory that the defense lends')
  assert row('vmask').endswith(
      'which it renews between epochs from auxiliary samples, memory of the '
      'defense, weights of party 0'
  )
  assert 'LEAKS: labels -> ' in row('telltale')
  assert row('broken').endswith('not audited: RuntimeError: out of')
  assert row('norm_scoring').endswith('features, sent, received, valid')
  assert 'WhiteBox' in row('cafe') and 'Ground' in row('noisy_sample')
  assert all(row(name) for name in REGISTRY)
  assert 'not known' not in '\n'.join(lines)


def test_who_wants_everything_does_not_wait_for_it(monkeypatch):
  monkeypatch.setattr(auditing, 'tables', None)
  assert 'crosses' not in listing.text('all')
  with pytest.raises(UserError, match='attacks, audit, all'):
    listing.text('colours')


def job(name, **train):
  """The first of an experiment's jobs that has this defense."""
  config = Config(
      alone=name == jobs.ALONE, attacks='', seeds=1,
      data=DataConfig('breast_cancer', parties=3),
      listed=(Entry('none'),), train=TrainConfig(batch_size=50, **train),
  )
  setting = checks.make(config, load_data(config.data))
  entry = Entry('none', label='alone') if name == jobs.ALONE else Entry(name)
  return jobs._of_entry(setting, entry)[0]


@pytest.mark.parametrize('remainder', ['drop', 'keep', 'pad'])
def test_of_a_job_its_own_federation_is_looked_at(remainder):
  found = job('none', remainder=remainder)
  samples = found.setting.sizes.train
  assert samples % 50
  own = auditing.of_job(found)
  assert [m[:2] for m in own['messages']] == [
      (1, 'up'), (1, 'down'), (2, 'up'), (2, 'down')
  ]
  (rows, width), kind, size = own['messages'][0][2:]
  assert (rows, kind, size) == (50, 'float32', 200 * width)
  sent = dict(
      drop=samples // 50 * 50, keep=samples, pad=-(-samples // 50) * 50
  )[remainder]
  assert own['epoch_bytes'] == dict.fromkeys(('up', 'down'), 8 * width * sent)
  assert own['defense'] == 'none' and own['leaks'] == own['borrowers'] == []
  assert own['made_anew_of'] == []
  # As it will be read again.
  assert json.loads(parts.dumps(parts.plain(own)))['samples'] == 50


def test_a_row_borrows_what_its_own_word_says():
  """And not what the program has that it shares with a row of another word."""
  rows = [
      Entry('fedpass', (0.5,), dict(side=side), side)
      for side in ('active', 'both')
  ]
  config = Config(
      attacks='', seeds=1, listed=(Entry('none'), *rows),
      data=DataConfig('breast_cancer'),
  )
  setting = checks.make(config, load_data(config.data))
  told = {
      job.entry.name: (auditing.of_job(job)['borrowers'], job.others)
      for job in jobs.jobs(setting) if job.entry in rows
  }
  shared = target.kind() == 'cpu'
  assert told == dict(
      active=([], dict(side=(1,)) if shared else {}),
      both=([1], dict(side=(0,)) if shared else {}),
  )


def test_nothing_is_computed_nor_kept_of_what_is_no_federation(monkeypatch):
  monkeypatch.setattr(auditing, '_of_job', None)
  assert not auditing.of_job(job(jobs.ALONE))


def test_a_smaller_last_round_is_looked_at_too():
  leaks = lambda remainder: auditing.of_job(
      job('of_the_rest', remainder=remainder)
  )['count']
  assert leaks('keep') == 2 and leaks('pad') == 0


def test_leaks_and_audits_that_cannot_be_made_are_told():
  own = auditing.of_job(job('telltale'))
  assert own['count'] == len(own['leaks']) == 2  # One a passive party.
  assert own['leaks'][0].startswith('labels -> ')
  assert auditing.of_job(job('broken')) == dict(
      defense='broken', error='RuntimeError: out of'
  )


def test_of_an_attack_on_no_usual_federation_the_view_is_not_known():
  made = recipe(needs=(lambda scene: 'is for others',))(lambda: None)
  assert auditing._seen('mine', made) == (
      'mine', 'not known: it needs a special kind of federation', ''
  )
