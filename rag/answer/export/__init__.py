"""One answer in other formats. The functions are pure: a `Link` says what URL a passage has."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from autoais.base.io.jsonl import dumps
from rag.answer.export.anthropic import to_anthropic
from rag.answer.export.bibtex import to_bibtex
from rag.answer.export.csl import to_csl
from rag.answer.export.html import to_html
from rag.answer.export.markdown import to_markdown
from rag.answer.export.sources import Link, Span, abstention_notice
from rag.answer.export.threads import THREAD_FORMATS, ThreadTurn, export_thread
from rag.base.errors import UsageError
from rag.base.types import Answer

__all__ = [
    "FORMATS",
    "THREAD_FORMATS",
    "Format",
    "Link",
    "Span",
    "ThreadTurn",
    "abstention_notice",
    "check_format",
    "export_answer",
    "export_thread",
    "to_anthropic",
    "to_bibtex",
    "to_csl",
    "to_html",
    "to_markdown",
]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of a file: its media type, the end of a file name, and the function that writes it.

    The function takes the answer, the `Link`, the name of what the pages are part of, and the day they were read.
    """

    media_type: str
    suffix: str
    write: Callable[[Answer, Link | None, str | None, date | None], str]


FORMATS = {
    "markdown": Format("text/markdown; charset=utf-8", ".md", lambda answer, link, *_: to_markdown(answer, link)),
    "html": Format("text/html; charset=utf-8", ".html", lambda answer, link, *_: to_html(answer, link)),
    "csl": Format(
        "application/vnd.citationstyles.csl+json",
        ".json",
        lambda answer, link, container, accessed: _json(to_csl(answer, link, container=container, accessed=accessed)),
    ),
    "bibtex": Format(
        "application/x-bibtex; charset=utf-8",
        ".bib",
        lambda answer, link, container, accessed: to_bibtex(answer, link, container=container, accessed=accessed),
    ),
    "anthropic": Format("application/json", ".json", lambda answer, *_: _json(to_anthropic(answer))),
}
"""The formats by name."""


def export_answer(
    answer: Answer,
    to: str,
    link: Link | None = None,
    *,
    container: str | None = None,
    accessed: date | None = None,
) -> str:
    """Return the answer as the text of a file in one of `FORMATS`; raises `UsageError` for another name.

    `container` and `accessed` are for the formats of bibliographies (`to_csl`).
    """
    check_format(to)
    return FORMATS[to].write(answer, link, container, accessed)


def check_format(to: str) -> None:
    """Raise `UsageError` unless it is the name of one of `FORMATS`."""
    if to not in FORMATS:
        raise UsageError(f"no format {to!r}; there are: {', '.join(FORMATS)}")


def _json(value: object) -> str:
    return dumps(value, indent=2) + "\n"
