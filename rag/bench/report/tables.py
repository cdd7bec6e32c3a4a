"""The headline metrics as a Markdown or LaTeX table; equal reports give equal bytes."""

from collections.abc import Callable, Mapping
from typing import Any

from autoais.base.terminal import markdown
from rag.bench.html import visible

HEADLINE = {
    "right_attributed": "right and attributed",
    "right": "right",
    "em": "exact match",
    "f1": "F1",
    "answer_recall": "answer recall",
    "nugget_recall": "nugget recall",
    "autoais": "AutoAIS",
    "autoais_corrected": "AutoAIS, corrected",
    "citation_recall": "citation recall",
    "citation_precision": "citation precision",
    "answerable_refused": "answerable refused",
    "unanswerable_refused": "unanswerable refused",
}
"""The metrics that a table starts with, by their names in metrics.json, with their names for readers."""

MEANINGS = {
    "right": "answers that are right by the rule of the benchmark (below), of the questions that can be answered; "
    "right@60, right@120: with all nuggets in the first 60 or 120 words",
    "right_attributed": "right answers whose every sentence is supported by what it cites, of all questions",
    "em": "short answers that are a reference, after SQuAD's normalisation; F1: their common words",
    "answer_recall": "answers with a reference in their cited sentences",
    "nugget_recall": "nuggets (phrases that a right answer contains) that occur in the answer; all_nuggets: answers "
    "with all of them; _judged: also those that the judge finds supported",
    "autoais": "answers whose every sentence the judge finds supported by all that it cites together, of all questions "
    "(Bohnet et al. 2022); attributed_answers: of the answers given; corrected: with people's labels",
    "sentences": "sentences that the judge finds supported by all that they cite together",
    "citation_recall": "ALCE's recall (supported sentences) and precision (citations of supported sentences that are "
    "not superfluous), means over questions (Gao et al. 2023); _strict: as ALCE's script reads the text",
    "hagrid": "answers whose every single citation supports its sentence (Kamalloo et al. 2023); hagrid_sentences: "
    "sentences",
    "liu_recall": "statements that are fully supported; liu_precision: citations that support (Liu et al. 2023), over "
    "all answers; _averaged: means over answers",
    "trec_recall": "support (full 1, partial 0.5) by the first citation, over all sentences; trec_precision: over "
    "those that cite (TREC RAG 2024); _averaged: means over questions",
    "span_f1": "cited words against those that people marked as the answer, over all questions: span_precision (cited "
    "ones that are marked), span_recall (marked ones that are cited), F1 of the two; _averaged: means over questions",
    "answerable_refused": "questions with an answer that were refused; unanswerable_refused: those without one",
    "Success@": "questions with a gold passage among the first hits; R@: gold passages among them",
    "answer_hit@": "questions with a reference answer in the text of the first hits",
}
"""What the metrics are, by their names in metrics.json, or the beginnings of these; related ones stand in one line."""

KINDS = {"system": "run here", "predictions": "answers of others"}
"""What a row of a leaderboard is: a system that `rag bench run` ran, or a file of answers."""

_TEX = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "$%#&_"
}


def metric_of(system: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a metric of a system of report.json; `right_attributed` is a way."""
    if name == "right_attributed":
        rate = system["ways"][name]
        return {"value": rate["share"], "interval95": rate["interval95"], "n": None}
    metric: Mapping[str, Any] = system["metrics"].get(name, {"value": None})
    return metric


def table(report: Mapping[str, Any], kind: str) -> str:
    """Return the table of a report (`report.json`), `md` or `latex`, one per group."""
    return "\n".join(_markdown(group) if kind == "md" else _latex(group) for group in report["groups"])


def _rows(group: Mapping[str, Any], escape: Callable[[str], str]) -> tuple[list[str], list[list[str]]]:
    names = [
        name for name in HEADLINE if any(metric_of(system, name)["value"] is not None for system in group["systems"])
    ]
    comparisons = group["comparison"]["metrics"] if len(group["systems"]) > 1 else {}
    systems = {system["label"]: system for system in group["systems"]}
    rows = []
    for place in group["leaderboard"]["rows"]:
        system = systems[place["label"]]
        kind = "" if place["kind"] == "system" else f" ({KINDS[place['kind']]})"
        cells = [escape(visible(system["label"]) + kind)]
        for name in names:
            metric = metric_of(system, name)
            letters = comparisons.get(name, {}).get("letters", {}).get(system["label"], "")
            ends = metric.get("interval95")
            interval = f" ({_end(ends[0])} to {_end(ends[1])})" if ends else ""
            value = metric["value"]
            cells.append("" if value is None else f"{100 * value:.1f}{interval}{_superscript(letters, escape)}")
        seconds = (system["latency"] or {}).get("p50")
        rows.append([*cells, "" if seconds is None else f"{seconds:.2g}"])
    return ["system", *(HEADLINE[name] for name in names), "median seconds"], rows


def _end(end: float) -> str:
    """The end of an interval in per cent: 0 and 100 only for what is exactly that, as 99.7 is no certainty."""
    text = f"{100 * end:.0f}"
    if text not in ("0", "100") or end in (0, 1):
        return text
    return f"{min(max(100 * end, 0.1), 99.9) if 0 < end < 1 else 100 * end:.1f}"


def _superscript(letters: str, escape: Callable[[str], str]) -> str:
    if not letters:
        return ""
    return f"$^{{\\mathrm{{{letters}}}}}$" if escape is _tex else f" <sup>{letters}</sup>"


def _note(group: Mapping[str, Any]) -> str:
    letters = (
        " Systems with a common letter cannot be told apart (5 %, Holm's correction over the pairs of a column, not "
        "over the columns; undecided counts as no)."
    )
    metric = group["leaderboard"]["metric"]
    order = f" Sorted by {HEADLINE.get(metric, metric)}.{letters}" if len(group["systems"]) > 1 else ""
    return f"{visible(group['name'])}. Per cent, with 95 % intervals.{order}"


def _tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in text)


def _markdown(group: Mapping[str, Any]) -> str:
    head, rows = _rows(group, markdown)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return f"{markdown(_note(group))}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _latex(group: Mapping[str, Any]) -> str:
    head, rows = _rows(group, _tex)
    top, *body = [f"{' & '.join(line)} \\\\" for line in (head, *rows)]
    columns = "l" + "r" * (len(head) - 1)
    lines = [
        f"% {_note(group)}",
        f"\\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        top,
        r"\midrule",
        *body,
        r"\bottomrule",
    ]
    return "\n".join([*lines, r"\end{tabular}", ""])
