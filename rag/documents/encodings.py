"""Text from bytes of any encoding."""

import codecs
import re
from collections import Counter
from collections.abc import Sequence

from rag.base.errors import FormatError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z][\w.:-]{1,30})""")
# Manual pages and terminals leave \b and ESC.
_CONTROLS = bytes([*range(0x08), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])
_SAMPLE = 200_000  # bytes to detect the encoding from
_USUAL = "cp1252"  # what Western Windows writes; with latin-1's letters

_WESTERN = (
    "àâäáãåæçèéêëíîïñóôöøúûüß",  # names and words of all neighbours, in one text
    "àâæçéèêëîïôœùûüÿ",
    "áéíóúüñçªº",
    "áâãàçéêíóôõúüªº",
    "àèéìíîòóùúïçªº",
    "áéíóúýðþæö",
    "áíóúýðæø",
    "äöåüõšž",  # Finnish and Estonian
)
_CENTRAL = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ")
_EASTERN = {
    "cp1250": _CENTRAL,
    "iso8859-2": _CENTRAL,
    "cp1254": ("çğıöşüâîû",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äöüõšž"),
}
"""Letters beyond ASCII of the languages of each encoding, one string a language."""
_HIGH = re.compile(rb"[\x80-\xff]")
_LOW_LETTERS = re.compile(rb"[A-Za-z]")
_OTHER_SCRIPT = 0.4  # of the letters, from which on a text is in no Latin script
_RUN = re.compile(r"[^\W\d_a-zA-Z]{3,}")  # as words of other scripts have it, for Latin letters with marks are few
# A sign inside of a word (or at its end, but for marks of notes), a capital inside, and bytes that mean nothing.
_MISFIT = re.compile(
    r"(?<=[^\W\d_])[^\w\s\x00-\x7f’‘–—·…«»“”„®™°²](?=[^\W\d_])|(?<=[^\W\d_])[¼½¾¿¡¤¦¬±¶×÷](?!\d)"
    r"|(?<=[^\W\d_])[¹³](?=[^\W\d_])"  # Polish "Op³ata"
    r"|(?<=[a-z])[À-ÖØ-ÞŠŽŸŒ](?=[a-z])|[\x80-\x9f\ufffd]"
)
_FITS, _BETTER = 0.8, 0.05


def decode_text(data: bytes, location: str, *, markup: bool = False) -> str:
    """The text of a file: by its mark, as UTF-8, as `markup` declares it, or as its bytes suggest.

    Raises `FormatError` for bytes that are no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _lines(data.decode(encoding, "replace"))
    try:
        return _lines(_text(data.decode("utf-8"), location))
    except UnicodeDecodeError:
        pass
    if markup and (match := _DECLARED.search(data[:2048])):
        try:
            encoding = codecs.lookup(match[1].decode("ascii")).name
            # Browsers read these declarations as Windows' larger sets.
            encoding = {"iso8859-1": _USUAL, "ascii": _USUAL, "utf-16": "utf-8"}.get(encoding, encoding)
            return _lines(_text(data.decode(encoding, "replace"), location))
        except (LookupError, ValueError):
            pass
    return _lines(_text(data.decode(_detect_encoding(data), "replace"), location))


def _detect_encoding(data: bytes) -> str:
    from charset_normalizer import from_bytes

    valid = data[:_SAMPLE].decode("utf-8", "ignore")
    if not valid.isascii() and len(valid.encode()) > 0.999 * min(len(data), _SAMPLE):  # UTF-8 with a few broken bytes
        return "utf-8"
    entry = _latin(data[:_SAMPLE])
    best = from_bytes(data[:_SAMPLE]).best() if entry is None else None
    return entry or (best.encoding if best is not None else _USUAL)


def _latin(data: bytes) -> str | None:
    """The encoding of a text in Latin script, by the letters beyond ASCII that its language has; None if none fits.

    What fits Western languages is Western: statistics of letters, as charset_normalizer has them, mislead in short
    texts, where "Café" may as well be "Cafķ".
    """
    high = len(_HIGH.findall(data))
    if high > _OTHER_SCRIPT * (high + len(_LOW_LETTERS.findall(data))):
        return None
    text = data.decode(_USUAL, "replace")
    if sum(map(len, _RUN.findall(text))) > 0.25 * high:
        return None
    western = _fit(text, _WESTERN)
    result, eastern = max(
        ((name, _fit(data.decode(name, "replace"), alphabets)) for name, alphabets in _EASTERN.items()),
        key=lambda item: item[1],
    )
    if eastern > max(_FITS, western + _BETTER):
        return result
    return _USUAL if western >= _FITS else None


def _fit(text: str, alphabets: Sequence[str]) -> float:
    """How much of a text's letters beyond ASCII one of these alphabets has; signs inside of words count against it."""
    counts = Counter(letter for letter in text.lower() if letter > "\x7f" and letter.isalpha())
    total = counts.total() + len(_MISFIT.findall(text))
    return max(sum(counts[letter] for letter in alphabet) for alphabet in alphabets) / total if total else 1.0


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _text(text: str, location: str) -> str:
    """The text, unless it has so many control characters that the file is no text."""
    start = text[:10_000]
    data = start.encode(errors="replace")
    if len(data) - len(data.translate(None, _CONTROLS)) > max(2, 0.01 * len(start)):
        raise FormatError(f"{location}: not a text: it has binary data")
    return text
