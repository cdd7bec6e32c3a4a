"""What commands and environments of LaTeX are, by their names."""

import re

LEVELS = {
    "part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6, "subparagraph": 6,
    "addchap": 2, "addsec": 3, "frametitle": 5, "minisec": 6,
}  # fmt: skip
SECTION = 3
SKIPPED = {
    "addcontentsline": 3, "addtocontents": 2, "addtocounter": 2, "addtolength": 2, "adjustbox": 1, "affref": 1,
    "bibliography": 1, "bibliographystyle": 1, "captionsetup": 1, "cellcolor": 1, "cline": 1, "cmidrule": 1,
    "color": 1, "colorbox": 1, "columncolor": 1, "corref": 1, "DeclareMathOperator": 2, "DeclareUnicodeCharacter": 2,
    "definecolor": 3, "documentclass": 1, "documentstyle": 1, "enlargethispage": 1, "fcolorbox": 2, "fnref": 1,
    "fontsize": 2, "foreignlanguage": 1, "geometry": 1, "glossary": 1, "graphicspath": 1, "hphantom": 1, "href": 1,
    "hspace": 1, "hyperlink": 1, "hypersetup": 1, "hypertarget": 1, "hyphenation": 1, "ifthenelse": 1,
    "includegraphics": 1, "index": 1, "inst": 1, "label": 1, "lstset": 1, "marginpar": 1, "markboth": 2,
    "markright": 1, "multirow": 2, "newcounter": 1, "newenvironment": 3, "newlength": 1, "nocite": 1, "pagecolor": 1,
    "pagenumbering": 1, "pagestyle": 1, "parbox": 1, "pdfbookmark": 2, "pgfplotsset": 1, "phantom": 1, "raisebox": 1,
    "refstepcounter": 1, "renewenvironment": 3, "RequirePackage": 1, "resizebox": 2, "rotatebox": 1, "rowcolor": 1,
    "rule": 2, "scalebox": 1, "selectlanguage": 1, "setcounter": 2, "setlength": 2, "settowidth": 2, "sisetup": 1,
    "stepcounter": 1, "tcbset": 1, "textcolor": 1, "thispagestyle": 1, "tikzset": 1, "tnoteref": 1, "todo": 1,
    "typeout": 1, "usepackage": 1, "usetikzlibrary": 1, "vphantom": 1, "vspace": 1,
}  # fmt: skip
"""Commands that say nothing with so many of their values."""
NO_CONDITION = re.compile(  # that ends with \\fi
    r"if(?:thenelse|str.*|bool|toggle|num.+|dim.+|blank|language|undef.*|cs(?!name).+|def(?!ined).+|f)"
)
DEFINING = frozenset("newcommand renewcommand providecommand DeclareRobustCommand def gdef edef xdef let".split())
SET = re.compile(
    r".|tiny|(?:script|footnote|normal)size|small|[lL]arge|LARGE|huge|Huge|\w*(?:skip|fil{1,3}|page|space|series|shape|family"
    r"|ing|null|par|tableofcontents|title|matter|indent|relax|protect|null|strut|today)"
)
"""Commands that set the text and say nothing, also with empty braces."""
NOTES = frozenset(["footnote", "footnotetext", "thanks", "tablefootnote", "endnote", "sidenote"])
REFERENCE = re.compile(
    r"(?:page|eq|auto|[cCvV]|name|sub|[lL]abelc)?ref(?:range)?|[A-Za-z]*[cC]ite(?!only)(?:[pt]|alp|alt|author|year|yearpar|field)?"
)
SAID = {"author": "Author", "date": "Date", "subtitle": "Subtitle"}
RULES = frozenset(["hline", "toprule", "midrule", "bottomrule", "cline", "cmidrule", "specialrule", "Xhline"])
TABLE_PARTS = frozenset(["endfirsthead", "endhead", "endfoot", "endlastfoot"])
TABLES = frozenset(
    "NiceTabular longtable longtabu mpsupertabular supertabular tabu tabular tabularx tabulary tblr xtabular".split()
)
BOXES = frozenset("adjustbox column columns list minipage multicols spacing tabbing thebibliography wrapfigure".split())
FLOATS = frozenset(["table", "longtable", "longtabu", "sidewaystable", "wraptable", "supertabular", "margintable"])
LABELS = frozenset(
    """
    caution claim conjecture corollary definition example exercise important lemma note proof proposition remark theorem
    tip warning
    """.split()
)
LIST = re.compile(r"(?:\w*(itemize|itemise|enumerate|enum|description|list)[si]{0,3}|compactitem|trivlist)")
CAPTION = re.compile(r"\b(?:caption|title)[ \t]*=[ \t]*(?:\{([^{}]{1,300})\}|([^,{}]{1,300}))")
