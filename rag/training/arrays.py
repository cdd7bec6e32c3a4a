"""The arrays that a reader is trained on, from a recipe, questions and an index; they can be moved between machines."""

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.base.errors import reason_of
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import sha256_file
from autoais.base.text.folding import questions_key
from autoais.base.types import Question
from autoais.formats.questions import read_questions
from autoais.training.prepare import read_excluded_questions
from autoais.training.recipe import base_folder, find
from rag.api import build_index, default_retrievers
from rag.base.errors import QuestionError, RagError
from rag.base.types import Hit
from rag.index.index import Index
from rag.retrieval import Retriever, open_retriever
from rag.retrieval.reader import RULES, WindowEncoder
from rag.training import distillation, labelled_questions, mining
from rag.training.recipe import ReaderRecipe

_SHORT_QUESTIONS = 40


@dataclass(frozen=True, slots=True)
class Prepared:
    """The arrays of a recipe in the folder `work`.

    `made_of` is a checksum of the settings. `files` are those of groups, each with the number of times it is used, and
    `hits` is the one for a teacher; `checksums` are their SHA-256. `questions` counts the questions of each file,
    `index` says where the passages are from.
    """

    made_of: str
    files: list[tuple[str, float]]
    hits: str | None
    checksums: dict[str, str]
    questions: dict[str, dict[str, int]]
    index: dict[str, Any]


def prepare(
    recipe: ReaderRecipe,
    index: Index,
    data: Sequence[Path],
    work: Path,
    *,
    short: bool,
    log: Callable[[str], None],
) -> Prepared:
    """Write the arrays of a recipe to `work`; mined groups of an earlier run are reused.

    `short` uses 40 questions per file.
    """
    base = base_folder(recipe.base, recipe.base_sha256)
    never = read_excluded_questions(find(name, data) for name in recipe.held_out)
    inputs = _Inputs(index, base, never, work, short)
    index_record = {key: index.manifest[key] for key in ("checksum", "passages", "recipe")}
    file = _file(work, short=short)
    file.unlink(missing_ok=True)  # its arrays are made anew
    hits = None
    if recipe.teacher is not None:
        encoder = WindowEncoder.from_file(inputs.base / "tokenizer.json")  # windows as long as the reader reads them
        hits = _Hits(distillation.HitWriter(encoder), recipe.teacher.depth)
    parts: dict[str, dict[str, int]] = {}
    files: list[tuple[Path, float]] = []
    for name, count in recipe.questions.items():
        arrays, counts = _mine(recipe, name, count, data, inputs)
        log(f"{name}: {counts['questions']:,} questions, {counts['dropped']:,} dropped, {counts['groups']:,} groups")
        parts[name] = counts
        files.append((arrays, 1))
    for name, times in recipe.labelled.items():
        arrays, counts = _encode_labelled(recipe, name, data, inputs, hits)
        log(f"{name}: {counts['questions']:,} questions, {counts['dropped']:,} dropped, {counts['groups']:,} groups")
        parts[name] = counts
        files.append((arrays, times))
    hits_file = None
    if hits is not None and recipe.teacher is not None:
        for name, limit in recipe.teacher.questions.items():
            parts[f"{name} (hits)"] = _add_hits(recipe, name, limit, data, inputs, hits)
        hits_file = "hits-short.npz" if short else "hits.npz"
        log(f"{hits.writer.write(inputs.work / hits_file):,} windows for the teacher to read")
    named_files = [(arrays.name, float(times)) for arrays, times in files]
    checksums = {name: sha256_file(work / name) for name in (*dict(named_files), *([hits_file] if hits_file else []))}
    data_files = Prepared(
        _settings_checksum(recipe, base, short=short), named_files, hits_file, checksums, parts, index_record
    )
    write_atomic(file, [dumps(asdict(data_files), indent=2)])
    return data_files


def _file(work: Path, *, short: bool) -> Path:
    return work / ("prepared-short.json" if short else "prepared.json")


def read_arrays(recipe: ReaderRecipe, work: Path, *, short: bool) -> Prepared:
    """Return what `prepare` wrote; raises `RagError` if there is nothing, for another recipe, and for changed files."""
    file, base = _file(work, short=short), base_folder(recipe.base, recipe.base_sha256)
    try:
        row = json.loads(file.read_text("utf-8"))
        files = [(str(name), float(times)) for name, times in row["files"]]
        checksums = {str(name): str(checksum) for name, checksum in row["checksums"].items()}
        data_files = Prepared(row["made_of"], files, row["hits"], checksums, row["questions"], row["index"])
        names = [*dict(files), *([data_files.hits] if data_files.hits is not None else [])]
        if sorted(names) != sorted(checksums) or any(Path(name).name != name for name in names):
            raise ValueError("its files are not those of its checksums")
    except FileNotFoundError:
        raise RagError(f"{file}: nothing is prepared there; give an index (--index)") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = reason_of(error)
        raise RagError(f"{file}: cannot be read: {reason}; give an index (--index) to prepare again") from error
    if data_files.made_of != _settings_checksum(recipe, base, short=short) or (data_files.hits is None) != (
        recipe.teacher is None
    ):
        raise RagError(
            f"{file}: prepared for another recipe or by another version; give an index (--index) to prepare again"
        )
    for name, checksum in checksums.items():
        if not (work / name).is_file() or sha256_file(work / name) != checksum:
            raise RagError(
                f"{work / name}: not the file that was prepared; copy it, or give an index (--index) to prepare again"
            )
    return data_files


def _settings_checksum(recipe: ReaderRecipe, base: Path, *, short: bool) -> str:
    """A checksum of the settings that the arrays depend on, of the tokenizer, and of the version of the input."""
    row = asdict(recipe)
    teacher = row.pop("teacher") or {}
    for name in ("name", "schedule", "finetune", "start", "start_sha256", "kept"):
        del row[name]
    teacher_settings = {name: teacher[name] for name in ("depth", "questions") if name in teacher}
    read_as = [sha256_file(base / "tokenizer.json"), RULES]
    return sha256(dumps({**row, "teacher": teacher_settings, "short": short, "read_as": read_as}).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Hits:
    """The hits that a teacher reads."""

    writer: distillation.HitWriter
    depth: int

    def add(self, question: str, hits: Sequence[Hit]) -> None:
        self.writer.add(question, [hit.passage for hit in hits[: self.depth]])


class _Remembering:
    """A retriever that hands on what it finds."""

    def __init__(self, retriever: Retriever, hits: _Hits) -> None:
        self._retriever, self._hits, self.name = retriever, hits, retriever.name

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        hits_of_queries = self._retriever.search(queries, k)
        for query, hits in zip(queries, hits_of_queries, strict=True):
            self._hits.add(query, hits)
        return hits_of_queries


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The inputs of mining: the index, the base weights, and the held-out questions (`never`)."""

    index: Index
    base: Path
    never: set[str]
    work: Path
    short: bool


def _mine(
    recipe: ReaderRecipe, name: str, count: int, data: Sequence[Path], inputs: _Inputs
) -> tuple[Path, dict[str, int]]:
    """Mine a file of questions, or reuse its arrays; returns their path and the counts."""
    file = find(name, data)
    ingredients = (
        recipe.seed, recipe.retriever, recipe.depth, recipe.others, recipe.least, recipe.max_length, count,
        inputs.short,        recipe.base_sha256, sha256_file(inputs.base / "tokenizer.json"), RULES,
    )  # fmt: skip
    key = sha256(
        f"{ingredients} {sha256_file(file)} {inputs.index.manifest['checksum']} {sorted(inputs.never)}".encode()
    ).hexdigest()[:8]
    arrays, record = inputs.work / f"{file.stem}-{key}.npz", inputs.work / f"{file.stem}-{key}.json"
    if not record.exists():
        all_questions: list[Question] = list(islice(read_questions(file), _SHORT_QUESTIONS if inputs.short else None))
        questions = [question for question in all_questions if questions_key(question.text) not in inputs.never]
        retriever, rng = open_retriever(recipe.retriever, inputs.index), random.Random(f"{recipe.seed} {name}")
        groups = mining.groups(
            questions, retriever, mining.similarity(inputs.base), rng,
            depth=recipe.depth, others=recipe.others, each=count, least=recipe.least,
        )  # fmt: skip
        encoder = WindowEncoder.from_file(inputs.base / "tokenizer.json", recipe.max_length)
        total = mining.write_arrays(groups, encoder, arrays)
        counts = {"questions": len(all_questions), "dropped": len(all_questions) - len(questions), "groups": total}
        write_atomic(record, [dumps(counts)])
    read: dict[str, int] = json.loads(record.read_text("utf-8"))
    return arrays, read


def _add_hits(
    recipe: ReaderRecipe, name: str, limit: int, data: Sequence[Path], inputs: _Inputs, hits: _Hits
) -> dict[str, int]:
    """Add the hits of at most `limit` questions of a file, drawn at random; returns the counts."""
    all_questions = [question.text for question in read_questions(find(name, data))]
    questions = [text for text in all_questions if questions_key(text) not in inputs.never]
    random.Random(f"{recipe.seed} {name}").shuffle(questions)
    retriever, group_count = open_retriever(recipe.retriever, inputs.index), 0
    for text in questions[: min(limit, _SHORT_QUESTIONS) if inputs.short else limit]:
        try:
            (question_hits,) = retriever.search([text], hits.depth)
        except QuestionError:
            continue
        hits.add(text, question_hits)
        group_count += bool(question_hits)
    return {"questions": len(all_questions), "dropped": len(all_questions) - len(questions), "groups": group_count}


def _encode_labelled(
    recipe: ReaderRecipe, name: str, data: Sequence[Path], inputs: _Inputs, hits: _Hits | None
) -> tuple[Path, dict[str, int]]:
    """Encode the groups of a file of questions with quotes; the documents are read anew each time."""
    candidates = (
        row
        for row in labelled_questions.read_labelled_questions(find(name, data))
        if row.collection not in recipe.unseen
    )
    limited = list(islice(candidates, _SHORT_QUESTIONS if inputs.short else None))
    rows = [row for row in limited if questions_key(row.question) not in inputs.never]
    rng = random.Random(f"{recipe.seed} {name}")
    encoder = WindowEncoder.from_file(inputs.base / "tokenizer.json", recipe.max_length)

    def make_groups() -> Iterator[mining.Group]:
        for collection in sorted({row.collection for row in rows}):
            collection_rows = [row for row in rows if row.collection == collection]
            with tempfile.TemporaryDirectory() as folder:
                index, retriever_names = inputs.index, [recipe.retriever]
                if collection == labelled_questions.INDEX:
                    passages_by_id = {row.path: inputs.index.store.get(row.path) for row in collection_rows if row.path}
                    passages = {path: [passage] for path, passage in passages_by_id.items() if passage is not None}
                else:
                    source = find(f"documents/{collection}", data).resolve()
                    index, passages = build_index(source, Path(folder) / "index", skip_bad=True), {}
                    for passage in index.store.scan():
                        passages.setdefault(passage.id.rpartition("#")[0], []).append(passage)
                    retriever_names = [*retriever_names, *default_retrievers(Path(folder) / "index")]
                retriever = open_retriever(retriever_names[-1], index)
                if hits is not None:
                    retriever = _Remembering(retriever, hits)
                yield from labelled_questions.groups(
                    collection_rows, passages, retriever, rng, others=recipe.labelled_others
                )

    arrays = inputs.work / f"{Path(name).stem}.new.npz"
    total = mining.write_arrays(make_groups(), encoder, arrays)
    path_with_checksum = arrays.with_name(f"{Path(name).stem}-{sha256_file(arrays)[:8]}.npz")
    arrays.replace(path_with_checksum)
    return path_with_checksum, {"questions": len(limited), "dropped": len(limited) - len(rows), "groups": total}
