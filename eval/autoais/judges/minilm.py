"""`minilm`: a MiniLM cross-encoder in ONNX with a calibration on top, written by `autoais train`."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from autoais.base.errors import UserError, first_line
from autoais.base.io.provenance import sha256_files
from autoais.base.models.onnx import cores, open_session
from autoais.base.models.pairs import CLAIM_ONLY, MAX_CLAIM, EncodedPair, PairEncoder
from autoais.base.text.excerpt import EvidenceTexts, split_sentences, texts_of
from autoais.base.text.language import is_english
from autoais.base.text.quotes import find_quote
from autoais.base.text.words import STOP_WORDS, content_stems, idf, stem, word_spans, words
from autoais.base.types import Attribution, Judge, Judgement, Span, Verdict
from autoais.judges.alignment import Alignment, align, contradicts
from autoais.judges.numbers import Numbers
from autoais.judges.partial import check_partial_from, partial_suffix, with_partial
from autoais.judges.templates import template as hypothesis_template

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

MODEL_FOLDER = Path(__file__).parents[1] / "data" / "minilm"
TEMPLATE = "auto.v1"
# Revision of the rules here and in `text.excerpt`, `text.language`, `text.quotes`, `text.words`, `models.pairs` and
# `judges.alignment`, `judges.numbers`.
RULES = 8
# The probability of a sentence that its evidence has word for word: people call nearly all of them attributable
# (`eval/results/minilm/rules.json`).
QUOTE_PROBABILITY = 0.99
# A longer claim has this many of its sentences read, those that share least with the evidence: a page takes seconds.
MAX_PARTS = 100
_MAX_CACHED_OUTPUTS = 1024  # outputs of the network
_MARKER = re.compile(r"\[[^\[\]]*\]")
_FRAMING = re.compile(
    r"\A\s*(?:(?:yes|no|sure|certainly|of course)[,.!;]\s+)?"
    r"(?:(?:based on|according to|as stated in|from) (?:the |this |these )?(?:given |provided |above |following )?"
    r"(?:contexts?|passages?|documents?|sources?|texts?|information|references?|search results)"
    r"(?: provided| given| above)?,\s+)?",
    re.IGNORECASE,
)
_MIN_CLAIM_WORDS = 3  # of a claim that stays without its framing
FEATURES = ("pair", "cosine", "nearest", "aligned", "clash")


@dataclass(frozen=True, slots=True)
class Reading:
    """The network's outputs for one pair.

    `pair` is the logit of the pair. `cosine` is the similarity of the mean vectors of claim and evidence; `nearest` is
    that of each piece of the claim to its nearest piece of evidence.
    """

    pair: float
    cosine: float
    nearest: "NDArray[np.float32]"


def features(reading: Reading, encoded: EncodedPair, claim: str, alignment: Alignment) -> tuple[float, ...]:
    """The features of one pair, in the order of `FEATURES`.

    The logit of the pair; the cosine of both sides; the IDF-weighted mean cosine of the claim's content words to their
    nearest words; the square of the share of the claim that a sentence has in the same order (a copied sentence is far
    stronger evidence than one with half of the words); how surely that sentence clashes with the claim.
    """
    neighbours = [
        (idf(stem(word)), max(float(reading.nearest[i]) for i in pieces_of))
        for start, end, word in word_spans(claim)
        if word not in STOP_WORDS
        and (pieces_of := [i for i, (a, b) in enumerate(encoded.claim_offsets) if a < end and start < b])
    ]
    weight = sum(w for w, _ in neighbours)
    nearest = sum(w * c for w, c in neighbours) / weight if weight else 0.0
    return reading.pair, reading.cosine, nearest, alignment.share**2, alignment.clash


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic regression on `FEATURES`; a claim is attributable if and only if its probability is at least 0.5."""

    weights: tuple[float, ...]
    bias: float

    @classmethod
    def read(cls, path: Path) -> "Calibration":
        """Read `calibration.json`; raises `UserError` if it is not a calibration."""
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
            weights = tuple(float(row["weights"][name]) for name in FEATURES)
            return cls(weights, float(row["bias"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}: not a judge's calibration ({first_line(error)}); run `autoais train` again"
            ) from error

    def probability(self, values: Sequence[float]) -> float:
        """The probability of `attributable`, 0 to 1; NaN if a value is NaN."""
        logit = self.bias + sum(w * v for w, v in zip(self.weights, values, strict=True))
        if math.isnan(logit):
            return math.nan
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))


def strip_framing(claim: str) -> str:
    """The claim without what says nothing of the world: "Yes, ..." and "Based on the given context, ..."."""
    stripped_claim = _FRAMING.sub("", claim, count=1)
    return stripped_claim if len(words(stripped_claim)) >= _MIN_CLAIM_WORDS else claim


class MiniLMJudge(Judge):
    """A cross-encoder that reads claim and relevant evidence sentences together, in up to 256 word pieces.

    The network estimates how likely the pair is supported, and how similar both sides are. A logistic regression
    combines that with the word alignment of claim and evidence (`judges.alignment`). Pairs are read one by one and
    unpadded, so results do not depend on batch or order. A claim that does not fit is judged by its least supported
    sentence; of more than `MAX_PARTS` sentences, those are read that share least with the evidence. Of several texts of
    evidence, the one that has most of the claim's words is read alone too, and the larger probability counts: texts
    about other things beside it hardly turn the verdict. `Judgement.evidence` holds the evidence that was read,
    `Judgement.unsupported` the words that the evidence lacks, and what clashes with it. A number that the evidence
    lacks (`judges.numbers`) counts as one that clashes. The network is not asked where the evidence has the claim, a
    sentence, word for word as whole sentences or lines: that is attributable. Where claim or evidence is in another
    language than English, the judge is undecided. `model` is a folder written by `autoais train` (default: the shipped
    model). `template` builds the hypothesis (`judges.templates`). With `partial_from`, a claim below 0.5 is partially
    attributable from that probability on. With `three_way`, a claim that is not attributable is contradictory if a
    number, name or negation of it clashes with the closest sentence (`judges.alignment.contradicts`), else
    extrapolatory, the classes of AttrScore. The card says how well both agree with people.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        threads: int | None = None,
        template: str = TEMPLATE,
        partial_from: float | None = None,
        three_way: bool = False,
    ) -> None:
        self.folder = MODEL_FOLDER if model is None else Path(model)
        if threads is not None and threads < 1:
            raise UserError(f"judge minilm: {threads} threads; must be at least 1")
        self.threads = threads or cores()
        check_partial_from(partial_from, 0.5)
        self.partial_from = partial_from
        self.three_way = three_way
        self._template, self._hypothesis = template, hypothesis_template(template)
        for name in ("model.onnx", "tokenizer.json"):
            if not (self.folder / name).is_file():
                raise UserError(f"{self.folder}: {name} is missing; give a folder written by `autoais train`")

    @cached_property
    def name(self) -> str:
        """`minilm@<8 hex of the SHA-256 of rules, model, tokenizer and calibration>/<word pieces>/<template>`.

        It ends in `+partial<from>` if `partial_from` is set, and in `+three-way` if `three_way` is.
        """
        if not (self.folder / "calibration.json").is_file():
            raise UserError(f"{self.folder}: calibration.json is missing; give a folder written by `autoais train`")
        files = (self.folder / name for name in ("model.onnx", "tokenizer.json", "calibration.json"))
        name = f"minilm@{sha256_files(files, str(RULES))[:8]}/{self.encoder.max_length}/{self._template}"
        return name + partial_suffix(self.partial_from) + ("+three-way" if self.three_way else "")

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge each attribution on its own, `threads` at a time."""
        if not attributions:
            return []
        self._ready()
        _ = self.calibration  # a damaged file is told even where no pair needs it
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(self._one, attributions))

    def features(self, attributions: Sequence[Attribution]) -> list[tuple[float, ...]]:
        """The `FEATURES` of each attribution, with the claim unsplit."""
        self._ready()

        def read(attribution: Attribution) -> tuple[float, ...]:
            return self._read(self._hypothesis(attribution), EvidenceTexts(attribution.evidence))[0]

        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(read, attributions))

    def similarities(self, text: str, texts: Sequence[str]) -> list[float]:
        """Cosine similarities of a text to the others, by the mean vectors of the network's frozen trunk.

        The trunk is all-MiniLM-L6-v2 as published, in int8; the layers above it are not run. It reads 126 word pieces
        per text, the length it was trained on; longer inputs brought no gain.
        """
        import numpy as np

        _ = self.encoder, self._trunk  # before any thread does

        def similarity(other: str) -> float:
            ids, types = self.encoder.plain(text, other)
            (cosine,) = self._trunk.run(["cosine"], {"ids": np.array([ids]), "types": np.array([types])})
            return float(cosine[0])

        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(similarity, texts))

    def _ready(self) -> None:
        """Load the model before any thread does, so that it is loaded once."""
        _ = self.encoder, self.session

    @cached_property
    def encoder(self) -> PairEncoder:
        """The encoder of claim-evidence pairs."""
        return PairEncoder.from_file(self.folder / "tokenizer.json")

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration model."""
        return Calibration.read(self.folder / "calibration.json")

    @cached_property
    def session(self) -> "InferenceSession":
        """The network; raises `UserError` if the file cannot be loaded."""
        return open_session(self.folder / "model.onnx", way_out="; run `autoais train` again")

    @cached_property
    def _trunk(self) -> "InferenceSession":
        return open_session(self.folder / "model.onnx", way_out="; run `autoais train` again", only="cosine")

    def _one(self, attribution: Attribution) -> Judgement:
        whole_claim = attribution.claim
        attribution = replace(attribution, claim=strip_framing(whole_claim))
        claim = self._hypothesis(attribution)
        if not words(_MARKER.sub("", attribution.claim)):
            return Judgement(Verdict.UNDECIDED, None, "the claim has no words")
        if not is_english(attribution.claim):
            return Judgement(Verdict.UNDECIDED, None, "the claim is not in English")
        if not is_english(*attribution.evidence):
            return Judgement(Verdict.UNDECIDED, None, "the evidence is not in English")
        if claim == attribution.claim:  # a short answer needs its question too
            for number, text in enumerate(attribution.evidence):
                if quote := find_quote(claim, text):
                    return Judgement(Verdict.ATTRIBUTABLE, QUOTE_PROBABILITY, None, (Span(number, *quote),))
        # Length of the question that the template may put before the claim; it also strips outer white space.
        before = len(claim.rstrip()) - len(whole_claim.rstrip())
        parts = self._parts(claim)
        evidence = EvidenceTexts(attribution.evidence)
        numbers = Numbers([*attribution.evidence, attribution.question])
        if len(parts) > MAX_PARTS:
            candidates = sorted(parts, key=lambda part: _share(claim[slice(*part)], evidence))[:MAX_PARTS]
            parts = sorted(candidates)
        results = [self._part(claim[start:end], evidence, numbers) for start, end in parts]
        if not all(math.isfinite(p) for p, _, _ in results):
            return Judgement(Verdict.UNDECIDED, None, "the model's output is not a number")
        probability = round(min(p for p, _, _ in results), 6)
        spans = sorted(
            {span for _, part_spans, _ in results for span in part_spans}, key=lambda s: (s.evidence, s.start, s.end)
        )
        if probability >= 0.5:
            return Judgement(Verdict.ATTRIBUTABLE, probability, None, tuple(spans))
        unsupported: list[tuple[int, int]] = []
        for (part_start, _), (_, _, missing) in zip(parts, results, strict=True):
            shift = part_start - before
            unsupported += [(max(0, start + shift), end + shift) for start, end in missing if end + shift > 0]
        verdict = Verdict.NOT_ATTRIBUTABLE
        if self.three_way:
            clashes = contradicts(claim, align(claim, attribution.evidence))
            verdict = Verdict.CONTRADICTORY if clashes else Verdict.EXTRAPOLATORY
        judgement = Judgement(verdict, probability, None, tuple(spans), tuple(unsupported))
        return with_partial(judgement, self.partial_from)

    def _parts(self, claim: str) -> list[tuple[int, int]]:
        """The spans to judge: the whole claim, or its sentences if it has more than `MAX_CLAIM` word pieces."""
        if self.encoder.length(claim) <= MAX_CLAIM:
            return [(0, len(claim))]
        fitting = (part for start, end in split_sentences(claim) for part in self._halve(claim, start, end))
        return [(start, end) for start, end in fitting if words(claim[start:end])]

    def _halve(self, claim: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A sentence split into parts that fit; needed for scripts with a word piece per character and no spaces."""
        if self.encoder.length(claim[start:end]) <= MAX_CLAIM or end - start < 2:
            yield start, end
            return
        middle = claim.rfind(" ", start + 1, (start + end) // 2) + 1 or (start + end) // 2
        yield from self._halve(claim, start, middle)
        yield from self._halve(claim, middle, end)

    def _part(
        self, claim: str, evidence: EvidenceTexts, numbers: Numbers
    ) -> tuple[float, tuple[Span, ...], list[tuple[int, int]]]:
        """The probability of a part of the claim, what was read, and what of it the evidence lacks."""
        missing_numbers = numbers.find_missing(claim)

        values, encoded, alignment = self._read(claim, evidence)
        probability, spans = self._probability(values, missing_numbers), encoded.spans
        if len(evidence.texts) > 1:
            number = _closest_text(claim, evidence)
            values, single, single_alignment = self._read(claim, evidence.single(number))
            other = self._probability(values, missing_numbers)
            if other > probability or math.isnan(other):
                spans = tuple(replace(span, evidence=number) for span in single.spans)
                probability, alignment = other, single_alignment
        return probability, spans, _missing(claim, encoded, (*alignment.clashes, *missing_numbers))

    def _probability(self, values: tuple[float, ...], missing_numbers: Sequence[tuple[int, int]]) -> float:
        """The probability by these features; a number that the evidence lacks is a certain clash."""
        return self.calibration.probability((*values[:-1], 1.0) if missing_numbers else values)

    def _read(self, claim: str, evidence: EvidenceTexts) -> tuple[tuple[float, ...], EncodedPair, Alignment]:
        """The features, and the encoded pair and the alignment that they come from."""
        encoded = self.encoder.encode(claim, evidence)
        pair, cosine, nearest = self._run(tuple(encoded.ids), tuple(encoded.types))
        reading = Reading(pair, cosine, nearest[1 : 1 + len(encoded.claim_offsets)])
        alignment = align(claim, texts_of(encoded.spans, evidence.texts))
        return features(reading, encoded, claim, alignment), encoded, alignment

    @cached_property
    def _run(self) -> "Callable[[tuple[int, ...], tuple[int, ...]], tuple[float, float, NDArray[np.float32]]]":
        """The network, with its latest outputs kept: a claim without one of many texts is often read as with it."""
        import numpy as np

        @lru_cache(maxsize=_MAX_CACHED_OUTPUTS)
        def run(ids: tuple[int, ...], types: tuple[int, ...]) -> "tuple[float, float, NDArray[np.float32]]":
            inputs = {"ids": np.array([ids], dtype=np.int64), "types": np.array([types], dtype=np.int64)}
            pair, cosine, nearest = self.session.run(["pair", "cosine", "nearest"], inputs)
            return float(pair[0]), float(cosine[0]), nearest[0]

        return run


def _closest_text(claim: str, evidence: EvidenceTexts) -> int:
    """The index of the text that has most of the claim's words, by IDF; ties go to the first."""
    weights = {word: idf(word) for word in dict.fromkeys(content_stems(claim))}
    shares = [_weight_in(weights, stems) for stems in evidence.text_stems]
    return max(range(len(shares)), key=lambda number: shares[number])


def _share(claim: str, evidence: EvidenceTexts) -> float:
    """The share of the claim's words that the evidence has, by IDF; 1 for a claim without content words."""
    weights = {word: idf(word) for word in dict.fromkeys(content_stems(claim))}
    return _weight_in(weights, evidence.stems) / math.fsum(weights.values()) if weights else 1.0


def _weight_in(weights: Mapping[str, float], stems: frozenset[str]) -> float:
    return math.fsum(weight for word, weight in weights.items() if word in stems)


def _missing(claim: str, encoded: EncodedPair, clashes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of words that the evidence lacks or that clash with it; adjacent ones are merged."""
    types = encoded.types[1 : 1 + len(encoded.claim_offsets)]
    low = [o for o, kind in zip(encoded.claim_offsets, types, strict=True) if kind == CLAIM_ONLY]
    low += clashes
    spans: list[tuple[int, int]] = []
    for match in re.finditer(r"\S+", claim):
        if any(match.start() < end and start < match.end() for start, end in low):
            if spans and not claim[spans[-1][1] : match.start()].strip():
                spans[-1] = (spans[-1][0], match.end())
            else:
                spans.append(match.span())
    return spans


@cache
def default_judge() -> MiniLMJudge:
    """The shipped judge, shared by the process so that its network is loaded once."""
    return MiniLMJudge()
