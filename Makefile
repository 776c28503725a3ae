# One verb, one target. `make help` lists them; CI runs what a person runs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.set-up
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
export UV_PYTHON_DOWNLOADS := never

.PHONY: help setup run demo puzzle test soak solver-soak goldens mutants canary speed bench figures compiled profile floods crowds load load-ci check fmt proto docs lock image clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with everything pinned (run, test and the others do it by themselves)

$(STAMP): requirements/dev.txt pyproject.toml clients/python/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name it with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up .venv (once, well under a minute) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --require-hashes --disable-pip-version-check -r requirements/uv.txt
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/uv.txt requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . -e clients/python
	@touch $@

run: $(STAMP) ## Serve on 127.0.0.1:50051 with an embedded store in ./data
	@$(BIN)/python -m service

demo: $(STAMP) ## Play a four-player round over gRPC, against the running service or one it starts
	@$(BIN)/python clients/python/examples/demo.py

puzzle: $(STAMP) ## Show the best turn of a hard position, step by step, or that of POSITION="[R3 R4 R5] + {R6}" (ARGS="--unmelded")
	@$(BIN)/python -m service.cli.analyze $(if $(POSITION),'$(POSITION)') $(ARGS)

test: $(STAMP) ## Run all tests, or those of ARGS="tests/conformance -k RUN"
ifeq ($(ARGS),)
	@$(PYTEST) -m "not unmeasured" --cov --cov-report=term
	@$(PYTEST) -m unmeasured
else
	@$(PYTEST) $(ARGS)
endif

soak: $(STAMP) ## Play 10,000 random games in the engine, checking the invariants at every state (GAMES=n PRESET=name or all)
	@$(BIN)/python tools/soak.py $(or $(GAMES),10000) $(if $(PRESET),$(if $(filter all,$(PRESET)),--every-preset,--preset $(PRESET)))

solver-soak: $(STAMP) ## Compare the solver with an integer program on 20,000 positions, and small ones with brute force (POSITIONS=n)
	@$(BIN)/python tools/solver_soak.py $(or $(POSITIONS),20000)

goldens: $(STAMP) ## Write the golden games anew, after the engine was changed on purpose
	@$(BIN)/python tests/engine/test_playthroughs.py --write

mutants: $(STAMP) ## Change the rules a little, place by place, and see whether tests notice (ARGS="--quick variants"; long)
	@$(BIN)/python tools/mutation.py $(ARGS)

canary: $(STAMP) ## Test the edge with the newest grpcio, protobuf and redis, in an environment of their own
	@$(BIN)/python tools/canary.py

speed: $(STAMP) ## Compare the engine's speed with another revision's, side by side (BASE=revision)
	@$(BIN)/python tools/compare_speed.py $(or $(BASE),main)

bench: $(STAMP) ## Measure, all parts or PART=analysis, engine, hostile, jokers, latency, play or validation (ARGS="--quick" or "--full"; figures also in build/bench)
	@$(BIN)/python -m load.bench $(PART) $(ARGS)

figures: $(STAMP) ## Write what the last benchmarks of analysis, jokers, validation, engine and play measured into docs
	@$(BIN)/python -m load.bench.page

compiled: $(STAMP) ## Compile the solver's search into build/compiled with mypyc (optional; takes a C compiler), and test it there
	@$(BIN)/python -m load.bench.compile_solver
	@$(PYTEST) -o "pythonpath=build/compiled . tests" tests/engine/test_solver*.py

profile: $(STAMP) ## Find where the CPU of a ValidateTurn goes, and write it into docs/performance.md (ARGS="--quick": only show it)
	@$(BIN)/python -m load.bench.profile_validation $(ARGS)

floods: $(STAMP) ## Flood a server and measure honest callers beside it (ARGS="batches half-open --seconds 10"; all: some 10 minutes)
	@$(BIN)/python -m load.floods $(ARGS)

crowds: $(STAMP) ## Measure many watchers of a game, restarts, many due games, a long round (ARGS="watchers sweeps"; all: some 3 minutes)
	@$(BIN)/python -m load.floods.crowds $(ARGS)

load: $(STAMP) ## Load-test from a browser, a server that it starts or that of ARGS="--host host:port" (SHAPE=steady, ramp, spike or soak)
	@$(BIN)/python -m load.run $(if $(SHAPE),--shape $(SHAPE)) $(ARGS)

load-ci: $(STAMP) ## Load-test for a minute without a browser; fails when a threshold is missed (report in build/load)
	@$(BIN)/python -m load.run --ci $(ARGS)

check: $(STAMP) ## Format, lint, types, imports, contract, generated code and pages, Dockerfile
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	@if git rev-parse -q --verify main:proto >/dev/null 2>&1 || git rev-parse -q --verify origin/main:proto >/dev/null 2>&1; then \
	  ref=$$(git rev-parse -q --verify origin/main:proto >/dev/null 2>&1 && echo origin/main || echo main); \
	  echo "$(BIN)/buf breaking --against $$ref"; $(BIN)/buf breaking --against ".git#ref=$$(git rev-parse $$ref)"; \
	  else echo "buf breaking: no main branch with a contract to compare with"; fi
	$(BIN)/python proto/generate.py --check
	$(BIN)/python docs/generate.py --check
	$(BIN)/hadolint Dockerfile

fmt: $(STAMP) ## Format code and contract, mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/buf format -w

proto: $(STAMP) ## Generate the Python client's code from proto/
	$(BIN)/python proto/generate.py

docs: $(STAMP) ## Generate docs/options.md from proto/ and engine/
	$(BIN)/python docs/generate.py

lock: $(STAMP) ## Pin all requirements anew, with hashes
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra dev pyproject.toml -o requirements/dev.txt

image: ## Build the container image (needs docker)
	docker build -t rummikub-service .

clean: ## Remove .venv, caches and the compiled solver; keeps ./data
	rm -rf build/compiled .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
