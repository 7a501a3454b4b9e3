"""`vfljax advise DIR --budget=2`: which of a run's defenses to choose."""
from vfljax.commands import given
from vfljax.report import (
    advice, crossings, knowing, lost, reading, terminal, untested,
)
from vfljax.runner.cli import goals
from vfljax.runner.cli.goals import Goal
from vfljax.runner.errors import UserError
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir import store


def run(argv: list[str], stop: Stop | None = None) -> int:
  """Prints advice on a finished work directory.

  Raises:
    UserError: if there is no such directory, or no goal.
  """
  del stop  # It is done in no time.
  parser = given.Parser(prog='vfljax advise', description=__doc__)
  parser.add_argument('folder', help='the --workdir of a finished run')
  add_goal(parser)
  asked = parser.parse_args(argv)
  wanted = goals.goal(asked.budget, asked.max_leak)
  if not wanted.asked:
    raise UserError(
        'vfljax advise needs a goal, in percentage points: --budget=2 for the '
        'utility that may be lost, --max_leak=10 for what may leak, or both.'
    )
  print(text(str(given.finished(asked.folder)), wanted))
  return 0


def add_goal(parser: given.Parser) -> None:
  """Adds the two flags of a goal."""
  parser.add_argument(
      '--budget', type=float,
      help='points that a defense may cost: hundredths of the test AUC, of '
           'three classes and more of the accuracy',
  )
  parser.add_argument(
      '--max_leak', '--max-leak', type=float,
      help='points that the worst attack may learn',
  )


def text(folder: str, wanted: Goal) -> str:
  """The evidence, what was not tested, and the advice, for a terminal."""
  config, units = store.read_config(folder), store.read_timings(folder)
  classes = max((t.get('classes', 0) for t in units), default=0)
  parts, found = [], reading.read(folder, classes)
  for results in found:
    if len(found) > 1:
      parts.append(' '.join(results.title))
    parts.append(terminal.table(advice.evidence(results, wanted)))
    left_out = untested.sentences(results, config, classes)
    parts.append(
        'Not tested\n' + terminal.paragraphs([f'- {s}' for s in left_out])
    )
    parts.append(terminal.paragraphs([
        *crossings.warnings(units), *lost.sentences(results),
        *knowing.uncounted(results), *advice.sentences(results, wanted),
    ]))
  return '\n\n'.join(parts)
