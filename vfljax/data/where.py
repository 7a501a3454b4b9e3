"""Whether a data set is at hand, and for how many parties the papers split it.

For a listing: nothing is read, only looked for by the customary names, in this
folder, in `data` below it, and where TensorFlow Datasets prepares its own.
"""
from collections.abc import Sequence
import pathlib

FOLDERS = ('.', 'data', '~/tensorflow_datasets')
WITH_US = ('breast_cancer', 'digits', 'wine', 'synthetic')
_FILES: dict[str, tuple[str, ...]] = dict(
    spambase=('spambase.data',), reviews=('movie_reviews.tsv',),
    texts=('movie_reviews.tsv', 'snippets.tsv'), imdb=('imdb_reviews',),
    imdb_texts=('imdb_reviews',), ag_news=('ag_news_subset',), trec=('trec',),
    criteo=('train.txt', 'criteo'), isic=('ISIC', 'isic'),
    mnist=('mnist.npz',), fashion_mnist=('fashion_mnist.npz',),
    fashion_mnist_binary=('fashion_mnist.npz',), cifar10=('cifar10.npz',),
    cifar100=('cifar100.npz',), svhn=('train_32x32.mat', 'SVHN', 'svhn'),
    cinic10=('CINIC-10', 'cinic10'), tiny_imagenet=('tiny-imagenet-200',),
    credit=('credit.csv',), vehicle=('combined.bz2', 'vehicle'),
    nuswide=('NUS-WIDE', 'Low_Level_Features', 'nuswide'),
    bhi=('BHI', 'bhi', 'IDC_regular_ps50_idx5'),
)
_IMAGES = (
    'digits', 'mnist', 'fashion_mnist', 'fashion_mnist_binary', 'cifar10',
    'cifar100', 'svhn', 'cinic10', 'tiny_imagenet', 'isic',
)
_TEXTS = ('texts', 'imdb_texts', 'ag_news', 'trec')


def parties(name: str) -> str:
  """Who holds what in the papers, in a few words."""
  if name in _IMAGES:
    return '2: halves; 4: quadrants'
  if name in _TEXTS:
    return '2 or more: pieces of texts'
  if name == 'bhi':
    return '2: a patch each'
  if name == 'nuswide':
    return '2: pictures, tags'
  if name == 'synthetic':
    return 'any'
  return '2 to 10: columns'


def present(name: str, folders: Sequence[str] = FOLDERS) -> str:
  """Where the data set is: 'with us', a path, or '' if it was not found."""
  if name in WITH_US:
    return 'with us'
  for folder in folders:
    for file in _FILES.get(name, ()):
      place = pathlib.Path(folder) / file
      if place.expanduser().exists():
        return str(place)
  return ''
