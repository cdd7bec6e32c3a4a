#!/bin/sh
# All systems side by side (docs/results.md): hours, of which the language model takes most. Needs `make .venv-test/done`.
#
#   sh scripts/make_all_results.sh
#
# Settings are environment variables: DATA, INDEX (of the pool, built if it is missing) and MODEL (a GGUF file of 1.5B).
# What is measured over documents is in eval/results/unseen-sets.json, by `python -m scripts.bench.ways`.
set -eux
cd "$(dirname "$0")/.."
PATH="$PWD/.venv-test/bin:$PATH"
data=${DATA:-../shared/data}
index=${INDEX:-work/pool.index}
model=${MODEL:-work/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf}
runs=work/bench
figures=eval/results/systems

pool() { rag bench run open-nq-pool --data "$data" --index "$index" "$@"; }
sample() { pool --limit 100 --seed 13 "$@"; }
readers() {
  pool --system first-passage --system first-passage,retriever=gold --system extractive --system reader \
    --system reader,retriever=gold "$@"
}
attribute() { rag attribute --index "$index" "$@"; }
results() { python -m scripts.make_results "$@"; }

sample --system closed-book:gguf:"$model" --out $runs/closed-book
sample --system llm-retriever:gguf:"$model" --out $runs/llm-retriever
sample --system gguf:"$model",answer=quote --out $runs/gguf-quote
sample --system gguf:"$model",k=5,repair=true --out $runs/gguf
python -m scripts.bench.repair $runs/gguf/gguf-*/answers.jsonl --as-parsed $runs/as-parsed.jsonl \
  --out eval/results/open-nq-pool/repair.json
results references "$data"/nq/nq_pool_dev.jsonl --out $runs/references.jsonl
attribute $runs/references.jsonl --out $runs/post-hoc-references.jsonl
attribute $runs/closed-book/closed-book-*/answers.jsonl --out $runs/post-hoc-closed-book.jsonl
sample --predictions $runs/post-hoc-references.jsonl --predictions $runs/post-hoc-closed-book.jsonl \
  --predictions $runs/as-parsed.jsonl --out $runs/given
readers --system first-passage,retriever=bm25-rerank --system reader,retriever=bm25-rerank --limit 100 --seed 13 \
  --out $runs/sample
readers --predictions $runs/post-hoc-references.jsonl --out $runs/pool
for name in open-nq miracl-pool clapnq-pool nomiracl-pool; do
  rag bench run $name --data "$data" --index "$index" --system first-passage --system extractive --system reader \
    --out $runs/$name
done

results collect $runs/pool --out $figures/open-nq-pool.json
results collect $runs/sample $runs/closed-book $runs/llm-retriever $runs/gguf $runs/gguf-quote $runs/given \
  --out $figures/open-nq-pool-100.json
for name in open-nq miracl-pool clapnq-pool nomiracl-pool; do
  results collect $runs/$name --out $figures/$name.json
done
results page
