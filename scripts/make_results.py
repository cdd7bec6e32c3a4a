"""Writes `docs/results.md`: all systems side by side, from benchmark runs (`scripts/make_all_results.sh`: hours), and
what `scripts/own_documents.py` measured over documents.

    python -m scripts.make_results references QUESTIONS --out FILE    # reference answers, as predictions
    python -m scripts.make_results collect RUN... --out eval/results/systems/NAME.json
    python -m scripts.make_results page

`collect` keeps the figures of runs and of their comparison, without any text of questions, answers or passages. It
scores the answers by a second judge, and draws `docs/results/NAME.svg`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path
from typing import Annotated, Any

import typer

import autoais
from autoais.base.answers import CitedAnswer, write_answers
from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.io.provenance import command
from autoais.base.types import CitedSentence, Question
from autoais.formats.questions import read_questions
from rag.bench.report.summary import summary
from rag.bench.report.tables import metric_of
from rag.bench.results import SystemRun, group_systems, read_run
from rag.retrieval.reader import Reader

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "eval" / "results" / "systems"
DOCUMENT_RESULTS = ROOT / "eval" / "results" / "own-documents"
PAGE = ROOT / "docs" / "results.md"
FIGURES = ROOT / "docs" / "results"

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the page: the name of its result, a title, the columns, and what to know before reading it."""

    name: str
    title: str
    metrics: Mapping[str, str]
    text: str


QUALITY = {
    "right_attributed": "right and attributed",
    "right": "right",
    "em": "exact match",
    "f1": "F1",
    "answer_recall": "answer recall",
    "autoais": "AutoAIS",
    "citation_recall": "citation recall",
    "citation_precision": "citation precision",
    "answerable_refused": "refused",
    "Success@20": "gold among 20 hits",
}
DOCUMENTS = {
    "right_attributed": "right and attributed",
    "right@60": "right in 60 words",
    "right@120": "right in 120 words",
    "nugget_recall": "nugget recall",
    "autoais": "AutoAIS",
    "citation_recall": "citation recall",
    "citation_precision": "citation precision",
    "answerable_refused": "answerable refused",
    "unanswerable_refused": "unanswerable refused",
}
PASSAGES = {
    "right_attributed": "gold cited and attributed",
    "right": "gold cited",
    "autoais": "AutoAIS",
    "citation_recall": "citation recall",
    "citation_precision": "citation precision",
    "answerable_refused": "answerable refused",
    "unanswerable_refused": "unanswerable refused",
    "Success@1": "gold first",
    "Success@20": "gold among 20 hits",
}
PARTS = [
    Part(
        "open-nq-pool",
        "Open-NQ over the closed pool, 2,000 questions",
        QUALITY,
        "All 2,000 questions of `open-nq-pool`, systems without a language model. An answer is right if a reference "
        "occurs in its text. The pool is closed: 1,148,001 passages of Wikipedia into which the gold passages were "
        "placed. Constants of the reader were chosen on every eighth of these questions, the title weight of BM25 and "
        "how much the reader refuses on all of them. "
        "The seconds were measured beside other work and are left out; `eval/results/harness.json` has "
        "those of the reader.",
    ),
    Part(
        "open-nq-pool-200",
        "The same with a language model, 200 questions",
        QUALITY,
        "A sample of 200 of these questions (seed 13), because the model needs about 10 seconds for each on two cores. "
        "It is Qwen2.5-Coder-1.5B-Instruct, 4-bit, far smaller than the models of papers. The reader reranked its "
        "passages. The seconds were measured beside other work and are left out.",
    ),
    Part(
        "open-nq",
        "All of Open-NQ over the closed pool, 3,610 questions",
        QUALITY,
        "All validation questions of Open-NQ, of which 1,610 have no gold passage in the pool: they count like the "
        "others, so these figures are lower than those of the first part. Retrieval is over the other 2,000.",
    ),
    Part(
        "miracl-pool",
        "MIRACL over the closed pool, 300 questions",
        PASSAGES,
        "MIRACL's questions have no reference answers: an answer is right if it cites a passage that people judged "
        "relevant, a strict stand-in. No constant of the reader was chosen on them, some of the retrievers were.",
    ),
    Part(
        "clapnq-pool",
        "CLAPnq over the closed pool, 400 questions",
        PASSAGES,
        "201 of the questions have no answer in the passage that people looked at, though another passage of the pool "
        "may have one. An answer is right if it cites the gold passage, as reference answers are long. No constant of "
        "the reader was chosen on them, some of the retrievers were.",
    ),
    Part(
        "nomiracl",
        "NoMIRACL, 300 questions with ten passages each",
        {name: PASSAGES[name] for name in ("autoais", "answerable_refused", "unanswerable_refused")},
        "153 questions can be answered from the passages that come with them, 147 cannot. The points of the curve in "
        "the handbook were chosen on these questions, and how the reader weighs its cases with them in view.",
    ),
    Part(
        "own-documents-kept",
        "Documents of one's own, 60 questions",
        DOCUMENTS,
        "The kept third of `own-documents`: 48 questions with an answer and 12 without, over ten collections of "
        "documentation. An answer is right if its first 120 words hold all nuggets. Nothing was chosen on these "
        "questions. They name no gold passages, so there is no oracle. Lines that are no sentences, such as "
        "headings, are often not attributable by themselves, though they are quoted. The language model is that of the "
        "second part, and the reader reranked its passages.",
    ),
    Part(
        "own-documents-fresh",
        "Further documents, 96 questions",
        DOCUMENTS,
        "80 questions with an answer and 16 without, over eight collections with which nothing was trained. On half of "
        "them nothing was chosen; the answers to the other half were read once, and one rule of quoting was made with "
        "them in view. An answer is right if its first 120 words hold all nuggets. No language model took part.",
    ),
]
SETS = {  # name of a result in eval/results/own-documents -> what its questions ask about
    "fresh-2": "documentation of eight packages; nothing was trained on them, one rule was dropped because of them",
    "fresh": "documentation of eight others; nothing was trained on them, on half of them nothing was chosen",
    "kept": "documentation of ten others, the kept third of the questions; nothing was chosen on this third",
    "everyday": "invented papers of eight organisations; nothing was chosen on them",
    "what-is": '"What is X?" about the collections of the two `fresh` sets; rules for definitions came from them',
    "dev": "the other two thirds of the questions of `kept`; constants were chosen on them",
    "validation": "documentation of eight further packages; constants and when it refuses were chosen on them",
    "everyday-dev": "invented papers of four more organisations; weights and constants were chosen on them",
}
BASELINES = {
    "first hit": "the first BM25 hit, whole",
    "first three hits": "the first three BM25 hits, cut at 120 words",
    "reader,min_confidence=0": "`reader`, never refusing",
    "reader,retriever=shortlist": "`reader` over the retriever `shortlist`, without vectors",
    "first-passage,retriever=hybrid-reranked": "the first hit of `hybrid-reranked`, whole",
}
SUMMARY_SETS = {  # of the table in README.md and the page Benchmarks: the heads of its columns, and the benchmarks
    "fresh-2": "own-documents-fresh-2.v1",
    "fresh": "own-documents-fresh.v1",
    "kept": "own-documents-kept.v1",
    "everyday": "everyday.v1",
}
_BEST_PASSAGE = "first-passage-hybrid-reranked"
SUMMARY_ROWS = (  # system, figure, and what the row of that table says
    ("reader", "right@60", "**`reader`**, right in 60 words"),
    (_BEST_PASSAGE, "right@60", "best passage, right in 60 words"),
    ("first-passage", "right@60", "first BM25 hit, right in 60 words"),
    ("reader", "right@120", "**`reader`**, right in 120 words"),
    (_BEST_PASSAGE, "right@120", "best passage, right in 120 words"),
    ("first-passage", "right@120", "first BM25 hit, right in 120 words"),
    ("reader", "answerable_refused", "`reader` refuses, though answerable"),
    ("reader", "unanswerable_refused", "`reader` refuses what is unanswerable"),
)
FIGURES_OF_DOCUMENTS = {
    "right@60": "right in 60 words",
    "right@120": "in 120 words",
    "hits_hold": "the hits hold it",
    "answerable_refused": "answerable refused",
    "unanswerable_refused": "unanswerable refused",
}
_READER = re.compile(r"reader@\w+/\d+")
SECOND = "lexical"  # a judge that is a part of no system
FURTHER = {
    "autoais": "AutoAIS by the judge",
    "autoais_second": "AutoAIS by counting words",
    "liu_recall": "Liu et al.: recall",
    "liu_precision": "precision",
    "trec_recall": "TREC: weighted recall",
    "trec_precision": "weighted precision",
}
SYSTEMS = {  # label of a run -> what it is
    "first-passage": "BM25's first hit, quoted whole: the floor",
    "first-passage-bm25-rerank": "the first hit of the retriever `bm25-rerank`, quoted whole",
    "first-passage-hybrid-reranked": "the first hit of the retriever `hybrid-reranked`, quoted whole",
    "first-passage-gold": "the gold passage, quoted whole",
    "extractive": "one to three sentences, no model",
    "extractive-bm25-rerank": "the same over the retriever `bm25-rerank`",
    "reader": "the default system",
    "reader-min_confidence0.0": "the reader, never refusing",
    "reader-min_confidence0.3": "the reader, refusing below a confidence of 0.3",
    "reader-shortlist": "the reader over BM25 and static embeddings, as in an index without vectors",
    "reader-static": "the reader over dense retrieval alone (static embeddings)",
    "reader-bm25-rerank": "the reader over the retriever `bm25-rerank`",
    "reader-gold": "the reader given the gold passage: the ceiling of reading",
    "post-hoc-references": "the reference answer, sources searched for it afterwards",
    "post-hoc-closed-book": "what the model remembers, sources searched for it afterwards",
    "as-parsed": "the model over five passages, its citations as written",
}
MODELS = {
    "closed-book": "what the model remembers, without sources",
    "llm-retriever": "what the model remembers, citing the page that it names",
    "gguf": "the model over five passages, citations checked and completed by the judge",
}


def current_name(name: str) -> str:
    """The name of a system, or the label of its run, as it is written now: results of older revisions keep theirs."""
    return re.sub("(?<=[=-])best(?=,|$)", "bm25-rerank", name.replace("recipe=", "retriever="))


def systems_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The systems of a report of `scripts/own_documents.py`, by their current names."""
    return {current_name(name): result for name, result in report["systems"].items()}


@app.command()
def references(questions: Path, output: Annotated[Path, typer.Option("--out")]) -> None:
    """Write the first reference of each question as an answer without sources."""
    write_atomic(
        output,
        write_answers(
            _reference(question.id, question.text, question.answers[0]) for question in read_questions(questions)
        ),
    )


def _reference(identifier: str, question: str, answer: str) -> CitedAnswer:
    return CitedAnswer(identifier, question, (CitedSentence(answer, (), 0, len(answer)),), short_answer=answer)


@app.command()
def collect(runs: list[Path], output: Annotated[Path, typer.Option("--out")]) -> None:
    """Write metrics and letters of runs that compare, best system first, and draw the figure of the page."""
    run_data = [read_run(run) for run in runs]
    (group,) = group_systems(run_data)
    best = sorted(
        group.systems, key=lambda system: (-system.metrics["ways"]["right_attributed"]["share"], system.label)
    )
    report, ((figure, *_),) = summary(run_data, [replace(group, systems=tuple(best))], passages=False)
    (record,) = report["groups"]
    del record["figures"], record["comparison"]["differences"]
    for metric in record["comparison"]["metrics"].values():
        del metric["pairs"]
    report["provenance"]["command"] = command()
    record["second_judge"] = autoais.open_judge(SECOND).name
    for system, row in zip(best, record["systems"], strict=True):
        typer.echo(f"scoring {system.label}", err=True)
        row["metrics"]["autoais_second"] = _by_second_judge(system)
    write_atomic(output, [dumps(round_floats(report), indent=1)])
    write_atomic(FIGURES / f"{output.stem}.svg", [figure.svg().removesuffix("\n")])


def _by_second_judge(system: SystemRun) -> dict[str, Any]:
    """AutoAIS of a system's answers by the second judge."""
    questions = [Question(item.id, item.question, item.references) for item in system.items]
    scores = autoais.score(
        system.judgements.parent / "answers.jsonl", questions=questions, judge=SECOND, metrics="none"
    )
    autoais_score: dict[str, Any] = scores.to_dict()["metrics"]["autoais"]
    return autoais_score


@app.command()
def page() -> None:
    """Write the page, and the table that README.md and the handbook have of it."""
    write_atomic(PAGE, lines())
    first, *rows = summary_table()
    for path in (ROOT / "README.md", ROOT / "docs/handbook/reference/benchmarks.md"):
        before, header, after = path.read_text("utf-8").partition(f"{first}\n")
        if not header:
            raise SystemExit(f"error: {path} lacks the head of the table: {first}")
        lines_after = dropwhile(lambda line: line.startswith("|"), after.splitlines())
        write_atomic(path, [*before.splitlines(), first, *rows, *lines_after])


def lines() -> Iterator[str]:
    """The lines of the page."""
    yield "# Results"
    yield ""
    yield "<!-- Written by python -m scripts.make_results. Do not edit. -->"
    yield ""
    yield (
        "Every system answers the same questions and is judged by the same judge. Values are per cent, with 95 % "
        "intervals in parentheses ([Statistics](handbook/reference/statistics.md)). Systems that share a letter in a "
        "column cannot be told apart there (5 %, Holm's correction over all pairs; undecided counts as no). The "
        "correction is within a column: with eight columns, equal systems get different letters somewhere in about "
        "three tables of ten. No column is to be read alone: systems that quote are attributed by construction, and "
        "exact match needs a short answer. The judge is `minilm`, which agrees with people only roughly "
        "([Judges](judges.md), [Limits](limits.md)). It, or the network inside it, is a part of the systems marked *, "
        "whose figures by it are circular."
    )
    for part in PARTS:
        yield from _part(part)
    yield from _document_tables()


def _document_tables() -> Iterator[str]:
    """The tables of the sets of questions about documents, by the first words of the answers."""
    yield from ("", "## Right answers about documents, every set of questions", "")
    yield (
        "An answer is right if its first 60 or 120 words hold all nuggets. Each set has the baselines beside the "
        "reader, and its last column says how many of the sentences are fragments. The "
        "page [Benchmarks](handbook/reference/benchmarks.md#documents-of-ones-own) says how the questions were made."
    )
    for name, description in SETS.items():
        report = json.loads((DOCUMENT_RESULTS / f"{name}.json").read_text("utf-8"))
        sizes = next(iter(report["systems"].values()))
        yield from ("", f"### `{name}`", "")
        unanswerable = f" and {sizes['unanswerable']} without" if sizes["unanswerable"] else ""
        yield (
            f"{sizes['answerable']} questions with an answer{unanswerable}: {description} "
            f"(`eval/results/own-documents/{name}.json`)."
        )
        yield from ("", f"| system | {' | '.join(FIGURES_OF_DOCUMENTS.values())} | fragments |")
        yield f"|---|{'---:|' * (len(FIGURES_OF_DOCUMENTS) + 1)}"
        for system, result in systems_of(report).items():
            cells = [share_cell(result.get(figure)) for figure in FIGURES_OF_DOCUMENTS]
            cells.append("" if result["fragments"] is None else f"{100 * result['fragments']:.1f}")
            yield f"| {BASELINES.get(system, f'`{system}`')} | {' | '.join(cells)} |"
        if earlier := _other_readers(result["system"] for result in report["systems"].values()):
            yield from ("", _earlier_readers(earlier))


def summary_table() -> Iterator[str]:
    """The table of README.md and the handbook: a column per set of documents, a figure a cell."""
    rows = json.loads((RESULTS.parent / "unseen-sets.json").read_text("utf-8"))["rows"]
    metrics = {(row["benchmark"], row["label"]): row["metrics"] for row in rows}
    yield f"| % of the questions | {' | '.join(f'`{name}`' for name in SUMMARY_SETS)} |"
    yield f"|---|{'---:|' * len(SUMMARY_SETS)}"
    for system, figure, description in SUMMARY_ROWS:
        cells = (_spread_cell(metrics[benchmark, system][figure]) for benchmark in SUMMARY_SETS.values())
        yield f"| {description} | {' | '.join(cells)} |"


def _spread_cell(figure: Mapping[str, Any]) -> str:
    """A share as whole per cent, with the longer side of its interval."""
    low, high = figure["interval95"]
    return f"{100 * figure['value']:.0f} ±{100 * max(high - figure['value'], figure['value'] - low):.0f}"


def share_cell(figure: Mapping[str, Any] | None) -> str:
    """A share as whole per cent, with its interval; empty where the set has no such questions."""
    if figure is None:
        return ""
    low, high = figure["interval95"]
    return f"{100 * figure['value']:.0f} ({100 * low:.0f} to {100 * high:.0f})"


def _part(part: Part) -> Iterator[str]:
    report = json.loads((RESULTS / f"{part.name}.json").read_text("utf-8"))
    (group,) = report["groups"]
    yield from ("", f"## {part.title}", "", part.text, "")
    yield f"![What happened to the questions](results/{part.name}.svg)"
    yield ""
    columns = ["system", *part.metrics.values(), *(["tokens"] if _has_tokens(group) else [])]
    yield f"| {' | '.join(columns)} |"
    yield f"|---|{'---:|' * (len(columns) - 1)}"
    for system in group["systems"]:
        yield f"| {' | '.join(_row(system, group, part))} |"
    yield ""
    days = sorted({run["date"] for run in report["provenance"]["runs"] if run["date"]})
    yield (
        f"n = {group['n']:,}; judge `{group['judge']}`; measured {' and '.join(days)}. The commands, checksums and "
        f"versions are in `eval/results/systems/{part.name}.json`."
    )
    if earlier := _other_readers(system["system"] for system in group["systems"]):
        yield from ("", _earlier_readers(earlier))
    if "second_judge" in group:
        yield from ("", *further_table(group))
    yield from ("", "| system | what it is |", "|---|---|")
    for system in group["systems"]:
        yield f"| `{current_name(system['label'])}` | {_about(current_name(system['label']))} |"


def _other_readers(systems: Iterable[str]) -> list[str]:
    """The readers in the names of systems, other than the one that ships."""
    return sorted({name for system in systems for name in _READER.findall(system)} - {Reader().name})


def _earlier_readers(readers: Sequence[str]) -> str:
    return f"The reader of these runs is not the one that ships now, but an earlier one: `{'`, `'.join(readers)}`."


def further_table(group: Mapping[str, Any]) -> Iterator[str]:
    """The table of a group by further definitions and by its second judge."""
    yield (
        f"The same answers by other definitions of citation recall and precision, and by a second judge, "
        f"`{group['second_judge']}`, which is a part of no system. It counts shared words, so systems that quote are "
        "attributed by it too. Where every sentence cites one passage and the judge knows no partial support, TREC's "
        "figures are those of Liu et al."
    )
    yield ""
    yield f"| system | {' | '.join(FURTHER.values())} |"
    yield f"|---|{'---:|' * len(FURTHER)}"
    for system in group["systems"]:
        star = r"\*" if system["same_judge"] else ""
        yield f"| `{current_name(system['label'])}`{star} | {' | '.join(_cell(system, name, {}) for name in FURTHER)} |"


def _row(system: Mapping[str, Any], group: Mapping[str, Any], part: Part) -> list[str]:
    star = r"\*" if system["same_judge"] else ""
    return [
        f"`{current_name(system['label'])}`{star}",
        *(_cell(system, name, group["comparison"]["metrics"]) for name in part.metrics),
        *([_tokens(system["tokens"])] if _has_tokens(group) else []),
    ]


def _has_tokens(group: Mapping[str, Any]) -> bool:
    return any(system["tokens"] for system in group["systems"])


def _cell(system: Mapping[str, Any], name: str, tests: Mapping[str, Any]) -> str:
    metric = metric_of(system, name)
    if metric["value"] is None:
        return ""
    low, high = (100 * end for end in metric["interval95"])
    letters = tests.get(name, {}).get("letters", {}).get(system["label"], "")
    superscript = f" <sup>{letters}</sup>" if letters else ""
    return f"{100 * metric['value']:.1f} ({low:.1f} to {high:.1f}){superscript}"


def _tokens(usage: Mapping[str, Any] | None) -> str:
    return "" if not usage else f"{sum(usage['per_answer'].values()):,.0f}"


def _about(label: str) -> str:
    if label in SYSTEMS:
        return SYSTEMS[label]
    descriptions: Sequence[str] = [text for kind, text in MODELS.items() if label.startswith(f"{kind}-")]
    return descriptions[0]


if __name__ == "__main__":
    app()
