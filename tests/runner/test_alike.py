"""Programs that are the same but for their names, and what makes them so."""
import re

from tests.runner.test_families import config, found
from vfljax.runner import calls, compiling, families, tuning
from vfljax.train import Run


def test_programs_that_are_alike_are_compiled_once(monkeypatch):
  """Of labels that are prepared before the first round the rounds know nothing.

  So label_dp and kdk begin differently and go on alike, and who trains one
  network with a term for it ends as who does not.
  """
  made, compiled = [], tuning.compiled

  def counted(lowered):
    made.append(lowered)
    return compiled(lowered)

  monkeypatch.setattr(tuning, 'compiled', counted)
  given = config('none', 'label_dp', 'kdk', 'dcor', alone=False)
  for entry in given.listed:
    entry.strengths = entry.strengths[:1]
  everything = found(given)
  with compiling.Compiler(everything, everything) as compiler:
    for job in everything:
      assert compiler.programs(job).ready(600)
  names = [re.search(r'jit_([a-z]+)', x.as_text()).group(1) for x in made]
  counts = {name: names.count(name) for name in names}
  assert counts == dict(start=3, advance=3, finish=1, stolen=1)


def test_where_rounds_are_replayed_prepared_labels_are_at_hand():
  runs = Run('key', 'state', 'labels', ())
  for replayed, labels in (({}, ()), (dict(attack=None), 'labels')):
    job = found(config('none'))[0]
    job = job._replace(setting=job.setting._replace(replayed=replayed))
    kept = calls.at_the_end(families.alone(job), 'cells', runs)
    assert kept == dict(cells='cells', runs=runs._replace(labels=labels))
