"""MLP3, VMask's network for tables (its Table VII): three linear layers.

The paper gives no widths. With 512-256-64 and nothing after the last layer, its
attack from scratch comes out as printed (embeddings of width 64 from 392
pixels).
"""
from vfljax.nets import base
from vfljax.types import Net


def mlp3(
    width: int = 64, hidden: tuple[int, int] = (512, 256),
    activation: str = 'relu', dropout: float = 0.0, norm: str = 'none',
    final: str = 'linear',
) -> Net:
  """Three linear layers, 512-256-`width`: [batch, ...] to [batch, width].

  The authors' code has hidden=(256, 128), width=128, norm='batch' and
  final='relu', and a linear cut layer after it (github.com/tanjuntao/Backdoor).

  Raises:
    ValueError: if there are not two hidden layers, or as `base.mlp`.
  """
  if len(hidden) != 2:
    raise ValueError(f'mlp3 has two hidden layers; got widths {hidden}.')
  return base.mlp(
      *hidden, width, activation=activation, dropout=dropout, norm=norm,
      final=final,
  )
