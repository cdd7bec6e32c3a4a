"""One table has a system's options; Python, system specs, the command line, the client and the server take theirs."""

from dataclasses import fields
from typing import Any, get_type_hints

import pytest
from typer.main import get_command

from rag.answer.options import OPTIONS, Options
from rag.answer.specs import SystemSpec
from rag.api import SystemOptions
from rag.base.errors import RagError
from rag.commands.main import app
from rag.retrieval.client import AskOptions

OVER_HTTP = {name for name, option in OPTIONS.items() if option.over_http}


def test_python_has_every_option() -> None:
    assert set(get_type_hints(SystemOptions)) == set(OPTIONS)
    assert {"retriever", "k", *(field.name for field in fields(Options))} == set(OPTIONS)


@pytest.mark.parametrize("command", ["ask", "answer"])
def test_the_command_line_has_every_option_with_its_help(command: str) -> None:
    group: Any = get_command(app)  # typer brings a click of its own
    help_lines = {parameter.name: getattr(parameter, "help", None) for parameter in group.commands[command].params}
    assert {name: help_lines.get(name) for name in OPTIONS} == {name: option.help for name, option in OPTIONS.items()}


def test_a_spec_reads_every_option() -> None:
    spec = SystemSpec.parse("reader,retriever=bm25,k=5,min_confidence=0.5")
    assert (spec.retriever, spec.k, spec.options) == ("bm25", 5, Options(min_confidence=0.5))
    model = (
        "openai:m,prompt=hagrid.v1,context=512,temperature=0.5,seed=3,revise=drop,answer=point,repair=true,words=90,"
        "rounds=3"
    )
    spec = SystemSpec.parse(model)
    assert spec.options == Options(None, "hagrid.v1", 512, 0.5, 3, "drop", "point", repair=True, words=90, rounds=3)
    assert str(spec) == model
    assert SystemSpec.parse("openai:m,repair=true").label == "openai-m-repair"
    with pytest.raises(RagError, match="repair should be true or false, found 'maybe'"):
        SystemSpec.parse("openai:m,repair=maybe")


def test_requests_have_the_options_that_a_server_leaves_to_its_callers() -> None:
    schemas = pytest.importorskip("rag.serve.schemas")
    assert set(get_type_hints(AskOptions)) == OVER_HTTP
    properties = schemas.AskRequest.model_json_schema()["properties"]
    assert set(OPTIONS) & set(properties) == OVER_HTTP
    for name in OVER_HTTP:
        assert properties[name]["description"] == OPTIONS[name].help
