"""Export of a study: ratings, answers with the consensus, and a manifest. The same presses give the same bytes."""

import json
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from autoais import formats
from autoais.answers import CitedAnswer, read_answers, write_answers
from autoais.io.jsonl import dumps, write_atomic
from autoais.io.provenance import sha256_file
from autoais.metrics.hagrid import answer_attributable
from autoais.ratings import FLAG, Rating, consensus, cut, label_answers, write_ratings
from autoais.ratings.convert import convert_ratings
from autoais.types import Citation
from rag.annotate.ratings import standing
from rag.annotate.review import progress_in
from rag.annotate.store import items, pairs, presses
from rag.annotate.study import Study
from rag.annotate.triage import estimate, read_triage
from rag.errors import UserError

_WRITTEN = ("ratings.jsonl", "presses.jsonl", "items.jsonl", "answers.jsonl", "hagrid.jsonl", "ais.csv", "triage.json")
MANIFEST = "manifest.json"


def export(study: Study, out: Path) -> dict[str, Any]:
    """Write the export to a folder, the manifest last; return the manifest.

    `ratings.jsonl` has the verdicts that stand (`autoais.ratings`), `presses.jsonl` all that was pressed, `items.jsonl`
    the items, `answers.jsonl` the answers with the consensus as human labels. That is also in `hagrid.jsonl` where
    sentences were judged, in `ais.csv` (Rashkin et al. 2023) where answers were. `triage.json` has the estimate over
    all items, if a judge chose them.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (MANIFEST, *_WRITTEN):
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from error
    phases: Counter[str] = Counter()
    with study.database.read(snapshot=True) as connection:
        write_atomic(out / "ratings.jsonl", write_ratings(_counted(ratings(study, connection), phases)))
        write_atomic(out / "presses.jsonl", _presses(connection))
        write_atomic(out / "items.jsonl", _items(connection))
        notes = formats.Notes()
        _write_answers(study, connection, out, notes)
        if (study.folder / "triage.jsonl").exists():
            found = estimate(read_triage(study.folder / "triage.jsonl"), _labels(study, connection))
            write_atomic(out / "triage.json", [dumps(found, indent=2)])
        manifest = _manifest(study, connection) | {
            "ratings": dict(sorted(phases.items())),
            "notes": [f"{what}: {n}" for what, n in sorted(notes.items())],
        }
    manifest["files"] = {
        name: {"sha256": sha256_file(out / name), "bytes": (out / name).stat().st_size}
        for name in _WRITTEN
        if (out / name).exists()
    }
    write_atomic(out / MANIFEST, [dumps(manifest, indent=2)])
    return manifest


def ratings(study: Study, connection: "sa.Connection") -> Iterator[Rating]:
    """Stream the standing verdicts, as `autoais.ratings` has them."""
    for key, _, verdicts in standing(connection):
        item = study.item(key)
        for one in verdicts:
            yield Rating(
                item=key,
                answer=item.answer or None,
                sentence=item.sentence,
                citation=item.citation,
                annotator=one.annotator,
                question=one.question,
                value=one.value,
                seconds=None if one.seconds is None else round(one.seconds, 3),
                at=utc(one.at),
                phase=one.phase,
                system=item.system,
                evidence=tuple(
                    Citation(span["passage"], span["start"], span["end"]) for span in json.loads(one.evidence)
                ),
                reason=one.reason,
                revised=one.revised,
            )


def utc(seconds: float) -> str:
    """Return a time in ISO 8601, UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _counted(found: Iterator[Rating], phases: "Counter[str]") -> Iterator[Rating]:
    for one in found:
        phases[one.phase] += 1
        yield one


def _presses(connection: "sa.Connection") -> Iterator[str]:
    """Every press, in order; `undoes` is the press that an undo takes back."""
    undone = presses.alias("undone")
    query = (
        sa.select(presses, undone.c.press.label("undone"))
        .outerjoin(undone, undone.c.id == presses.c.undoes)
        .order_by(presses.c.id)
    )
    for row in connection.execution_options(yield_per=1000).execute(query):
        yield dumps(
            {
                "press": row.press,
                "kind": row.kind,
                "annotator": row.annotator,
                "item": row.item,
                "question": row.question,
                "value": row.value,
                "phase": row.phase,
                "attempt": row.attempt,
                "evidence": json.loads(row.evidence),
                "reason": row.reason,
                "seconds": None if row.seconds is None else round(row.seconds, 3),
                "at": utc(row.at),
                "undoes": row.undone,
            }
        )


def _items(connection: "sa.Connection") -> Iterator[str]:
    found = sa.select(items.c.row).where(items.c.pool.in_(("study", "flagged", "judged"))).order_by(items.c.place)
    yield from connection.execution_options(yield_per=1000).execute(found).scalars()


def _write_answers(study: Study, connection: "sa.Connection", out: Path, notes: "formats.Notes") -> None:
    source = study.folder / "answers.jsonl"
    if not source.exists():
        return
    rated = {one.item for one in ratings(study, connection) if one.phase == "study" and one.question != FLAG}
    labelled = label_answers(read_answers(source), ratings(study, connection))
    write_atomic(out / "answers.jsonl", write_answers(_uncited(one, rated) for one in labelled))
    if "sentence" in study.scheme.units:
        write_atomic(out / "hagrid.jsonl", formats.write(read_answers(out / "answers.jsonl"), "hagrid", notes))
    if study.scheme.units == ("answer",):
        rows = convert_ratings(ratings(study, connection), "ais-csv", answers=source, notes=notes)
        write_atomic(out / "ais.csv", rows)


def _uncited(answer: CitedAnswer, rated: Set[str]) -> CitedAnswer:
    """Nobody is asked whether a text that cites nothing is supported: it is not (AIS asks for parts of a corpus)."""
    sentences = tuple(
        replace(one, attributable=False)
        if not one.citations and one.worthy is not False and f"{answer.id}#{number}" in rated
        else one
        for number, one in enumerate(answer.sentences)
    )
    if sentences != answer.sentences:
        whole = answer_attributable(one.attributable for one in sentences)
        return replace(answer, sentences=sentences, attributable=whole)
    if answer.id in rated and not any(one.citations for one in answer.sentences):
        return replace(answer, attributable=False)
    return answer


def _labels(study: Study, connection: "sa.Connection") -> dict[str, bool]:
    """The consensus by item: attributable (or supported, or fully supporting), and interpretable if that is asked.

    A rated item without a source is not attributable.
    """
    found: dict[str, dict[str, str | None]] = {}
    for one in consensus(cut(ratings(study, connection))):
        found.setdefault(one.item, {})[one.question] = one.value
    labels = {}
    for item, values in found.items():
        decisive = next((values[name] for name in ("attributable", "supported", "support") if name in values), None)
        if values.get("interpretable") == "no":
            labels[item] = False
        elif decisive is not None:
            labels[item] = decisive in ("yes", "full")
        elif (
            values.keys() - {FLAG} and values.get("worthy") != "no" and not study.item(item).has_source
        ):  # as in `_uncited`
            labels[item] = False
    return labels


def _manifest(study: Study, connection: "sa.Connection") -> dict[str, Any]:
    settings = asdict(study.settings)
    del settings["database"]  # where the study was kept is no part of it
    kinds = sa.select(presses.c.kind, sa.func.count()).group_by(presses.c.kind)
    pools = sa.select(items.c.pool, sa.func.count()).group_by(items.c.pool)
    done = progress_in(study, connection)
    return {
        "format": "rag annotate export 1",
        "version": version("attributed-rag"),
        "settings": settings,
        "items": dict(sorted(pairs(connection, pools).items())),
        "finished": done.finished,
        "presses": dict(sorted(pairs(connection, kinds).items())),
        "flags": dict(done.flags),
        "ties": done.ties,
        "people": [
            {"id": one.id, "role": one.role, "done": one.done, "flagged": one.flagged, "blocked": one.blocked}
            for one in done.people
        ],
    }
