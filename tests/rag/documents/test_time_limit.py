"""A file that takes too long ends with one line, in any thread, and the next one is read."""

import gc
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import rag.documents as documents
from rag.base.errors import FormatError
from rag.base.types import DOCUMENTS
from rag.documents import read_document
from rag.documents.corpus import Corpus
from rag.documents.time_limit import limit_time


def forever() -> None:
    while True:
        with suppress(Exception):  # as parsers do
            sum(range(100))


def test_work_is_ended_in_any_thread() -> None:
    found: list[str] = []

    def work() -> None:
        try:
            limit_time(forever, 0.1, FormatError("late"))
        except FormatError as error:
            found.append(str(error))

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert found == ["late", "late"]


def test_each_limit_ends_its_own_work() -> None:
    found: list[str] = []
    begun = threading.Event()

    def work(name: str, seconds: float) -> None:
        begun.set()
        try:
            limit_time(forever, seconds, FormatError(name))
        except FormatError as error:
            found.append(str(error))

    def short_in_long() -> str:
        work("inside", 0.1)
        return "outside"

    thread = threading.Thread(target=work, args=("beside", 0.3))
    thread.start()
    assert begun.wait(10)
    assert limit_time(short_in_long, 60, FormatError("late")) == "outside"  # goes on after the one inside
    thread.join(10)
    assert sorted(found) == ["beside", "inside"]
    with pytest.raises(FormatError, match="outside"):
        limit_time(lambda: limit_time(forever, 60, FormatError("inside")), 0.1, FormatError("outside"))


def test_nothing_watches_when_nothing_runs() -> None:
    before = threading.active_count()
    assert limit_time(lambda: threading.active_count() - before, 5, FormatError("late")) <= 1
    end = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_an_exception_lost_in_a_callback_of_the_collector_is_raised_again() -> None:
    slow = [True, True]  # at the beginning and at the end of a collection

    def callback(phase: str, info: dict[str, int]) -> None:
        end = time.thread_time() + (0.3 if slow and slow.pop() else 0)
        while time.thread_time() < end:
            pass

    def work() -> None:
        gc.collect()
        forever()

    gc.callbacks.append(callback)
    try:
        with pytest.raises(FormatError, match="late"):  # an exception that Python prints is an error in tests
            limit_time(work, 0.1, FormatError("late"))
    finally:
        gc.callbacks.remove(callback)


def test_what_is_done_in_time_is_left_alone() -> None:
    assert [limit_time(lambda: 7, 5, FormatError("late")) for _ in range(200)] == [7] * 200
    with pytest.raises(ZeroDivisionError):
        limit_time(lambda: 1 // 0, 5, FormatError("late"))
    for wait in range(500):  # the work and the timer end at the same time
        with suppress(FormatError):
            limit_time(lambda: sum(range(20_000)), 0.0002 + wait / 1e6, FormatError("late"))
        sum(range(1000))
    assert limit_time(lambda: time.sleep(0.3), 0.05, FormatError("late")) is None  # as while a process is stopped


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.rst", "*a **b `c " * 20_000), ("a.md", "".join("`" * n + " a " for n in range(1, 4000)))],
)
def test_a_file_that_takes_too_long_is_skipped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str
) -> None:
    monkeypatch.setattr(documents, "SECONDS", 0.3)
    (tmp_path / name).write_text(content)
    (tmp_path / "b.md").write_text("# River\n\nThe river is 40 miles long and runs through three towns to the sea.\n")
    with pytest.raises(FormatError, match=rf"{name}: takes longer than 0\.3 seconds to read"):
        read_document(tmp_path / name, name)
    corpus = Corpus([tmp_path], DOCUMENTS)
    assert [passage.id for _, passage in corpus.read()] == ["b.md#1"]
    assert corpus.report.bad == 1
