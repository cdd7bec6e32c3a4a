"""Export of a study: ratings, answers with the consensus, and a manifest. The same presses give the same bytes."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from autoais import formats
from autoais.base.answers import read_answers, write_answers
from autoais.base.io.jsonl import dumps, parse_object, round_floats, write_atomic
from autoais.base.io.locks import lock_if_free
from autoais.base.io.provenance import sha256_file
from autoais.formats.human_ratings.consensus import apply_cut, consensus, find_flagged_items, label_answers
from autoais.formats.human_ratings.convert import convert_ratings
from autoais.formats.human_ratings.ratings import Rating, write_ratings
from rag.annotate.guidelines import guideline_versions, record_guidelines
from rag.annotate.items import topic_of
from rag.annotate.queries import UNDO, VERDICT
from rag.annotate.ratings import current_ratings, utc
from rag.annotate.record import StudyRecord
from rag.annotate.review import count_ties, progress_in
from rag.annotate.store import SOURCE_FILE, fact, items, pairs, people, presses
from rag.annotate.triage import estimate, read_triage
from rag.annotate.words import MarkedPassage, marked_passages, word_agreement, write_span_gold
from rag.base.errors import UserError

_FILES = (
    "ratings.jsonl", "presses.jsonl", "items.jsonl", "answers.jsonl", "hagrid.jsonl", "ais.csv", "triage.json",
    "spans.jsonl", "scheme.toml",
)  # fmt: skip
MANIFEST = "manifest.json"
_ANSWERS = "answers.jsonl"
SCHEME = "scheme.toml"
_FORMAT = "rag annotate export 1"


def export(study: StudyRecord, folder: Path, *, exclude: Collection[str] = ()) -> dict[str, Any]:
    """Write the export to a folder that only its owner can read, the manifest last; return the manifest.

    `ratings.jsonl` has the current verdicts (`autoais.formats.human_ratings`), `presses.jsonl` every press,
    `items.jsonl` the items, `answers.jsonl` the answers with the consensus as human labels. That is also in
    `hagrid.jsonl` where sentences were judged, in `ais.csv` (Rashkin et al. 2023) where answers were. `triage.json` has
    the estimate over all items, if a judge chose them. `spans.jsonl` has the words that most people marked in passages,
    as `autoais evaluate-spans` reads them, and `scheme.toml` is the study's own scheme.

    What the people in `exclude` said is in `presses.jsonl` only, and counts for nothing. Raises `UserError` if the
    folder cannot be written, another process writes it, a person is unknown, or the answers that the study was made of
    are gone.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_if_free(folder) as free:
            if not free:
                raise UserError(f"{folder}: another process is writing it; wait for it, or name another folder")
            _check_folder(folder)
            folder.chmod(0o700)  # names and verdicts: for the owner only, before and after they are written
            manifest = _export(study, folder, exclude)
            for name in (MANIFEST, *manifest["files"]):
                (folder / name).chmod(0o600)
            return manifest
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _check_folder(folder: Path) -> None:
    """Raise `UserError` if the folder holds anything but an export, which may have been interrupted."""
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    foreign = names - {MANIFEST, *_FILES}
    # An export that was killed has no manifest; its ratings are written first and removed last.
    is_ours = _format_of(folder / MANIFEST) == _FORMAT if MANIFEST in names else _FILES[0] in names
    if names and (foreign or not is_ours):
        raise UserError(f"{folder} is not an export (it holds {min(foreign or names)}); name an empty folder")


def _format_of(path: Path) -> object:
    try:
        return parse_object(path.read_bytes(), str(path)).get("format")
    except UserError:
        return None


def _export(study: StudyRecord, folder: Path, exclude: Collection[str]) -> dict[str, Any]:
    phases: Counter[str] = Counter()
    record_guidelines(study)
    with study.database.read(snapshot=True) as connection:
        check_people(connection, exclude)
        if fact(connection, SOURCE_FILE) == _ANSWERS and not (study.folder / _ANSWERS).exists():
            raise UserError(f"{study.folder / _ANSWERS} is missing, the answers of the study; restore it from a backup")
        for name in (MANIFEST, *reversed(_FILES)):
            (folder / name).unlink(missing_ok=True)
        write_atomic(
            folder / "ratings.jsonl", write_ratings(_count_phases(ratings(study, connection, exclude), phases))
        )
        write_atomic(folder / "presses.jsonl", _presses(study, connection))
        write_atomic(folder / "items.jsonl", _items(connection))
        notes = formats.Notes()
        _write_answers(study, connection, folder, exclude, notes)
        notes.pop("ties, without a label", None)  # counted below, with those of unfinished items
        if (study.folder / "triage.jsonl").exists():
            decisions = list(read_triage(study.folder / "triage.jsonl"))
            topics = {row.item: topic_of(study.item(row.item)) for row in decisions}
            triage_estimate = estimate(decisions, _labels(study, connection, exclude), topics)
            write_atomic(folder / "triage.json", [dumps(triage_estimate, indent=2)])
        passages = _write_spans(study, connection, folder, exclude)
        if study.settings.scheme == SCHEME:
            write_atomic(folder / SCHEME, (study.folder / SCHEME).read_bytes())
        manifest = _manifest(study, connection, exclude) | {
            "ratings": dict(sorted(phases.items())),
            "notes": [f"{text}: {n}" for text, n in sorted(notes.by_text().items())],
        }
        if passages:
            manifest["words"] = round_floats(word_agreement(passages))
        total = manifest["items"].get("study", 0)
        if open_items := total - manifest["finished"]:
            manifest["notes"].append(f"items of the study that are not finished: {open_items} of {total}")
        if manifest["ties"]:
            manifest["notes"].append(
                f"ties, without a label until an admin or more people decide them: {manifest['ties']}"
            )
        if len(manifest["guidelines"]) > 1:
            parts = " and ".join(str(entry["presses"]) for entry in manifest["guidelines"])
            manifest["notes"].append(f"the guidelines changed during the study; presses under each version: {parts}")
    manifest["files"] = {
        name: {"sha256": sha256_file(folder / name), "bytes": (folder / name).stat().st_size}
        for name in _FILES
        if (folder / name).exists()
    }
    write_atomic(folder / MANIFEST, [dumps(manifest, indent=2)])
    return manifest


def ratings(study: StudyRecord, connection: "sa.Connection", exclude: Collection[str] = ()) -> Iterator[Rating]:
    """Yield the current verdicts as ratings (`autoais.formats.human_ratings`)."""
    for key, _, verdicts in current_ratings(connection, study.scheme, exclude):
        item = study.item(key)
        for rating in verdicts:
            yield replace(
                rating,
                answer=item.answer or None,
                sentence=item.sentence,
                citation=item.citation,
                system=item.system,
                source_seen=rating.source_seen and item.has_source,
            )


def _count_phases(verdicts: Iterator[Rating], phases: "Counter[str]") -> Iterator[Rating]:
    for verdict in verdicts:
        phases[verdict.phase] += 1
        yield verdict


def check_people(connection: "sa.Connection", names: Collection[str]) -> None:
    """Raise `UserError` for a name that is none of the study's people."""
    person_ids = {str(person_id) for person_id in connection.execute(sa.select(people.c.id)).scalars()}
    if unknown := sorted(set(names) - person_ids):
        raise UserError(f"no person called {unknown[0]!r:.60}; there are: {', '.join(sorted(person_ids))[:200]}")


def _presses(study: StudyRecord, connection: "sa.Connection") -> Iterator[str]:
    """Every press, in order; `undoes` is the press that an undo takes back.

    `source_seen` is as in `Rating`.
    """
    undone_press = presses.alias("undone")
    revealing = study.scheme.revealing
    hidden_questions = {question for question, _ in revealing}
    source_viewers: set[tuple[str, str, int]] = set()  # people and items: the source was shown, and the verdict undone
    query = (
        sa.select(presses, undone_press.c.press.label("undone"), undone_press.c.value.label("taken_back"))
        .outerjoin(undone_press, undone_press.c.id == presses.c.undoes)
        .order_by(presses.c.id)
    )
    for row in connection.execution_options(yield_per=1000).execute(query):
        turn = row.annotator, row.item, row.attempt
        if row.kind == UNDO and (row.question, row.taken_back) in revealing and study.item(row.item).has_source:
            source_viewers.add(turn)
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
                "source_seen": row.kind == VERDICT and row.question in hidden_questions and turn in source_viewers,
            }
        )


def _items(connection: "sa.Connection") -> Iterator[str]:
    query = (
        sa.select(items.c.row)
        .where(items.c.pool.in_(("study", "flagged", "judged", "check", "unasked")))
        .order_by(items.c.place)
    )
    yield from connection.execution_options(yield_per=1000).execute(query).scalars()


def _write_answers(
    study: StudyRecord, connection: "sa.Connection", folder: Path, exclude: Collection[str], notes: "formats.Notes"
) -> None:
    source = study.folder / _ANSWERS
    if not source.exists() or study.scheme.units == ("passage",):
        return
    verdicts = [  # passages have no label in an answer
        rating for rating in ratings(study, connection, exclude) if study.item(rating.item).unit != "passage"
    ]
    write_atomic(folder / "answers.jsonl", write_answers(label_answers(read_answers(source), verdicts, notes=notes)))
    if "sentence" in study.scheme.units:
        write_atomic(folder / "hagrid.jsonl", formats.write(read_answers(folder / "answers.jsonl"), "hagrid", notes))
    if study.scheme.units == ("answer",):
        rows = convert_ratings(verdicts, "ais-csv", answers=source, notes=notes)
        write_atomic(folder / "ais.csv", rows)


def _write_spans(
    study: StudyRecord, connection: "sa.Connection", folder: Path, exclude: Collection[str]
) -> list[MarkedPassage]:
    if "passage" not in study.scheme.units:
        return []
    ratings_by_item = (
        (study.item(key), verdicts) for key, _, verdicts in current_ratings(connection, study.scheme, exclude)
    )
    passages = marked_passages(ratings_by_item, study.scheme)
    if passages:
        write_atomic(folder / "spans.jsonl", write_span_gold(passages))
    return passages


def _labels(study: StudyRecord, connection: "sa.Connection", exclude: Collection[str]) -> dict[str, bool]:
    """The consensus by item: attributable (or supported, or fully supporting), and interpretable if that is asked.

    A rated item without a source is not attributable. A flagged item has no label, nor has a tie.
    """
    values_by_item: dict[str, dict[str, str | None]] = {}
    verdicts = list(ratings(study, connection, exclude))
    items_with_flags = find_flagged_items(verdicts)
    for outcome in consensus(apply_cut(verdicts)):
        if outcome.adjudicated or outcome.item not in items_with_flags:
            values_by_item.setdefault(outcome.item, {})[outcome.question] = outcome.value
    labels = {}
    for item, values in values_by_item.items():
        decisive = next((values[name] for name in ("attributable", "supported", "support") if name in values), None)
        if values.get("interpretable") == "no":
            labels[item] = False
        elif values.get("worthy") == "no" or None in (values.get("interpretable", ""), values.get("worthy", "")):
            continue
        elif decisive is not None:
            labels[item] = decisive in ("yes", "full")
        elif not study.item(item).has_source:  # as in `label_answers`
            labels[item] = False
    return labels


def _manifest(study: StudyRecord, connection: "sa.Connection", exclude: Collection[str]) -> dict[str, Any]:
    settings = asdict(study.settings)
    del settings["database"]  # the address of the database is not part of the study
    kinds = sa.select(presses.c.kind, sa.func.count()).group_by(presses.c.kind)
    pools = sa.select(items.c.pool, sa.func.count()).group_by(items.c.pool)
    study_progress = progress_in(study, connection, exclude)
    manifest: dict[str, Any] = {
        "format": _FORMAT,
        "version": version("attributed-rag"),
        "settings": settings,
        "guidelines": guideline_versions(connection),
        "items": dict(sorted(pairs(connection, pools).items())),
        "finished": study_progress.finished,
        "presses": dict(sorted(pairs(connection, kinds).items())),
        "flags": dict(study_progress.flags),
        "ties": count_ties(study, connection, exclude),
        "alpha": round_floats(dict(study_progress.alpha)),
        "people": [
            {
                "id": person.id,
                "role": person.role,
                "done": person.done,
                "flagged": person.flagged,
                "blocked": person.blocked,
            }
            for person in study_progress.people
        ],
    }
    return manifest | {"without": sorted(exclude)} if exclude else manifest
