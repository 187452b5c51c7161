# Everything that is done to this repository is a target here. `make help` lists them.
# `make demo` and `make test` are all that a newcomer needs: each sets up what it uses.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NATIVE := src/millpond/engine/arrow/native
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all fuzz lint type format bench docs clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## Create .venv and install the package with its tools (the others do this themselves)

$(READY): pyproject.toml constraints.txt hatch_build.py $(NATIVE)/pages.c
	@$(PYTHON) tools/check_machine.py
	@echo "Setting up $(VENV); the first time takes a few minutes."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	@touch $@

demo: $(READY) ## Run the product's main job on this machine, on a small real data set
	@$(BIN)/python -m examples.demo

test: $(READY) ## Run the tests (under 15 minutes on 2 cores)
	$(BIN)/python tools/run_tests.py "not slow"

test-all: $(READY) ## Run the tests, the slow sweeps, the run on two executor processes and the campaigns
	HYPOTHESIS_PROFILE=thorough $(PYTEST)
	$(BIN)/python -m tests.fuzz

fuzz: $(READY) ## Run the campaigns of bad inputs, damaged files and killed processes (SEED=n repeats one)
	$(BIN)/python -m tests.fuzz $(if $(SEED),--seed $(SEED))

lint: $(READY) ## Check style and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

type: $(READY) ## Check types, strictly
	$(BIN)/mypy

format: $(READY) ## Rewrite the sources in the agreed format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## Measure against the peers on the same work; prints ratios and peak memory
	$(BIN)/python -m bench

docs: $(READY) ## Run every code block of the README and of docs/, and check their links
	$(PYTEST) tests/docs

clean: ## Remove what the other targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/data build dist $(NATIVE)/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
