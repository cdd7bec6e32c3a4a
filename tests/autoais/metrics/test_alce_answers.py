"""ALCE's measures of the answer itself, by hand; its splitter, ROUGE and MAUVE where the packages are installed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import autoais
from autoais import formats
from autoais.base.errors import FormatError, UserError
from autoais.base.markers.alce import StrictSentence, list_items, open_splitter, strict_items, strict_sentences
from autoais.base.types import Attribution, Judgement, Verdict
from autoais.metrics.alce_answers import check_mauve, mauve, qampari, rouge_lsum, string_match
from tests.conftest import Command, one_line_error
from tests.judges import OneByOne

RIVERS = [["Vistula", "Wisła"], ["Oder"], ["Warta"], ["Bug"], ["San"], ["Narew"]]


class Substring(OneByOne):
    """Supported if a text contains the claim's last word."""

    name = "substring"

    def of(self, one: Attribution) -> Judgement:
        found = any(one.claim.split()[-1].strip(".") in text for text in one.evidence)
        return Judgement(Verdict.ATTRIBUTABLE if found else Verdict.NOT_ATTRIBUTABLE)


def result_file(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "result.json"
    path.write_text(json.dumps({"args": {}, "data": list(rows)}), "utf-8")
    return path


def docs(*texts: str) -> list[dict[str, str]]:
    return [{"title": "T", "text": text} for text in texts]


# --- by hand --------------------------------------------------------------------------------------------------------


def test_a_short_answer_counts_wherever_it_stands_in_the_normalised_text() -> None:
    assert string_match("The capital is Warsaw.", [["warsaw!"], ["Kraków", "Cracow"]]) == 0.5
    assert string_match("It is an anteater", [["the tea", "ant"]]) == 1  # inside a word, as in ALCE
    assert string_match("", [["Warsaw"]]) == 0


def test_lists_are_scored_against_aliases() -> None:
    # Three of four items are right, two of them the same river: 2 of 6 answers, 2 of 5 for recall-5.
    found = qampari("Vistula, the Wisła, Oder, Rhine.", RIVERS)
    assert found["qampari_prec"] == 3 / 4
    assert found["qampari_rec"] == 2 / 6
    assert found["qampari_rec_top5"] == 2 / 5
    assert found["qampari_f1"] == pytest.approx(2 * 0.75 * (1 / 3) / (0.75 + 1 / 3))
    assert found["qampari_f1_top5"] == pytest.approx(2 * 0.75 * 0.4 / 1.15)
    assert qampari("vistula, oder, warta, bug, san", RIVERS)["qampari_rec_top5"] == 1
    assert set(qampari(" ,. ", RIVERS).values()) == {0.0}
    assert qampari("Oder", [["oder"]])["qampari_f1"] == 1


def test_a_list_after_a_chain_of_thought_begins_at_the_first_colon(tmp_path: Path, autoais: Command) -> None:
    text = "Poland has many rivers, so the answers are: Vistula, Oder."
    assert qampari(text, RIVERS)["qampari_prec"] == 1 / 3
    assert qampari(text, RIVERS, cot=True)["qampari_prec"] == 1
    assert qampari("A: B: Oder", [["b: oder"]], cot=True)["qampari_f1"] == 1
    assert set(qampari("Vistula, Oder", RIVERS, cot=True).values()) == {0.0}  # without a colon there is no list
    row = {"question": "Rivers?", "docs": docs("Vistula."), "output": text, "answers": RIVERS}
    path = result_file(tmp_path, row)
    run = autoais("score", path, "--judge", "lexical", "--alce-splitter", "sentencex", "--alce-cot", "--json")
    assert json.loads(run.stdout)["metrics"]["qampari_prec"]["value"] == 1


def test_items_are_cut_at_commas_and_claims_begin_with_the_question() -> None:
    assert list_items("A [1], B [2][3],C. ") == ["A [1]", "B [2][3]", "C"]
    assert strict_items("Which?", "A [1], B [2][3].\nmore") == (
        StrictSentence("Which? A", (0,)),
        StrictSentence("Which? B", (1, 2)),
    )
    assert strict_items("Which?", "A [1, 2]") == (StrictSentence("Which? A", (0,)), StrictSentence("Which? 2", ()))
    assert strict_items("Which?", "") == (StrictSentence("Which?", ()),)  # ALCE counts it, with recall 0


@given(st.text(max_size=40), st.lists(st.lists(st.text(max_size=5), max_size=3), max_size=4))
def test_any_list_has_shares_between_zero_and_one(text: str, answers: list[list[str]]) -> None:
    assert all(0 <= value <= 1 for value in qampari(text, answers).values())


# --- files ----------------------------------------------------------------------------------------------------------


def test_an_asqa_file_has_str_em_of_its_first_line(tmp_path: Path) -> None:
    pairs = [{"question": "?", "short_answers": ["Warsaw"]}, {"question": "?", "short_answers": ["Oder"]}]
    rows: list[dict[str, Any]] = [
        {"question": "Q1?", "qa_pairs": pairs, "docs": docs("Warsaw"), "output": "Warsaw [1], on the\nOder."},
        {"question": "Q2?", "qa_pairs": pairs, "docs": [], "output": "Warsaw and Oder [3]."},
        {"question": "Q3?", "qa_pairs": None, "docs": [], "output": "No reference."},
    ]
    metrics = autoais.score(result_file(tmp_path, *rows), judge="lexical").metrics
    assert (metrics["str_em"].value, metrics["str_em"].n) == (0.75, 2)
    assert metrics["str_hit"].value == 0.5
    assert not {"claims_nli", "qampari_prec", "rougeLsum", "mauve"} & metrics.keys()


def test_a_question_without_an_answer_scores_zero(tmp_path: Path) -> None:
    row = {"question": "Q1?", "qa_pairs": [{"short_answers": ["Warsaw"]}], "docs": [], "output": "Warsaw."}
    benchmark = [autoais.Question("1", "Q1?"), autoais.Question("2", "Q2?")]
    metrics = autoais.score(result_file(tmp_path, row), judge="lexical", questions=benchmark).metrics
    assert (metrics["str_em"].value, metrics["str_em"].n) == (0.5, 2)


def test_claims_are_judged_against_the_answer_without_citations(tmp_path: Path) -> None:
    row = {
        "question": "Why?",
        "claims": ["It flows north", "It freezes", "It is long"],
        "docs": docs("north"),
        "output": "It flows north [1]. It is long.\nIt freezes.",
    }
    judge = Substring()
    report = autoais.score(result_file(tmp_path, row), judge=judge)
    assert report.metrics["claims_nli"].value == pytest.approx(2 / 3)
    assert Attribution("It freezes", ("It flows north. It is long.",)) in judge.asked


def test_undecided_claims_count_as_no_and_are_told(tmp_path: Path) -> None:
    class Unsure(Substring):
        def of(self, one: Attribution) -> Judgement:
            return Judgement(Verdict.UNDECIDED) if "freezes" in one.claim else super().of(one)

    claims = ["It flows north", "It freezes"]
    rows: list[dict[str, Any]] = [
        {"question": f"Why {n}?", "claims": claims, "docs": docs("north"), "output": "It flows north. It freezes."}
        for n in range(3)
    ]
    report = autoais.score(result_file(tmp_path, *rows), judge=Unsure())
    assert (report.metrics["claims_nli"].value, report.metrics["claims_nli"].n) == (0.5, 3)
    assert report.record["metrics"]["claims_nli"]["undecided_as_no"] == 3
    assert report.metrics["claims_nli"].undecided == 3


def test_answers_to_one_question_are_no_independent_ones(tmp_path: Path) -> None:
    def width(questions: int) -> float:
        rows: list[dict[str, Any]] = [
            {"question": f"Q{n % questions}?", "qa_pairs": [{"short_answers": ["Oder"]}], "docs": [], "output": said}
            for n in range(24)
            for said in ("Oder." if n % 2 else "Bug.",)
        ]
        low, high = autoais.score(result_file(tmp_path, *rows), judge="lexical").metrics["str_em"].interval95 or (0, 0)
        return high - low

    assert width(6) > 1.5 * width(24) > 0


def test_a_row_may_have_references_of_several_kinds(tmp_path: Path) -> None:
    row: dict[str, Any] = {
        "question": "?",
        "qa_pairs": [{"short_answers": ["Oder"]}],
        "answers": [["Oder"], ["Bug"]],
        "answer": "Oder.",
        "docs": [],
        "output": "Oder",
    }
    metrics = autoais.score(result_file(tmp_path, row), judge="lexical").metrics
    found = {name: metrics[name].value for name in ("str_em", "str_hit", "qampari_prec", "qampari_rec")}
    assert found == {"str_em": 1, "str_hit": 1, "qampari_prec": 1, "qampari_rec": 0.5}


def test_a_list_is_judged_item_by_item_as_alce_does(tmp_path: Path) -> None:
    row = {
        "sample_id": "s",
        "question": "Which rivers?",
        "answers": [["Vistula", "Wisła"], ["Oder"]],
        "docs": docs("Vistula", "Oder"),
        "output": "Vistula [1], Oder [1][2], Rhine [9].",
    }
    judge = Substring()
    path = result_file(tmp_path, row)
    metrics = autoais.score(path, judge=judge).metrics
    assert {one.claim for one in judge.asked} == {
        "Which rivers? Vistula",
        "Which rivers? Oder",
        "Which rivers? Rhine",
    } - {
        "Which rivers? Rhine"  # its only citation is out of range: nothing to judge
    }
    assert metrics["citation_recall_strict"].value == pytest.approx(2 / 3)
    assert metrics["citation_precision_strict"].value == pytest.approx(2 / 3)
    assert metrics["citation_recall"].value == pytest.approx(2 / 3)
    assert metrics["qampari_prec"].value == pytest.approx(2 / 3)
    (answer,) = formats.read(path)
    assert [(one.text, one.cites) for one in answer.sentences] == [
        ("Vistula", ("doc 1",)), ("Oder", ("doc 1", "doc 2")), ("Rhine", ())
    ]  # fmt: skip
    assert json.loads("".join(formats.write([answer], "alce")))["data"][0]["output"] == row["output"]
    own = tmp_path / "own.jsonl"
    own.write_text("\n".join(formats.write([answer], "answers")) + "\n", "utf-8")
    assert list(formats.read(own)) == [answer]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("qa_pairs", [{"question": "?"}], "'qa_pairs[0].short_answers' is missing"),
     ("claims", "one", "'claims' should be a list of strings or null, found a string"),
     ("answers", [["a", 1]], "'answers[0]' should be"),
     ("annotations", [{"long_answer": 1}], "'annotations[0].long_answer' should be a string or null, found an")],
)  # fmt: skip
def test_broken_references_are_named(tmp_path: Path, field: str, value: object, message: str) -> None:
    path = result_file(tmp_path, {"question": "?", "docs": [], "output": "", field: value})
    with pytest.raises(FormatError) as error:
        autoais.score(path, judge="lexical")
    assert str(error.value).startswith(f"{path}:1: data[0]: field {message}")


def test_references_of_another_shape_in_our_own_rows_are_left_alone() -> None:
    for extra in (
        {"qa_pairs": 1},
        {"qa_pairs": [1]},
        {"claims": [1]},
        {"extra": {"answers": [[1]]}},
        {"annotations": 3},
    ):
        row = {"id": "1", "question": "?", "sentences": [{"text": "So."}], "output": "So.", **extra}
        assert not {"str_em", "claims_nli"} & autoais.score([row], judge="lexical").metrics.keys()


# --- the packages that ALCE uses ------------------------------------------------------------------------------------


def test_the_splitter_is_named_and_an_unknown_one_refused(tmp_path: Path, autoais: Command) -> None:
    path = result_file(tmp_path, {"question": "?", "docs": docs("So."), "output": "So [1]. No [1]."})
    run = autoais("score", path, "--judge", "lexical", "--alce-splitter", "sentencex", "--json")
    assert json.loads(run.stdout)["metrics"]["citation_recall_strict"]["splitter"].startswith("sentencex 1.")
    says = autoais("score", path, "--judge", "lexical", "--alce-splitter", "sentencex").stdout
    assert "ALCE's sentences: sentencex" in says
    assert "another splitter than ALCE's" in says
    one_line_error(
        autoais("score", path, "--judge", "lexical", "--alce-splitter", "spacy"), "there are: nltk, sentencex"
    )


def has_nltk() -> bool:
    try:
        return open_splitter("nltk").name.startswith("nltk")
    except UserError:
        return False


def test_without_nltk_the_line_says_how_to_install_it() -> None:
    if has_nltk():
        pytest.skip("NLTK and its data are installed")
    with pytest.raises(UserError, match=r"\.\[alce\]..*punkt_tab"):
        open_splitter("nltk")
    assert open_splitter().name.startswith("sentencex")


def test_with_nltk_sentences_are_those_of_the_script() -> None:
    if not has_nltk():
        pytest.skip("needs the extra alce and NLTK's punkt_tab")
    assert open_splitter().name.startswith("nltk ")
    nltk = open_splitter()
    assert nltk.name.startswith("nltk ")
    assert strict_sentences("The cat sat. [1] The dog ran. [2]", nltk) == (
        StrictSentence("The cat sat.", ()),
        StrictSentence("The dog ran.", (0,)),
        StrictSentence("", (1,)),
    )
    # Where the splitters differ: for NLTK a single letter is an initial, and an ordinal's dot ends a sentence.
    for text, sentences in (("A is B. [1] C is D. [2]", 2), ("It left. No. 3 is here.", 3)):
        found = [len(strict_sentences(text, open_splitter(name))) for name in ("nltk", "sentencex")]
        assert found[0] == sentences != found[1]


def test_rouge_is_that_of_rouge_score_with_the_better_reference(tmp_path: Path) -> None:
    pytest.importorskip("rouge_score", reason="needs the extra alce")
    splitter = open_splitter("sentencex")
    assert rouge_lsum("The cat sat. It ran.", ["The cat sat. It ran."], splitter) == 1
    # Of five words each, four in common: precision = recall = F = .8.
    assert rouge_lsum("The old cat sat down.", ["no", "The old cat sat there."], splitter) == pytest.approx(0.8)
    notes = [{"long_answer": "Nothing alike."}, {"long_answer": "The old cat sat there."}, {"long_answer": "unused"}]
    row = {"question": "?", "annotations": notes, "answer": "unused", "docs": [], "output": "The old cat sat down [1]."}
    metric = autoais.score(result_file(tmp_path, row), judge="lexical").metrics["rougeLsum"]
    assert metric.value == pytest.approx(0.8)
    del row["annotations"]  # ELI5 has one answer by a person
    row["answer"] = "The old cat sat there."
    assert autoais.score(result_file(tmp_path, row), judge="lexical").metrics["rougeLsum"].value == metric.value


def test_without_rouge_score_the_reason_says_how_to_install_it(tmp_path: Path) -> None:
    try:
        import rouge_score  # noqa: F401
    except ImportError:
        row = {"question": "?", "answer": "The cat.", "docs": [], "output": "The cat."}
        metric = autoais.score(result_file(tmp_path, row), judge="lexical").metrics["rougeLsum"]
        assert metric.value is None
        assert 'pip install -e ".[alce]"' in str(metric.reason)
    else:
        pytest.skip("rouge-score is installed")


def test_mauve_needs_a_folder_and_a_package_before_any_work(tmp_path: Path, autoais: Command) -> None:
    path = result_file(tmp_path, {"question": "?", "answer": "A.", "docs": [], "output": "A."})
    result = autoais("score", path, "--judge", "lexical", "--mauve", tmp_path / "gpt2-large")
    expected = "GPT-2 large" if _has("mauve") else 'pip install -e ".[mauve]"'
    one_line_error(result, expected)


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def test_mauve_of_equal_texts_is_one(tmp_path: Path) -> None:
    pytest.importorskip("mauve", reason="needs the extra mauve")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

    folder = tmp_path / "tiny-gpt2"
    GPT2Model(GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1, n_positions=512)).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "sat": 2, "[UNK]": 3}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    made: Any = PreTrainedTokenizerFast
    made(tokenizer_object=tokenizer, eos_token="[UNK]", unk_token="[UNK]").save_pretrained(folder)
    check_mauve(folder)
    pairs = [("the cat sat " * n, "the cat sat " * n) for n in range(1, 21)]
    assert mauve(pairs, folder) == pytest.approx(1, abs=0.01)
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match="must contain 'gpt2'"):
        check_mauve(tmp_path / "other")
