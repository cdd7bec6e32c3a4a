"""`rag collect report`: HAGRID's tables and figures of any cited answers, and a judge against people's labels."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.io.provenance import judge_record, provenance
from autoais.base.progress import Progress, no_progress
from autoais.base.types import Judge
from autoais.formats.base import Notes
from autoais.judges import open_judge
from autoais.metrics.rates import Rate
from rag.base.config import DEFAULT_JUDGE
from rag.base.errors import RagError, check_type
from rag.bench.collections.folder import ANSWERS, MANIFEST, open_collection
from rag.bench.collections.report.analyses import Analyses, Similarity, open_similarity
from rag.bench.collections.report.figures import figures
from rag.bench.collections.report.page import page
from rag.bench.collections.statistics import Part, statistics_of
from rag.bench.output_folder import lock_folder

VERSION = 2
NONE = "none"


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """A written report: its page, and its numbers (`report.json`)."""

    page: Path
    record: dict[str, Any]


def report_collection(
    source: str | Path,
    output_folder: str | Path | None = None,
    *,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    corpus: Sequence[str | Path] = (),
    judge: str | Judge = DEFAULT_JUDGE,
    similarity: str | None = None,
    progress: Progress | None = None,
) -> CollectionReport:
    """Write report.html, report.json and figures/*.svg and *.png of a collection, or of a file of cited answers.

    `output_folder` is a folder (default: `report` in the collection). Tables 2 and 3 and Figures 3 to 5 are those of
    Kamalloo et al. (2023). `judge` is compared with people's labels of sentences (`none` leaves that out). `similarity`
    is `static` or `bertscore` (default: BERTScore where it is installed). `format` and `corpus` are for files, as in
    `import_collection`. The same answers give the same bytes. Raises `RagError` if there are no answers, and if another
    process writes the collection or the folder.
    """
    check_type("source", source, "a collection or a file (str or Path)", str, Path)
    path = Path(source)
    if not path.exists():
        raise RagError(f"{path}: no such collection or file")
    if output_folder is None and not path.is_dir():
        raise RagError("name a folder for the report of a file (--out FOLDER)")
    folder = path / "report" if output_folder is None else Path(output_folder)
    opened_judge = open_judge(judge) if isinstance(judge, str) and judge != NONE else judge
    similarity_model = open_similarity(similarity)
    texts = [Path(text) for text in corpus]
    show = progress or no_progress
    with ExitStack() as locks:
        if path.is_dir():
            open_collection(path)  # before the locks, which would create folders
            if folder.resolve() != path.resolve() and os.access(path, os.W_OK):
                locks.enter_context(lock_folder(path, is_shared=True))
        locks.enter_context(lock_folder(folder))
        return _write_report(path, folder, format, texts, opened_judge, similarity_model, show)


def _write_report(
    path: Path,
    folder: Path,
    kind: str | None,
    corpus: Sequence[Path],
    judge: str | Judge,
    similarity: Similarity,
    show: Progress,
) -> CollectionReport:
    collection = open_collection(path) if path.is_dir() else None
    notes = Notes()

    def answers(notes: Notes) -> Iterator[CitedAnswer]:
        if collection is not None:
            return collection.answers()
        return formats.read(path, kind, corpus=corpus, notes=notes)

    analyses = Analyses(similarity)

    def analyse() -> Iterator[CitedAnswer]:
        for number, answer in enumerate(answers(notes), 1):
            analyses.add(answer)
            if number % 100 == 0:
                show("reading", number, number)
            yield answer

    parts: dict[str, Part] = {"all": lambda answer: True} if collection is None else collection.parts()
    statistics = statistics_of(analyse(), parts)
    analyses.close()
    table2 = {name: part.table2() for name, part in statistics.items()}
    if not table2["all"]["answers"]:
        raise RagError(f"{path}: no answers in it")
    agreement = None
    if isinstance(judge, Judge):
        agreement = _agreement(answers(Notes()), judge, show)
    images = [(figure, figure.svg(), figure.svg(dark=True)) for figure in figures(analyses)]
    for figure, light, _ in images:
        write_atomic(folder / f"figures/{figure.name}.svg", [light.removesuffix("\n")])
        write_atomic(folder / f"figures/{figure.name}.png", figure.png())
    inputs = {"answers": path / ANSWERS, "manifest": path / MANIFEST} if collection else {"answers": path}
    record = round_floats(
        {
            "report_version": VERSION,
            "name": str(collection.manifest["name"]) if collection else path.name,
            "labelled_by": statistics["all"].labelled_by,
            "table2": table2,
            "table3": {name: table for name, part in statistics.items() if (table := part.table3())},
            "systems": dict(sorted(statistics["all"].systems.items())),
            "similarity": analyses.similarity.name,
            "figures": [
                {"name": figure.name, "title": figure.title, "text": figure.text, "data": figure.data}
                for figure, _, _ in images
            ],
            "autoais": agreement,
            "notes": notes.by_text(),
            "provenance": provenance(inputs),
        }
    )
    write_atomic(folder / "report.json", [dumps(record, indent=1)])
    write_atomic(folder / "report.html", [page(record, images).removesuffix("\n")])
    return CollectionReport(folder / "report.html", record)


def _agreement(answers: Iterator[CitedAnswer], judge: Judge, show: Progress) -> dict[str, Any] | None:
    """How a judge agrees with people's labels, and the share that each calls attributable; None without labels."""
    from autoais.meta.evaluate import Rows, estimates_of, judge_labels, one_set, rows_by_set

    labels = [replace(label, dataset="all") for answer in answers for label in formats.labels_of(answer)]
    if not labels:
        return None
    show(f"judging with {judge.name}", 0, len(labels))
    rows: Rows = rows_by_set(judge_labels(labels, judge))["all"]

    def shares(number: int | None) -> dict[str, Any]:
        mask = rows.is_decided if number is None else rows.is_decided & (rows.system == number)
        questions = [int(question) for question in rows.question[mask]]
        sides = {"people": rows.truth[mask], "judge": rows.prediction[mask]}
        return {side: Rate.of([bool(yes) for yes in values], questions).record() for side, values in sides.items()}

    judge_facts = {key: value for key, value in judge_record(judge).items() if key != "usage"}
    return {
        "judge": judge.name,
        "judged_by": judge_facts,
        "labels": len(labels),
        "attributable_by": {
            "all": shares(None),
            "systems": {name: shares(number) for number, name in enumerate(rows.systems)},
        },
        **one_set(rows, estimates_of(rows)),
    }
