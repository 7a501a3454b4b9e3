"""The command line's side: configurations, runs, checkpoints, results.

Needs the packages of the extra `run`: `pip install 'vfljax[run]'`.
"""
