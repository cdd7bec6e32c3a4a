"""Groups of passages to train the reader on: those that answer the question, and hits that do not.

Two kinds of supervision: distant (a question with short answers: a hit that contains one is the positive) and labelled
(a question with quotes that answer it, `rag.training.labelled_questions`).
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from autoais.base.text.sentences import sentence_spans
from autoais.base.types import Question
from autoais.metrics.short_answers import answer_spans, has_answer
from autoais.training.loop import Tensors, batches_of_like_length, mixed_precision, pair_of
from rag.base.errors import QuestionError, RagError
from rag.base.types import Passage
from rag.retrieval import Retriever
from rag.retrieval.reader import Window, WindowEncoder

_MAX_ANSWER_PASSAGES = 4  # passages with the answer that are considered
_BATCH = 32  # passages that the encoder reads at once
_FIRST_NEGATIVES = 8  # first negatives, from which most are drawn
_MAX_OCCURRENCES = 8  # occurrences of an answer in a passage
NO_SHORT_ANSWER = (0, 0)  # its first and last token: [CLS], as in SQuAD 2.0


@dataclass(frozen=True, slots=True)
class Group:
    """A question, the passages that answer it (there may be none), and passages that do not (`others`).

    `spans` are the characters of the short answer in the first passage, one pair per occurrence: empty if the question
    has no short answer, None if this is not known. `kept` are those of the sentences there that answer, `unsure` those
    of sentences of which this is not known.
    """

    question: str
    passages: tuple[Passage, ...]
    spans: tuple[tuple[int, int], ...] | None
    kept: tuple[tuple[int, int], ...]
    unsure: tuple[tuple[int, int], ...]
    others: tuple[Passage, ...]


Similar = Callable[[str, Sequence[Passage]], Sequence[float]]


def groups(
    questions: Iterable[Question],
    retriever: Retriever,
    similar: Similar,
    rng: random.Random,
    *,
    depth: int,
    others: int,
    each: int,
    least: float,
) -> Iterator[Group]:
    """Yield at most `each` groups per question, from its first `depth` hits, with `others` negatives each.

    Of the first four passages that contain the answer, the most similar to the question (`similar`) are positives,
    because the others often contain the words by chance; a similarity below `least` excludes a passage. The sentence
    with the answer is kept; if several contain it, none is known to be the one.
    """
    for question in questions:
        references = [answer for answer in question.answers if 0 < len(answer) < 60]
        try:
            (hits,) = retriever.search([question.text], depth) if references else ([],)
        except QuestionError:
            continue
        passages = [hit.passage for hit in hits]
        answer_passages = [passage for passage in passages if has_answer(passage.text, references)][
            :_MAX_ANSWER_PASSAGES
        ]
        candidates = [p for p in passages if not has_answer(p.contents, references)]
        if not answer_passages or len(candidates) < others:
            continue
        likeness = similar(question.text, answer_passages)
        best = sorted(zip(likeness, range(len(answer_passages)), strict=True), key=lambda pair: (-pair[0], pair[1]))
        for score, number in best[:each]:
            if score < max(least, best[0][0] - 0.1):
                continue
            occurrences = tuple(answer_spans(answer_passages[number].text, references))
            sentences = [
                s
                for s in sentence_spans(answer_passages[number].text)
                if any(s[0] < b and a < s[1] for a, b in occurrences)
            ]
            certain_spans, unsure = (sentences, []) if len(sentences) == 1 else ([], sentences)
            negative_passages = negatives(candidates, others, rng)
            yield Group(
                question.text,
                (answer_passages[number],),
                occurrences,
                tuple(certain_spans),
                tuple(unsure),
                negative_passages,
            )


def negatives(candidates: Sequence[Passage], count: int, rng: random.Random) -> tuple[Passage, ...]:
    """Draw `count` of the passages (in rank order): two thirds of them from the first eight."""
    first_negatives = rng.sample(
        candidates[:_FIRST_NEGATIVES], min(len(candidates[:_FIRST_NEGATIVES]), count - count // 3)
    )
    further_candidates = [passage for passage in candidates if passage not in first_negatives]
    return (
        *first_negatives,
        *rng.sample(further_candidates, min(len(further_candidates), count - len(first_negatives))),
    )


def similarity(base: Path) -> Similar:
    """Return a function for the cosine of question and passages by a sentence encoder (mean pooling, 128 tokens)."""
    from transformers import AutoTokenizer

    from autoais.base.models.transformers import quiet_logging
    from autoais.training.model import sentence_encoder

    encoder = sentence_encoder(base)  # without dropout, as in inference
    with quiet_logging(local=True):
        tokenizer = AutoTokenizer.from_pretrained(str(base))

    def vectors(texts: Sequence[str]) -> torch.Tensor:
        batch = tokenizer(list(texts), padding=True, truncation=True, max_length=128, return_tensors="pt")
        with torch.inference_mode(), mixed_precision():
            states = encoder(**batch).last_hidden_state.float()
        weight = batch["attention_mask"].unsqueeze(-1).float()
        return torch.nn.functional.normalize((states * weight).sum(1) / weight.sum(1), dim=1)

    def similar(question: str, passages: Sequence[Passage]) -> list[float]:
        texts = [p.contents for p in passages]
        (question_vector,) = vectors([question])
        passage_vectors = torch.cat([vectors(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)])
        return [float(cosine) for cosine in passage_vectors @ question_vector]

    return similar


def write_arrays(groups_to_encode: Iterable[Group], encoder: WindowEncoder, out: Path) -> int:
    """Encode groups, write them to one `.npz` and return their number.

    Arrays: `ids` and `types` of all pairs, concatenated, with the `ends` of each pair, and `keep` (1: of a sentence
    that answers, 0: of another, -1: not known); `first`, the position of the first token of the text in each pair;
    `group_ends`, in pairs; `positives`, the number of positives that a group begins with; `spans`, rows of pair, first
    and last token (`NO_SHORT_ANSWER` if there is none).
    """
    names = ("ids", "types", "keep", "first", "lengths", "group_ends", "positives", "spans")
    columns: dict[str, list[Any]] = {name: [] for name in names}

    def add(window: Window, keep: Sequence[int]) -> None:
        columns["ids"].append(np.array(window.ids, dtype=np.int32))
        columns["types"].append(np.array(window.types, dtype=np.uint8))
        columns["keep"].append(np.array(keep, dtype=np.int8))
        columns["first"].append(window.first)
        columns["lengths"].append(len(window.ids))

    for group in groups_to_encode:
        if not group.passages and not group.others:  # the search found nothing
            continue
        if group.passages:
            answer_window = _find_answer_window(encoder.windows(group.question, group.passages[0]), group)
            if answer_window is None:
                continue
            window, token_spans = answer_window
            pair = len(columns["lengths"])
            if group.spans is not None:
                columns["spans"] += [(pair, *token_span) for token_span in token_spans or [NO_SHORT_ANSWER]]
            add(window, _keep(window, group))
        for other in (*group.passages[1:], *group.others):
            windows = encoder.windows(group.question, other)
            add(windows[0], [-1] * len(windows[0].ids))
        columns["positives"].append(len(group.passages))
        columns["group_ends"].append(len(columns["lengths"]))
    if not columns["lengths"]:
        raise RagError("no training pairs: the index holds no answers to these questions; name another index")
    np.savez(
        out,
        ids=np.concatenate(columns["ids"]), types=np.concatenate(columns["types"]),
        keep=np.concatenate(columns["keep"]), first=np.array(columns["first"]), ends=np.cumsum(columns["lengths"]),
        group_ends=np.array(columns["group_ends"]), positives=np.array(columns["positives"]),
        spans=np.array(columns["spans"], dtype=np.int64).reshape(-1, 3),
    )  # fmt: skip
    return len(columns["group_ends"])


def _keep(window: Window, group: Group) -> list[int]:
    """A label per token of the window: 1 inside `kept`, 0 elsewhere in the text, -1 outside the text or not known."""
    labels = [-1] * len(window.ids)
    if not group.kept:
        return labels
    for token, (start, end) in enumerate(window.offsets, window.first):
        is_certain = any(start < b and a < end for a, b in group.kept)
        unsure = any(start < b and a < end for a, b in group.unsure)
        labels[token] = 1 if is_certain else -1 if unsure else 0
    return labels


def _find_answer_window(windows: Sequence[Window], group: Group) -> tuple[Window, list[tuple[int, int]]] | None:
    """The window with the answer (whole, if it is short), and the first and last tokens of its occurrences there."""
    for window in windows:
        token_spans = []
        for start, end in group.spans or ():
            tokens = [i for i, (a, b) in enumerate(window.offsets) if a < end and start < b]
            if tokens and window.offsets[tokens[0]][0] <= start and end <= window.offsets[tokens[-1]][1]:
                token_spans.append((window.first + tokens[0], window.first + tokens[-1]))
        if token_spans:
            return window, token_spans[:_MAX_OCCURRENCES]
    if group.spans or not windows:
        return None
    return max(windows, key=lambda window: _keep(window, group).count(1)), []


_Row = TypeVar("_Row")


def _sample_evenly(rows: Sequence[_Row], share: float) -> list[_Row]:
    """A share of the rows, evenly spaced."""
    count = round(len(rows) * share)
    return [rows[number * len(rows) // count] for number in range(count)]


class Groups:
    """The groups of several files as batches for the training loop.

    Each file comes with the number of times its groups are used; of a fraction, that share of them, evenly spaced.
    """

    def __init__(self, files: Sequence[tuple[Path, float]]) -> None:
        self._files = [dict(np.load(path, allow_pickle=False)) for path, _ in files]
        self._groups: list[tuple[int, int, int, int]] = []  # file, first pair, end, number of positives
        longest = []
        for number, (arrays, (_, times)) in enumerate(zip(self._files, files, strict=True)):
            arrays["starts"] = np.concatenate([[0], arrays["ends"][:-1]])
            lengths = arrays["ends"] - arrays["starts"]
            firsts = np.concatenate([[0], arrays["group_ends"][:-1]])
            rows = list(zip(firsts.tolist(), arrays["group_ends"].tolist(), arrays["positives"].tolist(), strict=True))
            for start, end, positives in rows * int(times) + _sample_evenly(rows, times % 1):
                self._groups.append((number, start, end, positives))
                longest.append(int(lengths[start:end].max()))
        if not self._groups:
            raise RagError("no groups are left to train on; give questions, and use them at least once")
        self._longest = np.array(longest)

    def __len__(self) -> int:
        return len(self._groups)

    def order(self, batch: int, seed: int) -> list[np.ndarray]:
        """Batches of groups of similar length, in a seeded random order; `batch` counts pairs."""
        return batches_of_like_length(self._longest, max(1, batch * len(self) // self.pairs), seed)

    @property
    def pairs(self) -> int:
        """The number of pairs of question and passage, as often as they are used."""
        return sum(end - start for _, start, end, _ in self._groups)

    def batch(self, numbers: np.ndarray) -> Tensors:
        """Tensors: ids, mask, types, keep (each pairs by length), group, whether positive, start of the text, spans.

        The group, whether it is positive and the position of its text are given for each pair; spans are as in
        `write_arrays`, with rows of this batch.
        """
        width = -(-int(self._longest[numbers].max()) // 8) * 8
        batch_groups = [self._groups[number] for number in numbers]
        total = sum(end - start for _, start, end, _ in batch_groups)
        ids = np.zeros((total, width), dtype=np.int64)
        mask, types, first = np.zeros_like(ids), np.zeros_like(ids), np.zeros(total, dtype=np.int64)
        group_of, positive = np.zeros_like(first), np.zeros(total, dtype=bool)
        keep, spans = np.full_like(ids, -1), []
        row = 0
        for group, (number, start, end, positives) in enumerate(batch_groups):
            arrays = self._files[number]
            span_rows = slice(*np.searchsorted(arrays["spans"][:, 0], [start, start + 1]))
            spans += [(row, a, b) for _, a, b in arrays["spans"][span_rows]]
            for pair in range(start, end):
                a, b = arrays["starts"][pair], arrays["ends"][pair]
                ids[row, : b - a], types[row, : b - a], mask[row, : b - a] = arrays["ids"][a:b], arrays["types"][a:b], 1
                keep[row, : b - a] = arrays["keep"][a:b]
                first[row], group_of[row], positive[row] = arrays["first"][pair], group, pair < start + positives
                row += 1
        span_array = np.array(spans, dtype=np.int64).reshape(-1, 3)
        arrays_of_batch = (ids, mask, types, keep, group_of, positive, first, span_array)
        return tuple(torch.from_numpy(np.asarray(array)) for array in arrays_of_batch)

    def some(self, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield (ids, types) of about `count` pairs, evenly spaced."""
        for number in range(0, len(self._groups), max(1, len(self._groups) // count)):
            file, start, _, _ = self._groups[number]
            yield pair_of(self._files[file], start)
