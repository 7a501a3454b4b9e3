"""What the README of benchmarks quotes of a record."""
from experiments.bench import quotes


def test_the_readme_names_what_compiles_longest_an_entry(monkeypatch):
  entries = lambda *seconds: dict(here=dict(
      entries=[dict(name='x', seconds=s, cpu=0.0) for s in seconds]
  ))
  monkeypatch.setattr(quotes, '_read', lambda name: dict(
      cpu='a CPU', date='a day', limit=8.0, configs={
          'experiments/a.py': entries(9.0, 3.0),
          'experiments/b.py': entries(8.4),
          'experiments/c.py': dict(here=dict(error='UserError: no samples')),
          'experiments/d.py': dict(here=dict(error='MemoryError: out of it')),
          'experiments/e.py': entries(30.0, 0.0, 0.0),
      },
  ) if name == 'compiling_papers' else None)
  rows = quotes.compiling().splitlines()[2:]
  assert rows == [
      '| `e.py` | 3 | 30 | 10.0 |', '| `b.py` | 1 | 8 | 8.4 |',
      '| `a.py` | 2 | 12 | 6.0 |',
  ]
  assert quotes.compiling_over() == '2' and quotes.compiling_measured() == '3'
  assert quotes.compiling_lacking() == '1'
  assert quotes.compiling_machine() == 'a CPU, a day'
