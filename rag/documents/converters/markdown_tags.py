"""Tells HTML in Markdown from a placeholder such as `<url>`, which is text although CommonMark takes it for a tag."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

# Tags that mean something by themselves; others have an end or, such as `<input>`, attributes.
_VOID_TAGS = frozenset("p li dt dd tr td th thead tbody tfoot colgroup rt rp html head body br hr wbr img".split())
_ELEMENTS = _VOID_TAGS | frozenset(
    """
    a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote button
    canvas caption center cite code col data datalist del details dfn dialog dir div dl em embed fieldset figcaption
    figure font footer form frame frameset h1 h2 h3 h4 h5 h6 header hgroup i iframe input ins kbd label legend link main
    map mark marquee menu meta meter nav nobr noembed noframes noscript object ol optgroup option output param picture
    pre progress q rb rtc ruby s samp script search section select slot small source span strike strong style sub
    summary sup table template textarea time title track tt u ul var video xmp
    svg circle defs ellipse g line path polygon polyline rect stop text tspan use
    math annotation mfrac mi mn mo mover mrow mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder
    munderover semantics
    """.split()
)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)(\s+[\w:-]+\s*=)?")
_END = re.compile(r"</([A-Za-z][A-Za-z0-9-]*)\s*>|<([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]*)?/>")


def keep_placeholders(reader: "MarkdownIt", text: str) -> None:
    """Let the reader of a text take tags for text if they are no elements of HTML and no components."""
    from markdown_it.rules_block import html_block
    from markdown_it.rules_inline import html_inline

    is_text = _placeholders(text)

    def block(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        return not is_text(state.src, state.bMarks[start] + state.tShift[start]) and html_block(
            state, start, end, silent
        )

    def inline(state: "StateInline", silent: bool) -> bool:
        return not is_text(state.src, state.pos) and html_inline(state, silent)

    reader.block.ruler.at("html_block", block, {"alt": ["paragraph", "reference", "blockquote"]})
    reader.inline.ruler.at("html_inline", inline)


def _placeholders(text: str) -> Callable[[str, int], bool]:
    """Whether the tag at a place of a part of the text is a placeholder.

    Elements of HTML have an end or attributes. Components of a site, as `<Tabs>` or `<my-button>`, have an end.
    """
    closed_tags = {(end[1] or end[2]).lower() for end in _END.finditer(text)}

    def is_text(part: str, position: int) -> bool:
        tag = _TAG.match(part, position)
        if tag is None:
            return False
        name, end, attribute = tag[2].lower(), tag[1], tag[3]
        if name in _ELEMENTS:
            return not (end or attribute or name in _VOID_TAGS or name in closed_tags)
        return not ((tag[2][0].isupper() or "-" in name) and name in closed_tags)

    return is_text
