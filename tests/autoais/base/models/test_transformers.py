"""Code of a model is never run: each test plants a program that writes a marker where it runs."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from autoais.base.errors import UserError

pytest.importorskip("sentence_transformers", reason="needs the extras dense and models")

from autoais.base.models.transformers import check_classes
from autoais.judges.hf import HfJudge
from rag.answer.llms.hf import Hf
from rag.retrieval.encoders.sentence import SentenceEncoder
from rag.retrieval.rerank import scorer
from tests.tiny import TOWNS, text, tiny_bert

Edit = Callable[[Path], None]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_bert(tmp_path_factory.mktemp("model"), [text(town, 1) for town in TOWNS])
    marks = {"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
             "pad_token": "[PAD]", "mask_token": "[MASK]"}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(marks))
    return folder


@pytest.fixture
def model(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a real model with a program beside it, in a folder that Python imports from."""
    folder = tmp_path / "model"
    shutil.copytree(plain, folder)
    edited(folder / "config.json", architectures=["BertForSequenceClassification"], num_labels=2)
    program = f"""
from pathlib import Path
Path({str(tmp_path / "marker")!r}).touch()
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast
class Evil(nn.Module):
    def __init__(self, *args, **kwargs): super().__init__()
    @classmethod
    def load(cls, *args, **kwargs): return cls()
class EvilConfig(BertConfig): model_type = "evil"
class EvilModel(BertForSequenceClassification): config_class = EvilConfig
"""
    (folder / "evilmod.py").write_text(program)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "evilmod.py").write_text(program)
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    return folder


def edited(path: Path, **changes: object) -> None:
    row = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(row | changes))


def modules(folder: Path, kind: str, config: dict[str, object] | None = None) -> None:
    rows = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_X", "type": kind}]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(rows))
    (folder / "1_X").mkdir()
    (folder / "1_X" / "config.json").write_text(json.dumps(config or {}))


def pickled(folder: Path) -> None:
    """Weights as a pickle that touches the marker when it is read."""

    class Program:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (folder.parent / "marker",)

    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Program(), protocol=2))


def auto_map(folder: Path) -> None:
    names = {"AutoConfig": "evilmod.EvilConfig", "AutoModelForSequenceClassification": "evilmod.EvilModel",
             "AutoModelForCausalLM": "evilmod.EvilModel", "AutoModel": "evilmod.EvilModel"}  # fmt: skip
    edited(folder / "config.json", auto_map=names, model_type="evil")


def tokenizer_map(folder: Path) -> None:
    edited(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evilmod.Evil", "evilmod.Evil"]},
           tokenizer_class="Evil")  # fmt: skip


DENSE: dict[str, object] = {"in_features": 48, "out_features": 8, "bias": True, "activation_function": "evilmod.Evil"}
ENCODER: list[Edit] = [
    lambda folder: modules(folder, "evilmod.Evil"),
    lambda folder: modules(folder, "sentence_transformers.models.Dense", DENSE),
    lambda folder: modules(folder, "sentence_transformers.models.WordEmbeddings", {"tokenizer_class": "evilmod.Evil"}),
    lambda folder: edited(folder / "router_config.json", types={"query": "evilmod.Evil"}, structure={"query": []}),
    pickled,
    auto_map,
]
RERANKER: list[Edit] = [
    lambda folder: edited(folder / "config.json", sentence_transformers={"activation_fn": "evilmod.Evil"}),
    lambda folder: edited(folder / "config.json", sbert_ce_default_activation_function="evilmod.Evil"),
    pickled,
    auto_map,
]
MODEL: list[Edit] = [pickled, auto_map, tokenizer_map]
CASES = [
    *((SentenceEncoder, edit) for edit in ENCODER),
    *((lambda name: scorer(f"cross-encoder:{name}"), edit) for edit in RERANKER),
    *((Hf, edit) for edit in MODEL),
    *((HfJudge, edit) for edit in MODEL),
]


@pytest.mark.parametrize(("opened", "edit"), CASES)
def test_code_in_a_models_folder_is_refused_and_not_run(
    model: Path, opened: Callable[[str], object], edit: Edit
) -> None:
    edit(model)
    with pytest.raises(UserError) as error:
        opened(str(model))
    assert "\n" not in str(error.value)
    if edit is pickled and opened in (Hf, HfJudge):
        assert "a pickle that holds more than tensors" in str(error.value)
    assert not (model.parent / "marker").exists()


def test_known_classes_pass(model: Path) -> None:
    modules(model, "sentence_transformers.models.Dense", DENSE | {"activation_function": "torch.nn.modules.Tanh"})
    edited(model / "config_sentence_transformers.json", similarity_fn_name="cosine", model_type="a.b")
    auto_map(model)
    check_classes(model)


def test_a_module_beside_the_weights_is_no_known_library(model: Path) -> None:
    (model / "transformers.py").write_text((model / "evilmod.py").read_text())
    modules(model, "transformers.Evil")
    with pytest.raises(UserError, match=r"modules\.json: names the class 'transformers.Evil'"):
        SentenceEncoder(str(model))
    assert not (model.parent / "marker").exists()


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b'[{"type": ["evilmod.Evil"]}]'])
def test_a_configuration_that_cannot_be_checked_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "modules.json").write_bytes(content)
    with pytest.raises(UserError, match=r"modules\.json"):
        check_classes(tmp_path)
