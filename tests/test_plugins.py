"""A package of somebody else adds one thing of every kind: it is built, installed, listed and used by the commands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command, one_line_error

ROOT = Path(__file__).parents[1]
PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "rag-extras-for-the-test"
version = "1.0"

[project.entry-points."rag.retrievers"]
alphabetical = "extras:ALPHABETICAL"
[project.entry-points."rag.encoders"]
letters = "extras:Letters"
[project.entry-points."rag.generators"]
first-sentence = "extras:FirstSentence"
[project.entry-points."rag.llms"]
parrot = "extras:Parrot"
[project.entry-points."autoais.judges"]
verbatim = "extras:Verbatim"
broken = "extras:Missing"
[project.entry-points."autoais.corpora"]
lines = "extras:LINES"
[project.entry-points."autoais.formats"]
one-liner = "extras:ONE_LINER"

[tool.hatch.build.targets.wheel]
include = ["extras.py"]
"""

EXTRAS = '''
import numpy as np

from autoais import Attribution, Judge, Judgement, Verdict
from autoais.base.answers import CitedAnswer
from autoais.formats.corpora import CorpusFormat
from autoais.formats.base import Format
from autoais.base.io.schema import STRING, record
from autoais.base.text.sentences import sentence_spans
from autoais.base.types import Citation, CitedSentence, Passage
from rag import Answer, Hit, RetrieverKind
from rag.index.analysis import check_search
from rag.answer.llms import Completion


class Alphabetical:
    """Every passage that holds the query's last word, in the order of ids."""

    name = "alphabetical"

    def __init__(self, index, retriever):
        self._passages = sorted(index.store.scan(), key=lambda passage: passage.id)

    def search(self, queries, k):
        check_search(queries, k)
        return [self._one(query.rstrip("?").split()[-1].lower(), k) for query in queries]

    def _one(self, word, k):
        return [Hit(passage, 1.0) for passage in self._passages if word in passage.text.lower()][:k]


ALPHABETICAL = RetrieverKind(Alphabetical)


class Letters:
    """Counts of the letters of a text."""

    dimension = 26

    def __init__(self, model):
        self.name = f"letters:{model}"

    def queries(self, texts):
        counts = [[text.lower().count(chr(97 + n)) for n in range(26)] for text in texts]
        return np.array(counts, np.float32).reshape(len(texts), 26)

    passages = queries


class FirstSentence:
    """The first sentence of the first hit, quoted.

    More is not said.
    """

    def __init__(self, model):
        self.name = f"first-sentence{model}"

    def generate(self, question, hits):
        if not hits:
            return Answer(question, "", (), (), self.name, abstained=True, reason="nothing was found")
        passage = hits[0].passage
        start, end = sentence_spans(passage.text)[0]
        quote = passage.text[start:end]
        sentence = CitedSentence(quote, (Citation(passage.id, start, end, quote, "copied"),), 0, len(quote))
        return Answer(question, quote, (sentence,), tuple(hits), self.name)


class Parrot:
    """Says the last line of what it is asked."""

    context = 4096

    def __init__(self, model, *, context, temperature, seed):
        self.name = f"parrot:{model}"

    def count(self, messages):
        return sum(len(message.content.split()) for message in messages)

    def complete(self, messages, max_tokens, stop=(), *, schema=None):
        return Completion(f"Answer: {self.name} says so.\\nShort: {self.name}", False, 1, 1)

    def stream(self, messages, max_tokens, stop=(), *, schema=None):
        completion = self.complete(messages, max_tokens, stop)
        yield from (completion.text, completion)


class Verbatim(Judge):
    """Supported where the claim stands in the evidence, word for word."""

    name = "verbatim"

    def decide(self, attributions):
        found = (any(one.claim in text for text in one.evidence) for one in attributions)
        return [Judgement(Verdict.ATTRIBUTABLE if yes else Verdict.NOT_ATTRIBUTABLE, float(yes)) for yes in found]


LINES = CorpusFormat(
    "a passage a line, `id: text`",
    lambda line: b": " in line and not line.startswith(b"{"),
    lambda line, where: Passage(line.decode().partition(": ")[0], text=line.decode().strip().partition(": ")[2]),
)


def _read(rows, notes):
    for where, row in rows:
        passage = Passage("source", text=row["from"])
        said = CitedSentence(row["says"], (Citation("source"),))
        yield CitedAnswer(where, row["asked"], (said,), {"source": passage}, ("source",))


ONE_LINER = Format(
    name="one-liner",
    description="a question, a sentence and its source a line",
    schema=record({"asked": STRING, "says": STRING, "from": STRING}),
    required_fields=("asked", "says", "from"),
    read=_read,
)
'''


@pytest.fixture(scope="module")
def extras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed in."""
    folder = tmp_path_factory.mktemp("extras")
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "extras.py").write_text(EXTRAS)
    target = folder / "site"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(folder)], check=True)
    return target


def on(extras: Path) -> dict[str, str]:
    """An environment in which the package is installed."""
    return {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}:{extras}"}


@pytest.mark.slow
def test_rag_lists_and_uses_what_a_package_adds(rag: Command, extras: Path, tmp_path: Path) -> None:
    listed = rag("systems", **on(extras)).stdout
    assert "first-sentence The first sentence of the first hit" in " ".join(listed.split())
    corpus = tmp_path / "towns.txt.corpus"
    corpus.write_text("b: Arlen lies on the river. It is small.\na: Bexley lies on the river too.\n")
    index = tmp_path / "towns.index"
    assert "2 passages" in rag("index", "build", corpus, "--to", index, **on(extras)).stderr
    asked = ("ask", "Which town lies on the river?", "--index", index)
    answered = rag(*asked, "--system", "first-sentence", "--retriever", "alphabetical", **on(extras))
    assert answered.stdout.startswith("Bexley lies on the river too [1].")
    wrong = rag(*asked, "--retriever", "alphabetica", **on(extras))
    assert "no retriever called 'alphabetica'; there are: " in wrong.stderr
    assert ", alphabetical, a+b" in wrong.stderr
    (tmp_path / "letters.toml").write_text('name = "letters"\nkind = "dense"\nencoder = "letters:x"\n')
    built = rag("index", "build", "--to", index, "--retriever", tmp_path / "letters.toml", **on(extras))
    assert built.returncode == 0, built.stderr
    found = rag("search", "river", "--index", index, "--retriever", tmp_path / "letters.toml", "--json", **on(extras))
    assert {hit["id"] for hit in json.loads(found.stdout)["hits"]} == {"a", "b"}
    said = rag(*asked, "--system", "closed-book:parrot:grey", **on(extras))
    assert said.stdout.splitlines()[:2] == ["parrot:grey", "parrot:grey says so."]


@pytest.mark.slow
def test_autoais_lists_and_uses_what_a_package_adds(autoais: Command, extras: Path, tmp_path: Path) -> None:
    assert "one-liner" in autoais("schema", **on(extras)).stdout
    answers = tmp_path / "answers.jsonl"
    rows = [("Where?", "Arlen is small.", "Arlen is small."), ("Who?", "Ann.", "Nobody.")]
    names = ("asked", "says", "from")
    answers.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    result = autoais("score", answers, "--judge", "verbatim", "--json", **on(extras))
    report = json.loads(result.stdout)
    assert report["format"] == "one-liner"
    assert report["judge"] == "verbatim"
    assert report["metrics"]["autoais"]["value"] == 0.5
    one_line_error(autoais("score", answers, "--judge", "broken", **on(extras)), "rag-extras-for-the-test", "'broken'")
    one_line_error(autoais("score", answers, "--judge", "nope", **on(extras)), "there are: lexical", "verbatim")
    assert "one-liner" not in autoais("schema").stdout
