"""Tiny real models, set by hand to look for three words, saved and loaded as any other."""

import json
import math
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoais.base.errors import UserError
from autoais.base.types import Attribution, Judgement, Span, Verdict
from autoais.judges import open_judge
from autoais.judges.windows import windows
from autoais.testing import check_judge

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from autoais.judges.hf import FAMILIES, HfJudge, label_verdicts  # noqa: E402

CLAIM = "Warsaw leads Poland."
FILLER = "It is a river. "
NLI = ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"]
# The models look for words: "capital" supports, "not" contradicts, anything else is neutral, and nothing supports
# what is said of penguins.
PREMISES = [
    "Warsaw is the capital of Poland, on the Vistula.",
    "Warsaw is the capital of Poland.",
    "the capital",
    "It is a river. On the Vistula the capital lies.",
    "Warsaw is not here.",
    "not",
    "On the Vistula.",
    FILLER * 3,
    "",
]
CLAIMS = [CLAIM, "Penguins swim well."]
SIGNALS = ["capital", "not", "Penguins"]
WORDS = sorted({w for text in [*PREMISES, *CLAIMS] for w in text.replace(".", " .").replace(",", " ,").split()})
PROMPT = "premise : hypothesis predict Claim Reference 1 0 Attributable Contradictory Extrapolatory".split()


def save_tokenizer(folder: Path, marks: dict[str, str], single: str, pair: str, names: list[str]) -> None:
    """Whole words and single digits; `marks` are pad, unk, eos and so on; 0 is the padding."""
    every = list(dict.fromkeys([marks["pad_token"], *marks.values(), *PROMPT, *WORDS]))
    core = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(every)}, marks["unk_token"])
    )
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    specials = [(mark, core.token_to_id(mark)) for mark in marks.values()]
    core.post_processor = tokenizers.processors.TemplateProcessing(single=single, pair=pair, special_tokens=specials)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=names, **marks)
    fast.save_pretrained(folder)


# The networks are set by hand, so that each verdict is certain on any processor: what is not set is zero. Every token
# has a constant and one feature for each signal. A head of attention for each signal finds its tokens, wherever they
# are. One more head takes the mean of a small number that every token has, so that no token, and no padding, may be
# lost or added without a change of the probability. The answer is linear in (constant, capital, not, Penguins, mean).
ATTRIBUTABLE = [0.0, 2.0, -2.0, -2.0, 1.0]
CONTRADICTORY = [0.0, 0.0, 2.0, 0.0, 0.0]
EXTRAPOLATORY = [1.0, 0.0, 0.0, 0.0, 0.0]
NOT_ATTRIBUTABLE = [1.0, 0.0, 2.0, 0.0, 0.0]
CONSTANT, SMALL, MEAN, ANSWER = 0, 4, 5, 6  # the features that are no signal; 1 to 3 are the signals
HEADS, HEAD_SIZE = 4, 4


def features(tokenizer: Any) -> Any:  # noqa: ANN401
    """A row of eight features for each token of the vocabulary."""
    rows = torch.zeros((len(tokenizer), 8))
    rows[:, CONSTANT] = 1
    for n, signal in enumerate(SIGNALS, 1):
        rows[tokenizer.convert_tokens_to_ids(signal), n] = 1
    rows[:, SMALL] = torch.tensor([(token * 7 % 11 - 5) / 50 for token in range(len(tokenizer))])
    rows[tokenizer.pad_token_id, SMALL] = 0.1
    return rows


def clear(network: Any) -> None:  # noqa: ANN401
    """Set all weights to 0, and those of the norms to 1."""
    for name, parameter in network.named_parameters():
        parameter.data.fill_(float("norm" in name.lower() and name.endswith("weight")))


def save_classifier(folder: Path, kind: str, labels: list[str] | None) -> Path:
    """A BERT or RoBERTa; without `labels`, two unnamed ones and MiniCheck's input."""
    bert = kind == "bert"
    marks = (
        {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        if bert
        else {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    )
    first, last = ("[CLS]", "[SEP]") if bert else ("<s>", "</s>")
    middle = last if bert else f"{last} {last}"
    types = (":0", ":1") if bert else ("", "")
    names = ["input_ids", *(["token_type_ids"] if bert else []), "attention_mask"]
    pair = f"{first} $A {middle} $B{types[1]} {last}{types[1]}"
    save_tokenizer(folder, marks, f"{first} $A {last}", pair, names)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    config = (transformers.BertConfig if bert else transformers.RobertaConfig)(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        intermediate_size=8,
        max_position_embeddings=130,
        pad_token_id=0,
        num_labels=len(labels or "01"),
    )
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {name: i for i, name in enumerate(labels)}
    factory = transformers.BertForSequenceClassification if bert else transformers.RobertaForSequenceClassification
    network = factory(config)
    clear(network)
    base = network.bert if bert else network.roberta
    # A norm subtracts the mean of all inputs, so each feature has an input and its negative.
    base.embeddings.word_embeddings.weight.data[:, 0::2] = features(tokenizer)
    base.embeddings.word_embeddings.weight.data[:, 1::2] = -features(tokenizer)
    attention = base.encoder.layer[0].attention
    for head, feature in enumerate((1, 2, 3, SMALL)):
        start = head * HEAD_SIZE
        if feature != SMALL:
            attention.self.query.weight.data[start, 2 * CONSTANT] = 1
            attention.self.key.weight.data[start, 2 * feature] = 8
        attention.self.value.weight.data[start, 2 * feature] = 1
        target = 2 * (MEAN if feature == SMALL else feature)
        attention.output.dense.weight.data[target : target + 2, start] = torch.tensor([1.0, -1.0])
    dense, output = (base.pooler.dense, network.classifier) if bert else (
        network.classifier.dense, network.classifier.out_proj
    )  # fmt: skip
    for n, feature in enumerate((CONSTANT, 1, 2, 3, MEAN)):
        dense.weight.data[n, 2 * feature] = 0.5
    rows = {
        Verdict.ATTRIBUTABLE: ATTRIBUTABLE,
        Verdict.CONTRADICTORY: CONTRADICTORY,
        Verdict.EXTRAPOLATORY: EXTRAPOLATORY,
        Verdict.NOT_ATTRIBUTABLE: NOT_ATTRIBUTABLE,
    }
    verdicts = (
        label_verdicts("x", config.id2label) if labels else enumerate([Verdict.NOT_ATTRIBUTABLE, Verdict.ATTRIBUTABLE])
    )
    for label, verdict in verdicts:
        output.weight.data[label, :5] = 4 * torch.tensor(rows[verdict])
    network.save_pretrained(folder)
    return folder


def save_t5(folder: Path, answers: tuple[str, str, str]) -> Path:
    """A T5 that answers neutral, contradictory and attributable with these words."""
    marks = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
    save_tokenizer(folder, marks, "$A </s>", "$A $B </s>", ["input_ids", "attention_mask"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=len(tokenizer),
            d_model=16,
            d_kv=HEAD_SIZE,
            d_ff=8,
            num_layers=1,
            num_heads=HEADS,
            dropout_rate=0.0,
            pad_token_id=0,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=0,
        )
    )
    clear(network)
    neutral, against, support = tokenizer.convert_tokens_to_ids(list(answers))
    # The embeddings are also the output layer: tokens are read from the first eight inputs, answers from the others.
    embeddings = network.shared.weight.data
    embeddings[:, :8] = features(tokenizer)
    embeddings[[neutral, against, support], ANSWER] = 1
    embeddings[tokenizer.eos_token_id, ANSWER] = 400  # after an answer comes the end
    embeddings[neutral, CONSTANT] = 5
    embeddings[against, 8:13] += 4 * torch.tensor(CONTRADICTORY)
    embeddings[support, 8:13] += 4 * torch.tensor(ATTRIBUTABLE)
    attention = network.decoder.block[0].layer[1].EncDecAttention
    for head, feature in enumerate((1, 2, 3, SMALL)):
        start = head * HEAD_SIZE
        if feature != SMALL:
            attention.q.weight.data[start, CONSTANT] = 1
            attention.k.weight.data[start, feature] = 2
        attention.v.weight.data[start, feature] = 0.35
        attention.o.weight.data[8 + feature, start] = 1
    network.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # models this small only lose by more
    root = tmp_path_factory.mktemp("models")
    yield {
        "nli": save_classifier(root / "nli", "bert", NLI),
        "two-way": save_classifier(root / "two-way", "roberta", ["entailment", "not_entailment"]),
        "minicheck": save_classifier(root / "minicheck", "roberta", None),
        "true": save_t5(root / "true", ("0", "0", "1")),
        "minicheck-t5": save_t5(root / "minicheck-t5", ("0", "0", "1")),
        "attrscore": save_t5(root / "attrscore", ("Extrapolatory", "Contradictory", "Attributable")),
    }
    torch.set_num_threads(threads)


def open_hf(models: dict[str, Path], model: str, **options: object) -> HfJudge:
    family = model if model in ("minicheck-t5", "attrscore") else None
    judge = open_judge(f"hf:{models[model]}", **{"family": family, "template": "statement.v1", **options})
    assert isinstance(judge, HfJudge)
    return judge


def copy_model(folder: Path, to: Path, without: str = "") -> Path:
    return Path(shutil.copytree(folder, to, ignore=shutil.ignore_patterns(without)))


@pytest.mark.parametrize("model", ["nli", "two-way", "minicheck", "true", "minicheck-t5", "attrscore"])
def test_every_family_keeps_the_contract(models: dict[str, Path], model: str) -> None:
    check_judge(open_hf(models, model))


@pytest.mark.parametrize("model", ["nli", "attrscore"])
def test_three_way_models_tell_three_verdicts(models: dict[str, Path], model: str) -> None:
    texts = ("the capital", "Warsaw is not here.", "On the Vistula.")
    verdicts = [j.verdict for j in open_hf(models, model).judge([Attribution(CLAIM, (text,)) for text in texts])]
    assert verdicts == [Verdict.ATTRIBUTABLE, Verdict.CONTRADICTORY, Verdict.EXTRAPOLATORY]


def test_models_are_asked_as_they_were_trained() -> None:
    asked = {
        name: family.prompt.format(premise="P", hypothesis="H", eos="<e>")
        for name, family in FAMILIES.items()
        if family.prompt
    }
    assert asked["true"] == "premise: P hypothesis: H"
    assert asked["minicheck-t5"] == "predict: P<e>H"
    assert asked["minicheck"] == "P<e>H"
    assert asked["attrscore"].startswith(
        "As an Attribution Validator, your task is to verify whether a given reference"
    )
    assert asked["attrscore"].endswith("based on the information provided in the context. \n\nClaim: H \n Reference: P")


def test_names_say_all_that_changes_a_verdict(models: dict[str, Path]) -> None:
    def tail(model: str, **options: object) -> str:
        return open_hf(models, model, **options).name.split("@")[1].split("-")[1][8:]

    assert open_hf(models, "true").name.startswith("true@local-")
    assert tail("true", template=None) == "/512/aqa.v1+score"
    assert tail("true", decision="decode", max_length=300) == "/300/statement.v1+decode"
    assert tail("true", compat="google-2023") == "/32768/statement.v1+decode"
    assert tail("minicheck") == "/129/statement.v1+minicheck"
    assert tail("nli", template=None) == "/130/auto.v1"
    assert open_hf(models, "attrscore", template=None).name.endswith("/2048/question-answer.v1+attrscore+decode")
    assert open_hf(models, "minicheck-t5").name.endswith("/512/statement.v1+minicheck-t5+score")


def test_a_folders_revision_changes_with_its_files(models: dict[str, Path], tmp_path: Path) -> None:
    again = copy_model(models["nli"], tmp_path / "nli")
    name = open_hf(models, "nli").name
    assert open_hf({"nli": again}, "nli").name == name
    (again / "README.md").write_text("words")
    assert open_hf({"nli": again}, "nli").name == name
    config = json.loads((again / "config.json").read_text())
    (again / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    assert open_hf({"nli": again}, "nli").name != name


def test_probabilities_are_those_of_the_models_own_code(models: dict[str, Path]) -> None:
    pairs = [(text, claim) for text in PREMISES if text for claim in CLAIMS]
    attributions = [Attribution(claim, (text,)) for text, claim in pairs]
    tokenizer = transformers.AutoTokenizer.from_pretrained(models["nli"])
    network = transformers.AutoModelForSequenceClassification.from_pretrained(models["nli"])
    for (text, claim), judgement in zip(pairs, open_hf(models, "nli").judge(attributions), strict=True):
        logits = network(**tokenizer(text, claim, return_tensors="pt")).logits
        assert judgement.probability == pytest.approx(logits.softmax(-1)[0, 2].item(), abs=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(models["minicheck-t5"])
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(models["minicheck-t5"])
    zero, one = tokenizer.convert_tokens_to_ids(["0", "1"])
    for (text, claim), judgement in zip(pairs, open_hf(models, "minicheck-t5").judge(attributions), strict=True):
        asked = tokenizer(f"predict: {text}</s>{claim}", return_tensors="pt")
        logits = network(**asked, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
        assert judgement.probability == pytest.approx(logits[[zero, one]].softmax(-1)[1].item(), abs=1e-5)


@pytest.mark.parametrize("model", ["nli", "minicheck", "true", "attrscore"])
def test_batches_change_nothing(models: dict[str, Path], model: str) -> None:
    texts = [FILLER * (i % 7) + text for i, text in enumerate([*PREMISES] * 4)]
    pairs = [Attribution(claim, (text,)) for text in texts for claim in CLAIMS]
    one_by_one = open_hf(models, model, batch_size=1).judge(pairs)
    for size in (3, 16):
        together = open_hf(models, model, batch_size=size).judge(pairs)
        assert [j.verdict for j in together] == [j.verdict for j in one_by_one]
        assert [j.evidence for j in together] == [j.evidence for j in one_by_one]
        for one, other in zip(together, one_by_one, strict=True):
            assert one.probability == pytest.approx(other.probability, abs=1.1e-5)


def test_decoding_and_scoring_are_two_rules(models: dict[str, Path]) -> None:
    pairs = [Attribution(CLAIM, (text,)) for text in ("the capital", "On the Vistula.")]
    scored, decoded = (open_hf(models, "true", decision=rule).judge(pairs) for rule in ("score", "decode"))
    assert [j.verdict for j in scored] == [Verdict.ATTRIBUTABLE, Verdict.NOT_ATTRIBUTABLE]
    assert decoded == scored


def test_text_that_is_no_answer_is_undecided(models: dict[str, Path]) -> None:
    pair = Attribution(CLAIM, ("the capital",))
    (odd,) = open_hf(models, "attrscore", family="true", decision="decode").judge([pair])
    assert odd.verdict is Verdict.UNDECIDED
    assert odd.reason == "the model wrote 'Attributable'"
    assert odd.probability is not None
    (scored,) = open_hf(models, "attrscore", family="true", decision="score").judge([pair])
    assert scored.verdict is not Verdict.UNDECIDED


@pytest.mark.parametrize("model", ["nli", "true", "minicheck", "attrscore"])
def test_the_best_window_of_long_evidence_decides_and_is_reported(models: dict[str, Path], model: str) -> None:
    texts = ("On the Vistula. ", f"{FILLER * 400}Warsaw is the capital of Poland. {FILLER * 400}")
    judge = open_hf(models, model, max_length=None if model == "attrscore" else 100)
    found = windows(texts, judge._counter(CLAIM), judge.max_length)
    single = judge.judge([Attribution(CLAIM, (window.text,)) for window in found])
    best = max(range(len(found)), key=lambda i: (single[i].verdict is Verdict.ATTRIBUTABLE, single[i].probability, -i))
    (judgement,) = judge.judge([Attribution(CLAIM, texts)])
    assert len(found) > 1
    assert judgement.verdict is single[best].verdict
    assert judgement.probability == pytest.approx(single[best].probability, abs=1.1e-5)
    assert judgement.evidence
    assert all(span in found[best].spans for span in judgement.evidence)


def test_short_evidences_are_judged_together(models: dict[str, Path]) -> None:
    (both,) = open_hf(models, "nli").judge([Attribution(CLAIM, ("On the Vistula.", "", "the capital"))])
    assert both.evidence == (Span(0, 0, 15), Span(2, 0, 11))


@pytest.mark.slow
def test_two_hundred_thousand_words_are_judged(models: dict[str, Path]) -> None:
    text = FILLER * 50_000 + "Warsaw is the capital of Poland."
    (judgement,) = open_hf(models, "true", max_length=300).judge([Attribution(CLAIM, (text,))])
    assert judgement.verdict is not Verdict.UNDECIDED
    assert len(judgement.evidence) == 1


def test_a_claim_that_leaves_no_room_is_undecided(models: dict[str, Path]) -> None:
    pairs = [Attribution("river " * 200, ("the capital",)), Attribution(CLAIM, ("the capital",))]
    (long, short) = open_hf(models, "nli").judge(pairs)
    assert long == Judgement(Verdict.UNDECIDED, None, "the claim takes 203 of the judge's 130 tokens")
    assert short.verdict is Verdict.ATTRIBUTABLE


def test_a_models_own_marks_in_a_text_are_text(models: dict[str, Path]) -> None:
    """Evidence that ends itself and brings its own claim must not be read as one."""
    judge = open_hf(models, "minicheck-t5")
    odd = ["On the Vistula.</s>capital", "<pad><unk>", "\x00", "\ud800", "東京は首都。" * 300, " ", "{premise}"]
    judgements = judge.judge(
        [Attribution(CLAIM, (text,)) for text in odd] + [Attribution("", tuple(odd)), Attribution("x")]
    )
    assert all(j.probability is None or 0 <= j.probability <= 1 for j in judgements)
    encoded = judge._encode(odd[0], CLAIM)["input_ids"]
    assert encoded.count(judge._tokenizer.eos_token_id) == 2


def test_a_model_that_computes_no_number_is_undecided(models: dict[str, Path]) -> None:
    judge = open_hf(models, "nli")
    with torch.no_grad():
        judge._model.classifier.bias.fill_(math.nan)
    (judgement,) = judge.judge([Attribution(CLAIM, ("the capital",))])
    assert (judgement.verdict, judgement.probability) == (Verdict.UNDECIDED, None)


def test_labels_are_read_whatever_their_case() -> None:
    yes, no, unsure, against = (
        Verdict.ATTRIBUTABLE,
        Verdict.NOT_ATTRIBUTABLE,
        Verdict.EXTRAPOLATORY,
        Verdict.CONTRADICTORY,
    )
    for labels, verdicts in [
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], [against, unsure, yes]),
        (["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], [yes, against, unsure]),
        (["not-entailment", "entailment"], [no, yes]),
        (["Attributable", "Contradictory", "Extrapolatory"], [yes, against, unsure]),
        (["unsupported", "supported"], [no, yes]),
        (["SUPPORTED", "PARTIALLY_SUPPORTED", "NOT_SUPPORTED"], [yes, Verdict.PARTIALLY_ATTRIBUTABLE, no]),
        (["complete_support", "Partial support", "no_support"], [yes, Verdict.PARTIALLY_ATTRIBUTABLE, no]),
    ]:
        assert [verdict for _, verdict in label_verdicts("m", dict(enumerate(labels)))] == verdicts
    with pytest.raises(UserError, match="m: the labels 'LABEL_0', 'LABEL_1', 'LABEL_2' do not show which"):
        label_verdicts("m", {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"})
    with pytest.raises(UserError, match="do not show which is entailment"):
        label_verdicts("m", {0: "neutral", 1: "contradiction"})


def test_faults_are_one_line_that_names_the_model(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    empty = tmp_path / "empty"
    empty.mkdir()
    bare = copy_model(models["nli"], tmp_path / "bare", "tokenizer*")
    bare_t5 = copy_model(models["true"], tmp_path / "bare-t5", "tokenizer*")
    cut = copy_model(models["nli"], tmp_path / "cut")
    (cut / "model.safetensors").write_bytes(b"x")
    garbled = copy_model(models["nli"], tmp_path / "garbled")
    (garbled / "config.json").write_text("{")
    unnamed = copy_model(models["nli"], tmp_path / "unnamed")
    config = json.loads((unnamed / "config.json").read_text())
    (unnamed / "config.json").write_text(json.dumps(config | {"id2label": {"0": "a", "1": "b", "2": "c"}}))
    base = copy_model(models["nli"], tmp_path / "base")
    (base / "config.json").write_text(json.dumps(config | {"architectures": ["BertModel"]}))
    headless = copy_model(models["nli"], tmp_path / "headless")
    transformers.BertModel(transformers.AutoConfig.from_pretrained(headless)).save_pretrained(headless)
    (headless / "config.json").write_text(json.dumps(config))
    for model, words in {
        empty: "no config.json in this folder",
        bare: "has no tokenizer; save it to the same folder",
        bare_t5: "has no tokenizer; save it to the same folder",
        cut: "cannot be loaded as a model",
        garbled: "config.json: cannot be read as JSON",
        unnamed: "the labels 'a', 'b', 'c' do not show which",
        base: "found BertModel in its config; a sequence classifier or a T5 is needed",
        headless: "its weights lack classifier.bias, classifier.weight",
        "no-one/no-model": "no such folder, and no such model on the Hugging Face hub",
        "no-one/no-model@abc": "no such folder, and no such model on the Hugging Face hub",
        "/no/such/folder": "no such folder, and not a valid model name",
        "": "google/t5_xxl_true_nli_mixture: no such folder",
    }.items():
        with pytest.raises(UserError) as caught:
            open_judge(f"hf:{model}")
        assert words in str(caught.value)
        assert str(model) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_options_that_do_not_fit_are_named(models: dict[str, Path]) -> None:
    faults: list[tuple[dict[str, object], str]] = [
        ({"template": "nope"}, "no hypothesis template called 'nope'"),
        ({"family": "nope"}, "no model family called 'nope'; there are: true, nli"),
        ({"family": "true"}, "is a BertForSequenceClassification, which the family 'true' does not support"),
        ({"compat": "google-2024"}, "no mode called 'google-2024'; there is: google-2023"),
        ({"decision": "nope"}, "no decision rule called 'nope'; there are: decode, score"),
        ({"decision": "decode"}, "a classifier has no text to decode"),
        ({"max_length": 131}, "max length 131 is above the model's 130 positions"),
        ({"max_length": 32}, "max length 32 leaves no room"),
        ({"batch_size": 0}, "batch size 0: must be at least 1"),
        ({"nope": 1}, "has no option 'nope'; there are: family, template"),
    ]
    for options, words in faults:
        with pytest.raises(UserError, match=words):
            open_hf(models, "nli", **options)
    with pytest.raises(UserError, match="judge 'lexical' has no option 'family'; there are: threshold, template"):
        open_judge("lexical", family="nli")


def test_without_a_model_it_is_trues_t5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("hf", "hf:"):
        with pytest.raises(UserError, match=r"^google/t5_xxl_true_nli_mixture: no such folder"):
            open_judge(name)


def test_without_torch_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match=r'judge hf:x needs torch: pip install -e "\.\[models\]"'):
        open_judge("hf:x")
