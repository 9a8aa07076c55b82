# The two commands a newcomer needs are `make demo` and `make test`; `make help` lists the rest.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.set-up
SEEDS  ?= 10000

.DEFAULT_GOAL := help
.PHONY: help setup java doctor demo serve sources test check format bench soak clean

help: ## what there is to do
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk -F ':.*?## ' '{printf "  make %-9s %s\n", $$1, $$2}'

setup: $(STAMP) ## make the virtual environment and install everything into it

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "The mediator needs Python 3.11 or newer: apt-get install python3, or set PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "Python cannot make virtual environments here: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[api,bench,dev,spark]'
	$(BIN)/python -c 'from mediator.state.warming import warm; warm()'
	@$(MAKE) --no-print-directory java
	@touch $(STAMP)

# Only Spark needs it, so all else goes on without.
java:
	@$(BIN)/python -m pipeline.java 2>/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && { apt-get install -y -qq openjdk-17-jre-headless || apt-get install -y -qq default-jre-headless; } \
	            >/dev/null 2>&1; \
	       $(BIN)/python -m pipeline.java; } \
	  || echo "Everything but Spark works without it."

doctor: setup ## say what is here, what is missing, and what to do about it
	@$(BIN)/mediator doctor --spark

demo: setup ## start the scripted Deep Web, answer a query over it, here and on Spark, and report
	@$(BIN)/mediator demo

serve: setup ## answer queries over HTTP, over the scripted Deep Web: http://127.0.0.1:8080
	@$(BIN)/mediator serve --demo

sources: setup ## list the relations of the book trade and how each can be asked
	@$(BIN)/mediator sources --demo

# Two processes more than there are processors: much of Spark, and of HTTP, is waiting.
test: setup ## run every test, in parallel
	@command -v curl >/dev/null \
	  || { echo "The tests follow the tutorial, which asks with curl, and there is none here: apt-get install curl"; exit 1; }
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 \
	  || { echo "The tests start a PostgreSQL server, and there is none here: apt-get install postgresql"; exit 1; }
	@$(BIN)/python -m pipeline.java >/dev/null
	$(BIN)/python -m pytest -n $$(($$(nproc) + 2)) --durations 20 --durations-min 5

check: setup ## format, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## put the code into its one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## the local join race, as one JSON object
	$(BIN)/python -m bench local --json

soak: setup ## the any-route search at scale: make soak SEEDS=100000
	$(BIN)/python -m tests.any_route --seeds $(SEEDS)

clean: ## remove what set-up and the tools made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
