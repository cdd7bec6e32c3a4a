"""LangChain's class for OpenAI, asked to speak to a server of ours."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rag.serve.served import make_index, running

pytest.importorskip("fastapi", reason="needs the extra serve")
langchain_openai = pytest.importorskip("langchain_openai", reason="needs the package langchain-openai")

QUESTION = "When did the Aller bridge open?"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("langchain")
    make_index(folder)
    with running(folder / "town.index") as server:
        yield server.url


def model(address: str, **options: Any) -> Any:  # noqa: ANN401
    where = {"base_url": f"{address}/v1", "api_key": "none", "model": "reader"}
    return langchain_openai.ChatOpenAI(**where, max_retries=0, **options)


def citations(message: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """The annotations that LangChain kept."""
    return [one for block in message.content_blocks for one in block.get("annotations") or ()]


def test_responses_keep_their_citations(address: str) -> None:
    chat = model(address, use_responses_api=True, temperature=0)
    message = chat.invoke(QUESTION)
    text = message.text if isinstance(message.text, str) else message.text()
    found = citations(message)
    assert "1931" in text
    assert found
    for one in found:
        assert one["url"].startswith(f"{address}/p/town/")
        assert text[one["start_index"] : one["end_index"]].startswith("[")
    streamed = None
    for chunk in chat.stream(QUESTION):
        streamed = chunk if streamed is None else streamed + chunk
    assert streamed is not None
    assert [one["url"] for one in citations(streamed)] == [one["url"] for one in found]


def test_chat_completions_are_read_streamed_or_not(address: str) -> None:
    whole = model(address, temperature=0, max_tokens=50).invoke([("system", "Be brief."), ("user", QUESTION)])
    assert "1931" in whole.content
    assert whole.response_metadata["finish_reason"] == "stop"
    pieces = [chunk.content for chunk in model(address, stream_usage=True).stream(QUESTION)]
    assert "".join(pieces) == whole.content


def test_chat_completions_have_their_sources_in_the_text(address: str) -> None:
    chat = model(address, extra_body={"cite": "footnotes"})
    whole = chat.invoke(QUESTION)
    assert "opened in 1931[^1]." in whole.content
    assert f"\n\n[^1]: [The Aller bridge, History]({address}/p/town/" in whole.content
    assert "“The Aller bridge opened in 1931.”" in whole.content
    assert "".join(chunk.content for chunk in chat.stream(QUESTION)) == whole.content
    assert whole.response_metadata["token_usage"]["completion_tokens_details"]["reasoning_tokens"] == 0


def test_a_model_with_tools_answers(address: str) -> None:
    def add(one: int, other: int) -> int:
        """Add."""
        return one + other

    message = model(address).bind_tools([add]).invoke(QUESTION)
    assert "1931" in message.content
    assert message.tool_calls == []
