"""A language model that points, behind servers that do less than they should."""

import json
from typing import Any

import pytest

from rag.answer.generators.passage_reader import PassageReader
from rag.answer.generators.pointing import Point, Quote
from rag.answer.llms.openai import OpenAI
from rag.answer.llms.prompts import Prompt
from rag.base.types import Answer, Hit, Passage, Question
from tests.chat_server import ChatServer

QUESTION = Question("q", "When did the Aller bridge open?")
BRIDGE = Passage("b#1", "Aller", "The Aller bridge opened in 1931. It was repaired in 1987 by Ann Orr.", "Bridge")
FARES = Passage("f#1", "Fares", "\n".join(f"- a car of class {n} pays {n} euros" for n in range(1, 19)))
HITS = [Hit(BRIDGE, 3.0), Hit(FARES, 2.0)]
REPLY = json.dumps({"answerable": True, "sentences": [{"sources": [1], "sentence": "It opened in 1931."}]})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, server: ChatServer) -> Any:  # noqa: ANN401
    def open_at(*steps: dict[str, Any], way: type[Point | Quote] = Point, **options: Any) -> Point | Quote:  # noqa: ANN401
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        monkeypatch.setenv("OPENAI_BASE_URL", server.script(*steps))
        return way(OpenAI("tiny", **options), Prompt.read(f"{way.mode}.v1"), PassageReader(min_confidence=0))

    return open_at


def ask(generator: Point | Quote) -> Answer:
    """The answer, which is the same as a stream's."""
    answer = generator.generate(QUESTION, HITS)
    *partials, last = generator.stream(QUESTION, HITS)
    assert last == answer
    for partial in partials:
        assert answer.sentences[: len(partial.sentences)] == partial.sentences or answer.failed
    return answer


@pytest.mark.parametrize(
    ("forms", "structured"),
    [(["json_schema"], "json_schema"), (["json_object"], "json_object"), ([], "none"), (["text"], "none")],
)
def test_a_server_without_structured_replies_points_too(opened: Any, forms: list[str], structured: str) -> None:  # noqa: ANN401
    answer = ask(opened({"say": REPLY, "forms": forms}))
    assert str(answer) == "It opened in 1931 [1]."
    assert answer.citations[0].quote == "The Aller bridge opened in 1931."
    assert answer.trace["structured"] == structured
    assert "units_left_out" not in answer.trace


@pytest.mark.parametrize(
    ("says", "text"),
    [
        ("It opened in 1931 [1].", "It opened in 1931 [1]."),
        (f"<think>Is it {{[2]}}?</think>\n{REPLY}", "It opened in 1931 [1]."),
        (
            f"<|channel|>analysis<|message|>[2]<|end|><|start|>assistant<|channel|>final<|message|>{REPLY}",
            "It opened in 1931 [1].",
        ),
        (f"Sure!\n```json\n{REPLY}\n```", "It opened in 1931 [1]."),
        (REPLY.replace("[1]", '["1", 99]'), "It opened in 1931 [1]."),
        ("I am a teapot.", "I am a teapot."),
    ],
)
def test_a_server_that_ignores_the_schema_is_checked(opened: Any, says: str, text: str) -> None:  # noqa: ANN401
    answer = ask(opened({"say": says}))
    assert str(answer) == text
    assert answer.trace["structured"] == "json_schema"
    assert {citation.quote for citation in answer.citations} <= {"The Aller bridge opened in 1931."}


@pytest.mark.parametrize("way", [Point, Quote])
def test_a_server_that_refuses_the_size_of_the_schema_is_shown_fewer_units(opened: Any, way: Any) -> None:  # noqa: ANN401
    says = REPLY if way is Point else '{"answerable": true, "sources": [1], "short_answer": "1931"}'
    every = ask(opened({"say": says}, way=way)).trace["units"]
    assert every > 8
    answer = ask(opened({"say": says, "max_values": every // 2}, way=way))
    assert answer.citations[0].quote == "The Aller bridge opened in 1931."
    assert answer.trace["units"] == every // 2
    assert answer.trace["units_left_out"] == every - every // 2
    assert answer.trace["structured"] == "json_schema"


def test_a_server_that_refuses_every_schema_for_its_size_gets_none(opened: Any) -> None:  # noqa: ANN401
    answer = ask(opened({"say": REPLY, "max_values": 1}))
    assert str(answer) == "It opened in 1931 [1]."
    assert answer.trace["units"] > 8
    assert answer.trace["structured"] == "none"
    assert "units_left_out" not in answer.trace


def test_a_context_that_is_too_small_says_so(opened: Any) -> None:  # noqa: ANN401
    bad = {"status": 400, "body": '{"error": {"message": "the request exceeds the available context size (512)"}}'}
    answer = ask(opened(bad))
    assert answer.failed
    assert "available context size (512); try a --context below 4096" in (answer.reason or "")
    answer = ask(opened({"say": REPLY}, context=200))
    assert answer.failed
    assert "leave no room for a source in 200 tokens" in (answer.reason or "")
    few = ask(opened({"say": REPLY}, context=500))
    assert 0 < few.trace["units"] < 15


def test_a_stream_that_dies_in_the_middle_of_a_string_is_a_failed_answer(opened: Any) -> None:  # noqa: ANN401
    two = REPLY.replace("}]}", '}, {"sources": [2], "sentence": "Ann Orr repaired it."}]}')
    pieces = 2 + len(two[: two.index("repaired")].split())
    *partials, last = opened({"say": two, "pieces": pieces}).stream(QUESTION, HITS)
    assert [str(partial) for partial in partials][-1] == "It opened in 1931 [1]."
    assert (last.failed, last.sentences) == (True, ())
    assert "the stream ended before the reply did (in the middle of the reply)" in last.reason
    assert last.trace["raw"].endswith("Ann Orr repaired ")
    event = 'data: {"object": "error", "message": "CUDA out of memory", "code": 500}\n\n'
    *_, last = opened({"say": two, "pieces": pieces, "then": event}).stream(QUESTION, HITS)
    assert "CUDA out of memory (in the middle of the reply)" in last.reason
