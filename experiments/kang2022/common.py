"""What the experiments share: defenses, strengths, attacks, models.

Strengths are those of section 8.1, models those of Tables 2 and 9. The paper
gives neither optimizer, batch size nor epochs: those here are ours, chosen so
that the undefended federation converges.
"""
from experiments.config import (
    AttackConfig, Config, DataConfig, ModelConfig, Paper, TrainConfig,
    default_entry,
)

PRUNING_AND_NOISE = (
    'none', 'gradient_compression', 'discrete_sgd', 'max_norm', 'dp_laplace',
    'iso',
)
VLR_ATTACKS = (
    'norm_scoring', 'direction_scoring', 'direct_label',
    'residue_reconstruction', 'gradient_inversion', 'model_completion',
)


def vlr(
    name: str, data: DataConfig, paper: tuple[Paper, ...] = ()
) -> Config:
  """Evaluation settings 1-3 (Table 6): vertical logistic regression."""
  epochs = 30
  return Config(
      experiment=name,
      seeds=10,
      listed=tuple(default_entry(d) for d in PRUNING_AND_NOISE),
      listed_attacks=VLR_ATTACKS,
      data=data,
      model=ModelConfig(algorithm='vlr'),
      train=TrainConfig(
          epochs=epochs, batch_size=64, learning_rate=1e-2,
          measure_every=epochs,
      ),
      attack=AttackConfig(inversion_steps=300, inversion_restarts=2),
      paper=paper,
  )
