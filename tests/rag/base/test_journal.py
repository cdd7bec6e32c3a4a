from pathlib import Path

from rag.base.journal import Journal
from tests.faults import killed_while_writing

WRITER = """
from rag.base.journal import Journal
with Journal(path, {"k": 1}, resume=path.exists()) as journal:
    for number in range(len(journal.done), 99):
        journal.write({"id": str(number), "text": "An answer of some words."})
        print(number, flush=True)
"""
RENEWER = """
from rag.base.journal import Journal
with Journal(path, {"k": 1}, resume=True) as journal:
    for key in journal.done:
        journal.renew({"id": key, "text": "Another answer of some more words."})
        print(key, flush=True)
"""


def test_a_run_killed_in_the_middle_of_a_row_loses_none_that_it_reported(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    numbers = killed_while_writing(WRITER, path, at_size=1_000)
    assert 0 < len(numbers) < 99
    assert not path.read_bytes().endswith(b"\n")
    with Journal(path, {"k": 1}, resume=True) as journal:
        assert journal.done == [str(number) for number in numbers]
        journal.write({"id": "last"})
    keys = killed_while_writing(RENEWER, path, at_size=500)
    assert 0 < len(keys) < len(numbers)
    with Journal(path, {"k": 1}, resume=True) as journal:
        assert journal.done == [*map(str, numbers), "last"]
    assert path.read_text().count("Another answer") == len(keys)
