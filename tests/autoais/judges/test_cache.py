import json
import os
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.errors import UserError
from autoais.base.types import Attribution, Judgement, Span, Verdict
from autoais.judges import open_judge
from autoais.judges.cache import CachedJudge, JudgementCache, pair_hash
from autoais.judges.lexical import LexicalJudge
from autoais.testing import check_judge
from tests.autoais.metrics.test_scoring import UNCITED, WRONG, YES, row, write
from tests.chat_server import run_chat_server
from tests.conftest import Command, one_line_error
from tests.judges import OneByOne

ROOT = Path(__file__).parents[3]
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 20


class Counting(OneByOne):
    """Attributable if the claim stands in the evidence, "?" undecided."""

    name = "counting@1"

    def of(self, one: Attribution) -> Judgement:
        if one.claim.startswith("?"):
            return Judgement(Verdict.UNDECIDED, None, "the server did not answer")
        found = [text.find(one.claim) for text in one.evidence]
        spans = tuple(Span(i, at, at + len(one.claim)) for i, at in enumerate(found) if at >= 0)
        verdict = Verdict.ATTRIBUTABLE if spans else Verdict.CONTRADICTORY
        return Judgement(verdict, 0.1 if spans else None, "counted", spans, ((0, 1),))


def pairs(n: int) -> list[Attribution]:
    return [Attribution(f"claim {i}", (f"text with claim {i}", "other"), "q") for i in range(n)]


@pytest.mark.parametrize("name", ["lexical", "minilm"])
def test_a_cached_judge_keeps_the_contract_and_says_the_same(name: str, tmp_path: Path) -> None:
    with JudgementCache(tmp_path / "c.jsonl") as cache:
        judge = CachedJudge(open_judge(name), cache)
        check_judge(judge)
        check_judge(judge)
        assert judge.name == open_judge(name).name


def test_what_was_judged_once_is_never_asked_again_and_comes_back_whole(tmp_path: Path) -> None:
    judge, asked = Counting(), [*pairs(5), Attribution("no\udcff such", ("x",)), *pairs(3)]
    with JudgementCache(tmp_path / "c.jsonl") as cache:
        first = CachedJudge(judge, cache, batch=2).judge(asked)
        assert judge.asked == asked[:6]
        assert CachedJudge(judge, cache).judge(asked) == first == Counting().judge(asked)
    with JudgementCache(tmp_path / "c.jsonl") as cache:
        assert (cache.kept, cache.note) == (6, None)
        assert CachedJudge(judge, cache).judge(asked[::-1]) == first[::-1]
        other = Counting()
        other.name = "counting@2"
        CachedJudge(other, cache).judge(asked[:2])
        assert len(other.asked) == 2
    assert len(judge.asked) == 6


def test_partial_support_is_kept_and_read_from_files_that_had_no_verdict_for_it(tmp_path: Path) -> None:
    partial = Judgement(Verdict.PARTIALLY_ATTRIBUTABLE, 0.3, "partial support")
    with JudgementCache(tmp_path / "c.jsonl") as cache:
        cache.put("j", [("a", partial), ("b", replace(partial, verdict=Verdict.NOT_ATTRIBUTABLE))])
        assert [cache.get("j", key) for key in "ab"] == [partial, partial]


def test_undecided_is_asked_again(tmp_path: Path) -> None:
    judge = Counting()
    with JudgementCache(tmp_path / "c.jsonl") as cache:
        for _ in range(2):
            (judgement,) = CachedJudge(judge, cache).judge([Attribution("?", ("x",))])
            assert judgement.reason == "the server did not answer"
    assert len(judge.asked) == 2


@given(st.lists(st.text(max_size=3), min_size=2, max_size=5), st.lists(st.text(max_size=3), min_size=2, max_size=5))
def test_different_pairs_have_different_hashes(a: list[str], b: list[str]) -> None:
    first, second = (Attribution(claim, tuple(evidence), question) for question, claim, *evidence in (a, b))
    assert (pair_hash(first) == pair_hash(second)) == (first == second)


@pytest.mark.parametrize("lost", [1, 2, 17, 400])
def test_a_cut_last_line_is_dropped_and_the_journal_goes_on(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "c.jsonl"
    with JudgementCache(path) as cache:
        CachedJudge(Counting(), cache).judge(pairs(5))
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    lines = whole[:-lost].splitlines()
    kept = sum(line in whole.splitlines() for line in lines) - 1
    judge = Counting()
    with JudgementCache(path) as cache:
        assert cache.kept == kept
        assert (cache.note is not None) == (lost > 1)  # a line that lacks only its line end is whole
        CachedJudge(judge, cache).judge(pairs(5))
    assert len(judge.asked) == 5 - kept
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_a_file_cut_in_half_keeps_every_whole_line_and_says_how_many(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with JudgementCache(path) as cache:
        CachedJudge(Counting(), cache).judge(pairs(100))
    half = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(half)
    with JudgementCache(path) as cache:
        assert cache.kept == half.count(b"\n") - 1
        assert cache.note == f"{path}: {cache.kept} judgements kept, an incomplete last line removed"


def test_damage_in_the_middle_is_skipped_counted_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with JudgementCache(path) as cache:
        CachedJudge(Counting(), cache).judge(pairs(6))
    header, *lines = path.read_bytes().splitlines(keepends=True)
    row = json.loads(lines[3])
    for number, name, value in (
        (3, "probability", 7),
        (4, "verdict", ["attributable"]),
        (5, "evidence", [[0, "1", 2]]),
    ):
        lines[number] = json.dumps(row | {name: value}).encode() + b"\n"
    damaged = header + lines[0] + b"\0" * 500 + b"\n" + b"\xff\xfe{]\n" + b"".join(lines[1:])
    path.write_bytes(damaged)
    judge = Counting()
    with JudgementCache(path) as cache:
        assert (cache.kept, cache.damaged, cache.cut) == (3, 5, 0)
        assert cache.note == f"{path}: 3 judgements kept, 5 damaged lines skipped"
        assert CachedJudge(judge, cache).judge(pairs(6)) == Counting().judge(pairs(6))
    assert judge.asked == pairs(6)[3:]
    assert path.read_bytes().startswith(damaged)


@pytest.mark.parametrize(
    "content",
    [PNG, b"\0" * 3_000_000, b'{"id": 1}\n' * 3, b"text\n", b'{"autoais_cache": 2}\n', b'{"autoais_cachet', b"\n"],
)
def test_another_file_is_refused_and_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=r"picture\.png is (not a judgement cache|a judgement cache of another version)"
    ):
        JudgementCache(path)
    assert path.read_bytes() == content


def test_a_file_killed_at_birth_is_begun_anew(tmp_path: Path) -> None:
    for cut in (0, 5, 20):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(b'{"autoais_cache": 1}\n'[:cut])
        with JudgementCache(path) as cache:
            CachedJudge(Counting(), cache).judge(pairs(1))
        with JudgementCache(path) as cache:
            assert (cache.kept, cache.note) == (1, None)


def test_a_long_line_without_end_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    JudgementCache(path).close()
    path.write_bytes(path.read_bytes() + b"x" * 2_500_000)
    with JudgementCache(path) as cache:
        CachedJudge(Counting(), cache).judge(pairs(2))
    with JudgementCache(path) as cache:
        assert cache.kept == 2


def test_a_folder_or_a_device_is_no_cache(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/full")):
        with pytest.raises(UserError, match="is not a regular file"):
            JudgementCache(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        JudgementCache(tmp_path / "file" / "c.jsonl")


def test_two_runs_cannot_share_a_file_at_once(tmp_path: Path, autoais: Command) -> None:
    path = write(tmp_path / "a.jsonl", row("1", YES))
    with JudgementCache(tmp_path / "c.jsonl"):
        one_line_error(autoais("score", path, "--cache", tmp_path / "c.jsonl"), "c.jsonl is in use by another run")
    assert autoais("score", path, "--cache", tmp_path / "c.jsonl").returncode == 0


def test_a_full_disk_is_one_line_and_the_journal_stays_readable(tmp_path: Path) -> None:
    path, judge = tmp_path / "c.jsonl", Counting()
    cache = JudgementCache(path)
    CachedJudge(judge, cache).judge(pairs(3))
    size = path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300, limits[1]))
    try:
        with pytest.raises(UserError, match=r"c\.jsonl: cannot be written: .*; earlier judgements are kept"):
            CachedJudge(judge, cache).judge(pairs(50))
        assert path.stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert CachedJudge(judge, cache).judge(pairs(50)) == Counting().judge(pairs(50))
    cache.close()
    with JudgementCache(path) as again:
        assert (again.kept, again.note) == (50, None)


SLOW = """
import sys, time
from pathlib import Path
from autoais.judges.cache import CachedJudge, JudgementCache
from tests.autoais.judges.test_cache import Counting, pairs

class Slow(Counting):
    def decide(self, attributions):
        time.sleep(0.01)
        return super().decide(attributions)

with JudgementCache(Path(sys.argv[1])) as cache:
    CachedJudge(Slow(), cache, batch=4).judge(pairs(4000))
"""


def test_a_killed_run_resumes_and_asks_for_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    process = subprocess.Popen([sys.executable, "-c", SLOW, path], env=environment)
    deadline = time.monotonic() + 60
    while (not path.exists() or path.stat().st_size < 10_000) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    stored = path.read_bytes().count(b"\n") - 1
    assert 0 < stored < 4000
    judge = Counting()
    with JudgementCache(path) as cache:
        assert CachedJudge(judge, cache).judge(pairs(4000)) == Counting().judge(pairs(4000))
    assert judge.asked == pairs(4000)[stored:]


@pytest.mark.slow
def test_a_killed_run_keeps_what_the_server_was_paid_for_and_the_next_asks_only_the_rest(
    tmp_path: Path, autoais: Command
) -> None:
    path, cache = tmp_path / "a.jsonl", tmp_path / "c.jsonl"
    write(path, *(row(str(n), (f"Sentence {n}.", ["p"])) for n in range(100)))
    options = ["--judge", "llm:tiny", "--judge-option", "prompt=support.v1", "--metrics", "none", "--cache"]
    arguments = ["score", *map(str, [path, *options, cache])]
    with run_chat_server() as server:
        base_url = server.script({"say": "Full support", "hang": 0.2})
        environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}", "OPENAI_BASE_URL": base_url}
        code = "from autoais.commands.main import main; main()"
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment)
        deadline = time.monotonic() + 60
        while (not cache.exists() or cache.read_bytes().count(b"\n") < 2) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.kill()
        process.wait(timeout=60)
        time.sleep(0.2)  # for what the server has still to read
        kept, paid = cache.read_bytes().count(b"\n") - 1, len(server.log(base_url))
        assert 0 < kept < 100
        assert paid - kept <= 32
        result = autoais(*arguments, OPENAI_BASE_URL=base_url)
        assert result.returncode == 0, result.stderr
        assert len(server.log(base_url)) - paid == 100 - kept
    assert cache.read_bytes().count(b"\n") - 1 == 100


class Sized(Counting):
    """Says how many pairs it takes at once, and remembers how many it was given."""

    def __init__(self, at_once: int | None) -> None:
        super().__init__()
        self.sizes: list[int] = []
        if at_once is not None:
            self.at_once = at_once

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        self.sizes.append(len(attributions))
        return super().decide(attributions)


@pytest.mark.parametrize(("at_once", "sizes"), [(None, [256, 44]), (100, [100, 100, 100])])
def test_a_judge_says_how_many_pairs_it_is_asked_for_at_once(
    tmp_path: Path, at_once: int | None, sizes: list[int]
) -> None:
    judge = Sized(at_once)
    with JudgementCache(tmp_path / "c.jsonl") as cache:
        CachedJudge(judge, cache).judge(pairs(300))
    assert judge.sizes == sizes


@pytest.mark.slow
def test_sixteen_bytes_a_judgement(tmp_path: Path) -> None:
    n, path = 100_000, tmp_path / "c.jsonl"
    judgement = Judgement(Verdict.ATTRIBUTABLE, 0.5)
    with JudgementCache(path) as cache:
        cache.put("j", ((f"{i:064x}", judgement) for i in range(n)))
        assert len(cache) == n
    with JudgementCache(path) as cache:
        assert (cache.nbytes, cache.kept) == (16 * n, n)
        assert cache.get("j", f"{n - 1:064x}") == judgement
        assert cache.get("j", f"{n:064x}") is None
        assert cache.get("k", f"{1:064x}") is None


def test_an_open_journal_holds_no_more_than_it_says(tmp_path: Path) -> None:
    n, path = 20_000, tmp_path / "c.jsonl"
    with JudgementCache(path) as cache:
        cache.put("j", ((f"{i:064x}", Judgement(Verdict.ATTRIBUTABLE, 0.5)) for i in range(n)))
    tracemalloc.start()
    with JudgementCache(path):
        held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    buffers = 200_000
    assert held < 16 * n + buffers
    assert peak < 60 * n + buffers


def test_equal_keys_of_different_pairs_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoais.judges.cache._key", lambda judge, pair: 7)
    monkeypatch.setattr("autoais.judges.cache._RECENT", 1)
    with JudgementCache(tmp_path / "c.jsonl") as cache:
        judge = CachedJudge(Counting(), cache, batch=1)
        assert judge.judge(pairs(4)) == judge.judge(pairs(4)) == Counting().judge(pairs(4))
        assert len(cache) == 4


def test_the_command_gives_the_same_report_from_the_cache(tmp_path: Path, autoais: Command) -> None:
    path = write(tmp_path / "a.jsonl", row("1", YES), row("2", WRONG, UNCITED), row("3", ("Warsaw.", ["p", "r"])))
    cache = tmp_path / "c.jsonl"

    def scored(*options: str | Path) -> dict[str, object]:
        result = autoais("score", path, "--json", "--judge", "lexical", *options)
        assert result.returncode == 0, result.stderr
        printed: dict[str, object] = json.loads(result.stdout)
        del printed["provenance"]
        return printed

    plain = scored()
    assert scored("--cache", cache) == plain
    written = cache.read_bytes()
    assert scored("--cache", cache) == plain
    assert cache.read_bytes() == written
    assert f'"judge": "{LexicalJudge().name}"' in written.decode()
    cache.write_bytes(written[:-5])
    result = autoais("score", path, "--cache", cache)
    assert result.returncode == 0
    assert "judgements kept, an incomplete last line removed" in result.stderr
    one_line_error(autoais("score", path, "--cache", path), "would be overwritten")
    cache.write_bytes(PNG)
    one_line_error(autoais("score", path, "--cache", cache), "is not a judgement cache")
