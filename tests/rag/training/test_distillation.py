"""A larger network teaches the reader: what it learns, where it can be prepared, and what is refused."""

import json
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("torch")
pytest.importorskip("transformers")

import numpy as np
import torch

from autoais.base.errors import UserError
from autoais.base.io.provenance import sha256_file
from autoais.training.loop import Tensors
from autoais.training.model import sentence_encoder
from rag import training
from rag.base.errors import RagError
from rag.base.types import Passage
from rag.documents.corpus import Corpus
from rag.index.build import build
from rag.index.open import open_index
from rag.retrieval.reader import Reader, WindowEncoder
from rag.training import distillation
from rag.training.mining import Groups
from rag.training.network import Network, Teacher, logsumexp_by_group
from tests.conftest import write_corpus
from tests.tiny import TOWNS, labelled, text, tiny_bert, tiny_mpnet

PASSAGES = [Passage(f"{n}", town, text(town, n)) for n, town in enumerate(TOWNS)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of towns, bases of two sizes, questions with and without labels, and a recipe with a teacher."""
    folder = tmp_path_factory.mktemp("teaching")
    build(Corpus([write_corpus(folder / "c.jsonl", [(p.id, p.title, p.text) for p in PASSAGES])]), folder / "t.index")
    rows = [labelled(passage.id, passage.title) for passage in PASSAGES]
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
    writer = distillation.HitWriter(WindowEncoder.from_file(data / "bert" / "tokenizer.json"))
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
    (tmp_path / "distil" / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    with pytest.raises(RagError, match="a distilbert; a teacher is a bert or an mpnet"):
        Teacher(tmp_path / "distil", tokenizer)


def large(data: Path) -> Teacher:
    """The teacher with weights so large that its outputs differ from token to token."""
    torch.manual_seed(2)
    teacher = Teacher(data / "large", data / "bert" / "tokenizer.json")
    with torch.no_grad():
        for parameter in teacher.parameters():
            if parameter.ndim > 1:
                parameter.copy_(torch.randn_like(parameter) * 0.4)
    return teacher.eval()


def test_what_a_teacher_says_depends_neither_on_padding_nor_on_company(data: Path, tmp_path: Path) -> None:
    writer = distillation.HitWriter(WindowEncoder.from_file(data / "bert" / "tokenizer.json"))
    long = [
        Passage("long", "Corvo", " ".join(text("Corvo", n) for n in range(2))),
        Passage("short", "Mirov", "A town."),
    ]
    writer.add("where is Corvo", [*long, *PASSAGES[:3]])
    writer.write(tmp_path / "hits.npz")
    arrays, teacher = np.load(tmp_path / "hits.npz"), large(data)
    starts = np.concatenate([[0], arrays["ends"][:-1]])
    assert np.ptp(arrays["ends"] - starts) > 60
    for name, batch, block in (("together", 9, 9), ("parts", 1, 2)):
        distillation.read_hits(teacher, tmp_path / "hits.npz", tmp_path / name, batch=batch, block=block, log=print)
        said = [np.load(file) for file in sorted((tmp_path / name).iterdir())]
        assert len(said) == -(-len(starts) // block)
        names = ("relevance", *distillation.OUTPUTS)
        relevance, *tokens = (np.concatenate([each[one] for each in said]) for one in names)
        for number, (start, end) in enumerate(zip(starts, arrays["ends"], strict=True)):
            ids, types = (torch.from_numpy(arrays[one][start:end].astype(np.int64))[None] for one in ("ids", "types"))
            with torch.inference_mode():
                alone = teacher(ids, torch.ones_like(ids), types)
            assert relevance[number] == pytest.approx(float(alone[0]), abs=0.4)  # bfloat16, of values up to 30
            for got, wanted in zip(tokens, alone[1:], strict=True):
                assert np.corrcoef(got[start:end], wanted[0])[0, 1] > 0.99
        assert np.ptp(relevance) > 4


def test_a_teacher_that_is_stopped_goes_on_reading(data: Path, hits: Path, tmp_path: Path) -> None:
    teacher = large(data)
    distillation.read_hits(teacher, hits, tmp_path / "said", batch=2, block=2, log=print)
    first, second, third = sorted((tmp_path / "said").iterdir())
    before, kept = second.read_bytes(), [file.stat().st_mtime_ns for file in (first, third)]
    second.unlink()
    distillation.read_hits(teacher, hits, tmp_path / "said", batch=2, block=2, log=print)
    assert second.read_bytes() == before
    assert [file.stat().st_mtime_ns for file in (first, third)] == kept
    third.unlink()
    with pytest.raises(RagError, match="not the outputs for"):
        distillation.HitBatches(hits, tmp_path / "said", prepared_groups(data, tmp_path))


class Fixed:
    """A network that says of hits what it was told, with one output wrong, and of groups nothing."""

    def __init__(self, tensors: Tensors, wrong: int | None = None, by: float = 0.0) -> None:
        self._said, self._wrong, self._by, self._asked = tensors[5:9], wrong, by, 0

    def __call__(self, ids: torch.Tensor, *_: object) -> tuple[torch.Tensor, ...]:
        self._asked += 1
        if self._asked > 1:  # the groups come second
            return (torch.zeros(len(ids)), *(torch.zeros(ids.shape) for _ in range(3)))
        noise = torch.linspace(-self._by, self._by, ids.numel()).reshape(ids.shape)
        return tuple(
            one + (noise if one.ndim > 1 else noise[:, 0]) * (number == self._wrong)
            for number, one in enumerate(self._said)
        )


def test_the_loss_is_least_for_a_reader_that_says_what_its_teacher_says(data: Path, hits: Path, tmp_path: Path) -> None:
    distillation.read_hits(large(data), hits, tmp_path / "said", batch=5, log=print)
    batches = distillation.HitBatches(hits, tmp_path / "said", prepared_groups(data, tmp_path))
    assert len(batches) == 2
    seen = np.concatenate(batches.order(2, seed=3))
    assert sorted(number for number in seen if number < 2) == [0, 1]
    assert max(seen) >= 2  # labelled groups are beside them
    tensors = batches.batch(np.array([0, 1, 2]))
    assert tensors[3].tolist() == [0, 0, 0, 1, 1]
    right = float(distillation.distillation_loss(Fixed(tensors), tensors)[0])  # type: ignore[arg-type]
    for output in range(4):
        wrong = [float(distillation.distillation_loss(Fixed(tensors, output, by), tensors)[0]) for by in (1.0, 4.0)]  # type: ignore[arg-type]
        assert right + 1e-4 < wrong[0] < wrong[1], output


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
    training.run(recipe, index, [data], tmp_path / "moved", short=True, log=said.append)  # here again
    for kind in ("teacher", "said", "train"):
        assert len(list((tmp_path / "moved" / "work").glob(f"{kind}-*"))) == 1, kind


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the export by torch
def test_a_finetuned_reader_is_the_mean_of_what_it_was_before_and_after(data: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    whole = (data / "recipe.toml").read_text()
    recipe.write_text(f"{whole}[finetune]\nrate = 0.1\nbatch = 6\nwarm_up = 2\ndecay = 0.5\n")
    training.run(recipe, open_index(data / "t.index"), [data], tmp_path / "out", short=True, log=print)
    states = [
        torch.load(next(tmp_path.glob(f"out/work/{name}-*/checkpoint.pt")), weights_only=True)["network"]
        for name in ("train", "finetune")
    ]
    (window,) = WindowEncoder.from_file(data / "bert" / "tokenizer.json").windows("where is Corvo", PASSAGES[0])
    ids, types = torch.tensor([window.ids]), torch.tensor([window.types])
    network = Network(sentence_encoder(data / "bert"))
    said = []
    for shares in ((1, 0), (0.5, 0.5), (0, 1)):
        network.load_state_dict({n: shares[0] * states[0][n] + shares[1] * states[1][n] for n in states[0]})
        with torch.inference_mode():
            said.append(float(network(ids, torch.ones_like(ids), types)[0]))
    before, mean, after = said
    assert abs(before - mean) > 0.2 < abs(after - mean)
    (reading,) = Reader(tmp_path / "out").read("where is Corvo", PASSAGES[:1])
    assert reading.relevance == pytest.approx(mean, abs=0.05)
    recipe.write_text(f"{whole}[finetune]\nrate = 0.1\n")
    with pytest.raises(UserError, match=r"\[finetune\]"):
        training.run(recipe, None, [data], tmp_path / "out", log=print)


def test_prepared_data_of_another_recipe_or_without_a_file_is_refused(data: Path, tmp_path: Path) -> None:
    recipe, out = data / "recipe.toml", tmp_path / "out"
    with pytest.raises(RagError, match="nothing is prepared there; give an index"):
        training.run(recipe, None, [data], out, log=print)
    training.run(recipe, open_index(data / "t.index"), [data], out, prepare=True, log=print)
    with pytest.raises(RagError, match="nothing is prepared there"):
        training.run(recipe, None, [data], out, short=True, log=print)
    other = tmp_path / "other.toml"
    other.write_text(recipe.read_text().replace("depth = 5", "depth = 4"))
    with pytest.raises(RagError, match="prepared for another recipe"):
        training.run(other, None, [data], out, log=print)
    file = out / "work" / "prepared.json"
    row = json.loads(file.read_text())
    hits = out / "work" / "hits.npz"
    whole = hits.read_bytes()
    for broken in (whole[:-9], b""):
        hits.write_bytes(broken)
        with pytest.raises(RagError, match=r"hits\.npz: not the file that was prepared; copy it"):
            training.run(recipe, None, [data], out, log=print)
    hits.unlink()
    with pytest.raises(RagError, match=r"hits\.npz: not the file that was prepared; copy it"):
        training.run(recipe, None, [data], out, log=print)
    hits.write_bytes(whole)
    away = {"files": [["../../model.onnx", 1]], "checksums": {"../../model.onnx": "0", "hits.npz": "0"}}
    for wrong in ("", "[]", *(json.dumps(row | one) for one in (away, {"files": 3}, {"hits": 3}, {"hits": None}))):
        file.write_text(wrong)
        with pytest.raises(RagError, match=r"cannot be read"):
            training.run(recipe, None, [data], out, log=print)


def test_a_teacher_without_a_schedule_and_other_models_apart_are_refused(data: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text((data / "recipe.toml").read_text().split("[teacher.schedule]")[0])
    with pytest.raises(RagError, match=r"\[teacher\.schedule\] is missing"):
        training.run(recipe, None, [data], tmp_path, log=print)
    recipe.write_text('kind = "static"\n')
    with pytest.raises(RagError, match="give an index"):
        training.run(recipe, None, [data], tmp_path, log=print)
    with pytest.raises(RagError, match=r"prepare .* is for readers only"):
        training.run(recipe, open_index(data / "t.index"), [data], tmp_path, prepare=True, log=print)


def test_what_cannot_teach_is_refused_before_the_work(data: Path, tmp_path: Path) -> None:
    whole, index = (data / "recipe.toml").read_text(), open_index(data / "t.index")
    recipe, checksum = tmp_path / "r.toml", sha256_file(data / "large" / "model.safetensors")
    for old, new, says in (
        ("times = 2", "times = 0", "times should be at least 1"),
        ("depth = 5", "depth = 99", "depth 1 to 24"),
        ('base = "large"', 'base = "nowhere"', "nowhere: the recipe needs it"),
        (checksum, "0" * 64, "not the weights of the recipe"),
        ("seed = 1", f'seed = 1\nstart = "c.jsonl"\nstart_sha256 = "{checksum}"', "its SHA-256 is"),
    ):
        assert old in whole
        recipe.write_text(whole.replace(old, new))
        with pytest.raises(UserError, match=says):
            training.run(recipe, index, [data], tmp_path / "out", prepare=True, log=print)
    assert not list((tmp_path / "out" / "work").glob("*.npz"))
    (tmp_path / "broken").mkdir()
    for name in ("tokenizer.json", "model.safetensors"):
        (tmp_path / "broken" / name).write_bytes((data / "large" / name).read_bytes())
    with pytest.raises(RagError, match="cannot be opened as a teacher"):
        Teacher(tmp_path / "broken", data / "bert" / "tokenizer.json")


def test_no_groups_are_no_training(tmp_path: Path) -> None:
    with pytest.raises(RagError, match="no groups are left to train on"):
        Groups([])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_a_gpu_trains_all_the_same(data: Path, tmp_path: Path) -> None:
    training.run(data / "recipe.toml", open_index(data / "t.index"), [data], tmp_path, short=True, log=print)
    assert Reader(tmp_path).read("where is Corvo", PASSAGES[:1])[0].start is not None


def test_the_logsumexp_of_groups() -> None:
    values, groups = torch.tensor([0.0, 1.0, 1000.0, -5.0]), torch.tensor([0, 0, 1, 2])
    wanted = torch.stack([torch.logsumexp(values[groups == one], 0) for one in range(3)])
    assert torch.allclose(logsumexp_by_group(values, groups), wanted)
