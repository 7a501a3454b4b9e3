"""Hugging Face folders of BERT and DistilBERT: structure and weights.

config.json says how large a network is, model.safetensors has its weights under
PyTorch's names and with PyTorch's [out, in] matrices.
"""
import json
import pathlib
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

HOW = (
    'Give the folder of a BertModel or DistilBertModel in the Hugging Face '
    'layout, with config.json, model.safetensors and tokenizer.json.'
)
_LONGEST = 1 << 24  # Bytes of a config.json; it has a page or two.
_MOST = 1 << 24  # Of any size; token numbers are float32 before they get here.

# What the two architectures call the same things.
_CONFIG = dict(
    bert=dict(
        width='hidden_size', blocks='num_hidden_layers',
        heads='num_attention_heads', hidden='intermediate_size',
        dropout='hidden_dropout_prob', activation='hidden_act',
        attention_dropout='attention_probs_dropout_prob',
    ),
    distilbert=dict(
        width='dim', blocks='n_layers', heads='n_heads', hidden='hidden_dim',
        dropout='dropout', activation='activation',
        attention_dropout='attention_dropout',
    ),
)
_BLOCK = dict(
    bert={
        'attention/attend1_query': 'attention.self.query',
        'attention/attend2_key': 'attention.self.key',
        'attention/attend3_value': 'attention.self.value',
        'attention/attend4_out': 'attention.output.dense',
        'attention_norm': 'attention.output.LayerNorm',
        'feed1': 'intermediate.dense', 'feed2': 'output.dense',
        'feed_norm': 'output.LayerNorm',
    },
    distilbert={
        'attention/attend1_query': 'attention.q_lin',
        'attention/attend2_key': 'attention.k_lin',
        'attention/attend3_value': 'attention.v_lin',
        'attention/attend4_out': 'attention.out_lin',
        'attention_norm': 'sa_layer_norm', 'feed1': 'ffn.lin1',
        'feed2': 'ffn.lin2', 'feed_norm': 'output_layer_norm',
    },
)
_BLOCKS = dict(bert='encoder.layer', distilbert='transformer.layer')


class Structure(NamedTuple):
  """The sizes of an encoder, as its config.json states them.

  Attributes:
    kind: 'bert' or 'distilbert'.
    width: Of hidden states.
    blocks: Of attention and linear layers.
    heads: Of attention.
    hidden: Width between a block's two linear layers.
    words: Size of the vocabulary.
    positions: Most tokens of a text.
    types: Of tokens; 0 for DistilBERT, which has none.
    padding: Number of the padding token.
    epsilon: Of layer norms.
    dropout: Of hidden states, in training.
    attention_dropout: Of attention, in training.
    activation: Between a block's two linear layers.
  """

  kind: str
  width: int
  blocks: int
  heads: int
  hidden: int
  words: int
  positions: int
  types: int
  padding: int
  epsilon: float
  dropout: float
  attention_dropout: float
  activation: str


def read_structure(path: str) -> Structure:
  """What config.json in the folder `path` states.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if it is no JSON, lacks a number or is of another architecture.
  """
  file = place(path, 'config.json')
  try:
    if file.stat().st_size > _LONGEST:
      raise ValueError('it is too long')
    config = json.loads(file.read_text('utf-8'))
    if not isinstance(config, dict):
      raise ValueError('it has no names')
    kind = config['model_type']
    if kind not in tuple(_CONFIG):
      raise ValueError(f'the model_type is {kind!r}, not bert or distilbert')
    if config.get('position_embedding_type', 'absolute') != 'absolute':
      raise ValueError('position embeddings are not absolute')
    return _structure(kind, config)
  except KeyError as error:
    raise ValueError(f'{file} has no {_brief(error)}. {HOW}') from None
  except (ValueError, TypeError, OverflowError, RecursionError) as error:
    raise ValueError(f'{file} is not understood: {_brief(error)}. {HOW}') from (
        None
    )


def _structure(kind: str, config: dict[str, Any]) -> Structure:
  """The sizes, each in its range.

  Raises:
    KeyError: if one is not there.
    ValueError: if one is none, naming it.
  """
  name = _CONFIG[kind]
  size = lambda key, low=1: _whole(key, config[key], low)
  share = lambda key: _fraction(key, config[key])
  words = size('vocab_size')
  found = Structure(
      kind=kind, width=size(name['width']), blocks=size(name['blocks']),
      heads=size(name['heads']), hidden=size(name['hidden']), words=words,
      positions=size('max_position_embeddings'),
      types=size('type_vocab_size') if kind == 'bert' else 0,
      padding=_whole('pad_token_id', config.get('pad_token_id') or 0, 0),
      epsilon=_fraction(
          'layer_norm_eps', config.get('layer_norm_eps', 1e-12)
      ),
      dropout=share(name['dropout']),
      attention_dropout=share(name['attention_dropout']),
      activation=config[name['activation']],
  )
  if found.width % found.heads:
    raise ValueError(f'{found.width} units in {found.heads} heads')
  if found.padding >= words:
    raise ValueError(f'pad_token_id {found.padding} is none of {words} words')
  if not isinstance(found.activation, str):
    raise ValueError(f'{name["activation"]} is no name of a function')
  return found


def _whole(key: str, value: Any, low: int) -> int:
  if isinstance(value, bool) or not isinstance(value, int):
    raise ValueError(f'{key} must be a whole number; it is {value!r}')
  if not low <= value <= _MOST:
    raise ValueError(f'{key} must be {low} to {_MOST}; it is {value!r}')
  return value


def _fraction(key: str, value: Any) -> float:
  """A number in [0, 1), of its own type: programs have it as constant."""
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    raise ValueError(f'{key} must be a number; it is {value!r}')
  if not 0 <= value < 1:
    raise ValueError(f'{key} must be in [0, 1); it is {value!r}')
  return value


def _brief(error: BaseException) -> str:
  """The first line of a message, cut off: a file can hold long words."""
  first = (str(error).splitlines() or [type(error).__name__])[0]
  return first if len(first) <= 200 else f'{first[:200]}...'


def read_weights(path: str, like: Structure) -> dict[str, Any]:
  """The parameters of `encoder.Encoder` from model.safetensors, float32.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if it is damaged, lacks a weight or has one of another shape or
      that is no finite number, or if safetensors is not installed.
  """
  file = place(path, 'model.safetensors')
  stored = _stored(file)
  params: dict[str, Any] = {}
  for name, old, kind in _names(like):
    shapes = _shapes(like, name, kind)
    for leaf, shape in shapes.items():
      key = f'{old}.{"bias" if leaf == "bias" else "weight"}'
      if key not in stored:
        raise ValueError(f'{file} has no {key}. {HOW}')
      value = stored[key]
      # Of bfloat16, NumPy alone knows not that it is a number.
      if not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(f'{file}: {key} has no fractions but {value.dtype}.')
      with np.errstate(over='ignore'):  # An infinity is refused here.
        value = np.asarray(value, np.float32)
      if not np.isfinite(value).all():
        raise ValueError(
            f'{file}: {key} has NaN or infinite weights; get the file again.'
        )
      value = value.T if leaf == 'kernel' else value
      if value.shape != shape:
        raise ValueError(
            f'{file}: {key} is {value.shape}, config.json says {shape}.'
        )
      _put(params, f'{name}/{leaf}', np.ascontiguousarray(value))
  return params


def place(path: str, name: str) -> pathlib.Path:
  """The file `name` in the folder `path`.

  Raises:
    FileNotFoundError: if it is not there, with how to get it.
  """
  if not path:
    raise FileNotFoundError(f"No path to an encoder's folder given. {HOW}")
  try:
    file = pathlib.Path(path).expanduser() / name
  except RuntimeError as error:  # No such user's home.
    raise FileNotFoundError(f'{path}: {error}') from error
  if not file.is_file():  # Nor is it a device or a pipe, which have no end.
    raise FileNotFoundError(f'{file} is not there. {HOW}')
  return file


def _stored(file: pathlib.Path) -> dict[str, np.ndarray]:
  """The file's arrays, without what surrounds an encoder in its names."""
  try:
    from safetensors import numpy as arrays
  except ImportError as error:
    raise ValueError(
        'Encoders need safetensors: pip install vfljax[text].'
    ) from error
  try:
    found = arrays.load_file(file)
  except (AttributeError, KeyError) as error:  # NumPy has no such type.
    kind = getattr(error, 'name', '') or _brief(error)
    raise ValueError(
        f'{file} has numbers of type {kind}; save it in float32.'
    ) from error
  except BaseException as error:
    # A panic of a library in Rust is no `Exception`.
    panic = type(error).__name__ == 'PanicException'
    if not panic and not isinstance(error, Exception):
      raise
    raise ValueError(f'{file} cannot be read: {_brief(error)}.') from error
  bare = {}
  for name, value in found.items():
    name = name.removeprefix('bert.').removeprefix('distilbert.')
    # Old checkpoints call a layer norm's weight and bias so.
    name = name.replace('LayerNorm.gamma', 'LayerNorm.weight')
    name = name.replace('LayerNorm.beta', 'LayerNorm.bias')
    if name in bare:
      raise ValueError(f'{file} has {name[:200]!r} twice, by two names.')
    bare[name] = value
  return bare


def _names(like: Structure):
  """(name here, name in the file, what it is) of every layer."""
  yield 'embed1_word', 'embeddings.word_embeddings', 'table'
  yield 'embed2_position', 'embeddings.position_embeddings', 'table'
  if like.types:
    yield 'embed3_type', 'embeddings.token_type_embeddings', 'table'
  yield 'embed_norm', 'embeddings.LayerNorm', 'norm'
  for i in range(like.blocks):
    for name, old in _BLOCK[like.kind].items():
      kind = 'norm' if name.endswith('norm') else 'dense'
      yield f'block{i:02}/{name}', f'{_BLOCKS[like.kind]}.{i}.{old}', kind


def _shapes(like: Structure, name: str, kind: str) -> dict[str, tuple]:
  width = like.width
  if kind == 'norm':
    return dict(scale=(width,), bias=(width,))
  if kind == 'table':
    rows = dict(
        embed1_word=like.words, embed2_position=like.positions,
        embed3_type=like.types,
    )
    return dict(embedding=(rows[name], width))
  into = like.hidden if name.endswith('feed2') else width
  out = like.hidden if name.endswith('feed1') else width
  return dict(kernel=(into, out), bias=(out,))


def _put(tree: dict, path: str, value: np.ndarray) -> None:
  *folders, leaf = path.split('/')
  for folder in folders:
    tree = tree.setdefault(folder, {})
  tree[leaf] = value
