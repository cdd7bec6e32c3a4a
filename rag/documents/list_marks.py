"""The marks of the items of a list, as a page shows them: `-`, or the number or letter of an ordered list."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_INTEGER = re.compile(r"-?\d{1,5}", re.ASCII)
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
# Names of numbering, in CSS and as classes of docutils, with those of the attribute `type`.
_TYPES = {
    "lower-alpha": "a",
    "lower-latin": "a",
    "lower-roman": "i",
    "upper-alpha": "A",
    "upper-latin": "A",
    "upper-roman": "I",
}
_STYLE = re.compile(r"list-style(?:-type)?\s*:[^;]*?\b((?:lower|upper)-(?:alpha|latin|roman))", re.IGNORECASE)


@dataclass(slots=True)
class OpenList:
    """An open list: the number of the next item, or None if items have no numbers; numbers fall if `step` is -1."""

    number: int | None
    type: str = "1"
    step: int = 1

    def next_mark(self, value: str | None = None) -> str:
        """The mark of the next item; `value` is the number that it says it has."""
        if self.number is None:
            return "-"
        if value is not None and _INTEGER.fullmatch(value.strip()):
            self.number = int(value)
        number = self.number
        self.number += self.step
        return f"{write_number(number, self.type)}."


def open_list(node: "LexborNode") -> OpenList:
    """What the attributes of a list say about the marks of its items."""
    if node.tag != "ol":
        return OpenList(None)
    attributes = node.attributes
    is_reversed = "reversed" in attributes
    start = (attributes.get("start") or "").strip()
    default = sum(child.tag == "li" for child in node.iter()) if is_reversed else 1
    return OpenList(int(start) if _INTEGER.fullmatch(start) else default, _type(node), -1 if is_reversed else 1)


def _type(node: "LexborNode") -> str:
    attributes = node.attributes
    if style := _STYLE.search(attributes.get("style") or ""):
        return _TYPES[style[1].lower()]
    classes = (attributes.get("class") or "").split()
    by_class = next((kind for name, kind in _TYPES.items() if name.replace("-", "") in classes), "1")
    return attributes.get("type") or by_class


def write_number(number: int, kind: str) -> str:
    """A number as `1`, `a`, `A`, `i` or `I` of HTML say."""
    if kind in ("a", "A") and number > 0:
        letters = ""
        while number:
            number, digit = divmod(number - 1, 26)
            letters = chr(ord(kind) + digit) + letters
        return letters
    if kind in ("i", "I") and 0 < number < 4000:
        text = ""
        for value, sign in _ROMAN:
            count, number = divmod(number, value)
            text += count * sign
        return text if kind == "i" else text.upper()
    return str(number)
