"""`human:<file>`: labels of people as a judge, so that every metric, report and comparison runs on them too."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autoais import formats
from autoais.answers import CitedAnswer
from autoais.errors import FormatError, UserError
from autoais.io.provenance import sha256_file
from autoais.judged import cited_claims, whole_answer
from autoais.labels import Labelled
from autoais.metrics.claims import CitedClaim
from autoais.ratings import RELAXED, STRICT, TIES, label_answers, read_ratings
from autoais.types import NO_TEXT, NOT_JUDGED, Attribution, Judge, Judgement, Support, Verdict, nothing_to_judge

SPLIT = "people are split"
CONTRADICT = "labels of people contradict each other"

_LEVELS = {
    Support.FULL: Verdict.ATTRIBUTABLE,
    Support.PARTIAL: Verdict.PARTIALLY_ATTRIBUTABLE,
    Support.NONE: Verdict.NOT_ATTRIBUTABLE,
}
_OPTION = re.compile(r",(answers|likert)=([^,]*)\Z")

Labels = dict[Attribution, Judgement]


class HumanJudge(Judge):
    """Says what people said of a sentence and the texts that it cites; what nobody judged is undecided.

    `model` is a file with labels in any format, or ratings with `answers`, the file of the rated answers; both also in
    one string, `ratings.jsonl,answers=answers.jsonl`. `likert` is the least value from 1 to 5 that is a yes (4 or 5). A
    label of a sentence is that of all its citations together, a level of support that of one citation. A label of a
    whole answer is that of its sentence, if it has one; of several, nobody said which (`of_answer`). Ties, and labels
    that contradict each other, are undecided. Texts must be those that people saw: where a file has none, the label
    counts if the scored answer has none either.
    """

    def __init__(self, model: str, *, answers: str | None = None, likert: int = RELAXED) -> None:
        options = {"answers": answers, "likert": str(likert)}
        while found := _OPTION.search(model):
            options[found[1]], model = found[2], model[: found.start()]
        if options["likert"] not in (str(RELAXED), str(STRICT)):
            raise UserError(f"likert {options['likert']!r}: should be {RELAXED} (relaxed) or {STRICT} (strict)")
        file, answers = Path(model), options["answers"]
        if not file.is_file():
            raise UserError(f"judge 'human:{model}': there is no file {model}; name a file with labels of people")
        digest = sha256_file(file)[:12]
        if is_ratings(file):
            if answers is None:
                raise UserError(f"{file}: holds ratings; name the rated answers too: human:{file},answers=FILE")
            digest += f"+{sha256_file(Path(answers))[:12]}/likert{options['likert']}"
            self._labels, self._answers = _of_ratings(file, Path(answers), int(options["likert"] or RELAXED))
        elif answers is not None:
            raise UserError(f"{file}: holds answers, not ratings; leave out answers={answers}")
        else:
            self._labels, self._answers = _of_labels(file)
        known = [*self._labels.values(), *self._answers.values()]
        if known and all(one.verdict is Verdict.UNDECIDED for one in known):
            raise UserError(f"{file}: people are split on all that they judged, so that nothing is decided")
        if not known:
            raise UserError(f"{file}: no answer, sentence or citation in it has a label of people")
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
        if nothing_to_judge(attribution) == NO_TEXT and attribution in self._labels:
            return self._labels[attribution]
        return super().by_rule(attribution)

    def of_answer(self, attribution: Attribution) -> Judgement | None:
        """What people said of a whole answer of several sentences, if they were not asked about each."""
        return self._answers.get(attribution)

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Look the attributions up among the labels."""
        unknown = Judgement(Verdict.UNDECIDED, None, NOT_JUDGED)
        self._unknown.update(hash(one) for one in attributions if one not in self._labels)
        return [self._labels.get(one, unknown) for one in attributions]


def is_ratings(path: Path) -> bool:
    """Whether a file holds ratings of single people (`autoais.ratings`)."""
    try:
        return formats.detect(path) == "ratings"
    except FormatError:
        return False


def _of_labels(path: Path) -> tuple[Labels, Labels]:
    """The labels of answers and of single claims, which may have a more exact verdict (AttrScore's three)."""
    one = formats.by_name(formats.detect(path))
    labels, wholes = Labels(), Labels()
    if one.labels is not None:
        _merge(labels, ((label.attribution, _of_label(label)) for label in formats.read_labels(path)))
    if one.read is not None:
        _add_answers(labels, wholes, list(formats.read(path)))
    return labels, wholes


def _of_ratings(path: Path, answers: Path, likert: int) -> tuple[Labels, Labels]:
    """The consensus as labels."""
    labels, wholes = Labels(), Labels()
    _add_answers(labels, wholes, list(label_answers(formats.read_rated(answers), read_ratings(path), likert=likert)))
    return labels, wholes


def _add_answers(labels: Labels, wholes: Labels, labelled: Sequence[CitedAnswer]) -> None:
    """Add the labels of answers; where people are split, the pair is undecided and says so."""
    _merge(labels, _pairs(labelled))
    _merge(wholes, _wholes(labelled))
    undecided = Judgement(Verdict.UNDECIDED, None, SPLIT)
    for answer in labelled:
        places = _ties(answer)
        if (None, None) in places and len(answer.sentences) > 1:
            wholes[whole_answer(answer)] = undecided
        for number, claim in _claims(answer):
            cites = answer.sentences[number].cites
            if (number, None) in places or ((None, None) in places and len(answer.sentences) == 1):
                labels[claim.against(claim.cited)] = undecided
            for cited, text in zip(cites, claim.cited, strict=True):
                if (number, cited) in places:
                    labels[claim.against((text,))] = undecided


def _pairs(answers: Iterable[CitedAnswer]) -> Iterator[tuple[Attribution, Verdict]]:
    """Yield what people judged: sentences with all their citations, and single citations."""
    for answer in answers:
        for number, claim in _claims(answer):
            sentence = answer.sentences[number]
            label = sentence.attributable
            if label is None and len(answer.sentences) == 1:
                label = answer.attributable
            if label is not None:
                yield claim.against(claim.cited), _verdict(label)
            for cited, text in zip(sentence.cites, claim.cited, strict=True):
                if (level := sentence.support.get(cited)) is not None:
                    yield claim.against((text,)), _LEVELS[level]


def _wholes(answers: Iterable[CitedAnswer]) -> Iterator[tuple[Attribution, Verdict]]:
    """Yield what people judged as one: answers of several sentences, none of which has a label."""
    for answer in answers:
        alone = all(sentence.attributable is None for sentence in answer.sentences)
        if len(answer.sentences) > 1 and alone and answer.attributable is not None:
            yield whole_answer(answer), _verdict(answer.attributable)


def _ties(answer: CitedAnswer) -> list[tuple[object, object]]:
    """The places where people are split: sentence and citation."""
    listed = answer.extra.get(TIES)
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [(one.get("sentence"), one.get("citation")) for one in found]


def _claims(answer: CitedAnswer) -> Iterator[tuple[int, CitedClaim]]:
    """The claims of an answer with the numbers of their sentences."""
    return ((number, claim) for number, claim in enumerate(cited_claims(answer)) if claim is not None)


def _of_label(label: Labelled) -> Verdict:
    if label.verdict is not None:
        return label.verdict
    return _verdict(label.attributable) if label.support is None else _LEVELS[label.support]


def _verdict(label: bool) -> Verdict:
    return Verdict.ATTRIBUTABLE if label else Verdict.NOT_ATTRIBUTABLE


def _merge(labels: Labels, pairs: Iterable[tuple[Attribution, Verdict]]) -> None:
    """Add labels; a more exact verdict replaces a plain no, and a yes beside a no is undecided."""
    for pair, verdict in pairs:
        earlier = labels.setdefault(pair, Judgement(verdict))
        if earlier.verdict.ais != verdict.ais:
            labels[pair] = Judgement(Verdict.UNDECIDED, None, CONTRADICT)
        elif earlier.verdict is Verdict.NOT_ATTRIBUTABLE:
            labels[pair] = Judgement(verdict)
