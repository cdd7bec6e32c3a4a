"""`rag collect build`: from questions to a collection of cited answers, killed and resumed at any moment.

The answers of each system are journaled in `raw/`; the files of the collection follow from them.
"""

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer, from_row, to_row, write_answers
from autoais.base.io.jsonl import dumps, read_objects, write_atomic
from autoais.base.io.paths import folder_size
from autoais.base.io.provenance import command, sha256_file, versions
from autoais.base.models.pace import AUTO, Pace
from rag.answer.attribution.repair import RepairedGenerator
from rag.answer.llms import cost
from rag.answer.llms.prompts import Prompt
from rag.answer.specs import SystemSpec, number_duplicates
from rag.answer.system import RetrieveThenRead, System, answer_or_abstain, map_in_order
from rag.answer.systems import DEFAULT_PROMPT, open_system
from rag.base.errors import RagError, check_list, check_type
from rag.base.journal import Journal, pending
from rag.base.progress import Progress, no_progress
from rag.base.types import Hit, Passage
from rag.bench.collections.collected import Trailing, fault_of, grouped, identity, marker_in_text, to_collected
from rag.bench.collections.folder import (
    ANSWERS,
    FILTERED,
    MANIFEST,
    NEW,
    RAW,
    VERSION,
    Collection,
    check_empty,
    check_language,
    check_split,
    is_language,
    publish,
    read_manifest,
    write_manifest,
    writing,
)
from rag.bench.collections.quotes import KINDS, QuoteSource, find_quotes
from rag.bench.question_files import BenchQuestion, passage_row, read_bench_questions
from rag.index.open import open_index

QUESTIONS, LEFT_OUT = f"{RAW}/questions.jsonl", f"{RAW}/left-out.jsonl"
DEV = 0.2
_TRAILING = ("own", "attach")
_ON_CARD = ("name", "licence", "text_licence", "language")  # settings of a build that may still change
_PER_ANSWER = 3_000  # bytes of an answer in all files, besides its quotes


@dataclass(frozen=True, slots=True)
class Plan:
    """What a build will do: `answers` to ask for in all, `done` of them; `disk` is an estimate in bytes."""

    questions: int
    left_out: int
    answers: int
    done: int
    disk: int


@dataclass(frozen=True, slots=True)
class _Variant:
    """A system with a seed, or without one, that answers every question once; `system` is the label without it."""

    label: str
    system: str
    spec: SystemSpec
    seed: int | None

    @property
    def file(self) -> str:
        return f"{RAW}/{self.label}.jsonl"

    def prompt(self) -> dict[str, str] | None:
        """Name and checksum of its prompt."""
        if "prompt" not in self.spec.kind.options:
            return None
        read = Prompt.read(self.spec.options.prompt or DEFAULT_PROMPT)
        return {"name": read.name, "sha256": read.sha256}


def build_collection(
    out: str | Path,
    questions: str | Path,
    *,
    systems: Sequence[str] = ("reader",),
    qrels: str | Path | None = None,
    corpus: str | Path | None = None,
    index: str | Path | None = None,
    quotes: str | None = None,
    retriever: str | None = None,
    k: int | None = None,
    answers: int = 1,
    limit: int | None = None,
    seed: int = 0,
    dev: float = DEV,
    trailing: Trailing = "own",
    repair: bool = False,
    name: str | None = None,
    licence: str | None = None,
    text_licence: str | None = None,
    language: str | None = None,
    price: tuple[float, float] | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    concurrency: int | str = AUTO,
    progress: Progress | None = None,
    planned: Callable[[Plan], None] | None = None,
) -> Collection:
    """Let systems answer questions from numbered quotes, and write a collection in HAGRID's form to the folder `out`.

    `questions` is a file in any format of `autoais.read_questions`; `quotes` says where their quotes come from
    (`given`, `gold` or `retrieved`, see the handbook; default: what the files allow). `systems` are names as for
    `rag.open_system`, with options after commas. `answers` asks each language model so often, with as many seeds; its
    temperature has to be above 0. `limit` draws a sample of the questions, `dev` is the share of the questions in the
    development part; both by `seed`. `trailing` says what becomes of uncited sentences at the end. Citations are those
    that a model wrote, unless `repair` checks them first. `licence` is that of the answers, `text_licence` that of
    questions and quotes. `language` is a code such as `en`, for the card (default: the field `language` of the
    questions). `price` (input, output) is per million tokens.

    `resume` continues a stopped build, which ends with the same files; `retry_failed` also asks again where a model
    failed. `planned` is told what will be done before it begins. Raises `RagError` if `out` holds something else, or a
    build with other settings or data, if another process is writing it, and if the disk is too small.
    """
    check_type("out", out, "a folder (str or Path)", str, Path)
    check_list("systems", systems)
    Pace(concurrency)  # checks it
    for what, number in (("answers", answers), ("limit", limit)):
        if number is not None and number < 1:
            raise RagError(f"{what} must be at least 1, not {number}")
    if trailing not in _TRAILING:
        raise RagError(f"trailing should be {' or '.join(_TRAILING)}, not {trailing!r}")
    if quotes is not None and quotes not in KINDS:
        raise RagError(f"no quotes called {quotes!r}; there are: {', '.join(KINDS)}")
    check_split(dev)
    check_language(language)
    variants = _variants(systems, answers)
    source = QuoteSource(
        Path(questions),
        None if qrels is None else Path(qrels),
        None if corpus is None else Path(corpus),
        None if index is None else Path(index),
        quotes,
        retriever,
        k,
        limit,
        seed,
    )
    folder = Path(out)
    settings = {
        "systems": [str(SystemSpec.parse(one)) for one in systems],
        "answers": answers,
        "quotes": quotes,
        "index": None if source.index is None else source.index.name,
        "recipe": retriever,
        "k": k,
        "limit": limit,
        "seed": seed,
        "dev": dev,
        "trailing": trailing,
        "repair": repair,
        "name": name,
        "licence": licence,
        "text_licence": text_licence,
        "language": language,
    }
    fixed = {
        "settings": settings,
        "data": source.record(),
        "prompts": {one.label: one.prompt() for one in variants},
        "versions": versions(),
    }
    with writing(folder):
        build = _Build(folder, source, variants, fixed, progress or no_progress)
        build.begin(resume=resume or retry_failed)
        if planned:
            planned(build.plan())
        build.check_disk()
        for variant in variants:
            build.answer(variant, pace=Pace(concurrency), repair=repair, retry=retry_failed)
        return build.assemble(trailing, price)


def _variants(systems: Sequence[str], answers: int) -> list[_Variant]:
    """The systems with their seeds; raises `RagError` for one that cannot read given passages, or that repeats."""
    found: list[tuple[SystemSpec, SystemSpec, int | None]] = []  # without and with the seed
    for text in systems:
        spec = SystemSpec.parse(text)
        kind = spec.kind
        if not kind.searches_question or not kind.k:
            raise RagError(f"system {text!r} searches by itself; a collection needs one that reads given passages")
        if spec.retriever is not None or spec.k is not None:
            raise RagError(
                f"system {text!r}: the quotes are the same for all systems; name retriever and k of the build"
            )
        if "seed" not in kind.options:
            found.append((spec, spec, None))
            continue
        if answers > 1 and not spec.options.temperature:
            raise RagError(f"system {text!r} gives the same answer for every seed; add ,temperature=0.7")
        first = spec.options.seed or 0
        plain = replace(spec, options=replace(spec.options, seed=None))
        for one in range(first, first + answers):
            seeded = replace(spec, options=replace(spec.options, seed=one))
            found.append((plain, seeded, one))
    if not found:
        raise RagError("name at least one system, such as reader")
    if len({str(spec) for _, spec, _ in found}) < len(found):
        raise RagError("a system is named twice, with the same options; its answers would be the same")
    labels = number_duplicates(
        [(spec if seed else plain).label for plain, spec, seed in found], ["questions", "left-out"]
    )
    return [_Variant(label, plain.label, spec, seed) for label, (plain, spec, seed) in zip(labels, found, strict=True)]


class _GivenQuotes:
    """A retriever that finds the quotes of the question that a thread asks, in their order."""

    name = "quotes"

    def __init__(self) -> None:
        self._here = threading.local()

    def asking(self, quotes: Sequence[Passage]) -> None:
        """Set the quotes of the next search in this thread."""
        self._here.quotes = quotes

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the quotes, all with the same score."""
        return [[Hit(quote, 1.0) for quote in self._here.quotes[:k]] for _ in queries]


class _Build:
    """A build in its folder, which this process has locked."""

    def __init__(
        self,
        folder: Path,
        source: QuoteSource,
        variants: Sequence[_Variant],
        fixed: dict[str, Any],
        progress: Progress,
    ) -> None:
        self._folder, self._source, self._variants = folder, source, variants
        self._fixed, self._progress = fixed, progress
        self._record: dict[str, Any] = {}
        self._questions: list[BenchQuestion] = []

    # --- questions and quotes ---------------------------------------------------------------------------------

    def begin(self, *, resume: bool) -> None:
        """Start a build, or continue the one in the folder; finds the quotes if they are missing."""
        if (self._folder / MANIFEST).exists():
            self._record = self._continued(resume=resume)
        else:
            check_empty(self._folder)
            self._record = self._new()
        path = self._folder / QUESTIONS
        if "quotes" not in self._record:
            found = find_quotes(self._source, self._progress)  # before the first file: a wrong option leaves none
            write_manifest(self._folder, self._record)
            write_atomic(path, (dumps(one.row()) for one in found.questions))
            write_atomic(self._folder / LEFT_OUT, map(dumps, found.left_out))
            self._record["quotes"] = found.record | {"sha256": sha256_file(path)}
            write_manifest(self._folder, self._record)
        elif not path.is_file() or sha256_file(path) != self._record["quotes"]["sha256"]:
            raise RagError(f"{path} was changed after the build wrote it; name a new folder to start again")
        self._questions = read_bench_questions(path)
        told = {one.language for one in self._questions if one.language and is_language(one.language)}
        chosen = self._record["settings"]["language"]
        self._record["language"] = sorted(told) if chosen is None else [chosen]

    def _new(self) -> dict[str, Any]:
        settings = self._fixed["settings"]
        return {
            "collection_version": VERSION,
            "name": settings["name"] or self._folder.resolve().name,
            "complete": False,
            "licence": {"answers": settings["licence"], "texts": settings["text_licence"]},
            "command": command(),
            "date": datetime.now(UTC).date().isoformat(),
            **self._fixed,
            "split": {"dev": settings["dev"], "seed": settings["seed"]},
            "systems": {},
        }

    def _continued(self, *, resume: bool) -> dict[str, Any]:
        if not resume:
            raise RagError(f"{self._folder} holds a collection: resume it (--resume), or name another folder")
        record = read_manifest(self._folder)
        if "settings" not in record or "packed" in record:
            made = "imported" if "settings" not in record else "packed with labels, which building would drop"
            raise RagError(f"{self._folder} cannot be continued: it was {made}; name a new folder")
        before, now = record["settings"], self._fixed["settings"]
        changed = [key for key in now if key not in _ON_CARD and before.get(key) != now[key]]
        both = record.get("prompts", {}).keys() & self._fixed["prompts"].keys()  # others follow from the systems
        changed += [f"prompt of {one}" for one in sorted(both) if record["prompts"][one] != self._fixed["prompts"][one]]
        others = self._fixed.keys() - {"settings", "prompts"}
        changed += [key for key in self._fixed if key in others and record.get(key) != self._fixed[key]]
        if changed:
            raise RagError(
                f"{self._folder} cannot be continued: it was started with other {', '.join(changed)}; "
                "name a new folder to start again"
            )
        settings = before | {key: now[key] for key in _ON_CARD if now[key] is not None}
        licence = {"answers": settings["licence"], "texts": settings["text_licence"]}
        return record | {"settings": settings, "name": settings["name"] or record["name"], "licence": licence}

    def plan(self) -> Plan:
        """Return what there is to do."""
        asked, times = len(self._questions), len(self._variants)
        return Plan(asked, self._record["quotes"]["left_out"], asked * times, self._done(), self._bytes())

    def _done(self) -> int:
        paths = [self._folder / one.file for one in self._variants]
        return sum(path.read_bytes().count(b"\n") for path in paths if path.exists())

    def _bytes(self) -> int:
        """The disk that the files will take: each answer repeats its quotes, HAGRID's files hold them twice."""
        quoted = sum(len(quote.text.encode()) for one in self._questions for quote in one.passages)
        times = len(self._variants)
        return quoted * (times + 3) + len(self._questions) * times * _PER_ANSWER

    def check_disk(self) -> None:
        """Raise `RagError` if the disk is too small for what is left to do."""
        there = folder_size(self._folder)
        free, needed = shutil.disk_usage(self._folder).free, self._bytes() - there
        if needed > free:
            raise RagError(f"{self._folder}: about {needed / 1e6:,.0f} MB are needed, {free / 1e6:,.0f} MB are free")

    # --- answers ----------------------------------------------------------------------------------------------

    def answer(self, variant: _Variant, *, pace: Pace, repair: bool, retry: bool) -> None:
        """Ask every question that the system has not answered, one row each."""
        path, told = self._folder / variant.file, self._record["systems"].get(variant.label)
        if told is not None:
            if not path.is_file() or sha256_file(path) != told["sha256"]:
                raise RagError(f"{path} was changed after the build wrote it; name a new folder to start again")
            if not (retry and told["failed"]):
                return
            del self._record["systems"][variant.label]  # its answers are about to change
            self._record["complete"] = False
            write_manifest(self._folder, self._record)
        given = _GivenQuotes()
        system = _opened(variant, max(len(one.passages) for one in self._questions), given, repair=repair)
        settings = {
            "system": system.name,
            "questions": self._record["quotes"]["sha256"],
            "versions": self._fixed["versions"],
            "command": command(),
        }

        def ask(one: BenchQuestion) -> dict[str, Any]:
            given.asking(one.passages)
            answer = answer_or_abstain(system, replace(one.question, gold=()))
            row = to_row(replace(to_collected(answer, one.passages, repaired=repair), gold=one.question.gold))
            del row["passages"]  # which the question has
            return row

        with Journal(path, settings, resume=path.exists()) as journal:
            pending([one.question for one in self._questions], journal.done)
            left = self._questions[len(journal.done) :]
            done, total = len(journal.done), len(self._questions)
            for row in map_in_order(ask, left, pace):
                journal.write(row)
                done += 1
                self._progress(f"answering with {variant.label}", done, total)
            if retry and journal.failed:
                again = [one for one in self._questions if one.question.id in set(journal.failed)]
                for number, row in enumerate(map_in_order(ask, again, pace), 1):
                    journal.renew(row)
                    self._progress(f"asking {variant.label} again", number, len(again))
        failed = sum(bool(row.get("failed")) for _, row in read_objects(path))
        prompt = self._fixed["prompts"][variant.label]
        facts = {"spec": str(variant.spec), "seed": variant.seed, "prompt": prompt, "name": system.name}
        facts |= {"failed": failed, "sha256": sha256_file(path)}
        self._record["systems"][variant.label] = facts
        write_manifest(self._folder, self._record)

    # --- the collection ---------------------------------------------------------------------------------------

    def assemble(self, trailing: Trailing, price: tuple[float, float] | None) -> Collection:
        """Write the collection from the journals."""
        record, reasons = self._record, Counter[str]()
        counts = {one.label: Counter[str]() for one in self._variants}
        tokens = {one.label: [0, 0, 0] for one in self._variants}
        quoting: set[str] = set()
        cut = 0

        def kept() -> Iterator[CitedAnswer]:
            nonlocal cut
            for answer, label, fault in self._sorted_out(trailing):
                counts[label][fault["reason"] if fault else "kept"] += 1
                if (used := answer.extra.get("tokens")) is not None:
                    tokens[label] = [tokens[label][0] + used["read"], tokens[label][1] + used["written"], 1]
                if fault is None:
                    cut += "cut" in answer.extra
                    if any(citation.origin == "copied" for one in answer.sentences for citation in one.citations):
                        quoting.add(label)
                    yield answer

        def left_out() -> Iterator[str]:
            for _, row in read_objects(self._folder / LEFT_OUT):
                reasons[row["reason"]] += 1
                yield dumps(row)
            for _, _, fault in self._sorted_out(trailing):
                if fault is not None:
                    reasons[fault["reason"]] += 1
                    yield dumps(fault)

        self._progress("writing", 0, len(self._questions))
        new = self._folder / NEW
        write_atomic(new / ANSWERS, write_answers(kept()))
        write_atomic(new / FILTERED, left_out())
        for label, counted in counts.items():
            read, written, some = tokens[label]
            used = {"read": read, "written": written} if some else None
            record["systems"][label] |= {
                "asked": counted.total(),
                "kept": counted.pop("kept", 0),
                "filtered": dict(sorted(counted.items())),
                "tokens": used,
                "cost": cost(read, written, price) if used and price else None,
                "quoting": label in quoting,
            }
        record["systems"] = {one.label: record["systems"][one.label] for one in self._variants}
        known = [one["tokens"] for one in record["systems"].values() if one["tokens"]]
        record["tokens"] = {key: sum(one[key] for one in known) for key in ("read", "written")} if known else None
        spent = [one["cost"] for one in record["systems"].values() if one["cost"] is not None]
        record["cost"] = sum(spent) if spent else None
        record["filtered"] = dict(sorted(reasons.items()))
        record["cut"] = cut
        if not any(one["kept"] for one in record["systems"].values()):
            (new / FILTERED).replace(self._folder / FILTERED)
            raise RagError(f"{self._folder}: no answer keeps to the format; {FILTERED} lists the reasons")
        return publish(self._folder, record)

    def _sorted_out(self, trailing: Trailing) -> Iterator[tuple[CitedAnswer, str, dict[str, Any] | None]]:
        """Yield each answer, the label of its system, and its row of filtered.jsonl if it is left out."""
        with ExitStack() as stack:
            journals = [read_objects(self._folder / one.file) for one in self._variants]
            for journal in journals:
                stack.callback(journal.close)  # type: ignore[attr-defined]  # a generator
            for asked, *found in zip(self._questions, *journals, strict=True):
                yield from self._of_question(asked, found, trailing)

    def _of_question(
        self, asked: BenchQuestion, found: Sequence[tuple[str, dict[str, Any]]], trailing: Trailing
    ) -> Iterator[tuple[CitedAnswer, str, dict[str, Any] | None]]:
        passages = [passage_row(quote) | {"rank": rank} for rank, quote in enumerate(asked.passages, 1)]
        seen: dict[tuple[object, ...], str] = {}
        number = 0
        for variant, (where, row) in zip(self._variants, found, strict=True):
            if row["id"] != asked.question.id:
                raise RagError(f"{where}: the answer to {asked.question.id!r} is not in its place")
            answer = _placed(from_row(row | {"passages": passages}, where), row)
            fault = fault_of(answer)
            if fault is None:
                answer = grouped(answer, trailing)
                text, key = marker_in_text(answer), identity(answer)
                if text is not None:
                    fault = "marker-in-text", text[:60]
                elif key in seen:
                    fault = "duplicate", f"of answer {seen[key]}"
                else:
                    number += 1
                    seen[key] = f"{asked.question.id}/{number}"
            if fault is not None:
                yield answer, variant.label, _filtered(answer, variant, *fault)
            else:
                yield self._finished(answer, variant, number), variant.label, None

    def _finished(self, answer: CitedAnswer, variant: _Variant, number: int) -> CitedAnswer:
        """The answer with its number, and the facts of its system besides."""
        copied = all(citation.origin == "copied" for one in answer.sentences for citation in one.citations)
        prompt = self._fixed["prompts"][variant.label]
        extra = {
            "system": variant.system,
            "dataset": str(self._record["name"]),
            "query_id": answer.id,
            "answer_type": "extractive" if copied else "generative",
            **({} if prompt is None else {"prompt": f"{prompt['name']}@{prompt['sha256'][:8]}"}),
            **({} if variant.seed is None else {"seed": variant.seed}),
            **{key: answer.extra[key] for key in ("tokens", "cut") if key in answer.extra},
        }
        return replace(answer, id=f"{answer.id}/{number}", extra=extra)


def _opened(variant: _Variant, most: int, given: _GivenQuotes, *, repair: bool) -> System:
    spec = variant.spec
    system = open_system(spec.name, open_index(None), spec.options, k=most, retriever=given)
    if not repair and isinstance(system, RetrieveThenRead) and isinstance(system.generator, RepairedGenerator):
        return replace(system, generator=system.generator.generator)  # the citations as the model wrote them
    return system


def _filtered(answer: CitedAnswer, variant: _Variant, reason: str, detail: str) -> dict[str, Any]:
    return {
        "query_id": answer.id,
        "question": answer.question,
        "reason": reason,
        "detail": detail,
        "system": variant.label,
        "seed": variant.seed,
        "output": answer.plain if answer.output is None else answer.output,
    }


def _placed(answer: CitedAnswer, row: Mapping[str, Any]) -> CitedAnswer:
    """The answer with the offsets of its sentences, which a row has and `from_row` leaves out."""
    places = [(one["start"], one["end"]) for one in row["sentences"]]
    return replace(
        answer,
        sentences=tuple(
            replace(one, start=start, end=end) for one, (start, end) in zip(answer.sentences, places, strict=True)
        ),
    )
