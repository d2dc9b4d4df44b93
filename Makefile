# `make run` builds everything from samples, `make ui` shows it; `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
RUN := .venv/installed-run
TEST := .venv/installed-test
DATA := $(or $(GRISTMILL_DATA),data)
BENCHES := pack macroxue_pools synth chess dagster_overhead
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Containers often forbid Python to keep compiled modules: every run would compile all of them.
COMPILE := $(BIN)/python -m compileall -q gristmill assets commands resources sensors definitions.py

.PHONY: run ui test fuzz soak bench lint install clean help

run: $(RUN)	## install what running needs, write samples, build everything
	$(BIN)/gristmill tokenizers --data-root $(DATA)
	$(BIN)/gristmill samples $(DATA)
	$(BIN)/gristmill materialize --all --data-root $(DATA)

ui: $(RUN)	## serve the instance at http://127.0.0.1:3000
	$(BIN)/gristmill ui

test: lint	## lint, types and tests (installs torch, too)
	$(BIN)/python -m pytest -q -m "not slow"

lint: $(TEST)	## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: $(TEST)	## fuzz every parser; GRISTMILL_SLOW_SECONDS=60 gives each a minute
	$(BIN)/python -m tests.fuzz

soak: $(TEST)	## every slow test, all of its cases; hours
	env -u GRISTMILL_SLOW_SECONDS $(BIN)/python -m pytest -q -m slow --durations=30

bench: $(TEST)	## run the benchmarks
	missed=0; for bench in $(BENCHES); do \
		echo "== $$bench"; $(BIN)/python -m bench.$$bench || missed=1; \
	done; exit $$missed

install: $(TEST)	## everything that running and testing need

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(RUN): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[pipeline,chess]"
	$(COMPILE)
	touch $@

$(TEST): $(RUN)
	$(PIP) -e ".[pipeline,chess,dev,train]"
	touch $@

clean:	## remove the environment and the instance's state, not the data
	rm -rf .venv .dagster build *.egg-info

help:	## list these targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "%-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
