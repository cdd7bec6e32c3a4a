"""Blocks from e-mails: who wrote one to whom and when, and its text without what it quotes; and of saved pages."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from email.message import MIMEPart
from email.policy import default
from itertools import pairwise

from autoais.base.errors import first_line
from rag.base.errors import FormatError
from rag.documents.blocks import Block, Kind, heading, keep_bare_headings
from rag.documents.encodings import decode_text
from rag.documents.main_content import html_blocks
from rag.documents.normalize import squeeze
from rag.documents.plain_text.text import text_blocks
from rag.documents.raw_file import RawFile

_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
# Quoted lines, and the one before them that says who wrote them, which may be wrapped.
_QUOTATION = re.compile(
    r"(?:^(?:(?:On|Am|Le|El|Il)\b[^\n]{0,200}\n)?(?!>)[^\n]{0,200}"
    r"\b(?:wrote|schrieb[^\n]{0,80}|écrit|escribió|ha scritto) ?:[ \t]*\n\s*)?(?P<quote>(?:^>[^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_MARK = re.compile(r"^> ?", re.MULTILINE)
_FORWARD = re.compile(r"(?:forwarded|weitergeleitete|transféré|reenviado|inoltrato)\b[^\n]*\s*\Z", re.IGNORECASE)
_HEADER = re.compile(r"\s*(?:From|Von|De|Da): ")
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
        message = message_from_bytes(file.data, policy=default)
        subject = squeeze(str(message["Subject"] or ""))
        lines = [f"{name}: {value}" for name in _SHOWN_HEADERS if (value := squeeze(str(message[name] or "")))]
        body = message.get_body(("plain", "html"))
        file.dropped["attachment"] += sum(1 for _ in message.iter_attachments()) if message.is_multipart() else 0
        text = _text(body, file.where) if body is not None else ""
        if not text.strip() and (page := message.get_body(("html",))) is not None:
            body, text = page, _text(page, file.where)
    except FormatError:
        raise
    except Exception as error:  # the library raises much on headers and parts that are broken
        raise FormatError(f"{file.where}: broken: {first_line(error)}") from error
    if not lines and not subject:
        raise FormatError(f"{file.where}: not an e-mail: it has no header")
    blocks = [Block(line) for line in lines]
    if body is not None and body.get_content_subtype() == "html":
        return subject, blocks + html_blocks(text, file.dropped, location=file.where)[1]
    return subject, [*blocks, *_without_quotes(text, file.dropped)]


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
            file.dropped["broken message"] += 1
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
    word_counts = [len(_SIGNATURE.sub("", part).split()) for part in parts]
    parts = [_DASHES.sub("", part) for part in parts]
    answers = [bool(words) for words in word_counts[1:]]
    has_several = sum(answers) > 1
    is_alone = sum(answers) == 1 and word_counts[0] <= _MAX_GREETING_WORDS < word_counts[-1] and len(quotes) == 1
    result = ""
    for position, quote in enumerate(quotes):
        result += parts[position]
        plain = _MARK.sub("", quote)
        if _FORWARD.search(result[-300:]) or _HEADER.match(plain) or not any(word_counts):
            result += f"\n{plain}\n"
        elif answers[position] and (has_several or is_alone):
            yield from keep_bare_headings([*text_blocks(result, omissions)])
            result = ""
            question = squeeze("\n".join(line for line in plain.splitlines() if not line.startswith(">")))
            if question:
                yield Block(f"> {question}", Kind.LEAD)
        else:
            result += "\n"
    yield from keep_bare_headings([*text_blocks(result + parts[-1], omissions)])


def _text(part: MIMEPart, location: str) -> str:
    """The text of a part, in the encoding that it names if that is one."""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    try:
        return data.decode(part.get_content_charset() or "utf-8").replace("\r\n", "\n")
    except (LookupError, ValueError):
        return decode_text(data, location)
