"""The runner's interface to the computer: devices, compilers, files, signals.
"""
