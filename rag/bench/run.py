"""`rag bench run`: questions, hits, answers, judgements and metrics of systems on a benchmark, each in its own file.

Every stage can be run alone and continues after a kill. The folder is described in the handbook (benchmarking.md).
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any

from autoais.answers import CitedAnswer, read_answers, to_row, write_answers
from autoais.io.jsonl import check_distinct, dumps, parse_object, read_objects, round_floats, write_atomic
from autoais.io.locks import exclusive_lock
from autoais.io.provenance import command, judge_record, sha256_file, versions
from autoais.judges import DEFAULT, JUDGES, open_judge
from autoais.judges.cache import CachedJudge, JudgementCache
from autoais.scoring import DEFAULT_METRICS, ScoreRun, choose_metrics, with_notes
from autoais.types import Judge
from rag.answering import Journal, pending
from rag.bench import metrics as measures
from rag.bench.benchmark import Benchmark, read_benchmark
from rag.bench.corpora import Corpora
from rag.bench.human import HumanLabels
from rag.bench.items import Item, read_items, write_items
from rag.bench.outcomes import make_item
from rag.bench.predictions import join_predictions
from rag.bench.questions import BenchQuestion, questions_of, read_bench_questions, sample
from rag.bench.retrieval import OF_THE_QUESTION, Given, Retrieved, search_file
from rag.bench.specs import SystemSpec, distinct, safe
from rag.config import DEFAULT_SYSTEM
from rag.errors import FormatError, RagError, UsageError, check_type
from rag.index.open import open_index
from rag.retrievers import Retriever, open_retriever
from rag.systems import System, answer_or_abstain, open_system

STAGES = ("retrieve", "answer", "judge", "measure")
RUN, QUESTIONS, CACHE, LOCK = "run.json", "questions.jsonl", "judgements.cache", ".lock"
ANSWERS, JUDGEMENTS, SCORE, ITEMS, METRICS = (
    "answers.jsonl", "judgements.jsonl", "score.json", "items.jsonl", "metrics.json",
)  # fmt: skip
_AT_ONCE = 16  # pairs judged between two writes: what a kill loses, of a judge that has no `at_once` of its own
_OURS = {LOCK, QUESTIONS, "index"}  # what a run that was killed at its start leaves
_SETTLED_BY = {"judge": "judge", "metrics": "judge", "human": "measure", "price": "measure"}  # setting -> its stage

_TEMPORARY = re.compile(
    rf"\.({'|'.join(map(re.escape, (RUN, QUESTIONS, ANSWERS, JUDGEMENTS, SCORE, ITEMS, METRICS)))})\.\w+"
)

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the number of questions (or bytes of a corpus) done, and the total."""


@dataclass(frozen=True, slots=True)
class BenchRun:
    """A run folder: its `run.json`, and the metrics and paths of its systems by label."""

    folder: Path
    record: Mapping[str, Any]

    @property
    def labels(self) -> list[str]:
        """The short names of the systems, which are folders of the run."""
        return list(self.record["systems"])

    def metrics(self, label: str) -> dict[str, Any]:
        """Return `metrics.json` of a system; raises `FormatError` if the stage measure is missing."""
        return _json(self.folder / label / METRICS)

    def items(self, label: str) -> list[Item]:
        """Return the items of a system, one a question."""
        return read_items(self.folder / label / ITEMS)

    def questions(self) -> list[BenchQuestion]:
        """Return the questions of the run."""
        return read_bench_questions(self.folder / QUESTIONS)


def open_run(folder: str | Path) -> BenchRun:
    """Open a run folder; raises `RagError` if it is none."""
    path = Path(folder) / RUN
    if not path.is_file():
        raise RagError(f"{folder}: not a run folder: {RUN} is missing (rag bench run writes one)")
    record = _json(path)
    if not isinstance(record.get("systems"), dict) or not isinstance(record.get("stages"), dict):
        raise FormatError(f"{path}: not the record of a benchmark run")
    return BenchRun(Path(folder), record)


def run_benchmark(
    benchmark: str | Path | Benchmark,
    out: str | Path,
    data: str | Path | None = None,
    *,
    systems: Sequence[str] = (),
    predictions: Sequence[str | Path] = (),
    index: str | Path | None = None,
    corpus: str | Path | None = None,
    judge: str | Judge | None = None,
    metrics: str | Sequence[str] | None = None,
    human: str | Path | None = None,
    price: tuple[float, float] | None = None,
    limit: int | None = None,
    seed: int | None = None,
    stage: str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> BenchRun:
    """Run systems over a benchmark and measure them; every result is a file in the folder `out`.

    `benchmark` is a name (`list_benchmarks`) or your own .toml file, `data` the folder of its files. `systems` are
    names as for `rag.open_system`, with options after commas (`reader,recipe=best,k=16`); `predictions` are files of
    others' answers in any format of `autoais schema`. Without either, the default system runs. `index` is the index of
    the corpus, built there if it is missing (default: in `out`); `corpus` replaces the benchmark's corpus. `metrics`
    are citation metrics, `human` a file of labelled answers of these systems, `price` (input, output) is per million
    tokens. `limit` draws a sample by `seed`. `stage` runs one stage alone, again if it is done; later ones are then
    out of date and removed. `resume` continues a stopped run, which ends with the same files; what is not given is
    taken from it. Raises `RagError` if `out` holds a run and neither is set, or another process is writing it.
    """
    check_type("out", out, "a folder (str or Path)", str, Path)
    for what, listed in (("systems", systems), ("predictions", predictions)):
        if isinstance(listed, str | Path):
            raise UsageError(f"{what} should be a list, found one string; write [{str(listed)[:30]!r}]")
    if stage is not None and stage not in STAGES:
        raise RagError(f"no stage called {stage!r}; there are: {', '.join(STAGES)}")
    if limit is not None and limit < 1:
        raise RagError(f"limit must be at least 1, not {limit}")
    opened = benchmark if isinstance(benchmark, Benchmark) else read_benchmark(benchmark)
    given = {
        "systems": [str(SystemSpec.parse(one)) for one in systems],
        "predictions": [str(one) for one in predictions],
        "judge": judge.name if isinstance(judge, Judge) else judge,
        "metrics": None if metrics is None else list(choose_metrics(_listed(metrics))),
        "human": None if human is None else str(human),
        "price": None if price is None else list(price),
        "limit": limit,
        "seed": seed,
    }
    folder = Path(out)
    busy = RagError(f"{folder}: another process is writing it; wait for it, or name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder / LOCK, busy):
            return _Run(
                opened,
                folder,
                None if data is None else Path(data),
                given,
                index=None if index is None else Path(index),
                corpus=None if corpus is None else Path(corpus),
                judge=judge if isinstance(judge, Judge) else None,
                stage=stage,
                resume=resume,
                progress=progress or (lambda what, done, total: None),
            ).run()
    except OSError as error:
        raise RagError(f"{folder}: cannot be written: {error.strerror}") from error


def _listed(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(names) or "none"


class _Run:
    """The state of one call of `run_benchmark`; the folder is locked."""

    def __init__(
        self,
        benchmark: Benchmark,
        folder: Path,
        data: Path | None,
        given: Mapping[str, Any],
        *,
        index: Path | None,
        corpus: Path | None,
        judge: Judge | None,
        stage: str | None,
        resume: bool,
        progress: Progress,
    ) -> None:
        self._benchmark, self._folder, self._judge, self._progress = benchmark, folder, judge, progress
        self._stage, self._resume = stage, resume
        self._corpora = Corpora(benchmark, data, index or folder / "index", corpus, progress)
        self._other_corpus = corpus is not None
        self._all = questions_of(benchmark, data, gold=corpus is None)
        self._settings, self._record = self._started(given)
        self._questions = self._asked()
        self._specs = {
            label: SystemSpec.parse(one["spec"]) for label, one in self._record["answers"].items() if "spec" in one
        }

    # --- settings and the record --------------------------------------------------------------------------------

    def _started(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings of the run and `run.json`: those of the folder if it holds a run, else new ones."""
        path = self._folder / RUN
        if not path.exists():
            if self._stage not in (None, STAGES[0]):
                raise RagError(
                    f"{self._folder} holds no run yet: start with the stage {STAGES[0]}, or with all of them"
                )
            self._sweep()
            if foreign := sorted(one.name for one in self._folder.iterdir() if one.name not in _OURS):
                raise RagError(f"{self._folder} is not empty (it holds {foreign[0]}); name a new folder")
            settings = self._new_settings(given)
            return settings, self._new_record(settings)
        if not (self._resume or self._stage):
            raise RagError(f"{self._folder} holds a run: finish it with --resume, or name another folder")
        record = dict(open_run(self._folder).record)
        before = record["settings"]
        judge = before.get("judge")
        if given.get("judge") is None and isinstance(judge, str) and judge.partition(":")[0] not in JUDGES:
            raise RagError(f"{self._folder}: its judge is {judge!r}, whose code would run; name it with --judge")
        settings = before | {name: value for name, value in given.items() if value not in (None, [])}
        fixed = self._fixed()
        changed = [name for name in settings if settings[name] != before.get(name) and not self._may_change(name)]
        changed += [name for name, value in fixed.items() if record.get(name) != value]
        if changed:
            raise RagError(
                f"{self._folder} cannot be continued: it was started with another {', '.join(sorted(changed))}; "
                "name a new folder to start again"
            )
        record["settings"] = settings
        return settings, record

    def _may_change(self, setting: str) -> bool:
        """Whether the stage that is run alone is the one that a setting belongs to, or an earlier one."""
        stage = _SETTLED_BY.get(setting)
        if self._stage is None or self._resume or stage is None:
            return False
        return STAGES.index(self._stage) <= STAGES.index(stage)

    def _new_settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        settings = dict(given)
        if not settings["systems"] and not settings["predictions"]:
            settings["systems"] = [DEFAULT_SYSTEM]
        check_distinct(map(Path, settings["predictions"]))
        settings["judge"] = settings["judge"] or DEFAULT
        settings["metrics"] = list(DEFAULT_METRICS) if settings["metrics"] is None else settings["metrics"]
        settings["seed"] = settings["seed"] or 0
        return settings

    def _fixed(self) -> dict[str, Any]:
        """What a run cannot be continued without: the same benchmark, data and versions."""
        benchmark = self._benchmark
        return {
            "benchmark": {
                "name": benchmark.name,
                "version": benchmark.version,
                "sha256": benchmark.sha256,
                "description": benchmark.description,
                "licence": benchmark.licence,
                "closed_pool": None if self._other_corpus else benchmark.closed_pool,
                "task": benchmark.task,
                "right": benchmark.right,
                "k": benchmark.k,
                "questions": benchmark.count,
                "without_gold": sum(not one.question.gold for one in self._all),
            },
            "data": {
                "questions": {"file": benchmark.questions.file, "sha256": benchmark.questions.sha256},
                "corpus": self._corpora.source_record(),
            },
            "versions": versions(),
        }

    def _new_record(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        specs = [SystemSpec.parse(one) for one in settings["systems"]]
        names = [spec.label for spec in specs] + [
            safe(Path(one).stem).replace("@", "-") for one in settings["predictions"]
        ]
        labels = distinct(names, [*_OURS, RUN, CACHE, "retrieval"])
        answers: dict[str, Any] = {label: {"spec": str(spec)} for label, spec in zip(labels, specs, strict=False)}
        answers |= {
            label: {"predictions": path}
            for label, path in zip(labels[len(specs) :], settings["predictions"], strict=True)
        }
        questions = sample(self._all, settings["limit"], settings["seed"])
        write_atomic(self._folder / QUESTIONS, (dumps(one.row()) for one in questions))
        record = {
            **self._fixed(),
            "settings": dict(settings),
            "questions": {"n": len(questions), "sha256": sha256_file(self._folder / QUESTIONS)},
            "systems": {label: one.get("spec") or one["predictions"] for label, one in answers.items()},
            "answers": answers,
            "retrieval": {},
            "indexes": {},
            "command": command(),
            "stages": {},
        }
        self._write(record)
        return record

    def _asked(self) -> list[BenchQuestion]:
        path = self._folder / QUESTIONS
        if not path.is_file() or sha256_file(path) != self._record["questions"]["sha256"]:
            raise RagError(f"{path} was changed after the run wrote it; name a new folder to start again")
        chosen = {one.question.id for one in read_bench_questions(path)}
        return [one for one in self._all if one.question.id in chosen]

    def _write(self, record: Mapping[str, Any]) -> None:
        write_atomic(self._folder / RUN, [dumps(round_floats(record), indent=2)])

    # --- stages -------------------------------------------------------------------------------------------------

    def run(self) -> BenchRun:
        """Run the stages that are left, or one alone."""
        self._sweep()
        self._check_stages()
        if self._stage is not None and not self._resume:
            self._drop_from(self._stage)
        self._write(self._record)
        for stage in STAGES:
            if self._stage in (None, stage):
                self._check_before(stage)
                for _, files, make in self._work(stage):
                    if not self._is_done(stage, files):
                        make()
                        self._done(stage, files)
        return BenchRun(self._folder, self._record)

    def _sweep(self) -> None:
        """Remove the temporary files of writes that were killed."""
        for path in [*self._folder.glob(".*"), *self._folder.glob("*/.*")]:
            if _TEMPORARY.fullmatch(path.name):
                path.unlink()

    def _check_stages(self) -> None:
        """Raise `RagError` if a file of a finished stage is gone or changed, unless that stage is run again."""
        for stage, files in self._record["stages"].items():
            if self._stage is not None and not self._resume and STAGES.index(stage) >= STAGES.index(self._stage):
                continue
            for name, one in files.items():
                path = self._folder / name
                if not path.is_file() or sha256_file(path) != one["sha256"]:
                    what = "was changed after the run wrote it" if path.is_file() else "is missing"
                    raise RagError(f"{path} {what}: make it again with --stage {stage}")

    def _check_before(self, stage: str) -> None:
        """Raise `RagError` if an earlier stage is not complete."""
        for before in STAGES[: STAGES.index(stage)]:
            for label, files, _ in self._work(before):
                if not self._is_done(before, files):
                    raise RagError(f"{self._folder} lacks the stage {before} of {label}: run it with --stage {before}")

    def _work(self, stage: str) -> "Iterator[_Task]":
        """The pieces of work of a stage, done or not."""
        work = {"retrieve": self._retrieve, "answer": self._answer, "judge": self._judged, "measure": self._measure}
        return work[stage]()

    def _is_done(self, stage: str, files: Collection[str]) -> bool:
        return set(files) <= set(self._record["stages"].get(stage, ()))

    def _done(self, stage: str, files: Sequence[str]) -> None:
        """Enter the files of a piece of work in `run.json`: it is complete."""
        entries = self._record["stages"].setdefault(stage, {})
        for name in files:
            path = self._folder / name
            entries[name] = {"rows": _rows(path), "sha256": sha256_file(path)}
        self._record["indexes"] |= self._corpora.record()
        self._write(self._record)

    def _drop_from(self, stage: str) -> None:
        """Forget a stage and those after it, and remove their files."""
        dropped = STAGES[STAGES.index(stage) :]
        for one in dropped:
            self._record["stages"].pop(one, None)
        self._write(self._record)
        for one in dropped:
            for _, files, _ in self._work(one):
                for name in files:
                    path = self._folder / name
                    path.unlink(missing_ok=True)
                    path.with_name(f"{path.name}.run.json").unlink(missing_ok=True)

    # --- retrieve -----------------------------------------------------------------------------------------------

    def _retrieve(self) -> "Iterator[_Task]":
        searched: dict[tuple[str, int], str] = {}
        taken: list[str] = []
        for spec in self._specs.values():
            key = self._search_of(spec)
            if key is not None and key not in searched:
                recipe, k = key
                (name,) = distinct([safe(f"{Path(recipe).stem if recipe.endswith('.toml') else recipe}@{k}")], taken)
                taken.append(name)
                searched[key] = f"retrieval/{name}.jsonl"
        for (recipe, k), file in searched.items():
            yield file, [file], partial(self._search, recipe, k, file)

    def _search_of(self, spec: SystemSpec) -> tuple[str, int] | None:
        """Recipe and depth of a system that searches with the question, else None."""
        if not spec.kind.searches_question:
            return None
        k = spec.k or self._benchmark.k or spec.kind.k
        given = self._benchmark.task == "given" and spec.recipe != "gold"
        return ("given" if given else spec.recipe or spec.kind.recipe), k

    def _hits_of(self, spec: SystemSpec) -> str:
        """The file with the hits of a system."""
        key = self._search_of(spec)
        assert key is not None
        for name, one in self._record["retrieval"].items():
            if (one["recipe"], one["k"]) == key:
                return str(name)
        raise RagError(f"{self._folder} lacks the hits of {spec}: run the stage retrieve")

    def _search(self, recipe: str, k: int, file: str) -> None:
        name = ""
        if recipe in OF_THE_QUESTION:
            given = Given(recipe, self._corpora.find, self._questions)
            name = given.name

            def search(asked: BenchQuestion) -> Any:  # noqa: ANN401
                return given.search(asked, k)

        else:
            retrievers: dict[str, Retriever] = {}

            def search(asked: BenchQuestion) -> Any:  # noqa: ANN401
                return self._retriever(recipe, asked, retrievers).search([asked.question.text], k)[0]

            name = self._retriever(recipe, self._questions[0], retrievers).name
        settings = {
            "retriever": name,
            "k": k,
            "questions": self._record["questions"]["sha256"],
            "corpus": self._record["data"]["corpus"],
            "versions": versions(),
        }
        self._record["retrieval"][file] = {"recipe": recipe, "k": k, "name": name}
        search_file(
            self._folder / file,
            self._questions,
            search,
            settings,
            lambda done, total: self._progress(f"searching {Path(file).stem}", done, total),
        )

    def _retriever(self, recipe: str, asked: BenchQuestion, opened: dict[str, Retriever]) -> Retriever:
        corpus = self._corpora.name_of(asked.collection)
        if corpus not in opened:
            opened[corpus] = open_retriever(recipe, self._corpora.open(corpus))
        return opened[corpus]

    # --- answer -------------------------------------------------------------------------------------------------

    def _answer(self) -> "Iterator[_Task]":
        for label, one in self._record["answers"].items():
            file = f"{label}/{ANSWERS}"
            if "predictions" in one:
                yield label, [file], partial(self._read_predictions, label, file)
            else:
                yield label, [file], partial(self._answer_all, label, file)

    def _read_predictions(self, label: str, file: str) -> None:
        path = Path(self._record["answers"][label]["predictions"])
        chosen = {one.question.id for one in self._questions}
        others = [one.question.text for one in self._all if one.question.id not in chosen]
        joined = join_predictions(path, self._questions, others, self._corpora.find)
        write_atomic(self._folder / file, write_answers(joined.answers))
        self._record["systems"][label] = joined.system
        self._record["answers"][label] |= {
            "sha256": sha256_file(path),
            "joined": joined.record,
            "notes": dict(joined.notes),
        }

    def _answer_all(self, label: str, file: str) -> None:
        answering = self._answering(self._specs[label])
        settings = {
            "system": answering.name,
            "questions": self._record["questions"]["sha256"],
            "corpus": self._record["data"]["corpus"],
            "versions": versions(),
        }
        path = self._folder / file
        with Journal(path, settings, resume=path.exists()) as journal:
            pending([one.question for one in self._questions], journal.done)
            for done, asked in enumerate(self._questions[len(journal.done) :], len(journal.done) + 1):
                answer, seconds = answering(asked)
                journal.write(to_row(answer.to_cited(self._benchmark.id, seconds)))
                self._progress(f"answering with {label}", done, len(self._questions))
        self._record["systems"][label] = answering.name

    def _answering(self, spec: SystemSpec) -> "_Answering":
        key = self._search_of(spec)
        others: dict[str, Retriever] = {}
        retrieved = None
        if key is not None:
            recipe, _ = key
            file = self._hits_of(spec)
            retrieved = Retrieved(
                self._record["retrieval"][file]["name"],
                self._folder / file,
                self._questions,
                None if recipe in OF_THE_QUESTION else lambda asked: self._retriever(recipe, asked, others),
            )

        def open_for(asked: BenchQuestion) -> System:
            # Without a corpus, the passages come with the questions, and nothing else is searched.
            searched = bool(self._benchmark.corpora)
            index = self._corpora.open(self._corpora.name_of(asked.collection)) if searched else open_index(None)
            k = spec.k or (self._benchmark.k if spec.kind.k else None) or None
            return open_system(spec.name, index, spec.options, k=k, recipe=spec.recipe, retriever=retrieved)

        return _Answering(self._questions, open_for, self._corpora, retrieved)

    # --- judge --------------------------------------------------------------------------------------------------

    def _judged(self) -> "Iterator[_Task]":
        for label in self._record["systems"]:
            yield label, [f"{label}/{JUDGEMENTS}", f"{label}/{SCORE}"], partial(self._judge_one, label)

    def _judge_one(self, label: str) -> None:
        judge = self._judge or open_judge(self._settings["judge"])
        self._judge = judge
        notes: Counter[str] = Counter()
        given = self._record["answers"][label].get("joined", {}).get("answers", len(self._questions))

        def answers() -> Iterator[CitedAnswer]:
            for done, one in enumerate(read_answers(self._folder / label / ANSWERS), 1):
                yield one
                self._progress(f"judging {label}", done, given)

        with JudgementCache(self._folder / CACHE) as cache:
            cached = CachedJudge(judge, cache, getattr(judge, "at_once", _AT_ONCE))
            run = ScoreRun(cached, self._settings["metrics"])
            rows = run.records(with_notes(answers(), notes), [one.question for one in self._questions])
            write_atomic(self._folder / label / JUDGEMENTS, (dumps(round_floats(row)) for row in rows))
        about = {key: value for key, value in judge_record(judge).items() if key != "usage"}  # of this call only
        score = round_floats(run.report()) | {"notes": dict(notes), "judged_by": about}
        write_atomic(self._folder / label / SCORE, [dumps(score, indent=2)])

    # --- measure ------------------------------------------------------------------------------------------------

    def _measure(self) -> "Iterator[_Task]":
        for label in self._record["systems"]:
            yield label, [f"{label}/{ITEMS}", f"{label}/{METRICS}"], partial(self._measure_one, label)

    def _measure_one(self, label: str) -> None:
        folder, settings = self._folder / label, self._settings
        items = list(self._items(folder))
        write_items(folder / ITEMS, items)
        score = _json(folder / SCORE)
        found = score["metrics"] | measures.item_metrics(items)
        about: dict[str, Any] = {}
        if settings["human"] is not None:
            corrected, human = measures.corrected_autoais(items, HumanLabels(Path(settings["human"])))
            found["autoais_corrected"] = corrected
            about["human"] = human | {"sha256": sha256_file(Path(settings["human"]))}
        told, used = self._record["answers"][label], measures.tokens(items)
        price = settings["price"]
        result = {
            "system": self._record["systems"][label],
            "label": label,
            "judge": score["judge"],
            "benchmark": self._benchmark.id,
            "closed_pool": self._record["benchmark"]["closed_pool"],
            "n": len(items),
            "answered": score["answered"],
            "unresolved_markers": score["unresolved_markers"],
            "same_judge": score.get("same_judge", 0),
            "right": self._benchmark.right,
            "ways": measures.ways(items),
            "metrics": found,
            **about,
            "latency": measures.latency(items),
            "tokens": used,
            "money": measures.money(used, None if price is None else (price[0], price[1])),
            "predictions": told.get("joined"),
            "notes": score["notes"] | told.get("notes", {}),
            "provenance": {
                "command": self._record["command"],
                "versions": self._record["versions"],
                "judge": score["judged_by"],
                "data": self._record["data"],
                "indexes": self._record["indexes"],
            },
        }
        write_atomic(folder / METRICS, [dumps(round_floats(result), indent=2)])

    def _items(self, folder: Path) -> Iterator[Item]:
        answers = {answer.id: answer for answer in read_answers(folder / ANSWERS)}
        rows = (row for _, row in read_objects(folder / JUDGEMENTS))
        judged = {key: list(one) for key, one in groupby(rows, itemgetter("id"))}
        short = any(answer.short_answer is not None for answer in answers.values()) or not answers
        for asked in self._questions:
            identifier = asked.question.id
            yield make_item(
                asked, answers.get(identifier), judged[identifier], self._benchmark.right, short_answers=short
            )


_Task = tuple[str, Sequence[str], Callable[[], None]]
"""A piece of work of a stage: its label, the files that it writes, and the call that writes them."""


class _Answering:
    """Answers questions with one system for all corpora, or with one per corpus if it does not share hits."""

    def __init__(
        self,
        questions: Sequence[BenchQuestion],
        open_for: Callable[[BenchQuestion], System],
        corpora: Corpora,
        retrieved: Retrieved | None,
    ) -> None:
        self._open_for, self._corpora, self._retrieved = open_for, corpora, retrieved
        self._systems: dict[str, System] = {}
        self.name = self._system(questions[0]).name

    def __call__(self, asked: BenchQuestion) -> Any:  # noqa: ANN401  (an answer and its seconds)
        """Return the answer, and the seconds it took with the search."""
        system = self._system(asked)
        searching = 0.0 if self._retrieved is None else self._retrieved.asking(asked)
        started = perf_counter()
        answer = answer_or_abstain(system, asked.question)
        return answer, perf_counter() - started + searching

    def _system(self, asked: BenchQuestion) -> System:
        key = "" if self._retrieved is not None else self._corpora.name_of(asked.collection)
        if key not in self._systems:
            self._systems[key] = self._open_for(asked)
        return self._systems[key]


def _rows(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _json(path: Path) -> dict[str, Any]:
    try:
        return parse_object(path.read_bytes(), str(path))
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}; is a stage of the run missing?") from error
