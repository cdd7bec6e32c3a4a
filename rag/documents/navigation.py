"""Which parts of a page are navigation, contents, an index or boilerplate rather than text."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

# What is left out, one of it.
NAVIGATION, CONTENTS = "piece of navigation", "part of contents or an index"
BOILERPLATE, FIGURE, MARGIN = "notice", "caption of figures", "line of page headers and footers"
HIDDEN = "part that is hidden"
SIGNS = "line of numbers or signs in figures and formulas"
SURROUNDINGS = frozenset([NAVIGATION, CONTENTS, BOILERPLATE, FIGURE, MARGIN, SIGNS])
"""What surrounds the text of a document; what else is left out may be missed."""
REDIRECT, FRAMES, SEARCH, LISTING = "redirect", "page of frames", "page for searching", "listing of source code"


# Names of classes and ids, as DocBook, Sphinx, Texinfo, Doxygen, MkDocs, MediaWiki and common site themes have them.
_NAVIGATION = frozenset(
    """
    navheader navfooter navigation nav navbar navlinks nav-path navpath navrow navtree side-nav breadcrumb breadcrumbs
    sidebar sphinxsidebar sidenav sidebar-nav footer page-footer site-footer printfooter catlinks skip-link skiplink
    toplang bottomlang langlinks related-pages prev-next prevnext previous_page next_page toc_page
    mw-editsection mw-navigation noprint pagination pager edit-page editlink md-header md-footer md-nav md-sidebar
    wy-nav-side wy-breadcrumbs rst-footer-buttons rst-versions titlearea navrow1 navrow2 navrow3 navrow4
    quickview topbar menubar site-nav global-nav sr-only visually-hidden screen-reader-text
    """.split()
)
_CONTENTS = frozenset(
    """
    toc toctree-wrapper localtoc tableofcontents table-of-contents contents_element mini_toc section-toc toc-entry
    list-of-figures list-of-tables list-of-examples list-of-equations list-of-procedures shortcontents
    summarycontents table-contents-list letter-index index-letters genindex-jumpbox modindex-jumpbox genindextable
    modindextable indexdiv qindex menu-preformatted menu-comment index-cp index-fn index-ky index-pg index-tp
    index-vr
    """.split()
)
_PART = re.compile(
    r"(?:^|[-_])(?:nav|menu|toc|contents|crumbs?|breadcrumbs?|sidebar|side|footer|header|banner|related|social|share|advert"
    r"|cookie|pager|pagination|search|login|lang|langs|languages|index|links|up|top|bottom|topics?|genindex|printindex|tabs|directory)(?:$|[-_])"
)
# Of the dialogs that ask for consent: what vendors call theirs, and what others name them.
_CONSENT = re.compile(
    r"(?:^| )(?:onetrust-|cybotcookiebot|didomi-|usercentrics|iubenda-cs|termly-|klaro|cmplz-|borlabs-?cookie|cc-window"
    r"|(?:(?:cookies?|gdpr|ccpa)[-_]?(?:law[-_]?|policy[-_]?)?)(?:consent|banner|notice|bar|dialog|popup|modal|overlay"
    r"|alert|message|info)|consent[-_]?(?:banner|bar|dialog|popup|modal))"
)
_SHARE = re.compile(r"(?:^|[-_ ])(?:shar(?:e|ing)|social|sharedaddy|addtoany|addthis)(?:$|[-_ ])")
_SHARES = re.compile(
    r"\W*(?:shar(?:e|ing)|tweet|pin it|follow us|like us|facebook|twitter|linkedin|whatsapp)\b(?!.*[.!;]\s)",
    re.IGNORECASE,
)
_SHARE_LENGTH = 100  # characters of a row of such buttons
_ROLES = frozenset(
    ["navigation", "search", "banner", "contentinfo", "doc-toc", "doc-index", "directory", "doc-pagelist"]
)
_WORDS = re.compile(
    r"(?:prev|previous|next|up|home|top|index|contents|table of contents|back|forward|page|chapter|section|fast|"
    r"permalink|search|copying|toc|jump to|of|to|the|go|back to top|return|documentation|about|navigation)\b",
    re.IGNORECASE,
)
_NEIGHBOUR = re.compile(r"\W*(?:next|prev|previous|up)\s*:", re.IGNORECASE)
_TO_NEIGHBOUR = re.compile(r"\W*(?:next|prev|previous)\b", re.IGNORECASE)
_SIGNS = re.compile(r"[\s|?<>«»‹›←→↑↓·•:,\-–—\[\]()/]+")
_MAKERS = (
    "wordpress|drupal|joomla|ghost|hugo|jekyll|sphinx|mkdocs|docusaurus|gitbook|read the docs|git(?:hub|lab)|netlify"
    "|vercel|cloudflare|mediawiki|dokuwiki|moinmoin|confluence|discourse|phpbb|blogger|wix|squarespace|shopify|weebly"
)
_BOILERPLATE = re.compile(
    r"(?:©|\(c\)\s|copyright\b.{0,40}\d{4}|all rights reserved|last (?:updated|modified|update|revised)(?: on\b|:| \d)"
    r"|generated on\b|(?:generated (?:by|from)|created using|built with) (?-i:[A-Z])"
    r"|this page was (?:last|generated)|go to the source code of this file"
    rf"|(?:proudly )?(?:powered|hosted) (?:by|on|with) (?:{_MAKERS})\b.{{0,40}}$"
    r"|(?:inheritance|collaboration|include dependency) (?:diagram|graph) for \S+:$"
    r"|valid (?:x?html|css)\b|this (?:document|page|file|manual) was generated\b|skip to (?:main )?content"
    r"|jump to content(?=jump to|\W*$)"
    r"|edit (?:this page|on git(?:hub|lab))|(?:(?:expand|collapse|show|hide)\W{0,3}){1,2}all(?: \w+){0,2}$)",
    re.IGNORECASE,
)
_INDEX = re.compile(
    r"Here (?:is|are) (?:a list of )?(?:all|the) .{0,120}"
    r"(?:brief descriptions|they belong to|each member|documentation)\W*"
    r"|The documentation for this .{0,40}was generated from the following files?:"
    r"|This is the complete list of members for .{1,300}, including all inherited members\W*"
    r"|This inheritance list is sorted roughly, but not completely, alphabetically:"
)
# Without a number, four dots are those of a menu and a full stop: "Choose Save As....". "Tea ..... 2.60" has a price.
_LEADERS = re.compile(
    r"(?<!\.)(?<!\. )(?:(?:\. ?){4,}\s*(?:(?P<page>\d+)|\d+[-–]\d+|[ivxlc]+)(?=\s*$|\s+\S.{0,200}(?:\. ?){4})"
    r"|(?:\. ?){5,}\s*$)"
)
_TITLE = re.compile(
    r"\W*+(?=[tcisí])"  # most texts begin with another letter
    r"(?:(?:table of )?contents|index|inhalt(?:sverzeichnis)?|sommaire|table des matières|[ií]ndice|contenido)\W*",
    re.IGNORECASE,
)

_FACT = re.compile(
    r"[£€$]\s?\d|\d\s?(?:€|£|EUR\b|USD\b|GBP\b)|(?<![\d:])\d{1,2}:\d\d(?![\d:])|\b\d{1,2}[./]\d{1,2}[./](?:19|20)\d\d\b"
    r"|\b\d{1,2}(?:st|nd|rd|th)?\.? (?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)(?:[a-z]{3,6})?\b"
)


@lru_cache(maxsize=1000)  # most elements of a site have the same few
def reason_by_name(names: str, role: str | None) -> str | None:
    """Why an element with these classes and ids (separated by spaces) is dropped, whatever it holds; else None."""
    if role in _ROLES:
        return CONTENTS if role in ("doc-toc", "doc-index") else NAVIGATION
    if _CONSENT.search(names):
        return BOILERPLATE
    parts = names.split()
    if not _CONTENTS.isdisjoint(parts):
        return CONTENTS
    return None if _NAVIGATION.isdisjoint(parts) else NAVIGATION


@lru_cache(maxsize=1000)
def suspicious(names: str) -> bool:
    """Whether classes and ids suggest navigation, so that an element which holds mostly links is dropped."""
    return any(map(_PART.search, names.split()))


def is_share_bar(names: str, text: str) -> bool:
    """Whether an element with these classes and ids only offers to share the page."""
    return len(text) < _SHARE_LENGTH and _SHARE.search(names) is not None and _SHARES.match(text) is not None


def are_facts(texts: Sequence[str]) -> bool:
    """Whether links are what a page says, such as events or goods: half of them have a date, a time or a price."""
    return 2 * sum(map(bool, map(_FACT.search, texts))) >= len(texts) > 0


def is_navigation(text: str) -> bool:
    """Whether a text with links only names neighbouring pages: `Prev | Up | Next`, `Next: Lions, Up: Cats`."""
    if _NEIGHBOUR.match(text):
        return len(text) < 300
    if len(text) >= 80:
        return False
    content = _SIGNS.sub(" ", text).strip()
    return not content or (_WORDS.match(content) is not None and not _WORDS.sub("", content).strip())


def leads_to_neighbour(link: str) -> bool:
    """Whether the text of a link begins as that to the page before or after this one: `[Prev] Lions`."""
    return _TO_NEIGHBOUR.match(link) is not None


def is_boilerplate(text: str) -> bool:
    """Whether a short paragraph is a notice of copyright or of the program that made the page."""
    return len(text) < 150 and _BOILERPLATE.match(text) is not None


def announces_index(text: str) -> bool:
    """Whether a text introduces a generated index or list of files, as on Doxygen's pages of a program's parts."""
    return text.startswith(("Here ", "The documentation ", "This i")) and _INDEX.fullmatch(text) is not None


def names_contents(text: str) -> bool:
    """Whether a heading is that of a table of contents or an index."""
    return _TITLE.fullmatch(text) is not None


def is_contents_line(text: str) -> bool:
    """Whether a line of text belongs to a table of contents or an index: dots that lead to a page number."""
    return _leaders(text) is not None


def are_contents(lines: Sequence[str]) -> bool:
    """Whether lines with such dots are a table of contents: their page numbers do not fall, as prices or sizes do."""
    items = [leaders for line in lines if (leaders := _leaders(line)) is not None]
    pages = [int(leaders["page"][:9]) for leaders in items if leaders["page"]]
    return all(before <= after for before, after in pairwise(pages))


def entry_of(line: str) -> str:
    """What a line of contents names: its text before the dots."""
    leaders = _leaders(line)
    return line[: leaders.start()] if leaders is not None else line


def _leaders(text: str) -> re.Match[str] | None:
    return _LEADERS.search(text) if may_lead(text) else None


def may_lead(text: str) -> bool:
    """Whether a text has two dots in a row, as all dots that lead to something; few have, so few are searched."""
    return ".." in text or ". ." in text
