"""A reader: a small cross-encoder that scores how well a passage answers a question and finds the answer span."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from autoais.base.io.paths import user_path
from autoais.base.io.provenance import sha256_files
from autoais.base.models.onnx import cores, open_session, open_tokenizer
from autoais.base.models.pairs import CLAIM, CLAIM_ONLY, EVIDENCE, EVIDENCE_SHARED, assign_types, readable
from autoais.base.text.excerpt import find_words_in, find_words_outside, split_sentences
from autoais.base.text.words import content_stems
from rag.base.errors import RagError
from rag.base.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

SHIPPED = Path(__file__).parents[1] / "data" / "reader"
RULES = 2  # version of the input format; increase it when this module or one it encodes with changes the input
MAX_LENGTH = 224  # word pieces of question, headings and text together
MAX_QUESTION, MAX_HEADINGS = 64, 32
MAX_ANSWER = 16  # word pieces of an answer span


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a passage as input of the network: `[CLS] question [SEP] headings [SEP] text [SEP]`.

    `types` mark shared words: 0 question, 1 content word of the question that the passage lacks, 2 passage, 3 content
    word of the passage that the question has. `offsets` are the character spans, in the passage's text, of the word
    pieces from position `first`.
    """

    ids: list[int]
    types: list[int]
    first: int
    offsets: list[tuple[int, int]]


class WindowEncoder:
    """Encodes questions and passages as windows, with BERT's tokenizer; the same for training and reading."""

    def __init__(self, tokenizer: "Tokenizer", max_length: int = MAX_LENGTH) -> None:
        self._tokenizer = tokenizer
        self._cls, self._sep = (self._special(mark) for mark in ("[CLS]", "[SEP]"))
        self.max_length = max_length
        self.words: int = tokenizer.get_vocab_size()

    @classmethod
    def from_file(cls, path: Path, max_length: int = MAX_LENGTH) -> "WindowEncoder":
        """Load a `tokenizer.json`; raises `RagError` if the file is not a tokenizer."""
        return cls(open_tokenizer(path, RagError), max_length)

    def _special(self, mark: str) -> int:
        number: int | None = self._tokenizer.token_to_id(mark)
        if number is None:
            raise RagError(f"the reader's tokenizer has no {mark} token; it needs BERT's tokenizer")
        return number

    def windows(self, question: str, passage: Passage) -> list[Window]:
        """The fewest windows that cover the passage, split between sentences where possible."""
        question, headings, text = readable(question), readable(passage.headings), readable(passage.text)
        question_stems = frozenset(content_stems(question))
        passage_stems = frozenset(content_stems(headings)) | frozenset(content_stems(text))
        question_side = self._side(
            question, MAX_QUESTION, find_words_outside(question, passage_stems), CLAIM, CLAIM_ONLY
        )
        headings_side = self._side(
            headings, MAX_HEADINGS, find_words_in(headings, question_stems), EVIDENCE, EVIDENCE_SHARED
        )
        ids, types, offsets = self._side(text, None, find_words_in(text, question_stems), EVIDENCE, EVIDENCE_SHARED)
        before = [self._cls, *question_side[0], self._sep, *headings_side[0], self._sep]
        before_types = [CLAIM, *question_side[1], CLAIM, *headings_side[1], EVIDENCE]
        room = self.max_length - len(before) - 1
        windows = []
        for start, end in _cut(text, offsets, room):
            windows.append(
                Window(
                    [*before, *ids[start:end], self._sep],
                    [*before_types, *types[start:end], EVIDENCE],
                    len(before),
                    offsets[start:end],
                )
            )
        return windows

    def _side(
        self, text: str, limit: int | None, words: Sequence[tuple[int, int]], plain: int, shared_type: int
    ) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        offsets = encoded.offsets[:limit]
        return encoded.ids[:limit], assign_types(offsets, words, plain, shared_type), offsets


def _cut(text: str, offsets: Sequence[tuple[int, int]], room: int) -> list[tuple[int, int]]:
    """Ranges of at most `room` word pieces, split between sentences; one empty range for an empty text."""
    if len(offsets) <= room:
        return [(0, len(offsets))]
    begins = {start for start, _ in split_sentences(text)}
    opening = [i for i, (start, _) in enumerate(offsets) if start in begins]
    cuts, start = [], 0
    while len(offsets) - start > room:
        end = max((i for i in opening if start < i <= start + room), default=start + room)
        cuts.append((start, end))
        start = end
    return [*cuts, (start, len(offsets))]


@dataclass(frozen=True, slots=True)
class Span:
    """The best short answer of a line: its characters in the text, and its log-probability among all spans."""

    start: int
    end: int
    answer: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The reader's output for a passage.

    `relevance`: the logit that it answers the question. `start`, `end`: the characters of the best short answer in its
    text, None if there is none; no answer goes on in the next line. `answer`: its log-probability among all spans of
    the passage. `no_short`: the log-probability that the question has no short answer. `offsets` and `keep`: the
    characters of each word piece of the text, and the probability that it belongs to a sentence that answers the
    question. `spans`: the best short answer of each line, in the order of the text.
    """

    relevance: float
    start: int | None
    end: int | None
    answer: float
    no_short: float = -math.inf
    offsets: tuple[tuple[int, int], ...] = ()
    keep: tuple[float, ...] = ()
    spans: tuple[Span, ...] = ()

    def kept(self, start: int, end: int) -> float:
        """The mean of `keep` over a stretch of the text; 0 if none of it was read."""
        probabilities = [p for (a, b), p in zip(self.offsets, self.keep, strict=True) if a < end and start < b]
        return sum(probabilities) / len(probabilities) if probabilities else 0.0


class Reader:
    """Reads each passage in windows of up to 224 word pieces; the window with the highest relevance counts.

    Nothing is padded, so results depend neither on the batch nor on the order. `model` is a folder written by `rag
    train` (default: the reader that ships with rag).
    """

    def __init__(self, model: str | Path | None = None, *, threads: int | None = None) -> None:
        self.folder = SHIPPED if model is None else user_path(model)
        self.threads = threads or cores()
        for name in ("model.onnx", "tokenizer.json"):
            if not (self.folder / name).is_file():
                raise RagError(f"{self.folder}: {name} is missing; name a folder written by `rag train`")

    @cached_property
    def name(self) -> str:
        """`reader@<8 hex of the SHA-256 of rules, model and tokenizer>/<word pieces>`."""
        files = (self.folder / name for name in ("model.onnx", "tokenizer.json"))
        return f"reader@{sha256_files(files, str(RULES))[:8]}/{self.encoder.max_length}"

    @cached_property
    def encoder(self) -> WindowEncoder:
        """The encoder of questions and passages."""
        return WindowEncoder.from_file(self.folder / "tokenizer.json")

    @cached_property
    def session(self) -> "InferenceSession":
        """The network; raises `RagError` if the file cannot be run."""
        return open_session(self.folder / "model.onnx", RagError, "; run `rag train` again")

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Read each passage, up to `threads` in parallel."""
        if not passages:
            return []
        _ = self.encoder, self.session  # load them before the threads start
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(lambda passage: self._one(question, passage), passages))

    def _one(self, question: str, passage: Passage) -> Reading:
        lines = [index for index, character in enumerate(passage.text) if character == "\n"]
        readings = [self._window(window, lines) for window in self.encoder.windows(question, passage)]
        best = max(readings, key=lambda reading: reading.relevance)
        if len(readings) == 1:
            return best
        offsets = tuple(chain.from_iterable(reading.offsets for reading in readings))
        keep = tuple(chain.from_iterable(reading.keep for reading in readings))
        return replace(best, offsets=offsets, keep=keep)

    def _window(self, window: Window, lines: Sequence[int]) -> Reading:
        """Read a window of a passage whose lines end at these characters."""
        import numpy as np

        inputs = {"ids": np.array([window.ids]), "types": np.array([window.types])}
        relevance, starts, ends, keep = self.session.run(["relevance", "starts", "ends", "keep"], inputs)
        logit = float(relevance[0])
        if not math.isfinite(logit):
            raise RagError(f"{self.folder}: the model's output is not a number; run `rag train` again")
        if not window.offsets:
            return Reading(logit, None, None, -math.inf)
        positions = [
            0,
            *range(window.first, window.first + len(window.offsets)),
        ]  # the first stands for no short answer
        start, end = (_log_softmax(side[0, positions].astype(np.float64)) for side in (starts, ends))
        sums = start[1:, None] + end[None, 1:]
        wide = np.arange(len(start) - 1)[None, :] - np.arange(len(start) - 1)[:, None]
        sums[(wide < 0) | (wide >= MAX_ANSWER)] = -np.inf
        spans = []
        line = np.searchsorted(lines, [begin for begin, _ in window.offsets])
        for number in sorted(set(line.tolist())):  # `np.unique` would load masked arrays
            (line_pieces,) = np.nonzero(line == number)
            first, last = line_pieces[0], line_pieces[-1] + 1
            row, column = divmod(int(np.argmax(sums[first:last, first:last])), last - first)
            cell = first + row, first + column
            spans.append(Span(window.offsets[cell[0]][0], window.offsets[cell[1]][1], float(sums[cell])))
        best = max(spans, key=lambda span: span.answer)
        return Reading(
            logit,
            best.start,
            best.end,
            best.answer,
            float(start[0] + end[0]),
            tuple(window.offsets),
            tuple((1 / (1 + np.exp(-keep[0, positions[1:]].astype(np.float64)))).tolist()),
            tuple(spans),
        )


@cache
def default_reader() -> Reader:
    """The reader that ships with rag, shared within the process so that its network is loaded once."""
    return Reader()


def _log_softmax(logits: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    differences = logits - logits.max()
    log_probabilities: NDArray[np.float64] = differences - np.log(np.exp(differences).sum())
    return log_probabilities
