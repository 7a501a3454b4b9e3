"""Pretrained encoders and the texts that they read."""
import json
from pathlib import Path
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors import numpy as arrays
from tokenizers import Tokenizer, models as vocabularies, pre_tokenizers

from vfljax import algorithms, data, nets, train
from vfljax.data import split, texts
from vfljax.defense import none
from vfljax.nets import encoder, encoder_files
from vfljax.types import Batch

GOLDEN = Path(__file__).parents[1] / 'golden'
KEY = jax.random.key(0)
WORDS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', 'a', 'good', 'bad', 'film', 'very')


def hidden(folder, tokens):
  like = encoder_files.read_structure(str(folder))
  weights = encoder_files.read_weights(str(folder), like)
  apply = jax.jit(encoder.Encoder(like).apply)
  return np.asarray(apply({'params': weights}, tokens))


@pytest.mark.parametrize('kind', ['bert', 'distilbert'])
def test_hidden_states_are_those_of_transformers(kind):
  folder = GOLDEN / f'tiny_{kind}'
  expected = np.load(folder / 'expected.npz')
  tokens = expected['tokens']
  ours = hidden(folder, tokens)
  seen = tokens != 0
  np.testing.assert_allclose(
      ours[seen], expected['hidden'][seen], rtol=0, atol=1e-4
  )
  # The third text is two tokens long, with any number of padding after them.
  short = hidden(folder, tokens[2:, :2])
  np.testing.assert_allclose(ours[2, :2], short[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize('kind', ['bert', 'distilbert'])
def test_hidden_states_of_other_weights_beside_torch(kind, tmp_path):
  torch = pytest.importorskip('torch')
  transformers = pytest.importorskip('transformers')
  torch.manual_seed(1)
  if kind == 'bert':
    config = transformers.BertConfig(
        vocab_size=60, hidden_size=24, num_hidden_layers=3, hidden_act='relu',
        num_attention_heads=4, intermediate_size=32, initializer_range=0.3,
        max_position_embeddings=12,
    )
    model = transformers.BertModel(config).eval()
  else:
    config = transformers.DistilBertConfig(
        vocab_size=60, dim=24, n_layers=3, n_heads=3, hidden_dim=32,
        initializer_range=0.3, max_position_embeddings=12,
    )
    model = transformers.DistilBertModel(config).eval()
  model.save_pretrained(tmp_path)
  tokens = np.random.default_rng(0).integers(1, 60, (5, 12)).astype(np.int32)
  tokens[2, 5:] = 0
  ids = torch.tensor(tokens).long()
  with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=(ids != 0).long())[0].numpy()
  seen = tokens != 0
  ours = hidden(tmp_path, tokens)
  np.testing.assert_allclose(ours[seen], expected[seen], rtol=0, atol=1e-4)


@pytest.mark.slow
def test_pooling_and_a_layer_on_top():
  folder = GOLDEN / 'tiny_bert'
  expected = np.load(folder / 'expected.npz')
  tokens = expected['tokens'].astype(np.float32)
  states, seen = expected['hidden'], (expected['tokens'] != 0)[..., None]
  first = nets.make('encoder', path=str(folder))
  mean = nets.make('encoder', path=str(folder), pooling='mean')
  params = jax.jit(first.init)(KEY, tokens)
  np.testing.assert_allclose(
      jax.jit(first.apply)(params, tokens), states[:, 0], atol=1e-4
  )
  np.testing.assert_allclose(
      jax.jit(mean.apply)(params, tokens),
      (states * seen).sum(1) / seen.sum(1), atol=1e-4,
  )
  wide = nets.make('encoder', 5, path=str(folder), random=True)
  drawn = jax.eval_shape(wide.init, KEY, tokens)
  assert drawn['top']['Dense_0']['kernel'].shape == (12, 5)


def test_the_mean_is_of_what_the_encoder_reads():
  """Of fractions and numbers below 0, too: as padding they do not count."""
  folder = GOLDEN / 'tiny_distilbert'
  expected = np.load(folder / 'expected.npz')
  tokens, states = expected['tokens'], expected['hidden']
  seen = (tokens != 0)[..., None]
  net = nets.make('encoder', path=str(folder), pooling='mean')
  params = dict(encoder=net.pretrained.start())
  found = jax.jit(net.apply)(params, np.where(tokens, tokens + 0.5, 0.25))
  np.testing.assert_allclose(
      found, (states * seen).sum(1) / seen.sum(1), atol=1e-4
  )
  assert not seen.all()


def test_a_dropout_that_is_given_is_that_of_all_layers():
  """By tracing alone."""
  tokens = jnp.ones((2, 4))

  def drawn(**options):
    path = str(GOLDEN / 'tiny_distilbert')
    net = nets.make('encoder', path=path, random=True, **options)
    params = jax.eval_shape(net.init, KEY, tokens)
    program = jax.make_jaxpr(net.run)(params, KEY, tokens)
    return str(program).count('random_bits')

  assert drawn() and not drawn(dropout=0.0)


def test_an_encoder_reads_rows_of_token_numbers():
  net = nets.make('encoder', path=str(GOLDEN / 'tiny_bert'))
  for shape in ((2, 11), (2,), (2, 3, 4)):
    with pytest.raises(ValueError, match=r'batch, up to 10\]; got .*of shape'):
      net.init(KEY, jnp.ones(shape))


def test_without_a_width_the_embedding_is_the_encoders_own():
  tokens = jnp.ones((2, 4))
  for width, wide in ((0, 12), (5, 5)):
    net = nets.make('encoder', width, path=str(GOLDEN / 'tiny_bert'))
    params = jax.eval_shape(net.init, KEY, tokens)
    assert jax.eval_shape(net.apply, params, tokens).shape == (2, wide)


@pytest.mark.slow
def test_fine_tuning_starts_at_the_pretrained_weights_and_lowers_the_loss():
  net = nets.make(
      'encoder', 4, path=str(GOLDEN / 'tiny_distilbert'), blocks=1
  )
  draw = np.random.default_rng(0)
  x = draw.integers(4, 40, (2, 32, 6)).astype(np.float32)
  labels = jnp.asarray(x[0, :, 1] > 20, jnp.int32)
  # One encoder: a second beside it would double what is compiled.
  samples = Batch((None, jnp.asarray(x[0])), jax.nn.one_hot(labels, 2))
  vfl = algorithms.vsnn([net], nets.mlp(2))
  plan = train.Plan(vfl, none(), (optax.adamw(5e-3),) * 2, 12, 16)

  def run(key):
    begun = train.start(key, plan, samples)
    _, history = train.advance(plan, begun, samples, 0, 12)
    return begun.state.parties[1].params['bottom'], history['loss']

  bottoms, losses = jax.jit(jax.vmap(run))(jax.random.split(KEY, 2))
  like = encoder_files.read_structure(str(GOLDEN / 'tiny_distilbert'))
  stored = encoder_files.read_weights(
      str(GOLDEN / 'tiny_distilbert'), like._replace(blocks=1)
  )
  for ours, theirs in zip(
      jax.tree.leaves(bottoms['encoder']), jax.tree.leaves(stored)
  ):
    np.testing.assert_array_equal(ours[0], theirs)
    np.testing.assert_array_equal(ours[1], theirs)
  top = bottoms['top']['Dense_0']['kernel']
  assert (top[0] != top[1]).any()
  assert (losses[:, -1] < 0.8 * losses[:, 0]).all()


def copy(tmp_path):
  return Path(shutil.copytree(GOLDEN / 'tiny_bert', tmp_path / 'model'))


def test_what_is_wrong_with_a_folder_is_said(tmp_path):
  with pytest.raises(FileNotFoundError, match='No path'):
    nets.make('encoder')
  folder = copy(tmp_path)
  config = json.loads((folder / 'config.json').read_text())

  def refused(error, match, **changed):
    (folder / 'config.json').write_text(json.dumps(config | changed))
    with pytest.raises(error, match=match):
      nets.make('encoder', path=str(folder))

  refused(ValueError, 'not bert or distilbert', model_type='gpt2')
  refused(ValueError, 'config.json says', vocab_size=41)
  refused(ValueError, 'has no encoder.layer.2', num_hidden_layers=3)
  refused(ValueError, 'activation', hidden_act='softsign')
  (folder / 'config.json').write_text('{')
  with pytest.raises(ValueError, match='not understood'):
    nets.make('encoder', path=str(folder))
  (folder / 'config.json').write_text(json.dumps(config))
  whole = (folder / 'model.safetensors').read_bytes()
  (folder / 'model.safetensors').write_bytes(whole[:-100])
  with pytest.raises(ValueError, match='cannot be read'):
    nets.make('encoder', path=str(folder))
  (folder / 'model.safetensors').unlink()
  with pytest.raises(FileNotFoundError, match='is not there'):
    nets.make('encoder', path=str(folder))
  with pytest.raises(ValueError, match='pooling'):
    nets.make('encoder', path=str(GOLDEN / 'tiny_bert'), pooling='last')


def test_who_stops_the_reading_of_weights_is_heard(monkeypatch):
  class PanicException(BaseException):  # As a library in Rust has it.
    pass

  folder = str(GOLDEN / 'tiny_bert')
  like = encoder_files.read_structure(folder)

  def ends(error):
    def load_file(file):
      raise error
    monkeypatch.setattr(arrays, 'load_file', load_file)
    encoder_files.read_weights(folder, like)

  for stop in KeyboardInterrupt(), SystemExit(143):
    with pytest.raises(type(stop)):
      ends(stop)
  with pytest.raises(ValueError, match='cannot be read'):
    ends(PanicException('index out of bounds'))


def test_sizes_that_are_none_are_refused_in_a_line(tmp_path):
  folder = copy(tmp_path)
  config = json.loads((folder / 'config.json').read_text())

  def refused(match, **changed):
    (folder / 'config.json').write_text(json.dumps(config | changed))
    with pytest.raises(ValueError, match=match) as error:
      nets.make('encoder', path=str(folder))
    said = str(error.value)
    assert '\n' not in said and str(folder) in said and len(said) < 700

  refused('num_attention_heads must be 1 to', num_attention_heads=0)
  refused('12 units in 5 heads', num_attention_heads=5)
  refused('hidden_size must be a whole number', hidden_size='twelve')
  refused('hidden_size must be a whole number', hidden_size=12.0)
  refused('num_hidden_layers must be a whole', num_hidden_layers=True)
  refused('vocab_size must be 1 to', vocab_size=10**400)
  refused('max_position_embeddings must be 1', max_position_embeddings=-1)
  refused('hidden_dropout_prob must be in', hidden_dropout_prob=1.5)
  refused('layer_norm_eps must be a number', layer_norm_eps='small')
  refused('layer_norm_eps must be in', layer_norm_eps=float('nan'))
  refused('pad_token_id 40 is none of 40', pad_token_id=40)
  refused('hidden_act is no name', hidden_act=['gelu'])
  refused('not bert or distilbert', model_type=['bert'])
  refused('embeddings are not absolute', position_embedding_type='relative_key')
  refused('not understood: it is too long', more='a' * encoder_files._LONGEST)
  del config['hidden_size']
  refused("has no 'hidden_size'")
  (folder / 'config.json').write_text('[' * 100_000)
  with pytest.raises(ValueError, match='not understood'):
    nets.make('encoder', path=str(folder))
  (folder / 'config.json').write_text('[]')
  with pytest.raises(ValueError, match='not understood: it has no names'):
    nets.make('encoder', path=str(folder))


def test_weights_that_are_none_are_refused(tmp_path):
  folder = copy(tmp_path)
  file = folder / 'model.safetensors'
  weights = dict(arrays.load_file(file))
  name = 'embeddings.LayerNorm.weight'

  def refused(match, changed):
    arrays.save_file(changed, file)
    with pytest.raises(ValueError, match=match):
      nets.make('encoder', path=str(folder))

  odd = weights[name].copy()
  odd[3] = np.nan
  refused('weight has NaN or infinite', weights | {name: odd})
  whole = np.ones(12, np.int32)
  refused('weight has no fractions but int32', weights | {name: whole})
  refused('twice, by two names', weights | {f'bert.{name}': weights[name]})
  half = {k: v.astype(jnp.bfloat16) for k, v in weights.items()}
  arrays.save_file(half, file)  # Fractions of another length are read,
  like = encoder_files.read_structure(str(folder))
  read = encoder_files.read_weights(str(folder), like)
  np.testing.assert_array_equal(
      read['embed_norm']['scale'], half[name].astype('f4')
  )
  # but not those for which NumPy has no type.
  head = b'{"x":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
  file.write_bytes(len(head).to_bytes(8, 'little') + head + bytes(2))
  with pytest.raises(ValueError, match='of type float8_e4m3fn; save it in flo'):
    nets.make('encoder', path=str(folder))


@pytest.mark.parametrize('options', [
    dict(dropout='much'), dict(dropout=True), dict(blocks='all'),
    dict(blocks=1.5), dict(random='yes'), dict(path=5), dict(width=2.5),
])
def test_options_of_other_types_are_refused(options):
  given = dict(path=str(GOLDEN / 'tiny_bert')) | options
  with pytest.raises(ValueError, match='^encoder: '):
    encoder.encoder(**given)


def test_a_home_that_is_nobodys_has_no_encoder():
  with pytest.raises(FileNotFoundError, match='nobody-of-that-name'):
    nets.make('encoder', path='~nobody-of-that-name/x')


@pytest.fixture
def tokenizer(tmp_path):
  made = Tokenizer(vocabularies.WordLevel(
      {word: i for i, word in enumerate(WORDS)}, '[UNK]'
  ))
  made.pre_tokenizer = pre_tokenizers.Whitespace()
  made.save(str(tmp_path / 'tokenizer.json'))
  return tmp_path


def test_texts_are_cut_into_a_piece_for_each_party(tokenizer):
  file = tokenizer / 'films.tsv'
  file.write_text('pro\ta very good film\ncon\tbad\npro\ta a a a a a a a\n')
  table = data.load(
      'texts', str(file), encoder=str(tokenizer), parts=2, length=5
  )
  assert table.classes == ('con', 'pro')
  np.testing.assert_array_equal(table.labels, [1, 0, 1])
  np.testing.assert_array_equal(table.features, [
      [2, 4, 8, 3, 0, 2, 5, 7, 3, 0],
      [2, 6, 3, 0, 0, 2, 3, 0, 0, 0],  # Nothing is left for the second.
      [2, 4, 4, 4, 3, 2, 4, 4, 4, 3],  # Cut off.
  ])
  halves = split.apply(table, split.Spec(2))
  np.testing.assert_array_equal(halves[1], table.features[:, 5:])


def test_a_header_is_no_class(tokenizer):
  file = tokenizer / 'films.tsv'
  file.write_text('label\ttext\n1\ta very good film\n0\tbad\n')
  with pytest.raises(ValueError, match='line 1: label .* alone.* a header'):
    texts.load(str(file), str(tokenizer))
  file.write_text('sport\tfilm\nart\ta very good film\nart\tbad\n')
  assert texts.load(str(file), str(tokenizer)).classes == ('art', 'sport')
  file.write_text('class\tgood\nlabel\tbad\nclass\tbad\n')  # Of some people.
  assert texts.load(str(file), str(tokenizer)).classes == ('class', 'label')


def test_classes_below_zero_come_first(tokenizer):
  file = tokenizer / 'films.tsv'
  file.write_text('1\tgood\n-1\tbad\n10\ta film\n')
  table = texts.load(str(file), str(tokenizer))
  assert table.classes == ('-1', '1', '10')
  assert table.labels.tolist() == [1, 0, 2]


def test_what_is_wrong_with_texts_is_said(tokenizer):
  file = tokenizer / 'films.tsv'
  file.write_text('1\tgood\nno tab\n')
  with pytest.raises(ValueError, match='line 2'):
    texts.load(str(file), str(tokenizer))
  file.write_text('1\tgood\n0\tbad\n')
  with pytest.raises(ValueError, match='length'):
    texts.load(str(file), str(tokenizer), length=2)
  file.write_text('')
  with pytest.raises(ValueError, match='films.tsv has no line'):
    texts.load(str(file), str(tokenizer))
  file.write_text('1\tgood\n0\tbad\n')
  with pytest.raises(FileNotFoundError, match=r'tokenizer\.json'):
    texts.load(str(file), '')
  place = tokenizer / 'tokenizer.json'
  known = json.loads(place.read_text())
  del known['model']['vocab']['[SEP]'], known['model']['vocab']['[PAD]']
  place.write_text(json.dumps(known))
  with pytest.raises(ValueError, match=r'has no \[SEP\], \[PAD\]: .*not one'):
    texts.load(str(file), str(tokenizer))
  broken = tokenizer / 'other'
  broken.mkdir()
  (broken / 'tokenizer.json').write_text('{}')
  with pytest.raises(ValueError, match='no tokenizer'):
    texts.load(str(file), str(broken))


def test_a_tokenizer_that_is_damaged_or_changed_is_noticed(tokenizer):
  file = tokenizer / 'films.tsv'
  file.write_text('1\tgood film\n0\tbad film\n')
  read = lambda: texts.load(str(file), str(tokenizer), length=5).features
  plain = read()
  place = tokenizer / 'tokenizer.json'
  known = json.loads(place.read_text())

  def put(**words):
    known['model']['vocab'] |= words
    place.write_text(json.dumps(known))

  put(film=8, very=7)
  assert (read() != plain).any()  # Not what was read before.
  put(film=2**24 + 1)
  with pytest.raises(ValueError, match='number 16777217, but the encoder'):
    read()
  put(film=8, **{'[CLS]': 2**24 + 1})
  with pytest.raises(ValueError, match='number 16777217, but the encoder'):
    read()
  del known['model']['vocab']['[UNK]']  # What stands for other words.
  put(**{'[CLS]': 2})
  file.write_text('1\tgood film\n0\tterrible film\n')
  with pytest.raises(ValueError, match='is no tokenizer of these texts'):
    read()


def test_a_tokenizer_of_another_encoder_is_refused(tokenizer):
  file = tokenizer / 'films.tsv'
  file.write_text('1\tgood film\n0\tvery bad film\n')
  (tokenizer / 'config.json').write_text('{"vocab_size": 9}')
  texts.load(str(file), str(tokenizer))
  (tokenizer / 'config.json').write_text('{"vocab_size": 8}')
  with pytest.raises(ValueError, match='number 8, but the encoder beside it'):
    texts.load(str(file), str(tokenizer))


@pytest.mark.parametrize('digit', ['\u00b2', '\u0663', '1' * 5000])
def test_labels_of_odd_digits_are_words(tokenizer, digit):
  file = tokenizer / 'films.tsv'
  file.write_text(f'10\tgood\n9\tbad\n{digit}\tfilm\n')
  table = texts.load(str(file), str(tokenizer))
  assert table.classes == ('9', '10', digit)


def test_a_label_of_its_own_for_each_text_is_no_class(tokenizer):
  file = tokenizer / 'films.tsv'
  file.write_text(''.join(f'{i}\tgood\n' for i in range(50)))
  with pytest.raises(ValueError, match='has 50 different values in 50 rows'):
    texts.load(str(file), str(tokenizer))
