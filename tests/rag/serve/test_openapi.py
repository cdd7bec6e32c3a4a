"""schemathesis over the OpenAPI: no input makes a fault, and every response is as described."""

import os
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("mcp")
pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from rag.serve import Limits, Service, create_app
from tests.rag.serve.served import make_index

EXAMPLES = int(os.environ.get("RAG_SCHEMATHESIS", "30"))
"""Requests of each kind and operation; set RAG_SCHEMATHESIS=2000 for a longer search."""


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_makes_a_fault(mode: GenerationMode, tmp_path_factory: pytest.TempPathFactory) -> None:
    index = make_index(tmp_path_factory.mktemp("served"))
    service = Service({"town": index}, ["extractive", "reader"], limits=Limits(workers=2, question=200))
    api = schemathesis.openapi.from_asgi("/openapi.json", create_app(service, hosts=["testserver"]))
    operations = [found.ok() for found in api.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) == 14
    for operation in operations:

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: schemathesis.Case[Any]) -> None:
            # What a schema cannot say is refused too: an index that is not served, a question without a content word.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        if mode is GenerationMode.POSITIVE or operation.method == "post":  # there is no wrong GET /v1/indexes
            check()
    service.close()
