# `make run` builds everything from samples, `make ui` shows it; `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
LOCKER := .venv-lock/bin
RUN := .venv/installed-run
TEST := .venv/installed-test
ENGINES := .venv/installed-engines
DOCS := .venv/installed-docs
# In the package, so that a wheel carries it. A file in it is named by the hash of what it was made of.
SITE := gristmill/browse/web/site
DATA := $(or $(GRISTMILL_DATA),data)
PORT ?= 3000
# Processes that run tests; 0: pytest itself runs them, for a debugger.
WORKERS ?= 2
BENCHES := pack macroxue_pools puzzles_arc puzzles_domino puzzles_reader puzzles_sudoku readers reasoning reasoning_align reasoning_reader synth synth_fresh synth_harmony synth_trace \
	tiktoken_public chess chess_month input_proof dagster_overhead landing nothing_to_do small_commands projection tick hostile_text corpora \
	instance_bytes browse loader messages
PIP := $(BIN)/python -m pip install --disable-pip-version-check
# What is built from source is built by the pinned setuptools: isolation would fetch one without a
# hash. So pip and setuptools come first.
HASHED := $(BIN)/python requirements/install.py $(LOCKER)/uv
# Requirements with hashes cannot be editable, so the checkout comes after them.
CHECKOUT := $(PIP) --quiet --no-index --no-build-isolation --no-deps -e .
# Containers often forbid Python to keep compiled modules: every run, and each of the many processes
# that tests start, would compile all of them.
export PYTHONDONTWRITEBYTECODE :=
# What is pinned already stays; `make lock UPGRADE=--upgrade` takes the newest of everything, and
# `UPGRADE="--upgrade-package NAME"` of one.
COMPILE_LOCK := $(LOCKER)/uv pip compile --quiet --no-annotate --python-version 3.11 \
	--config-file requirements/uv.toml --custom-compile-command "make lock" $(UPGRADE)
ENVIRONMENT := pyproject.toml requirements/environment.in

# `pip install .` puts a copy of the library in the place of this checkout: install it again.
ifeq ($(shell grep -lsxF "$(CURDIR)" .venv/lib/python3*/site-packages/__editable__.gristmill-*.pth),)
.PHONY: $(RUN)
endif

.PHONY: run setup ui docs wheel test kernels pictures fuzz soak bench lint install engines lock clean help

run: $(RUN)	## install what running needs, write samples, build everything
	$(BIN)/gristmill tokenizers --data-root $(DATA)
	$(BIN)/gristmill samples $(DATA)
	$(BIN)/gristmill materialize --all --data-root $(DATA)

setup: $(RUN)	## install what running needs

ui: $(RUN)	## serve the instance at http://127.0.0.1:3000; PORT=3001 chooses another port
	@mkdir -p build; $(MAKE) --no-print-directory docs > build/docs.log 2>&1 &
	$(BIN)/gristmill ui --port $(PORT)

docs: $(DOCS)	## make the site of docs/, where it changed; the UI serves it at /docs/
	@state=$$({ find docs gristmill -type f -name '*.md' -o -type f -name '*.py' -o -type f -path 'docs/*' | LC_ALL=C sort | \
		xargs sha256sum; sha256sum mkdocs.yml commands/serving/docs_site.py; echo "$$GRISTMILL_DOCS_URL"; } | sha256sum | cut -c 1-16); \
	test -e $(SITE)/.$$state || { rm -rf build/site && \
		NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet && touch build/site/.$$state && \
		rm -rf $(SITE) && mv build/site $(SITE); }

wheel: docs	## a wheel in dist/, with the site
	$(PIP) wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .

test: lint	## lint, types and tests (installs torch, too)
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow"

lint: $(TEST)	## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers $(WORKERS)

fuzz: $(TEST)	## fuzz every parser; GRISTMILL_FUZZ_SECONDS=60 gives each a minute
	$(BIN)/python -m tests.fuzz

kernels: $(TEST)	## compile the kernels that come with the package, at a release
	$(BIN)/python -m tests.run.ship_kernels

pictures: $(TEST)	## make the pictures of the docs from the UI, in Chromium
	rm -rf /tmp/gristmill
	GRISTMILL_REQUIRE=browser GRISTMILL_PICTURES=docs \
		$(BIN)/python -m pytest -q --basetemp=/tmp/gristmill tests/e2e/test_browser.py

soak: $(TEST)	## every slow test, all of its cases; hours
	GRISTMILL_WHOLE=1 $(BIN)/python -m pytest -q -n $(WORKERS) -m slow --durations=30

bench: $(TEST)	## run the benchmarks
	missed=0; for bench in $(BENCHES); do \
		echo "== $$bench"; $(BIN)/python -m bench.$$bench || missed=1; \
	done; exit $$missed

install: $(TEST)	## everything that running and testing need

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(RUN): pyproject.toml requirements/environment.txt requirements/run.txt requirements/lock.txt | $(BIN)/python
	@$(MAKE) --no-print-directory $(LOCKER)/uv || echo "uv is not to be had: pip installs"
	$(HASHED) requirements/environment.txt
	$(HASHED) requirements/run.txt
	$(CHECKOUT)
	$(BIN)/python -m pip check
	rm -rf .venv-lock
	touch $@

$(DOCS): $(RUN) requirements/docs.txt
	$(HASHED) requirements/docs.txt
	touch $@

# torch alone comes without a hash: its build for this machine may not be the one of the index.
$(TEST): $(RUN) requirements/test.txt constraints.txt
	@$(MAKE) --no-print-directory $(LOCKER)/uv || echo "uv is not to be had: pip installs"
	$(HASHED) requirements/test.txt
	$(PIP) -c constraints.txt torch
	$(BIN)/python -m pip check
	touch $@

# Ray, Postgres, an S3 server, linters, the oldest NumPy: half a gigabyte that a person who uses none of them never needs.
$(ENGINES): $(TEST) requirements/engines.txt
	$(HASHED) requirements/engines.txt
	$(BIN)/python -m pip check
	$(PIP) --quiet --only-binary=:all: --no-deps --upgrade --target .venv/oldest-numpy numpy==2.1.0
	touch $@

engines: $(ENGINES)	## install Ray, Postgres' driver, an S3 server, linters and the oldest NumPy too; their tests run then

lock: $(LOCKER)/uv	## renew constraints.txt and requirements/ after a change of pyproject.toml
	$(COMPILE_LOCK) --all-extras -o constraints.txt $(ENVIRONMENT)
	$(COMPILE_LOCK) --generate-hashes -c constraints.txt \
		-o requirements/environment.txt requirements/environment.in
	$(COMPILE_LOCK) --generate-hashes -c constraints.txt \
		--extra pipeline --extra chess --extra browse -o requirements/run.txt $(ENVIRONMENT)
	$(COMPILE_LOCK) --generate-hashes -c constraints.txt --extra docs -o requirements/docs.txt $(ENVIRONMENT)
	$(COMPILE_LOCK) --generate-hashes -c constraints.txt \
		$(foreach each,pipeline chess browse mirror postgres,--extra $(each)) \
		-o requirements/image.txt $(ENVIRONMENT)
	$(COMPILE_LOCK) --generate-hashes -c constraints.txt \
		$(foreach each,pipeline chess browse train mirror docs sentencepiece dev,--extra $(each)) --no-emit-package torch \
		-o requirements/test.txt $(ENVIRONMENT)
	$(COMPILE_LOCK) --generate-hashes -c constraints.txt \
		--all-extras --no-emit-package torch -o requirements/engines.txt $(ENVIRONMENT)
	$(COMPILE_LOCK) --generate-hashes -o requirements/lock.txt requirements/lock.in

# With uv's pin and hash; a target of its own, so that `make run` continues without it.
$(LOCKER)/uv: requirements/lock.txt | $(BIN)/python
	$(PYTHON) -m venv --without-pip .venv-lock
	$(BIN)/python -m pip --quiet --disable-pip-version-check --python $(LOCKER)/python \
		install --require-hashes --only-binary :all: -r $<
	touch $@

clean:	## remove the environment and the instance's state, not the data
	rm -rf .venv .venv-lock .dagster build dist $(SITE) *.egg-info

help:	## list these targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "%-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
