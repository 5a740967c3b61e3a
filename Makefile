# `make` lists the targets. Everything runs in .venv, which is made on first use.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SERVER_STAMP := $(VENV)/.installed-server
DOCS_STAMP := $(VENV)/.installed-docs
# A server needs a tenth of what the tests need. Who has installed everything has the server too.
SERVER := $(if $(wildcard $(STAMP)),$(STAMP),$(SERVER_STAMP))
export JOBS ?= 2
PYTEST := $(BIN)/python -m pytest
SUITES := $(BIN)/python -m tests.suites
# Modules are compiled when they are first imported: most of Spark's and the tools' never are.
INSTALL := $(BIN)/python -m pip install --no-compile --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
FAULTS := faults-store faults-flips faults-damage faults-lives faults-broker faults-attacks faults-client faults-replication faults-failover faults-sets faults-sets-two faults-sets-one faults-formats

.PHONY: help setup run demo inspect test check format requirements faults $(FAULTS) interop interop-pairs interop-client pipelines pipelines-outside long newcomer bench bench-load bench-client bench-guard bench-growth bench-stalls bench-brokers bench-peers bench-python bench-replication bench-failover bench-pipeline console deploy-files console-pages console-shots bench-console docs clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install Skyrocket with Spark and all tools (1.4 GB)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Skyrocket needs Python 3.11 or newer; set PYTHON=…")'
	@echo "Making $(VENV) …"
	@$(PYTHON) -m venv $(VENV) || { rm -f $@; exit 1; }  # a half made one would be taken for whole next time

$(SERVER_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what a server and its console need (150 MB, no Spark) …"
	@$(INSTALL) -e '.[server,console]'
	@touch $@

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Skyrocket with Spark and the tools for tests (1.4 GB) …"
	@$(INSTALL) -e '.[dev]'
	@touch $@

run: $(SERVER) ## start name server, broker and console in one process (9876, 10911, 8082), store in var/store (ARGS="--namesrv-port 9877": options of it)
	@$(BIN)/skyrocket standalone --store $${STORE:-var/store} $(ARGS)

demo: $(STAMP) ## a server, orders, and their revenue per minute on Spark, all at once
	@$(BIN)/skyrocket demo $(ARGS)

console: $(SERVER) ## the cluster of NAMESRV_ADDR (127.0.0.1:9876) in the browser, http://127.0.0.1:8082
	@$(BIN)/skyrocket console $(ARGS)

inspect: $(SERVER) ## inspect a sample store, or STORE=directory
	@test -n "$$STORE" || $(BIN)/python examples/sample_store.py
	@$(BIN)/skyrocket inspect $${STORE:-var/sample-store} $(ARGS)

test: $(STAMP) check ## every test but the long modes (a few minutes)
	$(SUITES) test

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

faults: $(STAMP) ## all parts of the fault suite, one after the other, each up to 20 minutes
	$(SUITES) $(FAULTS)

faults-store: ## part: a crash and an error at every operation of the disk, full disks
faults-flips: ## part: flipped bits, logs cut at every byte, power cuts, kill -9 in a loop
faults-damage: ## part: damaged, lost and swapped files of both makers, 2,000 random harms
faults-lives: ## part: random lives of a store against a model
faults-broker: ## part: brokers killed under load, disks that stand still (root); pop, timers, transactions against models
faults-attacks: ## part: floods and bombs, and an honest client beside them that waits 200 ms at most (a quiet machine)
faults-client: ## part: clients whose broker dies, exactly-once effects with many kills
faults-replication: ## part: 20,000 simulated lives of a master and its slaves, 200 faults of a pair of processes; acting masters
faults-failover: ## simulated sets under controllers; masters killed under load; engines killed and paused; the three below (needs Java, Maven, zookeeper, etcd-server)
faults-sets: ## part: three brokers of ours, 50 masters killed under load, our controller and Apache's (needs Java, Maven)
faults-sets-two: ## part: the same with two brokers of ours and one of Apache's (needs Java, Maven)
faults-sets-one: ## part: the same with one broker of ours and two of Apache's (needs Java, Maven)
faults-formats: ## part: many more random examples for bytes, headers and JSON
interop: ## RocketMQ's clients, tools and stores with ours, and a table (needs Java, Maven, Go, Node)
interop-pairs: ## masters and slaves of both makers under 200,000 messages, kills and restarts (needs Java, Maven)
interop-client: ## our client with Skyrocket and Apache RocketMQ: one suite, a table (needs Java, Maven)
pipelines: ## the long modes of the Spark suites: kills, clusters, five million messages, Apache RocketMQ
pipelines-outside: ## the sink exactly once through twenty kills, on S3, on HDFS, Dagster, Airflow, Celery, FastStream (installs them)
deploy-files: ## what lies in deploy/ through Helm, Kubernetes' and Grafana's schemas, and a real Prometheus (needs Go, prometheus)
console-pages: ## the pages of the console in Chromium: what people do in them (needs chromium, chromium-driver)
$(filter-out faults-failover,$(FAULTS)) interop interop-pairs interop-client pipelines pipelines-outside console-pages deploy-files: $(STAMP)
	$(SUITES) $@

faults-failover: $(STAMP)
	$(SUITES) $(filter faults-failover faults-sets%,$(FAULTS))

console-shots: $(STAMP) ## pictures of all pages of the console in var/console-shots (needs chromium, chromium-driver)
	$(BIN)/python -m tests.integration.console.shots $(ARGS)

long: $(STAMP) ## every suite that has not passed at this commit, one after the other, and one table: hours
	$(SUITES) --all $(ARGS)

newcomer: $(SERVER) ## how long a newcomer waits: clean clone, ready, first message (ARGS="COMMIT …" compares)
	$(BIN)/python -m bench.newcomer $(ARGS)

bench: $(STAMP) ## speed, as ratios from one run, with a table and a plot
	$(BIN)/python -m bench.store

bench-load: $(STAMP) ## load on our broker: rate, latency, CPU per message (ARGS="send --rate 5000"; --help)
	$(BIN)/python -m bench.load --start $(ARGS)

bench-client: $(STAMP) ## our client beside a bare protocol loop (ARGS=--others: beside the official clients)
	$(BIN)/python -m bench.client_speed $(ARGS)

bench-guard: $(STAMP) ## is it as fast as it was? five minutes; fails where a cost grew by more than 15 % (ARGS=--record keeps today's)
	$(BIN)/python -m bench.guard $(ARGS)

bench-growth: $(STAMP) ## 10,000 topics, 5,000 connections, 10 million messages: rate and memory, as lines (5 minutes)
	$(BIN)/python -m bench.growth $(ARGS)

bench-stalls: $(STAMP) ## how long pulls wait while the disk stands still (root; ARGS=--frozen: a frozen file system)
	$(BIN)/python -m bench.stalls $(ARGS)

bench-brokers: $(STAMP) ## how much more --brokers 2 takes than one broker
	$(BIN)/python -m bench.brokers $(ARGS)

bench-peers: $(STAMP) ## beside Apache RocketMQ, RabbitMQ, NATS, Redis by their load tools, then bench-python (25 minutes; needs Java, Maven)
	$(INSTALL) --quiet -e ".[bench]"
	$(BIN)/python -m bench.peers $(ARGS)

bench-python: $(STAMP) ## the last part of bench-peers alone: Apache RocketMQ, Kafka, NATS, Redis, RabbitMQ by their Python clients (10 minutes)
	$(INSTALL) --quiet -e ".[bench]"
	$(BIN)/python -m bench.python_clients $(ARGS)

bench-replication: $(STAMP) ## what a slave costs its master, how fast it follows and catches up
	$(BIN)/python -m bench.replication $(ARGS)

bench-failover: $(STAMP) ## time without a writable master after kill -9, beside Apache's (ARGS="--runs 50 --minutes 20", then with --resume; needs Java, Maven)
	$(BIN)/python -m bench.failover $(ARGS)

bench-console: $(STAMP) ## the console in front of 1,000 topics: what an idle broker pays, how soon pages have their data
	$(BIN)/python -m bench.console_pages $(ARGS)

bench-pipeline: $(STAMP) ## decoder, commit-log source, archive, rebuild, stream source and sink beside their floor
	$(BIN)/python -m bench.pipeline $(ARGS)

docs: $(DOCS_STAMP) ## the documentation as a site in site/; a broken link fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

$(DOCS_STAMP): $(STAMP)
	@$(INSTALL) -e '.[docs]'
	touch $@

clean: ## remove what the other targets made
	rm -rf $(VENV) var build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/results
