"""`rag collect build`: from questions to a collection of cited answers, killed and resumed at any moment.

The answers of each system are journaled in `raw/`; the files of the collection follow from them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer, from_row, to_row, write_answers
from autoais.base.io.jsonl import dumps, read_objects, write_atomic
from autoais.base.io.provenance import command, sha256_file, versions
from autoais.base.models.pace import AUTO, Pace
from autoais.base.progress import Progress, no_progress
from rag.answer.llms import cost
from rag.answer.specs import SystemSpec
from rag.answer.system import answer_or_abstain, map_in_order
from rag.base.errors import RagError, check_list, check_type
from rag.bench.collections.collected import Trailing, fault_of, group_sentences, identity, marker_in_text, with_quotes
from rag.bench.collections.folder import (
    ANSWERS,
    MANIFEST,
    NEW,
    OMITTED_ANSWERS,
    RAW,
    VERSION,
    Collection,
    check_language,
    check_split,
    is_language,
    lock_collection,
    publish,
    read_manifest,
)
from rag.bench.collections.quotes import QuoteSource, find_quotes
from rag.bench.collections.variants import GivenQuotes, Variant, read_variants
from rag.bench.output_folder import check_file, check_same, find_differences, write_record, write_rows
from rag.bench.question_files import BenchQuestion, passage_row, read_bench_questions

QUESTIONS, OMISSIONS = f"{RAW}/questions.jsonl", f"{RAW}/left-out.jsonl"
DEV = 0.2
_TRAILING = ("own", "attach")
_ON_CARD = ("name", "licence", "text_licence", "language")  # settings of a build that may still change


@dataclass(frozen=True, slots=True)
class Plan:
    """What a build will do: `answers` to ask for in all, `answers_done` of them."""

    questions: int
    omission_count: int
    answers: int
    answers_done: int


def build_collection(
    output_folder: str | Path,
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
    on_plan: Callable[[Plan], None] | None = None,
) -> Collection:
    """Let systems answer questions from numbered quotes, and write a collection in HAGRID's form to the folder
    `output_folder`.

    `questions` is a file in any format of `autoais.read_questions`; `quotes` says where their quotes come from
    (`given`, `gold` or `retrieved`, see the handbook; default: what the files allow). `systems` are names as for
    `rag.open_system`, with options after commas. `answers` asks each language model so often, with as many seeds; its
    temperature has to be above 0. `limit` draws a sample of the questions, `dev` is the share of the questions in the
    development part; both by `seed`. `trailing` says what becomes of uncited sentences at the end. Citations are those
    that a model wrote, unless `repair` checks them first. `licence` is that of the answers, `text_licence` that of
    questions and quotes. `language` is a code such as `en`, for the card (default: the field `language` of the
    questions). `price` (input, output) is per million tokens.

    `resume` continues a stopped build, which ends with the same files; `retry_failed` also asks again where a model
    failed. `on_plan` is called with what will be done, before it begins. Raises `RagError` if `output_folder` holds
    something else, or a build with other settings or data, and if another process is writing it.
    """
    check_type("output_folder", output_folder, "a folder (str or Path)", str, Path)
    check_list("systems", systems)
    Pace(concurrency)  # checks it
    for option, number in (("answers", answers), ("limit", limit)):
        if number is not None and number < 1:
            raise RagError(f"{option} must be at least 1, not {number}")
    if trailing not in _TRAILING:
        raise RagError(f"trailing should be {' or '.join(_TRAILING)}, not {trailing!r}")
    check_split(dev)
    check_language(language)
    variants = read_variants(systems, answers)
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
    folder = Path(output_folder)
    settings = {
        "systems": [str(SystemSpec.parse(system)) for system in systems],
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
    facts = {
        "settings": settings,
        "data": source.record(),
        "prompts": {variant.label: variant.prompt() for variant in variants},
        "versions": versions(),
    }
    with lock_collection(folder):
        build = _Build(folder, source, variants, facts, progress or no_progress, resume=resume or retry_failed)
        if on_plan:
            on_plan(build.plan())
        for variant in variants:
            build.answer(variant, pace=Pace(concurrency), repair=repair, retry=retry_failed)
        return build.assemble(trailing, price)


class _Build:
    """A build in its folder, which this process has locked."""

    def __init__(
        self,
        folder: Path,
        source: QuoteSource,
        variants: Sequence[Variant],
        facts: dict[str, Any],
        progress: Progress,
        *,
        resume: bool,
    ) -> None:
        """Start a build, or continue the one in the folder; finds the quotes if they are missing."""
        self._folder, self._source, self._variants = folder, source, variants
        self._facts, self._progress = facts, progress
        is_started = (folder / MANIFEST).exists()
        self._record = self._continue_build(resume=resume) if is_started else self._new()
        self._questions = self._open_questions()
        language = self._record["settings"]["language"]
        languages = {question.language for question in self._questions}
        self._record["language"] = (
            sorted(code for code in languages if code and is_language(code)) if language is None else [language]
        )

    # --- questions and quotes ---------------------------------------------------------------------------------

    def _open_questions(self) -> list[BenchQuestion]:
        path = self._folder / QUESTIONS
        if "quotes" not in self._record:
            selection = find_quotes(self._source, self._progress)  # before the first file: a wrong option leaves none
            self._write()
            write_atomic(path, (dumps(question.row()) for question in selection.questions))
            write_atomic(self._folder / OMISSIONS, map(dumps, selection.omissions))
            self._record["quotes"] = selection.record | {"sha256": sha256_file(path)}
            self._write()
        else:
            check_file(path, self._record["quotes"]["sha256"])
        return read_bench_questions(path)

    def _write(self) -> None:
        write_record(self._folder / MANIFEST, self._record)

    def _new(self) -> dict[str, Any]:
        settings = self._facts["settings"]
        return {
            "collection_version": VERSION,
            "name": settings["name"] or self._folder.resolve().name,
            "complete": False,
            "licence": {"answers": settings["licence"], "texts": settings["text_licence"]},
            "command": command(),
            "date": datetime.now(UTC).date().isoformat(),
            **self._facts,
            "split": {"dev": settings["dev"], "seed": settings["seed"]},
            "systems": {},
        }

    def _continue_build(self, *, resume: bool) -> dict[str, Any]:
        if not resume:
            raise RagError(f"{self._folder} holds a collection: resume it (--resume), or name another folder")
        record = read_manifest(self._folder)
        if "settings" not in record or "packed" in record:
            origin = "imported" if "settings" not in record else "packed with labels, which building would drop"
            raise RagError(f"{self._folder} cannot be continued: it was {origin}; name a new folder")
        before, now = record["settings"], self._facts["settings"]
        differences = [key for key in find_differences(before, now) if key not in _ON_CARD]
        prompts = record.get("prompts", {})
        common_prompts = {label: prompt for label, prompt in self._facts["prompts"].items() if label in prompts}
        differences += [f"prompt of {label}" for label in find_differences(prompts, common_prompts)]
        differences += [key for key in find_differences(record, self._facts) if key not in ("settings", "prompts")]
        check_same(self._folder, differences)
        settings = before | {key: now[key] for key in _ON_CARD if now[key] is not None}
        licence = {"answers": settings["licence"], "texts": settings["text_licence"]}
        return record | {"settings": settings, "name": settings["name"] or record["name"], "licence": licence}

    def plan(self) -> Plan:
        """Return what there is to do."""
        count = len(self._questions)
        return Plan(count, self._record["quotes"]["left_out"], count * len(self._variants), self._count_answers())

    def _count_answers(self) -> int:
        paths = [self._folder / variant.file for variant in self._variants]
        return sum(path.read_bytes().count(b"\n") for path in paths if path.exists())

    # --- answers ----------------------------------------------------------------------------------------------

    def answer(self, variant: Variant, *, pace: Pace, repair: bool, retry: bool) -> None:
        """Ask every question that the system has not answered, one row each."""
        path, former_facts = self._folder / variant.file, self._record["systems"].get(variant.label)
        if former_facts is not None:
            check_file(path, former_facts["sha256"])
            if not (retry and former_facts["failed"]):
                return
            del self._record["systems"][variant.label]  # its answers are about to change
            self._record["complete"] = False
            self._write()
        retriever = GivenQuotes()
        max_quotes = max(len(question.passages) for question in self._questions)
        system = variant.open_system(max_quotes, retriever, repair=repair)
        settings = {
            "system": system.name,
            "questions": self._record["quotes"]["sha256"],
            "versions": self._facts["versions"],
            "command": command(),
        }

        def ask(question: BenchQuestion) -> dict[str, Any]:
            retriever.set_quotes(question.passages)
            answer = answer_or_abstain(system, replace(question.question, gold=()))
            row = to_row(
                replace(with_quotes(answer, question.passages, is_repaired=repair), gold=question.question.gold)
            )
            del row["passages"]  # which the question has
            return row

        write_rows(
            path,
            self._questions,
            settings,
            lambda questions: map_in_order(ask, questions, pace),
            self._progress,
            f"answering with {variant.label}",
            f"asking {variant.label} again" if retry else None,
        )
        failure_count = sum(bool(row.get("failed")) for _, row in read_objects(path))
        prompt = self._facts["prompts"][variant.label]
        facts = {"spec": str(variant.spec), "seed": variant.seed, "prompt": prompt, "name": system.name}
        facts |= {"failed": failure_count, "sha256": sha256_file(path)}
        self._record["systems"][variant.label] = facts
        self._write()

    # --- the collection ---------------------------------------------------------------------------------------

    def assemble(self, trailing: Trailing, price: tuple[float, float] | None) -> Collection:
        """Write the collection from the journals."""
        record = self._record
        counts = {variant.label: Counter[str]() for variant in self._variants}
        tokens = {variant.label: [0, 0, 0] for variant in self._variants}
        quoting: set[str] = set()
        omissions = [row for _, row in read_objects(self._folder / OMISSIONS)]
        cut = 0

        def valid_answers() -> Iterator[CitedAnswer]:
            nonlocal cut
            for answer, label, fault in self._sort_answers(trailing):
                counts[label][fault["reason"] if fault else "kept"] += 1
                if (usage := answer.extra.get("tokens")) is not None:
                    tokens[label] = [tokens[label][0] + usage["read"], tokens[label][1] + usage["written"], 1]
                if fault is not None:
                    omissions.append(fault)
                    continue
                cut += "cut" in answer.extra
                if any(citation.origin == "copied" for sentence in answer.sentences for citation in sentence.citations):
                    quoting.add(label)
                yield answer

        self._progress("writing", 0, len(self._questions))
        new = self._folder / NEW
        write_atomic(new / ANSWERS, write_answers(valid_answers()))
        write_atomic(new / OMITTED_ANSWERS, map(dumps, omissions))
        for label, reason_counts in counts.items():
            tokens_read, tokens_written, has_tokens = tokens[label]
            usage = {"read": tokens_read, "written": tokens_written} if has_tokens else None
            record["systems"][label] |= {
                "asked": reason_counts.total(),
                "kept": reason_counts.pop("kept", 0),
                "filtered": dict(sorted(reason_counts.items())),
                "tokens": usage,
                "cost": cost(tokens_read, tokens_written, price) if usage and price else None,
                "quoting": label in quoting,
            }
        record["systems"] = {variant.label: record["systems"][variant.label] for variant in self._variants}
        usages = [system["tokens"] for system in record["systems"].values() if system["tokens"]]
        record["tokens"] = {key: sum(usage[key] for usage in usages) for key in ("read", "written")} if usages else None
        costs = [system["cost"] for system in record["systems"].values() if system["cost"] is not None]
        record["cost"] = sum(costs) if costs else None
        record["filtered"] = dict(sorted(Counter(row["reason"] for row in omissions).items()))
        record["cut"] = cut
        if not any(system["kept"] for system in record["systems"].values()):
            (new / OMITTED_ANSWERS).replace(self._folder / OMITTED_ANSWERS)
            raise RagError(f"{self._folder}: no answer keeps to the format; {OMITTED_ANSWERS} lists the reasons")
        return publish(self._folder, record)

    def _sort_answers(self, trailing: Trailing) -> Iterator[tuple[CitedAnswer, str, dict[str, Any] | None]]:
        """Yield each answer, the label of its system, and its row of filtered.jsonl if it is left out."""
        journals = [read_objects(self._folder / variant.file) for variant in self._variants]
        for question, *rows in zip(self._questions, *journals, strict=True):
            yield from self._of_question(question, rows, trailing)

    def _of_question(
        self, question: BenchQuestion, rows: Sequence[tuple[str, dict[str, Any]]], trailing: Trailing
    ) -> Iterator[tuple[CitedAnswer, str, dict[str, Any] | None]]:
        passages = [passage_row(quote) | {"rank": rank} for rank, quote in enumerate(question.passages, 1)]
        numbers: dict[tuple[object, ...], str] = {}
        number = 0
        for variant, (source, row) in zip(self._variants, rows, strict=True):
            if row["id"] != question.question.id:
                raise RagError(f"{source}: the answer to {question.question.id!r} is not in its place")
            answer = _restore_offsets(from_row(row | {"passages": passages}, source), row)
            fault = fault_of(answer)
            if fault is None:
                answer = group_sentences(answer, trailing)
                text, key = marker_in_text(answer), identity(answer)
                if text is not None:
                    fault = "marker-in-text", text[:60]
                elif key in numbers:
                    fault = "duplicate", f"of answer {numbers[key]}"
                else:
                    number += 1
                    numbers[key] = f"{question.question.id}/{number}"
            if fault is not None:
                yield answer, variant.label, _omission_row(answer, variant, *fault)
            else:
                yield self._finish_answer(answer, variant, number), variant.label, None

    def _finish_answer(self, answer: CitedAnswer, variant: Variant, number: int) -> CitedAnswer:
        """The answer with its number, and the facts of its system besides."""
        is_copied = all(citation.origin == "copied" for sentence in answer.sentences for citation in sentence.citations)
        prompt = self._facts["prompts"][variant.label]
        extra = {
            "system": variant.system,
            "dataset": str(self._record["name"]),
            "query_id": answer.id,
            "answer_type": "extractive" if is_copied else "generative",
            **({} if prompt is None else {"prompt": f"{prompt['name']}@{prompt['sha256'][:8]}"}),
            **({} if variant.seed is None else {"seed": variant.seed}),
            **{key: answer.extra[key] for key in ("tokens", "cut") if key in answer.extra},
        }
        return replace(answer, id=f"{answer.id}/{number}", extra=extra)


def _omission_row(answer: CitedAnswer, variant: Variant, reason: str, detail: str) -> dict[str, Any]:
    return {
        "query_id": answer.id,
        "question": answer.question,
        "reason": reason,
        "detail": detail,
        "system": variant.label,
        "seed": variant.seed,
        "output": answer.plain if answer.output is None else answer.output,
    }


def _restore_offsets(answer: CitedAnswer, row: Mapping[str, Any]) -> CitedAnswer:
    """The answer with the offsets of its sentences, which a row has and `from_row` leaves out."""
    offsets = [(sentence["start"], sentence["end"]) for sentence in row["sentences"]]
    return replace(
        answer,
        sentences=tuple(
            replace(sentence, start=start, end=end)
            for sentence, (start, end) in zip(answer.sentences, offsets, strict=True)
        ),
    )
