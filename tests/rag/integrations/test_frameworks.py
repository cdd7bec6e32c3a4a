"""Passages and answers inside the real LangChain, LlamaIndex and Haystack; `make test-extras` installs them."""

import asyncio
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag.api import ask, open_index, search
from rag.base.errors import QuestionError, RagError, UsageError
from rag.base.types import Answer
from rag.integrations import Searcher, number_passages, open_source, source_name
from rag.retrieval.client import Client

QUESTION = "Where was Marie Curie born?"
UNANSWERED = "How tall is the lighthouse of Alexandria?"


def needed(module: str, package: str) -> ModuleType:
    """Return the module, or skip if its package is not there; one that is there but does not start is a failure."""
    if find_spec(package) is None:
        pytest.skip(f"needs {package}: make test-extras")
    return import_module(module)


@pytest.mark.parametrize(
    ("module", "framework", "package"),
    [
        ("langchain", "langchain_core", "langchain-core"),
        ("llama_index", "llama_index", "llama-index-core"),
        ("haystack", "haystack", "haystack-ai"),
    ],
)
def test_a_framework_that_is_missing_is_named_with_the_command(
    module: str, framework: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == framework]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"rag.integrations.{module}", raising=False)
    monkeypatch.setitem(sys.modules, framework, None)
    with pytest.raises(ModuleNotFoundError, match=f"^{package} is not installed, .*: pip install {package}$"):
        import_module(f"rag.integrations.{module}")


@pytest.fixture
def langchain() -> ModuleType:
    return needed("rag.integrations.langchain", "langchain_core")


@pytest.fixture
def llama_index() -> ModuleType:
    return needed("rag.integrations.llama_index", "llama_index")


@pytest.fixture
def haystack() -> ModuleType:
    return needed("rag.integrations.haystack", "haystack")


@pytest.fixture
def server(shelf: Path) -> Iterator[str]:
    """The address of a server that serves the shelf."""
    pytest.importorskip("fastapi", reason="needs the extra serve")
    from rag.serve import Limits, Service
    from rag.serve.app import create_app
    from scripts.browser import serving

    service = Service(
        {"handbook": open_index(), "shelf": open_index(shelf)}, ["reader", "extractive"], limits=Limits(workers=1)
    )
    with serving(create_app(service)) as url:
        yield f"{url}/shelf"


def spans_of(answer: Answer) -> dict[str, list[str]]:
    """What an answer quotes of each passage that it cites."""
    found: dict[str, list[str]] = {}
    for one in answer.citations:
        found.setdefault(one.passage, []).append(one.quote or "")
    return found


def quotes(passages: list[tuple[str, dict[str, Any]]]) -> dict[str, list[str]]:
    """What the spans in the metadata of passages quote."""
    return {about["passage"]: [text[a:b] for a, b, _ in about["spans"]] for text, about in passages if about["spans"]}


# --- what all share ---------------------------------------------------------------------------------------------------


def test_spans_are_those_of_the_answer(shelf: Path) -> None:
    answer = ask(QUESTION, shelf, min_confidence=0)
    passages = [(hit.passage.text, about) for hit, about in number_passages(answer)]
    assert quotes(passages) == spans_of(answer) != {}
    assert [about["n"] for _, about in passages] == list(range(1, len(passages) + 1))
    assert json.loads(json.dumps(passages)) == [list(one) for one in passages]


def test_sources(shelf: Path, server: str) -> None:
    expected = search("river of Poland", shelf, k=2)
    for source in (shelf, str(shelf), open_index(shelf), Client(server), server):
        assert Searcher(source, k=2)("river of Poland") == expected
        assert str(open_source(source).ask(QUESTION)) == str(ask(QUESTION, shelf))
        name = source_name(source)
        assert name is not None
        assert Searcher(name, k=2)("river of Poland") == expected
    assert source_name(None) is None
    with pytest.raises(RagError):
        Searcher("http://127.0.0.1:1")("x")


# --- LangChain --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("remote", [False, True])
def test_langchain_retriever(langchain: ModuleType, shelf: Path, server: str, remote: bool) -> None:
    from langchain_core.runnables import RunnableLambda

    retriever = langchain.PassageRetriever(source=Client(server) if remote else shelf, k=2)
    documents = retriever.invoke("river of Poland")
    hits = search("river of Poland", shelf, k=2)
    assert [(one.id, one.page_content) for one in documents] == [(hit.passage.id, hit.passage.text) for hit in hits]
    first = {"passage": "b#1", "title": "Warsaw", "section": "", "rank": 1, "score": hits[0].score}
    assert documents[0].metadata == first
    chain = retriever | RunnableLambda(lambda found: [one.id for one in found])
    assert chain.invoke("river of Poland") == [hit.passage.id for hit in hits]
    assert asyncio.run(retriever.ainvoke("river of Poland")) == documents
    assert len(retriever.batch(["river of Poland", "Nobel Prize"])) == 2
    with pytest.raises(QuestionError, match="only stop words"):
        retriever.invoke("the")


@pytest.mark.parametrize("remote", [False, True])
def test_langchain_answers(langchain: ModuleType, shelf: Path, server: str, remote: bool) -> None:
    chain = langchain.CitedAnswers(source=server if remote else shelf, system="extractive", k=3)
    answer = ask(QUESTION, shelf, system="extractive", k=3)
    message = chain.invoke(QUESTION)
    (block,) = message.content_blocks
    assert block["text"] == message.text == answer.text
    texts = {one["passage"]: one["text"] for one in message.response_metadata["passages"]}
    assert len(block["annotations"]) == len(answer.citations) > 0
    for one, citation in zip(block["annotations"], answer.citations, strict=True):
        assert one["type"] == "citation"
        assert one["cited_text"] == citation.quote
        assert one["extras"]["passage"] == citation.passage
        assert texts[citation.passage][one["extras"]["start"] : one["extras"]["end"]] == citation.quote
        assert answer.text[one["start_index"] : one["end_index"]] in [sentence.text for sentence in answer.sentences]
    assert asyncio.run(chain.ainvoke(QUESTION)).content == message.content


def test_langchain_abstentions(langchain: ModuleType, shelf: Path) -> None:
    message = langchain.CitedAnswers(source=shelf).invoke(UNANSWERED)
    assert message.text == ""
    assert message.response_metadata["abstained"]
    assert message.response_metadata["reason"]


# --- LlamaIndex -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("remote", [False, True])
def test_llama_index_retriever(llama_index: ModuleType, shelf: Path, server: str, remote: bool) -> None:
    from llama_index.core.schema import MetadataMode

    retriever = llama_index.PassageRetriever(Client(server) if remote else shelf, k=2)
    nodes = retriever.retrieve("river of Poland")
    hits = search("river of Poland", shelf, k=2)
    assert [(one.node.node_id, one.text, one.score) for one in nodes] == [
        (hit.passage.id, hit.passage.text, hit.score) for hit in hits
    ]
    assert nodes[0].metadata["passage"] == "b#1"
    assert nodes[0].metadata["rank"] == 1
    read = nodes[0].node.get_content(MetadataMode.LLM)
    assert "title: Warsaw" in read
    assert "score" not in read
    assert [one.node_id for one in asyncio.run(retriever.aretrieve("river of Poland"))] == [n.node_id for n in nodes]


@pytest.mark.parametrize("remote", [False, True])
def test_llama_index_query_engine(llama_index: ModuleType, shelf: Path, server: str, remote: bool) -> None:
    engine = llama_index.CitedQueryEngine(server if remote else shelf, "reader", k=3)
    answer = ask(QUESTION, shelf, k=3)
    response = engine.query(QUESTION)
    assert str(response) == str(answer)
    nodes = [(one.text, one.metadata) for one in response.source_nodes]
    assert quotes(nodes) == spans_of(answer) != {}
    assert [about["n"] for _, about in nodes] == [1, 2, 3][: len(nodes)]
    assert response.metadata["system"] == answer.system
    assert str(asyncio.run(engine.aquery(QUESTION))) == str(answer)
    nothing = engine.query(UNANSWERED)
    assert nothing.metadata["abstained"]
    assert str(nothing).startswith("The sources do not answer this question")


# --- Haystack ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("remote", [False, True])
def test_haystack_components_in_a_pipeline(haystack: ModuleType, shelf: Path, server: str, remote: bool) -> None:
    from haystack import Pipeline

    source = Client(server) if remote else shelf
    made = Pipeline()
    made.add_component("retriever", haystack.PassageRetriever(source, top_k=2))
    made.add_component("answerer", haystack.CitedAnswerer(source, "reader", top_k=3))
    again = Pipeline.loads(made.dumps(), allowed_modules=["rag.integrations.haystack"])
    for pipeline in (made, again):
        found = pipeline.run({"retriever": {"query": "river of Poland"}, "answerer": {"query": QUESTION}})
        documents = found["retriever"]["documents"]
        hits = search("river of Poland", shelf, k=2)
        assert [(one.id, one.content, one.score) for one in documents] == [
            (hit.passage.id, hit.passage.text, hit.score) for hit in hits
        ]
        assert documents[0].meta["passage"] == "b#1"
        (said,) = found["answerer"]["answers"]
        answer = ask(QUESTION, shelf, k=3)
        assert (said.data, said.query) == (str(answer), QUESTION)
        assert quotes([(one.content or "", one.meta) for one in said.documents]) == spans_of(answer) != {}
        assert said.meta["system"] == answer.system
    assert len(haystack.PassageRetriever(source).run(query="river", top_k=1)["documents"]) == 1


def test_haystack_cannot_store_an_index_in_memory(haystack: ModuleType) -> None:
    from dataclasses import replace

    component = haystack.PassageRetriever(replace(open_index(), build=None))
    with pytest.raises(UsageError, match="give the folder of an index"):
        component.to_dict()
