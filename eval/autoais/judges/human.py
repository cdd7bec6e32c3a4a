"""`human:<file>`: labels of people as a judge, so that every metric, report and comparison runs on them too."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from autoais import formats
from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError, UserError
from autoais.base.io.provenance import sha256_file
from autoais.base.labels import LabelledClaim
from autoais.base.types import (
    CONTRADICT,
    NO_TEXT,
    NOT_JUDGED,
    NOT_WORTHY,
    SPLIT,
    Attribution,
    Judge,
    Judgement,
    Place,
    Support,
    Verdict,
    nothing_to_judge,
)
from autoais.formats.human_ratings.consensus import label_answers
from autoais.formats.human_ratings.ratings import RELAXED_CUT, STRICT_CUT, TIES
from autoais.formats.human_ratings.read import read_ratings
from autoais.metrics.claims import CitedClaim, PlacedPair
from autoais.metrics.judged import claims_to_judge, whole_answer

_LEVELS = {
    Support.FULL: Verdict.ATTRIBUTABLE,
    Support.PARTIAL: Verdict.PARTIALLY_ATTRIBUTABLE,
    Support.NONE: Verdict.NOT_ATTRIBUTABLE,
}
_OPTION = re.compile(r",(answers|likert)=([^,]*)\Z")

_EXACT_NO = (Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY)  # labels of claims have them, answers have not
_Key = TypeVar("_Key", Attribution, PlacedPair)
_UNKNOWN = Judgement(Verdict.UNDECIDED, None, NOT_JUDGED)
_UNWORTHY = Judgement(Verdict.UNDECIDED, None, NOT_WORTHY)


@dataclass(frozen=True, slots=True)
class _Labels:
    """What people said: of a pair of texts, wherever it stands, and of a pair at one place of one answer.

    `sentences` holds each sentence of the file with its citations: the places about which the file is the authority.
    `unworthy` are those of them in which people find nothing to verify.
    """

    pairs: dict[Attribution, Judgement] = field(default_factory=dict)
    by_position: dict[PlacedPair, Judgement] = field(default_factory=dict)
    sentences: set[tuple[str, int, str, str]] = field(default_factory=set)
    unworthy: set[tuple[str, int, str, str]] = field(default_factory=set)
    whole_answers: dict[Attribution, Judgement] = field(default_factory=dict)


class HumanJudge(Judge):
    """Says what people said of a sentence and the texts that it cites; what nobody judged is undecided.

    `model` is a file with labels in any format, or ratings with `answers`, the file of the rated answers; both also in
    one string, `ratings.jsonl,answers=answers.jsonl`. `likert` is the least value from 1 to 5 that is a yes (4 or 5). A
    label of a sentence is that of all its citations together, a level of support that of one citation. A label of a
    whole answer is that of its sentence, if it has one; of several, nobody said which (`of_answer`). Ties, and labels
    that contradict each other, are undecided. Texts must be those that people saw: where a file has none, the label
    counts if the scored answer has none either. Where the scored answer is one of the file (id, place and texts are
    the same), each of its citations has its own label (`of_place`), whatever else has the same text or none; otherwise
    labels go by the texts. There, a sentence that people find not worth verifying (Liu et al. 2023) is not judged and
    not counted, as AIS is about statements on the world.
    """

    def __init__(self, model: str, *, answers: str | None = None, likert: int = RELAXED_CUT) -> None:
        options = {"likert": str(likert)} | ({} if answers is None else {"answers": answers})
        while match := _OPTION.search(model):
            options[match[1]], model = match[2], model[: match.start()]
        if options["likert"] not in (str(RELAXED_CUT), str(STRICT_CUT)):
            raise UserError(f"likert {options['likert']!r}: should be {RELAXED_CUT} (relaxed) or {STRICT_CUT} (strict)")
        if not model:
            raise UserError("the judge 'human:' names no file; write human:<file>, with human labels")
        file, answers = Path(model), options.get("answers")
        for path, contents in ((model, "labels of people"), (answers, "the rated answers")):
            if path is not None and not Path(path).is_file():
                raise UserError(f"judge 'human:{model}': there is no file {path}; name a file with {contents}")
        digest = sha256_file(file)[:12]
        if is_ratings(file):
            if answers is None:
                raise UserError(f"{file}: holds ratings; name the rated answers too: human:{file},answers=FILE")
            digest += f"+{sha256_file(Path(answers))[:12]}/likert{options['likert']}"
            self._known = _of_ratings(file, Path(answers), int(options["likert"]))
        elif answers is not None:
            raise UserError(f"{file}: holds answers, not ratings; leave out answers={answers}")
        else:
            self._known = _of_labels(file)
        judgements = [
            judgement
            for labels_by_key in (self._known.pairs, self._known.by_position, self._known.whole_answers)
            for judgement in labels_by_key.values()
        ]
        if judgements and all(judgement.verdict is Verdict.UNDECIDED for judgement in judgements):
            raise UserError(f"{file}: people are tied on everything they judged, so nothing is decided")
        if not judgements:
            raise UserError(f"{file}: no answer, sentence or citation in it has a human label")
        self._name = f"human@{digest}"
        self._unknown: set[int] = set()

    @property
    def name(self) -> str:
        """`human@<checksum of the file>`, for ratings `+<checksum of the answers>/likert<cut>`: 12 hex digits each."""
        return self._name

    @property
    def note(self) -> str | None:
        """How many of the pairs that it was asked about nobody had judged; None if there were none."""
        pairs = len(self._unknown)
        return f"nobody judged {pairs:,} of the pairs asked about, which are undecided" if pairs else None

    def by_rule(self, attribution: Attribution) -> Judgement | None:
        """People also judged citations whose text the file lacks; otherwise as every judge."""
        if nothing_to_judge(attribution) == NO_TEXT and attribution in self._known.pairs:
            return self._known.pairs[attribution]
        return super().by_rule(attribution)

    def of_answer(self, attribution: Attribution) -> Judgement | None:
        """What people said of a whole answer of several sentences, if they were not asked about each."""
        return self._known.whole_answers.get(attribution)

    def of_place(self, position: Place, attribution: Attribution) -> Judgement | None:
        """What people said of this pair of this answer; None if that follows from its texts.

        Of a sentence in which they find nothing to verify, the reason is `NOT_WORTHY`.
        Without a text, a passage is known by its id alone: one that nobody judged is undecided, and has no label of
        another passage without a text.
        """
        sentence = (position.answer, position.sentence, attribution.claim, attribution.question)
        if sentence in self._known.unworthy:
            return _UNWORTHY
        if (judgement := self._known.by_position.get((attribution, position))) is not None:
            texts = self._known.pairs.get(attribution)
            if judgement.verdict is Verdict.NOT_ATTRIBUTABLE and texts is not None and texts.verdict in _EXACT_NO:
                return texts
            return judgement
        if nothing_to_judge(attribution) == NO_TEXT and sentence in self._known.sentences:
            self._unknown.add(hash((attribution, position)))
            return _UNKNOWN
        return None

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Look the attributions up among the labels."""
        labels = self._known.pairs
        self._unknown.update(hash(attribution) for attribution in attributions if attribution not in labels)
        return [labels.get(attribution, _UNKNOWN) for attribution in attributions]


def is_ratings(path: Path) -> bool:
    """Whether a file holds ratings of single people (`autoais.formats.human_ratings`)."""
    try:
        return formats.detect(path) == "ratings"
    except FormatError:
        return False


def _of_labels(path: Path) -> _Labels:
    """The labels of answers and of single claims, which may have a more exact verdict (AttrScore's three)."""
    answer_format = formats.get_format(formats.detect(path))
    labels = _Labels()
    if answer_format.labels is not None:
        _merge(labels.pairs, ((label.attribution, _of_label(label)) for label in formats.read_labels(path)))
    if answer_format.read is not None:
        _add_answers(labels, list(formats.read(path)))
    return labels


def _of_ratings(path: Path, answers: Path, likert: int) -> _Labels:
    """The consensus as labels."""
    labels = _Labels()
    _add_answers(labels, list(label_answers(formats.read_for_ratings(answers), read_ratings(path), likert=likert)))
    return labels


def _add_answers(labels: _Labels, answers: Sequence[CitedAnswer]) -> None:
    """Add the labels of answers; where people are split, the pair is undecided and says so."""
    labelled_pairs = list(_pairs(answers))
    _merge(labels.pairs, ((pair, verdict) for (pair, _), verdict in labelled_pairs))
    _merge(labels.by_position, labelled_pairs)
    whole_answers = list(_wholes(answers))
    _merge(labels.whole_answers, ((pair, verdict) for (pair, _), verdict in whole_answers))
    _merge(labels.by_position, whole_answers)
    undecided = Judgement(Verdict.UNDECIDED, None, SPLIT)
    for answer in answers:
        ties = _ties(answer)
        if (None, None) in ties and len(answer.sentences) > 1:
            pair = whole_answer(answer)
            labels.whole_answers[pair] = labels.by_position[pair, Place(answer.id)] = undecided
        for number, claim in _claims(answer):
            sentence = (answer.id, number, claim.text, claim.question)
            labels.sentences.add(sentence)
            if answer.sentences[number].worthy is False:
                labels.unworthy.add(sentence)
            split = [citation for sentence, citation in ties if sentence == number]
            if None in split or ((None, None) in ties and len(answer.sentences) == 1):
                _split(labels, claim.pair(range(len(claim.evidence))))
            for index, key in enumerate(answer.sentences[number].cites):
                if key in split:
                    _split(labels, claim.pair((index,)))


def _split(labels: _Labels, positioned_pair: PlacedPair) -> None:
    labels.pairs[positioned_pair[0]] = labels.by_position[positioned_pair] = Judgement(Verdict.UNDECIDED, None, SPLIT)


def _pairs(answers: Iterable[CitedAnswer]) -> Iterator[tuple[PlacedPair, Verdict]]:
    """Yield what people judged: sentences with all their citations, and single citations."""
    for answer in answers:
        for number, claim in _claims(answer):
            sentence = answer.sentences[number]
            label = sentence.attributable
            if label is None and len(answer.sentences) == 1:
                label = answer.attributable
            if label is not None:
                yield claim.pair(range(len(claim.evidence))), _verdict(label)
            for index, key in enumerate(sentence.cites):
                if (level := sentence.support.get(key)) is not None:
                    yield claim.pair((index,)), _LEVELS[level]


def _wholes(answers: Iterable[CitedAnswer]) -> Iterator[tuple[PlacedPair, Verdict]]:
    """Yield what people judged as one: answers of several sentences, none of which has a label."""
    for answer in answers:
        is_whole = all(sentence.attributable is None for sentence in answer.sentences)
        if len(answer.sentences) > 1 and is_whole and answer.attributable is not None:
            yield (whole_answer(answer), Place(answer.id)), _verdict(answer.attributable)


def _ties(answer: CitedAnswer) -> list[tuple[object, object]]:
    """The places where people are split: sentence and citation."""
    ties = answer.extra.get(TIES)
    records = [record for record in ties if isinstance(record, dict)] if isinstance(ties, list) else []
    return [(record.get("sentence"), record.get("citation")) for record in records]


def _claims(answer: CitedAnswer) -> Iterator[tuple[int, CitedClaim]]:
    """The claims of an answer with the numbers of their sentences."""
    return ((number, claim) for number, claim in enumerate(claims_to_judge(answer)) if claim is not None)


def _of_label(label: LabelledClaim) -> Verdict:
    if label.verdict is not None:
        return label.verdict
    return _verdict(label.attributable) if label.support is None else _LEVELS[label.support]


def _verdict(label: bool) -> Verdict:
    return Verdict.ATTRIBUTABLE if label else Verdict.NOT_ATTRIBUTABLE


def _merge(labels: dict[_Key, Judgement], pairs: Iterable[tuple[_Key, Verdict]]) -> None:
    """Add labels; a more exact verdict replaces a plain no, and a yes beside a no is undecided."""
    for pair, verdict in pairs:
        earlier = labels.setdefault(pair, Judgement(verdict))
        if earlier.verdict.ais != verdict.ais:
            labels[pair] = Judgement(Verdict.UNDECIDED, None, CONTRADICT)
        elif earlier.verdict is Verdict.NOT_ATTRIBUTABLE:
            labels[pair] = Judgement(verdict)
