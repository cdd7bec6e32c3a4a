"""The escapes and macro arguments of roff, the markup of manual pages."""

import re
from collections.abc import Mapping

_NAMED = {
    "aq": "'", "dq": '"', "lq": "“", "rq": "”", "oq": "‘", "cq": "’", "bu": "•", "em": "—", "en": "–", "hy": "-",
    "mi": "-", "co": "©", "rg": "®", "tm": "™", "de": "°", "mc": "µ", "mu": "×", "di": "÷", "+-": "±", "pl": "+",
    "eq": "=", "<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "<-": "←", "rs": "\\", "sl": "/", "ha": "^", "ti": "~",
    "ga": "`", "at": "@", "sh": "#", "Do": "$", "ba": "|", "or": "|", "bv": "|", "lB": "[", "rB": "]", "lC": "{",
    "rC": "}", "ss": "ß", "sq": "□", "fm": "′", "sd": "″", "14": "¼", "12": "½", "34": "¾", "ct": "¢", "Po": "£",
    "Eu": "€", "eu": "€", "sc": "§", "dg": "†", "OK": "✓", "ci": "○", "ae": "æ", "AE": "Æ", "oe": "œ", "/o": "ø",
    "/O": "Ø", "Fo": "«", "Fc": "»", "fo": "‹", "fc": "›", "lh": "☜", "rh": "☞", "if": "∞", "*a": "α", "*b": "β",
    "*p": "π", "*m": "μ", "u00A0": " ", "la": "⟨", "ra": "⟩",
}  # fmt: skip
_ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    ":": "\u0308",
    "~": "\u0303",
    ",": "\u0327",
    "o": "\u030a",
    "v": "\u030c",
}
_ARGUMENT = re.compile(r'"((?:[^"]+|"")*)"?|((?:[^ \t\\]+|\\.?)+)', re.DOTALL)
_ESCAPE = re.compile(
    r"""\\(?:
        (?P<comment>["\#].*)
      | [fFmM](?:\[[^\]]*\]|\(..|.)
      | s(?:\[[^\]]*\]|'[^']*'|[-+]?\(..|[-+]?\d\d?)
      | [hvwlLDXZNoSHbBRxYA](?P<quote>['\u0001]).*?(?P=quote)
      | [kngV](?:\[[^\]]*\]|\(..|.)
      | \[(?P<long>[^\]]*)\] | \((?P<two>..) | C'(?P<quoted>[^']*)'
      | \*(?:\[(?P<string>[^\]]*)\]|\((?P<string2>..)|(?P<string1>.))
      | (?P<one>.)
    )""",
    re.VERBOSE,
)
_ONE = {
    "-": "-",
    "e": "\\",
    "\\": "\\",
    "E": "\\",
    ".": ".",
    "'": "'",
    "`": "`",
    " ": " ",
    "~": " ",
    "0": " ",
    "t": " ",
    "_": "_",
}
_STRINGS = {
    "R": "®",
    "Tm": "™",
    "lq": "“",
    "rq": "”",
    "Aq": "'",
    'L"': "“",
    'R"': "”",
    "C`": "",
    "C'": "",
    "--": "—",
    "PI": "π",
    "C+": "C++",
}


def plain(text: str, strings: Mapping[str, str] | None = None) -> str:
    """Text without escapes; `strings` are those that the page defines."""
    if "\\" not in text:
        return text
    known = {**_STRINGS, **(strings or {})}

    def letter(found: re.Match[str]) -> str:
        name = found["long"] or found["two"] or found["quoted"]
        if name is not None:
            return _character(name)
        string = found["string"] or found["string2"] or found["string1"]
        if string is not None:
            return known.get(string, "")
        return _ONE.get(found["one"] or "", "")

    return _ESCAPE.sub(letter, text)


def _character(name: str) -> str:
    if name in _NAMED:
        return _NAMED[name]
    if re.fullmatch(r"u[0-9A-F]{4,5}(?:_[0-9A-F]{4})*", name):
        return "".join(chr(int(part, 16)) for part in name[1:].split("_") if not 0xD800 <= int(part, 16) < 0xE000)
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return name[1] + _ACCENTS[name[0]]
    return name if len(name) == 1 else ""


def arguments(text: str) -> list[str]:
    """The arguments of a macro: words, or several in double quotes, in which two are one."""
    return [word or quoted.replace('""', '"') for quoted, word in _ARGUMENT.findall(text)]
