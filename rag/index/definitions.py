"""Finds the sentences that say what something is, for questions that ask it ("What is a named pipe?")."""

import re

_MAX_QUESTION_LENGTH = 200  # characters of a question that asks for a definition
_MAX_NAME_WORDS = 5  # words of what is asked about
_ASKS = re.compile(
    r"(?:what is meant by|(?:what|who)(?:['’]s| is| (?P<plural>are|were)| was)(?: the (?:meaning|definition) of)?"
    r"|define|(?:definition|meaning) of)"
    r" (?:an? |the )?(?P<name>.+?)(?P<where> (?:in|on) .+?)?(?:(?: used| good| meant)? for)?[?.! ]*",
    re.IGNORECASE,
)
_MEANS = re.compile(
    r"what (?:does|did|(?P<plural>do)) (?:an? |the )?(?P<name>.+?)(?P<where> (?:in|on) .+?)? (?:mean|do|stand for)"
    r"(?: (?:in|on) .+)?[?.! ]*",
    re.IGNORECASE,
)
# "What is the default of max_depth?" asks for a property, and "what is used to ..." for a thing.
_OTHER = re.compile(
    r"(?<![\w-])(?:of|for|to|with|by|from|between|that|which|and|or|used|called|wrong)(?![\w-])", re.IGNORECASE
)
_PRONOUNS = frozenset("it this that these those there he she they we you i one".split())
# "What is relay?": "the relay plugin is a ..."
_NOUNS = (
    "program|utility|command|tool|module|package|library|file|table|option|plugin|system|protocol|format|language|server"
    "|daemon|class|object|function|software|project"
)
_MARKS = "[\"'`“”‘’*_]{0,3}"  # quotes, or the marks of a wiki around a bold word


def definition(question: str) -> re.Pattern[str] | None:
    """Return what finds a definition of the thing that a question asks about; None if it asks no definition.

    Finds "GLE (Graphics Layout Engine) is a language" at the beginning of a line, a sentence or a clause, "Graphics
    Layout Engine (GLE) is a language", and the name line of a manual page ("tmux - terminal multiplexer").
    """
    question = " ".join(question.split())
    if len(question) > _MAX_QUESTION_LENGTH:
        return None
    match = _MEANS.fullmatch(question) or _ASKS.fullmatch(question)
    if match is None:
        return None
    name = match["name"].strip("\"'`“”‘’ ")
    if name.lower() in _PRONOUNS or not any(map(str.isalnum, name)) or _OTHER.search(name):
        return None
    if len(name.split()) > _MAX_NAME_WORDS:
        return None
    pattern = _forms(name, plural=match["plural"] is not None)
    if match["where"]:  # "What is Ruby on Rails?"
        pattern += rf"(?:{_literal(match['where'])})?"
    pattern = rf"(?<!\w){pattern}(?!\w)"
    subject = rf"(?:the\s+|an?\s+)?{_MARKS}{pattern}(?:\(\w{{0,3}}\))?{_MARKS}"  # ls(1)
    is_a = r",?\s+(?:is|are|was|were|means|denotes|refers\s+to|stands\s+for)\s+"
    is_a += r"(?:an?|the|any|one|some|used\s+(?:to|for))\b"
    return re.compile(
        rf"(?:^[ \t]*|[,;:.?!]\s+)(?:[-*•]\s+|or\s+)?(?:(?:the\s+)?GNU\s+)?{subject}(?:\s+(?:{_NOUNS}))?"
        rf"(?:\s+\([^()]{{1,80}}\))?{is_a}"
        rf"|\([^()]{{0,30}}{pattern}[^()]{{0,30}}\){is_a}"
        rf"|{pattern}{_MARKS},\s+which{is_a}"
        rf"|^[ \t]*(?:name:[ \t]+)?{subject}[ \t]+[-–—]{{1,2}}[ \t]+\w",
        re.IGNORECASE | re.MULTILINE,
    )


def _forms(name: str, *, plural: bool) -> str:
    """The pattern of a name in both numbers: "named pipes" are asked for, or "a named pipe"."""
    lower_name = name.lower()
    if plural and lower_name.endswith("ies"):
        return rf"{_literal(name[:-3])}(?:y|ies)"
    if plural and lower_name.endswith(("ses", "xes", "ches", "shes")):
        return rf"{_literal(name[:-2])}(?:es)?"
    if plural and lower_name.endswith("s"):
        return rf"{_literal(name[:-1])}s?"
    if not plural and lower_name.endswith("y") and lower_name[-2:-1] not in "aeiou":
        return rf"{_literal(name[:-1])}(?:y|ies)"
    return rf"{_literal(name)}(?:e?s)?" if name[-1].isalpha() else _literal(name)


def _literal(text: str) -> str:
    return re.sub("['’]", "['’]", re.escape(text).replace(r"\ ", r"\s+"))
