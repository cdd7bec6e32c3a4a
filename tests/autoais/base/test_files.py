"""Lines of files that unpack to far more than their size, or hold one endless line."""

import gzip
import resource
import time
from pathlib import Path

import pytest
import zstandard

from autoais.base.errors import FormatError
from autoais.base.io import files
from autoais.base.io.files import lines


@pytest.mark.parametrize("content", [b"\n", b"x", b'{"a": 1}\n'])
def test_a_bomb_is_refused_soon(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bomb.jsonl.zst"
    packer = zstandard.ZstdCompressor(level=19)
    block = content * ((64 << 20) // len(content))
    path.write_bytes(b"".join(packer.compress(block) for _ in range(8)))  # 512 MiB in a few kilobytes
    assert path.stat().st_size < 200_000
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with pytest.raises(FormatError, match=r"bomb\.jsonl\.zst:\d+: unpacks to more than 1,000 times its size"):
        for _ in lines(path):
            pass
    assert time.perf_counter() - started < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_what_shrinks_much_but_is_small_is_read(tmp_path: Path) -> None:
    whole = b"the same line again\n" * 100_000
    for name, data in (("a.gz", gzip.compress(whole)), ("a.zst", zstandard.ZstdCompressor().compress(whole))):
        (tmp_path / name).write_bytes(data)
        assert b"".join(lines(tmp_path / name)) == whole


@pytest.mark.parametrize("packed", [False, True])
def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    monkeypatch.setattr(files, "_MAX_LINE_BYTES", 1 << 20)
    data = b"first\n" + b"x" * (3 << 20)
    path = tmp_path / "long.jsonl"
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(FormatError, match="2: a line of more than 1 MiB"):
        list(lines(path))
