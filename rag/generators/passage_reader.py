"""The answer chosen by the reader: the units of the passages that answer the question, quoted and cited."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from autoais.text.folding import normalize_answer
from autoais.text.words import content_stems, idf, words
from rag.errors import RagError
from rag.generators.confidence import Confidence, unmentioned
from rag.generators.units import CODE, ITEM, ROW, SENTENCE, Unit, quote_units, units
from rag.index.analysis import asked_name
from rag.index.definitions import definition
from rag.reader import Reader, Reading, Span
from rag.reader import shipped as shipped_reader
from rag.types import AGREED, Answer, Hit, Passage, Question, best_first

# Chosen on the part `dev` of own-documents and on reader-validation.jsonl (eval/recipes), and some before that on every
# eighth question of nq_pool_dev:
_PASSAGES = 16  # hits read at most
_RANK = 8.0  # weight of a hit's score (as a share of the best one's), added to the reader's logit
_WORDING = 2.0  # weight of the question's words in a unit, beside the reader's `keep`
_WORDS = 120  # of an answer, unless a single unit is longer
_EARLY = 60  # words of a stretch from which on it only grows forwards, so that its best unit comes early
_MOST = 3  # passages quoted
_NONE = 3.0  # no short answer needs so many times the votes of the best one
_NAMED = 2.0  # added to a passage's logit if it has the name that a question is about; twice if an entry begins with it

# Chosen by what it saves (a fifth of the reading), on the same questions as above and 250 of nq_pool_dev:
_AT_ONCE = 4  # hits read at once
_SURE = 4.5  # no further hit is read if it needs at least this relevance to be the best one

# Chosen on a tester's questions about papers of his own (docs/limits.md):
_OTHER_ROW = 10.0  # taken from the log-probability of a short answer whose line has none of the question's words

# Chosen on 715 questions about everyday documents (eval/recipes/everyday, six collections), `everyday-dev`, the part
# `dev` of own-documents and every third question of the validation:
_AROUND = 60  # words quoted around a certain short answer; its sentence alone is right less often
_WORTH = 0.01  # minimum weight of the next passage, as a share of the best one's; less adds words, but no right answers

# Set by hand, not by measurement:
_DEFINES = 3.0  # added to a passage's logit and to a unit's score if it defines what a question asks to define
_SAME = 0.75  # overlap of stems above which two quotes say the same
_OPENING = re.compile(r"(?:[-*•] )?(?:the |an? )?[\"'`(\[]?", re.IGNORECASE)  # before the name that begins an entry
_BEFORE = 8  # units back to the lead-in of a list
_TERM = 25  # words back to the beginning of an entry
_PATH = re.compile(r"(?:^|\s)(?:~|\.{0,2}/|[A-Za-z]:\\)\S*[\w/\\]\Z")  # at the end of a text
_REST = re.compile(r"[\w.-]*\w")
_INTERVAL = re.compile(r"[\[(][^\[\]()]*,[^\[\]()]*[\])]")  # [0, 1)
_PARTNERS = {"(": ")", "[": "]", "{": "}"}
_TWO = re.compile(
    r"\b(?:and|or) (?:\w+ ){0,2}(?:who|whom|whose|what|when|where|why|how|which)\b"
    r"|[,?] (?:and|or) (?:is|are|was|were|do|does|did|can|could|has|have|will|would|should|must|may)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Read:
    """A hit as it was read; `logit` is its score, `weight` its share among the passages (a softmax).

    `entries` are the places of the units that begin with the name that the question is about, or define it.
    """

    hit: Hit
    reading: Reading
    logit: float
    weight: float
    units: tuple[Unit, ...]
    scores: tuple[float, ...]
    entries: frozenset[int]

    @property
    def text(self) -> str:
        return self.hit.passage.text

    @property
    def span(self) -> str:
        """The short answer; empty if there is none."""
        return "" if self.reading.start is None else self.text[self.reading.start : self.reading.end]

    @property
    def key(self) -> str:
        """The normalised short answer."""
        return normalize_answer(self.span)


class PassageReader:
    """Reads the first hits and quotes what answers the question, in up to 120 words.

    A passage's weight is a softmax over reader logits and retriever scores; passages with the name that a question
    is about gain. The best passage and the next two are quoted, as far as the words go, each in one stretch of
    whole units around its best unit: the one with the largest `keep` of the reader (`rag.reader.Reading`) plus the
    share of the question's words in it, and the name. The stretch begins with what the unit needs to be understood
    (the sentence before "However, ...", the lead-in of a list, the code after a colon, the beginning of its entry).
    A question with a short answer (a name, a date) gets that answer, and its passage comes first. If the passages agree
    on it and the question asks for one thing, only this passage is quoted, in up to 60 words.
    The hits of the answer are in the order of the reader's scores.
    Abstains if the passages do not seem to answer the question (`rag.generators.confidence`), or with `min_confidence`
    if the confidence is below that, whatever the passages seem to answer.
    """

    def __init__(
        self, reader: Reader | None = None, *, passages: int = _PASSAGES, min_confidence: float | None = None
    ) -> None:
        self._reader = reader or shipped_reader()
        self._passages = passages
        weights = self._reader.folder / "confidence.json"
        self._confidence = Confidence.read(weights) if weights.exists() else None
        if min_confidence is not None and not 0 <= min_confidence <= 1:
            raise RagError(f"the minimum confidence should be between 0 and 1, found {min_confidence:g}")
        if min_confidence is not None and self._confidence is None:
            raise RagError(f"{self._reader.folder} has no confidence.json, so its answers have no confidence")
        self._min_confidence = min_confidence
        refusing = ""  # a part of the name
        if min_confidence is not None:
            refusing = f", confidence >= {min_confidence:g}"
        elif self._confidence is not None:
            refusing = f", answerable >= {self._confidence.threshold:g}"
        self.name = f"quotes.v8({self._reader.name}@{passages}{refusing})"

    def refusing(self, min_confidence: float) -> "PassageReader":
        """The same reader with another `min_confidence`; its network is not loaded again."""
        return PassageReader(self._reader, passages=self._passages, min_confidence=min_confidence)

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """Quote what answers the question; an abstention keeps the best candidate in its trace."""
        read, missing, signals = self._examined(question, hits)
        hits = _reranked(read, hits)
        if not signals:
            nothing = "no retrieved passage contains a possible answer"
            return Answer(question, "", (), hits, self.name, abstained=True, reason=nothing)
        confidence = self._confidence.right.of(signals) if self._confidence else None
        short, share = _short(read)
        certain = share >= AGREED and not _TWO.search(question.text)
        quoted = _quoted(read, short, certain=certain)
        reason = self._reason(signals, missing)
        if reason is not None:
            best = quoted[0]
            return Answer(
                question,
                "",
                (),
                hits,
                self.name,
                abstained=True,
                reason=reason,
                confidence=confidence,
                trace={
                    "candidate": " ".join(_quote(best).split()),
                    "passage": best[0].hit.passage.id,
                    "signals": signals,
                },
            )
        text, sentences = quote_units((one.hit.passage, unit) for one, unit in quoted)
        shown = None if short is None else _balanced(" ".join(_spelled_out(short).split()))
        return Answer(
            question,
            text,
            sentences,
            hits,
            self.name,
            short_answer=shown,
            confidence=confidence,
            trace={"signals": signals} if short is None else {"signals": signals, "short_share": share},
        )

    def signals(self, question: Question, hits: Sequence[Hit]) -> dict[str, float]:
        """The signals of the confidence (`rag.generators.confidence.SIGNALS`), or an empty dict."""
        *_, signals = self._examined(question, hits)
        return signals

    def _examined(self, question: Question, hits: Sequence[Hit]) -> tuple[list[_Read], Sequence[str], dict[str, float]]:
        """The hits that were read, the names in the question that none has, and the signals; {} without any text."""
        found = hits[: self._passages]
        read = self._read(question.text, found)
        missing = unmentioned(question.text, [hit.passage.contents for hit in found])
        return read, missing, _signals(read, missing) if any(one.units for one in read) else {}

    def _reason(self, signals: Mapping[str, float], missing: Sequence[str]) -> str | None:
        """Why the reader abstains, or None."""
        if self._confidence is None:
            return None
        if self._min_confidence is None:
            estimate, minimum = self._confidence.answerable, self._confidence.threshold
            name = "answerable"
        else:
            estimate, minimum = self._confidence.right, self._min_confidence
            name = "confidence"
        value = estimate.of(signals)
        if value >= minimum:
            return None
        digits = next((n for n in range(2, 17) if round(value, n) < round(minimum, n)), 17)
        least = round(minimum, digits)
        told = f"the retrieved passages do not seem to answer it ({name} {value:.{digits}f}, minimum {least})"
        return f"{told}; none has {', '.join(map(repr, missing))}" if missing else told

    def _read(self, question: str, hits: Sequence[Hit]) -> list[_Read]:
        top = max((hit.score for hit in hits), default=0.0)
        name, defines = asked_name(question), definition(question)
        priors = [_prior(hit, top, name, defines) for hit in hits]
        readings: list[Reading] = []
        logits: list[float] = []
        for first in range(0, len(hits), _AT_ONCE):
            if logits and max(logits) >= max(priors[first:]) + _SURE:
                break
            readings += self._reader.read(question, [hit.passage for hit in hits[first : first + _AT_ONCE]])
            logits = [reading.relevance + prior for reading, prior in zip(readings, priors, strict=False)]
        hits = hits[: len(readings)]
        most = max(logits, default=0.0)
        total = sum(math.exp(logit - most) for logit in logits)
        asked = {stem: idf(stem) for stem in content_stems(question)}
        found = []
        for hit, reading, logit in zip(hits, readings, logits, strict=True):
            weight = math.exp(logit - most) / total
            text, pieces = hit.passage.text, tuple(units(hit.passage.text))
            quotes = [text[unit.start : unit.end] for unit in pieces]
            named = [_named(name, quote) for quote in quotes]
            defined = [_defined(defines, quote) for quote in quotes]
            reading = _of_line(reading, text, pieces, asked)
            scores = tuple(
                reading.kept(unit.start, unit.end) + _WORDING * _share(asked, content_stems(quote)) + sum(bonus)
                for unit, quote, *bonus in zip(pieces, quotes, named, defined, strict=True)
            )
            if name is not None and not _may_be_of(name, hit.passage, reading, pieces):
                reading = replace(reading, start=None, end=None, answer=-math.inf, no_short=0.0)
            entries = frozenset(place for place in range(len(pieces)) if named[place] > 1 or defined[place])
            found.append(_Read(hit, reading, logit, weight, pieces, scores, entries))
        return found


def _of_line(reading: Reading, text: str, pieces: Sequence[Unit], asked: Mapping[str, float]) -> Reading:
    """The reading; in a list or table, with the short answer of the line that has the most words of the question.

    "Head of sales: Ann" and "Head of support: Bob" stand below each other there, and the reader mixes them up.
    """
    if len(reading.spans) < 2:
        return reading
    rows = 0
    lines: list[tuple[Span, float]] = []
    for span in reading.spans:
        unit = next((unit for unit in pieces if unit.start <= span.start < unit.end), None)
        first, last = text.rfind("\n", 0, span.start) + 1, text.find("\n", span.end)
        share = _share(asked, content_stems(text[first : last if last >= 0 else len(text)]))
        rows += unit is not None and (unit.kind in (ITEM, ROW) or unit.entry is not None)
        lines.append((span, share))
    if rows < 2:
        return reading
    most = max(share for _, share in lines)
    scores = ((span.answer - _OTHER_ROW * (most - share), span) for span, share in lines)
    answer, best = max(scores, key=lambda pair: pair[0])
    return replace(reading, start=best.start, end=best.end, answer=answer)


def _prior(hit: Hit, top: float, name: re.Pattern[str] | None, defines: re.Pattern[str] | None) -> float:
    """What a hit's score, the name and a definition add to its logit; `top` is the best score."""
    score = _RANK * (hit.score / top if top > 0 else 0.0)
    return score + _NAMED * _about(name, hit.passage) + _defined(defines, hit.passage.text)


def _defined(defines: re.Pattern[str] | None, text: str) -> float:
    return _DEFINES if defines is not None and defines.search(text) else 0.0


def _named(name: re.Pattern[str] | None, text: str) -> int:
    """2 if a text begins with the name that a question is about, as entries of a reference do, 1 if it has the name."""
    if name is None or not name.search(text):
        return 0
    opening = _OPENING.match(text)
    return 2 if opening is not None and name.match(text, opening.end()) else 1


def _about(name: re.Pattern[str] | None, passage: Passage) -> int:
    """2 if the headings have the name that a question is about, or a line begins with it, 1 if the text has it."""
    if name is None:
        return 0
    if name.search(passage.headings):
        return 2
    return max((_named(name, line) for line in passage.text.splitlines()), default=0)


def _may_be_of(name: re.Pattern[str], passage: Passage, reading: Reading, pieces: Sequence[Unit]) -> bool:
    """Whether the short answer may be said of the name: it is not the name, and not in the entry of another one.

    "empty" in "retry_hosts (default: empty): see retry_limit" is not the default of retry_limit.
    """
    if reading.start is None or reading.end is None:
        return True
    if name.fullmatch(passage.text[reading.start : reading.end].strip("$ ")):
        return False
    place = max((place for place, unit in enumerate(pieces) if unit.start <= reading.start), default=0)
    begin = _entry(pieces, place) if pieces else None
    if begin is None or name.search(passage.headings):
        return True
    return name.search(passage.text, pieces[begin].start, reading.start) is not None


def _reranked(read: Sequence[_Read], hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits by the score of the reader; those that were not read follow in their order, with lower scores."""
    first = best_first(Hit(one.hit.passage, one.logit) for one in read)
    rest = hits[len(read) :]
    if not first or not rest:
        return tuple(first or rest)
    below = (Hit(hit.passage, first[-1].score - 1 - (rest[0].score - hit.score)) for hit in rest)
    return (*first, *below)


def _signals(read: Sequence[_Read], missing: Sequence[str]) -> dict[str, float]:
    """`rag.generators.confidence.SIGNALS`."""
    votes: dict[str, float] = {}
    for one in read:
        if one.reading.start is not None:
            votes[one.key] = votes.get(one.key, 0.0) + one.weight
    return {
        "relevance": max(one.reading.relevance for one in read),
        "agreement": max(votes.values(), default=0.0),
        "unmentioned": float(bool(missing)),
    }


def _share(asked: Mapping[str, float], there: Collection[str]) -> float:
    """The share of the question's words, by weight, among these."""
    whole = sum(asked.values())
    return sum(weight for stem, weight in asked.items() if stem in there) / whole if whole else 0.0


def _short(read: Sequence[_Read]) -> tuple[_Read | None, float]:
    """The hit with the short answer that most passages vote for, with its share of the votes.

    None if the question seems to have no short answer. Each passage votes with its weight times the probability of its
    best span, or of no short answer.
    """
    votes: dict[str, float] = {}
    none = 0.0
    for one in read:
        none += one.weight * math.exp(one.reading.no_short)
        if one.reading.start is not None and words(one.span):
            votes[one.key] = votes.get(one.key, 0.0) + one.weight * math.exp(one.reading.answer)
    answer = max(votes, key=lambda key: votes[key], default=None)  # ties: the first hit's
    if answer is None or none > _NONE * votes[answer]:
        return None, 0.0
    best = max(
        (one for one in read if one.reading.start is not None and one.key == answer),
        key=lambda one: one.weight * math.exp(one.reading.answer),
    )
    return best, votes[answer] / (sum(votes.values()) + none)


_Quoted = list[tuple[_Read, Unit]]


def _quoted(read: Sequence[_Read], short: _Read | None, *, certain: bool) -> _Quoted:
    """The units to quote, in the order of the answer; only those around the short answer if it is certain."""
    most = max(one.weight for one in read)
    worth = [one for one in read if one.units and one.weight >= _WORTH * most]
    ranked = sorted(worth, key=lambda one: (-one.logit, one.hit.passage.id))
    holding = None if short is None else _holding(short)
    if short is not None and holding is not None:
        if certain:
            return [(short, unit) for unit in _stretch(short, holding, _AROUND)]
        ranked = [short, *(one for one in ranked if one is not short)]
    found: _Quoted = []
    passages = 0
    for one in ranked:
        best = holding if one is short and holding is not None else _best(one)
        new = [(one, unit) for unit in _stretch(one, best, _WORDS - _words(found))]
        if not found or (_words(found) + _words(new) <= _WORDS and not _repeats(new, found)):
            found += new
            passages += 1
        if passages == _MOST:
            break
    return found


def _words(quoted: _Quoted) -> int:
    return sum(unit.words for _, unit in quoted)


def _holding(short: _Read) -> int | None:
    """The place of the unit with the short answer."""
    start, end = short.reading.start or 0, short.reading.end or 0
    return next((place for place, unit in enumerate(short.units) if unit.start < end and start < unit.end), None)


def _best(one: _Read) -> int:
    """The place of the unit with the highest score, of those that say something."""
    whole = [place for place, unit in enumerate(one.units) if not _tiny(unit)]
    return max(whole or range(len(one.units)), key=lambda place: (one.scores[place], -place))


def _stretch(one: _Read, best: int, words: int) -> Sequence[Unit]:
    """Neighbouring units around a unit, in up to so many words, or this one alone if it is longer.

    Units of the same entry come before others, and nothing before the entry.
    """
    needed = _needed(one.units, best)
    first, last = min(needed), max(needed)
    if sum(unit.words for unit in one.units[first : last + 1]) > words:
        first = last = best
    length = sum(unit.words for unit in one.units[first : last + 1])
    entry = _entry(one.units, best)
    while True:
        before = 0 if best in one.entries or first == entry else min(words, _EARLY)
        beside = [
            (entry is not None and _entry(one.units, place) == entry, one.scores[place], place)
            for place, most in ((first - 1, before), (last + 1, words))
            if 0 <= place < len(one.units) and length + one.units[place].words <= most
        ]
        if not beside:
            break
        *_, place = max(beside)
        first, last, length = min(first, place), max(last, place), length + one.units[place].words
    # What the last unit announces did not fit; a number such as "3.2." belongs to what follows.
    while last > first and (one.units[last].leads or (_tiny(one.units[last]) and not _ends_list(one.units, last))):
        last -= 1
    while first < best and _tiny(one.units[first]) and not one.units[first].leads:
        first += 1
    return one.units[first : last + 1]


def _entry(pieces: Sequence[Unit], place: int) -> int | None:
    """The place where the entry begins that the unit is a part of, if any."""
    back = pieces[place].entry
    return None if back is None else place - back


def _tiny(unit: Unit) -> bool:
    return unit.words < 3 and unit.kind not in (CODE, ROW) and not unit.entry  # "Default: 3." says something


def _ends_list(pieces: Sequence[Unit], place: int) -> bool:
    after = pieces[place + 1].kind if place + 1 < len(pieces) else None
    return pieces[place].kind == ITEM and pieces[place].words > 1 and after != ITEM


def _needed(pieces: Sequence[Unit], place: int) -> set[int]:
    """The unit with those that it needs to be understood."""
    wanted = {place}
    unit = pieces[place]
    begin = _entry(pieces, place)  # "Default: 3." is said of the term at the beginning
    if begin is not None and sum(unit.words for unit in pieces[begin:place]) <= _TERM:
        wanted.add(begin)
    if unit.leans and place and pieces[place - 1].kind == SENTENCE:
        wanted.add(place - 1)
    if unit.kind != SENTENCE:  # its lead-in ("Run:", "The steps are:")
        for before in range(place - 1, max(-1, place - 1 - _BEFORE), -1):
            if pieces[before].leads:
                wanted.add(before)
                break
            if pieces[before].kind == SENTENCE:
                if unit.kind == CODE and before == place - 1:
                    wanted.add(before)
                break
    if unit.leads:
        first = place + 1
        kind = pieces[first].kind if first < len(pieces) else None
        for after in range(first, len(pieces)):
            if pieces[after].kind != kind or (kind in (SENTENCE, CODE) and after > first):
                break
            wanted.add(after)
    return wanted


def _repeats(new: _Quoted, quoted: _Quoted) -> bool:
    """Whether the new units say nearly the same as those quoted."""
    a, b = (frozenset(content_stems(" ".join(map(_quote, side)))) for side in (new, quoted))
    return bool(a and b) and len(a & b) / min(len(a), len(b)) > _SAME


def _spelled_out(short: _Read) -> str:
    """The short answer; a path at its end is whole: `~/.box/box-0.7.conf` where the reader stops at `~/.box/box`.

    It has both single quotes that stand around it, or none: `message` where the reader finds `message'`.
    """
    start, end = short.reading.start or 0, short.reading.end or 0
    span = short.text[start:end]
    if len(span) > 1 and span.endswith("'") and short.text[start - 1 : start] == "'":
        return span[:-1]
    if len(span) > 1 and span.startswith("'") and short.text[end : end + 1] == "'":
        return span[1:]
    rest = _REST.match(short.text, end) if _PATH.search(span) else None
    return span if rest is None else span + rest.group()


def _balanced(text: str) -> str:
    """A text without a bracket or quote whose partner is missing: `empty)`, `(see`, `"deluge`, `mill (a house`."""
    opened, lonely = [], set()
    for place, character in enumerate(text):
        if character in "([{":
            opened.append(place)
        elif character in ")]}":
            if opened and _PARTNERS[text[opened[-1]]] == character:
                opened.pop()
            else:
                lonely.add(place)
    lonely.update(opened)
    if _INTERVAL.search(text):
        return text
    if opened and 0 < opened[0] < len(text) - 1 and text[opened[0] - 1] == " ":
        return _balanced(text[: opened[0]])
    if text.count('"') == 1:
        lonely.add(text.index('"'))
    return text[0 in lonely : len(text) - (len(text) - 1 in lonely)].strip()


def _quote(quoted: tuple[_Read, Unit]) -> str:
    one, unit = quoted
    return one.text[unit.start : unit.end]
