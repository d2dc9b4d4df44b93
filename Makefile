# Two commands do: `make run` builds everything from samples, `make ui` shows it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
DATA := $(or $(GRISTMILL_DATA),data)
BENCHES := pack macroxue_pools synth chess dagster_overhead

.PHONY: run ui test bench lint install clean

run: install
	$(BIN)/gristmill tokenizers --data-root $(DATA)
	$(BIN)/gristmill samples $(DATA)
	$(BIN)/python operate.py materialize --all

ui: install
	$(BIN)/dagster dev -w workspace.yaml -h 127.0.0.1 -p 3000

test: install lint
	$(BIN)/python -m pytest -q -m "not slow"

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install
	missed=0; for bench in $(BENCHES); do \
		echo "== $$bench"; $(BIN)/python -m bench.$$bench || missed=1; \
	done; exit $$missed

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[chess,dev,train]"
	# Containers often forbid Python to keep what it compiled: every run would compile all anew.
	$(BIN)/python -m compileall -q gristmill assets resources sensors definitions.py operate.py
	touch $@

clean:
	rm -rf .venv .dagster build *.egg-info
