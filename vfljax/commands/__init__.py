"""Commands of `vfljax` other than running one experiment, a file each.

They work on finished work directories, or run experiments of their own.
"""
