"""The API of OpenAI, asked by the official client over HTTP."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("openai", reason="needs the package openai")
pytest.importorskip("fastapi", reason="needs the extra serve")

import httpx2
import openai
from fastapi import FastAPI
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseOutputMessage, ResponseOutputText, ResponseTextDeltaEvent
from openai.types.responses.response_output_text import AnnotationURLCitation
from starlette.testclient import TestClient

from rag.base.errors import BusyError, IndexingError, ModelFailureError, QuestionError, TimeLimitError, UsageError
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question
from rag.index.index import Index
from rag.index.open import open_index
from rag.serve import Limits, Reply, Service
from rag.serve import openai as api
from scripts.browser import serving
from tests import chat_server
from tests.conftest import Command
from tests.rag.answer.export.answers import answers
from tests.rag.serve.served import make_index, running

QUESTION = "When did the Aller bridge open?"
UNKNOWN = "Who won the chess world championship of 1886?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("openai")
    make_index(folder)
    return folder / "town.index"


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of `rag serve`, in a process of its own."""
    with running(folder) as server:
        yield server.url


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        yield client


def user(text: str) -> Any:  # noqa: ANN401
    return [{"role": "user", "content": text}]


def same(one: Mapping[str, Any]) -> dict[str, Any]:
    """What two answers to one question have in common: all but ids and times."""
    return {name: value for name, value in one.items() if name not in ("id", "created", "created_at", "completed_at")}


def check_address(url: str, address: str) -> None:
    """The URL is that of a passage, with spans to mark."""
    parts = urlsplit(url)
    assert url.startswith(f"{address}/p/town/")
    assert "#" in unquote(parts.path.rpartition("/")[2])
    assert re.fullmatch(r"\d+-\d+(,\d+-\d+)*", parse_qs(parts.query)["mark"][0])


# --- chat completions ----------------------------------------------------------------------------------------------


def ask(client: openai.OpenAI, question: str = QUESTION, **options: Any) -> ChatCompletion:  # noqa: ANN401
    found = client.chat.completions.create(model="reader", messages=user(question), **options)
    assert isinstance(found, ChatCompletion)
    return found


def joined(chunks: list[ChatCompletionChunk]) -> dict[str, Any]:
    """The completion that the chunks of a stream make up."""
    deltas = [choice.delta.to_dict() for chunk in chunks for choice in chunk.choices]
    content = "".join(str(delta.get("content") or "") for delta in deltas)
    added = [dict(one) for delta in deltas for one in delta.get("annotations") or []]
    assert [one.pop("index") for one in added] == list(range(len(added)))
    told = [extra for chunk in chunks if (extra := chunk.to_dict().get("attributed_rag"))]
    finish = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    message = {"role": deltas[0]["role"], "content": content, "annotations": added}
    return {"message": message, "finish": finish, "told": told}


def test_a_completion_has_markers_and_an_annotation_for_each(client: openai.OpenAI, address: str) -> None:
    completion = ask(client)
    (choice,) = completion.choices
    text, annotations = choice.message.content or "", choice.message.annotations or []
    assert "1931" in text
    assert (choice.finish_reason, completion.object, completion.model) == ("stop", "chat.completion", "reader")
    assert annotations
    numbers: dict[str, int] = {}
    for one in annotations:
        place = one.url_citation
        number = numbers.setdefault(place.url.partition("?")[0], len(numbers) + 1)
        assert text[place.start_index : place.end_index] == f"[{number}]"
        assert place.title
        check_address(place.url, address)
    assert re.findall(r"\[\d+\]", text) == [
        text[a.url_citation.start_index : a.url_citation.end_index] for a in annotations
    ]


def test_the_address_of_an_annotation_opens_the_passage(client: openai.OpenAI) -> None:
    (first, *_) = ask(client).choices[0].message.annotations or []
    page = httpx2.get(first.url_citation.url, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert "1931" in page.text


def test_a_streamed_completion_is_the_same(client: openai.OpenAI) -> None:
    completion: Any = ask(client).to_dict()
    chunks = list(client.chat.completions.create(model="reader", messages=user(QUESTION), stream=True))
    found = joined(chunks)
    message = completion["choices"][0]["message"]
    assert found["message"] == {name: message[name] for name in ("role", "content", "annotations")}
    assert found["finish"] == ["stop"]
    assert found["told"] == [completion["attributed_rag"]]
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert all(chunk.usage is None for chunk in chunks)
    told = ""
    for chunk in chunks:  # annotations come with the text that they point into
        for delta in (choice.delta for choice in chunk.choices):
            before, told = len(told), told + (delta.content or "")
            for one in delta.to_dict().get("annotations") or []:
                assert before <= one["url_citation"]["start_index"] < one["url_citation"]["end_index"] <= len(told)


def test_the_clients_own_accumulator_reads_the_stream(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model="reader", messages=user(QUESTION)) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == ask(client).choices[0].message.content


def test_usage_ends_the_stream_if_asked_for(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    *_, last = client.chat.completions.create(model="reader", messages=user(QUESTION), **options)
    assert last.choices == []
    assert last.usage is not None
    details: Any = last.usage.to_dict()
    assert {name: details.pop(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
        "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0
    }  # fmt: skip
    assert details == {
        "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 0},
        "completion_tokens_details": {
            "accepted_prediction_tokens": 0, "audio_tokens": 0, "reasoning_tokens": 0, "rejected_prediction_tokens": 0
        },
    }  # fmt: skip
    assert ask(client).usage == last.usage


def test_links_are_for_programs_that_drop_annotations(client: openai.OpenAI, address: str) -> None:
    completion = ask(client, extra_body={"cite": "links"})
    text, annotations = completion.choices[0].message.content or "", completion.choices[0].message.annotations or []
    first = annotations[0].url_citation
    assert text[first.start_index : first.end_index] == f"[[1]]({first.url})"
    check_address(first.url, address)
    listed = re.search(r"\n\nSources:\n\n1\. \[[^\]]+\]\(([^)]+)\)", text)
    assert listed
    marks = [one.url_citation.url.partition("?mark=") for one in annotations]
    page = first.url.partition("?")[0]
    spans = {span for there, _, mark in marks if there == page for span in mark.split(",")}
    assert set(listed[1].partition("?mark=")[2].split(",")) == spans  # the list marks all that the answer cites
    options: dict[str, Any] = {"stream": True, "extra_body": {"cite": "links"}}
    found = joined(list(client.chat.completions.create(model="reader", messages=user(QUESTION), **options)))
    assert found["message"]["content"] == text


def test_footnotes_list_the_sources_with_their_quotes(client: openai.OpenAI, address: str) -> None:
    asked: dict[str, Any] = {"extra_body": {"cite": "footnotes"}}
    message = ask(client, **asked).choices[0].message
    text, annotations = message.content or "", message.annotations or []
    assert "1931[^1]." in text
    note = re.search(
        r"\n\n\[\^1\]: \[The Aller bridge, History\]\(([^)]+)\): “(The Aller bridge opened in 1931\.)", text
    )
    assert note
    assert note[1].startswith(f"{address}/p/town/")
    first = annotations[0].url_citation
    assert text[first.start_index : first.end_index] == "[^1]"
    found = joined(list(client.chat.completions.create(model="reader", messages=user(QUESTION), stream=True, **asked)))
    assert found["message"]["content"] == text
    response: Any = client.responses.create(model="reader", input=QUESTION, **asked)
    assert response.output_text == text
    messages: list[Any] = [*user(QUESTION), {"role": "assistant", "content": text}, *user("And when was it repaired?")]
    again = client.chat.completions.create(model="reader", messages=messages, **asked)
    assert "1987" in (again.choices[0].message.content or "")


def test_open_webui_gets_the_quotes_of_its_cards(client: openai.OpenAI, address: str) -> None:
    asked: dict[str, Any] = {"model": "reader", "messages": user(QUESTION), "extra_body": {"cite": "open-webui"}}
    whole: Any = client.chat.completions.create(**asked).to_dict()
    message, (card,) = whole["choices"][0]["message"], whole["sources"]
    assert message["annotations"] == []
    assert message["content"] == ask(client).choices[0].message.content
    assert card["source"]["name"] == card["metadata"][0]["name"] == "The Aller bridge, History"
    assert card["source"]["url"].startswith(f"{address}/p/town/")
    assert card["document"][0].startswith("The Aller bridge opened in 1931.")
    chunks: list[Any] = [chunk.to_dict() for chunk in client.chat.completions.create(**asked, stream=True)]
    assert [one["event"] for one in chunks if "event" in one] == [{"type": "source", "data": card}]
    assert not any("annotations" in choice["delta"] for one in chunks for choice in one["choices"])
    with client.chat.completions.stream(**asked) as stream:
        assert stream.get_final_completion().choices[0].message.content == message["content"]


def test_offsets_and_quotes_are_for_every_language(client: openai.OpenAI) -> None:
    (first, *_) = ask(client).choices[0].message.annotations or []
    told: Any = first.url_citation.to_dict()
    assert (told["start_utf16"], told["end_utf16"]) == (told["start_index"], told["end_index"])
    assert told["quotes"][0].startswith("The Aller bridge opened in 1931.")


def test_an_abstention_is_a_clear_text_and_a_field(client: openai.OpenAI) -> None:
    completion = ask(client, UNKNOWN)
    message = completion.choices[0].message
    assert (message.content or "").startswith("The sources do not answer this question")
    assert "The closest passage, “" in (message.content or "")
    assert message.annotations == []
    told: list[Any] = [one.to_dict()["attributed_rag"] for one in (completion, ask(client))]
    assert [one["abstained"] for one in told] == [True, False]


def test_earlier_turns_are_the_history(client: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "And when was it repaired?"}]
    messages: list[Any] = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": UNKNOWN},
        {"role": "assistant", "content": "The sources do not answer this question: nothing was found."},
        *user(QUESTION),
        {"role": "assistant", "content": [{"type": "text", "text": "The Aller bridge opened in 1931 [1]."}]},
        {"role": "user", "content": parts},
    ]
    completion = client.chat.completions.create(model="reader", messages=messages)
    told: Any = completion.to_dict()["attributed_rag"]
    assert re.fullmatch("when was (the )?aller.* repaired?.", told["question"], re.IGNORECASE)
    assert "1987" in (completion.choices[0].message.content or "")


FUNCTION = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def test_what_programs_always_send_is_ignored_and_named(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 5,
        "max_completion_tokens": 5,
        "stop": ["bridge"],
        "seed": 1,
        "n": 1,
        "user": "somebody",
        "presence_penalty": 1,
        "logit_bias": {"1": 1},
        "frequency_penalty": 0,
        "logprobs": False,
        "parallel_tool_calls": True,
        "tools": FUNCTION,
        "tool_choice": "none",
        "response_format": {"type": "text"},
        "stream_options": None,
        "metadata": {},
        "extra_body": {"chat_id": "x", "features": {"web_search": False}, "stop": None, "a\r\nSet-Cookie": "x"},
    }
    ignored = (
        "chat_id, features, frequency_penalty, logit_bias, max_completion_tokens, max_tokens, parallel_tool_calls, "
        "presence_penalty, seed, temperature, tools, top_p, user"
    )
    for stream in (False, True):
        raw = client.chat.completions.with_raw_response.create(
            model="reader", messages=user(QUESTION), stream=stream, **options
        )
        assert raw.headers["X-Ignored-Parameters"] == ignored
    assert ask(client, **options).choices[0].message.content == ask(client).choices[0].message.content
    plain = client.chat.completions.with_raw_response.create(
        model="reader", messages=user(QUESTION), n=1, tool_choice="auto", logprobs=False, stop=None
    )
    assert "X-Ignored-Parameters" not in plain.headers
    response = client.responses.with_raw_response.create(
        model="reader",
        input=QUESTION,
        instructions="Be brief.",
        tools=[{"type": "web_search"}],
        tool_choice="auto",
        store=True,
        include=["message.output_text.logprobs"],
        reasoning={"effort": "low"},
        text={"format": {"type": "text"}, "verbosity": "low"},
        truncation="auto",
        background=False,
    )
    assert response.headers["X-Ignored-Parameters"] == "include, instructions, reasoning, store, tools, truncation"


@pytest.mark.parametrize(
    ("options", "param", "says"),
    [
        ({"n": 2}, "n", "should be 1"),
        ({"tools": FUNCTION, "tool_choice": "required"}, "tool_choice", "calls no tools"),
        (
            {"tools": FUNCTION, "tool_choice": {"type": "function", "function": {"name": "f"}}},
            "tool_choice",
            "should be none or auto",
        ),
        ({"functions": [{"name": "f"}], "function_call": {"name": "f"}}, "function_call", "calls no tools"),
        ({"response_format": {"type": "json_object"}}, "response_format", "POST /v1/ask returns the answer"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
            "response_format",
            "JSON has no place for citations",
        ),
        ({"logprobs": True}, "logprobs", "no log probabilities"),
        ({"modalities": ["audio"]}, "modalities", "only text"),
        ({"extra_body": {"cite": "no"}}, "cite", "'footnotes' or 'open-webui'"),
        ({"messages": []}, "messages", "at least 1 item"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages", "no user message"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "y"}]}, "messages[0].role", "found 'tool'"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0]",
            "only text is supported, found 'image_url'",
        ),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "should be a string, found 5"),
        ({"messages": [{"role": "user", "content": " "}]}, None, "the question is empty"),
        ({"messages": [{"role": "user", "content": "?!"}]}, None, "only stop words or punctuation"),
        ({"messages": [{"role": "user", "content": "x" * 2001}]}, None, "2,001 characters"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_done_is_refused_by_name(
    client: openai.OpenAI, options: dict[str, Any], param: str | None, says: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError, match=re.escape(says)) as caught:
        client.chat.completions.create(**{"model": "reader", "messages": user(QUESTION), "stream": stream, **options})
    assert (caught.value.param, caught.value.type) == (param, "invalid_request_error")


def test_an_unknown_model_names_those_that_are_served(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-9'; there are: reader, reader@town") as caught:
        client.chat.completions.create(model="gpt-9", messages=user(QUESTION))
    assert caught.value.code == "model_not_found"


# --- responses -----------------------------------------------------------------------------------------------------


def output(response: Response) -> ResponseOutputText:
    (message,) = response.output
    assert isinstance(message, ResponseOutputMessage)
    (part,) = message.content
    assert isinstance(part, ResponseOutputText)
    return part


def test_a_response_has_markers_and_an_annotation_for_each(client: openai.OpenAI, address: str) -> None:
    response = client.responses.create(
        model="reader@town", input=QUESTION, metadata={"a": "b"}, instructions="Be brief."
    )
    part, chat = output(response), ask(client).choices[0].message
    assert response.output_text == part.text == chat.content
    nested = [one.to_dict() for one in chat.annotations or []]
    assert nested == [
        {"type": "url_citation", "url_citation": {k: v for k, v in one.to_dict().items() if k != "type"}}
        for one in part.annotations
    ]
    for one in part.annotations:
        assert isinstance(one, AnnotationURLCitation)
        check_address(one.url, address)
    assert (response.status, response.model, response.metadata) == ("completed", "reader@town", {"a": "b"})
    assert response.usage is not None
    Response.model_validate(response.to_dict(), strict=True)


def test_a_streamed_response_has_the_events_in_order_and_is_the_same(client: openai.OpenAI) -> None:
    events = list(client.responses.create(model="reader", input=QUESTION, stream=True))
    kinds = [event.type for event in events]
    between = kinds[4:-4]
    assert kinds[:4] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"
    ]  # fmt: skip
    assert list(dict.fromkeys(between)) == ["response.output_text.delta", "response.output_text.annotation.added"]
    assert between == sorted(between, reverse=True)
    assert kinds[-4:] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    first, last = events[0], events[-1]
    assert first.type == "response.created"
    assert last.type == "response.completed"
    assert (first.response.status, first.response.output, first.response.id) == ("in_progress", [], last.response.id)
    whole: dict[str, Any] = client.responses.create(model="reader", input=QUESTION).to_dict()
    streamed: dict[str, Any] = last.response.to_dict()
    for one in (whole, streamed):
        one["output"][0].pop("id")
    assert same(streamed) == same(whole)
    part = output(last.response)
    assert "".join(event.delta for event in events if isinstance(event, ResponseTextDeltaEvent)) == part.text
    added = [event for event in events if event.type == "response.output_text.annotation.added"]
    assert [event.annotation.to_dict() for event in added if event.annotation] == [
        one.to_dict() for one in part.annotations
    ]
    assert [event.annotation_index for event in added] == list(range(len(added)))
    for event in events:
        type(event).model_validate(event.to_dict(), strict=True)


def test_the_clients_own_accumulator_reads_the_response(client: openai.OpenAI) -> None:
    with client.responses.stream(model="reader", input=QUESTION) as stream:
        final = stream.get_final_response()
    assert final.output_text == ask(client).choices[0].message.content


def test_responses_take_items_and_earlier_turns(client: openai.OpenAI) -> None:
    before = client.responses.create(model="reader", input=QUESTION)
    items: Any = [
        {"role": "developer", "content": "Answer in French."},
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        before.output[0].to_dict(),
        {"type": "message", "role": "user", "content": "And when was it repaired?"},
    ]
    response = client.responses.create(model="reader", input=items)
    assert "1987" in response.output_text


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0]"),
        ({"input": 5}, "input"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_a_response_cannot_be_is_refused_by_name(
    client: openai.OpenAI, options: dict[str, Any], param: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**{"model": "reader", "input": QUESTION, "stream": stream, **options})
    assert caught.value.param == param


# --- models --------------------------------------------------------------------------------------------------------


def test_models_are_systems_and_systems_over_an_index(client: openai.OpenAI) -> None:
    models = list(client.models.list())
    assert [one.id for one in models] == ["reader", "reader@town"]
    assert all(isinstance(one, Model) and one.owned_by == "attributed-rag" for one in models)
    assert client.models.retrieve("reader@town") == models[1]
    with pytest.raises(openai.NotFoundError, match="no model 'nope'"):
        client.models.retrieve("nope")


def test_errors_of_keys_and_rates_are_those_of_openai(folder: Path) -> None:
    key = "a-key-of-more-than-20-characters"
    with running(folder, "--rate", "2", RAG_SERVER_KEY=key) as server:

        def client(key: str) -> openai.OpenAI:
            return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)

        with client("wrong") as wrong, pytest.raises(openai.AuthenticationError) as refused:
            wrong.models.list()
        told = refused.value
        assert (told.code, told.type, told.param) == ("invalid_api_key", "invalid_request_error", None)
        assert told.response.headers["WWW-Authenticate"] == "Bearer"
        with client(key) as right:
            right.models.list()
            ask(right)
            with pytest.raises(openai.RateLimitError) as limited:
                ask(right)
        assert (limited.value.code, limited.value.type, limited.value.param) == (
            "rate_limit_exceeded",
            "requests",
            None,
        )
        assert int(limited.value.response.headers["Retry-After"]) > 0


# --- without a process ---------------------------------------------------------------------------------------------


class Scripted(Service):
    """A service that answers when the test lets it, with what the test gives."""

    def __init__(self, index: Index, limits: Limits | None = None) -> None:
        super().__init__({"town": index}, limits=limits)
        self.asked, self.go = threading.Event(), threading.Event()
        self.so_far: Answer | None = None
        self.answers: list[Answer | Exception] = []

    def let_go_late(self) -> None:
        """Answer half a second after the question came, whatever else the machine does."""

        def work() -> None:
            self.asked.wait(10)
            time.sleep(0.5)
            self.go.set()

        threading.Thread(target=work, daemon=True).start()

    def stream(self, question: str, *names: str | None, **_: object) -> Iterator[Reply]:
        self.asked.set()
        if self.so_far is not None:
            yield Reply(self.so_far, "town", "reader", question, 0.1, self.passages("town"), is_complete=False)
        self.go.wait(10)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        yield Reply(found, "town", "reader", question, 0.1, self.passages("town"))


@pytest.fixture
def scripted(folder: Path) -> Iterator[Scripted]:
    service = Scripted(open_index(folder))
    yield service
    service.go.set()
    service.close()


def browser(service: Service) -> TestClient:
    return TestClient(FastAPI(routes=api.routes(service)), raise_server_exceptions=False)


def answer(text: str, **fields: Any) -> Answer:  # noqa: ANN401
    return Answer(Question("q1", "?"), text, (), (), "test", **fields)


def test_the_tokens_of_a_language_model_are_counted(scripted: Scripted) -> None:
    scripted.go.set()
    scripted.answers = [answer("x", trace={"tokens": {"read": 70, "written": 8}})] * 2
    chat = browser(scripted).post("/v1/chat/completions", json={"model": "reader", "messages": user("x")}).json()
    assert [chat["usage"][f"{name}_tokens"] for name in ("prompt", "completion", "total")] == [70, 8, 78]
    response = browser(scripted).post("/v1/responses", json={"model": "reader", "input": "x"}).json()
    assert [response["usage"][f"{name}_tokens"] for name in ("input", "output", "total")] == [70, 8, 78]


def test_a_language_models_markers_are_numbered_by_first_appearance_streamed_or_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = "The bridge opened in 1931 [3][9]. It was repaired [1]."
    body = {"model": "lm", "messages": user(QUESTION), "input": QUESTION}
    with chat_server.run_chat_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.script({"say": says}))
        monkeypatch.setenv("OPENAI_API_KEY", "")
        service = Service({"town": open_index(folder)}, {"lm": "openai:tiny"})
        client = browser(service)
        whole = client.post("/v1/chat/completions", json=body).json()
        streamed = client.post("/v1/chat/completions", json=body | {"stream": True}).text
        response = client.post("/v1/responses", json=body).json()
        service.close()
    message = whole["choices"][0]["message"]
    assert message["content"] == "The bridge opened in 1931 [1]. It was repaired [2]."
    assert [whole["usage"][f"{name}_tokens"] for name in ("prompt", "completion", "total")] == [7, 2, 9]
    chunks = [
        ChatCompletionChunk.model_validate_json(line.removeprefix("data: "))
        for line in streamed.split("\n\n")
        if line.startswith("data: {")
    ]
    assert joined(chunks)["message"] == {name: message[name] for name in ("role", "content", "annotations")}
    assert response["output"][0]["content"][0]["text"] == message["content"]


def cited(text: str, *ends: int) -> Answer:
    """An answer whose sentences, which end there, all cite one passage, each another part of it."""
    passage = Passage("town#1", "Aller", "The bridge opened in 1931. It was repaired in 1987.")
    sentences, start = [], 0
    for end in ends:
        quote = passage.text[start : start + 10]
        citation = Citation(passage.id, start, start + 10, quote, "cited")
        sentences.append(CitedSentence(text[start:end], (citation,), start, end))
        start = end + 1
    return Answer(Question("q1", "?"), text, tuple(sentences), (Hit(passage, 1.0),), "test")


@pytest.mark.parametrize("cite", ["markers", "links", "footnotes"])
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_a_sentence_is_sent_before_the_next_is_written(scripted: Scripted, path: str, cite: str) -> None:
    text = "It opened in 1931. It was repaired in 1987."
    scripted.so_far, scripted.answers = cited(text[:18], 18), [cited(text, 18, 43)]
    body = {"model": "reader", "stream": True, "messages": user("x"), "input": "x", "cite": cite}
    sent = []
    with (
        serving(FastAPI(routes=api.routes(scripted))) as url,
        httpx2.Client(base_url=f"{url}/v1") as client,
        client.stream("POST", f"/{path}", json=body) as reply,
    ):
        for line in reply.iter_lines():
            sent.append(line)
            if "url_citation" in line and not scripted.go.is_set():
                assert any("It opened" in line for line in sent)
                assert not any("It was repaired" in line for line in sent)
                scripted.go.set()  # the model goes on only when the first sentence has arrived, with its citation
    assert any("It was repaired" in line for line in sent)
    events = [json.loads(line.removeprefix("data: ")) for line in sent if line.startswith("data: {")]
    whole = browser(scripted)
    scripted.answers = [cited(text, 18, 43)]
    complete = whole.post(f"/v1/{path}", json=body | {"stream": False}, headers={"Host": url.partition("//")[2]}).json()
    if path == "responses":
        (content,) = complete["output"][0]["content"]
        annotations = [one["annotation"] for one in events if one["type"].endswith("annotation.added")]
        assert "".join(one["delta"] for one in events if one["type"].endswith(".delta")) == content["text"]
        assert events[-1]["response"]["output"][0]["content"] == [content]
    else:
        content = complete["choices"][0]["message"]
        found = joined([ChatCompletionChunk.model_validate(one) for one in events])["message"]
        annotations = found["annotations"]
        assert found["content"] == content["content"]
    assert annotations == content["annotations"]
    urls = [(one.get("url_citation") or one)["url"].partition("?mark=")[2] for one in annotations]
    assert urls == ["0-10", "19-29"], "each marks what its sentence cites"


class Growing(Service):
    """A service that shows an answer so far after some of its sentences, and then the answer."""

    answer: Answer
    stops: tuple[int, ...] = ()

    def stream(self, question: str, *names: str | None, **_: object) -> Iterator[Reply]:
        for count in self.stops:
            sentences = self.answer.sentences[:count]
            text = self.answer.text[: sentences[-1].end] if sentences else ""
            so_far = replace(self.answer, text=text, sentences=sentences)
            yield Reply(so_far, "town", "reader", question, 0.1, self.passages("town"), is_complete=False)
        yield Reply(self.answer, "town", "reader", question, 0.1, self.passages("town"))


@pytest.fixture(scope="module")
def growing(folder: Path) -> Iterator[tuple[Growing, openai.OpenAI]]:
    service = Growing({"town": open_index(folder)})
    with (
        serving(FastAPI(routes=api.routes(service))) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield service, client
    service.close()


@pytest.mark.parametrize("cite", ["markers", "links", "footnotes"])
@given(answer=answers(), stops=st.lists(st.integers(0, 3), max_size=3))
def test_a_streamed_completion_of_any_answer_is_that_without_streaming(
    growing: tuple[Growing, openai.OpenAI], cite: str, answer: Answer, stops: list[int]
) -> None:
    service, client = growing
    service.answer, service.stops = answer, tuple(sorted(stops))
    assume(all(not sentence.text.endswith("_") for sentence in answer.sentences))  # as in the tests of Markdown
    asked: dict[str, Any] = {"model": "reader", "messages": user("x"), "extra_body": {"cite": cite}}
    whole = client.chat.completions.create(**asked)
    length = 0
    with client.chat.completions.stream(**asked) as stream:
        for event in stream:
            if event.type == "chunk":
                (choice,) = event.chunk.choices
                before, length = length, length + len(choice.delta.content or "")
                for one in choice.delta.to_dict().get("annotations") or []:
                    assert before <= one["url_citation"]["start_index"] < one["url_citation"]["end_index"] <= length
        final: Any = stream.get_final_completion().to_dict()
    streamed, told = final["choices"][0], whole.to_dict()["choices"][0]
    annotations = streamed["message"].get("annotations") or []
    assert [one.pop("index") for one in annotations] == list(range(len(annotations)))
    assert annotations == told["message"]["annotations"]
    assert streamed["message"]["content"] == told["message"]["content"]
    assert streamed["finish_reason"] == told["finish_reason"]


@pytest.mark.parametrize("cite", ["markers", "links", "footnotes"])
@given(answer=answers(), stops=st.lists(st.integers(0, 3), max_size=3))
def test_a_streamed_response_of_any_answer_is_that_without_streaming(
    growing: tuple[Growing, openai.OpenAI], cite: str, answer: Answer, stops: list[int]
) -> None:
    service, client = growing
    service.answer, service.stops = answer, tuple(sorted(stops))
    assume(all(not sentence.text.endswith("_") for sentence in answer.sentences))
    asked: dict[str, Any] = {"model": "reader", "input": "x", "extra_body": {"cite": cite}}
    whole = client.responses.create(**asked)
    text, before = "", 0
    annotations: list[Any] = []
    with client.responses.stream(**asked) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                before, text = len(text), text + event.delta
            elif event.type == "response.output_text.annotation.added":
                added: Any = event.annotation.to_dict()
                assert before <= added["start_index"] < added["end_index"] <= len(text)
                assert event.annotation_index == len(annotations)
                annotations.append(added)
        final = stream.get_final_response()
    part = output(whole)
    assert (text, annotations) == (part.text, [one.to_dict() for one in part.annotations])
    assert output(final).to_dict() == part.to_dict() | {"parsed": None}  # the client's


@pytest.mark.parametrize(("early", "begins"), [("in 1931", "in 1931\n\nIt opened"), (None, "It opened")])
@pytest.mark.parametrize("stream", [False, True])
def test_a_short_answer_comes_first_unless_the_text_has_begun(
    scripted: Scripted, early: str | None, begins: str, stream: bool
) -> None:
    scripted.go.set()
    text = "It opened in 1931. It was repaired in 1987."
    scripted.so_far = replace(cited(text[:18], 18), short_answer=early)
    scripted.answers = [replace(cited(text, 18, 43), short_answer="in 1931")]
    body = {"model": "reader", "stream": stream, "messages": user("x")}
    reply = browser(scripted).post("/v1/chat/completions", json=body).text
    rows = [line.removeprefix("data: ") for line in reply.splitlines() if line.startswith(("data: {", "{"))]
    choices = [json.loads(row)["choices"][0] for row in rows]
    sent = "".join((choice.get("message") or choice["delta"]).get("content") or "" for choice in choices)
    assert sent.startswith(begins)
    assert sent.endswith("It was repaired in 1987 [1].")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("in 1931\n\nThe bridge opened in 1931 [1].", "in 1931"),
        ("**in 1931**\n\nIt opened in 1931 [[1]](http://x/p#1).\n\nSources:\n\n1. [Aller](http://x/p)", "in 1931"),
        ("**in 1931**\n\nIt opened in 1931[^1].\n\n[^1]: [Aller](http://x/p): “1931”", "in 1931"),
        ("It opened[^1].\n\n[^1]: Aller: “It”\n\n[^2]: Lune: “is”", "It opened."),
        ("The bridge opened [1].\n\nThe bridge is red [2].", "The bridge opened.\n\nThe bridge is red."),
        ("The bridge\n\nIt opened in 1931 [1].", "The bridge\n\nIt opened in 1931."),
        ("The bridge opened in 1931 [1].", "The bridge opened in 1931."),
        ("\n\nThe bridge opened in 1931 [1].", "\n\nThe bridge opened in 1931."),
    ],
)
def test_of_an_earlier_answer_the_short_one_is_remembered(scripted: Scripted, text: str, answer: str) -> None:
    messages = [api._Message(role=role, content=said) for role, said in (("user", "x"), ("assistant", text))]
    question, turns = api._conversation([*messages, api._Message(role="user", content="y")], "messages", scripted)
    assert (question, [(turn.question, turn.answer) for turn in turns]) == ("y", [("x", answer)])


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_an_answer_that_no_longer_begins_with_what_was_sent_is_a_failure(scripted: Scripted, path: str) -> None:
    scripted.go.set()
    scripted.so_far, scripted.answers = cited("It opened in 1931.", 18), [cited("It never did so at all.", 23)]
    body = {"model": "reader", "stream": True, "messages": user("x"), "input": "x"}
    assert "the answer changed while it was written; ask again" in browser(scripted).post(f"/v1/{path}", json=body).text


def test_a_client_that_hangs_up_stops_the_model(folder: Path) -> None:
    stopped = threading.Event()

    class Endless(Service):
        def stream(self, question: str, *names: str | None, **_: object) -> Iterator[Reply]:
            try:
                while True:
                    yield Reply(cited("It opened in 1931.", 18), "town", "reader", question, 0.1, self.passages("town"))
                    time.sleep(0.001)
            finally:
                stopped.set()

    service = Endless({"town": open_index(folder)}, limits=Limits(workers=1, seconds=20))
    body = {"model": "reader", "messages": user("x")}
    with serving(FastAPI(routes=api.routes(service))) as url, httpx2.Client(base_url=f"{url}/v1") as client:
        with client.stream("POST", "/chat/completions", json=body | {"stream": True}) as reply:
            lines = reply.iter_lines()
            while "It opened" not in next(lines):
                pass
        assert stopped.wait(10)
        stopped.clear()
        with pytest.raises(httpx2.ReadTimeout):
            client.post("/chat/completions", json=body, timeout=0.2)
        assert stopped.wait(10)
    service.close()


def test_hidden_characters_and_lone_surrogates_are_shown(scripted: Scripted) -> None:
    scripted.go.set()
    scripted.answers = [answer("a\x1b\u202e\ud800b", trace={})]
    chat = browser(scripted).post("/v1/chat/completions", json={"model": "reader", "messages": user("x")}).json()
    assert chat["choices"][0]["message"]["content"] == "a\ufffd\ufffd\ufffdb"


@pytest.mark.parametrize("cite", ["markers", "links", "footnotes", "open-webui"])
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_no_chat_program_loads_what_a_document_names(scripted: Scripted, path: str, cite: str, stream: bool) -> None:
    scripted.go.set()
    text = "It rings. ![bell](http://a.example/?q=secret) <img src=//a.example>"
    passage = Passage("bell#1", "Bell", text)
    sentence = CitedSentence(text, (Citation("bell#1", 0, len(text), text, "copied"),), 0, len(text))
    found = Answer(Question("q1", "?"), text, (sentence,), (Hit(passage, 1.0),), "test")
    scripted.answers = [found, replace(found, text="", sentences=(), abstained=True, reason=None)]
    body = {"model": "reader", "stream": stream, "messages": user("x"), "input": "x", "cite": cite}
    for is_answered in (True, False):
        reply = browser(scripted).post(f"/v1/{path}", json=body).text
        assert "rings" in reply
        has_annotations = is_answered and not (cite == "open-webui" and path == "chat/completions")
        verbatim = f'"quotes": [{json.dumps(text)}]'
        assert (verbatim in reply) == has_annotations
        shown = reply.replace(verbatim, "")
        assert not re.search(r"!\[b|(?<!\\)\]\(http://a|(?<!\\)<img|//a\.example", shown)


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_a_slow_answer_begins_the_stream_and_keeps_it_alive(
    scripted: Scripted, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "_PATIENCE", 0.01)
    monkeypatch.setattr(api, "_PING", 0.01)
    scripted.answers = [answer("Late but here.")]
    body = {"model": "reader", "stream": True, "messages": user("x"), "input": "x"}
    scripted.let_go_late()
    lines = browser(scripted).post(f"/v1/{path}", json=body).text.split("\n\n")
    waited = lines.index(": the answer is being written")
    assert '"role":"assistant"' in lines[0].replace(" ", "") or "response.created" in lines[0]
    assert any("Late but here." in line for line in lines[waited:])


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_fails_early_has_its_own_status(scripted: Scripted, path: str, stream: bool) -> None:
    scripted.go.set()
    body = {"model": "reader", "stream": stream, "messages": user("x"), "input": "x"}
    errors = {BusyError("full"): 503, TimeLimitError("late"): 504, QuestionError("bad"): 400, IndexingError("x"): 500}
    errors[ModelFailureError()] = 502
    for error, status in errors.items():
        scripted.answers = [error]
        reply = browser(scripted).post(f"/v1/{path}", json=body)
        assert reply.status_code == status
        told = reply.json()["error"]
        fault = ("the server cannot answer this now; its log says why", "InternalError")
        assert (told["message"], told["code"]) == (fault if status == 500 else (str(error), type(error).__name__))
        assert told["type"] == ("server_error" if status >= 500 else "invalid_request_error")
        assert ("Retry-After" in reply.headers) == (status == 503)


def test_what_fails_late_is_an_event(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_PATIENCE", 0.01)
    body = {"model": "reader", "stream": True, "messages": user("x"), "input": "x"}
    ends = []
    for path in ("chat/completions", "responses"):
        scripted.go.clear()
        scripted.asked.clear()
        scripted.answers = [UsageError("no")]
        scripted.let_go_late()
        *_, last, _ = browser(scripted).post(f"/v1/{path}", json=body).text.split("\n\n")
        ends.append(json.loads(last.partition("data: ")[2]))
    assert ends[0] == {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}
    assert (ends[1]["type"], ends[1]["response"]["status"]) == ("response.failed", "failed")
    assert ends[1]["response"]["error"] == {"code": "server_error", "message": "no"}


def test_too_many_are_told_to_come_back(folder: Path) -> None:
    service = Scripted(open_index(folder), Limits(workers=1, waiting=0, seconds=5))
    service.answers = [answer("x")]
    client = browser(service)
    first = threading.Thread(
        target=client.post, args=("/v1/chat/completions",), kwargs={"json": {"model": "reader", "messages": user("x")}}
    )
    first.start()
    while not service.workers.running:
        first.join(0.001)
    reply = client.post("/v1/responses", json={"model": "reader", "input": "x", "stream": True})
    service.go.set()
    first.join()
    service.close()
    assert (reply.status_code, reply.json()["error"]["type"]) == (503, "server_error")
    assert int(reply.headers["Retry-After"]) > 0


def test_a_client_that_hangs_up_gives_up_its_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_PATIENCE", 0.01)
    monkeypatch.setattr(api, "_PING", 0.01)
    service = Scripted(open_index(folder), Limits(workers=1, waiting=5, seconds=20))
    service.answers = [answer("x")] * 3
    bodies = [{"model": "reader", "stream": stream, "messages": user("x"), "input": "x"} for stream in (True, False)]
    with serving(FastAPI(routes=api.routes(service))) as url, httpx2.Client(base_url=f"{url}/v1") as client:
        running = threading.Thread(target=client.post, args=("/responses",), kwargs={"json": bodies[1]})
        running.start()
        wait_until(lambda: service.workers.running == 1)
        with client.stream("POST", "/chat/completions", json=bodies[0]) as reply:
            lines = reply.iter_lines()  # held: an iterator that is thrown away closes the connection
            next(lines)
            assert service.workers.waiting == 1
        wait_until(lambda: service.workers.waiting == 0)
        with pytest.raises(httpx2.ReadTimeout):
            client.post("/responses", json=bodies[1], timeout=0.2)
        wait_until(lambda: service.workers.waiting == 0)
        service.go.set()
        running.join()
    service.close()


def wait_until(reached: Callable[[], bool]) -> None:
    for _ in range(2000):
        if reached():
            return
        time.sleep(0.005)
    raise AssertionError("not reached")


def test_another_way_to_cite_is_refused(scripted: Scripted) -> None:
    with pytest.raises(UsageError, match="cite should be one of markers, links, footnotes, open-webui, found 'x'"):
        api.routes(scripted, cite="x")  # type: ignore[arg-type]


_json = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=5),
        st.sampled_from(["user", "assistant", "system", "text", "reader", "message", "bridge", "\ud800"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["role", "content", "type", "text", "format", "include_usage"]), inner),
    ),
    max_leaves=8,
)
_OTHERS = (
    "stream n cite tools tool_choice function_call stream_options text metadata response_format instructions logprobs "
    "modalities background temperature"
).split()
_message = st.fixed_dictionaries({"role": st.just("user"), "content": st.one_of(st.text(max_size=20), _json)})
_bodies = st.fixed_dictionaries(
    {},
    optional={
        "model": st.one_of(st.just("reader"), st.just("reader"), _json),
        "messages": st.one_of(st.lists(_message, max_size=3), _json),
        "input": st.one_of(st.text(max_size=20), st.lists(_message, max_size=3), _json),
        **dict.fromkeys(_OTHERS, _json),
    },
)


@pytest.fixture(scope="module")
def fuzzed(folder: Path) -> Iterator[TestClient]:
    service = Service({"town": open_index(folder)}, ["extractive"])
    yield browser(service)
    service.close()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["chat/completions", "responses"]), _bodies)
def test_no_body_breaks_the_server(fuzzed: TestClient, path: str, body: dict[str, Any]) -> None:
    if body.get("model") == "reader":
        body["model"] = "extractive"
    reply = fuzzed.post(f"/v1/{path}", content=json.dumps(body))
    assert reply.status_code in (200, 400, 404)
    if reply.status_code != 200:
        assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"model": "reader", "messages": 1' + b"0" * 5000]
)
def test_what_is_no_json_object_is_refused(fuzzed: TestClient, body: bytes) -> None:
    reply = fuzzed.post("/v1/chat/completions", content=body)
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")


def test_the_command_line_exports_answers_of_a_server_with_its_links(rag: Command, address: str) -> None:
    result = rag("ask", QUESTION, "--server", f"{address}/town", "--to", "markdown")
    assert result.returncode == 0, result.stderr
    assert f"]({address}/p/town/" in result.stdout
    without = rag("ask", QUESTION, "--server", address, "--to", "markdown")
    assert "](" not in without.stdout
    assert "[^1]: " in without.stdout
