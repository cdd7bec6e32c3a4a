"""Edits of a sentence: rewordings that keep its meaning, and single changes that break it.

Based on AttrScore's error simulation (Yue et al. 2023, section 3.1 and Figure 2), extended to numbers, dates, names,
negation and relations. Each edit takes a sentence, a seeded generator and context passages, and returns None if it
does not apply.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

MONTHS = (
    "January February March April May June July August September October November December".split()
)  # fmt: skip
_MONTH = "|".join(MONTHS)
_NUMBER = re.compile(r"(?<![\w.,$-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,])|(?<![\w.,-])\d+(?:\.\d+)?(?![\w]|[.,]\d)")
_YEAR = re.compile(r"^(?:1[0-9]|20)\d\d$")
_NAME = re.compile(r"\b[A-Z][\w'’.-]*[\w](?:\s+(?:(?:of|the|de|van|von|and|del|la)\s+)?[A-Z][\w'’.-]*\w)*")
_AUXILIARY = re.compile(r"\b(?:is|are|was|were|can|could|will|would|has|have|had|may|does|did)\b ")
_TAIL = re.compile(r", (?:which|who|where|with|and|in|after|by) [^,.;()]{8,70}(?=[.,;])")
_OPENING = re.compile(
    r"(?:In|On|At|During|After|Before|By|Since|From|For|As|When|While|Under|With) [^,]{3,70}, (?=[a-zA-Z])"
)
_APPOSITION = re.compile(r", (?:a|an|the|which|who|whose) [^,]{4,80},(?= (?:was|is|has|had|were|are|became|won))")
_FILLER = re.compile(
    r"\b(?:also|however,?|therefore,?|in addition,?|furthermore,?|notably|famously|successfully|officially|"
    r"eventually|originally) ",
    re.IGNORECASE,
)
_LEAD = re.compile(r"([A-Z][^()]{2,50}) \((?:[^()]*; )?born ([^();]{4,40})\) (?:is|was) (an? .{5,120}?)[.,]")
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()

# Meaning-preserving replacements, in both directions for "=", left to right for ">".
SYNONYMS = [
    re.split("([=>])", pair)
    for pair in (
        "approximately=about|about=around|also known as>also called|known as>called|began=started|begins=starts|"
        "located in=situated in|died=passed away|including=such as|although=though|"
        "in order to>to|prior to=before|following the=after the|numerous=many|largest=biggest|"
        "created=made|founded=established|established=set up|received=got|obtained=got|purchased=bought|"
        "constructed=built|children=kids|film=movie|automobile=car|United States=U.S.|United Kingdom=UK|"
        "World War II=the Second World War|World War I=the First World War|"
        "due to=because of|employed=used|utilized>used|residents=inhabitants|"
        "inhabitants>people|nearly=almost|entire=whole|ended=finished|completed=finished|attempted=tried|"
        "frequently=often|usually=normally|primarily=mainly|mostly=mainly|released=put out|joined>became a member of|"
        "wrote>authored|is composed of=consists of|consists of=is made up of|resigned=stepped down|"
        "defeated=beat|assisted=helped|required>needed|requires>needs|contains>has|features>has|"
        "married>wed|was awarded>won|was appointed>became|took place=was held|at the age of>aged|"
        "the majority of=most|at first=initially|afterwards>later|subsequently>later|eventually=in the end|"
        "television=TV|rapidly=quickly|difficult=hard|important=significant|various>different|"
        "large=big|small=little|"
        "company>firm|song=track|album=record|author=writer|physician=doctor|attorney=lawyer|"
        "which is=that is|which was=that was|but=yet|each=every|nation>country|assist=help"
    ).split("|")
]  # fmt: skip

# Meaning-reversing replacements, in both directions.
OPPOSITES = [
    re.split("([=>])", pair)
    for pair in (
        "before=after|north=south|northern=southern|east=west|eastern=western|northeast=southwest|won=lost|"
        "increase=decrease|increased=decreased|increases=decreases|older=younger|oldest=youngest|first=last|"
        "father=son|mother=daughter|husband=wife|largest=smallest|larger=smaller|more than=less than|"
        "at least=at most|higher=lower|highest=lowest|early=late|earlier=later|earliest=latest|male=female|"
        "man=woman|men=women|brother=sister|king=queen|uncle=nephew|teacher=student|accepted=rejected|"
        "supported=opposed|success=failure|successful=unsuccessful|positive=negative|major=minor|best=worst|"
        "joined=left|arrived=departed|bought=sold|buy=sell|opened=closed|began=ended|start=end|alive=dead|"
        "born=died|longest=shortest|longer=shorter|upper=lower|left=right|inside=outside|above=below|over=under|"
        "public=private|rural=urban|ancient=modern|always=never|all=none of|some=no|many=few|most=hardly any|"
        "with=without|can=cannot|may=must|often=rarely|possible=impossible|legal=illegal|agreed=refused|"
        "gained=lost|strong=weak|defeated=lost to|predecessor=successor|preceded=followed|former=current|"
        "only=not only|summer=winter|spring=autumn|morning=evening|day=night|rich=poor|import=export|"
        "victory=defeat|friend=enemy|allies=enemies|attacked=defended|guilty=innocent|hot=cold|warm=cool|"
        "heavy=light|fast=slow|domestic=foreign|internal=external|maximum=minimum|majority=minority|"
        "professional=amateur|fiction=non-fiction|singer=painter|actor=politician|album=novel|film=song|"
        "river=mountain|village=city|football=basketball|American=British|French=German|Italian=Spanish|"
        "Russian=Polish|Chinese=Japanese|Indian=Pakistani|Australian=Canadian|Irish=Scottish|English=Welsh|"
        "Democratic=Republican|Catholic=Protestant|caused=prevented|cause=prevent|allows=forbids|allowed=banned|"
        "unknown=well known|temporary=permanent|partly=entirely|approved=vetoed|succeeded=failed|rising=falling|"
        "rose=fell|grew=shrank|shares=lacks|include=exclude|includes=excludes|included=excluded|expanded=reduced"
    ).split("|")
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Edited:
    """An edited sentence, and the (start, end) characters that are new."""

    text: str
    new_spans: tuple[tuple[int, int], ...] = field(default=())


Edit = Callable[[str, random.Random, Sequence[str]], Edited | None]


def _replace(text: str, start: int, end: int, new: str) -> Edited:
    return Edited(text[:start] + new + text[end:], ((start, start + len(new)),))


def _pick(rng: random.Random, items: Sequence[re.Match[str]]) -> re.Match[str] | None:
    return rng.choice(items) if items else None


def change_number(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Replace a number with another of the same kind, from the context or close to it."""
    match = _pick(rng, list(_NUMBER.finditer(text)))
    if match is None:
        return None
    old = match.group()
    other_numbers = {m.group() for passage in context for m in _NUMBER.finditer(passage)} - {old}
    candidates = sorted(
        o
        for o in other_numbers
        if bool(_YEAR.match(o)) == bool(_YEAR.match(old)) and o not in text and len(o) <= len(old) + 2
    )
    if candidates and rng.random() < 0.6:
        return _replace(text, *match.span(), rng.choice(candidates))
    if "." in old:
        integer_part, _, part = old.partition(".")
        new = f"{integer_part}.{(int(part[0]) + rng.randint(1, 8)) % 10}{part[1:]}"
    else:
        value = int(old.replace(",", ""))
        if _YEAR.match(old):
            new_value = value + rng.choice([-30, -11, -10, -5, -3, -2, -1, 1, 2, 3, 4, 7, 10, 20])
        else:
            new_value = max(
                0, value + rng.choice([-1, 1]) * max(1, round(value * rng.choice([0.05, 0.1, 0.3, 0.6, 2])))
            )
        if new_value == value:
            return None
        new = f"{new_value:,}" if "," in old else str(new_value)
    return _replace(text, *match.span(), new)


def change_number_word(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Replace a number word (two to twelve) with another."""
    matches = list(re.finditer(rf"\b(?:{'|'.join(_WORDS[2:])})\b", text))
    match = _pick(rng, matches)
    if match is None:
        return None
    new = rng.choice([word for word in _WORDS[2:] if word != match.group()])
    return _replace(text, *match.span(), new)


def change_month(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Replace a month with another."""
    match = _pick(rng, list(re.finditer(rf"\b(?:{_MONTH})\b", text)))
    if match is None:
        return None
    return _replace(text, *match.span(), rng.choice([month for month in MONTHS if month != match.group()]))


def names(text: str) -> list[re.Match[str]]:
    """Runs of capitalised words, except months and a single word at the start of the sentence."""
    return [m for m in _NAME.finditer(text) if (m.start() > 0 or " " in m.group()) and m.group() not in MONTHS]


def change_name(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Replace a name with one from the context that shares no word with it."""
    match = _pick(rng, names(text))
    if match is None:
        return None
    old = set(match.group().split())
    other_names = sorted({m.group() for passage in context for m in names(passage)})
    fit = [
        n for n in other_names if not old & set(n.split()) and n not in text and abs(len(n.split()) - len(old)) <= 1
    ]  # fmt: skip
    return _replace(text, *match.span(), rng.choice(fit)) if fit else None


def swap_names(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Swap two names, unless they are just neighbours in a list."""
    matches = names(text)
    if len(matches) < 2:
        return None
    first, second = sorted(rng.sample(range(len(matches)), 2))
    a, b = matches[first], matches[second]
    middle_text = text[a.end() : b.start()]
    if (
        a.group() == b.group()
        or re.fullmatch(r"\s*(,|and|or|, and|&|/)\s*", middle_text)
        or len(middle_text.split()) < 2
    ):
        return None
    new = text[: a.start()] + b.group() + middle_text + a.group() + text[b.end() :]
    middle = a.start() + len(b.group())
    return Edited(new, ((a.start(), middle), (middle + len(middle_text), middle + len(middle_text) + len(a.group()))))


def negate(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Insert a negation after an auxiliary, or remove one."""
    negations = list(re.finditer(r"\b(?:not|never)\s|n't\b", text))
    if negations:
        match = rng.choice(negations)
        start = text.rfind(" ", 0, max(0, match.start() - 1)) + 1
        if match.group() == "n't":
            end = match.start()
            return Edited(text[:end] + text[match.end() :], ((text.rfind(" ", 0, end) + 1, end),))
        return Edited(text[: match.start()] + text[match.end() :], ((start, match.start()),))
    auxiliary = _pick(rng, list(_AUXILIARY.finditer(text)))
    if auxiliary is None:
        return None
    return _replace(text, auxiliary.end(), auxiliary.end(), rng.choice(["not ", "not ", "never "]))


def change_relation(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Replace a word with its opposite or another of its kind (`OPPOSITES`)."""
    return _from_table(text, rng, OPPOSITES)


def _from_table(text: str, rng: random.Random, table: Sequence[Sequence[str]]) -> Edited | None:
    padded_text = f" {text} "
    options = []
    for a, direction, b in table:
        for old, new in ((a, b), (b, a)) if direction == "=" else ((a, b),):
            if f" {old}" in padded_text:
                for match in re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", text):
                    options.append((match.start(), match.end(), new))
    return _replace(text, *rng.choice(options)) if options else None


_CONTENT = re.compile(r"(?<![\w'-])[a-z]{5,}(?![\w'-])")
_ENDINGS = ("ing", "ed", "ly", "ion", "ist", "er", "al", "ic", "ous", "es", "s")


def change_word(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Replace a lower-case content word with one from the context that has the same ending."""
    match = _pick(rng, list(_CONTENT.finditer(text)))
    if match is None:
        return None
    old = match.group()
    ending = next((e for e in _ENDINGS if old.endswith(e)), None)
    if ending is None:
        return None
    candidates = sorted(
        {m.group() for passage in context for m in _CONTENT.finditer(passage) if m.group().endswith(ending)} - {old}
    )
    candidates = [word for word in candidates if word[:4] != old[:4] and word not in text]
    return _replace(text, *match.span(), rng.choice(candidates)) if candidates else None


def add_detail(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Append a clause, place or year from the context."""
    tails = [m.group() for passage in context for m in _TAIL.finditer(passage) if m.group() not in text]
    if not tails or text[-1:] not in ".!?":
        return None
    tail = rng.choice(tails)
    return _replace(text, len(text) - 1, len(text) - 1, tail)


BREAKING: dict[str, tuple[float, Edit]] = {
    "number": (4.0, change_number),
    "number_word": (2.0, change_number_word),
    "month": (2.0, change_month),
    "name": (3.0, change_name),
    "swap": (1.0, swap_names),
    "negation": (1.3, negate),
    "relation": (2.0, change_relation),
    "word": (1.2, change_word),
    "detail": (1.2, add_detail),
}


def _synonym(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    return _from_table(text, rng, SYNONYMS)


def _drop_parenthesis(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    match = _pick(rng, list(re.finditer(r"\s*\([^()]{2,120}\)", text)))
    return Edited(text[: match.start()] + text[match.end() :]) if match else None


def _drop_opening(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    match = _OPENING.match(text)
    return Edited(_capital(text[match.end() :])) if match and len(text) - match.end() > 25 else None


def _move_opening(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    match = re.match(r"((?:In|On|During) [^,]{3,40}), (?=[a-zA-Z])", text)
    if match is None or not text.endswith(".") or "," in text[match.end() :]:
        return None
    opening = match.group(1)
    return Edited(_capital(text[match.end() : -1]) + " " + opening[0].lower() + opening[1:] + ".")


def _drop_relative(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    match = re.search(r", (?:which|who|whose|where|with|including|such as|although|while) [^;]*(?=\.$)", text)
    return Edited(text[: match.start()] + text[match.end() :]) if match and match.start() > 25 else None


def _drop_apposition(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    match = _pick(rng, list(_APPOSITION.finditer(text)))
    return Edited(text[: match.start()] + text[match.end() :]) if match else None


def _drop_second_clause(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    match = re.search(r"(?:, (?:and|but)|;) [^,;]{10,}(?=\.$)", text)
    return Edited(text[: match.start()] + text[match.end() :]) if match and match.start() > 30 else None


def _date_order(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    if match := re.search(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b", text):
        return Edited(text[: match.start()] + f"{match[2]} {match[1]}, {match[3]}" + text[match.end() :])
    if match := re.search(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{4}})\b,?", text):
        return Edited(text[: match.start()] + f"{match[2]} {match[1]} {match[3]}" + text[match.end() :])
    return None


def _number_form(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    if match := re.search(r"(?<![\w.,])(\d{1,3}),(\d{3})(?![\w,]|\.\d)", text):
        return Edited(text[: match.start()] + match[1] + match[2] + text[match.end() :])
    if match := re.search(rf"\b(?:{'|'.join(_WORDS[2:])})\b", text):
        return Edited(text[: match.start()] + str(_WORDS.index(match.group())) + text[match.end() :])
    if match := re.search(rf"(?<![\w.,-])([2-9]|1[0-2])(?![\w,]|[.,:/-]\d| (?:{_MONTH}))", text):
        return Edited(text[: match.start()] + _WORDS[int(match[1])] + text[match.end() :])
    return None


def _drop_filler(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    match = _pick(rng, list(_FILLER.finditer(text)))
    return Edited(_capital(text[: match.start()] + text[match.end() :])) if match else None


def _lead(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """State facts of an encyclopedic first sentence such as `X (born D) is a Y`."""
    match = _LEAD.match(text)
    if match is None:
        return None
    name, born, description = match.groups()
    day = f"on {born}" if re.search(r"\d{1,2}", born.replace(born[-4:], "")) else f"in {born}"
    return Edited(
        rng.choice([f"{name} was born {day}.", f"{name} is {description}.", f"{name}, {description}, was born {day}."])
    )


def _passive(text: str, rng: random.Random, context: Sequence[str]) -> Edited | None:
    """Turn `X was written by Y.` into `Y wrote X.`, for a few verbs and sentences without anything else."""
    verbs = {"written": "wrote", "built": "built"} | {
        verb: verb
        for verb in (
            "directed produced founded designed composed discovered published created developed recorded".split()
        )
    }
    match = re.match(rf"([^,;()]{{3,60}}?) (?:is|was|were) ({'|'.join(verbs)}) by ([^,;()]{{3,60}})\.$", text)
    if match is None:
        return None
    subject = match[1]
    subject = subject[0].lower() + subject[1:] if subject.startswith(("The ", "A ", "It", "This ")) else subject
    return Edited(f"{_capital(match[3])} {verbs[match[2]]} {subject}.")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PARAPHRASES: dict[str, tuple[float, Edit]] = {
    "synonym": (3.0, _synonym),
    "drop_parenthesis": (1.5, _drop_parenthesis),
    "drop_opening": (1.0, _drop_opening),
    "move_opening": (2.0, _move_opening),
    "drop_relative": (1.0, _drop_relative),
    "drop_apposition": (1.0, _drop_apposition),
    "drop_second_clause": (1.0, _drop_second_clause),
    "date_order": (2.0, _date_order),
    "number_form": (1.5, _number_form),
    "drop_filler": (1.0, _drop_filler),
    "lead": (4.0, _lead),
    "passive": (4.0, _passive),
}

# Edits of `PARAPHRASES` that lose a part of the sentence.
DROPPING = ("drop_parenthesis", "drop_opening", "drop_relative", "drop_apposition", "drop_second_clause")


def apply(
    table: dict[str, tuple[float, Edit]], text: str, rng: random.Random, context: Sequence[str] = ()
) -> tuple[str, Edited] | None:
    """The name and result of the first edit in the table that applies, in a weighted random order; else None."""
    order = sorted(table, key=lambda name: -(rng.random() ** (1 / table[name][0])))
    for name in order:
        edit = table[name][1](text, rng, context)
        if edit is not None and edit.text != text and len(edit.text) > 12:
            return name, edit
    return None
