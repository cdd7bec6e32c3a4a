"""The folder of a collection: its files, its manifest `collection.json`, the split, and packing with labels."""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.base.answers import CitedAnswer, read_answers, to_row, write_answers
from autoais.base.io.jsonl import parse_object, round_floats, sync, write_atomic
from autoais.base.io.provenance import command, sha256_file
from autoais.base.io.schema import BOOLEAN, INTEGER, NUMBER_OR_NULL, STRING, TEXT_OR_NULL, Schema, faults
from autoais.base.io.schema import record as record_schema
from autoais.formats.human_ratings.consensus import with_facts
from autoais.formats.human_ratings.ratings import SIMULATED_LABELS, TIES
from rag.base.errors import FormatError, RagError, check_type
from rag.bench.collections.card import PART_FILES, card
from rag.bench.collections.statistics import Part, question_key, statistics_of, whole_labels
from rag.bench.output_folder import lock_folder, read_record, sweep_folder, write_record

MANIFEST, ANSWERS, OMITTED_ANSWERS, CARD, SUMS, RAW = (
    "collection.json", "answers.jsonl", "filtered.jsonl", "README.md", "SHA256SUMS", "raw",
)  # fmt: skip
NEW, READY = ".collection.new", ".collection.ready"  # files that are being written, and those that are complete
VERSION = 1
_WRITTEN = re.compile(r"[\w.@+-]+\.(?:jsonl|json|md)|SHA256SUMS", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", re.ASCII)
_OBJECT: Schema = {"type": "object"}
_COUNTS: Schema = {"type": "object", "additionalProperties": INTEGER}
_FILE = record_schema({"file": STRING, "sha256": STRING})
_STUDY = record_schema(
    {
        "annotators": INTEGER, "alpha": {"type": "object", "additionalProperties": NUMBER_OR_NULL}, "ties": INTEGER,
        "notes": {"type": "array", "items": STRING},
    }
)  # fmt: skip
_MANIFEST = record_schema(
    {
        "collection_version": INTEGER, "name": STRING, "complete": BOOLEAN, "split": _OBJECT, "command": STRING,
        "licence": record_schema({"answers": TEXT_OR_NULL, "texts": TEXT_OR_NULL}), "versions": _OBJECT,
        "data": {"type": "object", "additionalProperties": _FILE},
    },
    {"statistics": _OBJECT, "settings": _OBJECT, "packed": record_schema({"command": STRING}, {"study": _STUDY})},
)  # fmt: skip
_BUILD_SCHEMA = record_schema(
    {},
    {
        "settings": record_schema({"trailing": STRING}),
        "quotes": record_schema({"kind": STRING, "questions": INTEGER, "left_out": INTEGER}, {"incomplete": INTEGER}),
        "filtered": _COUNTS,
        "cut": INTEGER,
        "systems": {
            "type": "object",
            "additionalProperties": record_schema(
                {
                    "name": STRING, "seed": {"type": ["integer", "null"]}, "asked": INTEGER, "kept": INTEGER,
                    "quoting": BOOLEAN, "filtered": _COUNTS,
                    "prompt": record_schema({"name": STRING, "sha256": STRING}) | {"type": ["object", "null"]},
                    "tokens": record_schema({"read": INTEGER, "written": INTEGER}) | {"type": ["object", "null"]},
                }
            ),
        },
    },
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Collection:
    """A finished collection: its folder and its manifest (`collection.json`)."""

    folder: Path
    manifest: Mapping[str, Any]

    def answers(self) -> Iterator[CitedAnswer]:
        """Stream the answers, question by question."""
        return read_answers(self.folder / ANSWERS)

    def parts(self) -> dict[str, Part]:
        """Return which answers belong to a part: `all` and, if the collection is split, `train` and `dev`."""
        return _parts(self.answers(), self.manifest["split"])


def open_collection(folder: str | Path) -> Collection:
    """Open a collection; raises `RagError` if the folder holds none or an unfinished one, `FormatError` if broken."""
    check_type("folder", folder, "a folder (str or Path)", str, Path)
    folder = Path(folder)
    if (folder / READY).is_dir():
        with lock_collection(folder):
            pass  # which finishes it
    manifest = read_manifest(folder)
    if not manifest["complete"]:
        raise RagError(f"{folder}: the collection is unfinished; continue it with rag collect build --resume")
    for fault in faults(manifest, _BUILD_SCHEMA):
        raise FormatError(f"{folder / MANIFEST}: {fault}")
    return Collection(folder, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return `collection.json`; raises `RagError` if it is missing, `FormatError` if it is broken."""
    path = folder / MANIFEST
    manifest = read_record(path, _MANIFEST, "is it the folder of a collection?")
    split = manifest["split"]
    if not _is_share(split.get("dev")) or not isinstance(split.get("seed"), int):
        raise FormatError(f"{path}: field 'split' should have 'dev' (0 to 1) and 'seed'")
    return manifest


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def check_split(dev: float) -> None:
    """Raise `RagError` unless the share of the development part is from 0 to 1."""
    if not _is_share(dev):
        raise RagError(f"the share of the development part should be from 0 to 1, not {dev}")


@contextmanager
def lock_collection(folder: Path) -> Iterator[None]:
    """Hold the lock of a collection; what a kill interrupted is finished first, and an error leaves nothing in `NEW`.

    To finish means: files that were complete are put in their places (`publish`), and others are removed. Raises
    `RagError` if the folder holds something else than a collection.
    """
    with lock_folder(folder):
        if (folder / READY).is_dir():
            _settle(folder)
        shutil.rmtree(folder / NEW, ignore_errors=True)
        sweep_folder(folder, MANIFEST, _WRITTEN)
        try:
            yield
        finally:
            shutil.rmtree(folder / NEW, ignore_errors=True)


def check_language(code: str | None) -> None:
    """Raise `RagError` unless a language is None or a code (BCP 47)."""
    if code is not None and not is_language(code):
        raise RagError(f"the language should be a code such as en or pt-BR, not {code[:40]!r}")


def is_language(code: str) -> bool:
    """Whether a text is a code of a language (BCP 47)."""
    return _LANGUAGE.fullmatch(code) is not None


def publish(folder: Path, manifest: dict[str, Any]) -> Collection:
    """Put the files in the folder `NEW` in their places, with all that follows from the answers.

    Those are HAGRID's files, the statistics, the manifest, the card and the checksums. Without answers in `NEW` they
    follow from those that are there. All files change or none: they are written to `NEW`, the folder is renamed to
    `READY` when they are complete, and then they are moved, which `lock_collection` finishes after a kill.
    """
    new = folder / NEW

    def latest(name: str) -> Path:
        return new / name if (new / name).exists() else folder / name

    answers = latest(ANSWERS)
    parts = _parts(read_answers(answers), manifest["split"])
    file_names = [ANSWERS]
    for part, is_in_part in parts.items():
        name = PART_FILES[part]
        write_atomic(new / name, formats.write(filter(is_in_part, read_answers(answers)), "hagrid"))
        if (new / name).stat().st_size:
            file_names.append(name)
        else:  # a file without rows is no file of HAGRID's format
            (new / name).unlink()
    statistics = statistics_of(read_answers(answers), parts)
    manifest["statistics"] = {name: part.table2() for name, part in statistics.items()}
    manifest["labels"] = {name: table for name, part in statistics.items() if (table := part.table3())}
    manifest["labelled_by"] = statistics["all"].labelled_by
    manifest["answers_of"] = dict(sorted(statistics["all"].systems.items()))
    manifest["files"] = file_names + [name for name in (OMITTED_ANSWERS,) if latest(name).exists()]
    manifest["complete"] = True
    manifest = round_floats(manifest)
    write_record(new / MANIFEST, manifest)
    write_atomic(new / CARD, [card(manifest).removesuffix("\n")])
    sums = sorted([*manifest["files"], MANIFEST, CARD])
    write_atomic(new / SUMS, [f"{sha256_file(latest(name))}  {name}" for name in sums])
    new.rename(folder / READY)
    sync(folder)
    _settle(folder)
    return Collection(folder, manifest)


def _settle(folder: Path) -> None:
    """Move complete files to their places; a kill at any moment leaves what a second call finishes."""
    ready = folder / READY
    for path in list(ready.iterdir()):
        path.replace(folder / path.name)
    files = read_manifest(folder)["files"]
    for name in set(PART_FILES.values()) - set(files):
        (folder / name).unlink(missing_ok=True)
    sync(folder)
    ready.rmdir()


def _parts(answers: Iterable[CitedAnswer], split: Mapping[str, Any]) -> dict[str, Part]:
    """The parts; the questions with the lowest hashes of seed and text are `dev`, so equal questions stay together."""
    parts: dict[str, Part] = {"all": lambda answer: True}
    dev, seed = float(split["dev"]), int(split["seed"])
    if not 0 < dev < 1:
        return parts
    keys = {question_key(answer) for answer in answers}
    key_order = sorted(keys, key=lambda key: (sha256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).digest(), key))
    dev_keys = set(key_order[: round(dev * len(keys))])
    return parts | {
        "train": lambda answer: question_key(answer) not in dev_keys,
        "dev": lambda answer: question_key(answer) in dev_keys,
    }


def pack_collection(
    folder: str | Path,
    answers: str | Path | None = None,
    *,
    licence: str | None = None,
    text_licence: str | None = None,
) -> Collection:
    """Write the files of a collection again; with `answers` from labelled ones (of `rag annotate export`).

    All files change or, after a kill or an error, none. `answers` may differ from the collection's in the labels alone.
    `licence` is that of the answers, `text_licence` that of the passages, for the card (default: as they are there).
    Raises `RagError` if an answer is missing, unknown or another one.
    """
    collection = open_collection(folder)  # before the lock, which would create the folder
    with lock_collection(collection.folder):
        collection = open_collection(folder)
        manifest = dict(collection.manifest)
        licences = {"answers": licence, "texts": text_licence}
        new_licences = {name: text for name, text in licences.items() if text is not None}
        manifest["licence"] = {"answers": None, "texts": None} | dict(manifest.get("licence") or {}) | new_licences
        if answers is not None:
            path = Path(answers)
            digest = sha256_file(path) if path.is_file() else ""
            write_atomic(collection.folder / NEW / ANSWERS, write_answers(_with_labels_of(collection, path)))
            facts = {"answers": {"file": path.name, "sha256": digest}, "command": command()}
            manifest["packed"] = facts | _study(path, digest)
        return publish(collection.folder, manifest)


def _study(path: Path, digest: str) -> dict[str, Any]:
    """What the export that a file is part of says of its study: the number of annotators, agreement, ties, notes."""
    try:
        manifest = parse_object((path.parent / "manifest.json").read_bytes(), "")
        if manifest["files"][path.name]["sha256"] != digest:
            return {}
        facts = {
            "annotators": sum(
                person["done"] > 0 and person["id"] not in manifest.get("without", ()) for person in manifest["people"]
            ),
            "alpha": manifest["alpha"],
            "ties": manifest["ties"],
            "notes": manifest["notes"],
        }
    except (OSError, FormatError, KeyError, TypeError):
        return {}
    return {} if any(faults(facts, _STUDY)) else {"study": facts}


def _with_labels_of(collection: Collection, path: Path) -> list[CitedAnswer]:
    if path.is_file() and (kind := formats.detect(path)) != "answers":
        raise RagError(
            f"{path}: is in the format {kind}; give answers.jsonl of `rag annotate export`, which is beside it"
        )
    labels = {answer.id: answer for answer in formats.read(path, "answers")}
    answers = []
    if not any(answer.id in labels and _is_same(answer, labels[answer.id]) for answer in collection.answers()):
        raise RagError(
            f"{path}: no answer in it is one of {collection.folder}; it is of another collection, or more than labels "
            "differs"
        )
    for answer in collection.answers():
        label = labels.pop(answer.id, None)
        if label is None:
            raise RagError(f"{path}: answer {answer.id!r} of the collection is missing; export the whole study")
        if not _is_same(answer, label):
            raise RagError(f"{path}: answer {answer.id!r} is not that of {collection.folder}: more than labels differs")
        answers.append(_with_labels(answer, label))
    if labels:
        raise RagError(f"{path}: answer {next(iter(labels))!r} is not in {collection.folder}")
    return answers


def _with_labels(answer: CitedAnswer, label: CitedAnswer) -> CitedAnswer:
    """The answer with the labels of another one; those of the whole answer follow from its sentences if missing."""
    sentences = []
    for sentence, sentence_label in zip(answer.sentences, label.sentences, strict=True):
        levels = [citation.support for citation in sentence_label.citations]
        citations = (
            replace(citation, support=level) for citation, level in zip(sentence.citations, levels, strict=True)
        )
        sentence = replace(
            sentence,
            informative=sentence_label.informative,
            attributable=sentence_label.attributable,
            worthy=sentence_label.worthy,
        )
        sentences.append(replace(sentence, citations=tuple(citations)))
    answer_labels = whole_labels(label)
    informative, attributable = answer_labels["informative"], answer_labels["attributable"]
    facts = {name: label.extra.get(name) for name in (SIMULATED_LABELS, TIES)}
    answer = replace(answer, sentences=tuple(sentences), informative=informative, attributable=attributable)
    return with_facts(answer, facts)


def _is_same(answer: CitedAnswer, label: CitedAnswer) -> bool:
    return to_row(_bare(label)) == to_row(_bare(answer))


def _bare(answer: CitedAnswer) -> CitedAnswer:
    """The answer without labels, and without further facts, which an annotation tool may add or drop."""
    sentences = tuple(
        replace(
            sentence,
            citations=tuple(replace(citation, support=None) for citation in sentence.citations),
            informative=None,
            attributable=None,
            worthy=None,
        )
        for sentence in answer.sentences
    )
    return replace(answer, sentences=sentences, informative=None, attributable=None, extra={})
