"""Writes `docs/results.md`, all systems side by side from benchmark runs (`scripts/make_all_results.sh`: hours), and
`docs/choices.md`, what was chosen on what (`eval/choices.toml`).

    python -m scripts.make_results references QUESTIONS --out FILE    # reference answers, as predictions
    python -m scripts.make_results collect RUN... --out eval/results/systems/NAME.json
    python -m scripts.make_results page

`collect` keeps the figures of runs and of their comparison, without any text of questions, answers or passages. It
scores the answers by a second judge, and draws `docs/results/NAME.svg`. `page` also writes the tables of README.md and
the handbook. Prose is in `scripts/results.md.j2`.
"""

from collections.abc import Iterator
from dataclasses import replace
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
from rag.bench.results import SystemRun, group_systems, read_run
from scripts.results_page import ROOT, choice_lines, pool_table, result_lines, summary_table

PAGES = {ROOT / "docs" / "results.md": result_lines, ROOT / "docs" / "choices.md": choice_lines}
TABLES = (summary_table, pool_table)
PAGES_WITH_TABLES = (ROOT / "README.md", ROOT / "docs/handbook/reference/benchmarks.md")
FIGURES = ROOT / "docs" / "results"
SECOND = "lexical"  # a judge that is a part of no system

app = typer.Typer(add_completion=False)


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
    """Write the pages, and the tables that README.md and the handbook have of them."""
    for path, lines in PAGES.items():
        write_atomic(path, lines())
    for path in PAGES_WITH_TABLES:
        for table in TABLES:
            _replace_table(path, table())


def _replace_table(path: Path, table: Iterator[str]) -> None:
    """Replace the table of a page that has the same first line."""
    first, *rows = table
    before, header, after = path.read_text("utf-8").partition(f"{first}\n")
    if not header:
        raise SystemExit(f"error: {path} lacks the head of the table: {first}")
    lines_after = dropwhile(lambda line: line.startswith("|"), after.splitlines())
    write_atomic(path, [*before.splitlines(), first, *rows, *lines_after])


if __name__ == "__main__":
    app()
