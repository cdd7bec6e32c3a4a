"""A real server that is killed while people press: no label is lost or doubled. scripts/bench/annotate.py is larger."""

from pathlib import Path

import pytest

from scripts.bench.annotate import measure


@pytest.mark.slow
def test_a_server_that_is_killed_loses_and_doubles_nothing(database: str, tmp_path: Path) -> None:
    found = measure(tmp_path, database=database, annotators=6, labels=120, kills=1, think=0.02)
    assert found["errors"] == []
    assert (found["lost"], found["doubled"], found["items_with_five"]) == (0, 0, found["items"])
    assert found["acknowledged"] == found["rows"] == found["exported"] == found["labels"] == 120
    assert len(found["restart_s"]) == 1
