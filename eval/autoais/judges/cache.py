"""Judgements on disk, so that no pair is judged twice: a killed run resumes, every metric reads the same verdicts."""

import fcntl
import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from autoais.errors import FormatError, UserError
from autoais.io.jsonl import dumps, parse_object
from autoais.types import Attribution, Judge, Judgement, Span, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VERSION = 1
_HEADER = json.dumps({"autoais_cache": _VERSION}).encode() + b"\n"
_LONGEST = 1 << 20  # bytes of a line; a longer one is no judgement of ours
_SNIFF = 1 << 20  # bytes in which the first whole line of ours must stand
_RECENT = 1 << 16  # judgements kept in a dict before they join the sorted arrays
_VERDICTS = frozenset(verdict.value for verdict in Verdict)
_SYNC = 16  # appends between two waits for the disk
_AT_ONCE = 256  # pairs that a judge is asked for at a time where it says nothing of it


def pair_hash(attribution: Attribution) -> str:
    """Hex SHA-256 of question, claim and each evidence text, every part led by its length in bytes (8, big-endian)."""
    digest = hashlib.sha256()
    for part in (attribution.question, attribution.claim, *attribution.evidence):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _key(judge: str, pair: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{judge}\0{pair}".encode("utf-8", "surrogatepass")).digest()[:8], "big")


class JudgementCache:
    """An append-only journal (jsonl) of judgements, any number of judges, with an index in memory.

    In memory a judgement takes 16 bytes (a sorted array of 8-byte keys and one of file offsets): 16 MB a million
    pairs, about 60 MB while the file is opened, and a dict of at most 65,536 recent ones (about 10 MB). The text
    stays on disk; a hit reads its line back and compares the full hash.

    Opening reads the whole file. A last line that was cut off is taken away; a damaged line elsewhere is skipped and
    stays where it is; `kept`, `cut` and `damaged` count them. `UserError` where the file is something else (it is
    left as it was), is in use by another process, or cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np

        self.path = path
        self.kept = self.cut = self.damaged = 0
        self._appends = 0
        self._recent: dict[int, int] = {}
        self._keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._offsets: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._descriptor = self._claim()
        try:
            self._end = self._recover()
        except BaseException:  # whatever it was, the lock must not outlive it
            os.close(self._descriptor)
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
        """Bytes of the sorted arrays: 16 a judgement."""
        return self._keys.nbytes + self._offsets.nbytes

    @property
    def note(self) -> str | None:
        """One line for people where something of the file was lost, else None."""
        lost = [f"{self.damaged:,} damaged lines skipped"] if self.damaged else []
        lost += ["a last line that was cut off taken away"] if self.cut else []
        return f"{self.path}: {self.kept:,} judgements kept, {', '.join(lost)}" if lost else None

    def get(self, judge: str, pair: str) -> Judgement | None:
        """The last judgement of that judge on the pair with that hash, or None."""
        for offset in self._places(_key(judge, pair)):
            entry = _parse(self._line(offset))
            if entry is not None and entry[:2] == (judge, pair):
                return entry[2]
        return None

    def put(self, judge: str, judgements: Iterable[tuple[str, Judgement]]) -> None:
        """Append judgements by pair hash; they are in the file when this returns, whole or not at all."""
        lines, places, end = [], [], self._end
        for pair, judgement in judgements:
            line = dumps(_record(judge, pair, judgement)).encode() + b"\n"
            if len(line) <= _LONGEST:
                lines.append(line)
                places.append((_key(judge, pair), end))
                end += len(line)
        if not lines:
            return
        self._append(b"".join(lines))
        self._recent.update(places)
        if len(self._recent) >= _RECENT:
            self._merge(array("Q", self._recent.keys()), array("Q", self._recent.values()))
            self._recent.clear()

    def close(self) -> None:
        """Wait until everything is on disk and let others have the file."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def _claim(self) -> int:
        if self.path.exists() and not self.path.is_file():
            raise UserError(f"{self.path} is not a plain file; name a file for the cache of judgements")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise UserError(f"{self.path} is in use by another run; wait for it, or name another cache") from error
            raise UserError(f"{self.path}: cannot be locked: {error.strerror}") from error
        return descriptor

    def _recover(self) -> int:
        """Index the whole lines, mend the end, and return where the next line goes."""
        keys, offsets = array("Q"), array("Q")
        position, known, line = 0, False, b"\n"
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            while piece := file.readline(_LONGEST):
                line = piece
                if entry := _parse(line):
                    keys.append(_key(*entry[:2]))
                    offsets.append(position)
                elif not self._is_header(line):
                    self.damaged += 1
                    if not known and position > _SNIFF:
                        raise self._foreign()
                    position += len(line)
                    continue
                known = True
                position += len(line)
        self.kept = len(keys)
        newborn = position == len(line) and _HEADER.startswith(line)  # killed while it wrote its first line
        if not known and position and not newborn:
            raise self._foreign()
        self._merge(keys, offsets)
        return self._mend(position, line)

    def _mend(self, size: int, last: bytes) -> int:
        """Begin a new file, or make an old one end in a whole line; return its size."""
        self._end = size
        if not last.endswith(b"\n") and _parse(last) is None:
            self.damaged, self.cut = self.damaged - 1, 1
            self._end -= len(last)
            try:
                os.ftruncate(self._descriptor, self._end)
            except OSError as error:
                raise UserError(f"{self.path}: cannot be written: {error.strerror}") from error
        if self._end == 0:
            self._append(_HEADER)
        elif os.pread(self._descriptor, 1, self._end - 1) != b"\n":
            self._append(b"\n")
        return self._end

    def _is_header(self, line: bytes) -> bool:
        if not (line.startswith(b'{"autoais_cache":') and line.endswith(b"}\n")):
            return False
        if line != _HEADER:
            raise UserError(f"{self.path} is a cache of judgements by another version of autoais; name another file")
        return True

    def _foreign(self) -> UserError:
        return UserError(f"{self.path} is not a cache of judgements; name a new file, or one made by --cache")

    def _append(self, data: bytes) -> None:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left) :]
            self._appends += 1
            if self._appends % _SYNC == 0:
                os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # else the next opening takes the cut line away
                os.ftruncate(self._descriptor, self._end)
            raise UserError(
                f"{self.path}: cannot be written: {error.strerror}; what was judged before is kept"
            ) from error
        self._end += len(data)

    def _merge(self, keys: "array[int]", offsets: "array[int]") -> None:
        import numpy as np

        all_keys = np.concatenate([self._keys, np.frombuffer(keys, np.uint64)])
        order = np.argsort(all_keys, kind="stable")
        self._keys = all_keys[order]
        self._offsets = np.concatenate([self._offsets, np.frombuffer(offsets, np.uint64)])[order]

    def _places(self, key: int) -> list[int]:
        """Offsets of the lines with that key, the newest first."""
        import numpy as np

        wanted = np.uint64(key)
        low, high = (int(np.searchsorted(self._keys, wanted, side)) for side in ("left", "right"))
        recent = [self._recent[key]] if key in self._recent else []
        return recent + sorted(map(int, self._offsets[low:high]), reverse=True)

    def _line(self, offset: int) -> bytes:
        line = b""
        while b"\n" not in line and len(line) <= _LONGEST:
            try:
                piece = os.pread(self._descriptor, 1 << 14, offset + len(line))
            except OSError as error:
                raise UserError(f"{self.path}: cannot be read: {error.strerror}") from error
            if not piece:
                break
            line += piece
        return line.partition(b"\n")[0]


class CachedJudge:
    """A judge that asks another only for what the cache does not hold, and keeps what it says.

    Undecided is never kept: often a server failed or wrote prose, and the next run should ask again; where a
    judge cannot decide by rule, asking again costs little. Answers are kept `batch` pairs at a time, so that a kill
    loses at most that many: unless given what the judge says in an attribute `at_once`, else 256.
    """

    def __init__(self, judge: Judge, cache: JudgementCache, batch: int | None = None) -> None:
        self._judge, self._cache = judge, cache
        self._batch: int = getattr(judge, "at_once", _AT_ONCE) if batch is None else batch

    @property
    def name(self) -> str:
        """The name of the judge that is asked."""
        return self._judge.name

    def judge(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Look up, ask for the rest (each different pair once), keep what was decided."""
        name = self.name
        hashes = [pair_hash(attribution) for attribution in attributions]
        known: dict[str, Judgement] = {}
        missing: dict[str, Attribution] = {}
        for pair, attribution in zip(hashes, attributions, strict=True):
            if pair in known or pair in missing:
                continue
            if (judgement := self._cache.get(name, pair)) is None:
                missing[pair] = attribution
            else:
                known[pair] = judgement
        left = iter(missing.items())
        while batch := dict(islice(left, self._batch)):
            answers = list(zip(batch, self._judge.judge(list(batch.values())), strict=True))
            self._cache.put(name, ((pair, one) for pair, one in answers if one.verdict is not Verdict.UNDECIDED))
            known.update(answers)
        return [known[pair] for pair in hashes]


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
    """Judge, pair hash and judgement of a line; None where it is damaged or something else."""
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
    judgement = Judgement(
        Verdict(verdict),
        None if probability is None else float(probability),
        reason,
        tuple(Span(*span) for span in evidence),
        tuple((start, end) for start, end in unsupported),
    )
    return judge, pair, judgement


def _offsets(value: object, length: int) -> list[list[int]] | None:
    """A list of lists of that many whole numbers, or None."""
    if not isinstance(value, list):
        return None
    for item in value:
        if not isinstance(item, list) or len(item) != length or not all(type(number) is int for number in item):
            return None
    return value
