"""Studies on both databases."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag.annotate.create import create_study
from rag.annotate.settings import Settings, settings_of
from rag.annotate.study import Study
from scripts.postgresql import Server, postgresql_programs, running_postgresql
from tests.rag.annotate.made import Clock, make_items

MakeStudy = Callable[..., Study]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="needs the extra postgresql")
    if postgresql_programs() is None:
        pytest.skip("no PostgreSQL server here: apt-get install postgresql")
    with running_postgresql(durable=False) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Returns the setting `database` of a new study; the one before must be closed."""
    if request.param == "sqlite":
        return lambda: ""
    server: Server = request.getfixturevalue("postgresql")
    return server.empty_database


@pytest.fixture
def database(new_database: Callable[[], str]) -> str:
    """The setting `database` of a new study."""
    return new_database()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_study(database: str, tmp_path: Path, clock: Clock) -> Iterator[MakeStudy]:
    """Makes a study of a few items, three people each, and invites `people`.

    Other keywords are settings, or options of `create_study`.
    """
    made: list[Study] = []

    def make(n: int = 6, *, people: Sequence[str] = (), **options: object) -> Study:
        names = Settings.__dataclass_fields__
        others: dict[str, Any] = {name: value for name, value in options.items() if name not in names}
        chosen = {name: value for name, value in options.items() if name in names}
        settings = settings_of({"annotators": 3, "gold_share": 0.0, "database": database} | chosen)
        if "answers" not in others:
            others.setdefault("items", make_items(n))
        study = create_study(tmp_path / f"study{len(made)}", settings=settings, clock=clock, **others)
        made.append(study)
        for person in people:
            study.invite(person)
        return study

    yield make
    for study in made:
        study.close()
