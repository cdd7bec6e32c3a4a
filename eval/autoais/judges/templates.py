"""Hypothesis templates by name: functions that build the hypothesis for a judge. The name is part of the metric."""

import re
from collections.abc import Callable

from autoais.base.errors import UserError
from autoais.base.types import Attribution

Template = Callable[[Attribution], str]

_AUXILIARIES = frozenset(
    "is are was were am has have had does did do can could will would shall should must isn't aren't wasn't weren't "
    "hasn't haven't hadn't doesn't didn't don't can't couldn't won't wouldn't".split()
)
_COPULAS = ("is", "are", "was", "were")
_PREPOSITIONS = frozenset("about after around as at before between by during for from in into near of off on onto over "
                          "since through till to toward towards under until with within".split())  # fmt: skip
_DETERMINERS = frozenset("a an the this that these those his her its their our your my no any some".split())
_PRONOUNS = frozenset("he she it they we i you there this these".split())
_ABBREVIATION = re.compile(r"(?:^|[\s.(])(?:[A-Za-z]|Jr|Sr|Inc|Co|Corp|Ltd|St|Mr|Mrs|Ms|Dr|No|vs|etc)\.$")
_MONTHS = "January February March April May June July August September October November December".split()
_MONTH = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b", re.IGNORECASE)
_WHEN_NOUNS = frozenset("year century decade month day date".split())
_IN_NOUNS = frozenset("country city state county town place episode season chapter".split())
_MAX_FRAGMENT_WORDS = 12  # words; a longer claim counts as a sentence even without a known verb

# base:past, or base:past:participle if the participle differs from the past
_IRREGULAR = {
    base: (preterite, participle or preterite)
    for base, preterite, participle in (
        (entry + "::").split(":")[:3]
        for entry in """
        become:became:become begin:began:begun bite:bit:bitten break:broke:broken bring:brought build:built buy:bought
        catch:caught choose:chose:chosen come:came:come cost:cost cut:cut draw:drew:drawn drop:dropped eat:ate:eaten
        fall:fell:fallen fight:fought find:found fly:flew:flown forget:forgot:forgotten get:got give:gave:given
        go:went:gone grow:grew:grown hit:hit hold:held hurt:hurt keep:kept know:knew:known lay:laid leave:left
        lose:lost make:made mean:meant meet:met occur:occurred pay:paid put:put read:read ride:rode:ridden
        rise:rose:risen run:ran:run say:said see:saw:seen sell:sold send:sent set:set shoot:shot show:showed:shown
        sing:sang:sung sink:sank:sunk sit:sat speak:spoke:spoken spend:spent split:split stand:stood
        steal:stole:stolen stop:stopped swim:swam:swum take:took:taken teach:taught tell:told think:thought
        throw:threw:thrown wear:wore:worn win:won write:wrote:written
        """.split()
    )
}
_REGULAR = frozenset(
    """
    abolish achieve act add adopt air allow annex appear arrive ask attack attend ban belong bomb call change close
    collapse conquer contain create cross debut declare defeat derive destroy develop die direct disappear discover
    drain end enter establish evolve exist expand explode explore fire form gain graduate happen help immigrate
    improve include increase inhabit introduce invade invent join kill launch leak legalize live locate
    look love marry migrate move need occupy open originate own pass perform play premiere produce publish raise
    ratify receive refer release relocate remain represent require retire return rule score separate serve
    settle sign start stay support surrender switch talk travel turn use visit vote walk want work
    """.split()
)
_PARTICIPLES = frozenset(participle for _, participle in _IRREGULAR.values()) | {"being", "born", "famous", "due"}
_PASTS = frozenset(preterite for preterite, _ in _IRREGULAR.values())


def is_fragment(claim: str) -> bool:
    """Whether a claim is a short answer ("1986", "in the late 1800s") rather than a sentence.

    A claim is a sentence if it has more than 12 words; or a lower-case auxiliary or form of "be" ("is", "will",
    "didn't"; titles such as "I Will Always Love You" capitalise theirs); or a final "!" or "?"; or a final full stop
    that does not belong to an abbreviation, and at least five words, an initial pronoun or a known past form ("Curie
    won it."). These rules are for English; in other scripts the final mark and the length decide.
    """
    words = claim.split()
    bare = claim.strip().rstrip("\"'”’)]")
    if len(words) > _MAX_FRAGMENT_WORDS or _AUXILIARIES.intersection(words):
        return False
    if bare.endswith(("。", "！", "？", "।", "؟", "!", "?")):
        return False
    if not bare.endswith(".") or _ABBREVIATION.search(bare):
        return True
    return not (len(words) >= 5 or (len(words) > 1 and words[0].lower() in _PRONOUNS) or _PASTS.intersection(words))


def statement(attribution: Attribution) -> str:
    """`statement.v1`: the bare claim (ALCE, Gao et al. 2023)."""
    return attribution.claim


def question_answer(attribution: Attribution) -> str:
    """`question-answer.v1`: question, a space, answer (AttrScore, Yue et al. 2023); a missing question is empty."""
    return f"{attribution.question} {attribution.claim}".strip()


def attributed_qa(attribution: Attribution) -> str:
    """`aqa.v1`: the sentence of Attributed QA (Bohnet et al. 2022); the bare claim if there is no question."""
    if not attribution.question.strip():
        return attribution.claim
    return f"The answer to the question '{attribution.question}' is '{attribution.claim}'"


def auto(attribution: Attribution) -> str:
    """`auto.v1`: the claim if it is a sentence (see `is_fragment`) or has no question, else question and answer."""
    return question_answer(attribution) if is_fragment(attribution.claim) else attribution.claim


def declarative(attribution: Attribution) -> str:
    """`declarative.v1`: question and short answer rewritten by rules as one sentence; A is the answer.

    A claim that is a sentence, has no question or is only a full stop is returned unchanged. Otherwise the first
    matching rule applies:

    - wh-word, copula, noun phrase, optional participle: "when was X built" → "X was built in A."; "who is X married
      to" → "X is married to A."; "what is the capital of X" → "A is the capital of X."; "how tall is X" → "X is A."
    - wh-word, noun, copula: "what country is X in" → "X is in A."; "which river is the longest" → "A is the longest."
    - wh-word (and noun), do/does/did: "who did X marry" → "X married A."; "what year did X die" → "X died in A.". The
      verb is inflected if it is in a table of about 200; other verbs keep their base form.
    - "how many N ..." → "A N ...", without N if the answer contains it; "how many N does X have" → "X has A N."
    - "who" or "what" as the subject: "who sang X" → "A sang X.", "who has won X" → "A has won X."

    "when" and "where" put "in" or "on" before an answer that lacks a preposition. Questions that match no rule ("why",
    "how", "the capital of X is") get the sentence of `aqa.v1`. The rules match words without parsing and can be wrong.
    """
    claim, question = attribution.claim, attribution.question
    answer = claim.strip()
    if not answer or not question.strip() or not is_fragment(claim):
        return claim
    if answer.endswith(".") and not _ABBREVIATION.search(answer):
        answer = answer[:-1]
    if not answer:  # it was a full stop
        return claim
    full_question = re.sub(
        r"^(who|what|where|when|how)['’]s\b", r"\1 is", question.strip().rstrip("?. "), flags=re.IGNORECASE
    )
    sentence = _rewrite(full_question.split(), answer)
    return f"{sentence[0].upper()}{sentence[1:].rstrip('.')}." if sentence else attributed_qa(attribution)


TEMPLATES: dict[str, Template] = {
    "aqa.v1": attributed_qa,
    "auto.v1": auto,
    "declarative.v1": declarative,
    "question-answer.v1": question_answer,
    "statement.v1": statement,
}


def template(name: str) -> Template:
    """The template of that name; raises `UserError` with the known names if it is unknown."""
    try:
        return TEMPLATES[name]
    except KeyError:
        raise UserError(f"no hypothesis template called {name!r}; there are: {', '.join(sorted(TEMPLATES))}") from None


def _rewrite(question: list[str], answer: str) -> str | None:
    """The sentence without its full stop, or None if no rule matches."""
    is_pied_piping = len(question) > 1 and question[0].lower() in _PREPOSITIONS  # "in what year", pied-piping
    if is_pied_piping:
        answer = _add_preposition(answer, question[0].lower())
        question = question[1:]
    words = [word.lower() for word in question]
    if len(words) < 3 or words[0] not in ("who", "whom", "what", "which", "when", "where", "how"):
        return None
    if words[:2] == ["how", "many"]:
        return _how_many(question, answer)
    # The wh-phrase is the wh-word alone, or extends to the first auxiliary ("what year", "how tall").
    index = next((i for i, word in enumerate(words[:6]) if i and word in _AUXILIARIES), None)
    if words[0] == "who" and index != 1:
        return " ".join([answer, *question[1:]])
    if index is None or index == len(words) - 1 or index > (1 if words[0] in ("when", "where") else 5):
        return None
    noun, aux, remainder = words[1:index], words[index], question[index + 1 :]
    if words[0] == "how" and not noun:
        return None
    ends_in_preposition = words[-1] in _PREPOSITIONS
    if words[0] == "when" or (noun and noun[-1] in _WHEN_NOUNS):
        phrase = _add_preposition(answer, _when(answer))
    elif not ends_in_preposition and (words[0] == "where" or (noun and noun[-1] in _IN_NOUNS)):
        phrase = _add_preposition(answer, "in")
    else:
        phrase = answer
    if phrase.split()[0] == words[-1]:  # "come on" and "on 5 May"
        phrase = answer
    if aux in _COPULAS:
        is_date = bool(noun) and noun[-1] in _WHEN_NOUNS
        object_asked = words[0] in ("how", "when", "where") or ends_in_preposition or is_pied_piping or is_date
        return _with_copula(aux, remainder, phrase) if object_asked else " ".join([answer, aux, *remainder])
    if aux in ("do", "does", "did"):
        clause = _inflect(remainder, aux)
        if words[0] == "who" and clause == remainder and aux != "do":
            return " ".join([answer, aux, *remainder])  # "who does the voice of X"
        return " ".join([*clause, phrase])
    subject = aux in ("has", "had") or remainder[0].lower() not in _DETERMINERS | _PRONOUNS
    return " ".join([answer, aux, *remainder]) if words[0] == "who" and subject else None


def _with_copula(copula: str, remainder: list[str], answer: str) -> str | None:
    """The sentence with the copula after its subject, which ends before a participle or a stranded preposition."""
    lower = [word.lower() for word in remainder]
    if "when" in lower or "if" in lower:
        return None
    index = next((i for i, word in enumerate(lower) if i and _is_participle(word) and _ends_phrase(lower[i - 1])), None)
    if index is None or not {"time", "year"}.isdisjoint(
        lower[:index]
    ):  # in "the last time X won", "won" is a past form
        index = len(remainder) - 1 if lower[-1] in _PREPOSITIONS else len(remainder)
    return " ".join([*remainder[:index], copula, *remainder[index:], answer])


def _how_many(question: list[str], answer: str) -> str | None:
    words = [word.lower() for word in question]
    index = next((i for i, word in enumerate(words) if i > 2 and word in _AUXILIARIES), 3)
    noun, remainder = question[2:index], question[index:]
    if len(remainder) < 2 or words[index] in _PREPOSITIONS:
        return None
    # "12 episodes" already contains the noun.
    quantity = [answer] if noun[-1].lower() in answer.lower().split() else [answer, *noun]
    if words[index] in ("do", "does", "did"):
        return " ".join([*_inflect(remainder[1:], words[index]), *quantity])
    if words[index] in _COPULAS and words[index + 1] == "there":
        return " ".join(["there", words[index], *quantity, *remainder[2:]])
    return " ".join([*quantity, *remainder]) if words[index] in _COPULAS or words[index] not in _AUXILIARIES else None


def _inflect(remainder: list[str], do: str) -> list[str]:
    """Subject, verb and the rest without do-support; unchanged if no verb of the table occurs."""
    if do != "do":
        inflect = _past if do == "did" else _third
        # Take the last verb; earlier ones may belong to names ("the show", "bull run", "come fly with me").
        for index in range(len(remainder) - 1, 0, -1):
            if _is_verb(remainder[index]) and _ends_phrase(remainder[index - 1].lower()):
                is_pair = index > 2 and remainder[index - 1].lower() == "and" and _is_verb(remainder[index - 2])
                before = (
                    [*remainder[: index - 2], inflect(remainder[index - 2]), "and"] if is_pair else remainder[:index]
                )
                return [*before, inflect(remainder[index]), *remainder[index + 1 :]]
    return remainder


def _is_verb(word: str) -> bool:
    return word in _IRREGULAR or word in _REGULAR or word == "have"


def _past(verb: str) -> str:
    if verb == "have":
        return "had"
    if verb in _IRREGULAR:
        return _IRREGULAR[verb][0]
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    if verb == "ban":
        return "banned"
    return verb + ("d" if verb.endswith("e") else "ed")


def _third(verb: str) -> str:
    if verb == "have":
        return "has"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|x|z|ch|sh|o)$", verb) else "s")


def _is_participle(word: str) -> bool:
    return word in _PARTICIPLES or (len(word) > 3 and word.endswith("ed") and word[-3] != "e" and word != "united")


def _ends_phrase(word: str) -> bool:
    """Whether the word before a verb can end its subject; in "the play" and "to play" it cannot."""
    return word not in _DETERMINERS and word not in _PREPOSITIONS


def _add_preposition(answer: str, preposition: str) -> str:
    first = answer.split()[0].lower() if answer.split() else ""
    return answer if not preposition or first in _PREPOSITIONS else f"{preposition} {answer}"


def _when(answer: str) -> str:
    """The preposition of a date: "on" a day, "in" a month, year or century, otherwise empty."""
    if _MONTH.search(answer):
        return "on" if re.search(r"\b\d{1,2}(?:st|nd|rd|th)?\b", answer) else "in"
    return "in" if re.search(r"\b\d{3,4}s?\b|centur", answer) else ""
