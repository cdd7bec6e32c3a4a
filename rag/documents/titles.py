"""The title of a page and its section names, without numbers and marks for links."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from rag.documents.normalize import squeeze

_NUMBER = re.compile(
    r"""(?ix) ^ (?: (?:chapter|section|appendix|part|annex) \s+ (?:[\divxlc]+|[a-z]) (?:\.\d+)* (?:\s*[.:–—-]\s* | \s+)
      | question \s+ \d+ (?:\.\d+)* \s*[.:–—-]\s*
      | (?: § \s* \d+ (?:\.\d+)* | \d+ \. | (?:\d+|[a-z]) (?:\.\d+)+ ) \.? \s+ ) (?=["“‘'(«]?[^\W\d_])"""
)
_VERSION = re.compile(  # "2.1.0 (May 2024)", "1.6 Unreleased", "3.10 or later"
    r"""(?ix) v?\d+ (?:\.\d+)+ \s+ (?: \( .* | (?:or|and) \s \w+
      | (?:unreleased|in\sdevelopment|alpha|beta|rc|final|stable|lts|release) \b [\s\d.(]* )"""
)
_NAME = re.compile(r"\W{0,2}(?:\d{3,}|§ ?\d+|\d+(?:[./-]\d+)+)\b.*")  # a year, code, date, version or paragraph
_MARKS = ("¶", "§", "#", "[link]", "[edit]", "\U0001f517")  # of links; fonts of icons have signs of their own
_LANGUAGE = re.compile(r"\b[A-Z]#\Z")  # C#
_SEPARATOR = re.compile(r"\s+[-–—|:·•»«/]+\s+|:\s+|\s*[—|»·]\s*")
_BRACKETS = re.compile(r"^\((.*)\)$")
_NUMBERS = re.compile(r"^\d{1,3}(?:\.\d{1,3})+\s+")  # of a section, also before a digit: "4.8 2d Arrays"
_WORD = re.compile(r"\w+")
_SEPARATOR_CHARACTERS = " -–—|:·•»«/"
_BRACKETS_AT_END = re.compile(r"\s*\((?:[^()]|\([^()]*\))*\)\s*$")
_PRODUCT = re.compile(r"version|manual|documentation|reference|handbook|guide", re.IGNORECASE)
_GENERIC = frozenset(
    """
    about abstract acknowledgements appendix background changelog changes conclusion conclusions contents copyright
    credits description details documentation examples example faq features foreword glossary home index installation
    introduction legal license licence manual notes options overview preface prerequisites purpose quickstart readme
    reference references requirements resources scope summary synopsis syntax terminology top troubleshooting tutorial
    untitled usage welcome
    """.split()
) | {"getting started", "see also", "table of contents", "frequently asked questions", "release notes", "user guide"}
# What programs and templates put where a title should stand.
_PLACEHOLDER = re.compile(
    r"(?:microsoft (?:word|powerpoint|excel) ?-|untitled\b|\(anonymous\)|view survey$|no title$"
    r"|(?:(?:new |neues )?document|(?:power ?point )?presentation) ?\d*$|(?:book|slide|layout|sheet) ?\d+$"
    r"|[<\[(]?(?:(?:project|document|page|proposal|your|insert|the) )*title(?: here)?[>\])]?$"
    r"|.*\.(?:docx?|xlsx?|pptx?|tex|dvi|indd|qxd|ps|pdf|fm|odt|html?)$)"
)
_LETTERS = re.compile(r"(?<![^\W_])[^\W\d_]{3,}(?![^\W_])")
_JOINTS = re.compile(r"[\W_]+")
_NO_NAMES = frozenset("app appendix book chap chapter doc index node page part preface readme sec sect section".split())


def clean_heading(text: str) -> str:
    """A heading without its number (`2.1 Rivers`, `Chapter 2. Rivers`, `Question 2. Why?`) and its own link's `¶`.

    The number of a version (`2.1.0 (May 2024)`) stays.
    """
    text = squeeze(text)
    end = len(text)
    while length := _mark(text, end):
        end -= length
    text = text if end == len(text) or _LANGUAGE.search(text) else text[:end].rstrip()
    number = _NUMBER.match(text)
    return text if number is None or _VERSION.fullmatch(text) else text[number.end() :]


def _mark(text: str, end: int) -> int:
    """The length of the mark of a link that a text has before `end`, or 0."""
    if "\ue000" <= text[end - 1 : end] <= "\uf8ff":
        return 1
    if not text.endswith(_MARKS, 0, end):
        return 0
    return next(len(mark) for mark in _MARKS if text.endswith(mark, 0, end))


def is_name(text: str) -> bool:
    """Whether a heading without letters says what follows, as `2023`, `502` or `2.0` do; page numbers do not."""
    return _NAME.fullmatch(text) is not None


def is_generic(text: str) -> bool:
    """Whether a heading names a part that every document may have, such as an introduction."""
    return clean_heading(text).casefold().strip(" .:") in _GENERIC


def is_placeholder(title: str) -> bool:
    """Whether a title says nothing: it has no letters, or is what a program or template puts in its place."""
    return _PLACEHOLDER.match(title.casefold()) is not None or not any(map(str.isalpha, title))


def names_page(name: str) -> bool:
    """Whether the name of a file says what it is about: `billing.html` does, `ch01.html` and `index.html` do not."""
    stem = PurePosixPath(name).name.partition(".")[0]
    words = [word for word in _LETTERS.findall(stem) if word.casefold() not in _NO_NAMES]
    return bool(words) and not is_generic(_JOINTS.sub(" ", stem))


def is_numbered(text: str) -> bool:
    """Whether a heading begins with the number of a chapter or section."""
    return _NUMBER.match(text) is not None or text[:1].isdigit()


def page_title(title: str, headings: Sequence[tuple[int, str]], parent_title: str = "") -> str:
    """What to call a page: its `<title>` without the name of the site, or its first heading; "" if it has neither.

    A page whose own title is generic is called as the page above it, or else as the site. `headings` are the levels and
    texts of its headings, in order; `parent_title` is the title of the page above it.
    """
    title, parent_title = squeeze(title), clean_heading(parent_title)
    page_name = title
    if headings and title:
        page_name = _own_part(title, [text for _, text in headings[:3]])
    if not title:
        page_name = next((text for level, text in headings if level == 1), "") or (headings[0][1] if headings else "")
    elif page_name == title and headings:
        level, first = headings[0]
        is_alone = sum(other == 1 for other, _ in headings) == 1
        common = _words(first) & _words(title)
        if level == 1 and is_alone and not common and not is_generic(first) and not is_numbered(first):
            page_name = first
    part = page_name
    brackets = _BRACKETS_AT_END.search(page_name)
    if brackets is not None and brackets.start() and _PRODUCT.search(brackets[0]):
        page_name = page_name[: brackets.start()]
    page_name = clean_heading(page_name)
    if is_generic(page_name):
        return (
            parent_title
            or clean_heading(_BRACKETS.sub(r"\1", title.replace(part, "", 1).strip(_SEPARATOR_CHARACTERS)))
            or page_name
        )
    return page_name


def _own_part(title: str, headings: Sequence[str]) -> str:
    """The part of a title that one of the first headings repeats, else the whole title."""
    bare = _BRACKETS_AT_END.sub("", title)
    parts = [part for part in (title, bare, *_SEPARATOR.split(title)) if part]
    for text in headings:
        name, bare_name = _bare_title(clean_heading(text)), _bare_title(_NUMBERS.sub("", text, count=1))
        for part in parts:
            if _bare_title(clean_heading(part)) in (name, bare_name):
                return part
    first = _words(clean_heading(headings[0]))
    for part in parts[2:]:
        if (words := _words(part)) and words <= first and not is_generic(part):
            return part
    return title


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _bare_title(text: str) -> str:
    """A title without the signs between its words; one of signs alone as it is."""
    return " ".join(_WORD.findall(text.casefold())) or text
