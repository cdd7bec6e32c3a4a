import re
from pathlib import Path

import pytest

from autoais.base.errors import UserError
from autoais.base.io.journal import MAX_LINE_BYTES, AppendFile
from autoais.base.models.chat import Request
from autoais.base.models.replies import ReplyCache
from autoais.base.types import Judgement, Verdict
from autoais.judges.cache import JudgementCache
from tests.faults import killed_while_writing

REQUESTS = [Request("tiny", (("user", f"Question {number}"),)) for number in range(99)]
JUDGEMENT = Judgement(Verdict.ATTRIBUTABLE, 0.5, "a reason of some words")


def test_what_is_appended_is_in_the_file_and_a_cut_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lines"
    with AppendFile(path) as file:
        file.append(b"one\ntwo\n")
        assert path.read_bytes() == b"one\ntwo\n"
        with pytest.raises(UserError, match="lines is in use by another run"):
            AppendFile(path)
    path.write_bytes(b"one\ntwo\nthr" + b"e" * 200_000)
    with AppendFile(path) as file:
        assert file.size == 200_011
        file.cut_incomplete_line()
        assert (file.size, file.line_at(4)) == (8, b"two")
        file.append(b"three\n")
        assert list(file.lines()) == [b"one\n", b"two\n", b"three\n"]
    path.write_bytes(b"no line end")
    with AppendFile(path) as file:
        file.cut_incomplete_line()
    assert path.read_bytes() == b""


def test_a_line_without_end_comes_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * (2 * MAX_LINE_BYTES + 5) + b"\nshort\n")
    with AppendFile(path) as file:
        assert [len(line) for line in file.lines()] == [MAX_LINE_BYTES, MAX_LINE_BYTES, 6, 6]


WRITERS = {
    "replies": """
from tests.autoais.base.test_journal import REQUESTS, ReplyCache
with ReplyCache(path) as cache:
    for number, request in enumerate(REQUESTS):
        cache.put("host", [(request, f"Reply {number}")])
        print(number, flush=True)
""",
    "judgements": """
from tests.autoais.base.test_journal import JUDGEMENT, JudgementCache
with JudgementCache(path) as cache:
    for number in range(99):
        cache.put("judge", [(f"pair {number}", JUDGEMENT)])
        print(number, flush=True)
""",
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_run_killed_in_the_middle_of_a_write_loses_nothing_that_it_reported(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "cache"
    reports = killed_while_writing(WRITERS[kind], path, at_size=1_000)
    assert 0 < len(reports) < 99
    assert path.stat().st_size == 1_000
    assert not path.read_bytes().endswith(b"\n")
    for _ in range(2):  # what the first opening repairs, the second reads
        if kind == "replies":
            with ReplyCache(path) as replies:
                assert [replies.get("host", request) for request in REQUESTS[: len(reports) + 1]] == [
                    *(f"Reply {number}" for number in reports),
                    None,
                ]
        else:
            with JudgementCache(path) as judgements:
                keys = [f"pair {number}" for number in (*reports, len(reports))]
                assert [judgements.get("judge", key) for key in keys] == [JUDGEMENT] * len(reports) + [None]
    assert path.read_bytes().endswith(b"\n")


def test_a_cache_of_replies_refuses_a_line_that_it_never_writes(tmp_path: Path) -> None:
    path = tmp_path / "replies"
    with ReplyCache(path) as cache:
        cache.put("host", [(REQUESTS[0], "x" * MAX_LINE_BYTES), (REQUESTS[1], "short")])
        assert cache.get("host", REQUESTS[0]) == "x" * MAX_LINE_BYTES
    with ReplyCache(path) as cache:
        assert [cache.get("host", request) for request in REQUESTS[:2]] == [None, "short"]
    content = path.read_bytes() + b"x" * (3 * MAX_LINE_BYTES)
    path.write_bytes(content)
    message = f"{path}:3: a line of more than 1,048,576 bytes is no reply; remove the line, or name another cache"
    with pytest.raises(UserError, match=re.escape(message)):
        ReplyCache(path)
    assert path.read_bytes() == content
