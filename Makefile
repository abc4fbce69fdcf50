# Every target needs Python 3.11 or newer, pip and make; what else it needs goes into .venv and .cache.
#
#   make PYTHON=python3.13 test     another interpreter for .venv
#   make OTHERS= test               the suite on that interpreter only

PYTHON ?= python3
# Looked up only where it is used: it starts every interpreter there is.
OTHERS ?= $(shell sh .ci/interpreters $(PYTHON) | sed 's/ .*//')

SECONDS ?= 600

VENV := .venv
BIN := $(VENV)/bin
PROJECTS := pyproject.toml $(wildcard skyward-*/pyproject.toml)
LOCKED := constraints.txt $(PROJECTS)
SOURCES := $(wildcard skyward-*/src)
READY := $(VENV)/.ready-$(subst /,_,$(PYTHON))
DEMO := $(READY)-demo

# What the workers of a suite and the nodes that they start import is compiled once, and not by each of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test environment environments lock packaging containers clouds frameworks gpus suites browser slow chaos fuzz everything \
	lint types checks docs bench clean

help:
	@echo "make demo       run the README's example, then a sweep and a training on handwritten digits"
	@echo "make test       run the tests on every Python from 3.11 on that is found"
	@echo "make packaging  build the wheels and try them in a fresh environment"
	@echo "make containers run the tests on real containers; needs podman and debootstrap"
	@echo "make clouds     rent machines of clouds that run here, with every fault"
	@echo "make frameworks train with real frameworks on nodes here, in an environment of its own"
	@echo "make gpus       run the tests on an NVIDIA GPU, in PYTHON itself, which has torch and JAX for it"
	@echo "make suites     run what others wrote for joblib, Accelerate and torch on nodes here, beside a reference"
	@echo "make browser    show notebooks in a real browser; needs chromium"
	@echo "make slow       run the tests that take long"
	@echo "make chaos      let everything go wrong on real hosts at random moments, by 200 seeds"
	@echo "make fuzz       search for bytes that break a link, for SECONDS=600"
	@echo "make everything run all of the above, with all seeds and interpreters: more than an hour"
	@echo "make lint       check style and format"
	@echo "make types      check types"
	@echo "make checks     check the rules that hold for the whole repository"
	@echo "make docs       build the documentation into site/"
	@echo "make bench      run the benchmarks side by side with their peers"
	@echo "make lock       write constraints.txt anew, with the latest releases"
	@echo "make clean      remove what these targets made"

# A stamp an environment holds for each of its groups; the lock file and the project files make it stale.
.PRECIOUS: .cache/python%/.ready
$(READY) $(DEMO):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Skyward needs Python 3.11 or newer; $(PYTHON) is older. Try make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@.ci/environment $(VENV) $(PYTHON) $(if $(filter %-demo,$@),demo,dev)
	@touch $@

$(READY) $(DEMO): $(LOCKED)

demo: $(DEMO)
	$(BIN)/python .ci/readme.py README.md
	$(BIN)/python examples/digits.py

test: $(READY)
	@$(MAKE) --no-print-directory --silent $(READY) $(OTHERS:%=.cache/python%/.ready)
	@sh .ci/test $(BIN)/python $(OTHERS:%=.cache/python%/bin/python)

.cache/python%/.ready: $(LOCKED)
	@python=$$(sh .ci/interpreters | sed -n 's/^$* //p'); \
		test -n "$$python" || { echo "Python $* is not found."; exit 1; }; \
		.ci/environment .cache/python$* "$$python" test
	@touch $@

.cache/frameworks/.ready: $(LOCKED)
	@.ci/environment .cache/frameworks $(PYTHON) frameworks
	@touch $@

.cache/browser/.ready: $(LOCKED)
	@.ci/environment .cache/browser $(PYTHON) browser
	@touch $@

environment: $(READY)

environments: $(READY) .cache/frameworks/.ready $(OTHERS:%=.cache/python%/.ready)

lock: $(READY)
	@.ci/lock .cache/tools/bin/uv

packaging: $(READY)
	$(BIN)/python -m pytest -m "packaging and not everything" -n 0

containers: $(READY)
	$(BIN)/python -m pytest -m containers -n 0

clouds: $(READY)
	$(BIN)/python -m pytest -m "clouds and not everything" -n 4 --timeout 240

frameworks: .cache/frameworks/.ready
	.cache/frameworks/bin/python -m pytest tests/frameworks tests/examples -m "frameworks and not everything" -n 2 --dist loadfile

# With the frameworks that the machine's owner chose for its driver: what this repository would install is for processors.
gpus:
	$(PYTHON) -m pytest tests/gpus -m gpus -n 0 -rP

suites: .cache/frameworks/.ready
	.cache/frameworks/bin/python -m pytest tests/suites -m suites -n 0 -rP

# Notebooks in chromium, which the system has to have.
browser: .cache/browser/.ready
	.cache/browser/bin/python -m pytest tests/notebooks -m browser -n 0 -rP

slow: $(READY)
	$(BIN)/python -m pytest -m "slow and not chaos and not everything" -n 4 --timeout 300

chaos: $(READY)
	$(BIN)/python -m pytest -m chaos -n 4 -rfEP --timeout 300

fuzz: $(READY)
	$(BIN)/python tests/fuzz/coverage --seconds $(SECONDS)

everything:
	@EVERYTHING=1 .ci/run

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy $(SOURCES) checks

checks: $(READY)
	$(BIN)/python -m pytest checks

docs: $(READY)
	$(BIN)/mkdocs build --strict --quiet

bench: $(READY)
	@set -e; for script in $(wildcard benchmarks/*.py); do echo "$$script"; $(BIN)/python $$script; done

clean:
	rm -rf $(VENV) .cache site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
