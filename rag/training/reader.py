"""Training of the reader from a recipe and an index; a stopped run resumes."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import copyfile
from typing import Any

import torch

from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import provenance, sha256_file
from autoais.training.export import export
from autoais.training.loop import train, training_device
from autoais.training.model import sentence_encoder
from autoais.training.recipe import base_folder, find
from autoais.training.schedule import Schedule
from rag.base.errors import RagError
from rag.index.index import Index
from rag.retrieval.reader import Reader
from rag.training import arrays as preparing
from rag.training import distillation, labelled_questions, mining, read_recipe, replay
from rag.training.arrays import Prepared
from rag.training.network import Network, Teacher, loss_of, match_ids
from rag.training.recipe import KeptRecipe, ReaderRecipe, TeacherRecipe

_File = tuple[Path, float]  # arrays, and how often they are used

_SHORT_STEPS = 8
_EXPORT_PAIRS = 100  # pairs used to export the network
_TEACHER_BATCH = 256  # windows that a teacher reads at once
_COMPLETE = "complete"


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
    bases = _bases(recipe, data)
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    if index is None:
        data_files = preparing.read_arrays(recipe, work, short=short)
    else:
        data_files = preparing.prepare(recipe, index, data, work, short=short, log=log)
    if prepare:
        log(f"prepared in {work}; train with: rag train {path} --data ... --out {out}{' --short' * short}")
        return
    _fit(path, recipe, data_files, bases, out, short=short, log=log)


@dataclass(frozen=True, slots=True)
class _Bases:
    """The weights to start from: folders saved by transformers for the reader and its teacher, and a `model.onnx`."""

    reader: Path
    teacher: Path | None
    start: Path | None


def _bases(recipe: ReaderRecipe, data: Sequence[Path]) -> _Bases:
    """Find and check them, before the work that takes long."""
    reader, teacher, start = base_folder(recipe.base, recipe.base_sha256), None, None
    if recipe.start is not None:
        start = find(recipe.start, data)
        if sha256_file(start) != recipe.start_sha256:
            raise RagError(f"{start}: its SHA-256 is {sha256_file(start)}, not the recipe's {recipe.start_sha256}")
    if recipe.kept is not None:
        _check_replay(recipe.kept, recipe)
    if recipe.teacher is not None:
        teacher_recipe = recipe.teacher
        if teacher_recipe.times < 1 or not 1 <= teacher_recipe.depth <= labelled_questions.DEPTH:
            raise RagError(f"[teacher] times should be at least 1, and depth 1 to {labelled_questions.DEPTH}")
        base_name = teacher_recipe.base if ":" in teacher_recipe.base else str(find(teacher_recipe.base, data))
        teacher = base_folder(base_name, teacher_recipe.base_sha256)
        match_ids(teacher, reader / "tokenizer.json")
    return _Bases(reader, teacher, start)


def _check_replay(replay_recipe: KeptRecipe, recipe: ReaderRecipe) -> None:
    """Raise `RagError` if the recipe cannot keep what the table says."""
    names = [*recipe.questions, *recipe.labelled]
    if strange := [name for name in replay_recipe.files if name not in names]:
        raise RagError(f"[kept] files: {strange[0]!r} is not a file of [questions] or [labelled]")
    if not replay_recipe.files or set(replay_recipe.files) == set(names):
        raise RagError("[kept] files should name some of the files of [questions] and [labelled], and not all")
    if not 0 < replay_recipe.share <= 1:
        raise RagError(f"[kept] share: should be above 0 and at most 1, found {replay_recipe.share}")
    if recipe.start is None or recipe.teacher is not None:
        raise RagError("[kept] needs 'start', the reader that it keeps to, and no [teacher]")


def _fit(
    path: Path,
    recipe: ReaderRecipe,
    data_files: Prepared,
    bases: _Bases,
    out: Path,
    *,
    short: bool,
    log: Callable[[str], None],
) -> None:
    """Train on arrays, export the network and record what it was made of."""
    work = out / "work"
    log(f"training on {training_device()}")
    new_files, old = _split(recipe, [(work / name, times) for name, times in data_files.files])
    groups = mining.Groups(new_files)
    schedule = _limit_schedule(recipe.schedule, short=short)
    ingredients: list[object] = [(data_files.checksums[name], times) for name, times in data_files.files]
    pairs: mining.Groups | distillation.HitBatches | replay.ReplayBatches = groups
    loss_function: Any = loss_of
    if recipe.teacher is not None and bases.teacher is not None and data_files.hits is not None:
        outputs = _teacher_outputs(recipe.teacher, recipe.seed, data_files, bases, work, short=short, log=log)
        pairs = distillation.HitBatches(work / data_files.hits, outputs, groups)
        loss_function = distillation.distillation_loss
        ingredients.append(outputs.name)
    torch.manual_seed(recipe.seed)
    network = Network(sentence_encoder(bases.reader))
    if bases.start is not None:
        network.start_from(bases.start)
    # What `[kept]` compares and mixes with: training changes `network` in place.
    before = deepcopy(network).requires_grad_(False).eval()
    if recipe.kept is not None:
        pairs = replay.ReplayBatches(groups, mining.Groups(old))
        loss_function = partial(replay.replay_loss, before=before.to(training_device()), weight=recipe.kept.weight)
        ingredients.append((recipe.kept.files, recipe.kept.weight))
    key = _key(recipe.base_sha256, recipe.start_sha256, recipe.seed, schedule, ingredients)
    loss = partial(loss_function, network)
    train(network, pairs, loss, schedule, work / f"train-{key}", seed=recipe.seed, log=log)
    if recipe.kept is not None:
        _mix(network, before.to("cpu"), recipe.kept.share)
    if recipe.finetune is not None:
        network_before = deepcopy(network)
        finetune_schedule = _limit_schedule(recipe.finetune, short=short)
        folder = work / f"finetune-{_key(key, finetune_schedule)}"
        train(network, groups, partial(loss_of, network), finetune_schedule, folder, seed=recipe.seed, log=log)
        _mix(network, network_before, 0.5)
    export(network, out / "model.onnx", groups.some(_EXPORT_PAIRS))
    copyfile(bases.reader / "tokenizer.json", out / "tokenizer.json")
    record = {
        "recipe": {"file": path.name, "sha256": sha256_file(path)},
        "short": short,
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "start": None if recipe.start is None else {"from": recipe.start, "sha256": recipe.start_sha256},
        "teacher": recipe.teacher and {"from": recipe.teacher.base, "sha256": recipe.teacher.base_sha256},
        "index": data_files.index,
        "questions": data_files.questions,
        "files": {name: sha256_file(out / name) for name in ("model.onnx", "tokenizer.json")},
        "provenance": provenance({}),
    }
    write_atomic(out / "training.json", [dumps(record, indent=2)])
    log(f"{Reader(out).name} in {out}")


def _split(recipe: ReaderRecipe, files: Sequence[_File]) -> tuple[list[_File], list[_File]]:
    """The arrays to learn from, and those of the files of `[kept]`."""
    keep = recipe.kept.files if recipe.kept is not None else ()
    named_files = list(zip([*recipe.questions, *recipe.labelled], files, strict=True))
    return [file for name, file in named_files if name not in keep], [
        file for name, file in named_files if name in keep
    ]


def _mix(network: Network, before: Network, share: float) -> None:
    """Make the weights the mean of the network's, whose part is `share`, and of those before the training."""
    old = before.state_dict()
    network.load_state_dict({name: torch.lerp(old[name], new, share) for name, new in network.state_dict().items()})


def _limit_schedule(schedule: Schedule, *, short: bool) -> Schedule:
    return replace(schedule, warm_up=2, most=_SHORT_STEPS) if short else schedule


def _key(*ingredients: object) -> str:
    return sha256(f"{ingredients}".encode()).hexdigest()[:8]


def _teacher_outputs(
    recipe: TeacherRecipe,
    seed: int,
    data_files: Prepared,
    bases: _Bases,
    work: Path,
    *,
    short: bool,
    log: Callable[[str], None],
) -> Path:
    """Train the teacher, and return the folder of what it says of the hits; what is there is kept."""
    assert bases.teacher is not None
    assert data_files.hits is not None
    schedule = _limit_schedule(recipe.schedule, short=short)
    files = [(data_files.checksums[name], times) for name, times in data_files.files]
    key = _key(recipe.base_sha256, seed, schedule, recipe.times, files)
    outputs = work / f"said-{_key(key, data_files.checksums[data_files.hits], distillation.BLOCK)}"
    if (outputs / _COMPLETE).exists():
        return outputs
    torch.manual_seed(seed)
    teacher = Teacher(bases.teacher, bases.reader / "tokenizer.json")
    groups = mining.Groups([(work / name, times * recipe.times) for name, times in data_files.files])
    train(teacher, groups, partial(loss_of, teacher), schedule, work / f"teacher-{key}", seed=seed, log=log)
    distillation.read_hits(teacher, work / data_files.hits, outputs, batch=_TEACHER_BATCH, log=log)
    (outputs / _COMPLETE).touch()
    return outputs
