"""Training of the reader from a recipe and an index; a stopped run resumes."""

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from shutil import copyfile

import torch

from autoais.io.jsonl import dumps, write_atomic
from autoais.io.provenance import provenance, sha256_file
from autoais.questions import read_questions
from autoais.text.folding import questions_key
from autoais.training.export import export
from autoais.training.loop import train
from autoais.training.model import sentence_encoder
from autoais.training.prepare import held_out
from autoais.training.recipe import base_folder, find
from autoais.training.schedule import Schedule
from autoais.types import Question
from rag.api import build_index, default_recipes
from rag.errors import RagError
from rag.index.index import Index
from rag.reader import MAX_LENGTH, Reader, WindowEncoder
from rag.retrievers import open_retriever
from rag.training import labelled, mining, read_recipe
from rag.training.network import Network, loss_of

_SHORT_QUESTIONS, _SHORT_STEPS = 40, 8
_SEEN = 100  # pairs used to export the network


@dataclass(frozen=True, slots=True)
class ReaderRecipe:
    """A recipe file (`eval/recipes/reader.toml`): base weights, questions, held-out questions, a schedule.

    `questions` maps a file of questions with short answers to the maximum number of groups (`rag.training.mining`) per
    question, `labelled` a file of questions with quotes (`rag.training.labelled`) to the number of times it is used
    (0.5: every second question). Questions that also occur in a file of `held_out` are dropped. `retriever` finds the
    hits, `depth` is the number of hits considered, `others` the number of negatives per group, and `least` the minimum
    cosine of a positive passage. The documents of labelled questions are searched as users search theirs, by the last
    of `rag.api.default_recipes` if there is one. `start` is the `model.onnx` of a reader to continue from, with
    `start_sha256`.
    """

    name: str
    kind: str
    base: str
    base_sha256: str
    seed: int
    depth: int
    others: int
    least: float
    questions: dict[str, int]
    labelled: dict[str, float]
    held_out: tuple[str, ...]
    schedule: Schedule
    max_length: int = MAX_LENGTH
    retriever: str = "bm25"
    labelled_others: int = 6
    start: str | None = None
    start_sha256: str | None = None


def run(
    path: Path, index: Index, data: Sequence[Path], out: Path, *, short: bool = False, log: Callable[[str], None]
) -> None:
    """Train the reader of a recipe in `out`, on the passages of an index.

    Mined groups and training steps of an earlier run with the same recipe, questions and index are reused; the export
    is repeated. `short` uses 40 questions per file and 8 steps, only to check that the recipe runs.
    """
    recipe: ReaderRecipe = read_recipe(path, ReaderRecipe)
    base = base_folder(recipe.base, recipe.base_sha256)
    never = held_out(find(name, data) for name in recipe.held_out)
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    mine = _Mine(index, base, never, work, short)
    parts: dict[str, dict[str, int]] = {}
    files: list[tuple[Path, float]] = []
    for name, each in recipe.questions.items():
        arrays, counts = _mined(recipe, name, each, data, mine)
        log(f"{name}: {counts['questions']:,} questions, {counts['dropped']:,} dropped, {counts['groups']:,} groups")
        parts[name] = counts
        files.append((arrays, 1))
    for name, times in recipe.labelled.items():
        arrays, counts = _labelled(recipe, name, data, mine)
        log(f"{name}: {counts['questions']:,} questions, {counts['dropped']:,} dropped, {counts['groups']:,} groups")
        parts[name] = counts
        files.append((arrays, times))
    groups = mining.Groups(files)
    schedule = replace(recipe.schedule, warm_up=2, most=_SHORT_STEPS) if short else recipe.schedule
    torch.manual_seed(recipe.seed)
    network = Network(sentence_encoder(base))
    if recipe.start is not None:
        network.start_from(_checked(find(recipe.start, data), recipe.start_sha256))
    made_of = (recipe.base_sha256, recipe.start_sha256, recipe.seed, schedule, [(f.name, times) for f, times in files])
    key = sha256(f"{made_of}".encode()).hexdigest()[:8]
    loss = partial(loss_of, network)
    train(network, groups, loss, schedule, work / f"train-{key}", seed=recipe.seed, log=log)
    export(network, out / "model.onnx", groups.some(_SEEN))
    copyfile(base / "tokenizer.json", out / "tokenizer.json")
    record = {
        "recipe": {"file": path.name, "sha256": sha256_file(path)},
        "short": short,
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "start": None if recipe.start is None else {"from": recipe.start, "sha256": recipe.start_sha256},
        "index": {key: index.manifest[key] for key in ("checksum", "passages", "recipe")},
        "questions": parts,
        "files": {name: sha256_file(out / name) for name in ("model.onnx", "tokenizer.json")},
        "provenance": provenance({}),
    }
    write_atomic(out / "training.json", [dumps(record, indent=2)])
    log(f"{Reader(out).name} in {out}")


@dataclass(frozen=True, slots=True)
class _Mine:
    """The inputs of mining: the index, the base weights, and the held-out questions (`never`)."""

    index: Index
    base: Path
    never: set[str]
    work: Path
    short: bool


def _mined(
    recipe: ReaderRecipe, name: str, each: int, data: Sequence[Path], mine: _Mine
) -> tuple[Path, dict[str, int]]:
    """Mine a file of questions, or reuse its arrays; returns their path and the counts."""
    file = find(name, data)
    made_of = (
        recipe.seed, recipe.retriever, recipe.depth, recipe.others, recipe.least, recipe.max_length, each, mine.short,
    )  # fmt: skip
    key = sha256(
        f"{made_of} {sha256_file(file)} {mine.index.manifest['checksum']} {sorted(mine.never)}".encode()
    ).hexdigest()[:8]
    arrays, record = mine.work / f"{file.stem}-{key}.npz", mine.work / f"{file.stem}-{key}.json"
    if not record.exists():
        asked: list[Question] = list(islice(read_questions(file), _SHORT_QUESTIONS if mine.short else None))
        kept = [question for question in asked if questions_key(question.text) not in mine.never]
        retriever, rng = open_retriever(recipe.retriever, mine.index), random.Random(f"{recipe.seed} {name}")
        found = mining.groups(
            kept, retriever, mining.similarity(mine.base), rng,
            depth=recipe.depth, others=recipe.others, each=each, least=recipe.least,
        )  # fmt: skip
        encoder = WindowEncoder.from_file(mine.base / "tokenizer.json", recipe.max_length)
        total = mining.write_arrays(found, encoder, arrays)
        counts = {"questions": len(asked), "dropped": len(asked) - len(kept), "groups": total}
        write_atomic(record, [dumps(counts)])
    read: dict[str, int] = json.loads(record.read_text("utf-8"))
    return arrays, read


def _labelled(recipe: ReaderRecipe, name: str, data: Sequence[Path], mine: _Mine) -> tuple[Path, dict[str, int]]:
    """Encode the groups of a file of questions with quotes; the documents are read anew each time."""
    asked = list(islice(labelled.read_labelled(find(name, data)), _SHORT_QUESTIONS if mine.short else None))
    rows = [row for row in asked if questions_key(row.question) not in mine.never]
    rng = random.Random(f"{recipe.seed} {name}")
    encoder = WindowEncoder.from_file(mine.base / "tokenizer.json", recipe.max_length)

    def found() -> Iterator[mining.Group]:
        for collection in sorted({row.collection for row in rows}):
            theirs = [row for row in rows if row.collection == collection]
            with tempfile.TemporaryDirectory() as folder:
                index, searched = mine.index, [recipe.retriever]
                if collection == labelled.INDEX:
                    given = {row.path: mine.index.store.get(row.path) for row in theirs if row.path}
                    passages = {path: [passage] for path, passage in given.items() if passage is not None}
                else:
                    source = find(f"documents/{collection}", data).resolve()
                    index, passages = build_index(source, Path(folder) / "index", skip_bad=True), {}
                    for passage in index.store.scan():
                        passages.setdefault(passage.id.rpartition("#")[0], []).append(passage)
                    searched = [*searched, *default_recipes(Path(folder) / "index")]
                retriever = open_retriever(searched[-1], index)
                yield from labelled.groups(theirs, passages, retriever, rng, others=recipe.labelled_others)

    arrays = mine.work / f"{Path(name).stem}.new.npz"
    total = mining.write_arrays(found(), encoder, arrays)
    named = arrays.with_name(f"{Path(name).stem}-{sha256_file(arrays)[:8]}.npz")
    arrays.replace(named)
    return named, {"questions": len(asked), "dropped": len(asked) - len(rows), "groups": total}


def _checked(file: Path, expected: str | None) -> Path:
    if sha256_file(file) != expected:
        raise RagError(f"{file}: its SHA-256 is {sha256_file(file)}, but the recipe's start_sha256 is {expected}")
    return file
