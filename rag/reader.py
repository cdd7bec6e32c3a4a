"""A reader: a small cross-encoder says how well a passage answers a question, and which words answer it."""

import hashlib
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from autoais.errors import first_line
from autoais.judges.encoding import CLAIM, CLAIM_ONLY, EVIDENCE, SHARED, readable, typed
from autoais.judges.inference import open_session
from autoais.judges.reading import matched, pieces, unmatched
from autoais.text.words import content_stems
from rag.errors import RagError
from rag.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

SHIPPED = Path(__file__).parent / "data" / "reader"
RULES = 1  # counts the changes of what is read, in here and in the modules it reads with
MAX_LENGTH = 224  # word pieces of question, headings and text together
MAX_QUESTION, MAX_HEADINGS = 64, 32
LONGEST_ANSWER = 16  # word pieces of an answer span


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a passage as the network takes it: `[CLS] question [SEP] headings [SEP] text [SEP]`.

    `types` say what both sides share (0 question, 1 content word of it that the passage lacks, 2 passage, 3 content
    word of the passage that the question has); `offsets` are the characters of the passage's text that each word
    piece from number `first` on stands for.
    """

    ids: list[int]
    types: list[int]
    first: int
    offsets: list[tuple[int, int]]


class Encoder:
    """BERT's tokenizer and the layout above, the same in training and in reading."""

    def __init__(self, tokenizer: "Tokenizer", max_length: int = MAX_LENGTH) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._cls, self._sep = (self._special(mark) for mark in ("[CLS]", "[SEP]"))
        self.max_length = max_length

    @classmethod
    def from_file(cls, path: Path, max_length: int = MAX_LENGTH) -> "Encoder":
        """From a `tokenizer.json`; `RagError` where it is none."""
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise RagError(f"{path}: not a tokenizer ({first_line(error)})") from error
        return cls(tokenizer, max_length)

    def _special(self, mark: str) -> int:
        number: int | None = self._tokenizer.token_to_id(mark)
        if number is None:
            raise RagError(f"the reader's tokenizer has no {mark}; it is not BERT's")
        return number

    def windows(self, question: str, passage: Passage) -> list[Window]:
        """The passage in as few windows as hold it whole, cut between sentences where that can be."""
        question, headings, text = readable(question), readable(passage.headings), readable(passage.text)
        asked = frozenset(content_stems(question))
        there = frozenset(content_stems(headings)) | frozenset(content_stems(text))
        left = self._side(question, MAX_QUESTION, unmatched(question, there), CLAIM, CLAIM_ONLY)
        above = self._side(headings, MAX_HEADINGS, matched(headings, asked), EVIDENCE, SHARED)
        ids, types, offsets = self._side(text, None, matched(text, asked), EVIDENCE, SHARED)
        before = [self._cls, *left[0], self._sep, *above[0], self._sep]
        before_types = [CLAIM, *left[1], CLAIM, *above[1], EVIDENCE]
        room = self.max_length - len(before) - 1
        found = []
        for start, end in _cut(text, offsets, room):
            found.append(
                Window(
                    [*before, *ids[start:end], self._sep],
                    [*before_types, *types[start:end], EVIDENCE],
                    len(before),
                    offsets[start:end],
                )
            )
        return found

    def _side(
        self, text: str, most: int | None, words: Sequence[tuple[int, int]], plain: int, marked: int
    ) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        offsets = encoded.offsets[:most]
        return encoded.ids[:most], typed(offsets, words, plain, marked), offsets


def _cut(text: str, offsets: Sequence[tuple[int, int]], room: int) -> list[tuple[int, int]]:
    """Stretches of at most `room` word pieces, from sentence to sentence; one empty stretch for an empty text."""
    if len(offsets) <= room:
        return [(0, len(offsets))]
    begins = {start for start, _ in pieces(text)}
    opening = [i for i, (start, _) in enumerate(offsets) if start in begins]
    cuts, start = [], 0
    while len(offsets) - start > room:
        end = max((i for i in opening if start < i <= start + room), default=start + room)
        cuts.append((start, end))
        start = end
    return [*cuts, (start, len(offsets))]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader makes of a passage.

    `relevance`: logit that it answers the question. `start`, `end`: the characters of its text that answer best, None
    where the text is empty; `answer`: their log-probability among all spans of the passage.
    """

    relevance: float
    start: int | None
    end: int | None
    answer: float


class Reader:
    """Reads each passage by itself in windows of up to 224 word pieces, its best window speaking for it.

    Nothing is padded, so no batch and no order changes a result. `model` is a folder made by `rag train`;
    without it the one that ships is read.
    """

    def __init__(self, model: str | Path | None = None, *, threads: int | None = None) -> None:
        self.folder = SHIPPED if model is None else Path(model)
        self.threads = threads or os.cpu_count() or 1
        for name in ("model.onnx", "tokenizer.json"):
            if not (self.folder / name).is_file():
                raise RagError(f"{self.folder}: {name} is missing; the folder is no reader of `rag train`")

    @cached_property
    def name(self) -> str:
        """`reader@<8 hex of the SHA-256 of rules, model and tokenizer>/<word pieces>`."""
        digest = hashlib.sha256(str(RULES).encode())
        for file in ("model.onnx", "tokenizer.json"):
            digest.update((self.folder / file).read_bytes())
        return f"reader@{digest.hexdigest()[:8]}/{self.encoder.max_length}"

    @cached_property
    def encoder(self) -> Encoder:
        """How pairs are read."""
        return Encoder.from_file(self.folder / "tokenizer.json")

    @cached_property
    def session(self) -> "InferenceSession":
        """The network; `RagError` where the file is none that runs."""
        return open_session(self.folder / "model.onnx", RagError, "; run `rag train` again")

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Read each passage, `threads` beside one another."""
        if not passages:
            return []
        _ = self.encoder, self.session  # loaded once, before threads do
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(lambda passage: self._one(question, passage), passages))

    def _one(self, question: str, passage: Passage) -> Reading:
        found = [self._window(window) for window in self.encoder.windows(question, passage)]
        return max(found, key=lambda reading: reading.relevance)

    def _window(self, window: Window) -> Reading:
        import numpy as np

        inputs = {"ids": np.array([window.ids]), "types": np.array([window.types])}
        relevance, starts, ends = self.session.run(["relevance", "starts", "ends"], inputs)
        logit = float(relevance[0])
        if not math.isfinite(logit):
            raise RagError(f"{self.folder}: the model's output is not a number; run `rag train` again")
        inside = slice(window.first, window.first + len(window.offsets))
        if not window.offsets:
            return Reading(logit, None, None, -math.inf)
        start, end = (_log_softmax(side[0, inside].astype(np.float64)) for side in (starts, ends))
        sums = start[:, None] + end[None, :]
        wide = np.arange(len(start))[None, :] - np.arange(len(start))[:, None]
        sums[(wide < 0) | (wide >= LONGEST_ANSWER)] = -np.inf
        first, last = divmod(int(np.argmax(sums)), len(start))
        return Reading(logit, window.offsets[first][0], window.offsets[last][1], float(sums[first, last]))


@cache
def shipped() -> Reader:
    """The reader that ships, one for all parts of a process that need it: its network is loaded once."""
    return Reader()


def _log_softmax(logits: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    shifted = logits - logits.max()
    found: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return found
