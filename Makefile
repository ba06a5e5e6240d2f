# Start with `make demo` and `make test`; each creates .venv if needed.
# Requires Python 3.11 or newer, and make. Select another interpreter with: make test PYTHON=python3.12

PYTHON ?= $(shell for candidate in python3 python python3.14 python3.13 python3.12 python3.11; do \
	command -v $$candidate >/dev/null 2>&1 \
	&& $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& echo $$candidate && break; done)
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Worker processes of pytest: more than two processors, because many tests wait for other processes. Leave it empty to run in one
# process, for instance to debug: make test WORKERS=
WORKERS ?= -n 3 --dist worksteal
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-frameworks test-versions check format stubs docs tutorials bench bench-smoke fuzz faults soak clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(READY) ## .venv with dalify and the tools, versions pinned by constraints-dev.txt

# The constraints pin torch, too: a range would select another build, on Linux one of several gigabytes.
# Benchmarks and tests compare with torchvision; --no-deps keeps the pinned torch.
$(READY): pyproject.toml constraints-dev.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found; specify it with: make $(MAKECMDGOALS) PYTHON=/path/to/python"; exit 1; }
	@echo "creating $(VENV) (once, a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -c constraints-dev.txt -e '.[dev]'
	@$(PIP) install --no-deps -c constraints-dev.txt torchvision
	@touch $@

demo: $(READY) ## generate photographs and train a small network on them; images in out/
	@$(BIN)/python tutorials/demo.py $(ARGS)

test: $(READY) ## all tests; ARGS='-k resize' selects some
	@$(BIN)/python -m pytest $(WORKERS) $(ARGS)

test-frameworks: $(READY) ## the plugins of JAX, TensorFlow, Paddle and Ray, and the Triton kernels, with the real packages, each in its own environment
	@$(BIN)/python -m tests.helpers.framework_environments $(ARGS)

test-versions: $(READY) ## some tests with the lowest versions of the dependencies, and with the newest Python on this machine
	@$(BIN)/python -m tests.helpers.version_environments

check: stubs ## format, lint, types, import rules, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/codespell
	@find dalify -name '*.py' -exec wc -l {} + | awk '$$2 != "total" && $$1 > 400 { print "note: " $$2 " has " $$1 " lines; divide it if it has two subjects" }'

format: $(READY) ## format the sources
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

$(DOCS_READY): $(READY)
	@$(PIP) install -c constraints-dev.txt -e '.[docs]'
	@touch $@

stubs: $(READY) ## stubs of the operators for editors and pyright; run after changing an operator
	@$(BIN)/python -m docs.stubs

# MkDocs Material announces its successor in every build otherwise.
docs: $(DOCS_READY) stubs ## stubs and documentation site, out/site/html; ARGS=--quick: without tutorials and parity
	@$(BIN)/python -m docs.site $(ARGS)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict -f out/site/mkdocs.yml
	@echo "out/site/html/index.html"

tutorials: $(READY) ## execute every tutorial; images in out/tutorials/
	@$(BIN)/python tutorials/run.py $(ARGS)

bench: $(READY) ## every benchmark, a few minutes; ARGS='resnet_training --data photos/' selects one
	@$(BIN)/python -m benchmarks $(ARGS)

fuzz: $(READY) ## mutated files, graphs and states; MINUTES=30 TARGET=image. SEED=7 JOBS=4; see tests/fuzz/README.md
	@$(BIN)/python -m tests.fuzz run --minutes $(or $(MINUTES),5) --seed $(or $(SEED),0) \
		$(if $(TARGET),--target $(TARGET)) $(if $(JOBS),--jobs $(JOBS))

faults: $(READY) ## Ctrl-C, kill -9 and deaths of workers at random moments, counted and timed; ARGS='--presses 20'
	@$(BIN)/python -m tests.fuzz.faults $(ARGS)

soak: $(READY) ## train, resume, fork and interrupt for MINUTES=10; reports growth of memory, files and threads
	@$(BIN)/python -m tests.fuzz.soak --minutes $(or $(MINUTES),10) --seed $(or $(SEED),0)

bench-smoke: $(READY) ## run every benchmark briefly to check that it works
	@$(BIN)/python -m benchmarks --smoke

clean: ## remove the environment and all generated files
	rm -rf $(VENV) .venv-frameworks out build dist .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find dalify -name '*.pyi' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
