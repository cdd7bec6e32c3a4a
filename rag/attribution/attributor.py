"""Attribution after the fact: which of some passages supports a sentence, and which words of it do, by a judge."""

from collections.abc import Sequence
from dataclasses import dataclass

from autoais.judges import weigh
from autoais.metrics.short_answers import has_answer
from autoais.text.words import content_stems, idf
from autoais.types import Attribution, Judge, Judgement, Span
from rag.attribution.sentences import sentence_spans
from rag.types import Citation, Origin, Passage

# Chosen on every eighth question of nq_pool_dev (scripts/bench/posthoc.py): more judged pairs find little more.
_CANDIDATES = 5  # passages that are judged for a sentence
_SENTENCES = 3  # sentences of the passage chosen that are judged alone


@dataclass(frozen=True, slots=True)
class Support:
    """A passage that supports a claim, and `start:end`, the characters of its text that are enough for it.

    `probability` is the judge's for the whole passage, None where it gives none.
    """

    passage: Passage
    start: int
    end: int
    probability: float | None

    def citation(self, origin: Origin) -> Citation:
        """The pointer to these characters."""
        return Citation(self.passage.id, self.start, self.end, self.passage.text[self.start : self.end], origin)


class Attributor:
    """Finds the support of claims among passages with few questions to the judge.

    A passage is judged as the evaluator judges it, with its headings before the text (spec A3). The claim is what the
    judge's own template makes of it: a short answer is taken together with its question, a sentence by itself
    (`autoais.judges.templates.auto`). `candidates` passages are judged for each claim.
    """

    def __init__(self, judge: Judge, candidates: int = _CANDIDATES) -> None:
        self.judge = judge
        self._candidates = candidates

    @property
    def name(self) -> str:
        """The judge, and how many passages it is asked about."""
        return f"{self.judge.name}@{self._candidates}"

    def verdicts(self, claim: str, passages: Sequence[Passage], question: str = "") -> list[Judgement]:
        """What the judge says of the claim against each whole passage."""
        return weigh(self.judge, [Attribution(claim, (premise(passage),), question) for passage in passages])

    def together(self, claim: str, passages: Sequence[Passage], question: str = "") -> Judgement:
        """What the judge says of the claim against all passages at once."""
        evidence = tuple(premise(passage) for passage in passages)
        return weigh(self.judge, [Attribution(claim, evidence, question)])[0]

    def nearest(self, claim: str, passages: Sequence[Passage]) -> list[Passage]:
        """The passages that are worth asking about: those that have most of the claim's words, ties by place."""
        known = {passage.id: passage for passage in passages if passage.text.strip()}
        weights = _weights(claim)
        shares = {key: _share(weights, f"{passage.headings} {passage.text}") for key, passage in known.items()}
        return [known[key] for key in sorted(known, key=lambda key: -shares[key])[: self._candidates]]

    def support(self, claim: str, passages: Sequence[Passage], question: str = "") -> Support | None:
        """The passage that most probably supports the claim, ties by place; None where none does."""
        near = self.nearest(claim, passages)
        judged = self.verdicts(claim, near, question)
        yes = [pair for pair in zip(near, judged, strict=True) if pair[1].verdict.ais is True]
        if not yes:
            return None
        place = {passage.id: number for number, passage in enumerate(passages)}
        passage, judgement = min(yes, key=lambda pair: (-_probability(pair[1]), place[pair[0].id]))
        return self.located(claim, passage, judgement, question)

    def located(self, claim: str, passage: Passage, judgement: Judgement, question: str = "") -> Support:
        """The words of a passage that support a claim, given what the judge said of the whole.

        The shortest stretch that the judge still finds enough, of one sentence or of neighbours; else the sentence it
        finds likeliest.
        """
        start, end = self._stretch(claim, passage, judgement, question)
        return Support(passage, start, end, judgement.probability)

    def _stretch(self, claim: str, passage: Passage, judgement: Judgement, question: str) -> tuple[int, int]:
        spans = sentence_spans(passage.text)
        if len(spans) < 2:
            return spans[0] if spans else (0, len(passage.text))
        said, asked = _weights(claim), _weights(question)
        texts = [passage.text[start:end] for start, end in spans]
        verbatim = [has_answer(text, [claim]) for text in texts]

        def promise(at: int) -> tuple[bool, bool, float, float]:
            read = _was_read(spans[at], passage, judgement.evidence)
            return verbatim[at], read, _share(said, texts[at]), _share(asked, texts[at])

        order = sorted(range(len(spans)), key=promise, reverse=True)[:_SENTENCES]  # the first of equals stays first
        alone = zip(order, self._judged(claim, passage, [spans[at] for at in order], question), strict=True)
        best, found = min(alone, key=lambda one: _preference(one[1], verbatim[one[0]]))
        if found.verdict.ais is True:
            return spans[best]
        last = len(spans) - 1
        pairs = [(low, low + 1) for low in (best - 1, best) if 0 <= low < last]
        wider = [(low, high) for low, high in [*pairs, (best - 1, best + 1)] if low >= 0 and high <= last]
        wider = [(spans[low][0], spans[high][1]) for low, high in dict.fromkeys(wider)]
        enough = [
            stretch
            for stretch, verdict in zip(wider, self._judged(claim, passage, wider, question), strict=True)
            if verdict.verdict.ais is True
        ]
        return min(enough, key=lambda stretch: stretch[1] - stretch[0], default=spans[best])

    def _judged(self, claim: str, passage: Passage, spans: Sequence[tuple[int, int]], question: str) -> list[Judgement]:
        texts = [premise(Passage(passage.id, passage.title, passage.text[a:b], passage.section)) for a, b in spans]
        return weigh(self.judge, [Attribution(claim, (text,), question) for text in texts])


def premise(passage: Passage) -> str:
    """A passage as a judge reads it (`autoais.answers.ShownPassage.evidence`): headings, a full stop, text."""
    return f"{passage.headings}. {passage.text}" if passage.headings and passage.text else passage.text


def _was_read(span: tuple[int, int], passage: Passage, read: Sequence[Span]) -> bool:
    """Whether the judge read any of it; where it does not say what it read, it read everything."""
    before = len(premise(passage)) - len(passage.text)
    return not read or any(one.start - before < span[1] and span[0] < one.end - before for one in read)


def _probability(judgement: Judgement) -> float:
    return 0.5 if judgement.probability is None else judgement.probability


def _preference(judgement: Judgement, verbatim: bool) -> tuple[bool, bool, float]:
    """Sorts what is attributable first, of that what holds the claim's own words, then what is likelier."""
    return judgement.verdict.ais is not True, not verbatim, -_probability(judgement)


def _weights(text: str) -> dict[str, float]:
    return {stem: idf(stem) for stem in content_stems(text)}


def _share(weights: dict[str, float], text: str) -> float:
    """The part of the weighted words that stands in the text, 0 to 1."""
    whole = sum(weights.values())
    stems = set(content_stems(text)) if whole else set()
    return sum(weight for stem, weight in weights.items() if stem in stems) / whole if whole else 0.0
