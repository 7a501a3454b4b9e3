"""A work directory's results for people: tables, plots, a page, its words.

Needs the packages of the extra `run`: `pip install 'vfljax[run]'`.
"""
