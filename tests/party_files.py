"""Files of two parties and more, and what is read of them."""
import warnings

from vfljax import data

BANK = 'who;late;balance\n 7;yes;10\n8;no;20\n9;no;30\n11;yes;40\n'
TELECOM = 'calls,who,plan\n1,11,a\n2,9,b\n3,7,a\n4,12,b\n'


def written(folder, *texts):
  files = [folder / f'{name}.csv' for name in ('bank', 'telecom', 'third')]
  for file, text in zip(files, texts):
    file.write_text(text)
  return ';'.join(map(str, files[: len(texts)]))


def load(folder, *texts, label='late', **options):
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', data.Recognised)
    return data.load(
        'parties', written(folder, *texts), label=label,
        **dict(ids='who') | options,
    )
