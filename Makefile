# make demo   shows the whole thing: a real model on the bundled golden set
# make test   runs lint, types, layers and all tests
# make bench  measures the figures in benchmarks/results
# Each sets up what it needs first, in .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Everything a model needs is installed or given as a folder; no test and no demo may reach for a hub.
export HF_HUB_OFFLINE = 1

.PHONY: demo test lint boards unit real timing bench clean

demo: $(VENV)/demo.installed
	$(BIN)/embeval demo

test: lint boards unit timing real

lint: $(VENV)/dev.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Pages that are committed must be those that their definitions and data give.
boards: $(VENV)/dev.installed
ifneq ($(wildcard leaderboards/*/board.yaml),)
	$(BIN)/embeval leaderboard build --check
endif

# Two workers: most of these tests wait for one core at a time. Each begins with half of the files, in their order, so
# that fixtures of a file are mostly made once.
unit: $(VENV)/dev.installed
	$(BIN)/pytest -n 2 --dist worksteal -m "not real and not timing"

# Two at a time, a file each: they share a cache (tests/real/conftest.py) and the cores, since one thread each is less
# work than two each. Only the folders that have such tests are read; tests/cli/test_makefile.py knows when there are more.
real: export OMP_NUM_THREADS ?= $(shell expr \( $$(getconf _NPROCESSORS_ONLN) + 1 \) / 2)
real: $(VENV)/dev.installed
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "real and not timing" tests/real

timing: $(VENV)/dev.installed
	$(BIN)/pytest -m timing tests/browser tests/cli tests/real tests/unit/metrics

bench: $(VENV)/bench.installed
	for script in benchmarks/bench_*.py; do $(BIN)/python -m benchmarks.$$(basename $$script .py) || exit 1; done

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/dev.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[demo,dev]'
	touch $@ $(VENV)/demo.installed

$(VENV)/bench.installed: $(VENV)/dev.installed
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[demo,dev,bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
