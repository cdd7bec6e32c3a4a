"""JSON lines of others, and files that are replaced as a whole."""

import os
from pathlib import Path

import pytest

from autoais.base.answers import read_answers
from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import check_outputs, parse_object, write_atomic
from autoais.base.io.schema import faults


def test_a_key_twice_is_named_however_many_there_are() -> None:
    keys = ",".join(f'"k{number}": 1' for number in range(100_000))
    with pytest.raises(FormatError, match="key 'k99999' occurs twice"):
        parse_object(f'{{{keys}, "k99999": 2}}'.encode(), "x")


def test_an_answer_of_many_numbers_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"id": "a", "question": "q", "answer": "%szz", "sentences": [{"text": "23"}]}\n' % ("123. " * 50_000)
    )
    with pytest.raises(FormatError, match="should be the row's sentences in order"):
        list(read_answers(path))


def test_unknown_fields_are_named_in_their_order() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    found = list(faults(dict.fromkeys("qwertyuiop", 1), schema))
    assert [fault.split("'")[1] for fault in found] == list("qwertyuiop")


def test_an_output_whose_folder_takes_no_files_is_refused_before_the_work() -> None:
    there = Path("/proc/self/comm")  # can be written in place, by the superuser too, but not replaced
    if not there.exists():
        pytest.skip("needs Linux's /proc")
    with pytest.raises(UserError, match="cannot be written"):
        check_outputs([], [there])
    check_outputs([], [], [there])


def test_a_new_file_has_the_rights_that_the_user_gives(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomic(tmp_path / "private", ["x"])
        os.umask(0o022)
        write_atomic(tmp_path / "open", ["x"])
        write_atomic(tmp_path / "private", ["y"])
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("private", "open")] == [0o600, 0o644]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["open", "private"]
