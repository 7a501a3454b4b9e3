"""A grid's experiments as tasks of Ray, on the machines of its cluster.

Each task is a process of its own, which ends with it. If a process dies or is
told to stop, Ray starts the task again, here or elsewhere, and it continues
from the last checkpoint: work directories are on a file system that all
machines share.

Ray starts programs, opens ports and unpickles data received there, so it is
imported only with --engine=ray, see SECURITY.md.
"""
from collections.abc import Sequence
import json
import os
from pathlib import Path
import sys
import time
from types import ModuleType
import warnings

from vfljax.commands import point
from vfljax.commands.axes import Point
from vfljax.commands.tasks import Resources
from vfljax.runner import run as running
from vfljax.runner.errors import UserError, brief
from vfljax.runner.machine.stopping import Stop

# Parts of the names of JAX's settings that are each machine's own.
_OF_A_MACHINE = 'PLATFORM', 'DEVICES', 'PROCESS', 'COORDINATOR'
_LOOKS = 30  # For a finished task's report, a second apart.
RETRIES = 3  # Of a task whose process died.
_SAVING = 5.0  # Seconds that tasks have to save when they are stopped.


def run(
    left: Sequence[Point], resources: Resources, stop: Stop | None = None
) -> dict[str, str]:
  """Runs experiments; returns why some could not be finished, by name.

  On the cluster that RAY_ADDRESS names, or one that runs on this machine, or a
  new one of this machine alone.

  Raises:
    UserError: without Ray, its cluster, or a machine that is large enough.
    Interrupted: after `stop`.
  """
  ray = _ray()
  _connect(ray)
  try:
    cpus = _cpus(ray, resources)
    task = ray.remote(
        num_cpus=cpus, num_gpus=resources.gpus, max_retries=RETRIES,
        max_calls=1, retry_exceptions=[running.Interrupted],
    )(_task)
    pending = {
        task.options(name=one.name).remote(
            str(Path.cwd()), _sized(one.argv, resources)
        ): one for one in left
    }
    return _awaited(ray, pending, Stop() if stop is None else stop)
  finally:
    ray.shutdown()


def _ray() -> ModuleType:
  # Turns off Ray's usage statistics, which are sent to its makers.
  os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
  # Lets a task that requests no GPUs see those of the machine.
  os.environ.setdefault('RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO', '0')
  # A cluster that was started on this machine, and may have crashed since.
  named = Path(os.environ.get('RAY_TMPDIR', '/tmp'), 'ray/ray_current_cluster')
  asked = os.environ.get('RAY_ADDRESS') or (named.exists() and 'auto')
  if asked and asked != 'local':
    # Tries to reach its cluster, of 40 s each; Ray would make twenty.
    os.environ.setdefault('RAY_gcs_server_port_wait_time_s', '2')
  # Prints lines in their order: those that look alike are not held back.
  os.environ.setdefault('RAY_DEDUP_LOGS', '0')
  if not sys.stdout.isatty():
    os.environ.setdefault('RAY_COLOR_PREFIX', '0')
  try:
    import ray  # pyright: ignore[reportMissingImports]
  except ImportError:
    raise UserError(
        "--engine=ray needs Ray: pip install 'vfljax[run,ray]'.\n"
        '--engine=local runs the same here, one after the other.'
    ) from None
  return ray


def _connect(ray: ModuleType) -> None:
  """Joins or starts a cluster.

  Raises:
    UserError: for whatever Ray says against it.
  """
  with warnings.catch_warnings():
    # JAX warns of any fork; Ray's starts another program at once.
    warnings.filterwarnings('ignore', r'os\.fork\(\) was called')
    try:
      ray.init(
          logging_level='ERROR', runtime_env=dict(env_vars=_settings())
      )
    except Exception as error:  # Ray has many kinds, and Python's own.
      place = os.environ.get('RAY_ADDRESS', '')
      raise UserError(
          f'Ray cannot {f"reach {place} (RAY_ADDRESS)" if place else "start"}: '
          f'{brief(" ".join(str(error).split()))}\n--engine=local runs the '
          'same here; `ray stop` forgets a cluster of here that is gone.'
      ) from error


def _settings() -> dict[str, str]:
  """JAX's settings in this environment, which tasks on other machines need.

  Some change results. Devices and processes are each machine's own. What a job
  of `ray job submit` was given its tasks have already, and Ray takes it once.
  """
  job = json.loads(
      os.environ.get('RAY_JOB_CONFIG_JSON_ENV_VAR') or '{}'
  ) or {}
  given = (job.get('runtime_env') or {}).get('env_vars') or {}
  return {
      name: value for name, value in os.environ.items()
      if name.startswith(('JAX_', 'XLA_')) and name not in given
      and not any(word in name for word in _OF_A_MACHINE)
  }


def _task(folder: str, argv: list[str]) -> str:
  """Runs a command line in `folder`; called in a process of Ray's.

  Raises:
    run.Interrupted: if the process was told to stop; Ray starts it again.
  """
  if os.path.isdir(folder):
    os.chdir(folder)
    sys.path.insert(0, folder)
  return point.tried(argv)


def _sized(argv: Sequence[str], resources: Resources) -> list[str]:
  """A command line with as many devices as a task has cores."""
  return [*argv, *(
      [f'--devices={resources.cpus}'] if resources.cpus else []
  )]


def _cpus(ray: ModuleType, resources: Resources) -> float:
  """How many cores a task takes: the smallest machine's that has enough."""
  machines = [one['Resources'] for one in ray.nodes() if one['Alive']]
  sizes = [
      (one.get('CPU', 0), one.get('GPU', 0)) for one in machines
      if one.get('CPU', 0)
  ]
  fitting = [
      cpus for cpus, gpus in sizes
      if cpus >= resources.cpus and gpus >= resources.gpus
  ]
  if not fitting:
    raise UserError(
        f'No machine of the cluster has {resources.cpus or 1} cores and '
        f'{resources.gpus} GPUs, as a task is to have; there are '
        f'{", ".join(f"{c:g} and {g:g}" for c, g in sizes) or "none"}.'
    )
  if resources.cpus or resources.gpus:
    return resources.cpus or 1
  return min(fitting)


def _awaited(ray: ModuleType, pending: dict, stop: Stop) -> dict[str, str]:
  """Waits until all tasks are over, or a stop is requested."""
  failed, count, looks = {}, len(pending), _LOOKS
  with stop.awaited():
    while pending:
      if stop:
        for ref in pending:
          ray.cancel(ref)
        ray.wait([*pending], num_returns=len(pending), timeout=_SAVING)
        raise running.Interrupted
      ready, _ = ray.wait([*pending], timeout=0.5)
      for ref in ready:
        one = pending.pop(ref)
        why = _ended(ray, ref)
        if not why and (why := _unseen(one, looks)):
          looks = 1  # Of a folder that is not shared nothing comes.
        print(
            f'{one.name}, {count - len(pending)} of {count}: '
            + (f'not finished: {why}' if why else 'done'), flush=True,
        )
        failed |= {one.name: why} if why else {}
  return failed


def _ended(ray: ModuleType, ref: object) -> str:
  """Why a task has no results, or ''."""
  try:
    return ray.get(ref)
  except ray.exceptions.RayTaskError as error:
    if isinstance(error.cause, running.Interrupted):
      return f'its process was told to stop {RETRIES + 1} times'
    return brief(f'{type(error.cause).__name__}: {error.cause}')
  except ray.exceptions.RayError as error:
    said = brief(str(error)).partition('\n')[0]
    died = isinstance(error, ray.exceptions.WorkerCrashedError)
    return f'its process died {RETRIES + 1} times: {said}' if died else said


def _unseen(one: Point, looks: int) -> str:
  """Why a finished task's results are not here, or ''."""
  for _ in range(looks):  # A network's file system may be late.
    if Path(one.workdir, 'report.html').exists():
      return ''
    time.sleep(1)
  return (
      f'it ran on a machine that does not share {one.workdir} with this one; '
      '--workdir must be on a file system that all machines share.'
  )
