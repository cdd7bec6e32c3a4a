"""A line of mdoc(7) as text: what macros such as `Fl` and `Ar` print."""

from collections.abc import Sequence

from rag.documents.roff import plain

_QUOTES = {
    "Op": ("[", "]"), "Oo": ("[", ""), "Oc": ("", "]"), "Pq": ("(", ")"), "Po": ("(", ""), "Pc": ("", ")"),
    "Bq": ("[", "]"), "Brq": ("{", "}"), "Aq": ("<", ">"), "Dq": ("“", "”"), "Do": ("“", ""), "Dc": ("", "”"),
    "Sq": ("‘", "’"), "So": ("‘", ""), "Sc": ("", "’"), "Ql": ("‘", "’"), "Qq": ('"', '"'), "Qo": ('"', ""),
    "Qc": ("", '"'), "Bro": ("{", ""), "Brc": ("", "}"),
    "Ao": ("<", ""), "Ac": ("", ">"), "Bo": ("[", ""), "Bc": ("", "]"),
}  # fmt: skip
_WORDS = {
    "Ux": "UNIX", "Bx": "BSD", "Bsx": "BSD/OS", "Nx": "NetBSD", "Fx": "FreeBSD", "Ox": "OpenBSD", "Dx": "DragonFly",
    "At": "AT&T UNIX", "Ud": "currently under development.", "Bt": "is currently in beta test.",
    "Ex": "Exits 0 on success, and >0 if an error occurs.",
    "Rv": "Returns 0 if successful; otherwise -1, and errno says why.",
}  # fmt: skip
_SILENT = frozenset(
    """
    Ad An Ar Cd Cm Dv Em Er Ev Fa Fd Fr Ft Ic In It Li Lk Mt Ms No Nd Pa Sx Sy Tn Tg Va Vt Dl D1 Ef Bf Xo Xc Ap Lb St
    Hf Ot Db %A %B %C %D %I %J %N %O %P %Q %R %T %U %V Xr Nm Fl Fn Fo Fc Ns Pf Ta Eo Ec
    """.split()
)
_CLOSING = frozenset([".", ",", ":", ";", ")", "]", "?", "!"])
_OPENING = frozenset(["(", "["])


def inline(name: str, words: Sequence[str], page: str, *, tight: bool = False) -> str:
    """What a line prints; `page` is the name that `.Nm` stands for without an argument.

    `tight` is the mode that `.Sm off` begins: no spaces between words.
    """
    pieces = _Pieces(tight)
    ends: list[str] = []
    todo = [name, *words]
    at = 0
    flags = False  # each word that follows is an option
    tail = len(todo)  # from here on, all is punctuation, which stands outside of brackets
    while tail and todo[tail - 1] in _CLOSING:
        tail -= 1
    while at < len(todo):
        word = todo[at]
        at += 1
        flags = word == "Fl" or (flags and not _is_macro(word))
        following = todo[at] if at < len(todo) else None
        if word in _QUOTES:
            before, after = _QUOTES[word]
            pieces.add(before, glue=True)
            if before and after:
                ends.append(after)
            elif after:
                pieces.close(after)
        elif word in _WORDS:
            pieces.add(_WORDS[word])
        elif word == "Fl":
            if following is None or _is_macro(following) or following in _CLOSING:
                pieces.add("-")
        elif word == "Nm" and (following is None or _is_macro(following) or following in _CLOSING):
            pieces.add(page)
        elif word == "Xr" and at + 1 < len(todo):
            pieces.add(f"{plain(todo[at])}({plain(todo[at + 1])})")
            at += 2
        elif word == "Fn" and following is not None:
            arguments = []
            at += 1
            while at < len(todo) and not _is_macro(todo[at]) and todo[at] not in _CLOSING:
                arguments.append(plain(todo[at]))
                at += 1
            pieces.add(f"{plain(following)}({', '.join(arguments)})")
        elif word in ("Ns", "Ap"):
            pieces.glued = True
            if word == "Ap":
                pieces.add("'", glue=True)
        elif word == "Pf" and following is not None:
            pieces.add(plain(following), glue=True)
            at += 1
        elif word == "Nd":
            pieces.add("–")
        elif word == "Ta":
            pieces.add("\t")
        elif word in _SILENT:
            continue
        elif word in _CLOSING:
            while ends and at > tail:
                pieces.close(ends.pop())
            pieces.close(word)
        else:
            pieces.add(f"-{plain(word)}" if flags else plain(word), glue=word in _OPENING)
    for after in reversed(ends):
        pieces.close(after)
    return pieces.text()


def _is_macro(word: str) -> bool:
    return word in _QUOTES or word in _SILENT or word in _WORDS


class _Pieces:
    """Words with spaces between them, unless one sticks to the next."""

    def __init__(self, tight: bool) -> None:
        self._parts: list[str] = []
        self._tight = tight
        self.glued = True

    def add(self, text: str, *, glue: bool = False) -> None:
        """Add a word; `glue` sticks the next one to it."""
        if text:
            self._parts.append(text if self.glued or self._tight else f" {text}")
            self.glued = glue

    def close(self, text: str) -> None:
        """Add what sticks to the word before it."""
        self._parts.append(text)
        self.glued = False

    def text(self) -> str:
        return "".join(self._parts)
