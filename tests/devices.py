"""Marks of tests that are about one kind of device, where others run, too."""
import jax
import pytest

KIND = jax.default_backend()
of_a_cpu = pytest.mark.skipif(KIND != 'cpu', reason='of programs for a CPU')
of_a_gpu = pytest.mark.skipif(KIND != 'gpu', reason='there is no GPU')
