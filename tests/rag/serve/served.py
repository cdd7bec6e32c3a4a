"""A small index of our own texts, and a real server process around one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rag.api import build_index
from rag.index.index import Index

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
