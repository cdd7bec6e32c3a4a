"""An answer as an HTML page of its own: no script, nothing fetched, all text escaped."""

import base64
import hashlib
from collections.abc import Iterable, Iterator

from rag.answer.export.checks import Pieces, list_rejections
from rag.answer.export.escaping import html_text, one_line
from rag.answer.export.rendering import short_answer_line
from rag.answer.export.sources import Link, Source, abstention_notice, list_sources
from rag.base.types import Answer

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.6 system-ui, sans-serif; margin: 0 auto; max-width: 44rem; padding: 1.5rem; }
.text, blockquote { overflow-wrap: anywhere; white-space: pre-wrap; }
blockquote { border-inline-start: .2rem solid; margin: .5rem 0 1.5rem; opacity: .9; padding-inline-start: 1rem; }
mark { background: #ffe08a; color: #000; }
:target { outline: .15rem solid; outline-offset: .3rem; }
footer { font-size: .85rem; margin-top: 2rem; }
"""
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
)


def to_html(answer: Answer, link: Link | None = None) -> str:
    """Return a page with the question, the answer, and the passages that it cites with the cited spans marked.

    Sentences that a judge rejected (`trace["checked"]`) are listed with what the source says instead; words that differ
    are marked.
    """
    question = html_text(one_line(answer.question.text))
    body = [
        f'<h1 dir="auto">{question}</h1>\n',
        *answer_parts(answer),
        *check_parts(answer, heading="h2"),
        *source_parts(answer, link, heading="h2"),
    ]
    return make_page(question, body, f"Answered by {html_text(one_line(answer.system))}")


def make_page(title: str, body: Iterable[str], footer: str) -> str:
    """Return a page of parts that are HTML, as are `title` and `footer`."""
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{html_text(_POLICY)}">\n',
            '<meta name="referrer" content="no-referrer">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n",
            *body,
            f"</main>\n<footer>{footer}</footer>\n</body>\n</html>\n",
        ]
    )


def source_parts(answer: Answer, link: Link | None, *, heading: str, prefix: str = "") -> Iterator[str]:
    """Yield the HTML of the passages that an answer cites, below a `heading`; their ids begin with `prefix`."""
    if sources := list_sources(answer, link):
        yield f"<{heading}>Sources</{heading}>\n<ol>\n"
        yield from (_source(source, prefix) for source in sources)
        yield "</ol>\n"


def answer_parts(answer: Answer, prefix: str = "") -> Iterator[str]:
    """Yield the HTML of an answer, with links to the passages of `source_parts`."""
    if answer.abstained:
        yield f'<p class="not-answered">{html_text(abstention_notice(answer))}</p>\n'
        return
    if line := short_answer_line(answer):
        yield f'<p dir="auto"><strong class="short">{html_text(line)}</strong></p>\n'
    yield '<div class="text" dir="auto">'
    for text, numbers in answer.pieces():
        yield html_text(text)
        links = "".join(f'<a href="#{prefix}source-{number}">[{number}]</a>' for number in numbers)
        yield f"<sup>{links}</sup>" if links else ""
    yield "</div>\n"


def check_parts(answer: Answer, *, heading: str, prefix: str = "") -> Iterator[str]:
    """Yield the HTML of the sentences that a judge rejected, below a `heading`."""
    rejections = list(list_rejections(answer))
    if not rejections:
        return
    yield f"<{heading}>Checked against the sources</{heading}>\n<ul>\n"
    for rejection in rejections:
        explanation = html_text(rejection.explanation)
        yield f'<li class="check"><strong>{rejection.label.capitalize()}:</strong> '
        yield f"“<bdi>{_marked(rejection.claim)}</bdi>” "
        if rejection.source is None:
            yield f"{explanation}.</li>\n"
            continue
        title = html_text(one_line(rejection.source.headings) or one_line(rejection.source.id))
        number = rejection.number
        place = f" ({title})" if number is None else f' <a href="#{prefix}source-{number}">[{number}]</a>'
        yield f"{explanation}: “<bdi>{_marked(rejection.quote)}</bdi>”{place}</li>\n"
    yield "</ul>\n"


def _marked(pieces: Pieces) -> str:
    return "".join(f"<mark>{html_text(text)}</mark>" if differs else html_text(text) for text, differs in pieces)


def _source(source: Source, prefix: str) -> str:
    title = html_text(source.title)
    title_html = f'<a href="{html_text(source.url)}" rel="noreferrer">{title}</a>' if source.url else title
    page = "" if source.passage.page is None else f", page {source.passage.page}"
    text, pieces, position = source.passage.text, [], 0
    for start, end in source.spans:
        pieces += [html_text(text[position:start]), f"<mark>{html_text(text[start:end])}</mark>"]
        position = end
    passage = "".join([*pieces, html_text(text[position:])])
    return (
        f'<li id="{prefix}source-{source.number}"><cite dir="auto">{title_html}</cite>{page}\n'
        f'<blockquote dir="auto">{passage}</blockquote></li>\n'
    )
