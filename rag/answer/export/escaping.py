"""Text of unknown origin in other formats: hidden characters, URLs, and the markup of HTML, Markdown and BibTeX.

Programs that show Markdown load its images and link its addresses, so a document could make them call its author.
Here no text of a document becomes an image, a link or an element of HTML.
"""

import html
import re
from urllib.parse import quote

_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"  # control characters
    "\u00ad\u200b\u2028\u2029\u2060-\u2064\ufeff\ufff9-\ufffb"  # invisible, and line ends that some programs know
    "\u202a-\u202e\u2066-\u2069"  # marks that reorder the text around them
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # no characters
    "\ufe00-\ufe0e\U000e0000-\U000e01ef]"  # variation selectors (not that of emoji) and tags: they spell hidden text
)
_URL = re.compile(r"https?://[^\s/?#]", re.IGNORECASE)
_URL_CHARACTERS = ":/?#[]@!$&'()*+,;=%-._~"


def visible(text: str) -> str:
    """Return the text with hidden characters as U+FFFD, one for one, so that offsets stay."""
    return _INVISIBLE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return the text on one line, with hidden characters as U+FFFD."""
    return visible(" ".join(text.split()))


def shorten(text: str, max_length: int) -> str:
    """Return the text on one line of at most `max_length` characters (`one_line`), cut after a word if it is longer."""
    line = one_line(text)
    if len(line) <= max_length:
        return line
    head = line[: max_length - 1]
    space = head.rfind(" ", max_length // 2)
    return f"{head[:space] if space >= 0 else head}…"


def safe_url(url: str | None) -> str | None:
    """Return an http or https URL with all other than ASCII letters, digits and URL punctuation quoted.

    None for any other scheme (`javascript:`, `data:`, `file:`), and for a URL without a host.
    """
    if url is None or not _URL.match(url):
        return None
    return quote(url, safe=_URL_CHARACTERS, errors="replace")


# --- plain text that programs may show as Markdown -----------------------------------------------------------------

_ADDRESSES = r"(?<=//)(?=[^\s/])|(?<=www)(?=\.)"
_ADDRESS = re.compile(_ADDRESSES, re.IGNORECASE)
_MARKDOWN = re.compile(rf"{_ADDRESSES}|(?<=!)(?=\[)|(?<=\])(?=[(:])|(?<=<)(?=[a-z/!?])", re.IGNORECASE)


def inert(text: str, after: str = "") -> str:
    """Return text in which no program that shows Markdown finds an image, a link, an address or HTML.

    A space parts the characters that begin them: `! [x] (http:// a.b)`, `< b>`. Words stay as they are, and so does
    text without markup. `after` is the character that stands before the text, if there is one. Bare names of hosts
    and email addresses stay too.
    """
    return _MARKDOWN.sub(" ", after + text)[len(after) :]


# --- HTML --------------------------------------------------------------------------------------------------------


def html_text(text: str) -> str:
    """Return HTML, for content or a quoted attribute, that shows exactly this text."""
    return html.escape(visible(text)).replace("\r", "&#13;")  # a bare carriage return would become a line feed


# --- Markdown ----------------------------------------------------------------------------------------------------

_MARKUP = re.compile(r"[\\`*\[\]<~|$^]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_LINE_START = re.compile(r"(?:\d{1,9}(?=[.)])|(?=[-+=#>:]))")


def markdown_line(text: str, *, line_start: bool = True, after_citation: bool = False) -> str:
    """Return Markdown that shows this text, which has no line end, and links nothing.

    A space parts addresses (`http:// a.b`), as programs link those that stand in the text, escaped or not.
    `line_start` is whether it begins a line, where `-`, `#` or `1.` would be markup, `after_citation` whether it
    follows the `]` of a citation, which `(` would turn into a link.
    """
    if after_citation and text[:1] in ("(", ":", "{"):
        return "\\" + text[0] + markdown_line(text[1:], line_start=False)
    if line_start and (body := text.lstrip()) and (match := _LINE_START.match(body)):
        spaces, position = text[: len(text) - len(body)], match.end()
        return f"{spaces}{body[:position]}\\{body[position]}{markdown_line(body[position + 1 :], line_start=False)}"
    return _MARKUP.sub(lambda markup: "\\" + markup[0], _ADDRESS.sub(" ", text))


def markdown_url(url: str) -> str:
    """Return a URL of `safe_url` as the target of a Markdown link."""
    return re.sub(r"&(?=#?\w+;)", "&amp;", url.replace("(", "%28").replace(")", "%29"))


# --- BibTeX ------------------------------------------------------------------------------------------------------

# Braces by name: BibTeX counts escaped ones too.
_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "#$%&_"},
}
_TEX_TABLE = str.maketrans(_TEX)


def bibtex_text(text: str) -> str:
    """Return one line of LaTeX, for a field in braces, that shows this text."""
    return one_line(text).translate(_TEX_TABLE)
