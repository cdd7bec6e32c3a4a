"""What Liquid and Jinja add to Markdown (Jekyll, Eleventy), as no site is built here: tags give way to what they say.

- A tag in the target of a link becomes the target, so that the link is one: `[tools]({% page "/tools" %})`.
- Another tag leaves its last argument, if that is no path: `{% room "help" %}` says `help`. Statements say nothing.
- A comment goes, and so does a loop, whose data stand elsewhere. `highlight` becomes a fence, and what stands between
  `raw` and `endraw` is text.
- A setting of the site is named in brackets, as its value stands elsewhere: `{{ site.team_name }}` says `[team name]`.

Code stays as it is, but for the marks `raw` and `endraw` in a line of text.
"""

import re

_CODE = r"(?P<code>^[ \t>]*(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ \t>]*(?P=fence)[^\n]*$|(?<!`)`[^`\n]{1,500}`)"
_TAG = r"\{%-?\s*(?P<name>\w+)(?P<arguments>[^%{}]{0,1000})%\}"
_SETTING = r"\{\{-?\s*(?:site|page)\.(?P<setting>[\w.]{1,100})[^{}\n]{0,200}\}\}"
_PARTS = re.compile("|".join([_CODE, _TAG, _SETTING]), re.DOTALL | re.MULTILINE)
_ENDS = {name: re.compile(rf"\{{%-?\s*end{name}\s*-?%\}}") for name in ("comment", "raw", "highlight", "for")}
_RAW_MARK = re.compile(r"\{%-?\s*(?:end)?raw\s*-?%\}")
_TARGET = re.compile(  # what stands before one, also its beginning
    r"(?:\]\(\s*|^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*|=[\"'])<?(?:\{[{%][^{}\n]*[}%]\}|[^\s(){}\"'<>])*\Z", re.MULTILINE
)
_LINE_START, _LINE_END = re.compile(r"^[ \t>]*\Z", re.MULTILINE), re.compile(r"[ \t]*$", re.MULTILINE)
_QUOTED = re.compile(r'"([^"\n]*)"|\'([^\'\n]*)\'')
_IS_PATH = re.compile(r"\S*/\S*|\S+\.\w{2,5}")
_NO_TARGET = re.compile(r"[^\w./#?=&:~-]+")
_STATEMENTS = frozenset(
    """
    assign block break call capture case continue cycle decrement else elseif elsif extends feed_meta
    filter for from if ifchanged import include include_relative increment layout load macro paginate render section
    seo set tablerow unless when with
    """.split()
)
_CONTENTS = re.compile(r"^[ \t]*(?:[-*+]|\d+\.)[ \t][^\n]*\n[ \t]*\{:?[ \t]*:?toc\b[^{}\n]*\}[ \t]*$", re.MULTILINE)
_MARKED_UP = re.compile(r"^[ \t]*<(\w+)\b[^<>\n]*\bmarkdown=[\"']?(?:1|block|span)[\"']?[^<>\n]*>[ \t]*$", re.MULTILINE)


def read_liquid(text: str) -> str:
    """A text in Markdown without the tags of Liquid, and without what Kramdown makes of the page by itself."""
    if "{:" in text:
        text = _CONTENTS.sub("", text)
    if "markdown=" in text:
        text = _part_elements(text)
    if "{%" not in text and "{{" not in text:
        return text
    parts: list[str] = []
    position, endless = 0, set[str]()  # an end that is missing once is not looked for again
    while (match := _PARTS.search(text, position)) is not None:
        parts.append(text[position : match.start()])
        position, name = match.end(), match["name"] or ""
        end = _ENDS[name].search(text, position) if name in _ENDS and name not in endless else None
        if end is not None:
            parts.append(_inside(match, text[position : end.start()]))
            position = end.end()
        else:
            endless.add(name)
            parts.append(_code(match) if match["code"] is not None else _words(match, text))
    return "".join([*parts, text[position:]])


def _code(match: re.Match[str]) -> str:
    """Code without the marks `raw` if it stands in a line; a block of tags alone would be left out without them."""
    return match[0] if match["fence"] is not None else _RAW_MARK.sub("", match[0])


def _inside(match: re.Match[str], inner: str) -> str:
    """What remains of the text between a tag and its end."""
    if match["name"] == "highlight":
        inner = inner.strip("\n")
        return f"\n```{match['arguments'].split()[0] if match['arguments'].strip() else ''}\n{inner}\n```\n"
    return inner if match["name"] == "raw" else ""


def _words(match: re.Match[str], text: str) -> str:
    """What a tag or a setting says at its place in a text."""
    is_target = _TARGET.search(text, max(0, match.start() - 250), match.start()) is not None
    if (setting := match["setting"]) is not None:
        return setting if is_target else f"\\[{setting.replace('_', ' ').replace('.', ' ')}\\]"
    name, arguments = match["name"], match["arguments"].strip(" \t\r\n-")
    quoted = [first or second for first, second in _QUOTED.findall(arguments)]
    if is_target:
        return _NO_TARGET.sub("-", quoted[0] if quoted else arguments) or "#"
    if name in _STATEMENTS or name.startswith("end") or _stands_alone(match, text):
        return ""
    return quoted[-1] if quoted and not _IS_PATH.fullmatch(quoted[-1]) else ""


def _stands_alone(match: re.Match[str], text: str) -> bool:
    """Whether a tag is all of its line, as an image or a box is."""
    begins = _LINE_START.search(text, max(0, match.start() - 80), match.start()) is not None
    return begins and _LINE_END.match(text, match.end()) is not None


def _part_elements(text: str) -> str:
    """The text with an empty line where Markdown begins and ends in elements that say that they hold some."""
    names = {match[1] for match in _MARKED_UP.finditer(text)}
    text = _MARKED_UP.sub(lambda match: f"{match[0]}\n", text)
    for name in sorted(names):
        text = re.sub(rf"^[ \t]*</{name}>[ \t]*$", "\n\\g<0>", text, flags=re.MULTILINE)
    return text
