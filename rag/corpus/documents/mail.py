"""Blocks from an e-mail: who wrote it to whom and when, and its text without what it quotes."""

import re
from collections import Counter
from email import message_from_bytes
from email.message import MIMEPart
from email.policy import default

from autoais.errors import first_line
from rag.corpus.documents.blocks import Block, squeezed
from rag.corpus.documents.encodings import decoded
from rag.corpus.documents.html import html_blocks
from rag.corpus.documents.text import plain_blocks
from rag.errors import FormatError

_SAID = ("From", "To", "Cc", "Date")
# Quoted lines, and the one before them that says who wrote them.
_QUOTED = re.compile(
    r"(?:^[^\n>]{0,200}\b(?:wrote|schrieb[^\n]{0,80}|écrit|escribió|ha scritto) ?:[ \t]*\n\s*)?(?:^>[^\n]*(?:\n|\Z))+",
    re.MULTILINE,
)


def mail_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The subject ("" if there is none) and the blocks of a message; files that it carries are counted in `dropped`."""
    try:
        message = message_from_bytes(data, policy=default)
        subject = squeezed(str(message["Subject"] or ""))
        said = [f"{name}: {value}" for name in _SAID if (value := squeezed(str(message[name] or "")))]
        body = message.get_body(("plain", "html"))
        dropped["attachment"] += sum(1 for _ in message.iter_attachments()) if message.is_multipart() else 0
        text = _text(body, where) if body is not None else ""
    except FormatError:
        raise
    except Exception as error:  # the library raises much on headers and parts that are broken
        raise FormatError(f"{where}: broken: {first_line(error)}") from error
    if not said and not subject:
        raise FormatError(f"{where}: not an e-mail: it has no header")
    blocks = [Block(line) for line in said]
    if body is not None and body.get_content_subtype() == "html":
        return subject, blocks + html_blocks(text, dropped, where=where)[1]
    return subject, [*blocks, *plain_blocks(_QUOTED.sub("\n", text), dropped)]


def _text(part: MIMEPart, where: str) -> str:
    """The text of a part, in the encoding that it names if that is one."""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    try:
        return data.decode(part.get_content_charset() or "utf-8").replace("\r\n", "\n")
    except (LookupError, ValueError):
        return decoded(data, where)
