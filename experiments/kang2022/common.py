"""What the experiments share: defenses, strengths, attacks, models.

Strengths are those of section 8.1, models those of Tables 2 and 9. The paper
gives neither optimizer, batch size nor epochs: those here are ours, chosen so
that the undefended federation converges.
"""
from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, Paper, TrainConfig,
    Variant, default_entry,
)

PRUNING_AND_NOISE = (
    'none', 'gradient_compression', 'discrete_sgd', 'max_norm', 'dp_laplace',
    'iso',
)
# Zhang et al. mix two images of ImageNet with Beta(a, a), a from 0.1 to 0.4.
MILD_MIXUP = Entry(
    'mixup', (2.0, 3.0, 4.0), dict(concentration=0.3), 'mixup_mild'
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
          epochs=epochs, batch_size=64, learning_rate=1e-2, measure_every=1,
      ),
      attack=AttackConfig(own=dict(
          gradient_inversion=dict(steps=300, restarts=2)
      )),
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
  and 2 FC on top; 10000 training images are the attacker's. Its shadow has
  PRECODE's bottleneck, too; that of model_inversion:undefended has not.
  """
  epochs = 5 if algorithm == 'vhnn' else 8
  return Config(
      experiment=name,
      seeds=3,
      alone=False,
      listed=(
          *(default_entry(d) for d in defenses),
          *((MILD_MIXUP,) if 'mixup' in defenses else ()),
      ),
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
      variants=tuple(
          Variant(f'model_inversion:{shadow}', dict(shadow=shadow))
          for shadow in ('conv', 'fc')
      ) + (Variant('model_inversion:undefended', dict(defended=False)),),
      paper=paper,
  )


def vnn(
    name: str, algorithm: str, data: DataConfig, *, classes: int = 2,
    network: str = '', buckets: int = 0, epochs: int = 20,
    paper: tuple[Paper, ...] = (),
) -> Config:
  """Evaluation settings 4 and 5: networks, NS and DS, model completion.

  Model completion knows 40 labels in all, 80 of CIFAR-10 (the paper's worst
  case). Its variants, chosen with `--config.attacks=`, know as many as
  Figure 11: 'model_completion:80' and so on.
  """
  total = 80 if data.name == 'cifar10' else 40
  marvell = ('marvell',) if classes == 2 else ()
  scoring = ('norm_scoring', 'direction_scoring') if classes == 2 else ()
  return Config(
      experiment=name,
      seeds=10,
      listed=tuple(default_entry(d) for d in (*PRUNING_AND_NOISE, *marvell)),
      listed_attacks=(*scoring, 'model_completion'),
      variants=tuple(
          Variant(f'model_completion:{n}', dict(known=n // classes))
          for n in (40, 80, 160, 200, 400)
      ),
      data=data,
      model=ModelConfig(
          algorithm=algorithm, name=network, buckets=buckets,
          width=32 if network else 0, bottom=(64, 32), top=(32,),
      ),
      train=TrainConfig(
          epochs=epochs, batch_size=64, learning_rate=1e-3,
          measure_every=1,
      ),
      attack=AttackConfig(known=total // classes),
      paper=paper,
  )
