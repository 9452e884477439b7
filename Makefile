# Every target sets up what it needs by itself, in .venv; all that must be there is Python 3.11 or newer.
# Another interpreter: make PYTHON=/path/to/python3.12 test. More of pytest's options: make test ARGS="-k jets".

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
ARGS    ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format types docs bench clean
.DELETE_ON_ERROR:

help: ## list the targets
	@echo "t3k: Tucker tensor trains and memory-bounded derivatives in JAX"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "t3k needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; \
	  exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu the package python3-venv provides it."; exit 1; }
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.created
	@echo "Installing t3k for the demo (a minute or so, once)"
	@$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.created
	@echo "Installing t3k with its tests, tools and peers (a few minutes, once)"
	@$(PIP) --editable '.[dev,demo,bench]'
	@touch $@ $(VENV)/.demo

setup: $(VENV)/.dev ## install everything, and the git hooks
	$(BIN)/pre-commit install

demo: $(VENV)/.demo ## fit a tensor from its probes, and show it
	$(BIN)/python examples/demo.py $(ARGS)

test: $(VENV)/.dev ## run all tests: examples, properties, doctests, the docs' code
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --durations=5 $(ARGS)

lint: $(VENV)/.dev ## check style, layers and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev ## check the types
	$(BIN)/mypy

docs: $(VENV)/.dev ## build the documentation in site/; a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d build/doctrees docs site
	@echo "Open site/index.html"

bench: $(VENV)/.dev ## compare with the peers, in one process
	$(BIN)/python -m benchmarks $(ARGS)

clean: ## remove all that these commands made
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
