"""Tells what a file is by its beginning, where other files have names like it."""

import re

# LaTeX: a document, a part of one, or a package.
_LATEX_DOCUMENT = re.compile(rb"^[^%\n]*\\(?:documentclass|documentstyle|begin[ \t]*\{document\})", re.MULTILINE)
_LATEX_PART = re.compile(rb"^[^%\n]*\\(?:part|chapter|(?:sub)*section|paragraph|begin)\*?[ \t]*[\[{]", re.MULTILINE)
_LATEX_PROGRAM = re.compile(
    rb"^[ \t]*\\(?:Provides(?:Package|Class|File|Expl\w+)|NeedsTeXFormat|input[ \t]+\{?texinfo|bye\b|RequirePackage)",
    re.MULTILINE,
)
_LATEX_DEFINITION = re.compile(
    rb"^[ \t}]*\\(?:[egx]?def|global|long|outer|let|new\w+|renew\w+|provide\w+|Declare\w+|expandafter|catcode"
    rb"|if\w*|else|fi|advance|font|[a-z]+[@_]\w*|make\w+|end\w*group|begingroup|set\w+|csname)[^a-z]",
    re.MULTILINE,
)
_LATEX_COMMENT = re.compile(rb"(?<!\\)%.*")
_LATEX_WORD = re.compile(
    rb"(?<![\\A-Za-z@])[A-Za-z\x80-\xff]{2,}[ ,.\n]|(?:[\xe3-\xe9][\x80-\xbf]{2}){2}"
)  # or a word of Chinese

_MAN_PAGE = re.compile(rb"^[.'][ \t]*(?:TH|Dd|Dt|so|SH|Sh)\b", re.MULTILINE)
_MDOC_PAGE = re.compile(rb"^[.'][ \t]*(?:Dd|Dt|Sh)\b", re.MULTILINE)
_ORG = re.compile(rb"^(?:\*+[ \t]+\S|[ \t]*#\+\w)", re.MULTILINE)

_DOCTYPE = re.compile(rb"<!DOCTYPE\s+(?:[\w.-]+:)?([\w.-]+)([^>\[]*)")
_TAG = re.compile(rb"<(?:[\w.-]{1,40}:)?([a-zA-Z][\w.-]{0,40})(?=[\s/>])")
_DOCBOOK = b"http://docbook.org/ns/docbook"
_DOCBOOK_ROOTS = frozenset(
    b"""
    appendix article book chapter glossary part preface qandaset refentry reference refsect1 sect1 sect2 sect3 sect4
    sect5 section set simplesect topic
    """.split()
)
_DOCBOOK_SIGN = re.compile(rb"<(?:para|simpara|formalpara|sect1|bookinfo|articleinfo|refmeta|refnamediv)\b")


def is_latex(head: bytes) -> bool:
    """Whether a file is a document or a part of one, by its beginning: packages and plain TeX are called so, too."""
    if _LATEX_DOCUMENT.search(head):
        return True
    if _LATEX_PROGRAM.search(head):
        return False
    text = _LATEX_COMMENT.sub(b"", head)
    lines = sum(map(bool, map(bytes.strip, text.split(b"\n"))))
    if 3 * len(_LATEX_DEFINITION.findall(text)) >= lines:
        return False
    return _LATEX_PART.search(text) is not None or len(_LATEX_WORD.findall(text)) > 5 * lines


def is_man_page(head: bytes) -> bool:
    """Whether the beginning of a file is that of a manual page, in man(7) or mdoc(7)."""
    return _MAN_PAGE.search(head) is not None


def is_mdoc(head: bytes) -> bool:
    """Whether a manual page is written in mdoc(7)."""
    return _MDOC_PAGE.search(head) is not None


def is_org(head: bytes) -> bool:
    """Whether a file has a heading or a keyword of Org near its beginning."""
    return _ORG.search(head) is not None


def is_docbook(head: bytes) -> bool:
    """Whether the beginning of an XML file is that of a DocBook document."""
    if _DOCBOOK in head:
        return True
    doctype = _DOCTYPE.search(head)
    if doctype is not None and b"docbook" in doctype[2].lower():
        return True
    root = doctype or _TAG.search(head)
    return root is not None and root[1] in _DOCBOOK_ROOTS and _DOCBOOK_SIGN.search(head) is not None


def is_no_corpus(head: bytes) -> bool:
    """Whether a file is no collection of passages, as some have such names, by its beginning."""
    from autoais.formats.corpora import CORPORA

    lines = [line for line in head.splitlines() if line.strip()]
    return not any(kind.detect(line) for line in lines[:3] for _, kind in CORPORA.items())
