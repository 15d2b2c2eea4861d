# `make test` sets everything up and runs every check; `make help` lists the rest.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
# Only what is known to use no more than one core, and nothing of another's, runs side by side.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

UV := .uv/bin/uv
BIN := .venv/bin
PYTHON := $(BIN)/python
FORGE := node_modules/.bin/forge

# Calls of `make invariants`, over all invariants together.
CALLS ?= 1000000
# More arguments for brownie's tests, such as ARGS="-k settle -x".
ARGS ?=

# What is built of the page.
PAGE := dapp/static/index.html
PAGE_SOURCES := $(shell find dapp/web/src dapp/web/public -type f) $(addprefix dapp/web/,index.html package.json tsconfig.json vite.config.ts)

PYTHON_FILES := trainyard worker_agent dapp scripts tests benchmarks examples

##@ Everything

# What takes least comes first, so that most mistakes are found in minutes.
.PHONY: test
test: setup sandbox java one-core test-unit test-agent test-dapp test-content test-contracts test-engine test-market ## Set up, then run every check

# Two at a time, the longest first.
ONE_CORE := test-spark lint fuzz coverage slither test-chain test-wheel test-page snapshots-check abi-check size
.PHONY: one-core
one-core: setup
	@$(MAKE) --jobs=2 --output-sync=target SIDE_BY_SIDE=1 $(ONE_CORE)

.PHONY: demo
demo: setup sandbox ## A whole market on this machine: LeNet-5 trained, audited and paid for
	@$(BIN)/trainyard demo

.PHONY: demo-contracts
demo-contracts: setup ## Walk a task and a cheat through the contracts alone, step by step
	@$(PYTHON) -m scripts.fresh_chain scripts/demo.py

##@ Set-up

.PHONY: setup
setup: .venv/.linked $(PAGE) ## Install all that the repository needs, inside it, and build the page

.uv/.installed: locks/uv.txt
	@command -v python3.11 >/dev/null || { \
	  echo "Python 3.11 is missing. Install it (Debian: apt-get install python3.11 python3-pip; or pyenv install 3.11)." >&2; exit 1; }
	@python3.11 -m pip --version >/dev/null 2>&1 || { \
	  echo "pip of Python 3.11 is missing. Install it (Debian: apt-get install python3-pip; or python3.11 -m ensurepip --user)." >&2; exit 1; }
	@echo "Installing uv ..."
	@rm -rf .uv
	@python3.11 -m pip install --quiet --disable-pip-version-check --no-input --root-user-action=ignore --require-hashes --target .uv -r locks/uv.txt
	@touch $@

.venv/.installed: locks/dev.txt pyproject.toml | .uv/.installed
	@echo "Installing Python packages ..."
	@[ -x $(PYTHON) ] || $(UV) venv --quiet --python python3.11 .venv
# Compiled at once: where Python is told to leave no bytecode behind, each start of TensorFlow would compile it anew.
	@$(UV) pip sync --quiet --require-hashes --compile-bytecode locks/dev.txt
	@$(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

node_modules/.installed: package-lock.json .npmrc
	@command -v node >/dev/null && command -v npm >/dev/null || { \
	  echo "Node 20 with npm is missing. Install it (Debian: apt-get install nodejs npm; or a Node version manager)." >&2; exit 1; }
	@node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' || { \
	  echo "Node $$(node --version) is too old: version 20 or newer is needed." >&2; exit 1; }
	@echo "Installing Node packages ..."
	@npm ci --silent
	@touch $@

dapp/web/node_modules/.installed: dapp/web/package-lock.json dapp/web/.npmrc | node_modules/.installed
	@echo "Installing Node packages of the page ..."
	@cd dapp/web && npm ci --silent
	@touch $@

$(PAGE): dapp/web/node_modules/.installed $(PAGE_SOURCES)
	@echo "Building the page ..."
	@cd dapp/web && npm run --silent build -- --logLevel warn
	@touch $@

.PHONY: page
page: $(PAGE) ## The page of the dapp, into dapp/static

.venv/.linked: .venv/.installed node_modules/.installed scripts/toolchain/link.py scripts/toolchain/trainyard_toolchain.py package.json
	@$(PYTHON) scripts/toolchain/link.py
	@touch $@

# A package of the distribution, if the command $(1) fails: installed for root on Debian, and else asked for.
debian = $(1) >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  echo "Installing $(2) ..." && export DEBIAN_FRONTEND=noninteractive && \
	  { apt-get install -y -qq $(2) >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq $(2) >/dev/null; }; }; } || { \
	  echo "$(2) is missing. Install it (Debian: apt-get install $(2))." >&2; exit 1; }

.PHONY: sandbox
sandbox: ## Bubblewrap, in which the code of strangers runs
	@$(call debian,command -v bwrap,bubblewrap)

.PHONY: systemd
systemd: ## systemd-analyze, with which the tests look at the agent's unit
	@$(call debian,command -v systemd-analyze,systemd)

.PHONY: compiler
compiler: ## A C compiler, with which the tests make clocks that go wrong
	@$(call debian,command -v cc,gcc)

.PHONY: chromium
chromium: ## Debian's Chromium, for the tests of the page
	@$(call debian,command -v chromium,chromium)

.PHONY: postgresql
postgresql: ## PostgreSQL, on which the dapp's tests run as well as on SQLite
	@$(call debian,ls /usr/lib/postgresql/*/bin/initdb,postgresql)

.PHONY: java
java: ## Java 17 or newer, on which Spark runs
	@$(call debian,java --version,default-jre-headless)

# Apart from all else, since it wants older packages; what is compared with it takes the same TensorFlow.
.PHONY: flower
flower: build/flower/.installed ## Flower, which a benchmark compares with, in an environment of its own

build/flower/.installed: locks/flower.txt | .uv/.installed
	@echo "Installing Flower ..."
	@[ -x build/flower/bin/python ] || $(UV) venv --quiet --python python3.11 build/flower
	@$(UV) pip sync --quiet --require-hashes --compile-bytecode --python build/flower/bin/python locks/flower.txt
	@touch $@

.PHONY: schemathesis
schemathesis: build/schemathesis/.installed ## Makes up requests for the API, in an environment of its own

build/schemathesis/.installed: locks/schemathesis.txt | .uv/.installed
	@echo "Installing schemathesis ..."
	@[ -x build/schemathesis/bin/python ] || $(UV) venv --quiet --python python3.11 build/schemathesis
	@$(UV) pip sync --quiet --require-hashes --compile-bytecode --python build/schemathesis/bin/python locks/schemathesis.txt
	@touch $@

.PHONY: lock
lock: .venv/.linked ## Resolve dependencies again and rewrite all locks
# Away from node_modules, from which npm would take packages over without their hashes.
	@rm -rf build/npm-lock && mkdir -p build/npm-lock && cp package.json .npmrc build/npm-lock
	@cd build/npm-lock && npm install --silent --package-lock-only
	@$(PYTHON) -m scripts.strip_npm_lock build/npm-lock/package-lock.json package-lock.json
	@rm -rf build/page-lock && mkdir -p build/page-lock && cp dapp/web/package.json dapp/web/.npmrc build/page-lock
	@cd build/page-lock && npm install --silent --package-lock-only
	@$(PYTHON) -m scripts.strip_npm_lock build/page-lock/package-lock.json dapp/web/package-lock.json
	@$(UV) pip compile --quiet --upgrade $(COMPILE_FLAGS) --group dev pyproject.toml -o locks/dev.txt
	@$(UV) pip compile --quiet $(COMPILE_FLAGS) -c locks/dev.txt pyproject.toml -o locks/runtime.txt
	@$(UV) pip compile --quiet $(COMPILE_FLAGS) --group flower -o locks/flower.txt
	@$(UV) pip compile --quiet $(COMPILE_FLAGS) --group schemathesis -o locks/schemathesis.txt
COMPILE_FLAGS := --universal --generate-hashes --no-emit-index-url --no-annotate --no-header

.PHONY: clean
clean: ## Remove everything that was built or installed
	@rm -rf .uv .venv node_modules dapp/web/node_modules dapp/static build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

##@ Checks

.PHONY: lint
lint: setup ## Style, types and layers of the Python code
	@$(BIN)/ruff check --quiet $(PYTHON_FILES)
	@$(BIN)/ruff format --check --quiet $(PYTHON_FILES) || { echo "Run 'make format'." >&2; exit 1; }
	@$(BIN)/mypy --strict --no-error-summary
	@layers=$$($(BIN)/lint-imports 2>&1) || { echo "$$layers" >&2; exit 1; }
	@echo "lint: ruff, mypy --strict and import-linter found nothing"

.PHONY: format
format: setup ## Format the Python code
	@$(BIN)/ruff check --quiet --fix $(PYTHON_FILES) || true
	@$(BIN)/ruff format --quiet $(PYTHON_FILES)

.PHONY: test-unit
test-unit: setup ## Unit tests
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/unit -n 2 $(ARGS)
PYTEST_FLAGS := -p no:pytest-brownie -W error -W "ignore:A private pytest class:pytest.PytestDeprecationWarning" -W "ignore:__array__ implementation:DeprecationWarning" -q -rs

.PHONY: wheel
wheel: setup ## The package as a wheel, the page included, into dist
	@$(PYTHON) -m hatchling build -t wheel

.PHONY: test-wheel
test-wheel: setup ## The wheel in an empty environment, and a clone whose page is not built
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/wheel $(ARGS)

.PHONY: docs
docs: setup ## Write the API reference from the docstrings
	@$(PYTHON) -m scripts.api_reference

.PHONY: kubo
kubo: setup ## A current Kubo in the user's cache; built once a machine, with Go
	@$(PYTHON) -m trainyard.content.kubo_binary

.PHONY: test-content
test-content: kubo ## The content plane with real nodes, gateways and TensorFlow; leaks under one sanitizer
	@$(PYTHON) -m tests.iptf_leak address
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/conformance tests/integration -n 2 $(ARGS)

.PHONY: test-chain
test-chain: setup ## The layer that watches and acts, on a real anvil with reorgs and bad endpoints
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/chain_layer $(ARGS)

.PHONY: test-agent
test-agent: setup sandbox systemd ## The agent's parts: decisions, sandbox, peers, keys, commands
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/agent -n 2 $(ARGS)

.PHONY: test-market
test-market: setup sandbox compiler ## Whole markets: chain, content, agents as processes, training, audits, faults
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/market -m "not long" -n 2 --dist loadfile $(ARGS)

.PHONY: test-long
test-long: setup sandbox compiler ## More of the market: workers killed in every phase, full disks, deep reorgs, further cheats and policies
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/market -m long -n 2 --dist loadfile $(ARGS)

.PHONY: faults
faults: setup sandbox systemd compiler ## What is done to a market, and how it ends: kills, reorgs, outages, cheats, as a table
	@$(PYTHON) -m scripts.fault_table

.PHONY: test-dapp
test-dapp: setup sandbox postgresql schemathesis ## The dapp's server: index and API on SQLite and PostgreSQL, abuse, a whole task
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/dapp -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

.PHONY: test-spark
test-spark: setup sandbox java ## Data sets from Spark, and training on a market with them
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/spark $(ARGS)

.PHONY: test-engine
test-engine: setup ## The training engine with real TensorFlow
	@$(BIN)/pytest $(PYTEST_FLAGS) tests/engine -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

.PHONY: test-page
test-page: page ## The page: types, style, what it computes by itself, and its weight
	@cd dapp/web && npm run --silent typecheck
	@cd dapp/web && npm run --silent lint
	@cd dapp/web && npm run --silent test
	@cd dapp/web && npm run --silent weigh

.PHONY: test-browser
test-browser: setup sandbox chromium ## The page in Chromium, with a wallet, on a whole market; screenshots into build/screenshots
	@node --test --test-concurrency=1 --test-reporter=spec tests/browser/*.test.mjs

.PHONY: screenshots
screenshots: test-browser ## The README's pictures, from the tests in the browser
	@for name in market task; do cp "build/screenshots/$$name-desktop-light.png" "docs/images/$$name.png"; done

.PHONY: leaks
leaks: setup ## The plugin's own code under AddressSanitizer, ThreadSanitizer and valgrind
	@$(PYTHON) -m tests.iptf_leak address thread $(if $(shell command -v valgrind),valgrind)

.PHONY: test-contracts
test-contracts: setup ## Contract tests: brownie on Ganache
# A first load of the build writes artifacts that the next one removes: the two runners must not race for them.
	@$(BIN)/brownie compile >/dev/null
	@$(BIN)/brownie test $(ARGS) -n 2

.PHONY: fuzz
fuzz: setup ## Forge's fuzz tests and a few minutes of invariants
	@$(FORGE) test

.PHONY: invariants
invariants: setup ## Forge's invariants with CALLS=1000000 calls in total
	@$(PYTHON) -m scripts.run_invariants --calls $(CALLS)

.PHONY: coverage
coverage: setup ## Coverage of our contracts, with its gate
	@mkdir -p build
# Only what is asserted by hand counts, not what a campaign happens to pass by. The optimiser is off, so the
# limits of gas are left to `make fuzz`.
	@FOUNDRY_PROFILE=coverage $(FORGE) coverage --match-path 'tests/forge/unit/*.t.sol' --no-match-path '**/Gas.t.sol' --report lcov --report-file build/lcov.info >build/coverage.log 2>&1 || { cat build/coverage.log >&2; exit 1; }
	@$(PYTHON) -m scripts.check_coverage build/lcov.info

.PHONY: slither
slither: setup ## Static analysis: no High or Medium finding without a reason
	@$(PYTHON) -m scripts.check_slither

.PHONY: size
size: setup ## Contract sizes and what is left below the limits
	@$(PYTHON) -m scripts.check_size

##@ Files made from the contracts

.PHONY: abi
abi: setup ## Export ABI and bytecode into the Python package
	@$(PYTHON) -m scripts.export_abi

.PHONY: types
types: setup ## Write the API's types for the page, from the server's schemas
	@$(PYTHON) -m scripts.page_types

.PHONY: abi-check
abi-check: setup
	@$(PYTHON) -m scripts.export_abi --check

.PHONY: snapshots
snapshots: abi ## Rewrite the snapshots of sizes, ABI, storage layout and gas
	@$(PYTHON) -m scripts.snapshot_contracts
	@$(PYTHON) -m benchmarks.gas --snapshot

.PHONY: snapshots-check
snapshots-check: setup
	@$(PYTHON) -m scripts.snapshot_contracts --check
	@$(PYTHON) -m benchmarks.gas --check

##@ Figures

.PHONY: bench-gas
bench-gas: setup ## Gas of whole task lives, beside iExec PoCo
	@$(PYTHON) -m benchmarks.gas

.PHONY: bench-content
bench-content: kubo ## Verified content beside the unverified and the local
	@$(PYTHON) -m benchmarks.content

.PHONY: bench-engine
bench-engine: setup ## Training with a trace beside Keras' own, and two workers beside one
	@$(PYTHON) -m benchmarks.engine

.PHONY: bench-market
bench-market: setup sandbox ## What a market costs beside its training, and fifty agents at once
	@$(PYTHON) -m benchmarks.market

.PHONY: bench-end-to-end
bench-end-to-end: setup sandbox flower ## The market beside Keras, MultiWorkerMirroredStrategy and Flower, on MNIST and CIFAR-10
	@$(PYTHON) -m benchmarks.end_to_end

.PHONY: bench-dapp
bench-dapp: setup ## What the dapp's one process bears, and the page's weight
	@$(PYTHON) -m benchmarks.dapp

.PHONY: bench-gauntlet
bench-gauntlet: setup sandbox ## How surely each cheat is caught, beside the theory
	@$(PYTHON) -m benchmarks.gauntlet

.PHONY: bench-tolerance
bench-tolerance: setup ## Honest machines beside cheats, where bits cannot be compared
	@$(PYTHON) -m benchmarks.tolerance

.PHONY: bench-nets
bench-nets: setup ## Six networks on MNIST, by Keras and by each mode of the engine
	@$(PYTHON) -m benchmarks.mnist_nets

.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
