# `make` lists the targets. Everything runs in .venv, which is made on first use.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
JOBS   ?= 2
PYTEST := $(BIN)/python -m pytest
# Neighbours stay with one worker, for what they share; a worker that has finished takes tests of the other.
PARALLEL := -n $(JOBS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup run demo inspect test check format requirements faults interop interop-client bench bench-load bench-client bench-peers bench-pipeline pipelines docs clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install Skyrocket with its tools

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Skyrocket needs Python 3.11 or newer; set PYTHON=…")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

run: $(STAMP) ## start name server and broker in one process (9876, 10911), store in var/store
	@$(BIN)/skyrocket standalone --store $${STORE:-var/store} $(ARGS)

demo: $(STAMP) ## a server, orders, and their revenue per minute on Spark, all at once
	@$(BIN)/skyrocket demo $(ARGS)

inspect: $(STAMP) ## inspect a sample store, or STORE=directory
	@test -n "$$STORE" || $(BIN)/python examples/sample_store.py
	@$(BIN)/skyrocket inspect $${STORE:-var/sample-store} $(ARGS)

test: $(STAMP) check ## every test but the long modes (a few minutes)
	$(PYTEST) $(PARALLEL) -m "not slow"

check: $(STAMP) ## format, lint, strict types, import arrows, sizes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -q tests/unit/test_import_arrows.py tests/unit/test_code_sizes.py

format: $(STAMP) ## rewrite the code in the common style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

requirements: $(STAMP) ## which requirement is shown by which test
	@$(BIN)/python -m tests.requirements

faults: $(STAMP) ## the long fault suite: every write, byte and bit; kill -9 in a loop; many more random examples
	$(PYTEST) $(PARALLEL) --hypothesis-profile=thorough tests/faults tests/unit/format tests/unit/fastjson tests/unit/protocol tests/integration/test_bench_runs.py

interop: $(STAMP) ## RocketMQ's clients, tools and stores with ours (needs Java, Maven, Go, Node)
	$(PYTEST) tests/interop; status=$$?; $(BIN)/python -m tests.interop.matrix; exit $$status

interop-client: $(STAMP) ## our client with Skyrocket, Apache RocketMQ 5.4.0 and 4.9.7: one suite, a table (needs Java, Maven)
	rm -f var/interop/client.json
	$(PYTEST) tests/integration/client/test_three_servers.py tests/integration/client/test_kill.py tests/integration/client/test_mixed_groups.py tests/integration/client/test_terminal.py; \
	status=$$?; $(BIN)/python -m tests.integration.client.matrix; exit $$status

pipelines: $(STAMP) ## the long modes of the Spark suites: kills, clusters, five million messages, Apache RocketMQ
	$(PYTEST) tests/pipeline

bench: $(STAMP) ## speed, as ratios from one run, with a table and a plot
	$(BIN)/python -m bench.store

bench-load: $(STAMP) ## load on our broker: rate, latency, CPU per message (ARGS="send --rate 5000"; --help)
	$(BIN)/python -m bench.load --start $(ARGS)

bench-client: $(STAMP) ## our client beside a bare protocol loop (ARGS=--others: beside the official clients)
	$(BIN)/python -m bench.client_speed $(ARGS)

bench-peers: $(STAMP) ## beside Apache RocketMQ, RabbitMQ, NATS, Redis on this machine (ten minutes; needs Java, Maven)
	$(BIN)/python -m bench.peers $(ARGS)

bench-pipeline: $(STAMP) ## decoder, commit-log source, archive, rebuild, stream source and sink beside their floor
	$(BIN)/python -m bench.pipeline $(ARGS)

docs: $(DOCS_STAMP) ## the documentation as a site in site/; a broken link fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean: ## remove what the other targets made
	rm -rf $(VENV) var build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/results
