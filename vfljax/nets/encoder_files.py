"""Hugging Face folders of BERT and DistilBERT: structure and weights.

config.json says how large a network is, model.safetensors has its weights under
PyTorch's names and with PyTorch's [out, in] matrices.
"""
import json
import pathlib
from typing import Any, NamedTuple

import numpy as np

HOW = (
    'Give the folder of a BertModel or DistilBertModel in the Hugging Face '
    'layout, with config.json, model.safetensors and tokenizer.json.'
)
Pairs = dict[str, str]  # Names here: names in the file, without endings.

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
    config = json.loads(file.read_text('utf-8'))
    kind = config['model_type']
    if kind not in _CONFIG:
      raise ValueError(f'the model_type is {kind!r}, not bert or distilbert')
    if config.get('position_embedding_type', 'absolute') != 'absolute':
      raise ValueError('position embeddings are not absolute')
    own: dict[str, Any] = {k: config[v] for k, v in _CONFIG[kind].items()}
    found = Structure(
        kind=kind, words=config['vocab_size'],
        positions=config['max_position_embeddings'],
        types=config['type_vocab_size'] if kind == 'bert' else 0,
        padding=config.get('pad_token_id') or 0,
        epsilon=config.get('layer_norm_eps', 1e-12), **own,
    )
    if found.width % found.heads:
      raise ValueError(f'{found.width} units in {found.heads} heads')
    return found
  except KeyError as error:
    raise ValueError(f'{file} has no {error}. {HOW}') from None
  except (ValueError, TypeError) as error:
    raise ValueError(f'{file} is not understood: {error}. {HOW}') from None


def read_weights(path: str, like: Structure) -> dict[str, Any]:
  """The parameters of `encoder.Encoder` from model.safetensors, float32.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if it is damaged, lacks a weight or has one of another shape, or
      if safetensors is not installed.
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
      value = np.asarray(stored[key], np.float32)
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
  file = pathlib.Path(path).expanduser() / name
  if not file.is_file():
    raise FileNotFoundError(f'{file} is not there. {HOW}')
  return file


def _stored(file: pathlib.Path) -> dict[str, np.ndarray]:
  """The file's arrays, without what surrounds an encoder in its names."""
  try:
    from safetensors import SafetensorError, numpy as arrays
  except ImportError as error:
    raise ValueError(
        'Encoders need safetensors: pip install vfljax[text].'
    ) from error
  try:
    found = arrays.load_file(file)
  except (SafetensorError, TypeError, KeyError) as error:
    raise ValueError(f'{file} cannot be read: {error}.') from error
  bare = {}
  for name, value in found.items():
    name = name.removeprefix('bert.').removeprefix('distilbert.')
    # Old checkpoints call a layer norm's weight and bias so.
    name = name.replace('LayerNorm.gamma', 'LayerNorm.weight')
    bare[name.replace('LayerNorm.beta', 'LayerNorm.bias')] = value
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
