"""An answer as Markdown (CommonMark, with the footnotes of GitHub and pandoc): all text is shown as it is."""

import re
from collections.abc import Iterator
from typing import Literal

from rag.export.escaping import markdown_line, markdown_url, one_line, visible
from rag.export.rendering import Rendered, Writer
from rag.export.sources import Link, Source, cited_sources, not_answered
from rag.types import Answer

Style = Literal["footnotes", "links"]

_LINE_END = re.compile(r"([^\S\n]*\n(?:[^\S\n]*\n)*)")


def to_markdown(answer: Answer, link: Link | None = None, style: Style = "footnotes") -> str:
    """Return the answer as Markdown.

    Style `footnotes` has a footnote for each cited passage, with its title, its URL (`link`) and the quotes that
    support the answer. Style `links` is the text of `with_links`.
    """
    if style == "links":
        return f"{with_links(answer, link).text}\n"
    sources = cited_sources(answer, link)
    writer = Writer()
    _write(writer, answer, {source.number: source for source in sources}, footnotes=True)
    notes = "".join(f"\n[^{source.number}]: {_title(source)}{_quotes(source)}\n" for source in sources)
    return f"{writer.rendered().text}\n{notes}"


def with_links(answer: Answer, link: Link | None = None) -> Rendered:
    """The answer as Markdown with a link for each citation, `[[1]](url)`, and the list of sources behind.

    For chat programs, which show Markdown but drop annotations. The places are those of the links in the text.
    """
    sources = cited_sources(answer, link)
    writer = Writer()
    _write(writer, answer, {source.number: source for source in sources}, footnotes=False)
    if sources:
        writer.write("\n\nSources:\n")
    for source in sources:
        writer.write(f"\n{source.number}. {_title(source)}")
    return writer.rendered()


def _write(writer: Writer, answer: Answer, sources: dict[int, Source], *, footnotes: bool) -> None:
    if answer.abstained:
        writer.write(markdown_line(not_answered(answer)))
        return
    for position, (text, numbers) in enumerate(_stripped_pieces(answer)):
        writer.write(_lines(text, after_citation=position > 0))
        for place, number in enumerate(numbers):
            if footnotes:
                writer.cite(sources[number], f"[^{number}]")
                continue
            writer.write("" if place else " ")
            url = sources[number].url
            writer.cite(sources[number], f"[[{number}]]({markdown_url(url)})" if url else rf"\[{number}\]")


def _stripped_pieces(answer: Answer) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The pieces of the answer without blank lines around the whole: `\\` at the end would not be a line break."""
    pieces = [(visible(text).replace("\r\n", "\n").replace("\r", "\n"), numbers) for text, numbers in answer.pieces()]
    for position, (text, numbers) in enumerate(pieces):
        started = text if position else text.lstrip()
        yield started.rstrip() if position == len(pieces) - 1 and not numbers else started, numbers


def _lines(text: str, *, after_citation: bool) -> str:
    """Escaped lines: a blank line stays one, any other line end is a hard break, and indents are kept."""
    first, *others = _LINE_END.split(text)
    written = markdown_line(first, line_start=not after_citation, after_citation=after_citation)
    for end, line in zip(others[::2], others[1::2], strict=True):
        body = line.lstrip(" \t")
        indent = line[: len(line) - len(body)].expandtabs(4)
        written += ("\n\n" if end.count("\n") > 1 else "\\\n") + "\u00a0" * len(indent) + markdown_line(body)
    return written


def _title(source: Source) -> str:
    title = markdown_line(source.title)
    linked = f"[{title}]({markdown_url(source.url)})" if source.url else title
    return linked if source.passage.page is None else f"{linked}, page {source.passage.page}"


def _quotes(source: Source) -> str:
    quotes = " … ".join(f"“{markdown_line(one_line(quote), line_start=False)}”" for quote in source.quotes)
    return f": {quotes}"
