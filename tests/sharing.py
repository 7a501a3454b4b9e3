"""Experiments whose rows share programs, assembled and not run."""
import dataclasses

from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, TrainConfig,
    default_entry,
)
from vfljax.runner.experiment.jobs import jobs

DEEP = ModelConfig(algorithm='vhnn', bottom=(4,), top=(4,))


def config(*names, **changed):
  given = Config(
      experiment='families', seeds=3,
      listed=tuple(
          dataclasses.replace(
              default_entry(name),
              strengths=default_entry(name).strengths[:2],
          ) for name in names
      ),
      listed_attacks=('norm_scoring', 'model_completion'),
      data=DataConfig(name='breast_cancer', limit=120),
      model=ModelConfig(algorithm='vlr'),
      train=TrainConfig(
          epochs=2, batch_size=32, learning_rate=0.1, optimizer='sgd'
      ),  # Adam's step takes as long to compile as all the rest of a round.
      attack=AttackConfig(known=2),
  )
  return dataclasses.replace(given, **changed)


def found(given):
  table = arguments.load_data(given.data)
  return jobs(run.checks.assembled(given, table))


def swept(label, *noises, **options):
  return Entry(
      'discrete_sgd', (2,), options, label, grid=dict(noise=noises)
  )
