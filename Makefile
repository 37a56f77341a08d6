# Every target makes the virtual environment in .venv by itself. Needed: Linux, Python 3.11 or newer with pip, make, git.
#   make test PYTHON=python3.13      another Python (after `make clean`)
#   make demo FOLDER=path/to/folder  a folder of yours

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help test check demo prove guards bench format clean

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST))

test: $(READY) ## every test except the long proofs
	$(BIN)/python -m pytest -n auto

check: $(READY) ## lint, format, types and the rules of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q tests/house

demo: $(READY) ## edit a folder in a run, kill it half-way, go on, compare every byte (FOLDER=… for one of yours)
	@$(BIN)/python examples/04_edit_a_folder.py $${FOLDER:+"$$FOLDER"}

prove: $(READY) ## the long proofs: every crash point, power loss, faults
	$(BIN)/python -m pytest -m prove -n auto --timeout=0 -o faulthandler_timeout=0

guards: $(READY) ## remove each guard in a copy, and see that its test fails
	$(BIN)/python tests/guards

bench: $(READY) ## measure against the raw limit, as ratios
	$(BIN)/python -m benchmarks

format: $(READY) ## put every file into shape
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A Debian Python has no ensurepip; then the machine's own pip puts one in.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'Freehold needs Python 3.11 or newer as $(PYTHON); name another one: make PYTHON=python3.13' >&2; exit 1; }
	@echo 'Making $(VENV) (once, and when pyproject.toml changes) ...'
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
		$(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --quiet --python $(BIN)/python install pip; }
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
