"""The command line in this process, on an experiment that takes no time."""
from pathlib import Path

import launch

ROOT = Path(__file__).parents[1]
TINY = [
    '--config=experiments/quickstart.py', '--config.seeds=2',
    '--config.train.epochs=2', '--config.model.bottom=4',
    '--config.model.top=4', '--config.train.optimizer=sgd', '--devices=2',
    '--cache=',
]  # Adam's step takes as long to compile as all the rest of a round.
# Of the attack that it lists, which has to be among those chosen.
COMPLETION = [
    '--config.attack.completion.epochs=2',
    '--config.attack.completion.stages=1', '--config.attack.completion.head=4',
]


def main(capsys, *arguments, workdir):
  """(exit code, lines on standard error)."""
  # A flag given again replaces ours.
  given = {a.split('=')[0] for a in arguments}
  listed = [] if '--config.attacks' in given else COMPLETION
  ours = [a for a in [*TINY, *listed] if a.split('=')[0] not in given]
  code = launch.main(['launch.py', *ours, f'--workdir={workdir}', *arguments])
  return code, capsys.readouterr().err.strip().splitlines()


def read(workdir):
  return (Path(workdir) / 'results.jsonl').read_bytes()
