"""The answer as one text with its citations in it, and the places where they stand."""

from dataclasses import dataclass, field

from rag.answer.export.escaping import inert, one_line, safe_url, visible
from rag.answer.export.sources import Link, Source, Span, abstention_notice, list_sources, spans_of
from rag.base.types import Answer, CitedSentence


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` to `end` (exclusive) of a rendered text: one citation of a source, such as `[1]`.

    `url` opens the source where what this sentence cites is marked; None if the source has no URL. `spans` are what
    this sentence cites there: characters of the passage's text.
    """

    start: int
    end: int
    source: Source
    url: str | None
    spans: tuple[Span, ...] = ()

    @property
    def quotes(self) -> list[str]:
        """The texts of the spans, as the passage has them."""
        return [self.source.passage.text[start:end] for start, end in self.spans]


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text with citations, and their places in order."""

    text: str
    places: tuple[Place, ...] = ()


@dataclass(slots=True)
class Writer:
    """Puts a rendered text together."""

    length: int = 0
    _parts: list[str] = field(default_factory=list)
    _places: list[Place] = field(default_factory=list)

    def write(self, text: str) -> None:
        """Add text."""
        self._parts.append(text)
        self.length += len(text)

    def cite(self, source: Source, sentence: CitedSentence, text: str, url: str | None) -> None:
        """Add the text of a citation of a sentence."""
        start = self.length
        self.write(text)
        self._places.append(Place(start, self.length, source, url, spans_of(sentence, source.passage.id)))

    def finish(self) -> Rendered:
        """Return the whole."""
        return Rendered("".join(self._parts), tuple(self._places))


def short_answer_line(answer: Answer) -> str | None:
    """The short answer as the line that every form of an answer begins with; hidden characters are U+FFFD.

    None if there is none, if it is uncertain (`Answer.headline`), and if the text says no more than it. An answer that
    is still being written has it from the sentence on that says more.
    """
    line = one_line(answer.headline or "")
    says_more = not _bare(line).startswith(_bare(one_line(answer.text)))
    return line if _bare(line) and says_more and not answer.abstained else None


def _bare(line: str) -> str:
    """A line as two that say the same are compared."""
    return line.rstrip(" .!?").casefold()


def with_markers(answer: Answer, link: Link | None = None) -> Rendered:
    """The short answer, a blank line, and the text of `str(answer)`, with markers such as `[1]`.

    For an abstention, a sentence that says so. Hidden characters are U+FFFD, and text that a program could take for
    Markdown is `inert`.
    """
    if answer.abstained:
        return Rendered(inert(abstention_notice(answer)))
    sources = list_sources(answer, link)
    cited_sentences = (sentence for sentence in answer.sentences if sentence.citations)
    writer = Writer()
    if line := short_answer_line(answer):
        writer.write(f"{inert(line)}\n\n")
    for position, (text, numbers) in enumerate(answer.pieces()):
        writer.write(inert(visible(text), after="]" if position else ""))
        if numbers:
            sentence = next(cited_sentences)
            writer.write(" ")
            for number in numbers:
                source = sources[number - 1]
                writer.cite(source, sentence, f"[{number}]", sentence_url(source, sentence, link))
    return writer.finish()


def sentence_url(source: Source, sentence: CitedSentence, link: Link | None) -> str | None:
    """The URL of a source where what a sentence cites is marked; None if it has no http or https URL."""
    return safe_url(link(source.passage, spans_of(sentence, source.passage.id))) if link else None
