# vfljax: see `make help`. All that is installed or written stays in this
# folder: the virtual environment in .venv, results in out/.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help accel demo docs screens test test-fast test-slow faults \
	mutants mutants-drawn lint clean

VENV := .venv
BIN := $(VENV)/bin
# The first of these that is 3.11 or newer makes the virtual environment.
PYTHON := python3 python3.14 python3.13 python3.12 python3.11
# Twice quiet: errors alone. No cache, for that is in the home directory. What is
# imported Python compiles by then: all of it would take half of the time.
PIP := -m pip install -qq --no-cache-dir --no-compile \
  --disable-pip-version-check --editable
# uv, where there is one, takes a third of pip's time. It does not know pip's
# settings (a package index of one's own): where it fails, pip does it.
UV := $(if $(shell command -v uv),uv)
FAILED := { echo 'vfljax: pip could not install the packages above. Is the\
 package index reachable? Then run make again.' >&2; exit 1; }
# $(call install,WHERE,PACKAGES), WHERE being the folder of a python.
install = $(if $(UV),$(UV) pip install --quiet --no-cache \
  --python $(1)/python --editable $(2) 2>/dev/null ||) $(1)/python $(PIP) $(2) || $(FAILED)
# Matplotlib would keep its font list in the home directory.
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib
# Who wants no __pycache__ beside the code has it there, too. With none at all
# each of the tests' processes compiles what it imports, for up to five seconds.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache
endif

help:
	@echo 'make demo       install into .venv, run experiments/quickstart.py'
	@echo 'make test       install with the developer tools, run the tests'
	@echo 'make test-fast  the quickest of them, a minute'
	@echo 'make test-slow  those of whole runs and studies, which test leaves out'
	@echo 'make faults     kill runs, damage files, fill disks: ten minutes'
	@echo 'make mutants    faults put into the code: do the tests notice?'
	@echo 'make mutants-drawn  the same with faults drawn at random: hours'
	@echo 'make lint       ruff and pyright'
	@echo 'make accel      compile everything for a TPU and an H100: 8 GB, an hour'
	@echo 'make docs       the documentation, into out/docs/site'
	@echo 'make screens    pictures of the report; axe-core looks at it'
	@echo 'make clean      remove .venv and all caches; results in out/ stay'
	@echo
	@echo 'make PYTHON=/path/to/python ... uses that Python for .venv.'

demo: $(VENV)/runtime.stamp
	$(BIN)/python launch.py --config=experiments/quickstart.py \
	  --workdir=out/quickstart --cache=$(VENV)/compiled

# ARGS reaches pytest: make test ARGS='-k marvell'.
test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

# The quickest by the times of the last run.
test-fast: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto --dist worksteal --quickest=12 $(ARGS)

# Whole runs, studies and pages: what `make test` would be too long with.
test-slow: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow $(ARGS)

# Also left out by `make test`; in one process, for many cases are timed.
faults: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m faults tests/faults $(ARGS)

# ARGS are what names begin with: make mutants ARGS='iso vmask'.
mutants: $(VENV)/dev.stamp
	$(BIN)/python -m tests.mutants $(ARGS)

# Of cosmic-ray's, by their places; goes on where the record stops.
mutants-drawn: $(VENV)/mutants.stamp
	$(BIN)/python -m tests.drawn_mutants $(ARGS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# Compiled, not run, in an environment of its own; what the record has must not
# become worse. make accel ARGS='--machines=h100 --groups=ring'.
accel: $(VENV)/accel.stamp
	$(VENV)/accel/bin/python -m experiments.bench.accel --check $(ARGS)

# A site that works from its folder; pages in out/docs/source.
docs: $(VENV)/docs.stamp
	$(BIN)/python -m docs.build

# Needs Chromium and npm, and says so. A finished demo run again takes seconds.
screens: demo $(VENV)/screens.stamp
	$(BIN)/python -m docs.screens $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than what it was installed from. One for an environment
# whose Python is gone (upgraded, or the folder was copied) does not count.
ifneq ($(shell $(BIN)/python -c '' 2>/dev/null && echo works),works)
.PHONY: $(VENV)/python.stamp
endif

$(VENV)/python.stamp:
	@chosen=; bare=; for python in $(PYTHON); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    2>/dev/null || continue; \
	  if "$$python" -c 'import ensurepip, venv' 2>/dev/null; \
	  then chosen=$$python; break; else bare=$$python; fi; \
	done; \
	if [ -z "$$chosen" ] && [ -n "$$bare" ]; then \
	  echo "vfljax: $$bare has no venv and pip; install them first" \
	    "(Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; fi; \
	if [ -z "$$chosen" ]; then \
	  echo "vfljax needs Python 3.11 or newer; none of these is:" \
	    "$(PYTHON). Name one with: make PYTHON=/path/to/python" >&2; \
	  exit 1; fi; \
	echo "Making $(VENV) with $$("$$chosen" --version)."; \
	"$$chosen" -m venv $(VENV)
	@# Pip as a Python of 2023 brings it takes 75 s where today's takes 40. If
	@# there is no index, the next command says so.
	@$(BIN)/python -m pip install -qq --no-cache-dir --no-compile \
	  --disable-pip-version-check --upgrade pip 2>/dev/null || true
	@touch $@

$(VENV)/runtime.stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing JAX and what else vfljax needs: one or two minutes ...'
	@$(call install,$(BIN),'.[run]')
	@touch $@

$(VENV)/dev.stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing vfljax and the developer tools: two or three minutes ...'
	@$(call install,$(BIN),'.[dev]')
	@touch $(VENV)/runtime.stamp $@

$(VENV)/mutants.stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing the developer tools and cosmic-ray: three minutes ...'
	@$(call install,$(BIN),'.[mutants]')
	@touch $(VENV)/runtime.stamp $(VENV)/dev.stamp $@

$(VENV)/accel.stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing compilers for TPUs and GPUs, 8 GB: ten minutes ...'
	@$(BIN)/python -m venv $(VENV)/accel
	@$(call install,$(VENV)/accel/bin,'.[dev]' 'jax[tpu]' 'jax[cuda12]')
	@touch $@

$(VENV)/docs.stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing what makes the documentation: a minute or two ...'
	@$(call install,$(BIN),'.[docs]')
	@touch $(VENV)/runtime.stamp $@

$(VENV)/screens.stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing what takes the pictures: a minute or less ...'
	@$(call install,$(BIN),'.[screens]')
	@touch $(VENV)/runtime.stamp $@
