"""Commands of `vfljax` beside the run of an experiment, a file each.

They work on finished work directories, or run experiments of their own.
"""
