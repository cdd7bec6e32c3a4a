"""Databases that are locked, gone, full or restarted: one line, nothing half-written, and work goes on afterwards."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from rag.annotate.create import create_study, open_study
from rag.annotate.settings import Settings
from rag.annotate.store import presses
from rag.annotate.study import Study
from rag.annotate.types import Entry
from rag.base.errors import StudyError, UserError
from scripts.postgresql import Server, postgresql_programs, running_postgresql
from tests.rag.annotate.conftest import MakeStudy
from tests.rag.annotate.made import answer, finish, given, make_items


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    create_study(tmp_path / "study", items=make_items(6)).close()
    opened = open_study(tmp_path / "study", busy_seconds=0.2)
    opened.invite("ada")
    yield opened
    opened.close()


def recorded(study: Study) -> int:
    with study.database.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(presses)).scalar_one()


def refused(study: Study, *words: str) -> None:
    """A press fails with one line, whatever the person does."""
    with pytest.raises(StudyError) as caught:
        finish(study, "ada")
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in ("nothing was recorded", *words))


def test_a_locked_database(study: Study) -> None:
    work = given(study, "ada")
    other = sqlite3.connect(study.folder / "study.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    refused(study, "locked")
    other.execute("ROLLBACK")
    other.close()
    answer(study, "ada", work, "no")  # the same press as on the page that failed
    assert recorded(study) == 1


def test_a_database_that_is_gone_is_not_made_anew(study: Study) -> None:
    finish(study, "ada", "no")
    path, away = study.folder / "study.db", study.folder / "away.db"
    path.rename(away)
    refused(study, "gone")
    with pytest.raises(StudyError, match="gone"):
        study.ready()
    assert not path.exists()
    with pytest.raises(StudyError, match="unable to open"):
        open_study(study.folder)
    away.rename(path)
    study.ready()
    finish(study, "ada", "no")
    assert recorded(study) == 2


def test_a_database_that_was_exchanged_is_the_one_that_is_written(study: Study, tmp_path: Path) -> None:
    finish(study, "ada", "no")
    copy = tmp_path / "backup.db"
    with sqlite3.connect(study.folder / "study.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
    finish(study, "ada", "no")
    copy.replace(study.folder / "study.db")
    for name in ("study.db-wal", "study.db-shm"):
        (study.folder / name).unlink(missing_ok=True)
    assert recorded(study) == 1


def test_a_full_disk(study: Study) -> None:
    with study.database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()

    def fill_disk(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    engine = study.database.engine
    event.listen(engine, "connect", fill_disk)
    study.close()  # so that each connection is a new one
    done = 0

    def fill() -> None:
        nonlocal done
        while (work := study.next("ada")) is not None:
            study.verdict("ada", work.item.id, Entry(work.question.name, "yes", press=work.press, reason="x" * 5000))
            done += 1

    with pytest.raises(StudyError) as caught:
        fill()
    assert "database or disk is full; nothing was recorded" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert recorded(study) == done
    event.remove(engine, "connect", fill_disk)
    study.close()
    assert finish(study, "ada") is not None
    assert recorded(study) > done


def test_a_broken_database(study: Study) -> None:
    study.close()
    (study.folder / "study.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(StudyError, match="not a database"):
        study.ready()
    with pytest.raises(StudyError, match="not a database"):
        open_study(study.folder)


def test_an_empty_database_holds_no_study(study: Study) -> None:
    study.close()
    (study.folder / "study.db").write_bytes(b"")
    with pytest.raises(StudyError, match="holds no study"):
        open_study(study.folder)


def test_a_folder_without_a_study(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no study here"):
        open_study(tmp_path)


def test_a_study_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    items = [*make_items(2), *make_items(1)]
    with pytest.raises(UserError, match="also one of study"):
        create_study(tmp_path / "study", items=items)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "file").touch()
    with pytest.raises(UserError, match="not an empty folder"):
        create_study(tmp_path / "study", items=make_items(1))


_KILLED = """
import os, signal, sys
from pathlib import Path
from rag.annotate.create import create_study
from rag.annotate.settings import Settings
from tests.rag.annotate.made import given, make_items

rename = Path.rename
def killed(self, target):
    if sys.argv[3] == "after":
        rename(self, target)
    os.kill(os.getpid(), signal.SIGKILL)

Path.rename = killed
create_study(sys.argv[1], items=make_items(6), settings=Settings(database=sys.argv[2]))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_study_whose_making_was_killed_is_made_again_or_is_whole(database: str, tmp_path: Path, when: str) -> None:
    folder = tmp_path / "study"
    done = subprocess.run([sys.executable, "-c", _KILLED, folder, database, when], env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert folder.exists() == (when == "after")
    settings = Settings(database=database)
    study = create_study(folder, items=make_items(6), settings=settings) if when == "before" else open_study(folder)
    study.invite("ada")
    assert finish(study, "ada", "no")
    assert recorded(study) == 1
    study.close()
    if database:
        with pytest.raises(UserError, match="holds a study already"):
            create_study(tmp_path / "again", items=make_items(1), settings=settings)


def test_a_folder_does_not_open_the_study_of_another_one(database: str, tmp_path: Path) -> None:
    if not database:
        pytest.skip("a file in the folder is the folder's own")
    settings = Settings(database=database)
    with pytest.MonkeyPatch.context() as patch:  # two at once make a study in one database
        patch.setattr("rag.annotate.create.open_study", lambda *_, **__: None)
        create_study(tmp_path / "one", items=make_items(6), settings=settings)
        create_study(tmp_path / "other", items=make_items(3), settings=settings)
    with pytest.raises(StudyError, match="holds another study"):
        open_study(tmp_path / "one")
    study = open_study(tmp_path / "other")
    assert study.pools == {"study": 3}
    study.close()


def test_people_at_once_take_turns(make_study: MakeStudy) -> None:
    study = make_study(8, annotators=3)
    people = [f"p{number}" for number in range(6)]
    for person in people:
        study.invite(person)
    seen: dict[str, list[str]] = {person: [] for person in people}

    def work(person: str) -> None:
        while (text := finish(study, person, "no")) is not None:
            seen[person].append(text)

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, seen.values())) == recorded(study) == 24
    assert all(len(set(texts)) == len(texts) for texts in seen.values())
    assert study.progress().items == {3: 8}


@pytest.mark.slow
def test_a_server_that_stops_and_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="needs the extra postgresql")
    if postgresql_programs() is None:
        pytest.skip("no PostgreSQL server here: apt-get install postgresql")
    with running_postgresql() as server:
        restart(server, tmp_path)


def restart(server: Server, tmp_path: Path) -> None:
    settings = Settings(database=server.url())
    study = create_study(tmp_path / "study", items=make_items(6), settings=settings)
    study.invite("ada")
    finish(study, "ada", "no")
    work = given(study, "ada")
    server.stop("immediate")  # as if the power went
    refused(study)
    server.start()
    answer(study, "ada", work, "no")
    assert recorded(study) == 2
    study.close()


def test_the_password_of_a_database_is_in_no_message(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="needs the extra postgresql")
    settings = Settings(database=f"postgresql://ann:hush@/study?host={tmp_path}")
    with pytest.raises(StudyError) as caught:
        create_study(tmp_path / "study", items=make_items(1), settings=settings)
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="should be a URL"):
        create_study(tmp_path / "study", items=make_items(1), settings=Settings(database="postgresql://h:port/x"))
    assert list(tmp_path.iterdir()) == []
