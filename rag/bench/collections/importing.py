"""`rag collect import`: cited answers of others, in any format of the evaluator, as a collection; labels are kept."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autoais import formats
from autoais.base.answers import CitedAnswer, write_answers
from autoais.base.io.jsonl import check_distinct, write_atomic
from autoais.base.io.provenance import command, sha256_file, versions
from autoais.formats.base import Notes
from rag.base.errors import RagError, check_type
from rag.bench.collections.folder import (
    ANSWERS,
    MANIFEST,
    NEW,
    VERSION,
    Collection,
    check_language,
    check_split,
    lock_collection,
    publish,
)


def import_collection(
    file: str | Path,
    output_folder: str | Path,
    *,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    corpus: Sequence[str | Path] = (),
    dev: float = 0.0,
    seed: int = 0,
    name: str | None = None,
    licence: str | None = None,
    text_licence: str | None = None,
    language: str | None = None,
) -> Collection:
    """Write the answers of a file (HAGRID, ALCE, TREC RAG, Verifiability or another format) as a collection to
    `output_folder`.

    `format` is a name of `autoais schema` (default: detected). `corpus` has the texts of passages that the file knows
    by id only. Answers, sentences and labels stay as they are; answers of one question are put together, and all are of
    the data set `name` (default: the name of the folder), whatever set the file says they are of. Answers whose output
    is empty are left out and counted. `dev` is the share of the questions in the development part (0: no split), drawn
    by `seed`. `language` is a code such as `en`, for the card. Raises `RagError` if `output_folder` is not empty,
    `FormatError` for a broken record.
    """
    check_type("output_folder", output_folder, "a folder (str or Path)", str, Path)
    check_split(dev)
    check_language(language)
    path, folder = Path(file), Path(output_folder)
    texts = [Path(text) for text in corpus]
    check_distinct(texts)
    if not path.is_file():
        raise RagError(f"{path}: no such file; name a file of answers")
    notes = Notes()
    kind = format or formats.detect(path)
    answers = _by_question(list(formats.read(path, kind, corpus=texts, notes=notes)))
    if not answers:
        raise RagError(f"{path}: no answers in it")
    if silent := [answer for answer in answers if _is_silent(answer)]:
        if len(silent) == len(answers):
            raise RagError(f"{path}: every answer has an empty output; there is nothing to judge")
        notes["answers with an empty output left out"] += len(silent)
        answers = [answer for answer in answers if not _is_silent(answer)]
    if empty := [answer for answer in answers if not (answer.sentences or answer.abstained)]:
        raise RagError(
            f"{path}: {len(empty):,} of {len(answers):,} answers have no sentences, {empty[0].id!r:.60} first; "
            "give each its `sentences`, or leave them out and mark citations in its `output`, or set `abstained`"
        )
    name = name or folder.resolve().name
    answers = [replace(answer, extra={**answer.extra, "dataset": name}) for answer in answers]
    files = {"answers": path} | {f"corpus {number}": text for number, text in enumerate(texts, 1)}
    with lock_collection(folder):
        if (folder / MANIFEST).exists():
            raise RagError(f"{folder} holds a collection; name another folder")
        write_atomic(folder / NEW / ANSWERS, write_answers(answers))
        manifest = {
            "collection_version": VERSION,
            "name": name,
            "complete": False,
            "licence": {"answers": licence, "texts": text_licence},
            "language": None if language is None else [language],
            "command": command(),
            "format": kind,
            "notes": notes.by_text(),
            "data": {role: {"file": source.name, "sha256": sha256_file(source)} for role, source in files.items()},
            "versions": versions(),
            "split": {"dev": dev, "seed": seed},
        }
        return publish(folder, manifest)


def _is_silent(answer: CitedAnswer) -> bool:
    """Whether a system wrote nothing, as in ALCE's files, which say so with an empty output."""
    has_content = answer.sentences or answer.abstained or answer.unresolved_markers
    return not has_content and answer.output is not None and not answer.output.strip()


def _by_question(answers: list[CitedAnswer]) -> list[CitedAnswer]:
    """Put the answers of each question together, where its first one is."""
    groups: dict[str, list[CitedAnswer]] = {}
    for number, answer in enumerate(answers):
        groups.setdefault(str(answer.extra.get("query_id", (number,))), []).append(answer)
    return [answer for group in groups.values() for answer in group]
