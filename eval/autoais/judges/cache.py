"""Judgements on disk: no pair is judged twice, killed runs resume, and all metrics read the same verdicts."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from autoais.base.errors import FormatError, UserError
from autoais.base.io.journal import MAX_LINE_BYTES, AppendFile
from autoais.base.io.jsonl import dumps, parse_object
from autoais.base.types import Attribution, Judge, Judgement, Place, Span, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VERSION = 1
_HEADER = json.dumps({"autoais_cache": _VERSION}).encode() + b"\n"
_SNIFF = 1 << 20  # bytes within which the first valid line must occur
_RECENT = 1 << 16  # judgements kept in a dict before they are merged into the sorted arrays
_VERDICTS = frozenset(verdict.value for verdict in Verdict)
_AT_ONCE = 256  # pairs per call for judges without an attribute `at_once`


def pair_hash(attribution: Attribution) -> str:
    """Hex SHA-256 of question, claim and evidence texts, each preceded by its length in bytes (8 bytes, big-endian)."""
    digest = hashlib.sha256()
    for part in (attribution.question, attribution.claim, *attribution.evidence):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _key(judge: str, pair: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{judge}\0{pair}".encode("utf-8", "surrogatepass")).digest()[:8], "big")


class JudgementCache:
    """An append-only journal (jsonl) of judgements by any number of judges, with an index in memory.

    A judgement takes 16 bytes of memory (a sorted array of 8-byte keys and one of file offsets): 16 MB per million
    pairs, about 60 MB while the file is opened. A dict holds up to 65,536 recent ones (about 10 MB). The text stays on
    disk; a lookup reads the line and compares the full hash.

    Opening reads the whole file. An incomplete last line is removed; a damaged line elsewhere is skipped and stays in
    the file. `kept`, `cut` and `damaged` count the lines. Raises `UserError` if the file is not a judgement cache (it
    is left unchanged), is in use by another process, or cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np

        self.path = path
        self.kept = self.cut = self.damaged = 0
        self._recent: dict[int, int] = {}
        self._keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._offsets: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._journal = AppendFile(path)
        try:
            self._recover()
        except BaseException:  # release the lock whatever happened
            self._journal.close()
            raise

    def __enter__(self) -> "JudgementCache":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._keys) + len(self._recent)

    @property
    def nbytes(self) -> int:
        """Bytes of the sorted arrays: 16 per judgement."""
        return self._keys.nbytes + self._offsets.nbytes

    @property
    def note(self) -> str | None:
        """A one-line message if lines of the file were lost, else None."""
        losses = [f"{self.damaged:,} damaged lines skipped"] if self.damaged else []
        losses += ["an incomplete last line removed"] if self.cut else []
        return f"{self.path}: {self.kept:,} judgements kept, {', '.join(losses)}" if losses else None

    def get(self, judge: str, pair: str) -> Judgement | None:
        """The judge's latest judgement of the pair with that hash, or None."""
        for offset in self._line_offsets(_key(judge, pair)):
            entry = _parse(self._journal.line_at(offset))
            if entry is not None and entry[:2] == (judge, pair):
                return entry[2]
        return None

    def put(self, judge: str, judgements: Iterable[tuple[str, Judgement]]) -> None:
        """Append judgements by pair hash, all of them or none; they are in the file on return."""
        lines, offsets, end = [], [], self._journal.size
        for pair, judgement in judgements:
            line = dumps(_record(judge, pair, judgement)).encode() + b"\n"
            if len(line) <= MAX_LINE_BYTES:
                lines.append(line)
                offsets.append((_key(judge, pair), end))
                end += len(line)
        if not lines:
            return
        self._append(b"".join(lines))
        self._recent.update(offsets)
        if len(self._recent) >= _RECENT:
            self._merge(array("Q", self._recent.keys()), array("Q", self._recent.values()))
            self._recent.clear()

    def close(self) -> None:
        """Flush to disk and release the lock."""
        self._journal.close()

    def _recover(self) -> None:
        """Index the complete lines, and repair the end of the file."""
        keys, offsets = array("Q"), array("Q")
        position, is_valid, line = 0, False, b"\n"
        for line in self._journal.lines():
            if entry := _parse(line):
                keys.append(_key(*entry[:2]))
                offsets.append(position)
            elif not self._is_header(line):
                self.damaged += 1
                if not is_valid and position > _SNIFF:
                    raise self._not_a_cache()
                position += len(line)
                continue
            is_valid = True
            position += len(line)
        self.kept = len(keys)
        newborn = position == len(line) and _HEADER.startswith(line)  # killed while writing the first line
        if not is_valid and position and not newborn:
            raise self._not_a_cache()
        self._merge(keys, offsets)
        self._repair_end(line)

    def _repair_end(self, last: bytes) -> None:
        """Start a new file, or make an old one end with a complete line."""
        if not last.endswith(b"\n") and _parse(last) is None:
            self.damaged, self.cut = self.damaged - 1, 1
            self._journal.cut(self._journal.size - len(last))
        if self._journal.size == 0:
            self._append(_HEADER)
        elif self._journal.line_at(self._journal.size - 1):  # the last byte is no line end
            self._append(b"\n")

    def _is_header(self, line: bytes) -> bool:
        if not (line.startswith(b'{"autoais_cache":') and line.endswith(b"}\n")):
            return False
        if line != _HEADER:
            raise UserError(f"{self.path} is a judgement cache of another version of autoais; give another file")
        return True

    def _not_a_cache(self) -> UserError:
        return UserError(f"{self.path} is not a judgement cache; give a new file, or one written as a cache (--cache)")

    def _append(self, data: bytes) -> None:
        try:
            self._journal.append(data)
        except UserError as error:
            raise UserError(f"{error}; earlier judgements are kept") from error

    def _merge(self, keys: "array[int]", offsets: "array[int]") -> None:
        import numpy as np

        all_keys = np.concatenate([self._keys, np.frombuffer(keys, np.uint64)])
        order = np.argsort(all_keys, kind="stable")
        self._keys = all_keys[order]
        self._offsets = np.concatenate([self._offsets, np.frombuffer(offsets, np.uint64)])[order]

    def _line_offsets(self, key: int) -> list[int]:
        """Offsets of the lines with that key, newest first."""
        import numpy as np

        target = np.uint64(key)
        low, high = (int(np.searchsorted(self._keys, target, side)) for side in ("left", "right"))
        recent = [self._recent[key]] if key in self._recent else []
        return recent + sorted(map(int, self._offsets[low:high]), reverse=True)


class CachedJudge(Judge):
    """A judge that asks another judge only for pairs missing from the cache, and caches its judgements.

    Undecided judgements are never cached. Often a server failed or replied in prose, and the next run should ask again;
    where a judge is undecided by rule, asking again costs little. Judgements are written `batch` pairs at a time, so a
    killed run loses at most that many. The default is the judge's attribute `at_once`, or 256.
    """

    def __init__(self, judge: Judge, cache: JudgementCache, batch: int | None = None) -> None:
        self._judge, self._cache = judge, cache
        self._batch: int = getattr(judge, "at_once", _AT_ONCE) if batch is None else batch

    @property
    def name(self) -> str:
        """The name of the wrapped judge."""
        return self._judge.name

    def by_rule(self, attribution: Attribution) -> Judgement | None:
        """Return what the wrapped judge decides by rule."""
        return self._judge.by_rule(attribution)

    def of_answer(self, attribution: Attribution) -> Judgement | None:
        """Return what the wrapped judge says of a whole answer."""
        return self._judge.of_answer(attribution)

    def of_place(self, position: Place, attribution: Attribution) -> Judgement | None:
        """Return what the wrapped judge knows of the place; the cache has no places."""
        return self._judge.of_place(position, attribution)

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Look up each pair, ask the judge once for each distinct missing pair, and cache the decided ones."""
        name = self.name
        hashes = [pair_hash(attribution) for attribution in attributions]
        judgements: dict[str, Judgement] = {}
        missing: dict[str, Attribution] = {}
        for pair, attribution in zip(hashes, attributions, strict=True):
            if pair in judgements or pair in missing:
                continue
            if (judgement := self._cache.get(name, pair)) is None:
                missing[pair] = attribution
            else:
                judgements[pair] = judgement
        pending = iter(missing.items())
        while batch := dict(islice(pending, self._batch)):
            answers = list(zip(batch, self._judge.judge(list(batch.values())), strict=True))
            self._cache.put(
                name, ((pair, judgement) for pair, judgement in answers if judgement.verdict is not Verdict.UNDECIDED)
            )
            judgements.update(answers)
        return [judgements[pair] for pair in hashes]


def _record(judge: str, pair: str, judgement: Judgement) -> dict[str, Any]:
    return {
        "judge": judge,
        "pair": pair,
        "verdict": judgement.verdict.value,
        "probability": judgement.probability,
        "reason": judgement.reason,
        "evidence": [[span.evidence, span.start, span.end] for span in judgement.evidence],
        "unsupported": [list(part) for part in judgement.unsupported],
    }


def _parse(line: bytes) -> tuple[str, str, Judgement] | None:
    """Judge, pair hash and judgement of a line; None if the line is damaged or not a judgement."""
    try:
        row = parse_object(line, "")
    except FormatError:
        return None
    judge, pair, reason, probability = (row.get(name) for name in ("judge", "pair", "reason", "probability"))
    if not isinstance(judge, str) or not isinstance(pair, str) or not isinstance(reason, str | None):
        return None
    if isinstance(probability, bool) or not isinstance(probability, float | int | None):
        return None
    if probability is not None and not 0 <= probability <= 1:
        return None
    evidence, unsupported = _offsets(row.get("evidence"), 3), _offsets(row.get("unsupported"), 2)
    verdict = row.get("verdict")
    if not isinstance(verdict, str) or verdict not in _VERDICTS or evidence is None or unsupported is None:
        return None
    if reason == "partial support" and verdict == Verdict.NOT_ATTRIBUTABLE:  # written before the verdict existed
        verdict = Verdict.PARTIALLY_ATTRIBUTABLE
    judgement = Judgement(
        Verdict(verdict),
        None if probability is None else float(probability),
        reason,
        tuple(Span(*span) for span in evidence),
        tuple((start, end) for start, end in unsupported),
    )
    return judge, pair, judgement


def _offsets(value: object, length: int) -> list[list[int]] | None:
    """The value if it is a list of lists of `length` integers, else None."""
    if not isinstance(value, list):
        return None
    for item in value:
        if not isinstance(item, list) or len(item) != length or not all(type(number) is int for number in item):
            return None
    return value
