# The two commands that matter are `make book` and `make test`. `make help` lists the rest.

PYTHON ?= python3
WORKERS ?= 2
EDITION ?= default

venv := .venv
ifeq ($(OS),Windows_NT)
bin := $(venv)/Scripts
else
bin := $(venv)/bin
endif

.DEFAULT_GOAL := help
.PHONY: help book quick paper test clean

help:  ## List these commands.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' Makefile

book: $(venv)/installed  ## Make the book: _build/default/index.html (EDITION=default, WORKERS=2).
	$(bin)/python -m lib book --edition $(EDITION) --workers $(WORKERS)

quick:  ## Make the book from small samples, to see everything work.
	@$(MAKE) --no-print-directory book EDITION=quick

paper:  ## Make the book at the sizes of the papers.
	@$(MAKE) --no-print-directory book EDITION=paper

test: $(venv)/installed-test  ## Run all tests, the examples in docstrings included.
	$(bin)/python -m pytest -n $(WORKERS)

clean:  ## Remove what runs have made: pages, rendered books, kept results. Keeps .venv.
	rm -rf _build runs book/executed .cache .pytest_cache .ruff_cache .hypothesis

# The stamps make each installation happen once, and again when the lists of dependencies change.
# Of 12 000 files some 3 000 are ever imported: Python compiles those then, instead of pip all now,
# and has to keep what it compiled.
pip := -m pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE

$(venv)/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is no Python 3.11 or later; name one, as in: make book PYTHON=python3.12" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(venv)
	$(bin)/python $(pip) --editable .
	@touch $@

$(venv)/installed-test: $(venv)/installed
	$(bin)/python $(pip) --editable '.[test]'
	@touch $@
