# Each target is one line of intent; `make demo` and `make test` need nothing done before them.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: setup format lint type test slow-test gpu-test bench bench-compare docs demo clean

setup: $(VENV)/.ready  ## create the virtual environment and install kernelgym in it

$(VENV)/.ready: pyproject.toml setup.cfg scripts/setup.sh
	PYTHON=$(PYTHON) scripts/setup.sh $(VENV)

format: setup  ## format the code
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: setup  ## check format, style and spelling
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/codespell

type: setup  ## check types of an installed copy
	rm -rf .typecheck && $(BIN)/pip install -q --no-deps --no-build-isolation --target .typecheck . && $(BIN)/mypy

test: setup  ## run the tests that need no GPU and no patience
	$(BIN)/pytest -m "not gpu and not slow"

slow-test: setup  ## run the tests that take minutes
	$(BIN)/pytest -m "slow and not gpu" --timeout=1800

gpu-test: setup  ## run the tests that need a GPU
	$(BIN)/pytest -m gpu

bench: setup  ## run the benchmarks; JSON goes to benchmarks/results/
	$(BIN)/pytest benchmarks --benchmark-only --benchmark-storage=benchmarks/results --benchmark-autosave

bench-compare: setup  ## tell what got slower than the last saved run
	$(BIN)/pytest benchmarks --benchmark-only --benchmark-storage=benchmarks/results --benchmark-compare --benchmark-compare-fail=median:25%

docs: setup  ## build the documentation into site/
	$(BIN)/pip install -q -e ".[docs]" && $(BIN)/mkdocs build --strict

demo: setup  ## watch an agent edit CUDA code until it is correct
	$(BIN)/kernelgym demo

clean:  ## remove what the targets above have made
	rm -rf $(VENV) .typecheck build dist site *.egg-info
