"""Finds the sentences that say what something is, for questions that ask it ("What is a named pipe?")."""

import re

_LONGEST = 200  # characters of a question that asks for a definition
_MOST = 5  # words of what is asked about
_ASKS = re.compile(
    r"\s*(?:(?:what|who)(?:'s|’s|\s+(?:is|are|was|were))|what\s+is\s+meant\s+by|define|(?:definition|meaning)\s+of)\s+"
    r"(?:an?\s+|the\s+)?(?P<name>.+?)(?:\s+(?:in|on)\s+.+|(?:\s+(?:used|good|meant))?\s+for)?[?.!\s]*",
    re.IGNORECASE,
)
_MEANS = re.compile(
    r"\s*what\s+(?:does|do|did)\s+(?:an?\s+|the\s+)?(?P<name>.+?)\s+(?:mean|do|stand\s+for)[?.!\s]*", re.IGNORECASE
)
# "What is the default of max_depth?" asks for a property, and "what is used to ..." for a thing.
_OTHER = re.compile(r"\b(?:of|for|to|with|by|from|between|that|which|and|or|used|called|wrong)\b", re.IGNORECASE)
# "What is relay?": "the relay plugin is a ..."
_NOUNS = (
    "program|utility|command|tool|module|package|library|file|table|option|plugin|system|protocol|format|language|server"
    "|daemon|class|object|function|software|project"
)
_QUOTES = "\"'`“”‘’"
_MARKS = rf"[{_QUOTES}*_]{{0,3}}"  # quotes, or the marks of a wiki around a bold word


def definition(question: str) -> re.Pattern[str] | None:
    """Return what finds a definition of the thing that a question asks about; None if it asks no definition.

    Finds "GLE (Graphics Layout Engine) is a language" at the beginning of a line, a sentence or a clause, "Graphics
    Layout Engine (GLE) is a language", and the name line of a manual page ("tmux - terminal multiplexer").
    """
    question = " ".join(question.split())
    asked = _MEANS.fullmatch(question) or _ASKS.fullmatch(question)
    if asked is None or len(question) > _LONGEST:
        return None
    asked_for = asked["name"].strip(_QUOTES + " ")
    parts = asked_for.split()
    if len(parts) > _MOST or not any(map(str.isalnum, asked_for)) or _OTHER.search(asked_for):
        return None
    words = r"\s+".join(map(re.escape, parts))
    if parts[-1][-1].isalpha():  # a kprobe: kprobes
        words = f"{words.removesuffix('s') if len(parts[-1]) > 3 else words}(?:e?s)?"
    name = rf"(?:the\s+|an?\s+)?{_MARKS}{words}(?!\w){_MARKS}"
    thing = rf"(?:(?:the\s+)?GNU\s+)?{name}(?:\s+(?:{_NOUNS}))?"
    is_a = r",?\s+(?:is|are|was|were|means|denotes|refers\s+to|stands\s+for)\s+"
    is_a += r"(?:an?|the|any|one|some|used\s+(?:to|for))\b"
    return re.compile(
        rf"(?:^|[,;:.]\s+)(?:[-*•]\s+|or\s+)?{thing}(?:\s+\([^()]{{1,80}}\))?{is_a}"
        rf"|\([^()]{{0,30}}\b{words}\b[^()]{{0,30}}\){is_a}"
        rf"|\b{words}{_MARKS},\s+which{is_a}"
        rf"|^(?:name:\s+)?{name}\s+[-–—]{{1,2}}\s+\w",
        re.IGNORECASE | re.MULTILINE,
    )
