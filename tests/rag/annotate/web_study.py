"""Small studies for the tests of the pages, of our own writing, and a client that works through them."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient

from rag.annotate import create_study
from rag.annotate.app import create_app
from rag.annotate.items import Cell, Item, Source, Table, Turn
from rag.annotate.settings import settings_of
from rag.annotate.study import Study
from rag.annotate.types import Role

BRIDGE = "The Aller bridge opened in 1931. It has three arches of brick. \U0001f600 A ferry crossed the river before."
FERRY = "Until 1931 a ferry crossed the river.\n\nIt ran four times a day. Cafe\u0301 Lund sold the tickets."

ANSWER = Item(
    "q1",
    "The bridge opened in 1931 and has three arches.",
    answer="q1",
    query="When did the Aller bridge open?",
    turns=(Turn("user", "Tell me about Aller."), Turn("system", "Aller is a town on a river.")),
    sources=(Source("p1", BRIDGE, "Aller bridge", "History"), Source("p:2", FERRY, "Ferries")),
    system="model-x",
)
SENTENCE = replace(
    ANSWER,
    id="q1#1",
    text="It opened in 1931.",
    sentence=1,
    before="The Aller bridge is a brick bridge.",
    after="A ferry ran before.",
)
CITATION = replace(SENTENCE, id="q1#1@p1", citation="p1", sources=ANSWER.sources[:1])
PASSAGE = replace(ANSWER, id="q1@p1", text="", passage="p1", sources=ANSWER.sources[:1])
SUMMARY = replace(ANSWER, id="s1", answer="s1", kind="summarization", query="", turns=())
ROWS = (("place", "runner", "seconds"), ("1", "Ida Brandt", "61"), ("2", "Eva Lund", "63"))
TABLE = Table(
    tuple(tuple(Cell(text, is_header=n == 0, is_highlighted=n == 1) for text in row) for n, row in enumerate(ROWS)),
    "Aller Games",
    "400 metres",
    "The games were held in June.",
)
CAPTION = Item("t1", "Ida Brandt won in 61 seconds.", answer="t1", kind="table", table=TABLE)


def several(item: Item, n: int) -> list[Item]:
    """n items as that one, of different questions; the first is the item itself."""
    more = (
        replace(item, id=f"{item.id}-{k}", answer=f"{item.answer}-{k}", query=item.query and f"{item.query} ({k})")
        for k in range(1, n)
    )
    return [item, *more]


class Clock:
    """The time of day, which tests set forward, and stop where a slow machine would change the result."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._stopped: float | None = None

    def __call__(self) -> float:
        return (time.time() if self._stopped is None else self._stopped) + self.ahead

    def stop(self) -> None:
        self._stopped = self._stopped or time.time()


def make_study(
    folder: Path, *items: Item, training: Sequence[Item] = (), gold: Sequence[Item] = (), **settings: object
) -> Study:
    """Return a new study of these items, or of three answers."""
    values: dict[str, object] = {"scheme": "ais", "annotators": 3, "title": "Bridges"} | settings
    given = items or several(ANSWER, 3)
    return create_study(
        folder / "study", items=given, training=training, gold=gold, settings=settings_of(values), clock=Clock()
    )


def ratings(study: Study, tmp_path: Path) -> list[dict[str, Any]]:
    study.export(tmp_path / "exported")
    return [json.loads(line) for line in (tmp_path / "exported/ratings.jsonl").read_text("utf-8").splitlines()]


class Person:
    """Somebody who uses the application by HTTP, as a browser without JavaScript does."""

    def __init__(
        self, study: Study, name: str = "ada", *, role: Role = "annotator", base_url: str | None = None
    ) -> None:
        self.study, self.name = study, name
        study.clock.stop()  # type: ignore[attr-defined]
        self.token = study.invite(name, role)
        self.client = TestClient(
            create_app(study, base_url), base_url=base_url or "http://localhost:8000", raise_server_exceptions=False
        )
        self.signed_in = self.client.get(f"/in/{self.token}")

    def page(self, path: str = "/") -> HTMLParser:
        return HTMLParser(self.client.get(path).text)

    def fields(self, form: str = "#press", path: str = "/") -> dict[str, str]:
        return fields(self.page(path), form)

    def send(  # (the answer is httpx's, by one name or another)
        self,
        action: str,
        values: Mapping[str, str | list[str]],
        *,
        after: float = 5,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401
        """Send a form, so many seconds after the page was loaded."""
        self.study.clock.ahead += after  # type: ignore[attr-defined]
        return self.client.post(action, data=values, headers=headers, follow_redirects=False)

    def press(self, value: str, **more: str | list[str]) -> Any:  # noqa: ANN401
        """Press a verdict about what the page asks now."""
        return self.send("/press", self.fields() | {"value": value} | more)


def fields(page: HTMLParser, form: str = "#press") -> dict[str, str]:
    """The hidden fields of a form."""
    found = page.css(f"{form} input[type=hidden]")
    return {str(one.attributes["name"]): one.attributes["value"] or "" for one in found}


def text_of(page: HTMLParser, css: str) -> str:
    """The text of the first element."""
    found = page.css_first(css)
    assert found is not None, css
    return str(found.text())
