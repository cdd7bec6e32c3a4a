"""LlamaIndex's class for servers that are like OpenAI's, asked to speak to a server of ours."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rag.serve.served import make_index, running

pytest.importorskip("fastapi", reason="needs the extra serve")
openai_like = pytest.importorskip(
    "llama_index.llms.openai_like", reason="needs llama-index-llms-openai-like: make test-extras"
)

QUESTION = "When did the Aller bridge open?"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("llama")
    make_index(folder)
    with running(folder / "town.index") as server:
        yield server.url


def model(address: str, **options: Any) -> Any:  # noqa: ANN401
    where = {"api_base": f"{address}/v1", "api_key": "none", "model": "reader", "is_chat_model": True}
    return openai_like.OpenAILike(**where, max_retries=0, **options)


def test_chat_completions_are_read_streamed_or_not(address: str) -> None:
    whole = model(address).complete(QUESTION).text
    assert "opened in 1931 [1]" in whole
    assert list(model(address).stream_complete(QUESTION))[-1].text == whole


def test_chat_completions_have_their_sources_in_the_text(address: str) -> None:
    footnotes = model(address, additional_kwargs={"extra_body": {"cite": "footnotes"}})
    whole = footnotes.complete(QUESTION).text
    assert "opened in 1931[^1]." in whole
    assert f"\n\n[^1]: [The Aller bridge, History]({address}/p/town/" in whole
    assert "“The Aller bridge opened in 1931.”" in whole
    assert list(footnotes.stream_complete(QUESTION))[-1].text == whole
