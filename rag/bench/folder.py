"""The folder of a benchmark run: its record `run.json`, its questions, and which of its files are complete."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import check_distinct, dumps, write_atomic
from autoais.base.io.provenance import command, sha256_file, versions
from autoais.base.io.schema import STRING, Schema
from autoais.base.io.schema import record as record_schema
from autoais.base.models.pace import RequestTotals
from autoais.judges import DEFAULT, JUDGES
from autoais.metrics.scoring import CITATION_METRICS
from rag.answer.specs import SystemSpec, number_duplicates, safe_name
from rag.answer.systems import is_user_class
from rag.base.config import DEFAULT_SYSTEM
from rag.base.errors import FormatError, RagError, UserError
from rag.bench.benchmark import Benchmark
from rag.bench.items import Item, read_items
from rag.bench.output_folder import (
    LOCK,
    START_AGAIN,
    check_file,
    check_same,
    find_differences,
    read_record,
    sweep_folder,
    write_record,
)
from rag.bench.question_files import BenchQuestion, read_bench_questions, sample
from rag.bench.questions import without_gold

STAGES = ("retrieve", "answer", "judge", "measure")
RUN, QUESTIONS, CACHE = "run.json", "questions.jsonl", "judgements.cache"
ANSWERS, JUDGEMENTS, SCORE, ITEMS, METRICS = (
    "answers.jsonl", "judgements.jsonl", "score.json", "items.jsonl", "metrics.json",
)  # fmt: skip
_OWN_FILES = (QUESTIONS, "index")  # what a run that was killed at its start leaves
_SETTLED_BY = {"judge": "judge", "metrics": "judge", "human": "measure", "price": "measure"}  # setting -> its stage
_SOURCES = ("systems", "predictions")  # the settings that say where answers come from
_OBJECT: Schema = {"type": "object"}
_RECORD: Schema = record_schema(
    {
        "benchmark": record_schema({"name": STRING, "version": {"type": ["string", "integer"]}}),
        "data": _OBJECT, "settings": _OBJECT, "questions": record_schema({"sha256": STRING}),
        "systems": {"type": "object", "additionalProperties": STRING},
        "answers": {"type": "object", "additionalProperties": _OBJECT},
        "retrieval": {"type": "object", "additionalProperties": _OBJECT},
        "indexes": {"type": "object", "additionalProperties": record_schema({"checksum": STRING})},
        "stages": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": record_schema({"sha256": STRING})},
        },
    },
    {
        "set_aside": record_schema(
            {
                "systems": {"type": "object", "additionalProperties": STRING},
                "answers": {"type": "object", "additionalProperties": _OBJECT},
            }
        )
    },
)  # fmt: skip
_LABEL = re.compile(r"[\w@+-][\w.@+-]*", re.ASCII)  # a label is the name of a folder: no separators, no `..`
_HITS = re.compile(r"retrieval/[\w@+-][\w.@+-]*\.jsonl", re.ASCII)
_FIGURE = re.compile(r"figures/[\w-]+\.(svg|png)", re.ASCII)
_WRITTEN = re.compile("|".join(map(re.escape, (RUN, QUESTIONS, ANSWERS, JUDGEMENTS, SCORE, ITEMS, METRICS))))


@dataclass(frozen=True, slots=True)
class BenchRun:
    """A run folder: its `run.json`, and the metrics and paths of its systems by label.

    `request_totals` says what model servers did for a system, by label, if it answered in this process.
    """

    folder: Path
    record: Mapping[str, Any]
    request_totals: Mapping[str, RequestTotals] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """The short names of the systems, which are folders of the run."""
        return list(self.record["systems"])

    def metrics(self, label: str) -> dict[str, Any]:
        """Return `metrics.json` of a system; raises `RagError` if the stage measure is missing."""
        return read_record(self.folder / label / METRICS, _OBJECT, "measure the run first (--stage measure)")

    def items(self, label: str) -> list[Item]:
        """Return the items of a system, one a question."""
        return read_items(self.folder / label / ITEMS)

    def questions(self) -> list[BenchQuestion]:
        """Return the questions of the run."""
        return read_bench_questions(self.folder / QUESTIONS)


def open_run(folder: str | Path) -> BenchRun:
    """Open a run folder; raises `RagError` if it is not one, `FormatError` if its record is broken."""
    path = Path(folder) / RUN
    record = read_record(path, _RECORD, "is it the folder of a run?")
    aside = record.get("set_aside", {})
    for label in [*record["systems"], *record["answers"], *aside.get("systems", ()), *aside.get("answers", ())]:
        if not _LABEL.fullmatch(label):
            raise FormatError(f"{path}: the label {label[:60]!r} cannot be the name of a folder")
    for name in record["retrieval"]:
        if not _HITS.fullmatch(name):
            raise FormatError(f"{path}: {name[:60]!r} cannot be a file of hits")
    return BenchRun(Path(folder), record)


def check_goes_on(folder: Path, *, stage: str | None, resume: bool) -> None:
    """Raise `RagError` if a folder holds a run and neither `stage` nor `resume` is set."""
    if (folder / RUN).exists() and not (resume or stage):
        raise RagError(f"{folder} holds a run: resume it (--resume), or name another folder")


class RunFolder:
    """A run folder that this process writes: it holds the lock.

    `options` are the caller's choices, `record` is `run.json`. Either a new run starts, or the one in the folder goes
    on, if it was started with the same `facts` (`describe_inputs`) and the same settings; a setting may
    change if the `stage` that it belongs to, or an earlier one, is run again. With `resume`, the systems and files of
    answers may be others (`has_other_systems`); those no longer named are `set_aside` in the record, with their files.
    Raises `RagError` if the folder holds a run and neither `stage` nor `resume` is set, or something else than a run.
    """

    def __init__(
        self,
        path: Path,
        options: Mapping[str, Any],
        facts: Mapping[str, Any],
        questions: Sequence[BenchQuestion],
        *,
        stage: str | None,
        resume: bool,
    ) -> None:
        self.path, self._stage, self._resume = path, stage, resume
        self.has_other_systems = False
        sweep_folder(path, RUN, _WRITTEN, _OWN_FILES)
        if (path / RUN).exists():
            self.record = self._continue_run(options, facts)
        else:
            self.record = self._new(options, facts, questions)
        self.settings: Mapping[str, Any] = self.record["settings"]
        self.questions = self._select_questions(questions)

    # --- the record ---------------------------------------------------------------------------------------------

    def _continue_run(self, options: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
        check_goes_on(self.path, stage=self._stage, resume=self._resume)
        record = {"reruns": []} | dict(open_run(self.path).record)
        before = record["settings"]
        judge = before.get("judge")
        if options.get("judge") is None and isinstance(judge, str) and judge.partition(":")[0] not in JUDGES:
            raise RagError(f"{self.path}: its judge is {judge!r}, whose code would run; name it as judge (--judge)")
        if options.get("systems") is None:
            for source in record["answers"].values():
                if is_user_class(name := str(source.get("spec", "")).partition(",")[0]):
                    raise RagError(
                        f"{self.path}: its system is {name!r}, whose code would run; name it as a system (--system)"
                    )
        settings = before | {name: value for name, value in options.items() if value is not None}
        differences = [name for name in find_differences(before, settings) if not self._may_change(name)]
        differences += find_differences(record, facts)
        are_sources = set(differences) <= set(_SOURCES)
        advice = f"resuming (--resume) adds and drops them, or {START_AGAIN}" if are_sources else START_AGAIN
        check_same(self.path, differences, advice)
        self.has_other_systems = any(settings[name] != before.get(name) for name in _SOURCES)
        return (_with_sources(record, settings) if self.has_other_systems else record) | {"settings": settings}

    def _may_change(self, setting: str) -> bool:
        """Whether the stage that a setting belongs to is made again; systems may change where the run goes on."""
        if setting in _SOURCES:
            return self._resume
        return setting in _SETTLED_BY and self.is_redone(_SETTLED_BY[setting])

    def is_redone(self, stage: str) -> bool:
        """Whether a stage is made again: it is the one that is run alone without `resume`, or a later one."""
        if self._stage is None or self._resume:
            return False
        return STAGES.index(stage) >= STAGES.index(self._stage)

    def _new(
        self, options: Mapping[str, Any], facts: Mapping[str, Any], questions: Sequence[BenchQuestion]
    ) -> dict[str, Any]:
        if self._stage not in (None, STAGES[0]):
            raise RagError(f"{self.path} holds no run yet: start with the stage {STAGES[0]}, or with all of them")
        settings = _with_defaults(options)
        answers = _answers(settings)
        sampled_questions = sample(questions, settings["limit"], settings["seed"])
        write_atomic(self.path / QUESTIONS, (dumps(question.row()) for question in sampled_questions))
        return {
            **facts,
            "settings": settings,
            "questions": {"n": len(sampled_questions), "sha256": sha256_file(self.path / QUESTIONS)},
            "systems": _source_names(answers),
            "answers": answers,
            "retrieval": {},
            "indexes": {},
            "command": command(),
            "reruns": [],
            "date": datetime.now(UTC).date().isoformat(),
            "stages": {},
        }

    def _select_questions(self, questions: Sequence[BenchQuestion]) -> list[BenchQuestion]:
        path = self.path / QUESTIONS
        check_file(path, self.record["questions"]["sha256"])
        question_ids = {question.question.id for question in read_bench_questions(path)}
        return [question for question in questions if question.question.id in question_ids]

    def write(self) -> None:
        """Write `run.json`."""
        write_record(self.path / RUN, self.record)

    # --- files of stages ----------------------------------------------------------------------------------------

    def is_done(self, stage: str, files: Collection[str]) -> bool:
        """Whether these files of a stage are complete."""
        return set(files) <= set(self.record["stages"].get(stage, ()))

    def complete_stage(self, stage: str, files: Iterable[str]) -> None:
        """Enter complete files of a stage in `run.json`."""
        entries = self.record["stages"].setdefault(stage, {})
        for name in files:
            path = self.path / name
            entries[name] = {"rows": _rows(path), "sha256": sha256_file(path)}
        self.write()

    def check(self) -> None:
        """Raise `RagError` if a file of a finished stage is gone or changed, unless that stage is made again."""
        set_aside = self.record.get("set_aside", {}).get("answers", {})
        for stage, files in self.record["stages"].items():
            advice = f"make it again with the stage {stage} (--stage {stage})"
            for name, facts in files.items():
                if not self.is_redone(stage) and name.partition("/")[0] not in set_aside:
                    check_file(self.path / name, facts["sha256"], advice)

    def forget(self, stages: Sequence[str]) -> bool:
        """Enter in `run.json` that nothing of these stages is complete; returns whether something was."""
        dropped_stages = [stage for stage in stages if self.record["stages"].pop(stage, None)]
        self.write()
        return bool(dropped_stages)

    def remove_report(self) -> None:
        """Remove the report that was written into the folder: report.html, report.json, and the figures it lists."""
        report, figures = self.path / "report", set[str]()
        with suppress(UserError, KeyError, TypeError, AttributeError):  # not there, or not a report
            for group in read_record(report / "report.json", _OBJECT, "")["groups"]:
                figures.update(
                    name for figure in group["figures"] for name in figure["files"] if _FIGURE.fullmatch(name)
                )
        for name in ["report.html", "report.json", *figures]:
            (report / name).unlink(missing_ok=True)
        for folder in (report / "figures", report):
            with suppress(OSError):  # not there, or with files of others
                folder.rmdir()

    def remove(self, files: Iterable[str]) -> None:
        """Remove files of stages, with the records beside them."""
        for name in files:
            path = self.path / name
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}.run.json").unlink(missing_ok=True)


def _with_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    settings = dict(options)
    settings["predictions"] = settings["predictions"] or []
    settings["systems"] = settings["systems"] or ([] if settings["predictions"] else [DEFAULT_SYSTEM])
    check_distinct(map(Path, settings["predictions"]))
    settings["judge"] = settings["judge"] or DEFAULT
    settings["metrics"] = list(CITATION_METRICS) if settings["metrics"] is None else settings["metrics"]
    settings["seed"] = settings["seed"] or 0
    return settings


def _answers(settings: Mapping[str, Any], old_sources: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Where the answers of each label come from: a system (`spec`) or a file (`predictions`).

    Those of `old_sources` labels keep them, with all that is recorded of them.
    """
    specs = [SystemSpec.parse(system) for system in settings["systems"]]
    sources = [{"spec": str(spec)} for spec in specs] + [{"predictions": spec} for spec in settings["predictions"]]
    names = [spec.label for spec in specs] + [
        safe_name(Path(spec).stem).replace("@", "-") for spec in settings["predictions"]
    ]
    old_sources = dict(old_sources or {})
    reserved_names, answers = [LOCK, *_OWN_FILES, RUN, CACHE, "retrieval", "report", *old_sources], {}
    for name, source in zip(names, sources, strict=True):
        label = next(
            (old_label for old_label, old_source in old_sources.items() if old_source.items() >= source.items()), None
        )
        if label is None:
            (label,) = number_duplicates([name], reserved_names)
            reserved_names.append(label)
        answers[label] = old_sources.pop(label, source)
    return answers


def _source_names(answers: Mapping[str, Any]) -> dict[str, str]:
    """The name of each system or file that has not answered yet."""
    return {label: source.get("spec") or source["predictions"] for label, source in answers.items()}


def _with_sources(record: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the systems and files of answers that the settings name; the others are set aside."""
    check_distinct(map(Path, settings["predictions"]))
    aside = record.get("set_aside", {"systems": {}, "answers": {}})
    answers, systems = aside["answers"] | record["answers"], aside["systems"] | record["systems"]
    now = _answers(settings, answers)
    set_aside = {
        "answers": {label: source for label, source in answers.items() if label not in now},
        "systems": {label: name for label, name in systems.items() if label not in now},
    }
    names = {label: systems.get(label, name) for label, name in _source_names(now).items()}
    return {**record, "answers": now, "systems": names, "set_aside": set_aside}


def describe_inputs(
    benchmark: Benchmark,
    questions: Sequence[BenchQuestion],
    data: Path | None,
    corpus: Mapping[str, Any],
    *,
    closed_pool: bool | None,
) -> dict[str, Any]:
    """Return the facts that must match to continue a run: benchmark, data and versions.

    `data` is the data folder, `corpus` says what is searched, `closed_pool` whether gold passages were put into it
    (None: it is not known).
    """
    # Where the benchmark does not say the checksum.
    digests = {
        file.file: sha256_file(file.path(data, benchmark.home))
        if file.sha256 is None and not file.is_shipped
        else file.sha256
        for file in benchmark.files
    }
    first, *others = digests
    further_files = {file: digests[file] for file in others}
    for ids in filter(None, (source.ids for source in benchmark.sources)):
        further_files[ids.file] = sha256_file(ids.check(data, benchmark.home))
    if benchmark.texts is not None:
        path = benchmark.texts.check(data, benchmark.home)
        further_files[benchmark.texts.path] = sha256_file(path) if path.is_file() else None
    return {
        "benchmark": {
            "name": benchmark.name,
            "version": benchmark.version,
            "sha256": benchmark.sha256,
            "description": benchmark.description,
            "licence": benchmark.licence,
            "closed_pool": closed_pool,
            "task": benchmark.task,
            "right": benchmark.right,
            "k": benchmark.k,
            "questions": len(questions),
            "without_gold": without_gold((question.answerable, question.question.gold) for question in questions),
        },
        "data": {
            "questions": {"file": first, "sha256": digests[first]},
            **({"further_files": further_files} if further_files else {}),
            "corpus": corpus,
        },
        "versions": versions(),
    }


def _rows(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
