"""Scorers for other evaluators, inside the real packages; `make test-extras` installs them and runs these tests."""

import asyncio
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autoais.base.errors import UserError
from autoais.base.types import Attribution, Judgement, Verdict
from autoais.integrations import METRICS, SampleScorer
from autoais.integrations.promptfoo import get_assert
from autoais.judges.lexical import LexicalJudge
from tests.judges import OneByOne

QUESTION = "What is the capital of Poland?"
POLAND = "Warsaw is the capital of Poland."
CURIE = {"id": "c#1", "title": "Marie Curie", "text": "Marie Curie moved to Paris in 1891."}
CONTEXTS: list[object] = [POLAND, CURIE]
GOOD = "Warsaw is the capital of Poland [1]. Marie Curie moved to Paris in 1891 [2]."
HALF = "Warsaw is the capital of Poland [1]. Warsaw has nine opera houses [2]."
SUPPORTED = "supported by [1]: 'Warsaw is the capital of Poland.'"
NOT_SUPPORTED = "not supported by [2] c#1: 'Warsaw has nine opera houses.'"


def needed(module: str, package: str) -> ModuleType:
    """Return the module, or skip if its package is not there; one that is there but does not start is a failure."""
    if find_spec(module.split(".")[0]) is None:
        pytest.skip(f"needs {package}: make test-extras")
    return import_module(module)


ROOT = Path(__file__).parents[3]


class Undecided(OneByOne):
    name = "undecided.v1"
    says = Judgement(Verdict.UNDECIDED, None, "the server did not answer")


# --- one answer ------------------------------------------------------------------------------------------------


def test_an_answer_is_scored_by_the_contexts_that_it_cites() -> None:
    good, half = SampleScorer()(QUESTION, GOOD, CONTEXTS), SampleScorer()(QUESTION, HALF, CONTEXTS)
    assert (good.score, half.score) == (1.0, 0.0)
    assert half.reason.splitlines()[0].startswith(SUPPORTED)
    assert half.reason.splitlines()[1].startswith(NOT_SUPPORTED)
    assert "'Marie Curie. Marie Curie moved to Paris in 1891.'" in half.reason


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_has_a_value_and_tells_good_from_half(metric: str) -> None:
    score = SampleScorer("lexical", metric)
    good, half = score(QUESTION, GOOD, CONTEXTS).score, score(QUESTION, HALF, CONTEXTS).score
    assert good == 1
    assert half == (0 if metric in ("autoais", "hagrid") else 0.5)


def test_the_judge_reads_the_sentence_and_the_passage_with_its_title() -> None:
    seen: list[Attribution] = []

    class Seeing(LexicalJudge):
        def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
            seen.extend(attributions)
            return super().decide(attributions)

    assert SampleScorer(Seeing(), "sentences")(QUESTION, HALF, CONTEXTS).score == 0.5
    evidence = "Marie Curie. Marie Curie moved to Paris in 1891."
    assert Attribution("Warsaw has nine opera houses.", (evidence,), QUESTION) in seen
    assert len(seen) == 2


def test_questions_in_an_answer_claim_nothing() -> None:
    scored = SampleScorer()(QUESTION, "What is it? " + GOOD, CONTEXTS)
    assert scored.score == 1
    assert "What is it?" not in scored.reason


@pytest.mark.parametrize(("answer", "says"), [("", "is empty"), ("Warsaw is the capital of Poland.", "cites nothing")])
def test_an_answer_without_citations_is_an_error_or_zero_or_judged_on_all(answer: str, says: str) -> None:
    with pytest.raises(
        UserError, match=rf"^the answer {says}: .*uncited='zero' scores.*uncited='contexts' judges"
    ) as e:
        SampleScorer()(QUESTION, answer, CONTEXTS)
    assert "\n" not in str(e.value)
    assert SampleScorer(uncited="zero")(QUESTION, answer, CONTEXTS).score == 0
    on_all = SampleScorer(uncited="contexts")(QUESTION, answer, CONTEXTS)
    assert on_all.score == (1 if answer else 0)
    assert on_all.reason.startswith("supported by [1], [2] c#1" if answer else "the answer is empty")


def test_a_marker_without_a_context_is_a_citation_that_supports_nothing() -> None:
    scored = SampleScorer()(QUESTION, "Warsaw is the capital of Poland [3].", CONTEXTS)
    assert scored.score == 0
    assert scored.reason == "not supported: 'Warsaw is the capital of Poland.' (no text is known for what was cited)"
    assert SampleScorer(uncited="zero")(QUESTION, "Warsaw is the capital of Poland [1].", []).score == 0


@pytest.mark.parametrize(
    ("sample", "says"),
    [
        ((QUESTION, GOOD, None), "the sample has no contexts"),
        ((QUESTION, GOOD, []), "the sample has no contexts"),
        ((QUESTION, GOOD, POLAND), "contexts should be a list of texts, found one str; put it in a list"),
        ((QUESTION, GOOD, {"text": POLAND}), "contexts should be a list of texts, found one dict"),
        ((QUESTION, GOOD, 3), "contexts should be a list of texts, found int"),
        ((QUESTION, GOOD, [POLAND, 3]), "context 2 should be a text, a Passage or a dict with 'text', found int"),
        ((QUESTION, GOOD, [{"id": "x"}]), "context 1 should be a text, a Passage or a dict with 'text', found dict"),
        ((QUESTION, GOOD, [CURIE, CURIE]), "context 2 has the id 'c#1' of another context"),
        ((QUESTION, GOOD, [{"id": 0, "text": POLAND}] * 2), "context 2 has the id '0' of another context"),
        ((QUESTION, 3, CONTEXTS), "the answer should be a string, found int"),
        ((3, GOOD, CONTEXTS), "the question should be a string, found int"),
    ],
)
def test_bad_samples_are_errors_of_one_line(sample: tuple[Any, Any, Any], says: str) -> None:
    with pytest.raises(UserError) as error:
        SampleScorer()(*sample)
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"judge": 3}, "judge should be a name"),
        ({"judge": "mini"}, "no judge called 'mini'"),
        ({"metric": "em"}, "no metric of one answer called 'em'; there are: autoais,"),
        ({"uncited": "skip"}, "uncited should be one of error, zero, contexts, found 'skip'"),
    ],
)
def test_bad_options_are_errors_before_the_first_sample(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=rf"^{says}"):
        SampleScorer(**options)


def test_what_the_judge_did_not_decide_has_no_score() -> None:
    with pytest.raises(UserError, match=r"^autoais has no value: nothing was decided"):
        SampleScorer(Undecided())(QUESTION, GOOD, CONTEXTS)


def test_importing_autoais_imports_no_evaluator() -> None:
    code = (
        "import sys, autoais.api, autoais.integrations, autoais.integrations.promptfoo\n"
        "print(sorted({'inspect_ai', 'deepeval', 'ragas', 'autojudge_base'} & set(sys.modules)))"
    )
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- promptfoo -------------------------------------------------------------------------------------------------


def context(**config: object) -> dict[str, Any]:
    """What promptfoo passes to a Python assertion (`AssertionValueFunctionContext`), without what we don't read."""
    return {"prompt": "", "vars": {"query": QUESTION, "context": CONTEXTS}, "config": config}


def test_promptfoo_gets_a_grading_result() -> None:
    good, half = get_assert(GOOD, context()), get_assert(HALF, context(metric="sentences"))
    assert good["pass"] is True
    assert good["score"] == 1.0
    assert half == {"pass": False, "score": 0.5, "reason": half["reason"]}
    assert NOT_SUPPORTED in half["reason"]
    assert get_assert(HALF, context(metric="sentences", threshold=0.5, judge="lexical"))["pass"] is True
    json.dumps(half)


@pytest.mark.parametrize("passages", [[POLAND], json.dumps([POLAND]), json.dumps([{"text": POLAND}]), POLAND])
def test_promptfoo_passages_may_be_a_list_or_a_string(passages: object) -> None:
    found = {"vars": {"q": QUESTION, "docs": passages}, "config": {"query": "q", "contexts": "docs"}}
    assert get_assert("Warsaw is the capital of Poland [1].", found)["pass"] is True


@pytest.mark.parametrize(
    ("output", "given", "says"),
    [
        ("", context(), "the answer is empty"),
        (GOOD, {"vars": {"query": QUESTION}}, "the sample has no contexts"),
        (GOOD, {"vars": {"topic": QUESTION}, "config": None}, "the test has no variable 'query'; there are: topic"),
        (GOOD, {}, "the test has no variable 'query'; there are: none"),
        (GOOD, context(judge="mini"), "no judge called 'mini'"),
        (GOOD, context(treshold=1), "unknown option 'treshold'; there are: judge,"),
        (GOOD, context(threshold="half"), "threshold should be a number, found str"),
        ({"answer": "x"}, context(), "the answer should be a string, found dict"),
    ],
)
def test_promptfoo_shows_an_error_as_the_reason(output: object, given: dict[str, Any], says: str) -> None:
    result = get_assert(output, given)  # type: ignore[arg-type]
    assert result["pass"] is False
    assert result["score"] == 0
    assert result["reason"].startswith(f"error: {says}")
    assert "\n" not in result["reason"]


PAGE = (ROOT / "docs/handbook/reference/integrations.md").read_text("utf-8")


@pytest.mark.filterwarnings("default")  # of their packages
@pytest.mark.parametrize(("needs", "title"), [("inspect_ai", "Inspect"), ("deepeval", "DeepEval"), ("ragas", "ragas")])
def test_examples_of_the_handbook(needs: str, title: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "true")
    needed(needs, needs)
    names: dict[str, object] = {"__name__": "example"}
    exec(PAGE.split(f"## {title}\n")[1].split("```py\n")[1].split("```")[0], names)
    assert {"inspect_ai": "cited", "deepeval": "case", "ragas": "result"}[needs] in names


PROMPTFOO = os.environ.get("PROMPTFOO") or shutil.which("promptfoo")


@pytest.mark.slow
@pytest.mark.skipif(PROMPTFOO is None, reason="needs promptfoo: npm install -g promptfoo, or PROMPTFOO=its path")
def test_in_promptfoo_itself(tmp_path: Path) -> None:
    assert PROMPTFOO is not None
    (tmp_path / "citations.py").write_text("from autoais.integrations.promptfoo import get_assert\n", "utf-8")
    asserted = [{"type": "python", "value": "file://citations.py", "config": {"metric": "sentences"}}]
    found = {"query": QUESTION, "context": CONTEXTS}
    config = {
        "prompts": ["{{answer}}"],
        "providers": ["echo"],
        "tests": [
            {"vars": found | {"answer": text}, "assert": asserted, "options": {"disableVarExpansion": True}}
            for text in (GOOD, HALF, "")
        ],
    }
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config), "utf-8")
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}", "PROMPTFOO_PYTHON": sys.executable, "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(tmp_path / "home"),
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    }  # fmt: skip
    argv = [PROMPTFOO, "eval", "--no-cache", "-o", "out.json"]
    subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=300)
    results = json.loads((tmp_path / "out.json").read_text("utf-8"))["results"]["results"]
    graded = [one["gradingResult"]["componentResults"][0] for one in results]
    assert [one["score"] for one in graded] == [1, 0.5, 0]
    assert [one["pass"] for one in graded] == [True, False, False]
    assert NOT_SUPPORTED in graded[1]["reason"]


# --- inspect_ai ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")  # of their packages
def test_in_inspect_ai(tmp_path: Path) -> None:
    inspect_ai = needed("inspect_ai", "inspect-ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalLog
    from inspect_ai.model import ModelOutput
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    from autoais.integrations.inspect_ai import citation_support

    @solver  # type: ignore[untyped-decorator, unused-ignore]  # the mock model would download a tokenizer
    def recite() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.output = ModelOutput.from_content("none", state.metadata["answer"])
            for key, value in state.metadata.get("stored", {}).items():
                state.store.set(key, value)
            return state

        return solve

    def run(answers: list[str], metadata: dict[str, Any], **options: str) -> EvalLog:
        samples = [Sample(input=QUESTION, metadata=metadata | {"answer": answer}) for answer in answers]
        task = inspect_ai.Task(dataset=samples, solver=recite(), scorer=citation_support(**options))
        (log,) = inspect_ai.eval(task, model=None, log_dir=str(tmp_path), display="none")
        return log

    log = run([GOOD, HALF], {"contexts": CONTEXTS}, metric="sentences")
    assert log.status == "success", log.error
    scores = [sample.scores["citation_support"] for sample in log.samples]
    assert [one.value for one in scores] == [1.0, 0.5]
    assert NOT_SUPPORTED in scores[1].explanation
    assert log.results.scores[0].metrics["mean"].value == 0.75
    stored = run([GOOD], {"stored": {"passages": CONTEXTS}}, contexts="passages")
    assert stored.samples[0].scores["citation_support"].value == 1.0
    for answers, metadata, says in (
        (["Warsaw."], {"contexts": CONTEXTS}, "the answer cites nothing"),
        ([GOOD], {}, "has no 'contexts' in its metadata, nor in its store"),
        ([GOOD], {"contexts": POLAND}, "contexts should be a list of texts"),
    ):
        failed = run(answers, metadata)
        assert failed.status == "error"
        assert says in failed.error.message


# --- DeepEval --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
def test_in_deepeval(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # it keeps a folder of its own there
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    needed("deepeval", "deepeval")
    from deepeval import evaluate
    from deepeval.evaluate.configs import DisplayConfig
    from deepeval.test_case import LLMTestCase, RetrievedContextData

    from autoais.integrations.deepeval import CitationSupportMetric

    contexts = [POLAND, RetrievedContextData(context=CURIE["text"], source="Marie Curie")]
    cases = [LLMTestCase(input=QUESTION, actual_output=text, retrieval_context=contexts) for text in (GOOD, HALF)]
    metric = CitationSupportMetric(metric="sentences", threshold=0.8)
    assert metric.measure(cases[1]) == 0.5
    assert metric.reason is not None
    assert "not supported by [2]: 'Warsaw has nine opera houses.'" in metric.reason
    assert not metric.is_successful()
    display = DisplayConfig(show_indicator=False, print_results=False)
    found = evaluate(cases, [metric], display_config=display).test_results
    by_case = sorted(((one.success, one.metrics_data[0].score) for one in found), reverse=True)
    assert by_case == [(True, 1.0), (False, 0.5)]
    assert found[0].metrics_data[0].name == "Citation support (sentences)"
    for case, says in (
        (LLMTestCase(input=QUESTION, actual_output=GOOD), "the sample has no contexts"),
        (LLMTestCase(input=QUESTION, actual_output="", retrieval_context=contexts), "the answer is empty"),
        ("a string", "the test case should be an LLMTestCase, found str"),
    ):
        with pytest.raises(UserError, match=rf"^{says}"):
            metric.measure(case)


# --- ragas -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
def test_in_ragas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "true")
    needed("ragas", "ragas")
    from autoais.integrations.ragas import CitationSupport

    metric = CitationSupport(metric="sentences")
    rows: list[dict[str, Any]] = [
        {"user_input": QUESTION, "response": text, "retrieved_contexts": [POLAND, CURIE["text"]]}
        for text in (GOOD, HALF)
    ]
    results = metric.batch_score(rows)
    assert [one.value for one in results] == [1.0, 0.5]
    assert "not supported by [2]: 'Warsaw has nine opera houses.'" in (results[1].reason or "")
    assert asyncio.run(metric.ascore(**rows[0])).value == 1.0
    assert math.isclose(float(metric.score(**rows[1])), 0.5)
    assert metric.name == "citation_support"
    for row, says in (
        ({"response": None}, "the answer is empty"),
        ({"response": "Warsaw."}, "the answer cites nothing"),
        ({"retrieved_contexts": None}, "the sample has no contexts"),
    ):
        with pytest.raises(UserError, match=rf"^{says}"):
            metric.score(**rows[0] | row)
