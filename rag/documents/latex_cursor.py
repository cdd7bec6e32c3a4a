"""A place among the parts of LaTeX, and how the values of commands are skipped or taken from there."""

from collections.abc import Sequence

from rag.documents.latex_tokens import Token, tokens

AHEAD = 200  # parts in which an option or a key ends
SPACE = Token("text", " ")


class Cursor:
    """The parts of a text, for each brace that opens the one that closes it, and the place that is read."""

    def __init__(self, text: str) -> None:
        self.tokens = [*tokens(text)]
        self.ends = _ends_of_groups(self.tokens)
        self.at = 0

    def skip_spaces(self) -> None:
        """Skip text that is only spaces."""
        while self.is_at("text") and self.tokens[self.at].text.isspace():
            self.at += 1

    def close_up(self) -> None:
        """Leave out the spaces that end the name of a letter: `stra\\ss e`."""
        if self.is_at("text"):
            self.tokens[self.at] = Token("text", self.tokens[self.at].text.lstrip())

    def options(self) -> None:
        """Skip what stands between square brackets."""
        while (end := self.end_of_option()) is not None:
            self.at = end + 1

    def end_of_option(self) -> int | None:
        """The bracket that closes the one here, if it is near."""
        if not self.is_at("["):
            return None
        at, last = self.at + 1, self.at + AHEAD
        while at < min(last, len(self.tokens)) and (kind := self.tokens[at].kind) not in ("[", "]", "}", "par"):
            at = self.ends.get(at, at) + 1 if kind == "{" else at + 1
        return at if at < len(self.tokens) and self.tokens[at].kind == "]" else None

    def is_at(self, kind: str) -> bool:
        """Whether the part here is of a kind."""
        return self.at < len(self.tokens) and self.tokens[self.at].kind == kind

    def skip(self, count: int) -> None:
        """Skip so many values in braces, with the options before them."""
        for _ in range(count):
            self.options()
            self.skip_spaces()
            if (end := self.ends.get(self.at)) is None:
                return
            self.at = end + 1

    def source(self) -> str:
        """The value of a command as it is written, such as a key or an address."""
        self.options()
        self.skip_spaces()
        if (end := self.ends.get(self.at)) is None:
            return ""
        parts = self.tokens[self.at + 1 : min(end, self.at + AHEAD)]
        self.at = end + 1
        return "".join(map(written, parts))

    def stands_alone(self) -> bool:
        """Whether a command that is not known says something, as a space after it is kept: `\\sys{} is`."""
        if self.is_at("{"):
            return self.ends.get(self.at) == self.at + 1
        after = self.tokens[self.at] if self.at < len(self.tokens) else SPACE
        return after.text in (" ", "\n") if after.kind == "command" else after.text.startswith("\N{NO-BREAK SPACE}")


def written(token: Token) -> str:
    """A part as it stands in the text."""
    if token.kind == "command":
        return token.text if token.text in "%#&_~\\" else f"\\{token.text} "
    return f"${token.text}$" if token.kind == "formula" else "" if token.kind == "par" else token.text


def _ends_of_groups(parts: Sequence[Token]) -> dict[int, int]:
    """For each brace that opens, the one that closes it."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for at, part in enumerate(parts):
        if part.kind == "{":
            opened.append(at)
        elif part.kind == "}" and opened:
            ends[opened.pop()] = at
    return ends
