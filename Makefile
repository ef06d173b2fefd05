# `make run` and `make test` set up their own virtual environment; nothing else is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RIVALS := $(VENV)/.rivals
NATIVE := CMakeLists.txt $(wildcard native/*.c native/*.h)
ENGINE_TESTS := $(addprefix tests/test_, $(addsuffix .py, engine native native_maps native_neighbors))
# What must hold whatever computes the tiles: not the native engine itself, nor files, pages and plots.
EITHER_ENGINE := $(addprefix tests/test_, $(addsuffix .py, bounds certificate costs determinism engine \
  estimators filtered graphs hostile_data kernels landmarks lowrank many_rows neighbors one_pass operators \
  quality sketches starts streams threads))

.PHONY: run test test-numpy lint bench reproduce soak sanitize no-compiler clean

run: $(READY)
	@$(BIN)/sketchmeans demo

test: lint
	$(BIN)/python -m pytest

test-numpy: $(READY)
	SKETCHMEANS_ENGINE=numpy $(BIN)/python -m pytest $(EITHER_ENGINE)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reproduce: $(READY)
	$(BIN)/sketchmeans reproduce --out docs/reproduction --force

# Long runs that look for a broken promise: bounds against all partitions, fits in threads and forks,
# fits on a cluster whose workers die, fits that are killed and go on from their checkpoints.
soak: $(READY)
	$(BIN)/python -m soak.bounds
	$(BIN)/python -m soak.proofs
	$(BIN)/python -m soak.cuts
	$(BIN)/python -m soak.threads
	$(BIN)/python -m soak.workers
	$(BIN)/python -m soak.resume --kills 50

bench: $(RIVALS)
	$(BIN)/python -m benchmarks

$(RIVALS): $(READY)
	@$(BIN)/python -m pip install --quiet --editable . --group bench || echo "some rivals could not be installed: they are left out"
	@touch $(RIVALS)

# The engine's tests on a build with the address and undefined behaviour sanitizers. The library
# of the first must be loaded before Python; Python's own leaks are not ours to look for.
sanitize: $(READY)
	$(BIN)/python tools/sanitized.py $(ENGINE_TESTS)

# `pip install .` where no compiler is to be found gives a pure Python package that works.
no-compiler: $(READY)
	$(BIN)/python tools/without_compiler.py

$(READY): pyproject.toml $(NATIVE)
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("sketchmeans needs Python 3.11 or newer, not %d.%d: make PYTHON=/path/to/python3" % v)'
	@echo "Setting up $(VENV) (once, and when the C sources change; a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $(READY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
