"""The pages of results and of choices: figures from `eval/results`, prose from `scripts/results.md.j2`."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rag.bench.report.tables import metric_of
from rag.retrieval.reader import Reader

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "eval" / "results" / "systems"
UNSEEN = ROOT / "eval" / "results" / "unseen-sets.json"
CHOICES = ROOT / "eval" / "choices.toml"


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
    "autoais": "AutoAIS",
    "answerable_refused": "refused",
    "Success@20": "gold among 20 hits",
}
DOCUMENTS = {
    "right@60": "right in 60 words",
    "right@120": "right in 120 words",
    "autoais": "AutoAIS",
    "answerable_refused": "answerable refused",
    "unanswerable_refused": "unanswerable refused",
}
PASSAGES = {
    "right_attributed": "gold cited and attributed",
    "right": "gold cited",
    "autoais": "AutoAIS",
    "answerable_refused": "answerable refused",
    "unanswerable_refused": "unanswerable refused",
    "Success@20": "gold among 20 hits",
}
FURTHER = {
    "f1": "F1",
    "answer_recall": "answer recall",
    "nugget_recall": "nugget recall",
    "Success@1": "gold first",
    "autoais_second": "AutoAIS by counting words",
    "citation_recall": "citation recall",
    "citation_precision": "citation precision",
    "liu_recall": "Liu et al.: recall",
    "liu_precision": "precision",
    "trec_recall": "TREC: weighted recall",
    "trec_precision": "weighted precision",
}
PARTS = [
    Part(
        "open-nq-pool",
        "Open-NQ over the closed pool, 2,000 questions",
        QUALITY,
        "An answer is right if a reference occurs in its text. Constants of the reader were chosen on every eighth of "
        "these questions, the title weight of BM25 and how much the reader refuses on all of them.",
    ),
    Part(
        "open-nq-pool-100",
        "The same with a language model, 100 questions",
        QUALITY,
        "A sample of these questions (seed 13), because the model needs half a minute for an answer on one core. It "
        "is Qwen2.5-Coder-1.5B-Instruct, 4-bit, far smaller than the models of papers. "
        "[Benchmarks](handbook/reference/benchmarks.md#small-language-models) has more of its answers, over "
        "documents, too.",
    ),
    Part(
        "open-nq",
        "All of Open-NQ over the closed pool, 3,610 questions",
        QUALITY,
        "1,610 of the questions have no gold passage in the pool. They count like the others, so these figures are "
        "lower than those of the first table. The last column is over the other 2,000.",
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
        "201 of the questions have no answer in the passage that people looked at; another passage of the pool may "
        "have one. An answer is right if it cites the gold passage, as reference answers are long. No constant of the "
        "reader was chosen on them, some of the retrievers were.",
    ),
    Part(
        "nomiracl-pool",
        "NoMIRACL, 300 questions with ten passages each",
        {name: PASSAGES[name] for name in ("autoais", "answerable_refused", "unanswerable_refused")},
        "153 questions can be answered from the passages that come with them, 147 cannot. How the reader weighs its "
        "cases was chosen with these questions in view.",
    ),
]
GLANCE = {  # result -> what its questions are called in the first table, before the sets about documents
    "open-nq-pool": "Open-NQ, closed pool",
    "open-nq": "all of Open-NQ, closed pool",
    "miracl-pool": "MIRACL, closed pool (gold cited)",
    "clapnq-pool": "CLAPnq, closed pool (gold cited)",
}
FREE_MODEL = "gguf-qwen2.5-coder-1.5b-instruct-q4_k_m-k5-repair"
QUOTING_MODEL = "gguf-qwen2.5-coder-1.5b-instruct-q4_k_m-answerquote"
SYSTEMS = {  # label of a run -> what it is
    "reader": "the default system: sentences that a small network chooses, quoted",
    "reader-min_confidence0.3": "the reader, refusing below a confidence of 0.3",
    "reader-min_confidence0.0": "the reader, never refusing",
    "reader-static": "the reader over dense retrieval alone (static embeddings)",
    "reader-shortlist": "the reader over BM25 and static embeddings, as in an index without vectors",
    "reader-bm25-rerank": "the reader over the retriever `bm25-rerank`",
    "reader-gold": "the reader given the gold passage: the ceiling of reading",
    "extractive": "one to three sentences, no model",
    "extractive-bm25-rerank": "the same over the retriever `bm25-rerank`",
    "first-passage": "BM25's first hit, quoted whole: the simplest baseline",
    "first-passage-bm25-rerank": "the first hit of the retriever `bm25-rerank`, quoted whole",
    "first-passage-hybrid-reranked": "the first hit of the retriever `hybrid-reranked`, quoted whole",
    "first-passage-gold": "the gold passage, quoted whole",
    QUOTING_MODEL: "the model chooses what to quote from what the reader finds best (`--answer quote`)",
    FREE_MODEL: "the model writes from five passages, the judge checks and completes its citations",
    "as-parsed": "the same, its citations as written",
    "post-hoc-references": "the reference answer, sources searched for it afterwards",
    "post-hoc-closed-book": "what the model remembers, sources searched for it afterwards",
    "llm-retriever-gguf-qwen2.5-coder-1.5b-instruct-q4_k_m": "what the model remembers, citing the page that it names",
    "closed-book-gguf-qwen2.5-coder-1.5b-instruct-q4_k_m": "what the model remembers, without sources",
}
SETS = {  # of questions about documents: benchmark -> what it asks about
    "own-documents-fresh-2.v1": "documentation of eight packages; one rule was dropped because of it",
    "own-documents-fresh.v1": "documentation of eight others; nothing was chosen on half of it",
    "own-documents-kept.v1": "documentation of ten others; nothing was chosen on these questions",
    "everyday.v1": "invented papers of eight organisations; nothing was chosen on it",
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
POOL_ROWS = ("first-passage", "extractive", "reader")  # of the table of Open-NQ in README.md and the page Benchmarks
POOL_METRICS = {
    "right": "right",
    "em": "exact match",
    "f1": "F1",
    "autoais": "AutoAIS",
    "Success@1": "Success@1",
    "Success@20": "Success@20",
}
_READER = re.compile(r"reader@\w+/\d+")

JsonObject = Mapping[str, Any]


def result_lines() -> list[str]:
    """The lines of `docs/results.md`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,  # it writes Markdown, from files of ours
        keep_trailing_newline=True,
    )
    groups = {part.name: _group(part.name) for part in PARTS}
    labels = {system["label"] for group in groups.values() for system in group["systems"]}
    text = environment.get_template("results.md.j2").render(
        figure=lambda result, label, metric: _figure(groups[result], label, metric),
        span=_range_over_sets,
        quoting_model=QUOTING_MODEL,
        free_model=FREE_MODEL,
        glance="\n".join(_glance(groups)),
        systems=[(label, description) for label, description in SYSTEMS.items() if label in labels],
        parts=[_part(part) for part in PARTS],
        document_sets=[(_set_name(benchmark), description) for benchmark, description in SETS.items()],
        document_table="\n".join(_document_table()),
    )
    return text.rstrip("\n").split("\n")


def _group(name: str) -> JsonObject:
    (group,) = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))["groups"]
    return group  # type: ignore[no-any-return]


def _system(group: JsonObject, label: str) -> JsonObject:
    (system,) = (system for system in group["systems"] if system["label"] == label)
    return system  # type: ignore[no-any-return]


def _figure(group: JsonObject, label: str, metric: str) -> str:
    """A figure with its interval, for a sentence: "69.7 % (67.6 to 71.7)"."""
    value, interval = _interval_cell(metric_of(_system(group, label), metric)).split(" ", 1)
    return f"{value} % {interval}"


def _range_over_sets(metric: str, label: str) -> str:
    """The lowest and highest figure of a system over the sets of the summary, as "46 to 86 %"."""
    values = [metrics[metric]["value"] for (_, system), metrics in _unseen().items() if system == label]
    return f"{100 * min(values):.0f} to {100 * max(values):.0f} %"


def _glance(groups: Mapping[str, JsonObject]) -> Iterator[str]:
    """The first table: a row per benchmark, the reader beside the simplest baseline."""
    heads = (
        "right: `reader`",
        "right: BM25's first passage",
        "AutoAIS of `reader`",
        "refused, answerable",
        "unanswerable",
    )
    yield f"| questions | n | {' | '.join(heads)} |"
    yield f"|---|{'---:|' * (len(heads) + 1)}"
    figures = (
        ("reader", "right"),
        ("first-passage", "right"),
        ("reader", "autoais"),
        ("reader", "answerable_refused"),
        ("reader", "unanswerable_refused"),
    )
    for name, title in GLANCE.items():
        group = groups[name]
        cells = (_interval_cell(metric_of(_system(group, label), metric)) for label, metric in figures)
        yield f"| {title} | {group['n']:,} | {' | '.join(cells)} |"
    unseen, sizes = _unseen(), _sizes()
    for benchmark in SETS:
        cells = (
            _interval_cell(unseen[benchmark, label]["right@60" if metric == "right" else metric])
            for label, metric in figures
        )
        yield f"| documents, `{_set_name(benchmark)}` (in 60 words) | {sizes[benchmark]} | {' | '.join(cells)} |"


def _part(part: Part) -> dict[str, object]:
    report = json.loads((RESULTS / f"{part.name}.json").read_text("utf-8"))
    (group,) = report["groups"]
    further = {name: title for name, title in FURTHER.items() if _has_values(group, name)}
    days = sorted({run["date"] for run in report["provenance"]["runs"] if run["date"]})
    return {
        "name": part.name,
        "title": part.title,
        "text": part.text,
        "table": "\n".join(metric_table(group, part.metrics, group["comparison"]["metrics"])),
        "n": f"{group['n']:,}",
        "judge": group["judge"],
        "days": " and ".join(days),
        "earlier_readers": _earlier_readers(system["system"] for system in group["systems"]),
        "further": "\n".join(metric_table(group, further, {}, tokens=True)),
    }


def _has_values(group: JsonObject, name: str) -> bool:
    return any(metric_of(system, name)["value"] is not None for system in group["systems"] if name in system["metrics"])


def metric_table(
    group: JsonObject, metrics: Mapping[str, str], tests: JsonObject, *, tokens: bool = False
) -> Iterator[str]:
    """A table of a group: a row per system, a column per metric, with letters where `tests` has them.

    `tokens` adds the tokens of an answer, where a language model took part.
    """
    tokens = tokens and any(system["tokens"] for system in group["systems"])
    yield f"| system | {' | '.join([*metrics.values(), *(['tokens'] if tokens else [])])} |"
    yield f"|---|{'---:|' * (len(metrics) + tokens)}"
    for system in group["systems"]:
        star = r"\*" if system["same_judge"] else ""
        cells = [_cell(system, name, tests) for name in metrics]
        if tokens:
            cells.append(_tokens(system["tokens"]))
        yield f"| `{system['label']}`{star} | {' | '.join(cells)} |"


def _cell(system: JsonObject, name: str, tests: JsonObject) -> str:
    cell = _interval_cell(metric_of(system, name) if name in ("right_attributed", *system["metrics"]) else None)
    letters = tests.get(name, {}).get("letters", {}).get(system["label"], "")
    return f"{cell} <sup>{letters}</sup>" if cell and letters else cell


def _interval_cell(metric: JsonObject | None) -> str:
    if metric is None or metric["value"] is None:
        return ""
    low, high = (100 * end for end in metric["interval95"])
    return f"{100 * metric['value']:.1f} ({low:.1f} to {high:.1f})"


def _tokens(usage: JsonObject | None) -> str:
    return "" if not usage else f"{sum(usage['per_answer'].values()):,.0f}"


def _earlier_readers(systems: Iterable[str]) -> str:
    """The readers in the names of systems, other than the one that ships; "" if there are none."""
    names = sorted({name for system in systems for name in _READER.findall(system)} - {Reader().name})
    return ", ".join(f"`{name}`" for name in names)


def _set_name(benchmark: str) -> str:
    """The short name of a set about documents: `fresh-2` for `own-documents-fresh-2.v1`."""
    return benchmark.removeprefix("own-documents-").rpartition(".")[0]


def _document_table() -> Iterator[str]:
    """A row per set about documents and system."""
    yield f"| questions | system | {' | '.join(DOCUMENTS.values())} |"
    yield f"|---|---|{'---:|' * len(DOCUMENTS)}"
    for (benchmark, label), metrics in _unseen().items():
        cells = (_interval_cell(metrics[name]) for name in DOCUMENTS)
        yield f"| `{_set_name(benchmark)}` | `{label}` | {' | '.join(cells)} |"


def _unseen() -> dict[tuple[str, str], Any]:
    """The metrics over the sets about documents, by benchmark and system."""
    return {(row["benchmark"], row["label"]): row["metrics"] for row in _unseen_rows()}


def _sizes() -> dict[str, int]:
    return {row["benchmark"]: row["n"] for row in _unseen_rows()}


def _unseen_rows() -> list[JsonObject]:
    rows: list[JsonObject] = json.loads(UNSEEN.read_text("utf-8"))["rows"]
    return rows


def summary_table() -> Iterator[str]:
    """The table of README.md and the page Benchmarks about documents: a column per set, a figure a cell."""
    metrics = _unseen()
    yield f"| % of the questions | {' | '.join(f'`{_set_name(benchmark)}`' for benchmark in SETS)} |"
    yield f"|---|{'---:|' * len(SETS)}"
    for system, figure, description in SUMMARY_ROWS:
        cells = (_spread_cell(metrics[benchmark, system][figure]) for benchmark in SETS)
        yield f"| {description} | {' | '.join(cells)} |"


def _spread_cell(figure: JsonObject) -> str:
    """A share as whole per cent, with the longer side of its interval."""
    low, high = figure["interval95"]
    return f"{100 * figure['value']:.0f} ±{100 * max(high - figure['value'], figure['value'] - low):.0f}"


def pool_table() -> Iterator[str]:
    """The table of README.md and the page Benchmarks about Open-NQ over the closed pool."""
    group = _group("open-nq-pool")
    yield f"| system | {' | '.join(POOL_METRICS.values())} |"
    yield f"|---|{'---|' * len(POOL_METRICS)}"
    for label in POOL_ROWS:
        values = (metric_of(_system(group, label), name)["value"] for name in POOL_METRICS)
        yield f"| `{label}` | {' | '.join('–' if value is None else f'{100 * value:.1f} %' for value in values)} |"


def choice_lines() -> Iterator[str]:
    """The lines of `docs/choices.md`: what was chosen on what, from `eval/choices.toml`."""
    table = tomllib.loads(CHOICES.read_text("utf-8"))
    yield "# What was chosen on what"
    yield ""
    yield "<!-- Written by python -m scripts.make_results page, from eval/choices.toml. Do not edit. -->"
    yield ""
    yield (
        "A figure is too optimistic if a constant, a threshold or a design was chosen on the questions that measure "
        'it. Each table has a row per choice: what it was made on, and how it does on other data. "Details" has the '
        "counts and files. [Limits](limits.md) says what else our numbers do not show."
    )
    for area, rows in groupby(table["choices"], key=lambda row: row["area"]):
        yield from _choices(area, list(rows))
    yield from ("", "## How often each set was measured", "")
    yield (
        "Repeated measurement of a set also influences choices, even without intent. Figures are per cent right in 60 "
        "and in 120 words, then per cent refused of the answerable and of the unanswerable questions."
    )
    yield ""
    for row in table["measured"]:
        yield f"- **`{row['set']}`, {row['times']} times.** {row['history']}"
    yield from ("", "## Answers that readers judged", "")
    yield "The readers are language models (Claude), blinded where it says so. Their judgements are not in a file here."
    yield from ("", "| who judged | what | right |", "|---|---|---|")
    for row in table["readers"]:
        yield f"| {row['who']} | {row['what']} | {row['right']} |"
    yield from _details((row["what"], row["details"]) for row in table["readers"])


def _choices(area: str, rows: Sequence[JsonObject]) -> Iterator[str]:
    yield from ("", f"## {area}", "", "| part | chosen on | on other data |", "|---|---|---|")
    for row in rows:
        yield f"| {row['part']} | {row['chosen_on']} | {row['elsewhere']} |"
    yield from _details((row["part"], row["details"]) for row in rows)


def _details(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    lines = [f"- **{title}.** {text}" for title, text in items if text]
    if lines:
        yield from ("", '<details markdown="1"><summary>Details</summary>', "", *lines, "", "</details>")
