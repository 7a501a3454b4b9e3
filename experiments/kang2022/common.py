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


def inversion(
    name: str, algorithm: str, attacks: tuple[str, ...] = (),
    defenses: tuple[str, ...] = ('none', 'mixup', 'precode'),
    paper: tuple[Paper, ...] = (),
) -> Config:
  """Evaluation setting 6: model inversion on Fashion-MNIST.

  Party B holds the upper half of every image; party A the lower one and, in
  VSNN, labels only. 2 Conv bottoms (8 and 16 channels of 3x3, one pooling)
  and 2 FC on top; 10000 training images are the attacker's.
  """
  epochs = 5 if algorithm == 'vhnn' else 8
  return Config(
      experiment=name,
      seeds=3,
      listed=tuple(default_entry(d) for d in defenses),
      listed_attacks=attacks or (
          'model_inversion', 'constant_image', 'mean_image',
      ),
      data=DataConfig(
          name='fashion_mnist', path='fashion_mnist.npz', split='bottom_top',
          scale='none',
      ),
      model=ModelConfig(
          algorithm=algorithm, channels=(8, 16), bottom=(), top=(128,),
      ),
      train=TrainConfig(
          epochs=epochs, batch_size=64, learning_rate=1e-3,
          measure_every=epochs,
      ),
      attack=AttackConfig(auxiliary=10000),
      paper=paper,
  )
