"""Blocks from e-mails: who wrote one to whom and when, and its text without what it quotes; and of saved pages."""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from email import message_from_bytes
from email.message import MIMEPart
from email.policy import default
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from autoais.base.errors import first_line
from rag.base.errors import FormatError
from rag.documents.blocks import Block, Kind, heading, keep_bare_headings
from rag.documents.builder import BREAK
from rag.documents.encodings import decode_text
from rag.documents.main_content import html_blocks
from rag.documents.normalize import squeeze
from rag.documents.plain_text.text import text_blocks
from rag.documents.raw_file import RawFile

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
# Quoted lines, and the one before them that says who wrote them, which may be wrapped.
_QUOTATION = re.compile(
    r"(?:^(?:(?:On|Am|Le|El|Il)\b[^\n]{0,200}\n)?(?!>)[^\n]{0,200}"
    r"\b(?:wrote|schrieb[^\n]{0,80}|écrit|escribió|ha scritto) ?:[ \t]*\n\s*)?(?P<quote>(?:^>[^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_MARK = re.compile(r"^> ?", re.MULTILINE)
_FORWARD = re.compile(r"(?:forwarded|weitergeleitete|transféré|reenviado|inoltrato)\b[^\n]*\s*\Z", re.IGNORECASE)
_FORWARDED = re.compile(r"\W*(?:\w+ ){0,3}(?:forwarded|weitergeleitete|transféré|reenviado|inoltrato)\b", re.IGNORECASE)
_FORWARD_SUBJECT = re.compile(r"(?:fwd?|wg|tr|rv|i)\s*:", re.IGNORECASE)
_HEADER = re.compile(r"\s*(?:From|Von|De|Da): ?")
_WROTE = re.compile(r"[^\n]{0,300}?\b(?:wrote|schrieb[^\n:]{0,80}|écrit|escribió|ha scritto) ?:\s*")
# Of Outlook, which marks no lines: all that follows was written before.
_ORIGINAL = re.compile(
    r"^(?:-{2,} ?(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original|Messaggio originale)"
    r" ?-{2,}|_{20,})[ \t]*\n\s*(?:From|Von|De|Da): .*\Z",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_OUTLOOK = '#divRplyFwdMsg, div[style*="border-top:solid #"]'  # the header of what stands below
_QUOTES = ":is(.gmail_quote, .yahoo_quoted, .protonmail_quote, blockquote[type=cite i])"
_OUTER_QUOTES = f"{_QUOTES}:not({_QUOTES} *)"
_EDGE, _OUTLOOK_EDGE = "\x1c", "\x1d"  # of quotes in HTML, while they are looked for; spaces for all others
_SIGNATURE = re.compile(r"^(?:-- ?|_{10,})$.*\Z", re.MULTILINE | re.DOTALL)
_DASHES = re.compile(r"^-- ?$", re.MULTILINE)  # above a signature
_ENVELOPE = re.compile(
    rb"From \S+(?: at \S+)?\s+(?:\w{3} ){2}\s?\d{1,2} [\d:]{5,8} .*\d{4}\b.*"
)  # above a message in a mailbox
_ESCAPED_FROM = re.compile(rb">+From ")  # a line of a message that would begin the next one
_FIELD = re.compile(rb">?[\w-]+:")
_MAX_GREETING_WORDS = 4  # words of a greeting or a name


def read_mail(file: RawFile) -> tuple[str, list[Block]]:
    """The subject ("" if there is none) and the blocks of a message; files that it carries are counted in `dropped`."""
    try:
        message = message_from_bytes(file.data.removeprefix(codecs.BOM_UTF8), policy=default)
        subject = squeeze(str(message["Subject"] or ""))
        lines = [f"{name}: {value}" for name in _SHOWN_HEADERS if (value := squeeze(str(message[name] or "")))]
        texts = [*_read_texts(message, file)]
    except FormatError:
        raise
    except Exception as error:  # the library raises much on headers and parts that are broken
        raise FormatError(f"{file.where}: broken: {first_line(error)}") from error
    if not lines and not subject:
        raise FormatError(f"{file.where}: not an e-mail: it has no header")
    blocks = [Block(line) for line in lines]
    is_forward = _FORWARD_SUBJECT.match(subject) is not None
    for kind, text in texts:
        if kind == "html":
            change = lambda body: _drop_quotes(body, is_forward=is_forward)  # noqa: E731
            blocks += html_blocks(text, file.dropped, location=file.where, change=change)[1]
        else:
            original = None if is_forward else _ORIGINAL.search(text)
            is_reply = original is not None and text[: original.start()].strip()
            blocks += _without_quotes(text[: original.start()] if original and is_reply else text, file.dropped)
    return subject, blocks


def _read_texts(part: MIMEPart, file: RawFile) -> Iterator[tuple[str, str]]:
    """The kind, `plain` or `html`, and the text of each part that a mail program shows; others are counted."""
    kind = part.get_content_type()
    if part.get_content_maintype() == "multipart" and part.is_multipart():
        children = [*part.iter_parts()]
        if kind == "multipart/alternative":
            choices = [[item for item in _read_texts(child, file) if item[1].strip()] for child in children]
            plain_texts = (texts for texts in choices if texts and texts[0][0] == "plain")
            yield from next(plain_texts, next((texts for texts in reversed(choices) if texts), []))
        else:
            for child in children[:1] if kind == "multipart/related" else children:
                yield from _read_texts(child, file)
    elif part.get_content_maintype() == "multipart" or (
        kind in ("text/plain", "text/html") and not part.is_attachment()
    ):
        yield part.get_content_subtype(), _text(part, file.where)
    else:
        file.dropped["attachment"] += 1


def is_mailbox(head: bytes) -> bool:
    """Whether a file begins as a mailbox does: with a line about the first message, and its header."""
    first, _, tail = head.lstrip(b"\xef\xbb\xbf\r\n").partition(b"\n")
    return _ENVELOPE.fullmatch(first.rstrip()) is not None and _FIELD.match(tail) is not None


def read_mailbox(file: RawFile) -> tuple[str, list[Block]]:
    """No title, and the blocks of the messages of a mailbox, each below its subject; broken ones are counted."""
    if not is_mailbox(file.data[:4096]):
        raise FormatError(f"{file.where}: not a mailbox: its first line is not one such as From me@here Mon May 6 ...")
    blocks: list[Block] = []
    for message in _messages(file.data):
        try:
            subject, text = read_mail(replace(file, data=message))
        except FormatError:
            file.dropped["message that is broken"] += 1
            continue
        blocks += [
            heading(subject or "No subject", 1),
            *(replace(block, level=0, kind=_below(block)) for block in text),
        ]
    return "", blocks


def _below(block: Block) -> Kind:
    """The kind of a block below the subject: the headings of one message are not those of the mailbox."""
    return Kind.LEAD if block.kind is Kind.HEADING else block.kind


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages of a mailbox; a line that begins one follows an empty line, and a header follows it."""
    lines = data.splitlines(keepends=True)
    begins = [
        position
        for position, line in enumerate(lines)
        if line.startswith(b"From ")
        and (not position or not lines[position - 1].strip())
        and _ENVELOPE.fullmatch(line.rstrip())
        and any(_FIELD.match(after) for after in lines[position + 1 : position + 2])
    ]
    for begin, end in pairwise([*begins, len(lines)]):
        yield b"".join(line[1:] if _ESCAPED_FROM.match(line) else line for line in lines[begin + 1 : end])


def read_saved_page(file: RawFile) -> tuple[str, list[Block]]:
    """The title and the blocks of a page that a browser saved in one file, which is an e-mail (.mhtml)."""
    try:
        parts = message_from_bytes(file.data, policy=default).walk()
        page = next((part for part in parts if part.get_content_type() in ("text/html", "application/xhtml+xml")), None)
        text = _text(page, file.where) if page is not None else ""
    except FormatError:
        raise
    except Exception as error:  # the library raises much on headers and parts that are broken
        raise FormatError(f"{file.where}: broken: {first_line(error)}") from error
    if not text:
        raise FormatError(f"{file.where}: not a saved page: it has no HTML")
    return html_blocks(text, file.dropped, location=file.where)


def _without_quotes(text: str, omissions: Counter[str]) -> Iterator[Block]:
    """The text without what it quotes, but with what it forwards, and with questions that are answered one by one."""
    parts: list[str] = []  # the texts before, between and after the quotes
    quotes: list[str] = []
    start = 0
    for match in _QUOTATION.finditer(text):
        parts.append(text[start : match.start()])
        quotes.append(match["quote"])
        start = match.end()
    parts.append(text[start:])
    answers = _are_answered(parts)
    has_words = any(map(_count_words, parts))
    parts = [_DASHES.sub("", part) for part in parts]
    result = ""
    for position, quote in enumerate(quotes):
        result += parts[position]
        plain = _MARK.sub("", quote)
        if _FORWARD.search(result[-300:]) or _HEADER.match(plain) or not has_words:
            result += f"\n{plain}\n"
        elif answers[position]:
            yield from keep_bare_headings([*text_blocks(result, omissions)])
            result = ""
            question = squeeze("\n".join(line for line in plain.splitlines() if not line.startswith(">")))
            if question:
                yield Block(f"> {question}", Kind.LEAD)
        else:
            result += "\n"
    yield from keep_bare_headings([*text_blocks(result + parts[-1], omissions)])


def _are_answered(parts: Sequence[str]) -> list[bool]:
    """Whether each quote between these texts is a question that the text below it answers.

    It is if several have such a text, or if the only quote has no more than a greeting above it.
    """
    counts = [*map(_count_words, parts)]
    answered = [bool(words) for words in counts[1:]]
    is_alone = len(counts) == 2 and counts[0] <= _MAX_GREETING_WORDS < counts[-1]
    return answered if sum(answered) > 1 or is_alone else [False] * len(answered)


def _count_words(text: str) -> int:
    """The words of a text above its signature."""
    return len(_SIGNATURE.sub("", text).split())


def _drop_quotes(body: "LexborNode", *, is_forward: bool) -> None:
    """Remove what a message in HTML quotes, but not what it forwards; a question that it answers is marked as one."""
    if is_forward:
        return
    _drop_original(body)
    quotes = [(_introduction(node), node) for node in body.css(_OUTER_QUOTES)]
    for first, node in quotes:
        (first or node).insert_before(_EDGE)
        node.insert_after(_EDGE)
    texts = body.text().split(_EDGE)
    outer_texts = texts[::2]
    if len(texts) != 2 * len(quotes) + 1 or not any(map(_count_words, outer_texts)):
        return
    answers = _are_answered(outer_texts)
    for (first, node), before, is_answered in zip(quotes, outer_texts, answers, strict=False):
        text = squeeze(node.text(separator=" "))
        question = _WROTE.sub("", text, count=1)
        if _FORWARD.search(before[-300:]) or _FORWARDED.match(text) or _HEADER.match(question):
            continue
        if is_answered and question:
            node.insert_before(f"{BREAK}{BREAK}> {question}{BREAK}{BREAK}")
        if first is not None:
            first.decompose()
        node.decompose()


def _introduction(quote: "LexborNode") -> "LexborNode | None":
    """What says above a quote who wrote it and when."""
    above = _neighbour(quote, "prev")
    return above if above is not None and _WROTE.fullmatch(squeeze(above.text())) else None


def _drop_original(body: "LexborNode") -> None:
    """Remove the message that Outlook puts below an answer."""
    header = next((node for node in body.css(_OUTLOOK) if _HEADER.match(node.text().strip())), None)
    if header is None:
        return
    header.insert_before(_OUTLOOK_EDGE)
    if not _count_words(body.text().partition(_OUTLOOK_EDGE)[0]):
        return
    node = header
    while _neighbour(node, "next") is None and node.parent is not None and node.parent.tag != "body":
        node = node.parent
    while node.next is not None:
        node.next.decompose()
    node.decompose()


def _neighbour(node: "LexborNode", side: Literal["next", "prev"]) -> "LexborNode | None":
    """The next node on a side that has text."""
    neighbour: LexborNode | None = getattr(node, side)
    while neighbour is not None and not neighbour.text().strip():
        neighbour = getattr(neighbour, side)
    return neighbour


def _text(part: MIMEPart, location: str) -> str:
    """The text of a part, in the encoding that it names if that is one."""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    try:
        return data.decode(part.get_content_charset() or "utf-8").replace("\r\n", "\n")
    except (LookupError, ValueError):
        return decode_text(data, location)
