"""The parts that LaTeX consists of: commands, braces, formulas, code and text."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rag.documents.blocks import squeezed

SYMBOLS = {
    "AA": "Å", "AE": "Æ", "BibTeX": "BibTeX", "L": "Ł", "LaTeX": "LaTeX", "LaTeXe": "LaTeX2e", "O": "Ø", "OE": "Œ",
    "P": "¶", "S": "§", "TeX": "TeX", "XeLaTeX": "XeLaTeX", "aa": "å", "ae": "æ", "checkmark": "✓", "copyright": "©",
    "cs": "\\", "dag": "†", "ddag": "‡", "degree": "°", "dots": "…", "euro": "€", "glqq": "„", "grqq": "“",
    "guillemotleft": "«", "guillemotright": "»", "hfill": " ", "i": "i", "j": "j", "l": "ł", "lbrace": "{",
    "ldots": "…", "nobreakspace": " ", "o": "ø", "oe": "œ", "pounds": "£", "qquad": " ", "quad": " ", "rbrace": "}",
    "space": " ", "ss": "ß", "textasciicircum": "^", "textasciitilde": "~", "textasteriskcentered": "*",
    "textbackslash": "\\", "textbar": "|", "textbraceleft": "{", "textbraceright": "}", "textbullet": "•",
    "textcopyright": "©", "textdegree": "°", "textdollar": "$", "textellipsis": "…", "textemdash": "—",
    "textendash": "–", "texteuro": "€", "textgreater": ">", "textless": "<", "textmu": "µ", "textquotedbl": '"',
    "textquotedblleft": "“", "textquotedblright": "”", "textquoteleft": "‘", "textquoteright": "’",
    "textquotesingle": "'", "textregistered": "®", "textsection": "§", "texttimes": "×", "texttrademark": "™",
    "textunderscore": "_", "textvisiblespace": " ", "%": "%", "&": "&", "$": "$", "#": "#", "_": "_", "{": "{",
    "}": "}", " ": " ", "\n": " ", ",": " ", ";": " ", ":": " ", ">": " ",
}  # fmt: skip
_IN_FORMULAS = {
    "Delta": "Δ", "Gamma": "Γ", "Lambda": "Λ", "Leftarrow": "⇐", "Leftrightarrow": "⇔", "Omega": "Ω", "Phi": "Φ",
    "Pi": "Π", "Psi": "Ψ", "Rightarrow": "⇒", "Sigma": "Σ", "Theta": "Θ", "alpha": "α", "approx": "≈", "ast": "*",
    "backslash": "\\\\", "beta": "β", "bullet": "•", "cap": "∩", "cdot": "·", "cdots": "…", "chi": "χ", "circ": "∘",
    "colon": ":", "cos": "cos", "cup": "∪", "delta": "δ", "dots": "…", "ell": "ℓ", "emptyset": "∅", "epsilon": "ε",
    "equiv": "≡", "eta": "η", "exists": "∃", "exp": "exp", "forall": "∀", "gamma": "γ", "ge": "≥", "geq": "≥",
    "gg": "≫", "gt": ">", "iff": "⇔", "in": "∈", "infty": "∞", "int": "∫", "kappa": "κ", "lambda": "λ", "land": "∧",
    "langle": "⟨", "ldots": "…", "le": "≤", "leftarrow": "←", "leq": "≤", "lim": "lim", "ll": "≪", "ln": "ln",
    "log": "log", "lor": "∨", "lt": "<", "mapsto": "↦", "max": "max", "mid": "|", "min": "min", "mu": "μ",
    "nabla": "∇", "ne": "≠", "neg": "¬", "neq": "≠", "notin": "∉", "nu": "ν", "omega": "ω", "oplus": "⊕",
    "otimes": "⊗", "partial": "∂", "phi": "φ", "pi": "π", "pm": "±", "prime": "′", "prod": "∏", "propto": "∝",
    "psi": "ψ", "rangle": "⟩", "rho": "ρ", "rightarrow": "→", "sigma": "σ", "sim": "~", "simeq": "≃", "sin": "sin",
    "star": "*", "subset": "⊂", "subseteq": "⊆", "sum": "∑", "tan": "tan", "tau": "τ", "theta": "θ", "times": "×",
    "to": "→", "varepsilon": "ε", "varphi": "φ", "wedge": "∧", "xi": "ξ", "zeta": "ζ", "%": "%", "&": "&",
    "#": "#", "_": "_", "lbrace": "{", "rbrace": "}",
}  # fmt: skip
_NOTHING = frozenset(
    """
    big Big bigg Bigg bigl bigr Bigl Bigr displaystyle left limits mathbin mathop mathrel middle nolimits nonumber
    notag qquad quad right rm scriptstyle textstyle bf it , ; : ! > / \\
    """.split()
)  # in formulas: they only set space and size
ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306", ".": "\u0307",
    '"': "\u0308", "r": "\u030a", "H": "\u030b", "v": "\u030c", "d": "\u0323", "c": "\u0327", "k": "\u0328",
    "b": "\u0331",
}  # fmt: skip
_CODE = frozenset(
    "BVerbatim LVerbatim Verbatim alltt code lstlisting minted semiverbatim sphinxVerbatim spverbatim verbatim".split()
)
_FORMULAS = frozenset("align alignat displaymath eqnarray equation flalign gather math multline".split())
_DRAWN = frozenset("CCSXML comment filecontents forest pgfpicture picture pspicture tikzcd tikzpicture".split())
_TOKEN = re.compile(
    r"(?P<comment>%[^\n]*(?:\n[ \t]*(?=\S))?)"
    r"|(?P<edge>\\(?:begin|end)[ \t]*\{[^{}\n]{1,60}\})"
    r"|\\(?:verb\*?|lstinline(?:\[[^\[\]\n]{0,200}\])?|mintinline(?:\[[^\[\]\n]{0,200}\])?\{\w{1,30}\})"
    r"(?P<quote>[^\w\s*{])(?P<verb>[^\n]{0,300}?)(?P=quote)"
    r"|\\(?:url|path|nolinkurl)[ \t]*\{(?P<address>[^{}\s]{1,2000})\}|(?P<target>\\href[ \t]*\{[^{}\s]{1,2000}\})"
    r"|(?P<length>\\(?:[vhm]skip|kern|parindent|parskip|baselineskip)[ \t]*=?[ \t]*"
    r"-?[\d.]{0,20}[ \t]*(?:\\?[a-zA-Z]{1,30})?)"
    r"|\\\((?P<round>(?:[^\\$]|\\[^()])*+)\\\)|\\\[(?P<square>(?:[^\\$]|\\[^\[\]])*+)\\\]"
    r"|\$\$(?P<double>(?:[^$\\]|\\.)++)\$\$|\$(?P<single>(?:[^$\\\n]|\\.|\n(?![ \t]*\n))++)\$"
    r"|\\(?P<command>[a-zA-Z]+\*?|.)"
    r"|(?P<par>[ \t]*\n[ \t]*\n\s*)|(?P<sign>[{}\[\]&])|(?P<text>[^\\%{}\[\]&$\n]+|[\\$\n])",
    re.DOTALL,
)
_WORDS = re.compile(
    r"\\(?:text|textrm|textit|textbf|textsf|texttt|mathrm|mathit|mathbf|mathsf|mathbb|mathcal|mathtt|operatorname|mbox"
    r"|boldsymbol|bm|ensuremath)\*?[ \t]*\{([^{}]{0,300})\}"
)
_LABEL = re.compile(r"\\(?:label|tag)\*?\{[^{}]{0,200}\}")
_NAME = re.compile(r"\\([a-zA-Z]+|.)[ \t]*", re.DOTALL)
_SINGLE = re.compile(r"([_^])\{(\w)\}")
_OPTION = re.compile(r"[ \t]*\[([^\[\]]{0,500}(?:\[[^\[\]]{0,100}\][^\[\]]{0,300}){0,5})\]")
_LANGUAGE = re.compile(r"[ \t]*\{\w{0,30}\}")
_DASHES = re.compile(r"(?<!-)---?(?!-)")
_SPECIAL = re.compile(r"``|''|\"[=`']|`(?:([^`']{1,100})'(?!\w))?|~")
_QUOTES = {"``": "“", "''": "”", "`": "'", "~": "\N{NO-BREAK SPACE}", '"=': "-", '"`': "„", "\"'": "“"}


class Token(NamedTuple):
    """A part of a text: `kind` is command, begin, end, code, formula, drawing, par, text or a sign such as `{`."""

    kind: str
    text: str
    option: str = ""  # of code


def tokens(text: str) -> Iterator[Token]:
    """The parts of a text up to its end, in order; comments are left out."""
    at, missing = 0, set[str]()  # the ends that do not stand further down
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None  # one of the alternatives fits any character
        at = found.end()
        kind = found.lastgroup or ""
        if kind == "edge":
            edge, _, name = found[0].strip("\\}").partition("{")
            end = f"\\end{{{name}}}"
            whole = edge.strip() == "begin" and end not in missing and _whole(name)
            stop = text.find(end, at) if whole else -1
            if whole and stop >= 0:
                yield _inside(_whole(name), name, text[at:stop])
                at = stop + len(end)
            else:
                missing |= {end} if whole else set()
                yield Token(edge.strip(), name.rstrip("*"))
        elif kind in ("round", "square", "double", "single"):
            yield Token("formula", found[kind])
        elif kind in ("verb", "address"):
            yield Token("text", found[kind])
        elif kind == "text":
            yield Token("text", _set(found[0]))
        elif kind == "sign":
            yield Token(found[0], found[0])
        elif kind in ("command", "par"):
            yield Token(kind, found[kind].rstrip("*") if len(found[kind]) > 1 else found[kind])


def _whole(name: str) -> str:
    """What an environment is whose text is no LaTeX; "" if it is read as the text around it."""
    bare = name.rstrip("*")
    if bare in _CODE:
        return "code"
    return "formula" if bare in _FORMULAS else "drawing" if bare in _DRAWN else ""


def _inside(kind: str, name: str, text: str) -> Token:
    if kind != "code":
        return Token(kind, text)
    option = _OPTION.match(text)
    text = text[option.end() :] if option else text
    if name.startswith("minted") and (language := _LANGUAGE.match(text)):
        text = text[language.end() :]
    return Token(kind, text, option[1] if option else "")


def _set(text: str) -> str:
    """Text with its dashes and quotes as they are set; two dashes before an option stay."""
    text = _DASHES.sub(_dash, text) if "--" in text else text
    return _SPECIAL.sub(lambda found: f"‘{found[1]}’" if found[1] else _QUOTES[found[0]], text.replace("\n", " "))


def _dash(found: re.Match[str]) -> str:
    before, after = found.string[max(0, found.start() - 1) : found.start()], found.string[found.end() : found.end() + 1]
    if found[0] == "---":
        return "—"
    return "--" if after.islower() and not before.isalnum() and before not in (")", ".") else "–"


def formula(source: str, own: Mapping[str, str]) -> str:
    """A formula without signs that only set it in type; one that still has commands stays between dollar signs."""
    matrix = "\\begin" in source  # whose rows are kept
    plain = _LABEL.sub("", source) if matrix else _LABEL.sub("", source).replace("&", " ")

    def said(found: re.Match[str]) -> str:
        name = found[1]
        if name in _NOTHING:
            return found[0] if matrix and name == "\\" else " "
        if name in own:
            return _WORDS.sub(r"\1", own[name]) + " "
        if name not in _IN_FORMULAS:
            return found[0] + (" " if found.string.startswith("\\", found.end()) else "")
        return _IN_FORMULAS[name] + (" " if found[0] != found[0].rstrip() else "")

    plain = _WORDS.sub(r"\1", _NAME.sub(said, _WORDS.sub(r"\1", plain)))
    plain = squeezed(_SINGLE.sub(r"\1\2", plain).replace("~", " "))
    return f"${plain}$" if re.search(r"\\[a-zA-Z]", plain) else plain.replace("\\", "")
