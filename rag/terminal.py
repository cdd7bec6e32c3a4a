"""What people see: answers with marked spans, hit lists and progress; colour in a terminal, plain text in a pipe."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rag.citations import numbered, render
from rag.generators.answer_types import answer_type
from rag.types import Answer, Hit, Passage, Question

if TYPE_CHECKING:
    from rag.systems import Kind

_SPAN = "bold green"


def _console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def note(text: str) -> None:
    """A line for the person at the terminal, on standard error."""
    _console(stderr=True).print(_clean(text), soft_wrap=True)


def counted(n: int, noun: str) -> str:
    """`1 passage`, `1,200 passages`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def megabytes(n: int) -> str:
    """`1234567890` as `1,235 MB`."""
    return f"{n / 1e6:,.0f} MB"


_JOINERS = "\u200c\u200d\u200e\u200f"  # invisible, and needed to write Persian, Arabic or emoji


def _clean(text: str) -> str:
    """Without control characters and overrides, a passage must not drive the terminal; without empty lines."""
    text = re.sub(r"\n\s*\n", "\n", text)
    return "".join(c if c.isprintable() or c in "\n\t" + _JOINERS else " " if c.isspace() else "�" for c in text)


def show_answer(answer: Answer, console: Console | None = None) -> None:
    """The short answer, the answer with `[n]` markers, then the passages: the cited ones whole, their quotes marked."""
    console = console or _console()
    if answer.abstained:
        _show_reason(answer, console)
    else:
        wrap = not console.is_terminal
        # Of a question that asks for no name, date or number a few words are seldom the answer.
        short = answer.short_answer if answer_type(answer.question.text) else None
        if short:
            console.print(Text(_clean(short), style="bold"), soft_wrap=wrap)
        console.print(Text(_clean(render(answer)), style="" if short else "bold"), soft_wrap=wrap)
    for line in _mended(answer):
        console.print(_clean(line), style="yellow", soft_wrap=True)
    _show_passages(console, answer, [(n, hit) for n, _, hit in numbered(answer)])


def show_streamed(pieces: Iterator[str | Answer], console: Console | None = None) -> Answer:
    """A text as it comes, then the passages by the numbers that its writer saw, and the markers that point nowhere."""
    console = console or _console()
    answer = None
    for piece in pieces:
        if isinstance(piece, Answer):
            answer = piece
        else:
            console.print(Text(_clean(piece), style="bold"), end="", soft_wrap=True)
            console.file.flush()
    if answer is None:
        raise RuntimeError("a stream without an answer")
    if answer.sentences or answer.trace.get("raw"):
        console.print()
    if answer.abstained:
        _show_reason(answer, console)
    for line in _mended(answer):
        console.print(_clean(line), style="yellow", soft_wrap=True)
    by_id = {hit.passage.id: hit for _, _, hit in numbered(answer)}
    shown = dict.fromkeys([*answer.trace.get("shown", ()), *by_id])
    cited = {citation.passage for sentence in answer.sentences for citation in sentence.citations}
    listed = [(n, by_id[identifier]) for n, identifier in enumerate(shown, 1)]
    _show_passages(console, answer, sorted(listed, key=lambda one: one[1].passage.id not in cited))
    return answer


def _mended(answer: Answer) -> Iterator[str]:
    """What of the model's citations did not hold, a line each."""
    for one in answer.unresolved:
        yield f"{one.marker} points to no passage ({one.reason})"
    repair = answer.trace.get("repair", {})
    said = {
        "moved": "moved to a passage that supports it",
        "attached": "attached to a sentence without one",
        "removed": "taken away",
    }
    done = [f"{counted(repair[kind], 'citation')} {what}" for kind, what in said.items() if repair.get(kind)]
    if done:
        yield f"checked: {', '.join(done)}"


def _show_reason(answer: Answer, console: Console) -> None:
    what = "Failed" if answer.failed else "Not answered"
    console.print(_clean(f"{what}: {answer.reason}."), style="yellow", soft_wrap=True)
    if answer.confidence is not None:
        console.print("With --least 0 it answers in any case.", style="dim", soft_wrap=True)


def _show_passages(console: Console, answer: Answer, listed: Sequence[tuple[int, Hit]]) -> None:
    spans: dict[str, list[tuple[int, int]]] = {}
    for sentence in answer.sentences:
        for citation in sentence.citations:
            spans.setdefault(citation.passage, []).append((citation.start, citation.end))
    others = False
    for n, hit in listed:
        cited = spans.get(hit.passage.id)
        if cited or (n == 1 and not spans):
            _show_passage(console, f"[{n}]", hit.passage, cited or [])
        else:
            if not others:
                others = True
                console.print("\nAlso found:", style="dim")
            console.print(_heading(f"[{n}]", hit.passage), soft_wrap=True)


def show_uncited(answer: Answer) -> None:
    """How many sentences stand without a source, on standard error, where there are any."""
    uncited = sum(not sentence.citations for sentence in answer.sentences)
    if uncited:
        of = f"{uncited} of {counted(len(answer.sentences), 'sentence')}"
        note(f"{of} without a source{': no passage found says it' if answer.hits else ''}")


def show_hits(question: Question, hits: Sequence[Hit]) -> None:
    """A query's hits, best first, with scores."""
    console = _console()
    console.print(f"{_clean(question.text)}: {counted(len(hits), 'passage')}", soft_wrap=True)
    for rank, hit in enumerate(hits, 1):
        _show_passage(console, f"{rank}. {hit.score:.2f}", hit.passage, [])


def _show_passage(console: Console, label: str, passage: Passage, spans: Sequence[tuple[int, int]]) -> None:
    console.print()
    console.print(_heading(label, passage), soft_wrap=True)
    text, end = Text(), 0
    # In a pipe there is no colour to mark a span with.
    coloured = console.is_terminal and not console.is_dumb_terminal
    opening, closing = ("", "") if coloured else (">>", "<<")
    for start, stop in sorted(set(spans)):
        start, stop = max(start, end), max(stop, end)  # spans may overlap
        if start == stop:
            continue
        text.append(_clean(passage.text[end:start]))
        text.append(opening + _clean(passage.text[start:stop]) + closing, style=_SPAN)
        end = stop
    text.append(_clean(passage.text[end:]))
    console.print(Padding(text, (0, 0, 0, 4)) if console.is_terminal else text, soft_wrap=not console.is_terminal)


def _heading(label: str, passage: Passage) -> Text:
    heading = Text(f"{label} ", style="cyan")
    heading.append(_clean(passage.headings), style="bold")
    heading.append(f"  ({_clean(passage.id)})", style="dim")
    return heading


def show_evaluation(result: dict[str, Any]) -> None:
    """The result of `rag.evaluation.evaluate_files`: a table a run, then what has to be known to read it."""
    from rich.table import Table

    from autoais.terminal import clean, new_console

    console = new_console()
    console.print(f"{counted(result['topics'], 'topic')}, {result['relevant']:,} relevant {result['level']}")
    baseline = result["baseline"]
    for run in result["runs"]:
        against = baseline is not None and run["run"] != baseline
        columns = ("difference", "95 % interval", "p", "better", "worse") if against else ()
        table = Table("measure", "value", "95 % interval", "n", *columns, box=None, pad_edge=False)
        for column in table.columns[1:]:
            column.justify = "right"
        for name, mean in run["measures"].items():
            cells = [f"{mean['value']:.4f}", "[{:.4f}, {:.4f}]".format(*mean["interval95"]), str(mean["n"])]
            if against:
                one = mean["difference"]
                interval = "[{:+.4f}, {:+.4f}]".format(*one["interval95"])
                cells += [f"{one['value']:+.4f}", interval, f"{one['p']:.4f}", str(one["better"]), str(one["worse"])]
            table.add_row(name, *cells)
        role = ", the baseline" if run["run"] == baseline else ""
        console.print()
        console.print(clean(f"{run['run']} ({run['tag']}){role}"), style="bold")
        console.print(table)
        if against:
            console.print(clean(f"difference from {baseline}; p: {one['method']}, {one['resamples']:,} resamples"))
    if result["notes"]:
        console.print()
    for line in result["notes"]:
        console.print(clean(line))


def show_systems(systems: Mapping[str, "Kind"]) -> None:
    """What there is to answer with."""
    from rich.table import Table

    table = Table("system", "answers with", "searches", "needs", box=None, pad_edge=False)
    for name, kind in systems.items():
        table.add_row(name, kind.says, f"{kind.recipe}, {kind.k}" if kind.k else "nothing", kind.needs)
    _console().print(table)


@contextmanager
def progress_bar(what: str, total: int, unit: str | None) -> Iterator[Callable[[int, str], None]]:
    """A bar with rate and time left on standard error, silent in a pipe; `unit` None counts bytes."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = _console(stderr=True)
    counted = (DownloadColumn(), TransferSpeedColumn()) if unit is None else (MofNCompleteColumn(), TextColumn(unit))
    columns = (TextColumn(what), BarColumn(), *counted, TextColumn("{task.fields[extra]}"), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(what, total=total, extra="")
        yield lambda done, extra: progress.update(task, completed=done, extra=extra)
