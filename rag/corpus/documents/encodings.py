"""Text from bytes of any encoding."""

import codecs
import re

from rag.errors import FormatError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z][\w.:-]{1,30})""")
_CONTROLS = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")  # manual pages and terminals leave \b and ESC
_SAMPLE = 200_000  # bytes to detect the encoding from
_USUAL = "cp1252"  # what Western Windows writes; with latin-1's letters


def decoded(data: bytes, where: str, *, markup: bool = False) -> str:
    """The text of a file: by its mark, as UTF-8, as `markup` declares it, or as its bytes suggest.

    Raises `FormatError` for bytes that are no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _lines(data.decode(encoding, "replace"))
    try:
        return _lines(_text(data.decode("utf-8"), where))
    except UnicodeDecodeError:
        pass
    if markup and (found := _DECLARED.search(data[:2048])):
        try:
            encoding = codecs.lookup(found[1].decode("ascii")).name
            # Browsers read these declarations as Windows' larger sets.
            encoding = {"iso8859-1": _USUAL, "ascii": _USUAL, "utf-16": "utf-8"}.get(encoding, encoding)
            return _lines(_text(data.decode(encoding, "replace"), where))
        except (LookupError, ValueError):
            pass
    return _lines(_text(data.decode(_detected(data), "replace"), where))


def _detected(data: bytes) -> str:
    from charset_normalizer import from_bytes

    valid = data[:_SAMPLE].decode("utf-8", "ignore")
    if not valid.isascii() and len(valid.encode()) > 0.999 * min(len(data), _SAMPLE):  # UTF-8 with a few broken bytes
        return "utf-8"
    best = from_bytes(data[:_SAMPLE]).best()
    return best.encoding if best is not None else _USUAL


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _text(text: str, where: str) -> str:
    """The text, unless it has so many control characters that the file is no text."""
    start = text[:10_000]
    if len(_CONTROLS.findall(start)) > max(2, 0.01 * len(start)):
        raise FormatError(f"{where}: not a text: it has binary data")
    return text
