"""The reader: a recipe and an index in, its folder out; a stopped run goes on from what it left."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from shutil import copyfile

import torch

from autoais.io.jsonl import dumps, write_whole
from autoais.io.provenance import provenance, sha256_file
from autoais.questions import Question, read_questions
from autoais.training.export import export
from autoais.training.loop import train
from autoais.training.model import sentence_encoder
from autoais.training.prepare import held_out, questions_key
from autoais.training.recipe import base_folder, find
from autoais.training.schedule import Schedule
from rag.index.index import Index
from rag.reader import MAX_LENGTH, Encoder, Reader
from rag.training import mining, read_recipe
from rag.training.network import Network, loss_of

_SHORT_QUESTIONS, _SHORT_STEPS = 40, 8
_SEEN = 100  # pairs that the export looks at


@dataclass(frozen=True, slots=True)
class ReaderRecipe:
    """A recipe file (`eval/recipes/reader.toml`): base weights, questions with answers, those never seen, a schedule.

    `questions` maps a file to the most groups (`rag.training.mining`) a question of it gives. Questions that also
    stand in a file of `held_out` are dropped. `depth` hits are looked at, `others` of them that lack the answer make a
    group, `least` is the cosine below which a passage does not teach.
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
    held_out: tuple[str, ...]
    schedule: Schedule
    max_length: int = MAX_LENGTH


def run(
    path: Path, index: Index, data: Sequence[Path], out: Path, *, short: bool = False, say: Callable[[str], None]
) -> None:
    """Make the reader of a recipe in `out`, from the passages of an index.

    Mined groups and training steps of an earlier run with the same recipe, questions and index are not made again;
    the export is. `short` takes 40 questions of each file and 8 steps: it shows that the recipe runs, nothing more.
    """
    recipe: ReaderRecipe = read_recipe(path, ReaderRecipe)
    base = base_folder(recipe.base, recipe.base_sha256)
    never = held_out(find(name, data) for name in recipe.held_out)
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    parts: dict[str, dict[str, int]] = {}
    files = []
    for name, each in recipe.questions.items():
        arrays, counts = _mined(recipe, name, each, never, index, base, data, work, short)
        say(f"{name}: {counts['questions']:,} questions, {counts['dropped']:,} dropped, {counts['groups']:,} groups")
        parts[name] = counts
        files.append(arrays)
    groups = mining.Groups(files)
    schedule = replace(recipe.schedule, warm_up=2, most=_SHORT_STEPS) if short else recipe.schedule
    torch.manual_seed(recipe.seed)
    network = Network(sentence_encoder(base))
    key = sha256(f"{recipe.base_sha256} {recipe.seed} {schedule} {[f.name for f in files]}".encode()).hexdigest()[:8]
    loss = partial(loss_of, network)
    train(network, groups, loss, schedule, work / f"train-{key}", seed=recipe.seed, say=say)
    export(network, out / "model.onnx", groups.some(_SEEN))
    copyfile(base / "tokenizer.json", out / "tokenizer.json")
    record = {
        "recipe": {"file": path.name, "sha256": sha256_file(path)},
        "short": short,
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "index": {key: index.manifest[key] for key in ("checksum", "passages", "recipe")},
        "questions": parts,
        "files": {name: sha256_file(out / name) for name in ("model.onnx", "tokenizer.json")},
        "provenance": provenance({}),
    }
    write_whole(out / "training.json", [dumps(record, indent=2)])
    say(f"{Reader(out).name} in {out}")


def _mined(
    recipe: ReaderRecipe,
    name: str,
    each: int,
    never: set[str],
    index: Index,
    base: Path,
    data: Sequence[Path],
    work: Path,
    short: bool,
) -> tuple[Path, dict[str, int]]:
    """The arrays of a file of questions, and how many questions, dropped ones and groups there are."""
    file = find(name, data)
    made_of = (recipe.seed, recipe.depth, recipe.others, recipe.least, recipe.max_length, each, short)
    key = sha256(f"{made_of} {sha256_file(file)} {index.manifest['checksum']} {sorted(never)}".encode()).hexdigest()[:8]
    arrays, record = work / f"{file.stem}-{key}.npz", work / f"{file.stem}-{key}.json"
    if not record.exists():
        asked: list[Question] = list(islice(read_questions(file), _SHORT_QUESTIONS if short else None))
        kept = [question for question in asked if questions_key(question.text) not in never]
        found = mining.groups(
            kept, index.bm25, mining.similarity(base), random.Random(f"{recipe.seed} {name}"),
            depth=recipe.depth, others=recipe.others, each=each, least=recipe.least,
        )  # fmt: skip
        encoder = Encoder.from_file(base / "tokenizer.json", recipe.max_length)
        total = mining.write_arrays(found, encoder, arrays)
        counts = {"questions": len(asked), "dropped": len(asked) - len(kept), "groups": total}
        write_whole(record, [dumps(counts)])
    read: dict[str, int] = json.loads(record.read_text("utf-8"))
    return arrays, read
