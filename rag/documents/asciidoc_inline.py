"""The text of a line of AsciiDoc: without marks of bold words and code, with what links, keys and attributes show."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from rag.documents.blocks import squeezed

_SIGNS = {
    "amp": "&", "apos": "'", "asterisk": "*", "backslash": "\\", "backtick": "`", "blank": "", "caret": "^",
    "cpp": "C++", "empty": "", "endsb": "]", "gt": ">", "ldquo": "“", "lsquo": "‘", "lt": "<", "nbsp": " ",
    "plus": "+", "quot": '"', "rdquo": "”", "rsquo": "’", "sp": " ", "startsb": "[", "tilde": "~",
    "two-colons": "::", "two-semicolons": ";;", "vbar": "|", "zwsp": "",
}  # fmt: skip
_ATTRIBUTE = re.compile(r"(\\?)\{([\w-]{1,60})\}")
_KEPT = re.compile(  # as it is written: code, and what stands between plus or dollar signs
    r"(?<!\\)(?:pass:\w{0,10}\[([^\[\]]{0,1000})\]"
    r"|(?<!`)``(?!`)([^`]{1,500})``(?!`)"
    r"|(?<![\w`\"'])`(?=\S)([^`]{1,500})(?<=\S)`(?![\w`])"
    r"|(?<![\w+])(?:\+\+\+([^+]{1,500})\+\+\+|\+\+([^+]{1,500})\+\+)(?!\+)|(?<!\$)\$\$([^$]{1,500})\$\$(?!\$)"
    r"|(?<![\w+:;])\+(?=\S)([^+]{1,500})(?<=\S)\+(?![\w+]))"
)
_QUOTED = re.compile(
    r"(?<!\w)(?:\"`(?=\S)([^`]{1,500})(?<=\S)`\"|'`(?=\S)([^`]{1,500})(?<=\S)`'|``(?=\S)([^`']{1,500})'')(?!\w)"
)
_NOTE = re.compile(r"footnote(?:ref)?:[\w-]{0,60}\[((?:[^\[\]]|\[[^\[\]]{0,300}\]){0,1000})\]")
_MACRO = re.compile(
    r"(?<!\w)(kbd|btn|menu|stem|latexmath|asciimath|image|icon|anchor|indexterm2?):([^\s\[\]]{0,300})\[([^\[\]]{0,500})\]"
)
_LINK = re.compile(
    r"(?:(?<!\w)(link|xref|mailto):|(?=(?:https?|ftp|irc)://))([^\s\[\]<>]{1,2000})\[((?:[^\[\]]|\[[^\[\]]{0,300}\]){0,500})\]"
)
_ADDRESS = re.compile(r"<((?:https?|ftp)://[^\s<>]{1,2000}|[\w.+-]{1,100}@[\w.-]{1,100})>")
_REFERENCE = re.compile(r"<<([^<>,]{1,300})(?:,([^<>]{0,500}))?>>")
_ANCHOR = re.compile(r"\[\[\[([^\[\],]{1,100})(?:,[^\[\]]{0,100})?\]\]\]|\[\[[^\[\]]{1,200}\]\]")
_INDEXED = re.compile(r"\(\(\([^()]{1,300}\)\)\)|\(\(([^()]{1,300})\)\)")
_WINDOW = re.compile(r",\s*(?:window|role|opts|id|title|rel)=.*", re.DOTALL)
_ROLE = r"(?:\[[^\[\]]{1,60}\])?"
_MARKED = re.compile(
    rf"(?<!\\)(?:{_ROLE}(\*\*|__|##)((?:(?!\1)[^\0]){{1,500}})\1"
    rf"|(?<![\w\\;:}}]){_ROLE}([*_#])(?=\S)((?:\\[*_#]|(?!\3)[^\0]){{1,500}})(?<=\S)\3(?!\w)|([\^~])([^\s^~]{{1,60}})\5)"
)
_ESCAPED = re.compile(r"\\(?=[*_`{<\[#^~:]|https?:)")
_STASHED = re.compile("\ue000(\\d{1,6})\ue001")
_NOT_WORDS = re.compile(r"[^\w]+")


class Inline:
    """Reads the text of lines; `attributes` are those of the document, footnotes are counted in `dropped`."""

    def __init__(self, attributes: dict[str, str], dropped: Counter[str]) -> None:
        self._attributes = attributes
        self._dropped = dropped
        self._titles: dict[str, str] = {}

    def learn(self, headings: Iterable[tuple[str, str]]) -> None:
        """Remember ids of sections and their titles, which references show."""
        found = [(key, squeezed(self.plain(title))) for key, title in headings]
        for key, title in found:
            made = _NOT_WORDS.sub("_", title.casefold()).strip("_")
            for name in filter(None, (key, f"_{made}", made.replace("_", "-"), title)):
                self._titles.setdefault(name, title)

    def plain(self, text: str) -> str:
        """The text as a reader sees it."""
        kept: list[str] = []

        def keep(found: re.Match[str]) -> str:
            said = next(group for group in found.groups() if group is not None)
            if said[0] == said[-1] == "+" and len(said) > 2:  # `+code+`
                said = said[1:-1]
            kept.append(said)
            return f"\ue000{len(kept) - 1}\ue001"

        text = _STASHED.sub("", text).replace("\0", "")

        def attribute(found: re.Match[str]) -> str:
            name = found[2].lower()
            if found[1] or name not in _SIGNS:
                return found[0][1:] if found[1] else self._attributes.get(name, found[0])
            kept.append(_SIGNS[name])
            return f"\ue000{len(kept) - 1}\ue001"

        text = _ATTRIBUTE.sub(attribute, text)
        text = _QUOTED.sub(lambda found: f"‘{found[2]}’" if found[2] else f"“{found[1] or found[3]}”", text)
        text = _KEPT.sub(keep, text)
        text, notes = _NOTE.subn("", text)
        self._dropped["footnote"] += notes
        text = _LINK.sub(self._link, _MACRO.sub(_macro, text))
        text = _REFERENCE.sub(lambda found: (found[2] or "").strip() or self._title(found[1]), text)
        text = _ADDRESS.sub(r"\1", _ANCHOR.sub(lambda found: f"[{found[1]}]" if found[1] else "", text))
        text = _ESCAPED.sub("", _unmarked(_INDEXED.sub(lambda found: found[1] or "", text)))
        return _STASHED.sub(lambda found: kept[int(found[1])] if int(found[1]) < len(kept) else "", text)

    def _link(self, found: re.Match[str]) -> str:
        kind, target, said = found.groups()
        said = _WINDOW.sub("", said).strip().removesuffix("^").strip('"')
        if kind == "mailto":
            said = said.partition(",")[0]
        if kind == "xref":
            return said or self._title(target)
        return said or target

    def _title(self, target: str) -> str:
        """What a reference without a text shows: the title of its section, or the name of its file."""
        path, mark, key = target.strip().partition("#")
        if (title := self._titles.get(key or path)) is not None:
            return title
        return (PurePosixPath(path).stem if mark or "." in path else path) or key


def _macro(found: re.Match[str]) -> str:
    kind, target, said = found.groups()
    if kind == "menu":
        return " > ".join(filter(None, (target, *(part.strip() for part in said.split(">")))))
    if kind in ("kbd", "btn", "stem", "latexmath", "asciimath"):
        return said.removesuffix("\\").replace("\\]", "]")
    return said.partition(",")[0] if kind == "indexterm2" else ""


def _unmarked(text: str) -> str:
    """The text without marks of bold, italic and other words."""

    def said(found: re.Match[str]) -> str:
        return _MARKED.sub(said, found[2] or found[4] or "") or found[6] or ""

    return _MARKED.sub(said, text)
