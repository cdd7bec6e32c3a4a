#!/bin/sh
# All systems side by side (docs/results.md): hours, of which the language model takes most. Needs `make .venv-test/done`.
#
#   sh scripts/make_all_results.sh
#
# Settings are environment variables: DATA, INDEX (of the pool, built if it is missing), DOCUMENTS (from
# `python -m scripts.own_documents fetch`; work/fresh-docs likewise, by --table eval/benchmarks/own-documents/fresh.toml)
# and MODEL (a GGUF file of 1.5B).
set -eux
cd "$(dirname "$0")/.."
PATH="$PWD/.venv-test/bin:$PATH"
data=${DATA:-../shared/data}
index=${INDEX:-work/pool.index}
documents=${DOCUMENTS:-work/own-docs}
model=${MODEL:-work/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf}
runs=work/bench
figures=eval/results/systems

pool() { rag bench run open-nq-pool --data "$data" --index "$index" "$@"; }
readers() {
  pool --system first-passage --system first-passage,retriever=bm25-rerank --system first-passage,retriever=gold \
    --system extractive --system reader --system reader,min_confidence=0.3 --system reader,retriever=static \
    --system reader,retriever=bm25-rerank --system reader,retriever=gold "$@"
}
own() { rag bench run own-documents-kept --data "$documents" --index $runs/documents "$@"; }
fresh() { rag bench run own-documents-fresh --data work/fresh-docs --index $runs/fresh-documents "$@"; }
attribute() { rag attribute --index "$index" "$@"; }
results() { python -m scripts.make_results "$@"; }

pool --limit 200 --seed 13 --system closed-book:gguf:"$model" --out $runs/closed-book
pool --limit 200 --seed 13 --system llm-retriever:gguf:"$model" --out $runs/llm-retriever
pool --limit 200 --seed 13 --system gguf:"$model",k=5,repair=true --out $runs/gguf
python -m scripts.bench.repair $runs/gguf/gguf-*/answers.jsonl --as-parsed $runs/as-parsed.jsonl \
  --out eval/results/open-nq-pool/repair.json
results references "$data"/nq/nq_pool_dev.jsonl --out $runs/references.jsonl
attribute $runs/references.jsonl --out $runs/post-hoc-references.jsonl
attribute $runs/closed-book/closed-book-*/answers.jsonl --out $runs/post-hoc-closed-book.jsonl
pool --limit 200 --seed 13 --predictions $runs/post-hoc-references.jsonl \
  --predictions $runs/post-hoc-closed-book.jsonl --predictions $runs/as-parsed.jsonl --out $runs/given
readers --limit 200 --seed 13 --out $runs/sample
readers --predictions $runs/post-hoc-references.jsonl --out $runs/pool
own --system first-passage --system first-passage,retriever=bm25-rerank --system first-passage,retriever=hybrid-reranked \
  --system extractive --system extractive,retriever=bm25-rerank --system reader --system reader,retriever=shortlist \
  --system reader,retriever=static --system reader,retriever=bm25-rerank --system reader,min_confidence=0 \
  --out $runs/own-documents-kept
fresh --system first-passage --system first-passage,retriever=hybrid-reranked --system extractive --system reader \
  --system reader,retriever=shortlist --system reader,retriever=bm25-rerank --system reader,min_confidence=0 \
  --out $runs/own-documents-fresh
for name in open-nq miracl-pool clapnq-pool nomiracl-pool; do
  rag bench run $name --data "$data" --index "$index" --system first-passage --system extractive --system reader \
    --out $runs/$name
done
own --system closed-book:gguf:"$model" --out $runs/own-documents-kept-closed-book
own --system gguf:"$model",k=5,repair=true --out $runs/own-documents-kept-gguf

results collect $runs/pool --out $figures/open-nq-pool.json
results collect $runs/sample $runs/closed-book $runs/llm-retriever $runs/gguf $runs/given \
  --out $figures/open-nq-pool-200.json
results collect $runs/own-documents-kept $runs/own-documents-kept-closed-book $runs/own-documents-kept-gguf \
  --out $figures/own-documents-kept.json
results collect $runs/own-documents-fresh --out $figures/own-documents-fresh.json
for name in open-nq miracl-pool clapnq-pool; do
  results collect $runs/$name --out $figures/$name.json
done
results collect $runs/nomiracl-pool --out $figures/nomiracl.json
results page
