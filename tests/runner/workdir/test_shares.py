"""Several processes: how jobs are divided, and who a process is."""
from types import SimpleNamespace

from absl import flags
import pytest

from vfljax.runner.errors import UserError
from vfljax.runner.workdir import recording, shares
from vfljax.runner.workdir.shares import Share

SLURM = dict(
    SLURM_JOB_ID='7', SLURM_STEP_NODELIST='node[001-003]', SLURM_NTASKS='3',
    SLURM_PROCID='2', SLURM_LOCALID='0',
)


def asked(*arguments):
  found = flags.FlagValues()
  shares.define(found)
  found(['vfljax', *arguments])
  return shares.asked(found)


def test_neighbours_stay_together_and_no_share_is_too_large():
  def sums(sizes, count):
    parts = shares.divided(sizes, count)
    assert [i for p in parts for i in range(len(sizes))[p]] == [
        *range(len(sizes))
    ]
    return [sum(sizes[p]) for p in parts]

  assert sums([10, 10, 40, 40], 1) == [100]
  assert sums([10, 10, 40, 40], 2) == [60, 40]
  assert sums([10, 45, 45], 3) == [10, 45, 45]
  assert sums([1] * 10, 4) == [3, 3, 3, 1]
  assert sums([1] * 4, 3) == [2, 1, 1]  # Not 2, 2 and nothing.
  assert sums([98, 1, 1], 2) == [98, 2]
  assert sums([5, 5], 4) == [5, 5, 0, 0]  # There is not a job for everybody.


def test_every_job_is_somebodys():
  everything = [
      SimpleNamespace(count=n, block=0) for n in (3, 1, 4, 1, 5, 9, 2, 6)
  ]
  for count in range(1, 10):
    own = [Share(number, count).of(everything) for number in range(count)]
    assert [job for some in own for job in some] == everything
  assert Share().of(everything) == everything and Share().others == []
  # Seeds that were added are divided, too, wherever they stand.
  raised = [SimpleNamespace(count=1, block=i // 2 % 2) for i in range(8)]
  own = [Share(number, 2).of(raised) for number in (0, 1)]
  assert [[job.block for job in some] for some in own] == [[0, 0, 1, 1]] * 2
  assert Share(0, 3).others == [Share(1, 3), Share(2, 3)]


def test_who_this_is():
  assert asked() == Share(0, 1)
  two = asked('--num_processes=2', '--process_id=1')
  assert two == (1, 2) and not two.first
  assert asked(
      '--coordinator=host:1234', '--num_processes=2', '--process_id=0'
  ) == (0, 2)


@pytest.mark.parametrize('arguments, said', [
    (['--num_processes=2'], '--process_id=0'),
    (['--process_id=0'], '--num_processes=2'),
    (['--coordinator=host:1234'], '--num_processes=2'),
    (['--num_processes=2', '--process_id=2'], '0..1 of --num_processes=2'),
    (['--distributed'], 'JAX finds no Slurm'),
])
def test_who_nobody_can_be(arguments, said, monkeypatch):
  for name in [*SLURM, 'OMPI_MCA_orte_hnp_uri', 'KUBERNETES_SERVICE_HOST']:
    monkeypatch.delenv(name, raising=False)
  with pytest.raises(UserError) as error:
    asked(*arguments)
  assert said in str(error.value) and len(str(error.value).splitlines()) <= 2


def test_a_cluster_is_asked_as_jax_asks_it(monkeypatch):
  for name, value in SLURM.items():
    monkeypatch.setenv(name, value)
  assert asked() == Share(0, 1)  # Nobody asked for it.
  assert asked('--distributed') == Share(2, 3)
  # What is said counts more than what is found.
  assert asked('--distributed', '--process_id=1') == Share(1, 3)
  monkeypatch.setenv('SLURM_PROCID', 'many')
  with pytest.raises(UserError, match='does not say which process'):
    asked('--distributed')


def test_a_record_does_not_know_who_ran_it():
  assert recording.command([
      'vfljax', '--config=a.py', '--num_processes=2', '--process_id=0',
      '--distributed', '--coordinator=host:1', '--workdir=x',
  ]) == 'python launch.py --config=a.py'
