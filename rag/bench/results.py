"""Run folders as reports and comparisons read them: every file checked, since a folder may come from somebody else."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import dumps
from autoais.base.io.provenance import sha256_file
from autoais.base.io.schema import INTEGER, NUMBER, NUMBER_OR_NULL, STRING, TEXT_OR_NULL, Schema, record
from rag.base.resources import names as shipped
from rag.bench.folder import ANSWERS, ITEMS, JUDGEMENTS, METRICS, RUN, SCORE, open_run
from rag.bench.items import OUTCOMES, Item, read_items
from rag.bench.output_folder import check_file, read_record
from rag.bench.predictions import DID_NOT_FIT
from rag.bench.selections import describe_sample

_FILES = (ANSWERS, JUDGEMENTS, SCORE, ITEMS, METRICS)  # of a system
_COUNT: Schema = {"type": "integer", "minimum": 0}
_INTERVAL: Schema = {"type": ["array", "null"], "items": {"type": "number"}, "maxItems": 2}
_METRIC = record({"value": NUMBER_OR_NULL}, {"n": INTEGER, "interval95": _INTERVAL, "reason": TEXT_OR_NULL})
_OUTCOME = record({"count": _COUNT, "share": NUMBER_OR_NULL, "interval95": _INTERVAL})

_JOIN_RECORD = record({"count": _COUNT})


def _or_null(fields: dict[str, Schema]) -> Schema:
    """The schema of an object, of which fields may be missing, or null."""
    return record({}, fields) | {"type": ["object", "null"]}


METRICS_SCHEMA: Schema = record(
    {
        "system": STRING,
        "label": STRING,
        "judge": TEXT_OR_NULL,
        "n": _COUNT,
        "ways": record(dict.fromkeys(OUTCOMES, _OUTCOME)),
        "metrics": {"type": "object", "additionalProperties": _METRIC},
    },
    {
        "latency": _or_null({"p50": NUMBER, "p95": NUMBER}),
        "tokens": _or_null({"per_answer": record({"read": NUMBER, "written": NUMBER})}),
        "money": _or_null({"total": NUMBER, "per_answer": NUMBER}),
        "predictions": _or_null(dict.fromkeys(DID_NOT_FIT, _JOIN_RECORD)),
        "closed_pool": {"type": ["boolean", "null"]},
        "sample": record({"passages": _COUNT, "of": _COUNT}) | {"type": ["object", "null"]},
        "same_judge": _COUNT,
        "human": {"type": ["object", "null"]},
    },
)


@dataclass(frozen=True, slots=True)
class SystemRun:
    """A system of a run: its short and full name, its items and metrics.json, and its file of judgements."""

    label: str
    system: str
    items: Sequence[Item]
    metrics: dict[str, Any]
    judgements: Path


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder. `judge` is None if the systems were judged by different ones or by none."""

    folder: Path
    benchmark: str
    version: str
    licence: str | None
    judge: str | None
    systems: tuple[SystemRun, ...]
    manifest: dict[str, Any]

    @property
    def questions(self) -> dict[str, str]:
        """The text of each question by id."""
        return {item.id: item.question for item in self.systems[0].items}

    @property
    def rule(self) -> str:
        """The rule by which an answer is right, and the references of each question."""
        references = {item.id: item.references for item in self.systems[0].items}
        return dumps([self.manifest["benchmark"].get("right"), sorted(references.items())])

    @property
    def corpus(self) -> str:
        """The files or folders that are searched, with their checksums where they are known."""
        return dumps(self.manifest["data"].get("corpus"))

    @property
    def indexes(self) -> dict[str, str]:
        """The checksum of the passages of each index that the run opened: some runs need none, or not all."""
        return {name: index["checksum"] for name, index in self.manifest["indexes"].items()}

    def inputs(self) -> dict[str, str]:
        """The SHA-256 of every file that was read, by its path in the folder."""
        names = (ITEMS, JUDGEMENTS, METRICS)
        paths = [RUN, *(f"{system.label}/{name}" for system in self.systems for name in names)]
        return {path: sha256_file(self.folder / path) for path in paths if (self.folder / path).is_file()}


def read_run(folder: str | Path) -> Run:
    """Read a run folder; raises `UserError` for a missing or unfinished stage, `FormatError` for a broken file."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; name the folder that `rag bench run --out` wrote")
    manifest = dict(open_run(folder).record)
    benchmark = manifest["benchmark"]
    if not manifest["systems"]:
        raise UserError(f"{folder / RUN}: names no systems; run the benchmark first")
    _check_checksums(folder, manifest)
    systems = tuple(_read_system(folder, label, name, manifest) for label, name in manifest["systems"].items())
    _check_same_questions(folder, systems)
    judges = {system.metrics["judge"] for system in systems}
    licence = benchmark.get("licence")
    return Run(
        folder,
        benchmark["name"],
        str(benchmark["version"]),
        licence if isinstance(licence, str) else None,
        judges.pop() if len(judges) == 1 else None,
        systems,
        manifest,
    )


def _command(folder: Path, manifest: dict[str, Any], *options: str) -> str:
    """The command that continues a run. The one in run.json is not shown: it may come from somebody else."""
    name = manifest["benchmark"]["name"]
    ships = name in shipped("benchmarks", ".toml")
    words = "rag", "bench", "run", name if ships else "BENCHMARK.toml", "--out", str(folder), *options
    return f"{shlex.join(words)}, with {'' if ships else 'its file, '}--data and --index as before"


def _read_system(folder: Path, label: str, name: str, manifest: dict[str, Any]) -> SystemRun:
    advice = f"the stage `measure` of {label} is missing; finish it with: {_command(folder, manifest, '--resume')}"
    metrics = read_record(folder / label / METRICS, METRICS_SCHEMA, advice)
    for figure, metric in [*metrics["metrics"].items(), *metrics["ways"].items()]:
        if len(metric.get("interval95") or (0, 1)) != 2:
            raise FormatError(f"{folder / label / METRICS}: 'interval95' of {figure[:60]!r} should be two numbers")
    path = folder / label / ITEMS
    if not path.is_file():
        raise UserError(f"{path}: no such file; {advice}")
    items = read_items(path)
    counts = Counter(item.way for item in items)
    outcome_counts = {outcome: metrics["ways"][outcome]["count"] for outcome in OUTCOMES}
    if len(items) != metrics["n"] or any(counts[outcome] != outcome_counts[outcome] for outcome in OUTCOMES):
        raise UserError(
            f"{path}: {len(items)} items that do not add up to the {metrics['n']} of {METRICS}; one of them is "
            f"truncated or old: measure again with: {_command(folder, manifest, '--stage', 'measure')}"
        )
    return SystemRun(label, name, items, metrics, folder / label / JUDGEMENTS)


def _check_checksums(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise `UserError` if a file of a system is not what its stage wrote."""
    for stage, files in manifest["stages"].items():
        advice = f"make it again: {_command(folder, manifest, '--stage', stage)}"
        for name in (f"{label}/{name}" for label in manifest["systems"] for name in _FILES):
            if name in files:
                check_file(folder / name, files[name]["sha256"], advice)


def _check_same_questions(folder: Path, systems: Sequence[SystemRun]) -> None:
    first = {item.id: item.question for item in systems[0].items}
    for system in systems[1:]:
        if {item.id: item.question for item in system.items} != first:
            raise UserError(
                f"{folder}: {systems[0].label} and {system.label} have answered other questions; measure the run again"
            )


@dataclass(frozen=True, slots=True)
class Group:
    """Systems whose numbers may share a column: the same benchmark, questions, passages and judge (with its template).

    `closed_pool` says whether the corpus is a pool with the gold passages in it; None if that is unknown.
    `sample` says how many `passages` `of` the corpus were searched, if it was a sample.
    """

    benchmark: str
    version: str
    judge: str | None
    closed_pool: bool | None
    systems: tuple[SystemRun, ...]
    sample: Mapping[str, int] | None = None
    suffix: str = ""

    @property
    def name(self) -> str:
        """What tells it from other groups, on one line; `of` names its first run, if all else is the same."""
        n = len(self.systems[0].items)
        pool = ", closed pool" if self.closed_pool else ""
        pool += f", {describe_sample(self.sample)}" if self.sample else ""
        return f"{self.benchmark} {self.version}{pool}, {n:,} questions, judge {self.judge or 'none'}{self.suffix}"


def group_systems(runs: Iterable[Run], *, allow_different: bool = False) -> list[Group]:
    """Group the systems of all runs by what must be the same in a `Group`; labels are made unique by the run's folder.

    Raises `UserError` if there is more than one group, unless `allow_different`, or if a folder is named twice.
    """
    runs = list(runs)
    if repeated_folders := [folder for folder, n in Counter(run.folder.resolve() for run in runs).items() if n > 1]:
        raise UserError(f"{repeated_folders[0]} is named twice")
    labels = Counter(system.label for run in runs for system in run.systems)
    classes: list[tuple[tuple[Any, ...], dict[str, str], Run, list[SystemRun]]] = []
    used_labels: set[str] = set()
    for run in runs:
        questions = tuple(sorted(run.questions.items()))
        for system in run.systems:
            label = system.label if labels[system.label] == 1 else f"{run.folder.resolve().name}/{system.label}"
            while label in used_labels:
                label += "'"
            used_labels.add(label)
            setting = run.benchmark, run.version, system.metrics["judge"], system.metrics.get("closed_pool")
            key = (*setting, run.rule, run.corpus, questions)
            for class_key, indexes, _, systems in classes:
                if class_key == key and all(
                    indexes.get(name, checksum) == checksum for name, checksum in run.indexes.items()
                ):
                    indexes |= run.indexes
                    systems.append(replace(system, label=label))
                    break
            else:
                if classes and not allow_different:
                    _, _, first, (other, *_) = classes[0]
                    raise UserError(
                        f"{_difference(first, other, run, system)}; allow_different=True (--allow-different) shows "
                        "them apart"
                    )
                classes.append((key, dict(run.indexes), run, [replace(system, label=label)]))
    groups = [
        (Group(key[0], key[1], key[2], key[3], tuple(systems), systems[0].metrics.get("sample")), run)
        for key, _, run, systems in classes
    ]
    names = Counter(group.name for group, _ in groups)
    return [
        group if names[group.name] == 1 else replace(group, suffix=f", of {run.folder.resolve().name}")
        for group, run in groups
    ]


def _difference(run: Run, system: SystemRun, other_run: Run, other: SystemRun) -> str:
    folder, other_folder = system.judgements.parent, other.judgements.parent
    benchmarks = [f"{compared_run.benchmark} {compared_run.version}" for compared_run in (run, other_run)]
    if benchmarks[0] != benchmarks[1]:
        return f"{folder} ran the benchmark {benchmarks[0]!r}, {other_folder} {benchmarks[1]!r}"
    judges = [system.metrics["judge"], other.metrics["judge"]]
    if judges[0] != judges[1]:
        return f"{folder} was judged by {judges[0]!r}, {other_folder} by {judges[1]!r}"
    if system.metrics.get("closed_pool") != other.metrics.get("closed_pool"):
        return f"{folder} and {other_folder} searched other corpora: one of them is a closed pool"
    a, b = run.questions, other_run.questions
    if a == b and run.rule != other_run.rule:
        return f"{run.folder} and {other_run.folder} have other rules or references: an answer is right by others"
    if a == b:
        return f"{run.folder} and {other_run.folder} searched other passages"
    if a.keys() == b.keys():
        return f"{folder} and {other_folder} ask other questions under the same ids"
    only = [len(a.keys() - b.keys()), len(b.keys() - a.keys())]
    return (
        f"{folder} and {other_folder} have other questions: {only[0]} only in the first, {only[1]} only in the second"
    )
