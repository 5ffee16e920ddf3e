# `make lab` and `make test` are the two that matter; `make help` lists the rest.
# PYTHON=/path/to/python3.12 chooses another interpreter, VENV=dir another environment.

VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := sh scripts/python.sh scripts/install.py --venv $(VENV)
export PYTHON

PACKAGE := mmsp_nb
CODE := $(PACKAGE) tests scripts conftest.py $(wildcard benchmarks)
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
# Seconds of each fuzz target, and which ones (all).
FUZZ_TIME ?= 60
FUZZ ?=
# How many processes the tests share; 0 runs them in one.
WORKERS ?= 2
# Environments that tests use beside the project's own.
BESIDE := ipykernel629 ipython734 reference

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: docs binder help lab demo install test check lint format format-check typecheck unit fetch-model notebooks conformance conformance-record beside bench faults fuzz clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

lab: ## JupyterLab with the quick start, and a local model that needs no key
	@$(INSTALL) lab
	@$(BIN)/python scripts/lab.py fetch
	@exec $(BIN)/python scripts/lab.py lab notebooks/quickstart.ipynb

demo: ## the quick start without a browser: runs in a real kernel, prints the answers
	@$(INSTALL) lab
	@$(BIN)/python scripts/lab.py fetch
	@exec $(BIN)/python scripts/lab.py demo notebooks/quickstart.ipynb

install: ## the environment with everything for development
	@$(INSTALL) test

test: check ## every check and every test, the notebooks included
	@$(INSTALL) browser
	@$(BIN)/python scripts/lab.py fetch
	@$(BIN)/python scripts/environments.py $(BESIDE)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --cov --cov-report=term:skip-covered --nbval tests $(NOTEBOOKS)

check: lint format-check typecheck ## lint, format and types, without the tests

unit: install ## the tests that start no kernel, no browser and no local model
	@$(BIN)/python -m pytest -n $(WORKERS) -m "not kernel and not browser and not local_model and not reference" tests

lint: install ## ruff check
	@$(BIN)/ruff check $(CODE)

format: install ## ruff format, in place
	@$(BIN)/ruff format $(CODE)

format-check: install
	@$(BIN)/ruff format --check $(CODE)

typecheck: install ## mypy
	@$(BIN)/mypy

fetch-model: ## the weights of the local model (93 MB), checked by hash, into the user's cache
	@$(INSTALL) lab
	@$(BIN)/python scripts/lab.py fetch --strict

notebooks: install ## runs the notebooks on the demo model and stores their outputs
	@$(BIN)/python scripts/lab.py store $(NOTEBOOKS)

docs: install ## the site, in site/: pages made of the code anew, links checked, notebooks as pages
	@$(BIN)/python scripts/provider_table.py
	@$(BIN)/python scripts/reference_page.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

binder: install ## what Binder builds, here: a fresh environment, every notebook, JupyterLab in Chromium, 2 GB of memory
	@$(INSTALL) browser
	@$(BIN)/python scripts/binder.py

conformance: install ## this package and the reference side by side, live, 3,000 cases (makes .venvs/reference)
	@$(BIN)/python tests/conformance/run.py
	@$(BIN)/python -m pytest -q tests/mmsp_server

conformance-record: install ## the same, and keeps the reference's results for the ordinary tests
	@$(BIN)/python tests/conformance/run.py --record

beside: install ## environments with the oldest ipykernel, Colab's IPython and the reference, in .venvs/
	@$(BIN)/python scripts/environments.py $(BESIDE)

bench: beside ## speed, memory and output beside their peers, into benchmarks/RESULTS.md
	@-$(BIN)/python scripts/environments.py peers
	@$(BIN)/python benchmarks/run.py

fuzz: install ## looks for faults in all that is read, FUZZ_TIME seconds for each of FUZZ (all) targets; see tests/fuzz
	@$(BIN)/python scripts/environments.py fuzz
	@nice -n 15 .venvs/fuzz/bin/python tests/fuzz/run_fuzz.py --time $(FUZZ_TIME) $(FUZZ)

faults: install ## every fault in every dialect for every consumer, into benchmarks/FAULTS.md
	@PYTHONPATH=tests/faults $(BIN)/python tests/faults/matrix.py --write benchmarks/FAULTS.md

clean: ## removes the environment and everything built; the model in the user's cache stays
	rm -rf $(VENV) build dist out site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +
