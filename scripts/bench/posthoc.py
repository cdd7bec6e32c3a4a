"""Post-hoc attribution of reference answers on the pool: how often the attached passage contains the answer.

    python -m scripts.bench.posthoc ../shared/data POOL.index --constants \\
        --out eval/results/open-nq-pool/post-hoc-constants.json
    python -m scripts.bench.posthoc ../shared/data POOL.index --rows work/post-hoc.jsonl \\
        --out eval/results/open-nq-pool/post-hoc.json

The first reference of each question is given as the answer, without its passages. A citation is right if its passage
is gold or contains one of the references. The baseline cites the first BM25 hit of the question alone, unchecked.
`--constants` compares depths, numbers of judged passages and retrievers on every eighth question. Without it, all
questions are measured; ROWS gets one row per question, and a stopped run resumes from it.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.io.provenance import provenance
from autoais.judges import open_judge
from autoais.judges.lexical import LexicalJudge
from autoais.metrics.rates import Rate
from autoais.metrics.short_answers import has_answer
from autoais.questions import read_questions
from autoais.types import Attribution, CitedSentence, Judge, Judgement, Question
from rag.attribution.attributor import Attributor
from rag.attribution.post_hoc import DEFAULT_K, PostHoc
from rag.index.index import Index
from rag.index.open import open_index
from rag.journal import Journal, pending
from rag.retrievers import open_retriever
from rag.types import Answer, Passage

SETTINGS = [  # recipe, hits, passages judged
    *(("bm25", 10, candidates) for candidates in (1, 2, 3, 5, 8)),
    *(("bm25", k, 5) for k in (3, 5, 20, 50)),
    ("reranked", 10, 5),
]
QUESTIONS = "nq/nq_pool_dev.jsonl"
WORDS = LexicalJudge(template="auto.v1")  # a second judge that had no part in choosing the citations


class MemoizedJudge(Judge):
    """A judge that caches the judgements of another in memory."""

    def __init__(self, judge: Judge) -> None:
        self._judge, self._known = judge, dict[Attribution, Judgement]()

    @property
    def name(self) -> str:
        """The name of the wrapped judge."""
        return self._judge.name

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """The cached judgements, or new ones for pairs not seen before."""
        new = [one for one in attributions if one not in self._known]
        self._known |= zip(new, self._judge.judge(new), strict=True)
        return [self._known[one] for one in attributions]


def given(question: Question) -> Answer:
    """The first reference as an answer without sources."""
    text = question.answers[0]
    return Answer(question, text, (CitedSentence(text, (), 0, len(text)),), (), "reference", short_answer=text)


def right(question: Question, passage: Passage) -> dict[str, bool]:
    """Whether a passage is gold (`gold`), and whether it is gold or contains a reference (`right`)."""
    gold = passage.id in question.gold
    return {"gold": gold, "right": gold or has_answer(passage.text, question.answers)}


def attributed(post_hoc: PostHoc, question: Question) -> dict[str, Any]:
    """The citation attached to the answer of a question; `cited` is null if there is none."""
    answer = post_hoc.attribute(given(question))
    (sentence,) = answer.sentences
    if not sentence.citations:
        return {"cited": None}
    (citation,) = sentence.citations
    passage = next(hit.passage for hit in answer.hits if hit.passage.id == citation.passage)
    judges = (post_hoc.attributor.judge, WORDS)
    quote = citation.quote or ""
    return {
        "cited": passage.id,
        **right(question, passage),
        "judged": [judge.support(answer.text, [passage.evidence], question.text).verdict.ais for judge in judges],
        "quote": len(quote) / len(passage.text),
        "quote_holds": has_answer(quote, question.answers),
    }


def first_hit(index: Index, judge: Judge, question: Question) -> dict[str, Any]:
    """The first BM25 hit of the question alone, and the judges' verdicts on the answer against it."""
    hits = index.bm25.search([question.text], 1)[0]
    if not hits:
        return {"cited": None}
    passage = hits[0].passage
    said = [one.support(question.answers[0], [passage.evidence], question.text) for one in (judge, WORDS)]
    return {"cited": passage.id, **right(question, passage), "judged": [one.verdict.ais for one in said]}


def rates(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Over all questions: rates of attached, gold and right. Over citations: right, and supported by each judge."""
    cited = [row for row in rows if row["cited"] is not None]
    found = {
        "attached": Rate.of(row["cited"] is not None for row in rows),
        "gold": Rate.of(row.get("gold", False) for row in rows),
        "right": Rate.of(row.get("right", False) for row in rows),
        "right_of_citations": Rate.of(row["right"] for row in cited),
        "precision_by_the_judge": Rate.of(row["judged"][0] for row in cited),
        "precision_by_lexical": Rate.of(row["judged"][1] for row in cited),
    }
    quoted = [row for row in cited if "quote" in row]
    if quoted:
        found["quote_holds_the_answer"] = Rate.of(row["quote_holds"] for row in quoted if row["right"])
    record: dict[str, Any] = {name: rate.record() for name, rate in found.items()}
    if quoted:
        record["quote_of_passage"] = sum(row["quote"] for row in quoted) / len(quoted)
    return record


def constants(index: Index, questions: Sequence[Question], judge: Judge) -> list[dict[str, Any]]:
    """The rates for each of the `SETTINGS`."""
    rows = []
    for recipe, k, candidates in SETTINGS:
        post_hoc = PostHoc(open_retriever(recipe, index), judge, k)
        post_hoc.attributor = Attributor(judge, candidates)
        measured = rates([attributed(post_hoc, question) for question in questions])
        row = {"recipe": recipe, "k": k, "candidates": candidates}
        row |= {name: one["value"] if isinstance(one, dict) else one for name, one in measured.items()}
        print(dumps(round_floats(row, 4)), flush=True)
        rows.append(row)
    return rows


def whole(index: Index, questions: Sequence[Question], judge: Judge, rows: Path) -> dict[str, Any]:
    """The rates on all questions, and the time per question."""
    post_hoc = PostHoc(open_retriever("bm25", index), judge, DEFAULT_K)
    settings = {"system": post_hoc.name, "index": index.manifest["checksum"]}
    with Journal(rows, settings, resume=rows.exists()) as journal:
        done = len(journal.done)
        for question in pending(questions, journal.done):
            began, busy = time.perf_counter(), time.process_time()
            found = attributed(post_hoc, question)
            seconds, cpu = time.perf_counter() - began, time.process_time() - busy
            first = first_hit(index, judge, question)
            journal.write({"id": question.id, "post_hoc": found, "first_hit": first, "seconds": seconds, "cpu": cpu})
            done += 1
            if done % 100 == 0:
                print(f"{done} of {len(questions)}", flush=True)
    written = [row for _, row in read_objects(rows)]
    both = {name: rates([row[name] for row in written]) for name in ("post_hoc", "first_hit")}
    ours, theirs = (both[name]["precision_by_the_judge"]["value"] for name in both)
    return {
        "system": post_hoc.name,
        **both,
        "points_above_first_hit": 100 * (ours - theirs),
        "note": "post_hoc's precision by the judge is 1 by construction: it attaches what this judge supports",
        **{f"{name}_a_question": spread([row[name] for row in written]) for name in ("seconds", "cpu")},
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean, median and 95th percentile, in the unit of the values."""
    ordered = sorted(values)
    return {
        "mean": sum(ordered) / len(ordered),
        "p50": ordered[len(ordered) // 2],
        "p95": ordered[int(0.95 * len(ordered))],
    }


def main(
    data: Annotated[Path, typer.Argument(help="Data folder with nq/.")],
    index: Annotated[Path, typer.Argument(help="Index of the whole pool.")],
    out: Annotated[Path, typer.Option(help="Output file (json).")],
    rows: Annotated[Path, typer.Option(help="One row per question; a stopped run resumes from it.")] = Path(
        "work/post-hoc.jsonl"
    ),
    settings: Annotated[bool, typer.Option("--constants", help="Compare settings on every eighth question.")] = False,
) -> None:
    """Measure and write the result."""
    opened = open_index(index)
    questions = list(read_questions(data / QUESTIONS))
    judge = MemoizedJudge(open_judge("minilm"))
    result: dict[str, Any] = {
        "closed_pool": f"a closed pool of {opened.manifest['passages']:,} passages with gold put in: no full Wikipedia",
        "given": "the first reference of each question",
        "judge": judge.name,
    }
    if settings:
        part = questions[::8]
        result |= {"questions": f"every eighth of {len(questions)}", "rows": constants(opened, part, judge)}
    else:
        result |= {"questions": len(questions), **whole(opened, questions, judge, rows)}
    result |= {"index": opened.manifest["checksum"], "provenance": provenance({"questions": data / QUESTIONS})}
    write_atomic(out, [dumps(round_floats(result, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
