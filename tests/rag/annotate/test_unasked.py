"""Items about which a scheme asks nothing: they are in no queue."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("itsdangerous")
pytest.importorskip("sqlalchemy")

from rag.annotate import create_study
from rag.annotate.settings import Settings
from rag.annotate.types import Entry
from rag.base.errors import FormatError, UserError
from tests.rag.annotate.made import given, press
from tests.rag.annotate.web_study import ANSWER


def test_an_item_without_sources_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    uncited = [replace(ANSWER, id=f"n{n}", answer=f"n{n}", sources=()) for n in range(3)]
    settings = Settings(scheme="ais-direct", annotators=1)
    study = create_study(tmp_path / "study", items=[*uncited, ANSWER], settings=settings)
    assert (study.pools["study"], study.pools["unasked"]) == (1, 3)
    study.invite("ada")
    work = given(study, "ada")
    study.verdict("ada", work.item.id, Entry("attributable", "yes", press=press()))
    assert study.next("ada") is None
    study.export(tmp_path / "out")
    assert len((tmp_path / "out/items.jsonl").read_text("utf-8").splitlines()) == 4
    study.close()
    with pytest.raises(UserError, match="no item to judge"):
        create_study(tmp_path / "other", items=uncited, settings=settings)
    gold = [replace(uncited[0], id="g", expected={"attributable": "no"})]
    with pytest.raises(FormatError, match="no question is asked about it, as it has no sources"):
        create_study(tmp_path / "other", items=[ANSWER], gold=gold, settings=settings)
