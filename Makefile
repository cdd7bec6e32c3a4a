# `make ask Q="..."` and `make test` set up all they need, each in a virtual environment of its own.
PYTHON ?= python3.11
TORCH ?= torch==2.13.0
DATA ?= ../shared/data
Q ?= What is citation precision?
export Q
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: ask test check whole core bench clean

ask: .venv/ask.done
	@.venv/bin/rag ask "$$Q" || [ $$? -eq 1 ]

.venv/ask.done: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet -e .
	@touch $@

# Torch comes first, from a pin: asked for by another package, pip would take gigabytes of CUDA with it.
.venv-test/done: pyproject.toml
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/pip install --quiet "$(TORCH)"
	.venv-test/bin/pip install --quiet -e ".[all,dev]"
	@touch $@

# Side by side, as there are two cores; the output of each comes when it is done.
test: .venv-test/done check
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target whole core-3.13 core-3.12

whole: .venv-test/done
	.venv-test/bin/pytest

check: .venv-test/done
	.venv-test/bin/ruff format --check .
	.venv-test/bin/ruff check .
	.venv-test/bin/mypy

# The core by itself, without torch or any extra, on the other Pythons where they exist (on the path, or pyenv's).
core: core-3.12 core-3.13

core-%:
	@for python in python$* "$$HOME"/.pyenv/versions/$*.*/bin/python none; do \
	  if "$$python" -c "" 2>/dev/null; then break; fi; \
	done; \
	if [ "$$python" = none ]; then echo "no Python $* here: core not tested on it"; exit; fi; \
	echo "core on $$python" && \
	"$$python" -m venv .venv-$* && \
	.venv-$*/bin/pip install --quiet . pytest hypothesis hatchling && \
	.venv-$*/bin/python -m pytest

bench: .venv/ask.done
	.venv/bin/python -m scripts.bench.engine $(DATA) --out eval/results/engine.json

clean:
	rm -rf .venv .venv-test .venv-3.12 .venv-3.13 dist build
