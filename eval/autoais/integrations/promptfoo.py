"""A Python assertion for promptfoo, which calls `get_assert(output, context)` of a file that imports it from here.

Shapes: promptfoo/promptfoo, site/docs/configuration/expected-outputs/python.md (`AssertionValueFunctionContext`,
`GradingResult`). promptfoo itself runs on Node; this module needs no package.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from autoais.base.errors import UserError, check_type
from autoais.integrations import SampleScorer, Uncited
from autoais.judges import DEFAULT

_OPTIONS = {"judge": DEFAULT, "metric": "autoais", "uncited": "error", "threshold": 1.0, "query": "query",
            "contexts": "context"}  # fmt: skip


def get_assert(output: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `GradingResult`: `pass`, `score` and `reason`, a line per sentence.

    The question and the passages are the variables `query` and `context`, as in promptfoo's own RAG assertions; the
    passages may be a list, or a string that holds a list as JSON. Options under the assertion's `config`: `judge`,
    `metric`, `uncited` (`SampleScorer`), `threshold` (the score to pass, default 1), and `query` and `contexts`, other
    names of the variables. Errors are results that do not pass, with the error as reason.
    """
    try:
        config = context.get("config") or {}
        if unknown := sorted(config.keys() - _OPTIONS.keys()):
            raise UserError(f"unknown option {unknown[0]!r}; there are: {', '.join(_OPTIONS)}")
        options: dict[str, Any] = _OPTIONS | config
        check_type("threshold", options["threshold"], "a number", int, float)
        variables = context.get("vars") or {}
        if options["query"] not in variables:
            raise UserError(
                f"the test has no variable {options['query']!r}; there are: {', '.join(variables) or 'none'}"
            )
        score = _scorer(options["judge"], options["metric"], options["uncited"])
        result = score(variables[options["query"]], output, _parse_list(variables.get(options["contexts"])))
    except UserError as error:
        return {"pass": False, "score": 0.0, "reason": f"error: {error}"}
    return {"pass": result.score >= options["threshold"], "score": result.score, "reason": result.reason}


@cache
def _scorer(judge: str, metric: str, uncited: Uncited) -> SampleScorer:
    return SampleScorer(judge, metric, uncited)


def _parse_list(value: object) -> Any:  # noqa: ANN401  (what a test case may hold; the scorer checks it)
    """Return the passages; a string is a JSON list of them, or the only passage."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except ValueError:
        return [value]
    return parsed if isinstance(parsed, list) else [value]
