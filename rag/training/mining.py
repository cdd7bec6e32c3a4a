"""Distant supervision: a question's BM25 hits with the answer are positives, those without it negatives."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autoais.metrics.short_answers import answer_spans, has_answer
from autoais.training.loop import Tensors, batches_of_like_length, pair_of
from autoais.types import Question
from rag.errors import QuestionError, RagError
from rag.reader import Window, WindowEncoder
from rag.retrievers import Retriever
from rag.types import Passage

_HOLDING = 4  # passages with the answer that are considered
_NEAR = 8  # first negatives, from which most are drawn
_PLACES = 8  # occurrences of an answer in a passage


@dataclass(frozen=True, slots=True)
class Group:
    """A question, a passage with the character spans of its answer, and passages without the answer (`others`)."""

    question: str
    passage: Passage
    spans: tuple[tuple[int, int], ...]
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
    because the others often contain the words by chance; a similarity below `least` excludes a passage.
    """
    for question in questions:
        references = [answer for answer in question.answers if 0 < len(answer) < 60]
        try:
            (hits,) = retriever.search([question.text], depth) if references else ([],)
        except QuestionError:
            continue
        passages = [hit.passage for hit in hits]
        holding = [passage for passage in passages if has_answer(passage.text, references)][:_HOLDING]
        lacking = [p for p in passages if not has_answer(f"{p.headings} {p.text}", references)]
        if not holding or len(lacking) < others:
            continue
        likeness = similar(question.text, holding)
        best = sorted(zip(likeness, range(len(holding)), strict=True), key=lambda one: (-one[0], one[1]))
        for score, at in best[:each]:
            if score < max(least, best[0][0] - 0.1):
                continue
            near = rng.sample(lacking[:_NEAR], min(len(lacking[:_NEAR]), others - others // 3))
            far = [passage for passage in lacking if passage not in near]
            drawn = (*near, *rng.sample(far, min(len(far), others - len(near))))
            found = answer_spans(holding[at].text, references)
            yield Group(question.text, holding[at], tuple(found), drawn)


def similarity(base: Path, batch: int = 32) -> Similar:
    """Return a function for the cosine of question and passages by a sentence encoder (mean pooling, 128 tokens)."""
    from transformers import AutoTokenizer

    from autoais.models.transformers import quiet
    from autoais.training.model import sentence_encoder

    encoder = sentence_encoder(base)  # without dropout, as in inference
    with quiet(local=True):
        tokenizer = AutoTokenizer.from_pretrained(str(base))

    def vectors(texts: Sequence[str]) -> torch.Tensor:
        read = tokenizer(list(texts), padding=True, truncation=True, max_length=128, return_tensors="pt")
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = encoder(**read).last_hidden_state.float()
        weight = read["attention_mask"].unsqueeze(-1).float()
        return torch.nn.functional.normalize((hidden * weight).sum(1) / weight.sum(1), dim=1)

    def similar(question: str, passages: Sequence[Passage]) -> list[float]:
        texts = [f"{p.headings} {p.text}".strip() for p in passages]
        (asked,) = vectors([question])
        found = torch.cat([vectors(texts[at : at + batch]) for at in range(0, len(texts), batch)])
        return [float(cosine) for cosine in found @ asked]

    return similar


def write_arrays(found: Iterable[Group], encoder: WindowEncoder, out: Path) -> int:
    """Encode groups, write them to one `.npz` and return their number.

    Arrays: `ids` and `types` of all pairs, concatenated, with the `ends` of each pair; `first`, the position of the
    first token of the text in each pair; `group_ends`, in pairs (the first pair of a group has the answer); `spans`,
    rows of pair, first and last token.
    """
    columns: dict[str, list[Any]] = {name: [] for name in ("ids", "types", "first", "lengths", "group_ends", "spans")}
    for group in found:
        holding = _holding(encoder.windows(group.question, group.passage), group.spans)
        if holding is None:
            continue
        window, places = holding
        pair = len(columns["lengths"])
        columns["spans"] += [(pair, *place) for place in places]
        for each in (window, *(encoder.windows(group.question, other)[0] for other in group.others)):
            columns["ids"].append(np.array(each.ids, dtype=np.int32))
            columns["types"].append(np.array(each.types, dtype=np.uint8))
            columns["first"].append(each.first)
            columns["lengths"].append(len(each.ids))
        columns["group_ends"].append(len(columns["lengths"]))
    if not columns["lengths"]:
        raise RagError("no training pairs: the index holds no answers to these questions; name another index")
    np.savez(
        out,
        ids=np.concatenate(columns["ids"]), types=np.concatenate(columns["types"]),
        first=np.array(columns["first"]), ends=np.cumsum(columns["lengths"]),
        group_ends=np.array(columns["group_ends"]), spans=np.array(columns["spans"]),
    )  # fmt: skip
    return len(columns["group_ends"])


def _holding(
    windows: Iterable[Window], spans: Sequence[tuple[int, int]]
) -> tuple[Window, list[tuple[int, int]]] | None:
    """The first window that contains a whole answer, and the first and last tokens of its occurrences there."""
    for window in windows:
        places = []
        for start, end in spans:
            inside = [i for i, (a, b) in enumerate(window.offsets) if a < end and start < b]
            if inside and window.offsets[inside[0]][0] <= start and end <= window.offsets[inside[-1]][1]:
                places.append((window.first + inside[0], window.first + inside[-1]))
        if places:
            return window, places[:_PLACES]
    return None


class Groups:
    """The groups of several files, as batches for the training loop."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = [dict(np.load(path, allow_pickle=False)) for path in files]
        self._groups: list[tuple[int, int, int]] = []  # file, first pair, end
        longest = []
        for number, arrays in enumerate(self._files):
            arrays["starts"] = np.concatenate([[0], arrays["ends"][:-1]])
            lengths = arrays["ends"] - arrays["starts"]
            start = 0
            for end in arrays["group_ends"]:
                self._groups.append((number, start, int(end)))
                longest.append(int(lengths[start:end].max()))
                start = int(end)
        self._longest = np.array(longest)

    def __len__(self) -> int:
        return len(self._groups)

    def order(self, batch: int, seed: int) -> list[np.ndarray]:
        """Batches of groups of similar length, in a seeded random order; `batch` counts pairs."""
        each = max(1, batch // (self._groups[0][2] - self._groups[0][1]))
        return batches_of_like_length(self._longest, each, seed)

    def batch(self, numbers: np.ndarray) -> Tensors:
        """Tensors: ids, mask and types (pairs, length), rows of each group's pairs (-1: none), text start, spans."""
        width = -(-int(self._longest[numbers].max()) // 8) * 8
        chosen = [self._groups[number] for number in numbers]
        total, most = sum(end - start for _, start, end in chosen), max(end - start for _, start, end in chosen)
        ids = np.zeros((total, width), dtype=np.int64)
        mask, types, first = np.zeros_like(ids), np.zeros_like(ids), np.zeros(total, dtype=np.int64)
        places, spans = np.full((len(chosen), most), -1), []
        row = 0
        for group, (number, start, end) in enumerate(chosen):
            arrays = self._files[number]
            inside = slice(*np.searchsorted(arrays["spans"][:, 0], [start, start + 1]))
            spans += [(row, a, b) for _, a, b in arrays["spans"][inside]]
            for place, pair in enumerate(range(start, end)):
                a, b = arrays["starts"][pair], arrays["ends"][pair]
                ids[row, : b - a], types[row, : b - a], mask[row, : b - a] = arrays["ids"][a:b], arrays["types"][a:b], 1
                first[row], places[group, place] = arrays["first"][pair], row
                row += 1
        return tuple(torch.from_numpy(np.asarray(one)) for one in (ids, mask, types, places, first, np.array(spans)))

    def some(self, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield (ids, types) of about `count` pairs, evenly spaced."""
        for number in range(0, len(self._groups), max(1, len(self._groups) // count)):
            file, start, _ = self._groups[number]
            yield pair_of(self._files[file], start)
