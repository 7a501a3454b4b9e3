"""Turns a work directory's results into a report: sentences, tables, figures.

Needs the packages of the extra `run`: `pip install 'vfljax[run]'`.
"""
