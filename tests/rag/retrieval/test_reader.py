"""`rag train` makes a reader of a recipe and an index; a reader finds answers in passages of any length."""

import json
import math
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.provenance import sha256_file
from autoais.training.recipe import training_in
from rag import training
from rag.answer.options import Options
from rag.answer.systems import open_system
from rag.base.errors import RagError, UserError
from rag.base.types import Passage
from rag.documents.corpus import Corpus
from rag.index.build import build
from rag.index.index import Index
from rag.index.open import open_index
from rag.retrieval.reader import MAX_LENGTH, Reader, WindowEncoder
from rag.retrieval.rerank import Rerank, scorer
from rag.testing import check_encoder, check_retriever
from rag.training import TRAINERS
from rag.training.labelled_questions import fingerprint
from tests.commands import in_process
from tests.conftest import Command, one_line_error, write_corpus
from tests.tiny import TOWNS, text, tiny_bert

pytest.importorskip("onnx")
pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Base, index, questions and a recipe."""
    folder = tmp_path_factory.mktemp("reading")
    passages = [(f"{n}", town, text(town, n)) for n, town in enumerate(TOWNS)]
    passages += [(f"r{n}", "River", f"The river number {n} is in the north of the town {TOWNS[n]}.") for n in range(10)]
    build(Corpus([write_corpus(folder / "corpus.jsonl", passages)]), folder / "towns.index")
    ask = "who founded the school north of the river in {}"
    asked = [f"{ask.format(town)}\t['Edward Moss']" for town in TOWNS]
    (folder / "asked.txt").write_text("\n".join([*asked, "who is nobody\t['No One']"]) + "\n")
    (folder / "dev.jsonl").write_text(json.dumps({"question": ask.format("Arlen") + "?"}) + "\n")
    (folder / "documents" / "notes").mkdir(parents=True)
    (folder / "documents" / "notes" / "shed.md").write_text(
        "# Shed\n\nThe shed is locked at night. It holds the tools.\n"
    )
    rows: list[dict[str, Any]] = [
        {"collection": "index", "question": "where is the river of Arlen", "path": "r0", "quotes": ["in the north"]},
        {"collection": "notes", "question": "when is the shed locked", "path": "shed.md", "quotes": ["at night"]},
        {"collection": "notes", "question": "who owns the shed", "path": None, "quotes": []},
        {"collection": "notes", "question": "?", "path": None, "quotes": []},  # it cannot be searched for
    ]
    (folder / "labelled.jsonl").write_text(
        "".join(
            json.dumps(row | {"quotes": [asdict(fingerprint(quote)) for quote in row["quotes"]]}) + "\n" for row in rows
        )
    )
    base = tiny_bert(folder / "base", [words for _, _, words in passages])
    (folder / "recipe.toml").write_text(
        f'name = "tiny"\nkind = "reader"\nseed = 1\n'
        f'base = "{base}"\nbase_sha256 = "{sha256_file(base / "model.safetensors")}"\n'
        'depth = 20\nothers = 2\nleast = -1.0\nheld_out = ["dev.jsonl"]\n'
        '[questions]\n"asked.txt" = 2\n[labelled]\n"labelled.jsonl" = 1.5\n[schedule]\n'
        "rate = 1e-3\nbatch = 6\nwarm_up = 2\ndecay = 0.5\n"
    )
    return folder


def arguments(data: Path, recipe: str, out: Path) -> list[str]:
    found = ["train", data / recipe, "--index", data / "towns.index", "--data", data, "--out", out]
    return [*map(str, found)]


def command(*given: str) -> list[str]:
    program = "import sys; from rag.commands.main import main; sys.argv[0] = 'rag'; main()"
    return [sys.executable, "-W", "ignore", "-c", program, *given]


def train_here(*given: str) -> None:
    """Train where torch is loaded already; what is stopped has a process of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = in_process("rag")(*given)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reader")
    train_here(*arguments(data, "recipe.toml", out), "--short")
    return out


@pytest.mark.slow
def test_a_recipe_makes_a_reader_that_says_how_it_came_about(model: Path, data: Path) -> None:
    record = json.loads((model / "training.json").read_text())
    assert record["short"] is True
    assert record["recipe"]["sha256"] == sha256_file(data / "recipe.toml")
    assert record["files"]["model.onnx"] == sha256_file(model / "model.onnx")
    assert record["index"]["checksum"] == open_index(data / "towns.index").manifest["checksum"]
    counts = record["questions"]["asked.txt"]
    assert counts["questions"] == 11
    assert counts["dropped"] == 1  # the one that is held out
    assert 9 <= counts["groups"] <= 18
    assert record["questions"]["labelled.jsonl"] == {"questions": 4, "dropped": 0, "groups": 3}


@pytest.mark.slow
def test_a_training_that_is_killed_goes_on_from_where_it_was(data: Path, model: Path, tmp_path: Path) -> None:
    train = [*arguments(data, "recipe.toml", tmp_path), "--short"]
    running = subprocess.Popen(command(*train), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("work/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    mined = {path: path.stat().st_mtime_ns for path in tmp_path.glob("work/*.npz")}
    assert mined
    train_here(*train)
    assert {path: path.stat().st_mtime_ns for path in mined} == mined
    assert (tmp_path / "model.onnx").read_bytes() == (model / "model.onnx").read_bytes()


@pytest.mark.slow
def test_the_onnx_file_says_what_the_network_says(model: Path, data: Path) -> None:
    import torch

    from autoais.training.model import sentence_encoder
    from rag.training.network import Network

    network = Network(sentence_encoder(data / "base"))
    (checkpoint,) = model.glob("work/train-*/checkpoint.pt")
    network.load_state_dict(torch.load(checkpoint, weights_only=True)["network"])
    reader = Reader(model)
    for town in TOWNS:
        (window,) = reader.encoder.windows("who founded the school", Passage("1", town, text(town, 1)))
        ids, types = torch.tensor([window.ids]), torch.tensor([window.types])
        with torch.inference_mode():
            relevance, _, _, _ = network(ids, torch.ones_like(ids), types)
        (reading,) = reader.read("who founded the school", [Passage("1", town, text(town, 1))])
        assert reading.relevance == pytest.approx(float(relevance[0]), abs=0.05)


@pytest.mark.slow
def test_threads_and_company_change_nothing_and_spans_lie_in_the_text(model: Path) -> None:
    passages = [Passage(str(n), town, text(town, n) * (1 + 5 * (n % 3))) for n, town in enumerate(TOWNS)]
    passages += [
        Passage("l", "Towns", "\n\n".join(f"- {town}: a town" for town in TOWNS)),
        Passage("e", "", ""),
        Passage("j", "東京", "東京は日本の首都 " * 300),
        Passage("c", "\x00", "\ud800 x\x00"),
    ]
    reader = Reader(model, threads=3)
    read = reader.read("who founded the school", passages)
    assert read == [Reader(model, threads=1).read("who founded the school", [p])[0] for p in passages]
    assert reader.read("", passages[:1])[0].start is not None
    for passage, reading in zip(passages, read, strict=True):
        assert math.isfinite(reading.relevance)
        if passage.text:
            assert reading.start is not None
            assert reading.end is not None
            assert 0 <= reading.start < reading.end <= len(passage.text)
            assert reading.answer <= 0
            assert len(reading.offsets) == len(reading.keep) > 0
            assert 0 <= reading.kept(0, len(passage.text)) <= 1
            assert max(span.answer for span in reading.spans) == reading.answer
            assert not any("\n" in passage.text[span.start : span.end] for span in reading.spans)
        else:
            assert reading.start is None
    assert reader.read("x", []) == []


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.slow
def test_windows_lose_no_character_that_has_a_word_piece(model: Path, seed: int) -> None:
    rng = random.Random(seed)
    encoder = WindowEncoder.from_file(model / "tokenizer.json")
    words = [
        rng.choice(["Arlen", "is.", "a", "town", "東京", "Finch.", "\n", "x" * 50]) for _ in range(rng.randrange(600))
    ]
    passage = Passage("1", " ".join(words[:90]), " ".join(words))
    windows = encoder.windows("which town " * rng.randrange(60), passage)
    offsets = [offset for window in windows for offset in window.offsets]
    assert offsets == sorted(offsets)
    for window in windows:
        assert len(window.ids) == len(window.types) <= MAX_LENGTH
        assert window.first + len(window.offsets) + 1 == len(window.ids)
    covered = {at for start, end in offsets for at in range(start, end)}
    assert all(at in covered for at, character in enumerate(passage.text) if not character.isspace())


@pytest.mark.slow
def test_a_reader_reranks(model: Path, shelf: Path) -> None:
    reranked = Rerank(open_index(shelf).bm25, scorer(f"reader:{model}"), depth=3)
    check_retriever(reranked, ["river of Poland", "Nobel Prize", "東京", "capital"])
    assert reranked.name.startswith("bm25.v1>reader@")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the export by torch
def test_an_export_whose_files_are_cut_off_by_a_full_disk_is_one_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from onnxruntime.quantization import shape_inference

    from autoais.training.export import export
    from autoais.training.model import sentence_encoder
    from rag.training.network import Network

    pairs = [(torch.tensor([[2, 5, 3]]), torch.tensor([[0, 1, 2]]))]
    network = Network(sentence_encoder(data / "base"))
    for left in (b"", b"\x08"):
        monkeypatch.setattr(
            shape_inference, "quant_pre_process", lambda _, to, left=left, **__: Path(to).write_bytes(left)
        )
        with pytest.raises(UserError, match=r"model\.onnx: cannot be exported: .*; is .* on a full disk\?"):
            export(network, tmp_path / "model.onnx", pairs)


@pytest.mark.slow
def test_a_reader_of_ones_own_answers_as_a_system(model: Path, data: Path, tmp_path: Path) -> None:
    index = open_index(data / "towns.index")
    system = open_system(f"reader:{model}", index, retriever="bm25")
    assert f"quotes.v10({Reader(model).name}@16)" in system.name  # without a confidence it has no threshold
    answer = system.ask("where is the river of Arlen")
    assert not answer.abstained
    assert answer.sentences[0].citations
    with pytest.raises(RagError, match=r"has no confidence\.json"):
        open_system(f"reader:{model}", index, Options(min_confidence=0.5), retriever="bm25")
    with pytest.raises(RagError, match=r"model\.onnx is missing; name a folder written by `rag train`"):
        open_system(f"reader:{tmp_path}", index, retriever="bm25")


@pytest.mark.slow
def test_folders_that_are_no_reader(model: Path, tmp_path: Path, rag: Command) -> None:
    with pytest.raises(RagError, match=r"model\.onnx is missing"):
        Reader(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(RagError, match=r"tokenizer\.json is missing"):
        Reader(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(RagError, match="not a tokenizer"):
        Reader(tmp_path).read("x", [Passage("1", "", "y")])
    (tmp_path / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    with pytest.raises(RagError, match="not a usable ONNX model"):
        Reader(tmp_path).read("x", [Passage("1", "", "y")])
    (tmp_path / "bad.toml").write_text("name = 'x'")
    one_line_error(
        rag("train", tmp_path / "bad.toml", "--index", "x", "--data", ".", "--out", tmp_path), "no index at x"
    )


@pytest.mark.parametrize("kind", ['"nope"', '["reader"]', "3"])
def test_a_kind_of_recipe_that_there_is_not_lists_those_there_are(data: Path, tmp_path: Path, kind: str) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(f"name = 'x'\nkind = {kind}\n")
    with pytest.raises(RagError, match=r"r\.toml: 'kind' should be one of: reader, static"):
        training.run(recipe, open_index(data / "towns.index"), [data], tmp_path, log=print)


def test_two_runs_do_not_train_in_one_folder(data: Path, model: Path, tmp_path: Path) -> None:
    with training_in(tmp_path), pytest.raises(UserError, match="another process trains there"):
        training.run(data / "recipe.toml", open_index(data / "towns.index"), [data], tmp_path, log=print)


def test_what_a_killed_run_was_writing_is_removed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    kept = [tmp_path / ".notes.json", tmp_path / "training.json", tmp_path / "work" / "prepared.json"]
    left = [tmp_path / ".training.json.afn539sc", tmp_path / "work" / ".prepared.json.pwia5u8_"]
    for file in (*kept, *left):
        file.write_text("{}")
    with training_in(tmp_path):
        assert [file.exists() for file in (*kept, *left)] == [True, True, True, False, False]


def test_a_trainer_of_ones_own_is_called_as_the_others_are(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def mine(path: Path, index: Index, data: list[Path], out: Path, *, short: bool, log: Callable[[str], None]) -> None:
        asked.extend((path, index, data, out, short))
        log("made")

    monkeypatch.setattr(TRAINERS, "_known", {})
    TRAINERS.register("mine", mine)
    recipe, index, said = tmp_path / "r.toml", open_index(data / "towns.index"), list[str]()
    recipe.write_text("kind = 'mine'\n")
    training.run(recipe, index, [data], tmp_path, short=True, log=said.append)
    assert (asked, said) == ([recipe, index, [data], tmp_path, True], ["made"])


@pytest.mark.slow
def test_static_embeddings_are_made_the_same_way_again_and_find_their_own(data: Path, tmp_path: Path) -> None:
    from rag.retrieval.encoders.static import Static

    recipe = (data / "recipe.toml").read_text().split("depth = ")[0].replace('"reader"', '"static"')
    (data / "static.toml").write_text(
        f'{recipe}dimension = 16\nsif = 1e-3\npassages = 20\ntimes = 9\nquestions = ["asked.txt"]\nquestion_times = 1\n'
        'held_out = ["dev.jsonl"]\n[schedule]\nrate = 1e-2\nbatch = 8\nwarm_up = 2\ndecay = 0.5\n'
    )
    train_here(*arguments(data, "static.toml", tmp_path / "once"))
    argv = command(*arguments(data, "static.toml", tmp_path / "again"))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "once" / "table.npz").read_bytes() == (tmp_path / "again" / "table.npz").read_bytes()
    static = Static(tmp_path / "once")
    check_encoder(static)
    assert static.dimension == 16
    vectors = static.passages([text(town, 1) for town in TOWNS])
    assert vectors.shape == (10, 16)
    assert (vectors**2).sum(axis=1) == pytest.approx(1)
    asked = static.queries(["the mayor of Corvo opened the museum", "", "\x00\ud800"])
    assert int((vectors @ asked[0]).argmax()) == TOWNS.index("Corvo")
    assert not asked[1].any()
    record = json.loads((tmp_path / "once" / "training.json").read_text())
    assert record["taught"]["questions"] == 9  # one is held out, one has no answer in the index


@pytest.mark.parametrize(("table", "says"), [(b"PK", "cannot be read"), (b"", "cannot be read")])
@pytest.mark.slow
def test_static_tables_that_are_none(model: Path, tmp_path: Path, table: bytes, says: str) -> None:
    from rag.retrieval.encoders.static import Static

    with pytest.raises(RagError, match=r"table\.npz is missing"):
        Static(tmp_path)
    (tmp_path / "table.npz").write_bytes(table)
    (tmp_path / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    with pytest.raises(RagError, match=says):
        Static(tmp_path).queries(["x"])
