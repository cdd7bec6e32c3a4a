"""An answer as Markdown (CommonMark, with the footnotes of GitHub and pandoc).

All text is shown as it is, but for a space in addresses: only links to sources are links.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from rag.answer.export.checks import Pieces, Rejection, list_rejections
from rag.answer.export.escaping import markdown_line, markdown_url, one_line, visible
from rag.answer.export.rendering import Rendered, Writer, sentence_url, short_answer_line
from rag.answer.export.sources import Link, Source, abstention_notice, list_sources
from rag.base.types import Answer

Style = Literal["footnotes", "links"]

_LINE_END = re.compile(r"([^\S\n]*\n(?:[^\S\n]*\n)*)")


def to_markdown(answer: Answer, link: Link | None = None, style: Style = "footnotes") -> str:
    """Return the question as a heading, and the answer as Markdown; a short answer stands first, in bold.

    Style `footnotes` is that of `with_footnotes`. Before the notes it lists the sentences that a judge rejected
    (`trace["checked"]`), with what the source says instead; words that differ are bold. Style `links` is that of
    `with_links`.
    """
    text = with_links(answer, link).text if style == "links" else footnoted(answer, link)
    return f"{_heading(answer.question.text)}{text}\n"


def footnoted(answer: Answer, link: Link | None = None, prefix: str = "") -> str:
    """Return what `to_markdown` writes below the question, with footnotes.

    Their labels begin with `prefix`: a file may have several answers.
    """
    rejections = "\n".join(_rejection(rejection, prefix) for rejection in list_rejections(answer))
    checks = f"\n\nChecked against the sources:\n\n{rejections}" if rejections else ""
    text = with_footnotes(answer, link, sources=False, prefix=prefix).text
    return f"{text}{checks}{_notes(list_sources(answer, link), prefix)}"


def with_footnotes(answer: Answer, link: Link | None = None, *, sources: bool = True, prefix: str = "") -> Rendered:
    """The answer as Markdown with a footnote for each cited passage: its title, its URL, and the quotes.

    The places are those of the marks, such as `[^1]`, in the text. `sources` is as in `with_links`; labels of footnotes
    begin with `prefix`.
    """
    listed = list_sources(answer, link)
    writer = Writer()
    _write(writer, answer, listed, lambda source, _: f"[^{prefix}{source.number}]", link)
    writer.write(_notes(listed, prefix) if sources else "")
    return writer.finish()


def with_links(answer: Answer, link: Link | None = None, *, sources: bool = True) -> Rendered:
    """The answer as Markdown with a link for each citation, `[[1]](url)`, and the list of sources behind.

    For chat programs, which show Markdown but drop annotations. A link in the text marks what its sentence cites, one
    in the list all that the answer cites. The places are those of the links in the text. `sources` is whether there is
    a list: an answer that is still being written has none.
    """

    def link_source(source: Source, url: str | None) -> str:
        return f"[[{source.number}]]({markdown_url(url)})" if url else rf"\[{source.number}\]"

    listed = list_sources(answer, link)
    writer = Writer()
    _write(writer, answer, listed, link_source, link, space=" ")
    if listed and sources:
        writer.write("\n\nSources:\n")
        for source in listed:
            writer.write(f"\n{source.number}. {_title(source)}")
    return writer.finish()


def _write(
    writer: Writer,
    answer: Answer,
    sources: Sequence[Source],
    mark: Callable[[Source, str | None], str],
    link: Link | None,
    *,
    space: str = "",
) -> None:
    """Write the text with the marks of its citations, and `space` before those of a sentence.

    `mark` gets the source and the URL that marks what the sentence cites there.
    """
    if answer.abstained:
        writer.write(markdown_line(abstention_notice(answer)))
        return
    if line := short_answer_line(answer):
        writer.write(f"**{markdown_line(line, line_start=False)}**\n\n")
    cited_sentences = (sentence for sentence in answer.sentences if sentence.citations)
    for position, (text, numbers) in enumerate(_strip_pieces(answer)):
        writer.write(_lines(text, after_citation=position > 0))
        if numbers:
            sentence = next(cited_sentences)
            writer.write(space)
            for number in numbers:
                source = sources[number - 1]
                url = sentence_url(source, sentence, link)
                writer.cite(source, sentence, mark(source, url), url)


def _strip_pieces(answer: Answer) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The pieces of the answer without blank lines around the whole: `\\` at the end would not be a line break."""
    pieces = [(visible(text).replace("\r\n", "\n").replace("\r", "\n"), numbers) for text, numbers in answer.pieces()]
    for position, (text, numbers) in enumerate(pieces):
        stripped_text = text if position else text.lstrip()
        yield stripped_text.rstrip() if position == len(pieces) - 1 and not numbers else stripped_text, numbers


def _lines(text: str, *, after_citation: bool) -> str:
    """Escaped lines: a blank line stays one, any other line end is a hard break, and indents are kept."""
    first, *further_lines = _LINE_END.split(text)
    output = markdown_line(first, line_start=not after_citation, after_citation=after_citation)
    for end, line in zip(further_lines[::2], further_lines[1::2], strict=True):
        body = line.lstrip(" \t")
        indent = line[: len(line) - len(body)].expandtabs(4)
        output += ("\n\n" if end.count("\n") > 1 else "\\\n") + "\u00a0" * len(indent) + markdown_line(body)
    return output


def _notes(sources: Sequence[Source], prefix: str) -> str:
    """A footnote for each source."""
    return "".join(f"\n\n[^{prefix}{source.number}]: {_title(source)}{_quotes(source)}" for source in sources)


def _heading(text: str) -> str:
    """A heading of one line, and a blank line; nothing for a text without words."""
    line = one_line(text)
    escaped = re.sub(r"(#+)$", r"\\\1", markdown_line(line, line_start=False))  # `#` at the end would not be shown
    return f"# {escaped}\n\n" if line else ""


def _rejection(rejection: Rejection, prefix: str) -> str:
    """A list item of a sentence that is rejected."""
    explanation = markdown_line(rejection.explanation, line_start=False)
    item = f"- {rejection.label.capitalize()}: “{_bold(rejection.claim)}” {explanation}"
    if rejection.source is None:
        return f"{item}."
    title = one_line(rejection.source.headings) or one_line(rejection.source.id)
    number = rejection.number
    place = f" ({markdown_line(title, line_start=False)})" if number is None else f"[^{prefix}{number}]"
    return f"{item}: “{_bold(rejection.quote)}”{place}"


def _bold(pieces: Pieces) -> str:
    lines = ((markdown_line(text, line_start=False), differs) for text, differs in pieces)
    return "".join(f"**{line}**" if differs else line for line, differs in lines)


def _title(source: Source) -> str:
    title = markdown_line(source.title)
    title_link = f"[{title}]({markdown_url(source.url)})" if source.url else title
    return title_link if source.passage.page is None else f"{title_link}, page {source.passage.page}"


def _quotes(source: Source) -> str:
    quotes = " … ".join(f"“{markdown_line(one_line(quote), line_start=False)}”" for quote in source.quotes)
    return f": {quotes}"
