"""Training of the reader from a recipe and an index; a stopped run resumes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import copyfile
from typing import Any

import torch

from autoais.io.jsonl import dumps, write_atomic
from autoais.io.provenance import provenance, sha256_file
from autoais.training.export import export
from autoais.training.loop import train, training_device
from autoais.training.model import sentence_encoder
from autoais.training.recipe import base_folder, find
from autoais.training.schedule import Schedule
from rag.errors import RagError
from rag.index.index import Index
from rag.reader import Reader
from rag.training import mining, read_recipe, taught
from rag.training.network import Network, Teacher, loss_of
from rag.training.prepared import Prepared, read_prepared
from rag.training.prepared import prepare as arrays_of
from rag.training.recipe import ReaderRecipe, TeacherRecipe

_SHORT_STEPS = 8
_SEEN = 100  # pairs used to export the network
_SCORED = 256  # passages that a teacher reads at once


def run(
    path: Path,
    index: Index | None,
    data: Sequence[Path],
    out: Path,
    *,
    short: bool = False,
    prepare: bool = False,
    log: Callable[[str], None],
) -> None:
    """Train the reader of a recipe in `out`, on the passages of an index.

    Mined groups and training steps of an earlier run with the same recipe, questions and index are reused; the export
    is repeated. `prepare` stops when the arrays are written; without an index, the training uses those in `out/work`,
    which may have been written on another machine. `short` uses 40 questions per file and 8 steps, only to check that
    the recipe runs.
    """
    recipe: ReaderRecipe = read_recipe(path, ReaderRecipe)
    base = base_folder(recipe.base, recipe.base_sha256)
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    if index is None:
        prepared = read_prepared(recipe, work, short=short)
    else:
        prepared = arrays_of(recipe, index, data, work, short=short, log=log)
    if prepare:
        log(f"prepared in {work}; train with: rag train {path} --data ... --out {out}")
        return
    _fit(path, recipe, prepared, base, data, out, short=short, log=log)


def _fit(
    path: Path,
    recipe: ReaderRecipe,
    prepared: Prepared,
    base: Path,
    data: Sequence[Path],
    out: Path,
    *,
    short: bool,
    log: Callable[[str], None],
) -> None:
    """Train on arrays, export the network and record what it was made of."""
    work = out / "work"
    files = [(work / name, times) for name, times in prepared.files]
    groups = mining.Groups(files)
    schedule = _shortened(recipe.schedule) if short else recipe.schedule
    sums = [(sha256_file(file), times) for file, times in files]
    pairs: mining.Groups | taught.Taught = groups
    loss_function: Any = loss_of
    if recipe.teacher is not None and prepared.hits is not None:
        told = _told(recipe.teacher, recipe.seed, work / prepared.hits, files, sums, base, data, short=short, log=log)
        pairs, loss_function = taught.Taught(work / prepared.hits, told, groups), taught.taught_loss
        sums.append((told.name, 1))
    torch.manual_seed(recipe.seed)
    network = Network(sentence_encoder(base))
    if recipe.start is not None:
        network.start_from(_checked(find(recipe.start, data), recipe.start_sha256))
    key = _key(recipe.base_sha256, recipe.start_sha256, recipe.seed, schedule, sums)
    loss = partial(loss_function, network)
    train(network, pairs, loss, schedule, work / f"train-{key}", seed=recipe.seed, log=log)
    export(network, out / "model.onnx", groups.some(_SEEN))
    copyfile(base / "tokenizer.json", out / "tokenizer.json")
    record = {
        "recipe": {"file": path.name, "sha256": sha256_file(path)},
        "short": short,
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "start": None if recipe.start is None else {"from": recipe.start, "sha256": recipe.start_sha256},
        "teacher": recipe.teacher and {"from": recipe.teacher.base, "sha256": recipe.teacher.base_sha256},
        "device": str(training_device()),
        "index": prepared.index,
        "questions": prepared.questions,
        "files": {name: sha256_file(out / name) for name in ("model.onnx", "tokenizer.json")},
        "provenance": provenance({}),
    }
    write_atomic(out / "training.json", [dumps(record, indent=2)])
    log(f"{Reader(out).name} in {out}")


def _shortened(schedule: Schedule) -> Schedule:
    return replace(schedule, warm_up=2, most=_SHORT_STEPS)


def _key(*made_of: object) -> str:
    return sha256(f"{made_of}".encode()).hexdigest()[:8]


def _told(
    recipe: TeacherRecipe,
    seed: int,
    hits: Path,
    files: Sequence[tuple[Path, float]],
    sums: Sequence[tuple[str, float]],
    reader_base: Path,
    data: Sequence[Path],
    *,
    short: bool,
    log: Callable[[str], None],
) -> Path:
    """Train the teacher, and return the folder of what it says of the hits; what is there is kept."""
    base = base_folder(recipe.base if ":" in recipe.base else str(find(recipe.base, data)), recipe.base_sha256)
    schedule = _shortened(recipe.schedule) if short else recipe.schedule
    key = _key(recipe.base_sha256, seed, schedule, recipe.times, sums, sha256_file(hits))
    told = hits.parent / f"told-{key}"
    torch.manual_seed(seed)
    teacher = Teacher(base, reader_base / "tokenizer.json")
    groups = mining.Groups([(file, times * recipe.times) for file, times in files])
    train(teacher, groups, partial(loss_of, teacher), schedule, hits.parent / f"teacher-{key}", seed=seed, log=log)
    taught.read_hits(teacher, hits, told, batch=_SCORED, log=log)
    return told


def _checked(file: Path, expected: str | None) -> Path:
    if sha256_file(file) != expected:
        raise RagError(f"{file}: its SHA-256 is {sha256_file(file)}, but the recipe's start_sha256 is {expected}")
    return file
