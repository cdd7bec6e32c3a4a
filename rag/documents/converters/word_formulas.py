"""Formulas in Word files, as lines of signs: mammoth leaves them out."""

import io
import re
import zipfile

from rag.documents.archives import open_zip, read_member

_DOCUMENT = "word/document.xml"
# Each ends before the next one begins, so that a broken file takes no more time than another.
_FORMULA = re.compile(rb"<m:oMath(?:\s[^<>]*)?>(?:(?!<m:oMath[\s>]).)*?</m:oMath>", re.DOTALL)
_PARAGRAPH = re.compile(
    rb"<m:oMathParaPr[\s>](?:(?!<m:oMathParaPr).)*?</m:oMathParaPr>|</?m:oMathPara(?:Pr)?(?:\s[^<>]*)?/?>", re.DOTALL
)
# Signs stand in the attributes of the properties of sums and brackets; in elements stand the numbers and letters.
_PART = re.compile(rb'<m:(chr) m:val="([^"<>]*)"/>|<m:(sup|sub)>|</m:(num)>|<m:t(?:\s[^>]*)?>([^<]*)</m:t>')
_SIGNS = {b"sup": b"^", b"sub": b"_", b"num": b"/"}


def write_formulas(data: bytes, location: str) -> bytes:
    """The file with the signs of each formula as text: `E=mc^2`, `a/b`; the same file if it has none.

    Raises `FormatError` for a broken archive.
    """
    with open_zip(data, location) as archive:
        if _DOCUMENT not in archive.namelist():
            return data
        text = read_member(archive, _DOCUMENT, location)
        if b"<m:oMath" not in text:
            return data
        text = _FORMULA.sub(lambda formula: _as_run(formula[0]), _PARAGRAPH.sub(b"", text))
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w") as copy:
            for file in archive.infolist():
                content = text if file.filename == _DOCUMENT else read_member(archive, file.filename, location)
                copy.writestr(file.filename, content)
        return output.getvalue()


def _as_run(formula: bytes) -> bytes:
    """A run of text with the signs of a formula."""
    parts = (part[2] or part[5] or _SIGNS.get(part[3] or part[4] or b"", b"") for part in _PART.finditer(formula))
    return b'<w:r><w:t xml:space="preserve">' + b"".join(parts) + b"</w:t></w:r>"
