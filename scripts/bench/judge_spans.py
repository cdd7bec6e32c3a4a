"""Measures what the shipped judge says beside its verdict, and how steady the verdict is, beside counting words.

    python -m scripts.bench.judge_spans ../shared/data POOL.index --out eval/results/minilm/spans.json

- `noise`: AttributionBench (dev, and 500 claims of its test): the verdicts that turn when five passages, drawn from
  the pool by seed, stand among the evidence.
- `sentences`: claims of FEVER dev that people called supported. The sentences that support them are mixed, by seed,
  with ten sentences of the passages that BM25 finds for the claim. Measured is the span that `rag` marks as supporting
  (one to three sentences) for claims that the judge accepts; the baseline is the sentence that shares most words. Some
  of the ten support the claim too, so the figures are lower bounds.
- `words`: summaries with an error, and the same sentences as people corrected them (DeFacto). The words that people
  removed or replaced are those without support. Measured are the words that the judge marks in the summaries that it
  does not accept; the baseline marks the content words that the evidence lacks.

Nothing was trained on DeFacto's and FEVER's rows, but some of FEVER's share a text with FEVER-Symmetric, which the
judge learnt from. The judge's threshold was chosen on AttributionBench dev, its rule for several texts on the claims of
`noise`, and what it marks on these summaries and 500 others of DeFacto.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from autoais.base.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.base.text.excerpt import find_words_outside
from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import content_stems
from autoais.base.types import Attribution, Judge, Judgement
from autoais.judges.lexical import LexicalJudge
from autoais.judges.minilm import MiniLMJudge
from autoais.metrics.intervals import Estimate, mean, ratio
from rag.answer.attribution.attributor import Attributor
from rag.answer.word_overlap import nearest_sentence
from rag.base.errors import QuestionError
from rag.base.types import Passage
from rag.index.index import Index
from rag.index.open import open_index

SEED = 13
OTHER_TEXTS = 5  # passages among the evidence of `noise`
CLAIMS, OTHER_SENTENCES = 500, 10  # claims of `sentences`, and sentences around those that support them
PAIRS = 500  # of `words`
MIN_STEM_SHARE = 0.6  # share of the stems of a sentence from which on it repeats another


def rows(data: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a file of labels."""
    for _, row in read_objects(data / "labels" / f"{name}.jsonl"):
        yield row


def rate(hits: Sequence[bool]) -> dict[str, Any]:
    """The share of items, each of its own."""
    return _record(mean(np.array(hits, dtype=np.float64)))


def ratio_of_sums(hits: Sequence[int], items: Sequence[int]) -> dict[str, Any]:
    """A ratio of sums over claims."""
    estimate = ratio(np.array(hits, dtype=np.float64), np.array(items, dtype=np.float64))
    return {"value": None} if estimate is None else _record(estimate)


def _record(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "n": estimate.n, "interval95": list(estimate.interval)}


def noise(judges: Sequence[Judge], data: Path, index: Index) -> dict[str, Any]:
    """The share of verdicts that turn with other passages beside the evidence."""
    chance = random.Random(SEED)
    total = index.manifest["passages"]
    plain, noisy = [], []
    for name in ("attributionbench_dev", "attributionbench_test500"):
        for row in rows(data, name):
            evidence = [text for text in row["references"] if text.strip()]
            other_texts = [
                passage.evidence for passage in index.store.rows(sorted(chance.sample(range(total), OTHER_TEXTS)))
            ]
            texts = [*evidence, *other_texts]
            chance.shuffle(texts)
            plain.append(Attribution(row["claim"], tuple(evidence), row["question"]))
            noisy.append(Attribution(row["claim"], tuple(texts), row["question"]))
    results = {}
    for judge in judges:
        before, after = ([judgement.verdict.ais for judgement in judge.judge(claims)] for claims in (plain, noisy))
        pairs = [(a, b) for a, b in zip(before, after, strict=True) if None not in (a, b)]
        results[judge.name] = {
            "undecided": len(before) - len(pairs),
            "turned": rate([a != b for a, b in pairs]),
            "supported, then not": sum(a is True and b is False for a, b in pairs),
            "not supported, then supported": sum(a is False and b is True for a, b in pairs),
        }
    return results


def mix_sentences(data: Path, index: Index) -> Iterator[tuple[str, Passage, list[tuple[int, int]]]]:
    """Claims with a passage of sentences, and the spans in it that support the claim."""
    chance = random.Random(SEED)
    supported_rows = [
        row for row in rows(data, "contrast_train") if row["dataset"] == "FEVER" and row["raw_label"] == "SUPPORTS"
    ]
    chance.shuffle(supported_rows)
    for number, row in enumerate(supported_rows[:CLAIMS]):
        gold = [text for text in sentences(" ".join(row["evidence"])) if len(text.split()) > 3]
        try:
            (hits,) = index.bm25.search([row["claim"]], 20)
        except QuestionError:
            continue
        other_sentences = [text for hit in hits for text in sentences(hit.passage.text) if len(text.split()) > 3]
        other_sentences = [
            text for text in dict.fromkeys(other_sentences) if not any(repeats(text, sentence) for sentence in gold)
        ]
        if not gold or len(other_sentences) < OTHER_SENTENCES:
            continue
        passage_sentences = [*gold, *other_sentences[:OTHER_SENTENCES]]
        chance.shuffle(passage_sentences)
        text, spans = "", []
        for sentence in passage_sentences:
            text += " " if text else ""
            if sentence in gold:
                spans.append((len(text), len(text) + len(sentence)))
            text += sentence
        yield row["claim"], Passage(str(number), "", text), spans


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


def repeats(text: str, other: str) -> bool:
    """Whether a sentence repeats most of another one's words."""
    stems = set(content_stems(other))
    return len(stems & set(content_stems(text))) >= MIN_STEM_SHARE * max(1, len(stems))


def measure_spans(judge: Judge, data: Path, index: Index) -> dict[str, Any]:
    """How well the marked span meets the sentences that support a claim."""
    attributor = Attributor(judge)
    cases = list(mix_sentences(data, index))
    judgements = judge.judge([Attribution(claim, (passage.evidence,)) for claim, passage, _ in cases])
    marks, nearest = Marks(), Marks()
    for (claim, passage, gold), judgement in zip(cases, judgements, strict=True):
        if judgement.verdict.ais is not True:
            continue
        span = attributor.find_span(claim, passage, judgement)
        marks.add(passage.text, (span.start, span.end), gold)
        nearest.add(passage.text, nearest_sentence(passage.text, claim), gold)
    return {
        "claims": len(cases),
        "accepted": len(marks.touched),
        "marked": marks.record(),
        "sentence that shares most words": nearest.record(),
    }


class Marks:
    """Counts marked and supporting sentences."""

    def __init__(self) -> None:
        self.touched: list[bool] = []
        self.right: list[int] = []
        self.marked: list[int] = []

    def add(self, text: str, span: tuple[int, int] | None, gold: Sequence[tuple[int, int]]) -> None:
        """Count the sentences of a marked span."""
        spans = [(a, b) for a, b in sentence_spans(text) if span and a < span[1] and span[0] < b]
        right = sum(any(start < b and a < end for a, b in gold) for start, end in spans)
        self.touched.append(right > 0)
        self.right.append(right)
        self.marked.append(len(spans))

    def record(self) -> dict[str, Any]:
        """The shares."""
        return {
            "touches a supporting sentence": rate(self.touched),
            "precision": ratio_of_sums(self.right, self.marked),
        }


def corrections(data: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Sentences with an error, as people corrected them, and the evidence."""
    pairs: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in rows(data, "contrast_train"):
        if row["dataset"] == "DeFacto" and row["pair"]:
            pairs.setdefault(row["pair"], {})[row["label"]] = row
    whole_pairs = [pair for _, pair in sorted(pairs.items()) if len(pair) == 2]
    for pair in random.Random(SEED).sample(whole_pairs, PAIRS):
        yield pair[0]["claim"], pair[1]["claim"], tuple(pair[0]["evidence"])


def error_words(claim: str, correction: str) -> set[int]:
    """The places of the words of a claim that its correction does not have."""
    a, b = ([word.strip(".,;:!?\"'()").lower() for word in text.split()] for text in (claim, correction))
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    changes = [(i, j) for kind, i, j, _, _ in matcher.get_opcodes() if kind in ("delete", "replace")]
    return {number for i, j in changes for number in range(i, j)}


def words_in(claim: str, spans: Sequence[tuple[int, int]]) -> set[int]:
    """The places of the words of a claim that spans touch."""
    numbers, end = set(), 0
    for number, word in enumerate(claim.split()):
        start = claim.index(word, end)
        end = start + len(word)
        if any(a < end and start < b for a, b in spans):
            numbers.add(number)
    return numbers


def words(judge: Judge, data: Path) -> dict[str, Any]:
    """How well the marked words are those that people removed."""
    cases = list(corrections(data))
    judgements: list[Judgement] = judge.judge([Attribution(claim, evidence) for claim, _, evidence in cases])
    counts: dict[str, list[tuple[int, int, int]]] = {"marked": [], "content words that the evidence lacks": []}
    for (claim, correction, evidence), judgement in zip(cases, judgements, strict=True):
        gold = error_words(claim, correction)
        if judgement.verdict.ais is not False or not gold:
            continue
        stems = frozenset(content_stems("\n".join(evidence)))
        for name, spans in zip(counts, (judgement.unsupported, find_words_outside(claim, stems)), strict=True):
            words_marked = words_in(claim, spans)
            counts[name].append((len(words_marked & gold), len(words_marked), len(gold)))
    return {
        "claims": len(cases),
        "not accepted": len(counts["marked"]),
        **{
            name: {
                "precision": ratio_of_sums([hits for hits, _, _ in triples], [words for _, words, _ in triples]),
                "recall": ratio_of_sums([hits for hits, _, _ in triples], [gold for _, _, gold in triples]),
            }
            for name, triples in counts.items()
        },
    }


def main(
    data: Annotated[Path, typer.Argument(help="Folder with labels/.")],
    pool: Annotated[Path, typer.Argument(help="Index of the pool.")],
    output: Annotated[Path, typer.Option("--out", help="Report (json).")],
) -> None:
    """Measure, print, and write to --out."""
    index, judge = open_index(pool), MiniLMJudge()
    names = ("attributionbench_dev", "attributionbench_test500", "contrast_train")
    result: dict[str, Any] = {
        "judge": judge.name,
        "index": index.manifest["checksum"],
        "noise": noise([judge, LexicalJudge()], data, index),
        "sentences": measure_spans(judge, data, index),
        "words": words(judge, data),
        "provenance": provenance({name: data / "labels" / f"{name}.jsonl" for name in names}),
    }
    print(dumps(round_floats({key: result[key] for key in ("noise", "sentences", "words")}, 3), indent=1))
    write_atomic(output, [dumps(round_floats(result, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
