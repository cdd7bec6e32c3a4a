# `make ask Q="..."` and `make test` set up all they need, each in a virtual environment of its own.
PYTHON ?= python3.11
TORCH ?= torch==2.13.0
DATA ?= ../shared/data
Q ?= What is citation precision?
ONLY ?=
export Q
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests start hundreds of processes. Each would compile all that it imports where this is set, as in many images.
export PYTHONDONTWRITEBYTECODE =

.PHONY: ask demo results test quick check docs whole whole-rag whole-indexes whole-others whole-pages core databases ray integrations bench reproduce chaos coverage fuzz lock mutation audit sbom licences clean

ask: .venv/ask.done
	@.venv/bin/rag ask "$$Q" || [ $$? -eq 1 ]

# What is installed is what the lock files say, with its hashes.
.venv/ask.done: pyproject.toml requirements.lock
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --no-deps --require-hashes -r requirements.lock
	.venv/bin/pip install --quiet --no-deps -e .
	@touch $@

# The page over the handbook and Borg's documentation, a Debian package.
.venv/serve.done: .venv/ask.done
	.venv/bin/pip install --quiet -e ".[serve]"
	@touch $@

demo: .venv/serve.done
	.venv/bin/python -m scripts.demo

# uv downloads and unpacks many packages at once, which pip does one by one.
UV = .venv-uv/bin/uv
.venv-uv/done:
	$(PYTHON) -m venv .venv-uv
	.venv-uv/bin/pip install --quiet uv
	@touch $@

# Torch comes first, from a pin: asked for by another package, pip would take gigabytes of CUDA with it.
.venv-test/done: pyproject.toml requirements-dev.lock .venv-uv/done
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/pip install --quiet "$(TORCH)"
	$(UV) pip install --quiet --python .venv-test --no-deps --require-hashes -r requirements-dev.lock
	$(UV) pip install --quiet --python .venv-test --no-deps -e .
	@touch $@

# Side by side, as there are two cores; the output of each comes when it is done. The longest come first, and before
# them the environment of the core, which else would come last and alone. Python 3.12 has its turn in `make core`. One
# thread each, as threads that wait for a busy core cost more than they bring.
test: export OMP_NUM_THREADS = 1
test: .venv-test/done
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target .venv-3.13/done whole-others whole-pages whole-rag whole-indexes core-3.13 check docs

whole: whole-others whole-rag whole-indexes whole-pages

# With servers and browsers.
PAGES = tests/rag/annotate tests/rag/bench tests/rag/bench/collections tests/rag/serve tests/rag/web

whole-pages: .venv-test/done
	.venv-test/bin/pytest $(PAGES)

INDEXES = tests/rag/documents tests/rag/retrieval/encoders tests/rag/index tests/rag/retrieval

whole-indexes: .venv-test/done
	.venv-test/bin/pytest $(INDEXES)

whole-rag: .venv-test/done
	.venv-test/bin/pytest tests/rag $(PAGES:%=--ignore %) $(INDEXES:%=--ignore %)

whole-others: .venv-test/done
	.venv-test/bin/pytest tests --ignore tests/rag

# While you work: without the tests that take seconds each.
quick: .venv-test/done
	.venv-test/bin/pytest -m "not slow"

check: .venv-test/done
	.venv-test/bin/ruff format --check .
	.venv-test/bin/ruff check .
	.venv-test/bin/mypy

# The site, in site/. A link that leads nowhere is an error.
docs: .venv-test/done
	NO_MKDOCS_2_WARNING=1 .venv-test/bin/mkdocs build --strict --quiet

# The core by itself, without torch or any extra, on the other Pythons where they exist (on the path, or pyenv's): the
# public APIs and commands, and what is written in C or depends on the version of a package.
CORE = tests/rag/test_api.py tests/rag/commands/test_main.py tests/rag/base/test_config.py tests/rag/commands/test_doctor.py tests/rag/documents \
  tests/rag/index tests/rag/answer/generators tests/rag/retrieval/test_retrieval.py tests/autoais/test_api.py \
  tests/autoais/commands/test_score.py tests/autoais/base/text tests/autoais/judges/test_shipped_judge.py \
  tests/autoais/judges/test_cache.py tests/test_layers.py tests/test_packaging.py tests/test_plugins.py

.PRECIOUS: .venv-%/done

core: core-3.12 core-3.13

.venv-%/done: pyproject.toml .venv-uv/done
	@for python in python$* "$$HOME"/.pyenv/versions/$*.*/bin/python none; do \
	  if "$$python" -c "" 2>/dev/null; then break; fi; \
	done; \
	if [ "$$python" = none ]; then echo "no Python $* here: core not tested on it"; exit; fi; \
	echo "core on $$python" && \
	"$$python" -m venv .venv-$* && \
	$(UV) pip install --quiet --python .venv-$* . pytest hypothesis hatchling && \
	touch $@

core-%: .venv-%/done
	@if [ -e .venv-$*/done ]; then .venv-$*/bin/python -m pytest -m "not slow" $(CORE); fi

# The evaluators that autoais scores in, with all that they pull in: a gigabyte, and no dependency of ours. promptfoo is
# tested where it is on the path. ragas 0.4.3 does not start with a newer langchain-community. Their own plugins of pytest stay off.
.venv-integrations/done: pyproject.toml .venv-uv/done
	$(PYTHON) -m venv .venv-integrations
	$(UV) pip install --quiet --python .venv-integrations -e ".[measures]" \
	  "inspect-ai>=0.3.285" "deepeval>=4.3" "ragas>=0.4.3" "langchain-community<0.4" "autojudge-base>=1" "nuggetizer>=0.0.5" pytest hypothesis
	@touch $@

# LangChain, LlamaIndex and Haystack, apart from those: ragas needs an older LangChain.
.venv-frameworks/done: pyproject.toml .venv-uv/done
	$(PYTHON) -m venv .venv-frameworks
	$(UV) pip install --quiet --python .venv-frameworks -e ".[serve]" \
	  "langchain-core>=1" "langchain-openai>=1" "llama-index-core>=0.14" "haystack-ai>=3" openai pytest hypothesis
	@touch $@

# The clients of all vector databases; `make test` has three of them.
.venv-databases/done: pyproject.toml .venv-uv/done
	$(PYTHON) -m venv .venv-databases
	$(UV) pip install --quiet --python .venv-databases -e ".[lancedb,milvus,opensearch,postgresql,qdrant]" pgserver pytest hypothesis
	@touch $@

databases: .venv-databases/done
	.venv-databases/bin/python -m pytest -rs tests/rag/retrieval/test_databases.py

# Ray, and two of its nodes on this machine.
.venv-ray/done: pyproject.toml .venv-uv/done
	$(PYTHON) -m venv .venv-ray
	$(UV) pip install --quiet --python .venv-ray -e ".[llm,ray]" pytest hypothesis
	@touch $@

ray: .venv-ray/done
	.venv-ray/bin/python -m pytest -rs tests/autoais/base/test_engines.py tests/rag/answer/test_engines.py

integrations: .venv-integrations/done .venv-frameworks/done
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 .venv-integrations/bin/python -m pytest -rs tests/autoais/integrations
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 .venv-frameworks/bin/python -m pytest -rs tests/rag/integrations tests/rag/serve/test_openai_langchain.py

bench: .venv/ask.done
	.venv/bin/python -m scripts.bench.engine $(DATA) --out eval/results/engine.json

# Results of papers and our own, made again and compared: about 40 minutes, or with ONLY=--quick half a minute. `make test` runs
# the quick ones.
reproduce: .venv-test/done
	.venv-test/bin/rag bench reproduce $(ONLY) --data $(DATA)

# Every fault in every command that writes files: about half an hour. `make test` injects a few.
chaos: .venv-test/done
	.venv-test/bin/python -m scripts.chaos --out eval/results/chaos.json

# 20,000 broken inputs to what reads files, questions and replies: some minutes. `make test` feeds a few.
fuzz: .venv-test/done
	.venv-test/bin/python -m scripts.fuzz --out eval/results/fuzz.json

# How often the 95 % intervals hold the truth, and false positives of `compare`: an hour of processor time.
coverage: .venv-test/done
	mkdir -p work
	OPENBLAS_NUM_THREADS=1 .venv-test/bin/python -m scripts.coverage --tests 10000 --keep work/coverage.jsonl --out eval/results/coverage.json

# All systems side by side (docs/results.md): hours, of which the language model takes most. DATA, INDEX (of the pool,
# built if it is missing), DOCUMENTS (from `python -m scripts.own_documents fetch`; work/fresh-docs likewise, by
# --table eval/benchmarks/own-documents/fresh.toml), MODEL (a GGUF file of 1.5B).
INDEX ?= work/pool.index
DOCUMENTS ?= work/own-docs
MODEL ?= work/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
POOL = .venv-test/bin/rag bench run open-nq-pool --data $(DATA) --index $(INDEX)
READERS = --system first-passage --system first-passage,recipe=best --system first-passage,recipe=gold --system extractive \
	--system reader --system reader,min_confidence=0.3 --system reader,recipe=static --system reader,recipe=best \
	--system reader,recipe=gold
OWN = .venv-test/bin/rag bench run own-documents-kept --data $(DOCUMENTS) --index work/bench/documents
FRESH = .venv-test/bin/rag bench run own-documents-fresh --data work/fresh-docs --index work/bench/fresh-documents
ATTRIBUTE = .venv-test/bin/rag attribute --index $(INDEX)
COLLECT = .venv-test/bin/python -m scripts.make_results collect
results: .venv-test/done
	$(POOL) --limit 200 --seed 13 --system closed-book:gguf:$(MODEL) --out work/bench/closed-book
	$(POOL) --limit 200 --seed 13 --system llm-retriever:gguf:$(MODEL) --out work/bench/llm-retriever
	$(POOL) --limit 200 --seed 13 --system gguf:$(MODEL),k=5 --out work/bench/gguf
	.venv-test/bin/python -m scripts.bench.repair work/bench/gguf/gguf-*/answers.jsonl --as-parsed work/bench/as-parsed.jsonl \
		--out eval/results/open-nq-pool/repair.json
	.venv-test/bin/python -m scripts.make_results references $(DATA)/nq/nq_pool_dev.jsonl --out work/bench/references.jsonl
	$(ATTRIBUTE) work/bench/references.jsonl --out work/bench/post-hoc-references.jsonl
	$(ATTRIBUTE) work/bench/closed-book/closed-book-*/answers.jsonl --out work/bench/post-hoc-closed-book.jsonl
	$(POOL) --limit 200 --seed 13 --predictions work/bench/post-hoc-references.jsonl \
		--predictions work/bench/post-hoc-closed-book.jsonl --predictions work/bench/as-parsed.jsonl --out work/bench/given
	$(POOL) --limit 200 --seed 13 $(READERS) --out work/bench/sample
	$(POOL) $(READERS) --predictions work/bench/post-hoc-references.jsonl --out work/bench/pool
	$(OWN) --system first-passage --system first-passage,recipe=best --system first-passage,recipe=hybrid-reranked \
		--system extractive --system extractive,recipe=best \
		--system reader --system reader,recipe=shortlist --system reader,recipe=static --system reader,recipe=best \
		--system reader,min_confidence=0 --out work/bench/own-documents-kept
	$(FRESH) --system first-passage --system first-passage,recipe=hybrid-reranked --system extractive --system reader \
		--system reader,recipe=shortlist --system reader,recipe=best --system reader,min_confidence=0 \
		--out work/bench/own-documents-fresh
	for name in open-nq miracl-pool clapnq-pool nomiracl; do .venv-test/bin/rag bench run $$name --data $(DATA) \
		--index $(INDEX) --system first-passage --system extractive --system reader --out work/bench/$$name || exit 1; done
	$(OWN) --system closed-book:gguf:$(MODEL) --out work/bench/own-documents-kept-closed-book
	$(OWN) --system gguf:$(MODEL),k=5 --out work/bench/own-documents-kept-gguf
	$(COLLECT) work/bench/pool --out eval/results/systems/open-nq-pool.json
	$(COLLECT) $(addprefix work/bench/,sample closed-book llm-retriever gguf given) --out eval/results/systems/open-nq-pool-200.json
	$(COLLECT) work/bench/own-documents-kept $(addprefix work/bench/own-documents-kept-,closed-book gguf) --out eval/results/systems/own-documents-kept.json
	$(COLLECT) work/bench/own-documents-fresh --out eval/results/systems/own-documents-fresh.json
	for name in open-nq miracl-pool clapnq-pool nomiracl; do $(COLLECT) work/bench/$$name --out eval/results/systems/$$name.json || exit 1; done
	.venv-test/bin/python -m scripts.make_results page

# Changes of the code of the evaluator's figures that no test sees: hours. `ONLY="--only metrics/intervals"` tries one module.
mutation: .venv-test/done
	.venv-test/bin/pip install --quiet "mutmut==3.8.1"
	.venv-test/bin/python -m scripts.mutation $(ONLY) --out eval/results/mutation.json

# The newest versions that pyproject.toml allows; then run `make licences`.
lock: .venv-uv/done
	.venv-uv/bin/python scripts/lock.py

# Known vulnerabilities of what the lock files name; asks PyPI.
audit: .venv-uv/done
	$(UV) tool run --quiet pip-audit --no-deps --disable-pip -r requirements.lock
	$(UV) tool run --quiet pip-audit --no-deps --disable-pip -r requirements-dev.lock

# What the package needs, as CycloneDX, in dist/.
sbom: .venv-uv/done .venv/ask.done
	mkdir -p dist
	$(UV) tool run --quiet --from cyclonedx-bom cyclonedx-py environment .venv/bin/python --pyproject pyproject.toml --output-reproducible -o dist/sbom.json

# The table of licences, of the packages installed for the tests.
licences: .venv-test/done
	.venv-test/bin/python -m scripts.licences

clean:
	rm -rf .venv .venv-test .venv-databases .venv-frameworks .venv-integrations .venv-ray .venv-uv .venv-3.12 .venv-3.13 dist build site
