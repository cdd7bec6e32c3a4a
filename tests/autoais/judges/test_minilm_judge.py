"""`autoais train` makes a model of a recipe, and `minilm:<folder>` judges with it; a tiny base, data of our own."""

import json
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from autoais.base.errors import UserError
from autoais.base.io.provenance import sha256_file
from autoais.base.types import Attribution, Verdict
from autoais.judges import open_judge
from autoais.judges.minilm import FEATURES, Calibration, MiniLMJudge
from tests.commands import in_process
from tests.conftest import Command, one_line_error
from tests.tiny import TOWNS, text, tiny_bert

pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model with random weights, a small corpus, answered questions and labels: all a recipe needs."""
    folder = tmp_path_factory.mktemp("training")
    passages = [(town, text(town, seed)) for seed in range(12) for town in TOWNS]
    rows = [{"docid": f"{n}", "title": town, "text": words} for n, (town, words) in enumerate(passages)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions = [
        {
            "id": f"q{n}",
            "question": f"who founded the school in {town}",
            "answers": ["Edward Moss"],
            "passages": [{"id": "p", "title": town, "text": words}, {"id": "n", "text": "Rivers flow to the sea."}],
        }
        for n, (town, words) in enumerate(passages[:40])
    ]
    (folder / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    (folder / "dev.jsonl").write_text(json.dumps({"question": "Who founded the school in Arlen?"}) + "\n")
    labels = []
    for n, (town, words) in enumerate(passages[:60]):
        claim = "{} opened a museum.".format(town if n % 2 else "Zurich")
        labels.append({"dataset": f"set{n % 3}", "id": n, "claim": claim, "evidence": [words], "label": n % 2})
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    base = tiny_bert(folder / "base", [words for _, words in passages])
    (folder / "recipe.toml").write_text(
        f'name = "tiny"\nbase = "{base}"\nbase_sha256 = "{sha256_file(base / "model.safetensors")}"\nseed = 1\n'
        'held_out = ["dev.jsonl"]\nthreshold = ["labels.jsonl"]\nfolds = [["set0"], ["set1"]]\n'
        "[schedule]\nrate = 1e-3\nbatch = 8\nwarm_up = 2\ndecay = 0.5\n"
        "[finish]\nrate = 1e-4\nbatch = 8\nwarm_up = 2\ndecay = 0.5\n"
        '[sources.pages]\nkind = "pages"\nfiles = ["corpus.jsonl"]\ntimes = 1.5\nmax_length = 120\n'
        '[sources.questions]\nkind = "questions"\nfiles = ["qa.jsonl"]\ntimes = 1\n'
        '[sources.labels]\nkind = "labels"\nfiles = ["labels.jsonl"]\ndatasets = ["set0", "set1", "set2"]\n'
        "finish = 1.5\nspare = 0.5\n"
    )
    return folder


@pytest.fixture(scope="session")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The short run of the recipe; the one that is killed has a process of its own."""
    out = tmp_path_factory.mktemp("model")
    train_here(data, out)
    return out


def train_here(data: Path, out: Path) -> None:
    """Train where torch is loaded already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = in_process("autoais")(*arguments(data, out))
    assert result.returncode == 0, result.stderr


def arguments(data: Path, out: Path) -> list[str]:
    return ["train", str(data / "recipe.toml"), "--data", str(data), "--out", str(out), "--short"]


def command(data: Path, out: Path) -> list[str]:
    program = "import sys; from autoais.commands.main import main; sys.argv[0] = 'autoais'; main()"
    return [sys.executable, "-W", "ignore", "-c", program, *arguments(data, out)]


PAIRS = [
    Attribution("Arlen opened a museum.", (text("Arlen", 3),)),
    Attribution("東京は首都", ("東京は首都" * 200,)),
    Attribution("\x00!\ud800 a b", ("x\x00y \udfff",)),
    Attribution("Edward Moss", (text("Corvo", 1), text("Arlen", 2)), "who founded the school in Corvo"),
    Attribution("The museum is old. " * 60, (text("Farrow", 5) * 30,)),
]


@pytest.mark.slow
def test_a_recipe_makes_a_model_that_says_how_it_came_about(model: Path, data: Path) -> None:
    record = json.loads((model / "training.json").read_text())
    assert record["short"] is True
    assert record["recipe"]["sha256"] == sha256_file(data / "recipe.toml")
    assert record["files"]["model.onnx"] == sha256_file(model / "model.onnx")
    kinds = record["pairs"]["questions"]["kinds"]
    assert {"qa/holds", "qa/lacks"} <= set(kinds)
    assert kinds["qa/holds"] == 36  # of 40 questions four are one of the held out
    judge = open_judge(f"minilm:{model}")
    assert judge.name.startswith("minilm@")
    assert judge.name.endswith("/256/auto.v1")
    assert {name: row["n"] for name, row in record["left_out"].items()} == {"set0": 20, "set1": 20}


@pytest.mark.slow
def test_the_batch_and_the_threads_change_nothing(model: Path) -> None:
    judge = MiniLMJudge(model, threads=3)
    judged = judge.judge(PAIRS)
    assert judged == [MiniLMJudge(model, threads=1).judge([pair])[0] for pair in PAIRS]
    assert judge.judge(PAIRS[::-1]) == judged[::-1]
    assert judge.judge([]) == []
    for pair, judgement in zip(PAIRS, judged, strict=True):
        if judgement.probability is None:
            assert judgement.reason == "the claim is not in English"
            continue
        assert 0 <= judgement.probability <= 1
        assert judgement.verdict.ais is (judgement.probability >= 0.5)
        assert all(0 <= s.start < s.end <= len(pair.evidence[s.evidence]) for s in judgement.evidence)
        assert all(0 <= start < end <= len(pair.claim) for start, end in judgement.unsupported)
    assert judge.judge([Attribution("?!", ("x",))])[0].verdict is Verdict.UNDECIDED


@pytest.mark.slow
def test_what_was_read_of_long_evidence_is_told(model: Path) -> None:
    other = "People live in the north. "  # in words that the tokenizer knows
    long = other * 9000 + "In the north Arlen opened a museum. " + other * 9000
    (judgement,) = MiniLMJudge(model).judge([Attribution("Arlen opened a museum.", ("Short.", long))])
    read = [("Short.", long)[span.evidence][span.start : span.end] for span in judgement.evidence]
    assert any("Arlen opened a museum." in part for part in read)
    assert sum(map(len, read)) < 1000


@pytest.mark.slow
def test_onnx_and_pytorch_agree(model: Path) -> None:
    from autoais.training.export import restore

    judge = MiniLMJudge(model)
    network = restore(model / "model.onnx")
    encoder, session = judge.encoder, judge.session
    for pair in PAIRS:
        encoded = encoder.encode(pair.claim, pair.evidence)
        ids, types = torch.tensor([encoded.ids]), torch.tensor([encoded.types])
        with torch.inference_mode():
            ours = network(ids, torch.ones_like(ids), types)
        theirs = session.run(None, {"ids": ids.numpy(), "types": types.numpy()})
        for a, b in zip(ours, theirs, strict=True):
            assert np.abs(a.numpy() - b).max() < 0.05


@pytest.mark.slow
def test_padding_and_company_change_nothing_in_the_network(model: Path) -> None:
    from autoais.training.export import restore

    network = restore(model / "model.onnx")
    ids, types = torch.tensor([[2, 9, 8, 3, 2, 7, 9, 3]]), torch.tensor([[0, 1, 0, 0, 2, 3, 2, 2]])
    with torch.inference_mode():
        alone = network(ids, torch.ones_like(ids), types)
        wide = torch.nn.functional.pad(ids, (0, 5))
        padded = network(wide, (wide > 0).long(), torch.nn.functional.pad(types, (0, 5), value=2))
    for a, b in zip(alone, padded, strict=True):
        assert torch.allclose(a, b[:, :8] if b.ndim == 2 else b, atol=1e-5)


@pytest.mark.slow
def test_a_killed_run_goes_on_and_a_finished_one_is_not_done_again(data: Path, model: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(command(data, tmp_path), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "work").glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    train_here(data, tmp_path)
    assert sha256_file(tmp_path / "model.onnx") == sha256_file(model / "model.onnx")
    assert (tmp_path / "calibration.json").read_bytes() == (model / "calibration.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seed = 1", "sed = 1"), "unknown setting 'sed'"),
        (('kind = "pages"', 'kind = "books"'), "kind 'books'; there are: pages, questions, labels"),
        (("corpus.jsonl", "nowhere.jsonl"), "nowhere.jsonl: the recipe needs it"),
        (("base_sha256 = \"", "base_sha256 = \"00"), "not the weights of the recipe"),
        (('name = "tiny"', "name = "), "not a training recipe"),
    ],
)  # fmt: skip
def test_a_recipe_that_cannot_be_followed_says_why(
    data: Path, tmp_path: Path, autoais: Command, change: tuple[str, str], message: str
) -> None:
    recipe = tmp_path / "bad.toml"
    recipe.write_text((data / "recipe.toml").read_text().replace(*change))
    done = autoais("train", str(recipe), "--data", str(data), "--out", str(tmp_path / "out"))
    one_line_error(done, message)


def test_a_folder_that_is_no_model_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"model\.onnx is missing"):
        open_judge(f"minilm:{tmp_path}")


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "calibration.json"])
@pytest.mark.slow
def test_a_damaged_file_of_a_model_is_named_in_one_line(model: Path, tmp_path: Path, file: str) -> None:
    for path in model.glob("*.*"):
        half = path.name == file
        (tmp_path / path.name).write_bytes(path.read_bytes()[: path.stat().st_size // 2] if half else path.read_bytes())
    with pytest.raises(UserError, match=rf"{file}: not a") as raised:
        MiniLMJudge(tmp_path).judge([Attribution("It rains.", ("It rains.",))])
    assert "\n" not in str(raised.value)


def test_features_and_calibration_are_plain_numbers() -> None:
    calibration = Calibration(tuple([1.0] * len(FEATURES)), -1.0)
    assert calibration.probability([0.0] * len(FEATURES)) < 0.5
    assert calibration.probability([1e9] * len(FEATURES)) <= 1.0


@pytest.mark.parametrize(
    ("question", "claim"), [("", "Zurich 1986 "), ("", " Zurich 1986"), (" who is it ", "Zurich ")]
)
@pytest.mark.slow
def test_unsupported_words_stand_where_they_stand_in_the_claim(model: Path, question: str, claim: str) -> None:
    judge = MiniLMJudge(model)
    judge.__dict__["calibration"] = Calibration((0.0,) * len(FEATURES), -9.0)
    (judgement,) = judge.judge([Attribution(claim, ("Nothing happened.",), question)])
    found = [claim[start:end] for start, end in judgement.unsupported]
    assert [word.strip() for word in found] == [claim.strip()]
    assert all(end <= len(claim) for _, end in judgement.unsupported)


@pytest.mark.slow
def test_a_network_that_breaks_down_decides_nothing(model: Path) -> None:
    judge = MiniLMJudge(model)
    judge.__dict__["calibration"] = Calibration((float("nan"),) * len(FEATURES), 0.0)
    (judgement,) = judge.judge([Attribution("Arlen opened a museum.", ("Nothing happened.",))])
    assert (judgement.verdict, judgement.probability) == (Verdict.UNDECIDED, None)


@pytest.mark.slow
def test_a_long_claim_without_spaces_is_read_to_its_end(model: Path) -> None:
    judge = MiniLMJudge(model)
    claim = "東京都" * 130 + " and Arlen"
    parts = judge._parts(claim)
    assert all(judge.encoder.length(claim[start:end]) <= 128 for start, end in parts)
    assert "".join("".join(claim[start:end] for start, end in parts).split()) == "".join(claim.split())


@pytest.mark.slow
def test_the_name_changes_with_the_tokenizer_and_a_broken_folder_is_told_in_one_line(
    model: Path, tmp_path: Path
) -> None:
    for file in ("model.onnx", "tokenizer.json", "calibration.json"):
        (tmp_path / file).write_bytes((model / file).read_bytes())
    before = MiniLMJudge(tmp_path).name
    (tmp_path / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes() + b"\n")
    assert MiniLMJudge(tmp_path).name != before
    (tmp_path / "calibration.json").unlink()
    with pytest.raises(UserError, match=r"calibration\.json is missing"):
        _ = MiniLMJudge(tmp_path).name
    with pytest.raises(UserError, match="-1 threads; must be at least 1"):
        MiniLMJudge(model, threads=-1)
