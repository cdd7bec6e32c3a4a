"""Preparation of training data: simulated pairs, human labels and NLI as encoded arrays, without evaluation data."""

import random
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

import numpy as np

from autoais.base.answers import read_answers
from autoais.base.errors import FormatError, UserError
from autoais.base.io.files import records
from autoais.base.io.jsonl import field, read_objects
from autoais.base.labels import LabelledClaim
from autoais.base.models.pairs import PairEncoder
from autoais.base.text.excerpt import split_sentences
from autoais.base.text.folding import questions_key
from autoais.base.types import Attribution
from autoais.formats import detect, read_labels
from autoais.metrics.short_answers import has_answer
from autoais.training.edits import BREAKING, PARAPHRASES, apply, names
from autoais.training.simulate import Example, Page, from_page, from_question

_MIN_DISTANCE = 50  # passages to collect before the first one is used
_PASSAGES_PER_PAIR = 8  # passages to draw per minimal pair, since not every sentence can be reworded
_FACTS = ("number", "number_word", "month", "name", "negation")
_MAX_CLAIM_WORDS = 80  # words; longer claims are rare and expensive


def read_pages(path: Path, share: float, rng: random.Random) -> Iterator[tuple[Page, list[Page]]]:
    """A random share of a corpus (jsonl, also compressed), each passage with three other passages.

    The others are distant passages; the first may be the previous passage of the same article. Raises `FormatError` at
    a malformed line.
    """
    before: Page | None = None
    distant_pages: list[Page] = []
    for location, row in records(path):
        if isinstance(row, FormatError):
            raise row
        page = Page(str(row.get("title") or ""), field(row, "text", str, location))
        if len(distant_pages) >= _MIN_DISTANCE and rng.random() < share:
            other_pages = rng.sample(distant_pages, 3)
            if before is not None and before.title == page.title and rng.random() < 0.6:
                other_pages[0] = before
            yield page, other_pages
        distant_pages.append(page)
        before = page
        if len(distant_pages) > 60 * _MIN_DISTANCE:
            del distant_pages[: 20 * _MIN_DISTANCE]


def minimal_pairs(path: Path, limit: int, half: int, reword: bool = True) -> Iterator[LabelledClaim]:
    """Minimal pairs: a supported claim that rewords the first sentence of a passage, then one with a fact changed.

    Yields up to `limit` pairs, from passages with odd (`half` 1) or even (0) numbers, so that one half can calibrate
    and the other evaluate. Facts are numbers, months, names and negations. Without `reword` the supported claim is the
    sentence itself. Raises `FormatError` at a malformed line.
    """
    rng = random.Random(half)
    pages: list[Page] = []
    rows_of_half = (row for number, (_, row) in enumerate(records(path)) if number % 2 == half)
    for number_of_row, row in enumerate(rows_of_half):
        if isinstance(row, FormatError):
            raise row
        page = Page(str(row.get("title") or ""), str(row["text"]))
        slot = len(pages) if len(pages) < _PASSAGES_PER_PAIR * limit else rng.randrange(number_of_row + 1)
        pages[slot : slot + 1] = [page] if slot < _PASSAGES_PER_PAIR * limit else []
    rng.shuffle(pages)
    facts = {name: BREAKING[name] for name in _FACTS}
    n_pairs = 0
    for page in pages:
        start, end = next(split_sentences(page.text), (0, 0))
        claim = page.text[start:end]
        if reword:
            paraphrase = apply(PARAPHRASES, claim, rng)
            if not paraphrase:
                continue
            claim = paraphrase[1].text
        edit = apply(facts, claim, rng, [page.text, rng.choice(pages).text])
        if n_pairs < limit and edit and edit[1].text not in page.text:
            n_pairs += 1
            yield LabelledClaim("minimal pairs", f"{n_pairs}", Attribution(claim, (page.evidence,)), True)
            yield LabelledClaim("minimal pairs", f"{n_pairs}", Attribution(edit[1].text, (page.evidence,)), False)


def read_excluded_questions(paths: Iterable[Path]) -> set[str]:
    """Keys of the questions excluded from training (the field `question` or `query` of jsonl files)."""
    keys = set()
    for path in paths:
        for _, row in read_objects(path):
            keys.add(questions_key(str(row.get("question") or row.get("query") or "")))
    return keys - {""}


def from_questions(path: Path, exclude: set[str], rng: random.Random) -> Iterator[Example]:
    """Training pairs from answered questions (`answers.jsonl` with passages and reference answers)."""
    wrong: list[str] = []
    for row in read_answers(path):
        references = [a for a in row.answers if 0 < len(a) < 60]
        if not references or questions_key(row.question) in exclude:
            continue
        pages = [Page(row.passages[i].headings, row.passages[i].text) for i in row.ranking]
        # Among passages that contain the answer, the top-ranked ones most likely answer the question.
        pages_with_answer = [page for page in pages[:5] if has_answer(page.text, references)]
        pages_without_answer = [page for page in pages if not has_answer(page.evidence, references)]
        kind = [w for w in wrong if w[:1].isdigit() == references[0][:1].isdigit()]
        names_of_pages = [m for page in pages_with_answer[:2] for m in _names(page.text)]
        options = rng.sample(names_of_pages, min(6, len(names_of_pages))) + rng.sample(kind, min(3, len(kind)))
        if references[0][:1].isdigit():
            options = [o for o in options if o[:1].isdigit()] or options
        yield from from_question(
            row.question, references, pages_with_answer[:2], pages_without_answer[:2], options, rng
        )
        wrong.append(references[0])
        if len(wrong) > 400:
            del wrong[:200]


def _names(text: str) -> list[str]:
    return sorted({m.group() for m in names(text)})


def from_labels(
    path: Path, datasets: Sequence[str], inverted: Sequence[str] = (), exclude: Set[str] = frozenset()
) -> Iterator[Example]:
    """Training pairs with human labels from a file, for data sets whose names start with one of `datasets`.

    The file has a format with labels, such as `answers.jsonl` with people's consensus. In the data sets of `inverted`,
    label 1 means that the claim is not supported. Questions in `exclude` (`questions_key`) are left out, except of
    files in the format `labels`, whose makers keep evaluation data out.
    """
    excluded_keys = frozenset[str]() if detect(path) == "labels" else exclude
    for labelled_claim in read_labels(path):
        claim = labelled_claim.attribution.claim.strip()
        if not labelled_claim.dataset.startswith(tuple(datasets)) or not claim or len(claim.split()) > _MAX_CLAIM_WORDS:
            continue
        if questions_key(labelled_claim.attribution.question) not in excluded_keys:
            label = int(labelled_claim.attributable) ^ (labelled_claim.dataset in inverted)
            yield Example(
                labelled_claim.dataset, "", claim, labelled_claim.attribution.evidence, label, () if label else None
            )


def is_for_calibration(row: int, spare: float) -> bool:
    """Whether a row of a source is withheld from training: one block of 25 rows in `round(1 / spare)`.

    Blocks are used because adjacent rows often share claim or evidence. Rows further apart may still share evidence, so
    the spare rows serve to calibrate a few weights, never to evaluate.
    """
    return spare > 0 and row // 25 % round(1 / spare) == 0


def write_arrays(examples: Iterable[Example], encoder: PairEncoder, output: Path) -> dict[str, int]:
    """Write encoded examples to an `.npz`, and return their number by source.

    The arrays hold concatenated ids, types and token labels (-1: unknown), the end offset and label of each pair, and
    sources as indices into `names`. Raises `UserError` if there are no examples.
    """
    ids: list[np.ndarray] = []
    types: list[np.ndarray] = []
    tokens: list[np.ndarray] = []
    labels: list[int] = []
    sources: list[str] = []
    for example in examples:
        claim = f"{example.question} {example.claim}".strip()
        encoded = encoder.encode(claim, example.evidence)
        token_labels = np.full(len(encoded.ids), -1, dtype=np.int8)
        if example.unsupported is not None and (example.label or example.unsupported):
            shift = len(claim) - len(example.claim)
            spans = [(s + shift, e + shift) for s, e in example.unsupported]
            for token_index, (start, end) in enumerate(encoded.claim_offsets, 1):
                token_labels[token_index] = not any(s < end and start < e for s, e in spans)
        ids.append(np.array(encoded.ids, dtype=np.int32))
        types.append(np.array(encoded.types, dtype=np.uint8))
        tokens.append(token_labels)
        labels.append(example.label)
        sources.append(example.source)
    if not labels:
        raise UserError("the data gives no training pairs")
    names = sorted(set(sources))
    number = {name: i for i, name in enumerate(names)}
    np.savez(
        output,
        ids=np.concatenate(ids), types=np.concatenate(types), tokens=np.concatenate(tokens),
        ends=np.cumsum([len(i) for i in ids]), labels=np.array(labels, dtype=np.uint8),
        sources=np.array([number[s] for s in sources], dtype=np.int16), names=np.array(names),
    )  # fmt: skip
    return {name: sources.count(name) for name in names}


def simulate_pairs(path: Path, share: float, seed: int) -> Iterator[Example]:
    """Simulated training pairs from a share of the passages of a corpus."""
    rng = random.Random(seed)
    for page, other_pages in read_pages(path, share, rng):
        yield from from_page(page, other_pages, rng)
