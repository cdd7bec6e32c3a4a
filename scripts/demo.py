"""Serves the page over two indexes, the handbook and Borg's documentation (a Debian package): `make demo`.

    python -m scripts.demo [--work work/demo] [--port 8000] [--no-browser]

Where there is no Debian, or no mirror of it, the handbook is served alone.
"""

import shutil
import subprocess
import tempfile
import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

import rag
from autoais.base.network import RequestError, get
from rag.serve import serve_indexes

PACKAGE = "borgbackup-doc"
PAGES = "usr/share/doc/borgbackup/html"


def download(to: Path) -> bool:
    """Unpack the pages of Debian's package in the folder; returns False if it cannot be had."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return False
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run(["apt-get", "download", "-qq", PACKAGE], cwd=temporary, check=False)
        for package in Path(temporary).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, f"{temporary}/unpacked"], check=True)
            shutil.copytree(f"{temporary}/unpacked/{PAGES}", to, ignore_dangling_symlinks=True)
            return True
    return False


def open_when_ready(url: str) -> None:
    """Open the page in a browser once the server answers."""
    for _ in range(100):
        try:
            get(f"{url}/healthz", seconds=2, max_bytes=10_000)
        except RequestError:
            time.sleep(0.1)
        else:
            webbrowser.open(url)
            return


def main(
    work: Annotated[Path, typer.Option(help="Folder for the documents and their index.")] = Path("work/demo"),
    port: Annotated[int, typer.Option(help="Port.")] = 8000,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
) -> None:
    """Build what is missing, then serve until Ctrl-C."""
    indexes = {"handbook": rag.open_index()}
    documents, index = work / "borg", work / "borg.index"
    if not index.exists() and (documents.exists() or download(documents)):
        rag.build_index(documents, to=index, include=["**/*.html"])
    if index.exists():
        indexes["borg"] = rag.open_index(index)
    else:
        print(f"{PACKAGE} cannot be downloaded (apt-get); the page has the handbook only")
    if browser:
        threading.Thread(target=open_when_ready, args=(f"http://127.0.0.1:{port}",), daemon=True).start()
    serve_indexes(indexes, port=port, log=print)


if __name__ == "__main__":
    typer.run(main)
