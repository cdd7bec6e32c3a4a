"""Terminal output: answers with marked spans, hit lists and progress; colour in a terminal, plain text in a pipe."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from autoais.base.progress import Progress
from rag.answer.export.rendering import short_answer_line
from rag.answer.export.sources import abstention_notice
from rag.answer.instructions import INSTRUCTION_WARNING, find_instructions
from rag.answer.yes_no import find_quoted_question
from rag.base.terminal import clean, megabytes, note, open_console, pluralize
from rag.base.types import Answer, Hit, Passage, Question

if TYPE_CHECKING:
    from rag.answer.answer_files import AnswerRun
    from rag.answer.conversation import Conversation
    from rag.answer.systems import SystemKind
    from rag.answer.verify import QuoteComparison
    from rag.index.files import FileRecord
    from rag.index.listing import FoundIndex
    from rag.retrieval.planning import Plan

_SPAN = "bold green"
_FILE_STEPS = ("fetching", "reading")  # of an index that changes, which count files or pages
_MAX_EXCERPT_LENGTH = 120  # characters of a sentence or quote in a note
_MAX_HEADINGS = 3  # headings of passages that are not cited
_MAX_HEADINGS_OF_SOURCES = 9  # where passages are shown whole
_LEAVING = ("quit", "exit")  # words that close the prompt
_PROMPT_HELP = (
    'A question may refer to the one before: "When was HAGRID published?", then "And who wrote it?".',
    "The arrow keys bring back earlier questions. quit, exit or Ctrl-D leaves.",
    "rag ask --help lists the options, such as --sources for whole passages.",
)
_INDENT = 4  # columns before the text of a passage in a terminal


def show_answer(answer: Answer, console: Console | None = None, *, sources: bool = False) -> None:
    """Print the answer with `[n]` markers, then a line of each cited passage around the quote, which is marked.

    `sources` shows these passages whole. The short answer comes first if the passages agree on it; otherwise it is bold
    in the text. Before an answer that begins with a quoted "Yes" or "No" stands what it is about.
    """
    console = console or open_console()
    if not answer.abstained:
        wrap = not console.is_terminal
        if question := find_quoted_question(answer):
            console.print(Text(clean(f'About "{question}":'), style="dim"), soft_wrap=wrap)
        if line := short_answer_line(answer):
            console.print(Text(clean(line), style="bold"), soft_wrap=wrap)
        text = Text(clean(str(answer)), style="" if answer.short_answer else "bold")
        if answer.short_answer and not line:
            text.highlight_regex(rf"(?<!\w){re.escape(clean(answer.short_answer))}(?!\w)", style="bold")
        console.print(text, soft_wrap=wrap)
    _show_below_text(answer, console, sources=sources)


def show_stream(answers: Iterable[Answer], *, sources: bool = False) -> Answer:
    """Print each sentence with its `[n]` markers when it is complete, then what `show_answer` prints below the text."""
    console = open_console()
    length = 0  # characters printed
    for answer in answers:
        text = str(answer)
        if not length and text and (line := short_answer_line(answer)):
            console.print(Text(clean(line), style="bold"), soft_wrap=True)
        if len(text) > length:
            console.print(Text(clean(text[length:]), style="bold"), end="", soft_wrap=True)
            console.file.flush()
            length = len(text)
    if length:
        console.print()
    _show_below_text(answer, console, sources=sources)
    return answer


def _show_below_text(answer: Answer, console: Console, *, sources: bool) -> None:
    if answer.abstained:
        _show_reason(answer, console)
    for search in answer.trace.get("searches", {}).get("queries", ()):
        console.print(clean(f"searched also for: {search['query']}"), style="dim", soft_wrap=True)
    for line in (*_repair_notes(answer), *_check_notes(answer), *_instruction_notes(answer)):
        console.print(clean(line), style="yellow", soft_wrap=True)
    _show_passages(console, answer, whole=sources)
    _show_confidence(answer, console)


def _repair_notes(answer: Answer) -> Iterator[str]:
    """A line if the text was cut, one for each unresolved marker, and one that counts repaired citations."""
    if answer.trace.get("repeated"):
        yield "cut: the model repeated itself"
    elif answer.trace.get("stopped") and not answer.abstained:
        yield "cut: the model reached its limit of tokens; a larger --context gives it more"
    for marker in answer.unresolved:
        yield f"{marker.marker} points to no passage ({marker.reason})"
    repair = answer.trace.get("repair", {})
    descriptions = {
        "moved": "moved to a supporting passage",
        "attached": "attached to an uncited sentence",
        "removed": "removed",
    }
    parts = [
        f"{pluralize(repair[kind], 'citation')} {description}"
        for kind, description in descriptions.items()
        if repair.get(kind)
    ]
    if parts:
        yield f"checked: {', '.join(parts)}"
    if drop_count := sum(revision["after"] is None for revision in answer.trace.get("revised", ())):
        is_searched = "checked" not in answer.trace or "attribution" in answer.trace
        source = "no passage supports" if is_searched else "nothing that is cited supports"
        yield f"left out: {pluralize(drop_count, 'sentence')} that {source}"


def _check_notes(answer: Answer) -> Iterator[str]:
    """A line for each sentence that is contradicted, or that what it cites does not support.

    Other uncited ones are counted (`note_uncited`).
    """
    if "checked" not in answer.trace:
        return
    from rag.answer.attribution.check import REJECTED, SentenceVerdict, describe_clash

    numbers = {hit.passage.id: n for n, _, hit in answer.number_hits()}
    for sentence, check in zip(answer.sentences, answer.trace["checked"], strict=False):
        is_contradicted = check["verdict"] == SentenceVerdict.CONTRADICTED
        if check["verdict"] not in REJECTED or not (sentence.citations or is_contradicted):
            continue
        markers = "".join(f" [{numbers[key]}]" for key in sentence.cites)
        claim = f'"{_shorten(sentence.text)}"{markers}'
        if not is_contradicted:
            yield f"not supported by what it cites: {claim}"
            continue
        details = [describe_clash(check["numbers"])] if len(check.get("numbers", ())) == 2 else []
        if "contradiction" in check:
            place = check["contradiction"]
            source = "" if sentence.citations or place["passage"] not in numbers else f" [{numbers[place['passage']]}]"
            details.append(f'"{_shorten(place["quote"])}"{source}')
        yield ": ".join(["contradicted", claim, *details])


def _instruction_notes(answer: Answer) -> Iterator[str]:
    """A line for each place of a cited passage that gives orders to a machine."""
    numbers = {hit.passage.id: n for n, _, hit in answer.number_hits()}
    for place in find_instructions(answer):
        yield f'[{numbers[place.passage]}] {INSTRUCTION_WARNING}: "{_shorten(place.quote or "")}"'


def _shorten(text: str) -> str:
    """A text in one line of at most 120 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_EXCERPT_LENGTH else f"{line[: _MAX_EXCERPT_LENGTH - 1]}…"


def _show_reason(answer: Answer, console: Console) -> None:
    console.print(clean(abstention_notice(answer)), style="yellow", soft_wrap=not console.is_terminal)
    if answer.confidence is not None and "raw" not in answer.trace:  # a model that was asked refuses all the same
        console.print("Use --min-confidence 0 to always answer.", style="dim", soft_wrap=True)


def _show_confidence(answer: Answer, console: Console) -> None:
    """Print the confidence of an answer; that of an abstention is for programs (`--json`)."""
    if answer.confidence is not None and not answer.abstained:
        console.print(f"\nconfidence {answer.confidence:.2f}", style="dim")


def _show_passages(console: Console, answer: Answer, *, whole: bool) -> None:
    spans: dict[str, list[tuple[int, int]]] = {}
    for sentence in answer.sentences:
        for citation in sentence.citations:
            spans.setdefault(citation.passage, []).append(citation.span)
    numbered_hits = answer.number_hits()
    count = len(spans)
    if not count and (whole or not answer.abstained):  # the best passage, which the notice of an abstention quotes
        count = min(1, len(numbered_hits))
    for n, _, hit in numbered_hits[:count]:
        cited_spans = spans.get(hit.passage.id, [])
        if whole:
            _show_passage(console, f"[{n}]", hit.passage, cited_spans)
        else:
            _show_excerpt(console, f"[{n}]", hit.passage, cited_spans, is_first=n == 1)
    if console.is_terminal and numbered_hits and not whole:
        name = "passages" if count else "closest passage"
        console.print(f"--sources shows the {name} whole.", style="dim", soft_wrap=True)
    max_headings = _MAX_HEADINGS_OF_SOURCES if whole else _MAX_HEADINGS
    others = numbered_hits[count:]
    if others:
        console.print("\nAlso found:" if count else "\nThe nearest passages:", style="dim")
    for n, _, hit in others[:max_headings]:
        console.print(_heading(f"[{n}]", hit.passage), soft_wrap=True)
    if len(others) > max_headings:
        console.print(f"and {len(others) - max_headings} more", style="dim", soft_wrap=True)


def note_uncited(answer: Answer) -> None:
    """Print the number of sentences without a source, if any, to standard error."""
    uncited = sum(not sentence.citations for sentence in answer.sentences)
    if uncited:
        share = f"{uncited} of {pluralize(len(answer.sentences), 'sentence')}"
        was_searched = answer.hits and ("checked" not in answer.trace or "attribution" in answer.trace)
        note(f"{share} without a source{': not supported by any retrieved passage' if was_searched else ''}")


def show_quote_checks(checks: Sequence["QuoteComparison"]) -> None:
    """Print each quote that is not where it was cited, then how many there are of each kind."""
    console = open_console()
    for check in checks:
        if check.status == "same":
            continue
        place = f"{check.answer}, sentence {check.sentence + 1}"
        target = "" if check.current_passage is None else f" -> {check.current_passage}"
        heading = f"{check.status}: {place}: {check.passage}{target}"
        console.print(Text(clean(heading), style="dim" if check.status == "moved" else "yellow"), soft_wrap=True)
        console.print(Text(clean(f"    {check.diff or check.quote}")), soft_wrap=True)
    counts = Counter(check.status for check in checks)
    kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("same", "moved", "changed", "gone"))
    console.print(f"{pluralize(len(checks), 'quote')}: {kinds}", soft_wrap=True)


def show_hits(question: Question, hits: Sequence[Hit]) -> None:
    """Print the hits of a query, best first, with scores."""
    console = open_console()
    console.print(f"{clean(question.text)}: {pluralize(len(hits), 'passage')}", soft_wrap=True)
    for rank, hit in enumerate(hits, 1):
        _show_passage(console, f"{rank}.", hit.passage, [], f", score {_score(hit.score)}")


def _score(score: float) -> str:
    """A score with three significant digits; whole if it is larger."""
    return f"{score:.0f}" if 1000 <= abs(score) < 1e15 else f"{score:#.3g}".removesuffix(".")


def _show_passage(
    console: Console, label: str, passage: Passage, spans: Sequence[tuple[int, int]], detail: str = ""
) -> None:
    console.print()
    console.print(_heading(label, passage).append(detail, style="dim"), soft_wrap=True)
    _print_text(console, passage.text, _merge_spans(passage.text, spans), clean)


def _show_excerpt(
    console: Console, label: str, passage: Passage, spans: Sequence[tuple[int, int]], *, is_first: bool
) -> None:
    """Print the heading of a passage, and one line of it around its first span."""
    if is_first:
        console.print()
    console.print(_heading(label, passage), soft_wrap=True)
    length = console.width - _INDENT - 2 if console.is_terminal else _MAX_EXCERPT_LENGTH  # 2 for what stands for a cut
    merged_spans = _merge_spans(passage.text, spans)
    first, last = cut_around(passage.text, merged_spans[0] if merged_spans else (0, 0), max(20, length))
    cut_before, cut_behind = ("…" * bool(text.strip()) for text in (passage.text[:first], passage.text[last:]))
    offset = len(cut_before) - first
    inner_spans = [
        (max(start, first) + offset, min(end, last) + offset)
        for start, end in merged_spans
        if start < last and end > first
    ]
    text = f"{cut_before}{passage.text[first:last]}{cut_behind}"
    _print_text(console, text, inner_spans, lambda part: clean(re.sub(r"\s+", " ", part)))


def _print_text(
    console: Console, text: str, spans: Sequence[tuple[int, int]], clean_part: Callable[[str], str]
) -> None:
    """Print a text with its spans coloured in a terminal, and marked with >> << elsewhere; spans do not overlap."""
    has_colour = console.is_terminal and not console.is_dumb_terminal
    opening, closing = ("", "") if has_colour else (">>", "<<")
    output, end = Text(), 0
    for start, stop in spans:
        output.append(clean_part(text[end:start]))
        output.append(opening + clean_part(text[start:stop]) + closing, style=_SPAN)
        end = stop
    output.append(clean_part(text[end:]))
    if console.is_terminal:
        console.print(Padding(output, (0, 0, 0, _INDENT)))
    else:
        console.print(output, soft_wrap=True)


def cut_around(text: str, span: tuple[int, int], length: int) -> tuple[int, int]:
    """Where a part of at most `length` characters of a text begins and ends: the span, and whole words beside it.

    A span that is longer is cut after a word. A third of the words beside a span stand before it, if there are so many.
    """
    start, end = span
    if end - start >= length:
        end_of_word = text.rfind(" ", start + length // 2, start + length)
        return start, end_of_word if end_of_word >= 0 else start + length
    beside = length - (end - start)
    first = max(0, start - max(beside // 3, beside - (len(text) - end)))
    last = min(len(text), first + length)
    if first > 0 and not (text[first - 1].isspace() or text[first].isspace()):  # in a word
        space = re.compile(r"\s").search(text, first, start)
        first = space.end() if space else start
    if last < len(text) and not (text[last - 1].isspace() or text[last].isspace()):
        spaces = list(re.finditer(r"\s", text[end:last]))
        last = end + spaces[-1].start() if spaces else end
    if first == last:  # all is one word, as in Chinese, of which a part is better than nothing
        last = min(len(text), first + length)
    before, after = text[first:start], text[end:last]
    return start - len(before.lstrip()), end + len(after.rstrip())


def _merge_spans(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order; those that overlap, or have only white space between them, are one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _heading(label: str, passage: Passage) -> Text:
    heading = Text(f"{label} ", style="cyan")
    heading.append(clean(passage.headings), style="bold")
    if passage.page is not None:
        heading.append(f", page {passage.page}")
    heading.append(f"  ({clean(passage.id)})", style="dim")
    return heading


def show_systems(systems: Mapping[str, "SystemKind"]) -> None:
    """Print a table of the systems."""
    from rich.table import Table

    table = Table("system", "answers with", "retriever, k", "needs", box=None, pad_edge=False)
    for name, kind in systems.items():
        table.add_row(name, clean(kind.description), f"{kind.retriever}, {kind.k}" if kind.k else "none", kind.requires)
    open_console().print(table)


def show_plan(plan: "Plan", price: float | None) -> None:
    """Print what each step of a plan takes, and all together; `price` is that of an hour of this machine."""
    from autoais.base.terminal import new_table

    console = open_console()
    table = new_table("step", "time", "disk", "memory to build", "memory to search")
    for step in plan.steps:
        sizes = (step.disk, step.memory, step.resident)
        table.add_row(step.name, duration(step.seconds), *map(megabytes, sizes))
    sizes = (plan.disk, plan.memory, plan.resident)
    table.add_row("in all", duration(plan.seconds), *map(megabytes, sizes), style="bold")
    console.print(f"{pluralize(plan.passages, 'passage')}; {plan.sampled:,} measured on {clean(plan.processor)}")
    console.print(table)
    for step in plan.steps:
        if step.why:
            console.print(clean(f"{step.name}: {step.why}"), soft_wrap=True)
    if price is not None:
        console.print(f"cost {plan.seconds / 3600 * price:,.2f} at {price:g} an hour")


def duration(seconds: float) -> str:
    """Format seconds: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3600:.1f} h"


def show_indexes(indexes: Sequence["FoundIndex"]) -> None:
    """Print the indexes that were found, one line each."""
    console = open_console()
    for index in indexes:
        if index.problem:
            console.print(clean(f"{index.path}: {index.problem}"), style="yellow", soft_wrap=True)
            continue
        parts = f", with {', '.join(index.parts)}" if index.parts else ""
        description = (
            f"{pluralize(index.passages, 'passage')} of {', '.join(index.sources)}{parts}, {megabytes(index.bytes)}"
        )
        console.print(clean(f"{index.path}: {description}"), soft_wrap=True)


def show_files(records: Sequence["FileRecord"]) -> None:
    """Print the files of an index with the number of their passages."""
    console = open_console()
    for record in records:
        notes = f", {record.bad:,} skipped" if record.bad else ""
        notes += f", repeats {record.twin}" if record.twin else ""
        notes += f", {'without ' if record.passages else ''}{record.loss}" if record.loss else ""
        notes += f", {len(record.repeats):,} more in other files" if record.repeats else ""
        console.print(clean(f"{record.name}: {pluralize(record.passages, 'passage')}{notes}"), soft_wrap=True)
    total = sum(record.passages for record in records)
    note(f"{pluralize(len(records), 'file')}, {pluralize(total, 'passage')}")


def show_passages(passages: Iterable[Passage]) -> None:
    """Print passages with their headings and ids."""
    console = open_console()
    for number, passage in enumerate(passages, 1):
        _show_passage(console, f"{number}.", passage, [])


def summarize_run(run: "AnswerRun", out: Path, price: tuple[float, float] | None) -> Iterator[str]:
    """The summary lines of a run of `rag answer`."""
    if run.served is not None:
        yield f"model server: {run.served}"
    if run.prompt_tokens or run.completion_tokens:
        cost = f": {run.cost(price):.4f} at the given price" if price else ""
        yield f"{run.prompt_tokens:,} input tokens, {run.completion_tokens:,} output tokens{cost}"
    hint = " (--retry-failed asks again)" if run.failed else ""
    counts = f"{run.answered:,} answered, {run.refused:,} refused, {run.failed:,} failed{hint}"
    yield f"{pluralize(run.answers, 'question')} in {out}: {counts}"


def converse(conversation: "Conversation", *, stream: bool = False, sources: bool = False) -> None:
    """Answer questions typed at a prompt until end of file (Ctrl-D), `quit` or `exit`; keeps an input history.

    A question may be a follow-up. One that fails is told in one line, and the prompt goes on; `help` says what to type.
    """
    import readline

    from rag.base.config import state_folder
    from rag.base.errors import UserError

    history = state_folder() / "history"
    with suppress(OSError):
        readline.read_history_file(history)
    before = readline.get_current_history_length()
    note("Ask a question. help says more; quit or Ctrl-D leaves.")
    try:
        while True:
            try:
                question = input("> ").strip()
            except (EOFError, KeyboardInterrupt):
                break
            if question.lower() in _LEAVING:
                return
            try:
                if question.lower() == "help":
                    for line in _PROMPT_HELP:
                        note(line)
                elif question:
                    _converse(conversation, question, stream=stream, sources=sources)
            except UserError as error:
                note(str(error))
        print(file=sys.stderr)  # noqa: T201  (ends the line of the prompt)
    finally:
        with suppress(OSError):
            _keep_history(history, readline.get_current_history_length() - before)


def _converse(conversation: "Conversation", question: str, *, stream: bool, sources: bool) -> None:
    standalone_question = conversation.make_standalone(question)
    if standalone_question != question:
        note(f"searched for: {standalone_question}")
    if stream:
        conversation.remember(question, show_stream(conversation.system.stream(standalone_question), sources=sources))
    else:
        answer = conversation.system.ask(standalone_question)
        conversation.remember(question, answer)
        show_answer(answer, sources=sources)
        note_uncited(answer)


def _keep_history(history: Path, new: int) -> None:
    import readline

    history.parent.mkdir(parents=True, exist_ok=True)
    history.touch(mode=0o600)
    readline.set_history_length(1000)
    if hasattr(readline, "append_history_file"):  # so that another prompt that was open meanwhile keeps its lines
        readline.append_history_file(new, history)
    else:
        readline.write_history_file(history)


@contextmanager
def run_progress(label: str, unit: str, resume_option: str) -> Iterator[Progress]:
    """A progress bar; a stopped run prints how far it got and how to continue."""
    position = (0, 0)
    with progress_bar(label, None, unit) as advance:

        def update(step: str, count: int, total: int) -> None:
            nonlocal position
            position = (count, total)
            advance(count, "", total)

        try:
            yield update
        except KeyboardInterrupt:
            note(f"stopped after {position[0]:,} of {position[1]:,} {unit}; {resume_option} continues from there")
            raise


@contextmanager
def files_progress(label: str) -> Iterator[Progress]:
    """A progress bar of files, and then of the passages that are encoded."""
    with progress_bar(label, None, "") as advance:
        yield lambda step, count, total: advance(count, "files" if step in _FILE_STEPS else f"passages, {step}", total)


@contextmanager
def step_bars(
    unit: Callable[[str], str | None],
) -> Iterator[tuple[Progress, Callable[[str], None]]]:
    """A progress bar for each step, and a function that prints a line and ends the bar before it.

    `unit` says what a step counts, None for bytes.
    """
    step = ""
    with ExitStack() as stack:
        advance: Advance | None = None

        def update(new_step: str, count: int, total: int) -> None:
            nonlocal step, advance
            if advance is None or new_step != step:
                stack.close()
                step, advance = new_step, stack.enter_context(progress_bar(new_step, total, unit(new_step)))
            advance(count, "", total)

        def log(line: str) -> None:
            nonlocal advance
            stack.close()
            advance = None
            note(line)

        yield update, log


@contextmanager
def step_progress(unit: str = "questions", way_to_resume: str = "--resume continues from there") -> Iterator[Progress]:
    """A progress bar for each step of a run, downloads in bytes; a stopped run prints how to continue."""
    step = "starting"
    with step_bars(lambda step: None if step.startswith("downloading") else unit) as (update, log):

        def report(new_step: str, count: int, total: int) -> None:
            nonlocal step
            step = new_step
            update(new_step, count, total)

        try:
            yield report
        except KeyboardInterrupt:
            log(f"stopped while {step}; {way_to_resume}")
            raise


@contextmanager
def build_progress(
    indexing: str | None = None,
) -> Iterator[tuple[Progress, Callable[[str], None]]]:
    """The bars of a build (`step_bars`); `indexing` is what that step counts, None for bytes."""
    units = {"fetching": "pages", "indexing": indexing, "building shards": ""}
    with step_bars(lambda step: units.get(step, "passages")) as report:
        yield report


class Advance(Protocol):
    """Updates a progress bar."""

    def __call__(self, count: int, extra: str, total: int | None = None) -> None:
        """Set the bar to `count` and show `extra` next to it; `total` replaces the bar's total."""
        ...


@contextmanager
def progress_bar(label: str, total: int | None, unit: str | None) -> Iterator[Advance]:
    """A progress bar with rate and time left on standard error, silent in a pipe; `unit` None counts bytes."""
    import rich.progress
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = open_console(stderr=True)
    count_columns = (
        (DownloadColumn(), TransferSpeedColumn()) if unit is None else (MofNCompleteColumn(), TextColumn(unit))
    )
    columns = (
        TextColumn("{task.description}", markup=False),  # the label may hold words of a server
        BarColumn(),
        *count_columns,
        TextColumn("{task.fields[extra]}"),
        TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(label, total=total, extra="")

        def advance(count: int, extra: str, total: int | None = None) -> None:
            progress.update(task, completed=count, extra=extra, total=total)

        yield advance
