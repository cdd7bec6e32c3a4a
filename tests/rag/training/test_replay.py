"""A reader that learns anew and keeps what it said of other passages."""

import json
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from autoais.base.io.provenance import sha256_file
from autoais.training.export import export
from autoais.training.loop import train
from autoais.training.model import sentence_encoder
from autoais.training.schedule import Schedule
from rag import training
from rag.base.errors import RagError
from rag.base.types import Passage
from rag.documents.corpus import Corpus
from rag.index.build import build
from rag.index.open import open_index
from rag.retrieval.reader import Reader, WindowEncoder
from rag.training.mining import Group, Groups, write_arrays
from rag.training.network import Network
from rag.training.replay import ReplayBatches, replay_loss
from tests.conftest import write_corpus
from tests.tiny import TOWNS, labelled, text, tiny_bert

pytestmark = pytest.mark.filterwarnings("ignore")  # of the export by torch

PASSAGES = [Passage(f"{n}", town, text(town, n)) for n, town in enumerate(TOWNS)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("kept") / "bert", [passage.text for passage in PASSAGES])


def arrays(base: Path, out: Path, passages: list[Passage], *, answer: int) -> Path:
    """Groups that ask about each passage, with the passage `answer` places on as the one that answers."""
    groups = []
    for n, passage in enumerate(passages):
        right, wrong = (passages[(n + at) % len(passages)] for at in (answer, answer + 1))
        question = f"who founded the school in {passage.title}"
        groups.append(Group(question, (right,), ((0, 8),), ((0, len(right.text)),), (), (wrong,)))
    write_arrays(groups, WindowEncoder.from_file(base / "tokenizer.json"), out)
    return out


@pytest.mark.slow
def test_the_more_weight_the_less_is_forgotten_of_the_kept_passages(base: Path, tmp_path: Path) -> None:
    learnt = arrays(base, tmp_path / "learnt.npz", PASSAGES[:5], answer=1)
    kept = arrays(base, tmp_path / "kept.npz", PASSAGES[5:], answer=0)
    batches = ReplayBatches(Groups([(learnt, 20)]), Groups([(kept, 20)]))
    torch.manual_seed(1)
    before = Network(sentence_encoder(base)).eval()
    with torch.no_grad():  # weights so large that the outputs differ from token to token
        for parameter in before.parameters():
            if parameter.ndim > 1:
                parameter.copy_(torch.randn_like(parameter) * 0.4)
    asked = batches.batch(batches.order(40, 1)[0])
    assert len(asked[8]) == len(asked[0]), "as many pairs of each kind"
    changed, losses = [], []
    for weight in (0.0, 5.0):
        network = Network(sentence_encoder(base))
        network.load_state_dict(before.state_dict())
        loss = partial(replay_loss, network, before=before, weight=weight)
        schedule = Schedule(rate=3e-3, batch=40, warm_up=2, decay=0.5)
        train(network, batches, loss, schedule, tmp_path / f"{weight}", seed=1)
        with torch.inference_mode():
            said = zip(network(*asked[8:11]), before(*asked[8:11]), strict=True)
            changed.append(sum(float((now - then).abs().mean()) for now, then in said))
            losses.append([float(replay_loss(one, asked, before=before, weight=0)[0]) for one in (before, network)])
    assert changed[1] < changed[0] / 2, changed
    assert all(after < start for start, after in losses), "both learn from the other groups"


def test_a_network_that_did_not_change_has_nothing_to_regain(base: Path, tmp_path: Path) -> None:
    file = arrays(base, tmp_path / "a.npz", PASSAGES, answer=0)
    batches = ReplayBatches(Groups([(file, 1)]), Groups([(file, 1)]))
    network = Network(sentence_encoder(base)).eval()
    tensors = batches.batch(batches.order(40, 1)[0])
    gradients = []
    for weight in (0.0, 9.0):
        network.zero_grad()
        replay_loss(network, tensors, before=network, weight=weight)[0].backward()  # type: ignore[no-untyped-call]
        gradients.append(torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None]))
    assert torch.allclose(gradients[0], gradients[1], atol=1e-4)


@pytest.fixture(scope="module")
def start(base: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a reader."""
    folder = tmp_path_factory.mktemp("start")
    pairs = Groups([(arrays(base, folder / "a.npz", PASSAGES, answer=0), 1)]).some(4)
    export(Network(sentence_encoder(base)), folder / "model.onnx", pairs)
    return (folder / "model.onnx").read_bytes()


@pytest.fixture
def data(base: Path, start: bytes, tmp_path: Path) -> Path:
    """An index, labelled questions about it and about a collection without documents, a reader, and a recipe."""
    corpus = Corpus([write_corpus(tmp_path / "c.jsonl", [(p.id, p.title, p.text) for p in PASSAGES])])
    build(corpus, tmp_path / "t.index")
    rows = [labelled(passage.id, passage.title) for passage in PASSAGES]
    for name, part in (("old", rows[:5]), ("new", rows[5:])):
        lines = [*part, {**rows[0], "collection": "tried afterwards", "question": "where is it"}]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    (tmp_path / "start.onnx").write_bytes(start)
    (tmp_path / "recipe.toml").write_text(
        f'name = "tiny"\nkind = "reader"\nseed = 1\nbase = "{base}"\ndepth = 20\nothers = 2\nleast = -1.0\n'
        f'base_sha256 = "{sha256_file(base / "model.safetensors")}"\nheld_out = []\nunseen = ["tried afterwards"]\n'
        f'start = "start.onnx"\nstart_sha256 = "{sha256_file(tmp_path / "start.onnx")}"\n'
        '[questions]\n[labelled]\n"new.jsonl" = 1\n"old.jsonl" = 1\n'
        "[schedule]\nrate = 1e-3\nbatch = 6\nwarm_up = 2\ndecay = 0.5\n"
        '[kept]\nfiles = ["old.jsonl"]\nweight = 2.0\n'
    )
    return tmp_path


def test_a_recipe_keeps_files_and_leaves_collections_out(data: Path) -> None:
    training.run(data / "recipe.toml", open_index(data / "t.index"), [data], data / "out", short=True, log=print)
    record = json.loads((data / "out" / "training.json").read_text())
    assert record["questions"]["new.jsonl"] == record["questions"]["old.jsonl"]
    assert record["questions"]["new.jsonl"] == {"questions": 5, "dropped": 0, "groups": 5}
    assert Reader(data / "out").read("where is Corvo", PASSAGES[:1])[0].start is not None


def test_a_reader_with_a_tiny_share_of_the_trained_weights_is_the_start(data: Path, base: Path) -> None:
    recipe = data / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("weight = 2.0", "weight = 2.0\nshare = 1e-9").replace("1e-3", "0.1"))
    training.run(recipe, open_index(data / "t.index"), [data], data / "out", short=True, log=print)
    (data / "start").mkdir()
    (data / "start" / "model.onnx").write_bytes((data / "start.onnx").read_bytes())
    (data / "start" / "tokenizer.json").write_bytes((base / "tokenizer.json").read_bytes())
    now, then = (Reader(data / one).read("where is Corvo", PASSAGES)[2] for one in ("out", "start"))
    assert now.relevance == pytest.approx(then.relevance, abs=0.01)


@pytest.mark.parametrize(
    ("replaced", "by", "message"),
    [
        ('files = ["old.jsonl"]', 'files = ["others.jsonl"]', "'others.jsonl' is not a file of"),
        ('files = ["old.jsonl"]', 'files = ["old.jsonl", "new.jsonl"]', "and not all"),
        ('files = ["old.jsonl"]', "files = []", "and not all"),
        ('start = "start.onnx"\n', "", "needs 'start'"),
        ("weight = 2.0", "weight = 2.0\nshare = 1.5", "share: should be above 0 and at most 1, found 1.5"),
    ],
)
def test_a_recipe_that_keeps_what_it_should_not_is_refused(data: Path, replaced: str, by: str, message: str) -> None:
    recipe = data / "recipe.toml"
    recipe.write_text(recipe.read_text().replace(replaced, by))
    with pytest.raises(RagError, match=message):
        training.run(recipe, open_index(data / "t.index"), [data], data / "out", short=True, log=print)
