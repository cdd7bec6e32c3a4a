"""A thread of questions and answers as one file: Markdown, an HTML page of its own, or rows of `answers.jsonl`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from autoais.base.io.jsonl import dumps
from rag.answer.attribution.check import LABELS, SentenceVerdict
from rag.answer.export.escaping import html_text, markdown_line, one_line
from rag.answer.export.html import answer_parts, check_parts, make_page, source_parts
from rag.answer.export.markdown import footnoted
from rag.answer.export.sources import Link
from rag.base.errors import UsageError
from rag.base.rows import write_answer
from rag.base.types import Answer


@dataclass(frozen=True, slots=True)
class ThreadTurn:
    """An answer of a thread, and the question as it was asked; `answer.question` is the one that was searched for.

    `verdicts` are those of the sentences, in order, or empty. `index` is the name of the index that was searched, and
    `link` gives the URLs of its passages.
    """

    question: str
    answer: Answer
    verdicts: tuple[SentenceVerdict, ...] = ()
    index: str | None = None
    link: Link | None = None

    @property
    def doubts(self) -> list[tuple[str, str]]:
        """The sentences that the judge does not find supported, with their verdicts in words.

        Empty if the answer has its checks with it (`trace["checked"]`): formats list them with what the source says.
        """
        if "checked" in self.answer.trace:
            return []
        accepted = (SentenceVerdict.SUPPORTED, SentenceVerdict.NO_CLAIM)
        return [
            (one_line(sentence.text), LABELS[verdict])
            for sentence, verdict in zip(self.answer.sentences, self.verdicts, strict=False)
            if verdict not in accepted
        ]


@dataclass(frozen=True, slots=True)
class ThreadFormat:
    """A format of a file: its media type, the end of a file name, and the function that writes it."""

    media_type: str
    suffix: str
    write: Callable[[str, Sequence[ThreadTurn]], str]


def export_thread(title: str, turns: Sequence[ThreadTurn], to: str) -> str:
    """Return a thread as the text of a file in one of `THREAD_FORMATS`; raises `UsageError` for another name.

    The HTML page needs no other file. Markdown and HTML list the sentences that the judge does not find supported.
    JSON is a list of rows that `autoais` reads, with the fields `asked` and `verdicts`.
    """
    if to not in THREAD_FORMATS:
        raise UsageError(f"no format {to!r}; there are: {', '.join(THREAD_FORMATS)}")
    return THREAD_FORMATS[to].write(title, turns)


def _write_markdown(title: str, turns: Sequence[ThreadTurn]) -> str:
    parts = [f"# {markdown_line(one_line(title))}\n"]
    for number, turn in enumerate(turns, 1):
        parts.append(f"## {markdown_line(one_line(turn.question))}\n")
        parts.append(footnoted(turn.answer, turn.link, f"{number}-") + "\n")
        if turn.doubts:
            lines = [f"- “{markdown_line(text, line_start=False)}”: {verdict}\n" for text, verdict in turn.doubts]
            parts.append(f"The judge doubts:\n\n{''.join(lines)}")
    return "\n".join(parts)


def _write_html(title: str, turns: Sequence[ThreadTurn]) -> str:
    heading = html_text(one_line(title))
    body = [f'<h1 dir="auto">{heading}</h1>\n']
    for number, turn in enumerate(turns, 1):
        prefix = f"turn-{number}-"
        body += [f'<section>\n<h2 dir="auto">{html_text(one_line(turn.question))}</h2>\n']
        body += [*answer_parts(turn.answer, prefix), *_doubts(turn)]
        body += check_parts(turn.answer, heading="h3", prefix=prefix)
        body += [*source_parts(turn.answer, turn.link, heading="h3", prefix=prefix), "</section>\n"]
    systems = ", ".join(dict.fromkeys(html_text(one_line(turn.answer.system)) for turn in turns))
    return make_page(heading, body, f"Answered by {systems}")


def _doubts(turn: ThreadTurn) -> Iterator[str]:
    if turn.doubts:
        items = "".join(
            f"<li>{html_text(verdict)}: “<bdi>{html_text(text)}</bdi>”</li>\n" for text, verdict in turn.doubts
        )
        yield f'<p>The judge doubts:</p>\n<ul class="doubts">\n{items}</ul>\n'


def _write_json(_title: str, turns: Sequence[ThreadTurn]) -> str:
    rows: list[dict[str, Any]] = []
    for number, turn in enumerate(turns, 1):
        row = write_answer(turn.answer, turn.index) | {"id": f"t{number}", "asked": turn.question}
        rows.append(row | {"verdicts": [verdict.value for verdict in turn.verdicts]} if turn.verdicts else row)
    return dumps(rows, indent=2) + "\n"


THREAD_FORMATS = {
    "markdown": ThreadFormat("text/markdown; charset=utf-8", ".md", _write_markdown),
    "html": ThreadFormat("text/html; charset=utf-8", ".html", _write_html),
    "json": ThreadFormat("application/json", ".json", _write_json),
}
"""The formats of a thread by name."""
