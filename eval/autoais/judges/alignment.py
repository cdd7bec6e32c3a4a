"""Where a sentence of the evidence runs along with the claim, and where the two say something else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from autoais.judges.reading import pieces
from autoais.words import STOP_WORDS, idf, stem, word_spans

_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_MONTHS = "january february march april may june july august september october november december".split()
_NEGATIONS = frozenset(
    """
    not never no neither nor none cannot don't didn't isn't wasn't aren't weren't doesn't hasn't haven't hadn't can't
    couldn't won't wouldn't
    """.split()
)  # fmt: skip
_CLOSEST = 3  # sentences that are aligned: those that share most words with the claim
_OURS, _THEIRS = 4, 6  # words: longer stretches without a common word are two different sentences, not a clash


@dataclass(frozen=True, slots=True)
class Alignment:
    """How far the closest sentence of the evidence says the same in the same order.

    `share`: of the claim's words, weighted by IDF, those found there in the claim's order, 0 to 1.
    `clash`: how surely the two contradict each other, 0 to 1, and `clashes` the characters of the claim where they do.
    """

    share: float = 0.0
    clash: float = 0.0
    clashes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    key: str
    kind: str
    weight: float


def align(claim: str, evidence: Iterable[str]) -> Alignment:
    """Align the claim with the sentence of the evidence that shares most of it, by their words.

    Between words that both have, a number, date or name on either side that is not the same clashes, and so does a
    negation that only one side has. Another number is taken at its word; a negation as far as the sentences are the
    same; a name only where they nearly are, since people and places go by several names.
    """
    ours = _words(claim)
    keys = [word.key for word in ours]
    total = sum(word.weight for word in ours)
    if not total:
        return Alignment()
    known = set(keys)
    sentences = [_words(text[start:end]) for text in evidence for start, end in pieces(text)]
    shared = [sum({w.key: w.weight for w in sentence if w.key in known}.values()) for sentence in sentences]
    best = Alignment()
    for at in sorted(range(len(sentences)), key=lambda i: (-shared[i], i))[:_CLOSEST]:
        if shared[at] <= best.share * total:
            break
        changes = SequenceMatcher(None, keys, [w.key for w in sentences[at]], autojunk=False).get_opcodes()
        same = sum(word.weight for kind, i, j, _, _ in changes if kind == "equal" for word in ours[i:j])
        if same / total > best.share:
            parts = [(ours[i:j], sentences[at][m:n]) for kind, i, j, m, n in changes if kind != "equal"]
            best = _clashing(same / total, parts)
    return best


def _clashing(share: float, parts: Iterable[tuple[Sequence[_Word], Sequence[_Word]]]) -> Alignment:
    clash, clashes = 0.0, []
    for ours, theirs in parts:
        if len(ours) > _OURS or len(theirs) > _THEIRS:
            continue
        for kind, how_surely in (("number", 1.0), ("name", share * share), ("negation", share)):
            mine, other = ([w for w in side if w.kind == kind] for side in (ours, theirs))
            one_sided = bool(mine) != bool(other)
            differ = one_sided if kind == "negation" else mine and other and not _same_name(mine, other)
            if differ:
                clash = max(clash, how_surely)
                clashes += [(word.start, word.end) for word in mine]
    return Alignment(share, clash, tuple(sorted(clashes)))


def _same_name(mine: Sequence[_Word], other: Sequence[_Word]) -> bool:
    """Whether one side are the initials of the other, or two words begin alike (Germany, German)."""
    if mine[0].kind != "name":
        return False
    for short, long in ((mine, other), (other, mine)):
        if "".join(word.key[0] for word in long).startswith("".join(word.key for word in short)):
            return True
    return any(a.key[:4] == b.key[:4] for a in mine for b in other)


def _words(text: str) -> list[_Word]:
    found = []
    for start, end, word in word_spans(text):
        key, kind = stem(word), ""
        if word in _NUMBERS or word[0].isdigit():
            key = str(_NUMBERS.index(word)) if word in _NUMBERS else word.replace(",", "")
            kind = "number"
        elif word in _MONTHS and text[start].isupper():
            kind = "number"
        elif word in _NEGATIONS:
            kind = "negation"
        elif text[start].isupper() and word not in STOP_WORDS:
            kind = "name"
        found.append(_Word(start, end, key, kind, 0.0 if word in STOP_WORDS else idf(stem(word))))
    return found
