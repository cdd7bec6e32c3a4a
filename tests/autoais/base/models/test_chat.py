import asyncio
import json
import logging
import socket
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoais.base.errors import UserError
from autoais.base.models.chat import ChatClient, NoReply, Reply, Request, Usage
from tests.chat_server import ChatServer, run_chat_server

KEY = "sk-not-for-your-eyes"
SCHEMA = {"type": "object"}


def client(base_url: str, *, timeout: float = 5, retries: int = 2, concurrency: int = 8) -> ChatClient:
    return ChatClient(base_url, KEY, timeout=timeout, retries=retries, backoff=0.001, concurrency=concurrency)


def asks(*prompts: str, schema: dict[str, Any] | None = None) -> list[Request]:
    return [Request("tiny", (("user", prompt),), max_tokens=9, seed=3, schema=schema) for prompt in prompts]


def ask(base_url: str, timeout: float = 5) -> Reply | NoReply:
    (reply,) = client(base_url, timeout=timeout).answer(asks("Hello?"))
    return reply


def test_replies_come_in_order_and_everything_is_counted(server: ChatServer) -> None:
    base_url = server.script({"say_if": [[f"<{n}>", f"reply {n}"] for n in range(40)], "hang": 0.005})
    chat = client(base_url + "/", concurrency=4)
    replies = chat.answer(asks(*(f"<{n}>" for n in range(40))))
    assert replies == [Reply(f"reply {n}") for n in range(40)]
    assert chat.usage == Usage(requests=40, prompt_tokens=280, completion_tokens=80)
    assert chat.served == ["tiny-1 fp_9"]
    log = server.log(base_url)
    assert {row["path"] for row in log} == {"v1/chat/completions"}
    assert {row["authorization"] for row in log} == {f"Bearer {KEY}"}
    assert 1 < max(row["running"] for row in log) <= 4
    messages = [{"role": "user", "content": "<0>"}]
    assert log[0]["body"] == {"model": "tiny", "messages": messages, "max_tokens": 9, "temperature": 0.0, "seed": 3}


def test_nothing_asked_calls_nobody(server: ChatServer) -> None:
    assert client("http://127.0.0.1:9/v1").answer([]) == []


def test_it_works_where_an_event_loop_runs_already(server: ChatServer) -> None:
    chat = client(server.script({"say": "yes"}))

    async def notebook() -> list[Reply | NoReply]:
        return chat.answer(asks("a", "b")) + await chat.answer_async(asks("c"))

    assert asyncio.run(notebook()) == [Reply("yes")] * 3


@pytest.mark.parametrize(
    "bad",
    [
        {"status": 500, "body": "oops"},
        {"status": 429, "headers": {"Retry-After": "0.01"}},
        {"status": 429, "headers": {"Retry-After": "soon"}},
        {"say": "x" * 100, "cut": 50},
        {"say": "x", "cut": 0},
        {"say": "x", "hang": 0.6},
        {"say": "x", "dribble": 0.02},
        {"body": '{"choices": []}'},
        {"body": "<html>busy</html>"},
    ],
)
def test_what_may_pass_is_tried_again(server: ChatServer, bad: dict[str, Any]) -> None:
    base_url = server.script(bad, {"say": "yes"})
    chat = client(base_url, timeout=0.3)
    assert chat.answer(asks("Hello?")) == [Reply("yes")]
    assert (chat.usage.requests, chat.usage.retries) == (2, 1)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"status": 500, "body": '{"error": {"message": "out of\\nmemory"}}'}, "answered 500: out of memory (tried 3"),
        ({"status": 503, "body": '{"error": "loading"}'}, "the server answered 503: loading (tried 3 times)"),
        ({"status": 502, "body": ""}, "the server answered 502 (tried 3 times)"),
        ({"status": 429, "body": "slow down"}, "the server answered 429: slow down (tried 3 times)"),
        ({"hang": 0.5}, "no complete reply within 0.2 s (tried 3 times)"),
        ({"say": "x", "dribble": 0.05}, "no complete reply within 0.2 s (tried 3 times)"),
        ({"say": "x", "cut": 0}, "the connection broke off"),
        ({"say": "x" * 99, "cut": 70}, "the connection broke off"),
        ({"body": "I am a web page"}, "the reply: not JSON"),
        ({"body": '{"choices": [{"message": {"cont'}, "the reply: not JSON"),
        ({"body": '{"choices": NaN}'}, "NaN is not a JSON number"),
        ({"body": "[" * 100_000}, "nested too deeply"),
        ({"body": '["choices"]'}, "expected a JSON object"),
        ({"body": '{"choices": []}'}, "not a chat completion: '{\"choices\": []}'"),
        ({"body": '{"choices": [{"message": {"content": 7}}]}'}, "not a chat completion"),
        ({"say": "x" * (4 << 20)}, "the response is larger than 4 MiB"),
        (
            {"say": "x", "headers": {"Content-Encoding": "gzip"}},
            "the reply is compressed ('gzip'), which was not asked",
        ),
        (
            {"say": "x", "headers": {"Content-Encoding": "zstd"}},
            "the reply is compressed ('zstd'), which was not asked",
        ),
        ({"body": '{"choices": [{"message": {"refusal": "I will not", "content": null}}]}'}, "refused: I will not"),
        ({"say": None, "finish": "content_filter"}, "filtered"),
        ({"status": 400, "body": '{"error": {"message": "the prompt is too long"}}'}, "400: the prompt is too long"),
        ({"status": 413, "body": f"who sent {KEY}?"}, "413: who sent [key]?"),
    ],
)
def test_what_does_not_pass_is_a_reason_and_never_a_crash(server: ChatServer, bad: dict[str, Any], reason: str) -> None:
    reply = ask(server.script(bad), timeout=0.2 if {"hang", "dribble"} & set(bad) else 5)
    assert isinstance(reply, NoReply)
    assert reason in reply.reason
    assert reply.reason.isprintable()


def test_one_bad_reply_leaves_the_others(server: ChatServer) -> None:
    base_url = server.script({"say": "yes"}, {"status": 500}, {"status": 401}, {"say": "yes"})
    replies = client(base_url, retries=0, concurrency=1).answer(asks("a", "b", "c", "d"))
    assert [isinstance(reply, Reply) for reply in replies] == [True, False, False, True]


def test_retry_after_is_waited_for_and_has_a_bound(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    ask(server.script({"status": 429, "headers": {"Retry-After": "0.3"}}, {"say": "yes"}))
    assert time.monotonic() - began >= 0.3
    monkeypatch.setattr("autoais.base.models.chat._MAX_WAIT", 0.05)
    began = time.monotonic()
    ask(server.script({"status": 503, "headers": {"Retry-After": "999999999"}}, {"say": "yes"}))
    assert time.monotonic() - began < 60


def test_a_parameter_that_the_server_does_not_take_is_left_out_for_the_run(server: ChatServer) -> None:
    base_url = server.script({"say": "yes", "without": ["response_format", "max_tokens"]})
    chat = client(base_url)
    assert chat.answer(asks(*"abc", schema=SCHEMA)) == [Reply("yes")] * 3
    assert chat.refused == {"json_schema", "json_object", "max_tokens"}
    assert chat.usage.requests == 6  # three of them to learn it
    assert server.log(base_url)[-1]["body"]["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("body", "forms"),
    [
        ("too long", ["json_schema", "json_schema"]),
        ("bad request", ["json_schema", "json_object", None, "json_schema"]),
    ],
)
def test_a_400_for_another_reason_does_not_cost_the_structure(
    server: ChatServer, body: str, forms: list[str | None]
) -> None:
    bad = {"status": 400, "body": body}
    base_url = server.script(*[bad] * (len(forms) - 1), {"say": "yes"})
    chat = client(base_url, concurrency=1)
    assert chat.answer(asks("a", "b", schema=SCHEMA)) == [NoReply(f"the server answered 400: {body}"), Reply("yes")]
    assert chat.refused == frozenset()
    assert [row["body"].get("response_format", {}).get("type") for row in server.log(base_url)] == forms


@pytest.mark.parametrize(
    ("status", "way_out"), [(401, "OPENAI_API_KEY"), (403, "access"), (404, "/v1"), (405, "/v1"), (302, "new address")]
)
def test_what_a_person_must_mend_is_one_line_with_the_way_out(server: ChatServer, status: int, way_out: str) -> None:
    base_url = server.script({"status": status, "body": f'{{"error": {{"message": "bad key {KEY}\\n"}}}}'})
    chat = client(base_url)
    with pytest.raises(UserError) as raised:
        chat.answer(asks(*"abcdefghij"))
    assert all(part in str(raised.value) for part in (base_url, str(status), "bad key [key]", way_out))
    assert KEY not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert chat.usage.requests == 1


def test_nobody_listening_is_said_at_once() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        chat = client(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        with pytest.raises(UserError, match=r"cannot connect to http://127\.0\.0\.1:.*OPENAI_BASE_URL"):
            chat.answer(asks("a", "b"))
    assert chat.usage.requests == 1


def test_a_server_that_goes_away_in_the_middle_leaves_reasons(server: ChatServer) -> None:
    with run_chat_server() as short_lived:
        chat = client(short_lived.script({"say": "yes"}), retries=1)
        assert chat.answer(asks("a")) == [Reply("yes")]
    (reply,) = chat.answer(asks("b"))
    assert isinstance(reply, NoReply)
    assert "(tried 2 times)" in reply.reason


@pytest.mark.parametrize(
    ("bad", "seen"),
    [
        ({"hang": 0.5}, "no complete reply within 0.1 s (tried 2 times)"),
        ({"status": 503, "body": "loading"}, "the server answered 503: loading (tried 2 times)"),
        ({"say": "x", "cut": 0}, "the connection broke off"),
        ({"body": "<html>hello</html>"}, "not JSON"),
    ],
)
def test_a_server_that_never_answers_is_given_up_after_a_few(
    server: ChatServer, bad: dict[str, Any], seen: str
) -> None:
    base_url = server.script(bad)
    chat = client(base_url, timeout=0.1 if "hang" in bad else 5, retries=1, concurrency=4)
    with pytest.raises(UserError) as raised:
        chat.answer(asks(*(str(n) for n in range(100))))
    assert all(part in str(raised.value) for part in (base_url, "'tiny'", "4 requests", seen, "timeout"))
    assert "\n" not in str(raised.value)
    assert chat.usage.requests < 50  # of 100: how many are on their way depends on the load


def test_a_server_that_never_answers_is_given_up_over_several_calls(server: ChatServer) -> None:
    chat = client(
        server.script({"status": 500, "body": "id 1"}, {"status": 500, "body": "id 2"}), retries=0, concurrency=1
    )
    assert all(isinstance(reply, NoReply) for reply in chat.answer(asks("a", "b")))
    with pytest.raises(UserError, match="3 requests failed the same way: the server answered 500: id 2"):
        chat.answer(asks("c"))


def test_a_server_that_has_answered_once_is_not_given_up(server: ChatServer) -> None:
    base_url = server.script({"say": "yes"}, {"status": 500, "body": ""})
    replies = client(base_url, retries=0, concurrency=2).answer(asks(*(str(n) for n in range(20))))
    assert replies == [Reply("yes")] + [NoReply("the server answered 500 (tried 1 times)")] * 19


def test_failures_of_several_kinds_are_reasons(server: ChatServer) -> None:
    failures: list[dict[str, Any]] = [{"status": 500}, {"say": "x", "cut": 0}]
    base_url = server.script(*failures * 10)
    replies = client(base_url, retries=0, concurrency=1).answer(asks(*(str(n) for n in range(20))))
    assert all(isinstance(reply, NoReply) for reply in replies)


@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "ftp://h/v1", "http://", "http://me:secret@h/v1", "http://h/v1?key=secret", "http://h:x/v1",
     "http://h:0/v1", "http://h:99999/v1", "http://h/v1#x", "http://[::1", "http://h /v1", "http://h/\x00"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UserError, match="OPENAI_BASE_URL should look like") as raised:
        ChatClient(url, KEY)
    assert "secret" not in str(raised.value)


def test_address_and_key_come_from_the_environment(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    base_url = server.script({"say": "yes"})
    monkeypatch.setenv("OPENAI_BASE_URL", base_url)
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    assert ChatClient().answer(asks("a")) == [Reply("yes")]
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ChatClient().answer(asks("a")) == [Reply("yes")]
    assert [row["authorization"] for row in server.log(base_url)] == [f"Bearer {KEY}", ""]
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(UserError, match=r"set OPENAI_BASE_URL .* or OPENAI_API_KEY"):
        ChatClient()
    assert ChatClient(api_key=KEY).base_url == "https://api.openai.com/v1"
    with pytest.raises(UserError) as raised:
        ChatClient(api_key=f"{KEY}\nX-Header: 1")
    assert KEY not in str(raised.value)
    with pytest.raises(UserError, match="concurrency must be at least 1"):
        ChatClient(base_url, concurrency=0)


def test_the_key_is_in_no_log(server: ChatServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        ask(server.script({"status": 500, "body": KEY}))
    assert KEY not in caplog.text


def test_texts_of_any_kind_reach_the_server(server: ChatServer) -> None:
    base_url = server.script({"say": "yes"})
    text = "東京 \x00 \ud800 \U0001f600"
    assert client(base_url).answer(asks(text)) == [Reply("yes")]
    assert server.log(base_url)[0]["body"]["messages"][0]["content"] == text


def streamed(base_url: str, *, retries: int = 2, timeout: float = 5) -> tuple[list[str], Reply | NoReply, ChatClient]:
    chat, told = client(base_url, retries=retries, timeout=timeout), list[str]()
    return told, chat.stream(asks("Hello?")[0], told.append), chat


def test_a_stream_tells_the_pieces_and_gives_the_same_reply_as_a_whole_one(server: ChatServer) -> None:
    base_url = server.script({"say": "Warsaw is “it” [1].\n"})
    told, reply, chat = streamed(base_url)
    assert told == ["Warsaw ", "is ", "“it” ", "[1].\n"]
    assert [reply] == chat.answer(asks("Hello?"))
    assert isinstance(reply, Reply)
    assert (reply.cut, reply.prompt_tokens, reply.completion_tokens) == (False, 7, 2)
    assert chat.usage == Usage(requests=2, prompt_tokens=14, completion_tokens=4)
    assert str(chat.usage) == "2 requests, 0 retries, 14 prompt tokens, 4 completion tokens"
    assert str(Usage(1, 1, 7, 2)) == "1 request, 1 retry, 7 prompt tokens, 2 completion tokens"
    assert chat.served == ["tiny-1 fp_9"]
    body = server.log(base_url)[0]["body"]
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


def test_a_stream_from_a_server_that_cannot_or_does_not_know_all_parameters(server: ChatServer) -> None:
    told, reply, chat = streamed(server.script({"say": "yes it is", "whole": True}))
    assert (told, reply, chat.usage.completion_tokens) == (["yes it is"], Reply("yes it is"), 2)
    told, reply, chat = streamed(server.script({"say": "yes it is", "without": ["stream_options", "seed"]}))
    assert ("".join(told), reply) == ("yes it is", Reply("yes it is"))
    assert chat.refused == {"stream_options", "seed"}


def test_a_stream_that_fails_is_tried_again_until_something_was_told(server: ChatServer) -> None:
    steps: list[dict[str, Any]] = [{"status": 503}, {"say": "a", "pieces": 1}, {"say": "a", "cut": 20}, {"say": "yes"}]
    told, reply, chat = streamed(server.script(*steps), retries=3)
    assert (told, reply, chat.usage.retries) == (["yes"], Reply("yes"), 3)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"pieces": 3}, "the stream ended before the reply did (in the middle of the reply)"),
        ({"cut": 250}, "the connection broke off"),
        (
            {"pieces": 3, "then": 'data: {"error": {"message": "out of memory"}}\n\n'},
            "reported an error: out of memory",
        ),
        ({"pieces": 3, "then": "data: <html>\n"}, "a piece of the reply: not JSON"),
        ({"pieces": 3, "then": 'data: {"choices": [7]}\ndata: ["x"]\n'}, "expected a JSON object"),
        ({"cut": 250, "stall": 3}, "no complete reply within 1.5 s (in the middle"),
    ],
)
def test_a_server_that_dies_in_the_middle_of_a_stream_is_a_reason(
    server: ChatServer, bad: dict[str, Any], reason: str
) -> None:
    told, reply, chat = streamed(server.script({"say": "one two three four"} | bad), timeout=1.5)
    assert told[0] == "one "
    assert isinstance(reply, NoReply)
    assert reason in reply.reason
    assert chat.usage.requests == 1


def test_what_a_stream_is_told_to_may_end_it(server: ChatServer) -> None:
    def tell(piece: str) -> None:
        raise ValueError(piece)

    with pytest.raises(ValueError, match="one"):
        client(server.script({"say": "one two"})).stream(asks("Hello?")[0], tell)


def test_stop_texts_are_sent_and_left_out_where_refused(server: ChatServer) -> None:
    base_url = server.script({"say": "yes", "without": ["stop"]})
    chat = client(base_url)
    assert chat.answer([Request("tiny", (("user", "a"),), stop=("\nQ",))]) == [Reply("yes")]
    assert [row["body"].get("stop") for row in server.log(base_url)] == [["\nQ"], None]
    assert chat.refused == {"stop"}


@pytest.mark.parametrize(
    ("forms", "refused", "asked"),
    [
        (["json_schema", "json_object"], set(), ["json_schema"]),
        (["json_object"], {"json_schema"}, ["json_schema", "json_object"]),
        ([], {"json_schema", "json_object"}, ["json_schema", "json_object", None]),
    ],
)
def test_the_best_form_of_reply_that_a_server_takes_is_learnt_once_and_said_once(
    server: ChatServer, capsys: pytest.CaptureFixture[str], forms: list[str], refused: set[str], asked: list[str | None]
) -> None:
    base_url = server.script({"say": '{"a": 1}', "forms": forms})
    chat = client(base_url, concurrency=1)
    replies = chat.answer(asks("a", "b", schema=SCHEMA))
    told: list[str] = []
    replies.append(chat.stream(asks("c", schema=SCHEMA)[0], told.append))
    assert [reply.structure for reply in replies if isinstance(reply, Reply)] == [asked[-1] or "none"] * 3
    assert chat.refused == refused
    sent = [row["body"].get("response_format", {}).get("type") for row in server.log(base_url)]
    assert sent == [*asked, asked[-1], asked[-1]]
    notes = capsys.readouterr().err
    assert notes.count("\n") == bool(refused)
    assert notes.count(f"{base_url}, model 'tiny': the server takes no JSON Schema for a reply") == bool(refused)


def test_keywords_of_a_schema_that_a_server_does_not_know_are_left_out(server: ChatServer) -> None:
    bad = {"status": 400, "body": "Invalid schema for response_format: 'maxLength' is not permitted"}
    base_url = server.script(bad, {"say": "{}"})
    schema = {"type": "object", "properties": {"maxLength": {"type": "string", "maxLength": 3}}}
    chat = client(base_url)
    assert chat.answer(asks("a", schema=schema)) == [Reply("{}")]
    assert chat.refused == {"maxLength"}
    body = server.log(base_url)[-1]["body"]
    assert body["response_format"]["json_schema"]["schema"]["properties"] == {"maxLength": {"type": "string"}}


@pytest.mark.parametrize(
    "says",
    [
        "Invalid schema for response_format 'reply': Expected at most 10 enum values in total, but received 30.",
        "The specified schema produces a constraint that has too many states for serving.",
        "The compiled grammar is too large.",
    ],
)
def test_a_schema_that_is_too_large_is_a_reason_of_its_own(server: ChatServer, says: str) -> None:
    chat = client(server.script({"status": 400, "body": says}))
    (reply,) = chat.answer(asks("a", schema=SCHEMA))
    assert isinstance(reply, NoReply)
    assert (reply.is_schema_too_large, chat.usage.requests) == (True, 1)
    (reply,) = chat.answer(asks("a"))
    assert isinstance(reply, NoReply)
    assert not reply.is_schema_too_large


def test_a_prompt_that_is_too_long_is_no_matter_of_the_schema(server: ChatServer) -> None:
    says = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
    chat = client(server.script({"status": 400, "body": says}))
    (reply,) = chat.answer(asks("a", schema=SCHEMA))
    assert isinstance(reply, NoReply)
    assert (reply.is_prompt_too_long, reply.is_schema_too_large, chat.usage.requests) == (True, False, 1)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ('data: {"error": {"message": "out of memory", "code": 500}}', "reported an error: out of memory"),
        ('data: {"object": "error", "message": "out of memory", "code": 500}', "reported an error: out of memory"),
        ('data: {"choices": null, "error_message": "out of memory"}', "reported an error: out of memory"),
        ('data: {"choices": [], "error": "out of memory"}', "reported an error: out of memory"),
        ('data: {"detail": "out of memory"}', "reported an error: out of memory"),
        ('data: {"error_type": "overloaded"}', "reported an error: overloaded"),
        ('error: {"code": 500, "message": "out of memory"}', "reported an error: out of memory"),
        ("event: error\r\ndata: out of memory", "reported an error: out of memory"),
        (
            'data: {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "out of memory"}}]}',
            "reported an error: out of memory",
        ),
        ('data: {"choices": [{"delta": {}, "finish_reason": "error"}]}', "reported an error: the model failed"),
        ("data: [DONE]", "an empty stream"),
        ('data: {"choices": [{"delta": {"content": 7}}]}', "its content is no text"),
    ],
)
def test_an_error_inside_a_stream_keeps_its_reason(server: ChatServer, event: str, reason: str) -> None:
    step = {"say": "one two", "pieces": 0, "then": f"{event}\n\ndata: [DONE]\n\n"}
    told, reply, chat = streamed(server.script(step))
    assert isinstance(reply, NoReply)
    assert reason in reply.reason
    assert ("".join(told), chat.usage.requests) == ("", 3)  # an empty piece comes while the server is silent
    if event != "data: [DONE]":
        told, reply, chat = streamed(server.script(step | {"pieces": 2}))
        assert isinstance(reply, NoReply)
        assert reason in reply.reason
        assert (told, chat.usage.requests) == (["one "], 1)
    if event.startswith('data: {"') and "delta" not in event:
        reply = ask(server.script({"body": event[6:]}))
        assert isinstance(reply, NoReply)
        assert reason in reply.reason


def test_an_error_inside_a_stream_has_its_status(server: ChatServer) -> None:
    told, reply, chat = streamed(
        server.script(
            {"say": "x", "pieces": 0, "then": 'data: {"error": {"message": "no seed, please", "code": 400}}\n\n'},
            {"say": "yes"},
        )
    )
    assert (told, reply) == (["yes"], Reply("yes"))
    assert chat.refused == {"seed"}
    bad = {"error": {"message": "the prompt is too long", "code": 400}}
    told, reply, chat = streamed(server.script({"say": "x", "pieces": 0, "then": f"data: {json.dumps(bad)}\n\n"}))
    assert (reply, chat.usage.requests) == (NoReply("the server reported an error: the prompt is too long"), 1)
    told, reply, chat = streamed(server.script({"say": "x", "pieces": 2, "then": f"data: {json.dumps(bad)}\n\n"}))
    assert isinstance(reply, NoReply)
    assert (told, chat.usage.requests) == (["x"], 1)


PARTS = st.one_of(
    st.text(max_size=9),
    st.fixed_dictionaries({"type": st.sampled_from(["text", "output_text"]), "text": st.text(max_size=9)}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": st.just([{"type": "text", "text": "Hm."}])}),
    st.fixed_dictionaries({"type": st.sampled_from(["reasoning", "reference", "text"]), "summary": st.none()}),
    st.fixed_dictionaries({"type": st.just("refusal"), "refusal": st.just("I will not.")}),
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.none() | st.text(max_size=9) | st.lists(PARTS, max_size=3),
        "refusal": st.none() | st.just(""),
        "reasoning_content": st.just("Hm."),
        "reasoning": st.just("Hm."),
        "role": st.just("assistant"),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(DELTAS, min_size=1, max_size=4), st.sampled_from(["stop", "length", "content_filter", "error"]))
def test_a_stream_gives_the_reply_that_the_same_message_gives(
    server: ChatServer, deltas: list[dict[str, Any]], finish: str
) -> None:
    parts: list[object] = []
    for delta in deltas:
        content = delta.get("content")
        parts += content if isinstance(content, list) else [content]
    message = {"content": parts, "reasoning_content": "Hm."}
    events: list[dict[str, Any]] = [{"choices": [{"delta": delta}]} for delta in deltas]
    events.append({"choices": [{"delta": {}, "finish_reason": finish}]})
    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    told, reply, _ = streamed(server.script({"say": "", "pieces": 0, "then": lines}), retries=0)
    body = json.dumps({"choices": [{"message": message, "finish_reason": finish}]})
    (whole,) = client(server.script({"body": body}), retries=0).answer(asks("Hello?"))
    if isinstance(whole, Reply):
        assert reply == whole
        assert "".join(told) == whole.text
    else:
        assert isinstance(reply, NoReply)
        assert reply.reason.partition(" (")[0] == whole.reason.partition(" (")[0]
    assert "Hm." not in "".join(told)
