"""A larger network teaches the reader: what it learns, where it can be prepared, and what is refused."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
pytest.importorskip("torch")
pytest.importorskip("transformers")

import numpy as np
import torch

from autoais.io.provenance import sha256_file
from autoais.training.loop import Tensors
from rag import training
from rag.corpus.reader import Corpus
from rag.errors import RagError
from rag.index.build import build
from rag.index.open import open_index
from rag.reader import Reader, WindowEncoder
from rag.training import taught
from rag.training.labelled import fingerprint
from rag.training.mining import Groups
from rag.training.network import Teacher, grouped_logsumexp
from rag.types import Passage
from tests.conftest import write_corpus
from tests.tiny import TOWNS, text, tiny_bert, tiny_mpnet

PASSAGES = [Passage(f"{n}", town, text(town, n)) for n, town in enumerate(TOWNS)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of towns, bases of two sizes, questions with and without labels, and a recipe with a teacher."""
    folder = tmp_path_factory.mktemp("teaching")
    build(Corpus([write_corpus(folder / "c.jsonl", [(p.id, p.title, p.text) for p in PASSAGES])]), folder / "t.index")
    rows: list[dict[str, Any]] = [
        {
            "collection": "index",
            "question": f"who founded the school in {passage.title}",
            "path": passage.id,
            "quotes": [asdict(fingerprint("Edward Moss"))],
            "short": "Edward Moss",
        }
        for passage in PASSAGES
    ]
    (folder / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "asked.txt").write_text("".join(f"where is {town}\t['x']\n" for town in TOWNS))
    (folder / "dev.jsonl").write_text(json.dumps({"question": "where is Corvo"}) + "\n")
    bert = tiny_bert(folder / "bert", [passage.text for passage in PASSAGES])
    large = tiny_mpnet(folder / "large", bert)
    (folder / "recipe.toml").write_text(
        f'name = "tiny"\nkind = "reader"\nseed = 1\nbase = "{bert}"\ndepth = 20\nothers = 2\nleast = -1.0\n'
        f'base_sha256 = "{sha256_file(bert / "model.safetensors")}"\nheld_out = ["dev.jsonl"]\n'
        '[questions]\n[labelled]\n"labelled.jsonl" = 1\n'
        "[schedule]\nrate = 1e-3\nbatch = 6\nwarm_up = 2\ndecay = 0.5\n"
        f'[teacher]\nbase = "large"\nbase_sha256 = "{sha256_file(large / "model.safetensors")}"\ntimes = 2\ndepth = 5\n'
        '[teacher.questions]\n"asked.txt" = 4\n'
        "[teacher.schedule]\nrate = 1e-3\nbatch = 6\nwarm_up = 2\ndecay = 0.5\n"
    )
    return folder


@pytest.fixture
def hits(data: Path, tmp_path: Path) -> Path:
    """The arrays of two questions with three and two hits."""
    writer = taught.HitWriter(WindowEncoder.from_file(data / "bert" / "tokenizer.json"))
    writer.add("who founded the school in Corvo", PASSAGES[:3])
    writer.add("nothing is found", [])
    writer.add("where is Corvo", PASSAGES[3:5])
    assert writer.write(tmp_path / "hits.npz") == 5
    return tmp_path / "hits.npz"


def test_a_teacher_reads_the_same_tokens_under_its_own_numbers(data: Path) -> None:
    teacher = Teacher(data / "large", data / "bert" / "tokenizer.json")
    asked = json.loads((data / "bert" / "tokenizer.json").read_text())["model"]["vocab"]
    own = json.loads((data / "large" / "tokenizer.json").read_text())["model"]["vocab"]
    renamed = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>"}
    assert all(int(teacher.ids[number]) == own[renamed.get(token, token)] for token, number in asked.items())


def test_a_bert_may_teach_but_no_network_with_other_word_pieces_or_of_another_kind(data: Path, tmp_path: Path) -> None:
    tokenizer = data / "bert" / "tokenizer.json"
    assert Teacher(data / "bert", tokenizer).ids.tolist() == list(range(len(Teacher(data / "bert", tokenizer).ids)))
    other = tiny_bert(tmp_path / "other", ["other words"])
    with pytest.raises(RagError, match=r"its tokenizer lacks '.*'; name a network with the word pieces of the reader"):
        Teacher(other, tokenizer)
    from transformers import DistilBertConfig, DistilBertModel

    DistilBertModel(DistilBertConfig(vocab_size=9, dim=12, n_layers=1, n_heads=2, hidden_dim=8)).save_pretrained(
        tmp_path / "distil"
    )
    with pytest.raises(RagError, match="a distilbert; a teacher is a bert or an mpnet"):
        Teacher(tmp_path / "distil", tokenizer)


def test_what_a_teacher_says_depends_neither_on_padding_nor_on_company(data: Path, hits: Path, tmp_path: Path) -> None:
    teacher = Teacher(data / "large", data / "bert" / "tokenizer.json")
    for name, batch, block in (("together", 5, 9), ("alone", 1, 2)):
        taught.read_hits(teacher, hits, tmp_path / name, batch=batch, block=block, log=print)
    (together,) = (tmp_path / "together").iterdir()
    apart = sorted((tmp_path / "alone").iterdir())
    assert len(apart) == 3
    for name in ("relevance", *taught.OUTPUTS):
        whole, parts = np.load(together)[name], np.concatenate([np.load(file)[name] for file in apart])
        assert whole.shape == parts.shape
        assert np.allclose(whole, parts, atol=0.05)  # of bfloat16
        assert whole.std() > 0
    apart[1].unlink()
    kept = apart[0].stat().st_mtime_ns
    taught.read_hits(teacher, hits, tmp_path / "alone", batch=1, block=2, log=print)  # it goes on
    assert np.allclose(
        np.concatenate([np.load(file)["relevance"] for file in apart]), np.load(together)["relevance"], atol=0.05
    )
    assert apart[0].stat().st_mtime_ns == kept


class Fixed:
    """A network that says of hits what it was told, and nothing of labelled groups."""

    def __init__(self, tensors: Tensors, wrong: float = 0.0) -> None:
        self._said, self._wrong = tensors[5:9], wrong

    def __call__(self, ids: torch.Tensor, *_: object) -> tuple[torch.Tensor, ...]:
        if ids.shape == self._said[1].shape:
            noise = torch.linspace(-self._wrong, self._wrong, ids.numel()).reshape(ids.shape)
            relevance, *others = self._said
            return (relevance + noise[:, 0], *(one + noise for one in others))
        return (torch.zeros(len(ids)), *(torch.zeros(ids.shape) for _ in range(3)))


def test_the_loss_is_least_for_a_reader_that_says_what_its_teacher_says(data: Path, hits: Path, tmp_path: Path) -> None:
    teacher = Teacher(data / "large", data / "bert" / "tokenizer.json")
    taught.read_hits(teacher, hits, tmp_path / "told", batch=5, log=print)
    groups = prepared_groups(data, tmp_path)
    batches = taught.Taught(hits, tmp_path / "told", groups)
    assert len(batches) == 2
    seen = np.concatenate(batches.order(2, seed=3))
    assert sorted(number for number in seen if number < 2) == [0, 1]
    assert max(seen) >= 2  # labelled groups are beside them
    tensors = batches.batch(np.array([0, 1, 2]))
    assert tensors[3].tolist() == [0, 0, 0, 1, 1]
    losses = [float(taught.taught_loss(Fixed(tensors, wrong), tensors)[0]) for wrong in (0.0, 1.0, 4.0)]  # type: ignore[arg-type]
    assert losses == sorted(losses)
    assert losses[0] < losses[1]


def prepared_groups(data: Path, out: Path) -> Groups:
    training.run(data / "recipe.toml", open_index(data / "t.index"), [data], out / "g", prepare=True, log=print)
    (file,) = (out / "g" / "work").glob("labelled-*.npz")
    return Groups([(file, 1)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the export by torch
def test_a_reader_is_prepared_on_one_machine_and_taught_on_another(data: Path, tmp_path: Path) -> None:
    recipe, index, said = data / "recipe.toml", open_index(data / "t.index"), list[str]()
    training.run(recipe, index, [data], tmp_path / "here", short=True, log=said.append)
    training.run(recipe, index, [data], tmp_path / "there", short=True, prepare=True, log=said.append)
    assert said[-1].startswith(f"prepared in {tmp_path / 'there' / 'work'}; train with: rag train")
    assert not (tmp_path / "there" / "model.onnx").exists()
    (tmp_path / "moved").mkdir()
    (tmp_path / "there" / "work").rename(tmp_path / "moved" / "work")
    training.run(recipe, None, [data], tmp_path / "moved", short=True, log=said.append)
    assert (tmp_path / "moved" / "model.onnx").read_bytes() == (tmp_path / "here" / "model.onnx").read_bytes()
    record = json.loads((tmp_path / "moved" / "training.json").read_text())
    assert record["teacher"] == {"from": "large", "sha256": sha256_file(data / "large" / "model.safetensors")}
    assert record["questions"]["asked.txt (hits)"] == {"questions": 10, "dropped": 1, "groups": 4}
    assert record["index"]["checksum"] == index.manifest["checksum"]
    assert Reader(tmp_path / "moved").read("where is Corvo", PASSAGES[:1])[0].start is not None
    (told,) = (tmp_path / "moved" / "work").glob("told-*/*.npz")
    before = told.stat().st_mtime_ns
    training.run(recipe, None, [data], tmp_path / "moved", short=True, log=said.append)
    assert told.stat().st_mtime_ns == before  # the teacher has spoken


def test_prepared_data_of_another_recipe_or_without_a_file_is_refused(data: Path, tmp_path: Path) -> None:
    recipe, out = data / "recipe.toml", tmp_path / "out"
    with pytest.raises(RagError, match="nothing is prepared there; give --index"):
        training.run(recipe, None, [data], out, log=print)
    training.run(recipe, open_index(data / "t.index"), [data], out, prepare=True, log=print)
    with pytest.raises(RagError, match="prepared for another recipe"):
        training.run(recipe, None, [data], out, short=True, log=print)
    (out / "work" / "hits.npz").unlink()
    with pytest.raises(RagError, match=r"hits\.npz is missing; copy it"):
        training.run(recipe, None, [data], out, log=print)
    file = out / "work" / "prepared.json"
    row = json.loads(file.read_text())
    for wrong in ("", "[]", json.dumps(row | {"files": [["../../model.onnx", 1]]}), json.dumps(row | {"files": 3})):
        file.write_text(wrong)
        with pytest.raises(RagError, match=r"cannot be read|is missing"):
            training.run(recipe, None, [data], out, log=print)


def test_a_teacher_without_a_schedule_and_other_models_apart_are_refused(data: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text((data / "recipe.toml").read_text().split("[teacher.schedule]")[0])
    with pytest.raises(RagError, match=r"\[teacher\.schedule\] is missing"):
        training.run(recipe, None, [data], tmp_path, log=print)
    recipe.write_text('kind = "static"\n')
    with pytest.raises(RagError, match="only a reader is prepared and trained apart"):
        training.run(recipe, None, [data], tmp_path, log=print)


def test_the_logsumexp_of_groups() -> None:
    values, groups = torch.tensor([0.0, 1.0, 1000.0, -5.0]), torch.tensor([0, 0, 1, 2])
    wanted = torch.stack([torch.logsumexp(values[groups == one], 0) for one in range(3)])
    assert torch.allclose(grouped_logsumexp(values, groups), wanted)
