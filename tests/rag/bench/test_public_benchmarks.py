"""The benchmarks of public data from nothing to a report: a server here holds small copies of their files.

The copies have the real names and formats, and texts that we invented. The table of data sets and the benchmarks are
those that ship, with the addresses, checksums and numbers of the copies.
"""

import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from autoais.base.io.jsonl import dumps
from rag.base.errors import RagError
from rag.bench import list_datasets, open_run, read_benchmark
from rag.bench.questions import questions_of
from tests.conftest import Command, one_line_error
from tests.rag.bench.test_datasets import Server

PASSAGES = {
    "10#0": ("Lorne", "The Lorne is a river of Ambria. It is 214 kilometres long and ends in Lake Tessel."),
    "10#1": ("Lorne", "Salmon return to the Lorne every spring. Fishing was forbidden in 1931."),
    "20#0": ("Halvik", "Halvik is a port of Ambria. Its lighthouse was built in 1868 by Oda Brandt."),
    "20#1": ("Halvik", "The ferry to Skarn leaves Halvik twice a day. The crossing takes three hours."),
    "30#0": ("Skarn", "Skarn is an island of sheep farms. Its school closed in 1994."),
}


def jsonl(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(dumps(dict(row)) + "\n" for row in rows).encode()


def nq_open() -> dict[str, bytes]:
    questions = [
        {"question": "where does the lorne river end", "answer": ["Lake Tessel"]},
        {"question": "who built the lighthouse of halvik", "answer": ["Oda Brandt", "Brandt"]},
        {"question": "when did the school on skarn close", "answer": ["1994"]},
    ]
    quoted = (f'{n}\t"{text}"\t{title}\n' for n, (title, text) in enumerate(PASSAGES.values(), 1))
    passages = "id\ttext\ttitle\n" + "".join(quoted)
    return {"nq/NQ-open.dev.jsonl": jsonl(questions), "dpr/psgs_w100.tsv.gz": gzip.compress(passages.encode())}


def hagrid() -> dict[str, bytes]:
    def row(number: int, query: str, ids: tuple[str, ...], text: str, label: int) -> dict[str, Any]:
        quotes = [{"idx": n, "docid": key, "text": PASSAGES[key][1]} for n, key in enumerate(ids, 1)]
        sentence = {"index": 0, "text": text, "attributable": label, "informative": 1}
        answer = {"answer": text, "answer_type": "long", "attributable": label, "informative": 1}
        return {"query": query, "query_id": number, "quotes": quotes, "answers": [answer | {"sentences": [sentence]}]}

    rows = [
        row(1, "How long is the Lorne?", ("10#0", "10#1"), "The Lorne is 214 kilometres long [1].", 1),
        row(2, "Who built Halvik's lighthouse?", ("20#0",), "Erik Lund built it in 1868 [1].", 0),
    ]
    return {"hagrid/train.jsonl": jsonl(rows[:1]), "hagrid/dev.jsonl": jsonl(rows)}


def nomiracl() -> dict[str, bytes]:
    topics = {
        "relevant": ['7#0\tHow long is the river "Lorne"?', "8\tWhen did the school on Skarn close?"],
        "non_relevant": ["9#0\tWho founded Halvik?"],
    }
    qrels = {
        "relevant": [("7#0", "10#0", 1), ("7#0", "10#1", 0), ("8", "30#0", 1), ("8", "20#1", 0)],
        "non_relevant": [("9#0", "20#0", 0), ("9#0", "20#1", 0)],
    }
    contents = {}
    for split in ("dev", "test"):
        for subset, lines in topics.items():
            judged = (f"{topic}\tQ0\t{key}\t{relevance}\n" for topic, key, relevance in qrels[subset])
            contents[f"nomiracl/topics/{split}.{subset}.tsv"] = "".join(f"{line}\n" for line in lines).encode()
            contents[f"nomiracl/qrels/{split}.{subset}.tsv"] = "".join(judged).encode()
    rows = [{"docid": key, "title": title, "text": text} for key, (title, text) in PASSAGES.items()]
    return contents | {"nomiracl/corpus.jsonl.gz": gzip.compress(jsonl([*rows, rows[0]]))}  # one stands there twice


def alce() -> dict[str, bytes]:
    def docs(*keys: str) -> list[dict[str, Any]]:  # more than the five that are given
        first = [{"id": key, "title": PASSAGES[key][0], "text": PASSAGES[key][1], "score": 1.5} for key in keys]
        fillers = [{"id": key, "title": title, "text": text} for key, (title, text) in PASSAGES.items()]
        return first + fillers * 2

    asqa = {
        "sample_id": "-42",
        "question": "When was the Lorne closed?",
        "answer": "Fishing on the Lorne was forbidden in 1931, and Skarn's school closed in 1994.",
        "qa_pairs": [
            {"question": "When was fishing forbidden?", "short_answers": ["1931"], "context": "", "wikipage": None},
            {"question": "How long is the Lorne?", "short_answers": ["214 kilometres", "214 km"], "context": ""},
        ],
        "annotations": [{"long_answer": "It was in 1931.", "knowledge": []}, {"long_answer": "1931.", "knowledge": []}],
        "wikipages": [],
        "docs": docs("10#1", "10#0"),
    }
    qampari = {
        "id": "3__simple",
        "question": "Which places are in Ambria?",
        "answer": "Halvik, Lorne",
        "answers": [["Halvik", "Port Halvik"], ["Lorne"]],
        "docs": docs("20#0", "10#0"),
    }
    eli5 = {
        "question": "Why is there no fishing in the Lorne?",
        "answer": "Because it was forbidden in 1931, when salmon had become rare.",
        "claims": ["Fishing was forbidden in 1931.", "Salmon had become rare.", "Salmon return every spring."],
        "docs": [{"title": "Lorne", "text": PASSAGES["10#1"][1]}, {"title": None, "text": PASSAGES["20#1"][1]}],
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, row in (("asqa_eval_gtr", asqa), ("qampari_eval_gtr", qampari), ("eli5_eval_bm25", eli5)):
            body = json.dumps([row], indent=None if row is asqa else 4).encode()
            info = tarfile.TarInfo(f"ALCE-data/{name}_top100.json")
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return {"alce/ALCE-data.tar": buffer.getvalue()}


def attributionbench() -> dict[str, bytes]:
    def row(key: str, claim: str, evidence: str, label: str) -> dict[str, Any]:
        return {
            "id": key, "question": "What is known of Ambria?", "claim": claim, "claim_raw_string": claim,
            "response": claim, "references": [PASSAGES[evidence][1]], "citation_links": [], "webpage_references": [],
            "attribution_label": label, "src_dataset": "ExpertQA",
        }  # fmt: skip

    rows = [
        row("1", "The Lorne is a river of Ambria.", "10#0", "attributable"),
        row("2", "Halvik has a cathedral.", "20#0", "not attributable"),
    ]
    other = [row("3", "Skarn is an island.", "30#0", "attributable")]
    names = ("labels/attributionbench_dev.jsonl", "labels/attributionbench_test500.jsonl")
    return dict(zip(names, map(jsonl, (rows, other)), strict=True)) | {
        "labels/attributionbench_ood.jsonl": jsonl(other)
    }


COPIES = nq_open() | hagrid() | nomiracl() | alce() | attributionbench()
COUNTS = {"open-nq": 3, "hagrid": 2, "alce-asqa": 1, "alce-qampari": 1, "alce-eli5": 1, "attributionbench": 3}


pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """The server of the copies; the test runs in an empty folder with the table and the benchmarks of the copies."""
    monkeypatch.delenv("RAG_OFFLINE", raising=False)
    monkeypatch.chdir(tmp_path)
    with Server() as server:
        Path("table.toml").write_text(table_of_copies(server), "utf-8")
        for name in ("open-nq", "hagrid", "nomiracl", "alce-asqa", "alce-qampari", "alce-eli5", "attributionbench"):
            Path(f"{name}.toml").write_text(benchmark_of_copies(name), "utf-8")
        yield server


def table_of_copies(server: Server) -> str:
    """The table that ships, of the files of which there are copies, which the server gets under their real paths."""
    text = []
    for name, row in tomllib.loads(files("rag").joinpath("data/datasets.toml").read_text("utf-8")).items():
        copied = [file for file in row.get("files", ()) if file["to"] in COPIES]
        if len(copied) < len(row.get("files", [None])):
            continue
        text.append(f'[{name}]\ndescription = "A copy"\nlicence = "ours"\nsource = "https://example.org"\n')
        for file in copied:
            body, path = COPIES[file["to"]], urlsplit(file["url"]).path
            server.bodies[path] = body
            facts = {"to": file["to"], "url": server.url + path, "checksum": f"sha256:{sha256(body).hexdigest()}"}
            pairs = "".join(f"{key} = {json.dumps(value)}\n" for key, value in facts.items())
            text.append(f"[[{name}.files]]\n{pairs}{'unpack = true' if file.get('unpack') else ''}\n")
    return "\n".join(text)


def benchmark_of_copies(name: str) -> str:
    """A benchmark that ships, without checksums of the real files, with the number of questions of the copies."""
    text = files("rag").joinpath(f"../eval/benchmarks/{name}.toml").read_text("utf-8")
    if name == "attributionbench":
        digests = (sha256(COPIES[file]).hexdigest() for file in re.findall('(?m)^file = "(.*)"', text))
        text = re.sub('(?m)^sha256 = ".*"', lambda _: f'sha256 = "{next(digests)}"', text)
    text = re.sub('(?m)^sha256 = ".*"\n', "", text) if name != "attributionbench" else text
    return re.sub("(?m)^count = .*", f"count = {COUNTS.get(name)}", text)


def fetch(rag: Command, *names: str) -> list[str]:
    done = rag("data", "fetch", *names, "--data", "data", "--table", "table.toml", "--allow-network")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def run(rag: Command, name: str, *options: str) -> dict[str, Any]:
    """Run a benchmark with quick systems, write its report, and return the metrics of the system `extractive`."""
    arguments = ["--data", "data", "--system", "extractive", "--judge", "lexical", "--out", "RUN", *options]
    done = rag("bench", "run", f"{name}.toml", *arguments)
    assert done.returncode == 0, done.stderr
    assert rag("bench", "report", "RUN").returncode == 0
    assert name in Path("RUN/report/report.html").read_text("utf-8")
    return open_run("RUN").metrics("extractive")


def test_open_nq_over_the_wikipedia_of_dpr(server: Server, rag: Command) -> None:
    assert fetch(rag, "nq-open", "dpr-wikipedia") == ["data/nq/NQ-open.dev.jsonl", "data/dpr/psgs_w100.tsv.gz"]
    result = run(rag, "open-nq", "--corpus", "dpr", "--system", "first-passage")
    assert result["metrics"]["right"]["value"] == 1
    assert open_run("RUN").labels == ["extractive", "first-passage"]
    assert open_run("RUN").record["benchmark"]["closed_pool"] is None  # what was searched is not the pool


def test_hagrid_with_its_own_answers_and_labels(server: Server, rag: Command) -> None:
    fetch(rag, "hagrid")
    result = run(rag, "hagrid", "--predictions", "data/hagrid/dev.jsonl", "--human", "data/hagrid/dev.jsonl")
    assert result["n"] == 2
    released = open_run("RUN").metrics("dev")
    assert released["human"]["attributable"]["value"] == 0.5


def test_nomiracl_from_topics_judgements_and_judged_passages(server: Server, rag: Command) -> None:
    assert len(fetch(rag, "nomiracl")) == 9
    result = run(rag, "nomiracl", "--predictions", str(predictions(("7#0", "10#0"))))
    assert result["n"] == 3
    assert result["metrics"]["answerable_refused"]["n"] == 2
    assert result["metrics"]["unanswerable_refused"]["n"] == 1
    assert not Path("RUN/index").exists()  # texts come as a stream, nothing is indexed
    first, _, last = questions_of(read_benchmark("nomiracl.toml"), Path("data"))
    assert first.question.text == 'How long is the river "Lorne"?'
    assert [(passage.id, passage.title) for passage in first.passages] == [("10#0", "Lorne"), ("10#1", "Lorne")]
    assert first.question.gold == ("10#0",)
    assert (last.question.id, last.answerable, last.question.gold) == ("9#0", False, ())
    data = open_run("RUN").record["data"]
    assert data["questions"]["file"] == "nomiracl/topics/test.relevant.tsv"
    assert data["further_files"]["nomiracl/corpus.jsonl.gz"] == sha256(COPIES["nomiracl/corpus.jsonl.gz"]).hexdigest()
    other = open_run("RUN").metrics("mine")
    assert other["predictions"]["not_in_corpus"]["count"] == 0
    assert other["predictions"]["missing"]["count"] == 2


def predictions(cited: tuple[str, str]) -> Path:
    """Another system's answer to the question of that id, which cites a passage by id."""
    question, passage = cited
    citations = [{"passage": passage}]
    row = {"id": question, "question": 'How long is the river "Lorne"?', "passages": [{"id": passage, "text": "x"}]}
    path = Path("mine.jsonl")
    path.write_bytes(jsonl([row | {"sentences": [{"text": "It is 214 kilometres long.", "citations": citations}]}]))
    return path


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("alce-asqa", {"str_em": 1, "str_hit": 1}),
        ("alce-qampari", {"qampari_rec": 1, "qampari_prec": 0.67}),
        ("alce-eli5", {"claims_nli": 0.33}),
    ],
)
def test_alce_with_its_own_measures(server: Server, rag: Command, name: str, measures: Mapping[str, float]) -> None:
    assert fetch(rag, "alce") == ["data/alce/ALCE-data"]
    result = run(rag, name, "--predictions", str(alce_output(name)), "--metrics", "alce")
    (question,) = questions_of(read_benchmark(f"{name}.toml"), Path("data"))
    assert question.passages[0].text in (PASSAGES["10#1"][1], PASSAGES["20#0"][1])
    assert len(question.passages) == min(5, len(source_row(name)["docs"]))
    for system in (result, open_run("RUN").metrics("output")):
        assert {"citation_recall", "citation_precision", *measures} <= system["metrics"].keys()
        assert (system["metrics"]["right"]["value"] is None) == (name == "alce-eli5")
    released = open_run("RUN").metrics("output")["metrics"]
    again = rag("bench", "run", f"{name}.toml", "--data", "data", "--out", "RUN", "--resume", "--all")
    assert f"\n{next(iter(measures))} " in again.stdout
    assert {measure: round(released[measure]["value"], 2) for measure in measures} == measures


def source_row(name: str) -> dict[str, Any]:
    part = name.removeprefix("alce-")
    (path,) = Path("data/alce/ALCE-data").glob(f"{part}_*.json")
    (row,) = json.loads(path.read_text("utf-8"))
    return dict(row)


def alce_output(name: str) -> Path:
    """A result file as ALCE's `run.py` writes it."""
    outputs = {
        "alce-asqa": "Fishing was forbidden in 1931 [1]. It is 214 kilometres long [2].",
        "alce-qampari": "Halvik [1], Lorne [2], Skarn [1].",
        "alce-eli5": "Fishing was forbidden in 1931 [1].",
    }
    path, row = Path("output.json"), source_row(name)
    row |= {"docs": row["docs"][:5], "output": outputs[name]}
    path.write_text(json.dumps({"args": {}, "data": [row]}), "utf-8")
    return path


def test_attributionbench_measures_judges(server: Server, rag: Command) -> None:
    assert len(fetch(rag, "attributionbench")) == 3
    options = ["--set", "attributionbench.toml", "--data", "data", "--judge", "lexical", "--out", "judges.json"]
    done = rag("bench", "judges", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(Path("judges.json").read_text())["sets"]["AttributionBench/ExpertQA"]["claims"] == 3


def test_a_killed_download_and_a_killed_run_go_on(server: Server, rag: Command) -> None:
    place = next(path for path in server.bodies if path.endswith("corpus.jsonl.gz"))
    server.bodies[place] = gzip.compress(gzip.decompress(server.bodies[place]) + noise())
    table = Path("table.toml")
    digests = {kind: sha256(body).hexdigest() for kind, body in (("old", COPIES["nomiracl/corpus.jsonl.gz"]),
                                                                 ("new", server.bodies[place]))}  # fmt: skip
    table.write_text(table.read_text().replace(digests["old"], digests["new"]))
    server.pause = 0.3
    part = Path("data/nomiracl/corpus.jsonl.gz.part")
    options = ["--data", "data", "--table", "table.toml", "--allow-network"]
    kill_when(part, "data", "fetch", "nomiracl", *options)
    size, server.pause = part.stat().st_size, 0
    assert 0 < size < len(server.bodies[place])
    fetch(rag, "nomiracl")
    assert (place, f"bytes={size}-") in server.requests

    systems = ["--system", "extractive", "--judge", "lexical", "--out", "RUN"]
    kill_when(Path("RUN/run.json"), "bench", "run", "nomiracl.toml", "--data", "data", *systems)
    result = run(rag, "nomiracl", "--resume")
    assert result["n"] == 3


def noise() -> bytes:
    """Passages that no question names, in so many lines that the file takes a while."""
    lines = ({"docid": f"99#{n}", "text": sha256(str(n).encode()).hexdigest() * 4} for n in range(8000))
    return jsonl(lines)


def kill_when(path: Path, *command: str) -> None:
    """Start `rag` and kill it as soon as the file is there."""
    with subprocess.Popen(
        [sys.executable, "-m", "rag", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 120
        while not (path.exists() and path.stat().st_size) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()


def test_a_file_with_another_checksum_is_refused_and_stays_under_another_name(server: Server, rag: Command) -> None:
    (place,) = [path for path in server.bodies if path.endswith("ALCE-data.tar")]
    right, server.bodies[place] = server.bodies[place], b"not what was announced"
    done = rag("data", "fetch", "alce", "--data", "data", "--table", "table.toml", "--allow-network")
    assert done.returncode == 2
    assert "its checksum should be sha256:" in done.stderr.splitlines()[-1]
    assert Path("data/alce/ALCE-data.tar.wrong").read_bytes() == b"not what was announced"
    assert not Path("data/alce/ALCE-data").exists()
    server.bodies[place] = right
    assert fetch(rag, "alce") == ["data/alce/ALCE-data"]


def test_what_does_not_fit_is_one_line(server: Server, rag: Command) -> None:
    one_line_error(rag("bench", "run", "nomiracl", "--data", ".", "--out", "RUN"), "rag data fetch nomiracl --data")
    fetch(rag, "nomiracl", "alce")
    corpus = Path("data/nomiracl/corpus.jsonl.gz")
    corpus.write_bytes(gzip.compress(jsonl([{"docid": "10#0", "text": "The Lorne."}])))
    with pytest.raises(RagError, match=r"corpus\.jsonl\.gz has no text of 4 of the 5 passages of nomiracl\.v2"):
        questions_of(read_benchmark("nomiracl.toml"), Path("data"))
    twice = Path("data/nomiracl/topics/test.non_relevant.tsv")
    twice.write_text("7#0\tAgain?\n")
    Path("data/nomiracl/qrels/test.non_relevant.tsv").write_text("7#0\tQ0\t10#0\t0\n")
    with pytest.raises(RagError, match=r"test\.non_relevant\.tsv: question '7#0' is in another file too"):
        questions_of(read_benchmark("nomiracl.toml"), Path("data"))
    asqa = Path("data/alce/ALCE-data/asqa_eval_gtr_top100.json")
    asqa.write_text('[{"question": "When?", "docs": [{"title": "Lorne"}]}]')
    one_line_error(rag("bench", "run", "alce-asqa.toml", "--data", "data", "--out", "RUN"), "docs[0].text")


def test_the_copies_have_the_names_of_the_table() -> None:
    names = {file.to for dataset in list_datasets() for file in dataset.files}
    assert COPIES.keys() <= names
