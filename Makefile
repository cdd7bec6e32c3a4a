# `make ask Q="..."` and `make test` set up all they need. Environments: .venv (what people use), .venv-test,
# .venv-core (the core alone, on another Python) and .venv-extras (databases, Ray, other frameworks).
PYTHON ?= python3.11
CORE_PYTHON ?= 3.13
TORCH ?= torch==2.13.0
DATA ?= ../shared/data
Q ?= What is citation precision?
export Q
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests start hundreds of processes. Each would compile all that it imports where this is set, as in many images.
export PYTHONDONTWRITEBYTECODE =

.PHONY: ask demo test quick check docs test-autoais test-rag test-index test-bench test-web test-annotate test-project test-core test-extras long-tests lock clean

ask: .venv/ask.done
	@.venv/bin/rag ask "$$Q" || [ $$? -eq 1 ]

# The page over the handbook and Borg's documentation, a Debian package.
demo: .venv/serve.done
	.venv/bin/python -m scripts.demo

# What CI runs. Three parts at a time: tests wait for browsers and servers, so that three keep two cores busy. The output
# of each comes when it ends, and a part that fails does not stop the others. The longest come first, and before them the
# environment of the core. The two parts with browsers have another between them, so that they share as little time, and
# memory, as the order allows. One thread each, as threads that wait for a busy core cost more than they bring.
test: export OMP_NUM_THREADS = 1
test: .venv-test/done
	@$(MAKE) --no-print-directory --keep-going --jobs 3 --output-sync=target \
	  .venv-core/done test-rag test-web test-autoais test-annotate test-bench test-index test-project test-core check docs

# While you work: without the tests that take seconds each.
quick: .venv-test/done
	.venv-test/bin/pytest -m "not slow"

check: .venv-test/done
	.venv-test/bin/ruff format --check .
	.venv-test/bin/ruff check .
	.venv-test/bin/mypy
	.venv-test/bin/lint-imports

# The site, in site/. A link that leads nowhere is an error.
docs: .venv-test/done
	NO_MKDOCS_2_WARNING=1 .venv-test/bin/mkdocs build --strict --quiet

test-autoais: .venv-test/done
	.venv-test/bin/pytest tests/autoais

# With servers and browsers.
WEB = tests/rag/serve tests/rag/web

test-web: .venv-test/done
	.venv-test/bin/pytest $(WEB)

# Studies: servers, browsers and PostgreSQL.
test-annotate: .venv-test/done
	.venv-test/bin/pytest tests/rag/annotate

test-bench: .venv-test/done
	.venv-test/bin/pytest tests/rag/bench

INDEX = tests/rag/documents tests/rag/index

test-index: .venv-test/done
	.venv-test/bin/pytest $(INDEX)

test-rag: .venv-test/done
	.venv-test/bin/pytest tests/rag $(patsubst %,--ignore %,$(WEB) $(INDEX) tests/rag/annotate tests/rag/bench)

# The documentation, the package, the benchmarks, and rules for all code.
test-project: .venv-test/done
	.venv-test/bin/pytest tests --ignore tests/autoais --ignore tests/rag

# The core by itself, without torch or any extra, on another Python if it is here (on the path, or pyenv's): the public
# APIs and commands, and what is written in C or depends on the version of a package.
PURE_PYTHON = %/test_cited.py %/test_conventions.py %/test_definitions.py %/test_endless.py %/test_followup.py \
  %/test_handbook.py %/test_merge.py %/test_mirrors.py
CORE = tests/rag/test_api.py tests/rag/base tests/rag/commands \
  $(filter-out $(PURE_PYTHON),$(wildcard tests/rag/index/test_*.py tests/rag/documents/test_*.py)) \
  $(filter-out $(PURE_PYTHON),$(wildcard tests/rag/answer/generators/test_*.py)) tests/rag/retrieval/test_retrieval.py \
  tests/autoais/test_api.py tests/autoais/commands tests/autoais/base/text tests/autoais/judges/test_shipped_judge.py \
  tests/autoais/judges/test_cache.py tests/test_packaging.py tests/test_plugins.py

test-core: .venv-core/done
	@if [ -e .venv-core/bin/python ]; then .venv-core/bin/python -m pytest -m "not slow and not hypothesis" $(CORE); fi

# What the tests need beside .venv-test: all vector databases, Ray with two nodes on this machine, LangChain, LlamaIndex
# and Haystack, and the evaluators that autoais scores in. Plugins of pytest that they bring stay off.
test-extras: .venv-extras/done
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 .venv-extras/bin/python -m pytest -rs tests/autoais/integrations \
	  tests/rag/integrations tests/rag/serve/test_openai_*_*.py tests/rag/retrieval/test_databases.py \
	  tests/autoais/base/test_engines.py tests/rag/answer/test_engines.py

# Hours; `make test` runs a few cases of each. Results of papers and our own, made again and compared; every fault in
# every command that writes files; 20,000 broken inputs to all that reads; 1,000 examples of each property.
long-tests: .venv-test/done
	.venv-test/bin/rag bench reproduce --data $(DATA)
	.venv-test/bin/python -m scripts.chaos --out eval/results/chaos.json
	.venv-test/bin/python -m scripts.fuzz
	.venv-test/bin/pytest -m hypothesis --hypothesis-profile many

# The newest versions that pyproject.toml allows, and the table of their licences.
lock: .venv-test/done
	.venv-test/bin/python scripts/lock.py
	$(MAKE) .venv-test/done
	.venv-test/bin/python -m scripts.licences

clean:
	rm -rf .venv .venv-test .venv-core .venv-extras dist build site

# --- environments ----------------------------------------------------------------------------------------------------

# What is installed is what the lock files say, with its hashes.
.venv/ask.done: pyproject.toml requirements.lock
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --no-deps --require-hashes -r requirements.lock
	.venv/bin/pip install --quiet --no-deps -e .
	@touch $@

.venv/serve.done: .venv/ask.done
	.venv/bin/pip install --quiet -e ".[serve]"
	@touch $@

# Torch comes first, from a pin: asked for by another package, it would bring gigabytes of CUDA. uv downloads and
# unpacks many packages at once, and compiles none of their modules, which pip does one by one; it also looks for torch
# where a setting of pip says that wheels are.
UV = .venv-test/bin/uv
.venv-test/done: pyproject.toml requirements-dev.lock
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/pip install --quiet uv
	$(UV) pip install --quiet --python .venv-test/bin/python $(PIP_FIND_LINKS:%=--find-links %) "$(TORCH)"
	$(UV) pip install --quiet --python .venv-test/bin/python --no-deps --require-hashes -r requirements-dev.lock
	$(UV) pip install --quiet --python .venv-test/bin/python --no-deps -e .
	@touch $@

.venv-core/done: pyproject.toml .venv-test/done
	@mkdir -p .venv-core
	@for python in python$(CORE_PYTHON) "$$HOME"/.pyenv/versions/$(CORE_PYTHON).*/bin/python none; do \
	  if "$$python" -c "" 2>/dev/null; then break; fi; \
	done; \
	if [ "$$python" = none ]; then \
	  echo "no Python $(CORE_PYTHON) here: the core is not tested on it"; \
	else \
	  echo "core on $$python" && \
	  $(UV) venv --quiet --clear --python "$$python" .venv-core && \
	  $(UV) pip install --quiet --python .venv-core/bin/python . pytest hypothesis hatchling; \
	fi
	@touch $@

# ragas 0.4.3 does not start with a newer langchain-community. promptfoo is tested where it is on the path, the AI SDK
# where npm is.
.venv-extras/done: pyproject.toml .venv-test/done
	$(UV) venv --quiet --clear --python .venv-test/bin/python .venv-extras
	$(UV) pip install --quiet --python .venv-extras/bin/python -e ".[lancedb,measures,milvus,opensearch,postgresql,qdrant,ray,serve]" \
	  pgserver "langchain-core>=1" "langchain-openai>=1" "llama-index-core>=0.14" \
	  llama-index-llms-openai-like "haystack-ai>=3" openai \
	  "inspect-ai>=0.3.285" "deepeval>=4.3" "ragas>=0.4.3" "langchain-community<0.4" "autojudge-base>=1" \
	  "nuggetizer>=0.0.5" pytest hypothesis
	if command -v npm > /dev/null; then \
	  npm install --silent --no-audit --no-fund --prefix .venv-extras @ai-sdk/openai-compatible@2 ai@6; \
	fi
	@touch $@
