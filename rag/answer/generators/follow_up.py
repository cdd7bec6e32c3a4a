"""Rewrites a follow-up question as a standalone one (its explicature: Rashkin et al. 2023, Section 3).

Search, reader and judge all receive the standalone question. This gives the judge, which takes no history, the context
of the earlier turns.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autoais.base.io.jsonl import field, read_objects
from autoais.base.text.words import STOP_WORDS, content_stems, word_spans, words
from rag.base.errors import FormatError
from rag.base.types import Turn

if TYPE_CHECKING:
    from rag.answer.llms import LanguageModel

_PROMPT = "follow-up.v1"
_MAX_TOKENS = 120  # tokens of a model's question
_MAX_TURNS = 6  # the last turns that are read
_MAX_NAME_WORDS = 4  # words of an answer that counts as a name
_MAX_NAME_LENGTH = 100  # characters of a name
_MAX_GROWTH = 300  # characters that a question may grow by

_PERSON = frozenset("he she him her his hers".split())
_PLURAL = frozenset("they them their theirs".split())
_THING_PRONOUNS = _PLURAL | {"it", "its"}
_POSSESSIVE = frozenset("his her hers its their theirs".split())
_PRONOUN = re.compile(rf"\b(?:{'|'.join(sorted(_PERSON | _THING_PRONOUNS | {'there'}))})\b", re.IGNORECASE)
_WH = "who whom whose what which when where why how".split()
_TOPIC_CHANGE = re.compile(
    r"\s*(?:and\s+)?(?:what|how)\s+about\s+(.+)|\s*and\s+(?:in|on|at|for|of)?\s*(.+)", re.IGNORECASE
)
_CONJUNCTION = re.compile(r"\s*(?:and|but|so|then|also)\b[\s,]*", re.IGNORECASE)
_NAME = re.compile(
    r"[^\W\d_a-z][\w.'’-]*(?:\s+(?:(?:of|the|de|du|la|le|von|van|der|di|da|and)\s+)*[^\W_a-z][\w.'’-]*)*"
)
_DEFINING = re.compile(r"(?:what|(?P<how>how|when|where|why))\s+(?:is|are|was|were)\s+(?P<noun>\S.*)", re.IGNORECASE)
_WHICH_QUESTION = re.compile(  # "Which port does the server listen on?"
    r"\s*(?:(?:on|in|at)\s+)?(?:what|which)\s+(?P<noun>[^\W\d]\w*(?:\s\w+)?)\s+(?:do|does|did|can|could|should|will|must|is|are)\b",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(r"\b(?:of|in|for|by)\b", re.IGNORECASE)
_MAX_NOUN_WORDS = 10  # the most of a noun phrase
_YEAR = re.compile(r"\b[12]\d{3}\b")
_AUXILIARY = frozenset(
    "is are was were am be been do does did has have had can could will would shall should may might must".split()
)
# Verbs that end a phrase which names a topic.
_VERBS = frozenset(
    """born built made written published founded located released invented discovered called named known die died live
    lived win won write wrote happen happened start started end ended begin began come came play played
    """.split()
)
# "there" that refers to no place: "is there a bridge", "there were".
_EXISTENTIAL = re.compile(r"\b(?:is|are|was|were|be|been)\s+there\b|\bthere\s+(?:is|are|was|were|be)\b", re.IGNORECASE)


def read_history(path: Path) -> list[Turn]:
    """Read turns from JSON lines (`question`, `answer`); raises `FormatError` at a broken row."""
    turns = []
    for location, row in read_objects(path):
        question, answer = (field(row, name, str, location).strip() for name in ("question", "answer"))
        if not question:
            raise FormatError(f"{location}: field 'question' is empty")
        turns.append(Turn(question, answer))
    return turns


def make_standalone(question: str, history: Sequence[Turn], model: "LanguageModel | None" = None) -> str:
    """Rewrite a question so that it can be understood without the history; a standalone question is unchanged.

    A model's question is accepted if it only uses words of the history and the question. Otherwise, and without a
    model, rules apply (English): a pronoun is replaced by the name that the last turn is about, "and in 1990?" and
    "what about X?" are inserted into the last question, and a bare "why?" is combined with it.
    """
    turns = list(history[-_MAX_TURNS:])
    if not turns:
        return question
    if model is not None and (model_question := _rewrite_by_model(question, turns, model)):
        return model_question
    # Earlier turns may be follow-ups too: rewrite them first, in order.
    standalone_turns: list[Turn] = []
    for turn in turns:
        standalone_turns.append(Turn(_rewrite_within_limit(turn.question, standalone_turns), turn.answer))
    return _rewrite_within_limit(question, standalone_turns)


def _rewrite_by_model(question: str, turns: Sequence[Turn], model: "LanguageModel") -> str | None:
    """The model's question; None if it is empty, too long, or has a word of neither the history nor the question."""
    from rag.answer.llms import ModelError
    from rag.answer.llms.labelled_replies import ask, fields
    from rag.answer.llms.prompts import Prompt, plain

    lines = ((f"Question: {plain(turn.question)}", f"Answer: {plain(turn.answer[:500])}") for turn in turns)
    history = "\n".join(line for pair in lines for line in pair)
    try:
        reply = ask(model, Prompt.read(_PROMPT), _MAX_TOKENS, history=history, question=plain(question)).text
    except ModelError:
        return None
    model_question = fields(reply, ("question",)).get("question", "")
    allowed_stems = set(content_stems(f"{history} {question}"))
    stems = set(content_stems(model_question))
    return (
        None
        if not stems or stems - allowed_stems or len(model_question) > _MAX_GROWTH + len(question)
        else model_question
    )


def _rewrite_within_limit(question: str, turns: Sequence[Turn]) -> str:
    """The question by the rules, unless it grows too long: each turn could multiply the length of the one before."""
    rewrite = _rewrite_by_rules(question, turns)
    return rewrite if len(rewrite) <= _MAX_GROWTH + len(question) else question


def _rewrite_by_rules(question: str, turns: Sequence[Turn]) -> str:
    if not turns:
        return question
    last = turns[-1]
    bare = [word for word in words(question) if word not in ("and", "but", "so", "then", "else", "exactly")]
    if bare and all(word in _WH or word in _AUXILIARY for word in bare):
        return f"{question.rstrip(' ?')} ({last.question.rstrip(' ?')})?"
    explicit_question = _replace_pronouns(question, turns)
    match = _TOPIC_CHANGE.fullmatch(explicit_question.rstrip(" ?.!"))
    if match is None:
        return explicit_question
    topic = match[1] or match[2]
    if match[2] and not _elliptic(topic):
        return _CONJUNCTION.sub("", explicit_question, count=1)  # "and who wrote it?" is a complete question
    replaced_name = _shared_name(last, topic)
    if replaced_name is None and explicit_question != question:
        return explicit_question  # "what about his wife", of a person whom only the answer names
    return _insert_topic(last, topic, replaced_name, explicit_question)


def _elliptic(text: str) -> bool:
    """Whether a question after "and" has no verb of its own."""
    return not set(words(text)) & (_AUXILIARY | set(_WH))


def _shared_name(last: Turn, topic: str) -> str | None:
    """The name of the last question that occurs in this one too: "Frank Herbert" in "Frank Herbert's wife"."""
    topic_words = set(words(topic))
    return next((name for name in _question_names(last) if set(words(name)) & topic_words), None)


def _insert_topic(last: Turn, topic: str, replaced_name: str | None, question: str) -> str:
    """The last question with its year or name replaced; otherwise both questions combined."""
    before = last.question.rstrip(" ?")
    if year := _YEAR.search(topic):
        if _YEAR.search(before):
            return f"{_YEAR.sub(year[0], before)}?"
        return f"{before} in {year[0]}?" if topic.strip() == year[0] else f"{before} {_tail(question)}?"
    old = replaced_name or next(reversed(_question_names(last)), None)
    return f"{topic} ({before})?" if old is None else f"{_replace_phrase(before, old, topic)}?"


def _tail(question: str) -> str:
    """The question after "and" or "what about", with its preposition."""
    return re.sub(
        r"^\s*(?:and\s+)?(?:(?:what|how)\s+about\s+)?(?:and\s+)?", "", question.rstrip(" ?.!"), flags=re.IGNORECASE
    )


def _replace_phrase(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}(?!\w)", lambda _: new, text, count=1, flags=re.IGNORECASE)


# --- resolving pronouns ----------------------------------------------------------------------------------------


def find_names(text: str) -> list[str]:
    """The capitalised names in a text; the first word of a sentence counts unless it is a question or stop word."""
    names = []
    for match in _NAME.finditer(text):
        name, start = match.group().rstrip(".'’-"), match.start()
        first, _, further_words = name.partition(" ")
        if not text[:start].strip() or text[:start].rstrip()[-1] in ".!?:":
            first_word = first.casefold().removesuffix("'s")
            if (
                first_word in STOP_WORDS
                or first_word in _WH
                or first_word in _AUXILIARY
                or first_word in ("name", "list", "tell")
            ):
                name = further_words if further_words[:1].isupper() else " ".join(further_words.split()[1:])
        name = re.sub(r"['’]s$", "", name)
        if len(name) <= _MAX_NAME_LENGTH and words(name) and words(name)[0] not in _PERSON | _THING_PRONOUNS | {"i"}:
            names.append(name)
    return list(dict.fromkeys(names))


def _question_names(turn: Turn) -> list[str]:
    """The names in a question; if it is in lower case, its words that the answer capitalises as names."""
    question_words = set(words(turn.question))
    return find_names(turn.question) or [name for name in find_names(turn.answer) if set(words(name)) <= question_words]


def _answer_names(turn: Turn) -> list[str]:
    """The names that the answer adds; a short answer without capitals counts as a name."""
    question_words = set(words(turn.question))
    new_names = [name for name in find_names(turn.answer) if not set(words(name)) & question_words]
    short = turn.answer.strip(" .!")
    return new_names or [short] * (_is_short(short) and short[:1].isalpha() and not find_names(turn.answer))


def _is_short(answer: str) -> bool:
    return 0 < len(answer.split()) <= _MAX_NAME_WORDS


def _topic(pronoun: str, turns: Sequence[Turn]) -> str | None:
    """The likely referent of a pronoun: the answer to "who", or else the subject of a question; latest turn first."""
    for turn in reversed(turns):
        if pronoun not in _PERSON and pronoun != "there" and (subject := _find_subject(turn.question)):
            # "What is the capital of France? Paris": a name that was asked for, rather than what asks for it.
            answer_names = _answer_names(turn)
            asks_for_name = _PREPOSITION.search(subject) and _is_short(turn.answer) and find_names(turn.answer)
            return answer_names[0] if asks_for_name and answer_names else subject
        if candidates := _names_for_pronoun(turn, pronoun):
            return candidates[0]
        if match := _WHICH_QUESTION.match(turn.question):
            return f"the {match['noun']}"
        if phrase := _phrase(turn.question):
            return phrase
    return None


def _names_for_pronoun(turn: Turn, pronoun: str) -> list[str]:
    """The names in a turn that a pronoun may stand for, the likeliest first: what was asked for before the rest."""
    if pronoun in _PERSON | _PLURAL:
        question_words = ["who", "whom", "whose"]
    elif pronoun == "there":
        question_words = ["where", "what", "which"]
    else:
        question_words = [] if _asks_for_time(turn.question) else ["what", "which"]
    if next((word for word in words(turn.question) if word in _WH), "") in question_words:
        return [*_answer_names(turn), *_question_names(turn)]
    answer_names = _answer_names(turn) if pronoun in _PLURAL or pronoun == "there" else []
    return [*_question_names(turn), *answer_names]


def _asks_for_time(question: str) -> bool:
    """Whether it asks "what year" or the like: its answer is rarely the topic of a follow-up."""
    return bool(
        re.match(r"\s*(?:in\s+)?(?:what|which)\s+(?:year|day|date|month|time|century)\b", question, re.IGNORECASE)
    )


def _find_subject(question: str) -> str | None:
    """What "What is a closed pool?" asks about, with its article; so too "an index" in "How is an index built?"."""
    match = _DEFINING.fullmatch(question.strip())
    if match is None:
        return None
    noun = match["noun"].rstrip(" ?.!").split()
    if match["how"]:
        verb = next((n for n, word in enumerate(noun) if n and _ends_noun(word.casefold())), 0)
        noun = noun[:verb]  # none if no verb is known: "Why is the sky blue?"
    first, *_ = *words(" ".join(noun)), ""
    if (
        first in _VERBS | _PERSON | _THING_PRONOUNS | {"", "there"}
        or first.endswith("ed")
        or len(noun) > _MAX_NOUN_WORDS
    ):
        return None
    return " ".join(noun) if set(words(" ".join(noun))) - STOP_WORDS else None


def _ends_noun(word: str) -> bool:
    return word in _VERBS or word in STOP_WORDS or re.fullmatch(r"\w{2,}(?:ed|en)", word) is not None


def _phrase(question: str) -> str:
    """The longest run of content words without a verb: the topic of a question in lower case."""
    best, end, count, best_count = "", 0, 0, 0
    start: int | None = None
    if re.match(r"\s*(?:\w+\s+)?(?:do|does|did)\s+(?!I\b|we\b|you\b)(?:\S+\s+)+\S+$", question, re.IGNORECASE):
        question = question.rpartition(" ")[0]  # the verb: "How does pruning work?"
    for begin, stop, word in [*word_spans(question), (len(question), len(question), "the")]:
        if word in STOP_WORDS or word in _WH or word in _AUXILIARY or word in _VERBS:
            if start is not None and count >= best_count:
                best, best_count = question[start:end], count
            start, count = None, 0
            continue
        start, end, count = (begin if start is None else start), stop, count + 1
    return best


def _replace_pronouns(question: str, turns: Sequence[Turn]) -> str:
    """Replace pronouns by their referents, unless the question itself names one before."""
    pieces, position = [], 0
    topics: dict[str, str | None] = {}
    for match in _PRONOUN.finditer(question):
        pronoun = match.group().lower()
        if find_names(question[: match.start()]):  # "when did Obama marry his wife"
            break
        if pronoun == "there" and any(m.start() <= match.start() < m.end() for m in _EXISTENTIAL.finditer(question)):
            continue
        if pronoun not in topics:
            topics[pronoun] = _topic(pronoun, turns)
        topic = topics[pronoun]
        if topic is None or len(topic) > _MAX_GROWTH:
            continue
        is_possessive = pronoun in _POSSESSIVE and _owns(pronoun, question[match.end() :])
        preposition = "in " if pronoun == "there" else ""
        pieces += [question[position : match.start()], f"{preposition}{topic}", "'s" if is_possessive else ""]
        position = match.end()
    return "".join([*pieces, question[position:]])


def _owns(pronoun: str, text_after: str) -> bool:
    """Whether the pronoun is possessive here: "her" only before a content word, the others always."""
    following = next(iter(words(text_after)), "")
    return pronoun != "her" or (bool(following) and following not in STOP_WORDS)
