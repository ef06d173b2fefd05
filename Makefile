# `make run` and `make test` set up their own virtual environment; nothing else is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test lint bench reproduce clean

run: $(READY)
	@$(BIN)/sketchmeans demo

test: lint
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reproduce: $(READY)
	$(BIN)/sketchmeans reproduce --out docs/reproduction --force

bench: $(READY)
	$(BIN)/python -m benchmarks

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("sketchmeans needs Python 3.11 or newer, not %d.%d: make PYTHON=/path/to/python3" % v)'
	@echo "Setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $(READY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
