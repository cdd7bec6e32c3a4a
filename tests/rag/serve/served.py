"""A small index of our own texts, and a real server process around one."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from autoais.judges.minilm import default_judge
from rag.answer.attribution.check import CheckedGenerator
from rag.answer.generators.cited import CitedGenerator
from rag.answer.llms import Completion, LanguageModel, Message, ModelError
from rag.answer.llms.prompts import Prompt
from rag.answer.system import RetrieveThenRead
from rag.answer.systems import SYSTEMS, Settings, SystemKind
from rag.api import build_index
from rag.base.types import Answer, Citation, CitedSentence, Hit, Question
from rag.index.index import Index
from rag.testing import ScriptedModel

BRIDGE = """# The Aller bridge

## History

The Aller bridge opened in 1931. It has three arches of red brick. Until 1931 a ferry crossed the river four times a
day, and in winter, when ice drifted on the water, nobody crossed at all. The mayor of the town had asked for a bridge
since 1904, but a war and then the price of steel kept the builders away. When work began in the spring of 1929, two
hundred people were hired, most of them from the villages on the far bank, who were to use the bridge most.

## Repair

The bridge was repaired in 1987 for two million marks. The engineer of the repair was Ida Brandt. Frost had loosened the
bricks of the middle arch, and lorries were no longer allowed to cross. For fourteen months the traffic went over a
bridge of pontoons, which the army had lent. Divers looked at the piers and found them sound. The railing is new, and so
are the lamps, which were cast after a photograph of the first ones.

## Name

The bridge is named after the river Aller, which flows through Verden. People of the town call it the red bridge. A plan
to name it after the mayor who had asked for it failed in 1932, as he did not want to be remembered for a bridge that
had cost the town so much. A street near the market has his name instead. On maps of the army it was bridge number nine
until the nineties, when these maps were no longer printed.
"""
OVENS = """# Ovens

The baker Eva Lund built the first stone oven of Verden in 1902. It burned beech wood.
"""


def documents(folder: Path) -> Path:
    """Two documents; the first has three passages."""
    folder.mkdir()
    (folder / "bridge.md").write_text(BRIDGE, "utf-8")
    (folder / "ovens.md").write_text(OVENS, "utf-8")
    return folder


def make_index(folder: Path) -> Index:
    """An index of the two documents."""
    return build_index(documents(folder / "documents"), folder / "town.index")


def other_index(folder: Path) -> Index:
    """An index with the same passage ids, and other texts."""
    folder.mkdir()
    parts = "".join(
        f"## Part {n}\n\n{f'The Aller bridge of another index has {n} parts. ' * 12}\n\n" for n in (1, 2, 3)
    )
    (folder / "bridge.md").write_text(f"# The Aller bridge\n\n{parts}", "utf-8")
    return build_index(folder / "bridge.md", folder / "other.index")


class SlowQuoter:
    """A generator that quotes a sentence of each hit, then another one of the first; each when the test lets it."""

    name = "slow"

    def __init__(self) -> None:
        self._permits = threading.Semaphore(0)

    def go_on(self) -> None:
        """Let it write one more sentence, or end the answer."""
        self._permits.release()

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """The answer of the stream."""
        *_, answer = self.stream(question, hits)
        return answer

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the answer so far, a sentence longer each time; twice, as the service shows what is not the last."""
        answer = Answer(question, "", (), tuple(hits), self.name)
        for hit, number in [*((hit, 0) for hit in hits), (hits[0], 1)]:
            self.wait()
            quote = re.findall(r"[A-Z].*?[.]", hit.passage.text, re.DOTALL)[number]
            at, start = hit.passage.text.index(quote), len(answer.text)
            citation = Citation(hit.passage.id, at, at + len(quote), quote, "copied")
            sentence = CitedSentence(quote, (citation,), start, start + len(quote))
            answer = replace(answer, text=f"{answer.text}{quote} ", sentences=(*answer.sentences, sentence))
            yield from (answer, answer)
        self.wait()
        yield answer

    def wait(self) -> None:
        """Wait for `go_on`."""
        assert self._permits.acquire(timeout=20), "the test does not let it go on"


def slow_system(k: int = 2) -> SlowQuoter:
    """Register a system called `slow` that answers from k hits, and return what writes its answers."""
    quoter = SlowQuoter()
    kind = SystemKind("slow", "nothing", "bm25", k, lambda opened: RetrieveThenRead(opened.retriever, quoter, opened.k))
    SYSTEMS.register("slow", kind)
    return quoter


class BreaksOff(ScriptedModel):
    """Writes the beginning of an answer, and then fails with words that callers should not get."""

    def _write(self, messages: Sequence[Message], max_tokens: int, on_text: Callable[[str], None]) -> Completion:
        on_text(str(self.says[0]))
        raise ModelError("http://10.0.0.7/v1: key sk-secret, /srv/models: out of memory")


def model_system(model: LanguageModel, name: str = "model") -> None:
    """Register a system whose language model writes free text from two passages, each sentence checked."""

    def make(opened: Settings) -> RetrieveThenRead:
        generator = CitedGenerator(model, Prompt.read("hagrid.v1"))
        return RetrieveThenRead(opened.retriever, CheckedGenerator(generator, default_judge()), opened.k)

    SYSTEMS.register(name, SystemKind("model", "nothing", "bm25", 2, make))


@dataclass
class Running:
    """A server process, and the address it serves."""

    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def memory(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text("utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(index: Path, *options: str, before: str = "", **environment: str) -> Iterator[Running]:
    """`rag serve` in a process of its own, over an index called `town`; `before` is code that runs first.

    Fails if the server writes a traceback.
    """
    code = f"import sys\n{before}\nfrom rag.__main__ import main\nsys.argv[0] = 'rag'\nmain()"
    command = [sys.executable, "-c", code, "serve", "--index", f"town={index}", "--port", "0", *options]
    path = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | path | environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        port = next((int(line.rpartition(":")[2]) for line in process.stdout if line.startswith("http://")), 0)
        assert port, process.stderr.read()
        yield Running(process, port)
    finally:
        process.terminate()
        try:
            _, said = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert "Traceback" not in said, said
