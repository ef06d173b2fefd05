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
  estimators filtered graphs hostile_data kernels landmarks lowrank many_rows neighbor_anchors neighbors one_pass operators \
  quality rules sketches sparse_kernels starts streams threads))
UNTRACED := $(addprefix tests/test_, $(addsuffix .py, bounds degenerate determinism landmarks layouts \
  memory memory_limits native native_neighbors neighbors quality scales selection threads))
# What is run against the installed package: what another Python or newer packages beside it can
# break. That is what is compiled, threads, files, frames, pages and plots, the cluster, the command.
INSTALLED := $(ENGINE_TESTS) $(addprefix tests/test_, $(addsuffix .py, categories cli cli_limits \
  cli_outputs cli_predict dask_clients dask_inputs determinism disk disk_outputs disk_sources encodings \
  errors estimators graphs io io_messages json_excel kernels lowrank metrics model_files models names \
  one_pass operators packed_files pipeline_files plotting plotting_features predict_classes report \
  report_pipelines rules security sketches sparse_kernels streams text_files threads))

.PHONY: run test test-numpy lint bench reproduce soak sanitize sanitize-threads no-compiler clean
.PHONY: coverage audit mutants dist oldest

run: $(READY)
	@$(BIN)/sketchmeans demo

# Tracing makes tests a third slower, so coverage is measured by `make coverage`, which keeps its
# figure in docs/coverage.json; this prints it.
# Where the environment forbids to keep what Python compiles, every program that a test starts would
# compile the package anew; what is empty forbids nothing.
# The threads of OpenMP that scikit-learn leaves behind sleep: by default they wait for more work in a
# loop, and three workers on two cores wait for them.
# Lint and types run beside the tests; what they say comes last, and fails as well.
test: export PYTHONDONTWRITEBYTECODE =
test test-numpy coverage: export OMP_WAIT_POLICY = passive
test: $(READY)
	@mkdir -p build
	@$(MAKE) --no-print-directory lint >build/lint.txt 2>&1 & lint=$$!; \
	  $(BIN)/python -m pytest; tests=$$?; \
	  wait $$lint; linted=$$?; cat build/lint.txt; \
	  [ $$tests = 0 ] && exit $$linted; exit $$tests
	@$(BIN)/python tools/covered.py show

# Of the tests and the programs that they start, without those that go over ground that others go
# over too. The figure is kept where tests fail, which is an error, as is less than is aimed at.
# In parts: `make coverage TESTS=tests/test_dask.py` adds to what was measured before.
TRACED := $(filter-out $(UNTRACED), $(wildcard tests/test_*.py)) src
coverage: $(READY)
	@mkdir -p build
	$(BIN)/python -m pytest --cov --cov-report= $(if $(TESTS), --cov-append $(TESTS), $(TRACED)); \
	  code=$$?; [ $$code -le 1 ] && $(BIN)/python tools/covered.py keep && exit $$code

test-numpy: $(READY)
	SKETCHMEANS_ENGINE=numpy $(BIN)/python -m pytest $(EITHER_ENGINE)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reproduce: $(READY)
	$(BIN)/sketchmeans reproduce --out docs/reproduction --force

# Long runs that look for a broken promise, an hour each at the most: all, or
# `make soak PART=certificates` (threads, memory, files, workers, resume, zoo, seeds), with SEED, MINUTES.
PART :=
SEED := 0
MINUTES := 60
soak: $(READY)
	$(BIN)/python -m soak $(PART) --seed $(SEED) --minutes $(MINUTES)

bench: $(RIVALS)
	$(BIN)/python -m benchmarks

$(RIVALS): $(READY)
	@$(BIN)/python -m pip install --quiet --editable . --group bench || echo "some rivals could not be installed: they are left out"
	@touch $(RIVALS)

# The engine's tests on a build with the address and undefined behaviour sanitizers. The library
# of the first must be loaded before Python; Python's own leaks are not ours to look for.
sanitize: $(READY)
	$(BIN)/python tools/sanitized.py address $(ENGINE_TESTS)

# What threads do at once in the native code, on a build with the sanitizer of threads: passes over
# tiles, transforms that are shared, sparse features and their Gram matrix.
sanitize-threads: $(READY)
	$(BIN)/python tools/sanitized.py thread --numprocesses=0 -k "thread and not ctrl_c" $(ENGINE_TESTS)

# Known weaknesses of what is installed beside us, by an auditor that has an environment of its own.
audit: $(READY)
	@test -x build/audit/bin/pip-audit || { $(PYTHON) -m venv build/audit && \
	  build/audit/bin/python -m pip install --quiet --upgrade pip && \
	  build/audit/bin/python -m pip install --quiet --group audit; }
	$(BIN)/python tools/audited.py build/audit/bin/pip-audit

# Small changes of the source that a test should notice, some of all that there could be, in two hours
# at most; begun again, it goes on where it ended. ARGS="--help" says how to draw others.
mutants: $(READY)
	$(BIN)/python tools/mutants.py $(ARGS)

# `pip install .` where no compiler is to be found gives a pure Python package that works.
no-compiler: $(READY)
	$(BIN)/python tools/without_compiler.py

# Source distribution and wheel, built and tested as installed, on every Python at hand; and all tests
# with the lowest versions that pyproject.toml allows. TESTS names other tests, for both.
dist: $(READY)
	$(BIN)/python tools/distribution.py $(or $(TESTS), $(sort $(INSTALLED)))

oldest: $(READY)
	$(BIN)/python tools/oldest.py $(TESTS)

$(READY): pyproject.toml $(NATIVE)
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("sketchmeans needs Python 3.11 or newer, not %d.%d: make PYTHON=/path/to/python3" % v)'
	@echo "Setting up $(VENV) (once, and when the C sources change; a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $(READY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
