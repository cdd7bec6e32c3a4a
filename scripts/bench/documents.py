"""Reading documents: speed, memory and passages of Debian's manuals, and libraries compared on some of them.

    python -m scripts.bench.documents fetch /tmp/manuals
    python -m scripts.bench.documents measure /tmp/manuals --against 2491e9a --out eval/results/documents.json

`fetch` needs Debian's apt-get and dpkg; nothing of the packages is kept here. `measure` counts CPU time, of each
package in a process of its own with those it starts; the rates of all HTML and all PDF files are the best of three
rounds. `--against` reads the PDFs with a revision of this repository too,
once, which needs pypdf. The comparison needs trafilatura, readability-lxml, pdfplumber and pypdf; those that are not
installed are left out.

HTML libraries are compared on CMake's manual, whose sources Sphinx ships beside the pages: of the words of a source,
the share that is in the text (recall), of the words of the text, the share that is in the source (precision), and the
share of the source's lines of code that are lines of the text. PDF libraries are compared on Octave's manual: the share
of the words that also stand in its HTML, and of words with 17 letters or more, which tell of lost spaces.
"""

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.errors import UserError
from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.provenance import processor, provenance

PACKAGES = {  # the folder of each with the documents in English
    "apache2-doc": "usr/share/doc/apache2-doc/manual/en",
    "aptitude-doc-en": "usr/share/doc/aptitude",
    "bind9-doc": "usr/share/doc/bind9-doc",
    "cmake-doc": "usr/share/doc/cmake-data",
    "doxygen-doc": "usr/share/doc/doxygen",
    "exim4-doc-html": "usr/share/doc/exim4-doc-html",
    "gimp-help-en": "usr/share/gimp/2.0/help/en",
    "installation-guide-amd64": "usr/share/doc/installation-guide-amd64/en",
    "octave-doc": "usr/share/doc/octave",
    "postfix-doc": "usr/share/doc/postfix/html",
    "python-django-doc": "usr/share/doc/python-django-doc",
    "texlive-latex-base-doc": "usr/share/doc/texlive-doc/latex/base",
}
OCTAVE = Path("octave-doc", PACKAGES["octave-doc"])
CMAKE = Path("cmake-doc", PACKAGES["cmake-doc"], "html")
LONG = 17  # letters
ROUNDS = 3
_CODE = re.compile(
    r"^(?P<indent> *).*::\s*$\n(?:\s*:\w+:.*\n)*\n(?P<lines>(?:(?P=indent) {2,}.*\n|\s*\n)+)", re.MULTILINE
)

app = typer.Typer(add_completion=False)
Extract = Callable[[bytes], str]


@app.command()
def fetch(to: Path) -> None:
    """Download the packages and unpack them."""
    to.mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        subprocess.run(["apt-get", "download", name], cwd=to, check=True)
        (package,) = to.glob(f"{name}_*.deb")
        subprocess.run(["dpkg", "-x", package.name, name], cwd=to, check=True)
        package.unlink()


@app.command()
def measure(
    manuals: Path,
    out: Annotated[Path, typer.Option(help="File of the result.")],
    against: Annotated[str | None, typer.Option(help="Revision whose reading of PDFs is compared.")] = None,
) -> None:
    """Measure the readers on each package, then the libraries."""
    result = {
        "packages": {name: _in_process("read", manuals / name / folder) for name, folder in PACKAGES.items()},
        "html": _rates([_in_process("speed", manuals, ".html") for _ in range(ROUNDS)]),
        "pdf": _rates([_in_process("speed", manuals, ".pdf") for _ in range(ROUNDS)]),
        **({"pdf_before": {"revision": against, **_before(manuals, against)}} if against else {}),
        "html_libraries": compare_html(manuals / CMAKE),
        "pdf_libraries": compare_pdf(manuals / OCTAVE),
        "machine": {"processor": processor()},
        "provenance": provenance({}) | {"libraries": _versions()},
    }
    if "pdf_before" in result:
        result["pdf_before"]["times_slower"] = result["pdf_before"]["cpu"] / result["pdf"]["cpu"]
    write_atomic(out, [dumps(round_floats(result), indent=2)])


def _rates(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The round that was disturbed least, with its rates."""
    found = min(rounds, key=lambda one: one["cpu"])
    return (
        found
        | {"rounds": len(rounds)}
        | {f"{kind}_mb_a_second": found[kind] / 1e6 / found["cpu"] for kind in ("bytes", "text")}
    )


def _versions() -> dict[str, str]:
    found = {}
    for name in ("selectolax", "trafilatura", "readability-lxml", "pypdfium2", "pdfplumber", "pypdf", "docutils"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _in_process(command: str, *arguments: object) -> dict[str, Any]:
    told = subprocess.run(
        [sys.executable, "-m", "scripts.bench.documents", command, *map(str, arguments)],
        check=True,
        capture_output=True,
    )
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def _cpu() -> float:
    """CPU time of this process and of those that it started and that ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _memory() -> float:
    """Megabytes at most, of this process and of the largest that it started together."""
    return (
        sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 1024 / 1e6
    )


@app.command(hidden=True)
def read(folder: Path) -> None:
    """Print how a folder is read, as JSON."""
    from rag.documents import pdf_pages
    from rag.documents.corpus import Corpus

    corpus, words, last = Corpus([folder]), [], []
    for _, passage in corpus.read():
        words.append(len(passage.text.split()))
        last.append(passage.text.rstrip().endswith(":"))
    pdf_pages._stop()  # so that its CPU time counts
    quantiles = statistics.quantiles(words, n=20)
    found = {
        "megabytes": corpus.report.bytes_read / 1e6,
        "cpu": _cpu(),
        "memory_megabytes": _memory(),
        "passages": len(words),
        "words": {"p5": quantiles[0], "median": quantiles[9], "p95": quantiles[18]},
        "ends_with_colon": sum(last) / len(last),
        "bad": corpus.report.bad,
        "twins": len(corpus.report.twins),
        "left_out": dict(corpus.report.dropped),
    }
    sys.stdout.write(json.dumps(found))


@app.command(hidden=True)
def speed(manuals: Path, suffix: str) -> None:
    """Print how fast all files of a type are read, as JSON; `text` counts also what is left out of PDFs."""
    from rag.documents import pdf_pages, read_document
    from rag.documents.pdf import pdf_blocks
    from rag.documents.split import passages

    files = [*_files(manuals, suffix)]
    text, start = 0, _cpu()
    for path in files:
        if suffix == ".pdf":
            pages = pdf_pages.read_pages(path.read_bytes(), str(path))
            text += sum(len(line.text.encode()) + 1 for lines in pages.lines for line in lines)
            title, blocks = pdf_blocks(pages, Counter())
            list(passages(blocks, path.name, title))
        else:
            text += sum(len(passage.text.encode()) for passage in read_document(path, path.name))
    pdf_pages._stop()
    size = sum(path.stat().st_size for path in files)
    found = {"files": len(files), "bytes": size, "text": text, "cpu": _cpu() - start, "memory_megabytes": _memory()}
    sys.stdout.write(json.dumps(found))


def _files(manuals: Path, suffix: str) -> Iterator[Path]:
    for name, folder in PACKAGES.items():
        yield from (path for path in sorted((manuals / name / folder).rglob(f"*{suffix}")) if path.is_file())


def _before(manuals: Path, revision: str) -> dict[str, Any]:
    """The time that a revision takes for the same PDFs."""
    program = (
        "import json, sys, time\n"
        "from pathlib import Path\n"
        "try: from rag.documents import read_document\n"
        "except ImportError: from rag.documents import read_document\n"  # until November 2026
        "failed, start = [], time.process_time()\n"
        "for path in sys.argv[1:]:\n"
        "    try: read_document(Path(path), Path(path).name)\n"
        "    except Exception as error: failed.append(f'{path}: {error}')\n"
        "print(json.dumps({'cpu': time.process_time() - start, 'failed': failed}))"
    )
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        files = [str(path.resolve()) for path in _files(manuals, ".pdf")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, f"{folder}/eval"])}
        command = [sys.executable, "-c", program, *files]
        told = subprocess.run(command, check=True, capture_output=True, env=env, cwd=folder)
    found: dict[str, Any] = json.loads(told.stdout)
    if failed := found.pop("failed"):
        raise UserError(
            f"revision {revision} cannot read {len(failed)} of {len(files)} PDFs (it needs pypdf): {failed[0]}"
        )
    return found


# --- libraries ---------------------------------------------------------------------------------------------------


def compare_html(pages: Path) -> dict[str, Any]:
    """Recall, precision, lines of code and speed of each library on CMake's pages with sources of 200 words or more."""
    pairs = []
    for source in sorted((pages / "_sources").rglob("*.rst.txt")):
        page = pages / source.relative_to(pages / "_sources").as_posix().replace(".rst.txt", ".html")
        text = source.read_text()
        if page.exists() and len(text.split()) >= 200 and "cmake-module::" not in text:
            pairs.append((page.read_bytes(), text))
    found = {}
    for name, extract in _html_libraries():
        start = time.process_time()
        texts = [extract(page) for page, _ in pairs]
        taken = time.process_time() - start
        shares = [_shares(text, source) for text, (_, source) in zip(texts, pairs, strict=True)]
        recall, precision, code = (statistics.mean(one) for one in zip(*shares, strict=True))
        rate = sum(len(page) for page, _ in pairs) / 1e6 / taken
        found[name] = {"recall": recall, "precision": precision, "code_lines": code, "mb_a_second": rate}
    return {"pages": len(pairs), **found}


def _html_libraries() -> Iterator[tuple[str, Extract]]:
    from rag.documents.html import html_blocks

    def ours(page: bytes) -> str:
        title, blocks = html_blocks(page.decode(), Counter(), "page.html")
        return "\n\n".join([title, *(block.text for block in blocks)])

    yield "selectolax with structural rules (taken)", ours
    try:
        import trafilatura
    except ImportError:
        pass
    else:
        yield "trafilatura", lambda page: trafilatura.extract(page.decode(), include_tables=True) or ""
        yield "trafilatura, favour recall", lambda page: trafilatura.extract(page.decode(), favor_recall=True) or ""
    try:
        import readability
        from lxml import html
    except ImportError:
        return
    yield "readability-lxml", lambda page: html.fromstring(readability.Document(page.decode()).summary()).text_content()


def _shares(text: str, source: str) -> tuple[float, float, float]:
    found, wanted = Counter(_words(text)), Counter(_words(_plain(source)))
    both = (found & wanted).total()
    lines = {" ".join(line.split()) for line in text.splitlines()}
    code = {" ".join(line.split()) for block in _CODE.finditer(source) for line in block["lines"].splitlines()} - {""}
    kept = sum(line in lines for line in code) / len(code) if code else 1.0
    return both / max(1, wanted.total()), both / max(1, found.total()), kept


def _plain(source: str) -> str:
    """The words of reStructuredText: without the names of directives, roles and targets."""
    source = re.sub(r"^\s*\.\. (?:_.*|[\w:-]+::)|^\s*:[\w-]+:", "", source, flags=re.MULTILINE)
    return re.sub(r":[\w:-]+:`(?:([^<`]*)<[^>`]*>|([^`]*))`", r"\1\2", source)


def _words(text: str) -> Iterable[str]:
    return re.findall(r"[a-z]{2,}", text.lower())


def compare_pdf(manual: Path) -> dict[str, Any]:
    """Words known from the HTML, words of 17 letters or more and speed of each library on Octave's manual."""
    data = (manual / "octave.pdf").read_bytes()
    known = set[str]()
    for page in (manual / "octave.html").glob("*.html"):
        known.update(_words(re.sub(r"<[^>]*>", " ", page.read_text())))
    found = {}
    for name, extract in _pdf_libraries():
        start = time.process_time()
        text = extract(data)
        taken = time.process_time() - start
        words = [*_words(text)]
        found[name] = {
            "known_words": sum(word in known for word in words) / len(words),
            "long_words": sum(len(word) >= LONG for word in words) / len(words),
            "text_mb_a_second": len(text.encode()) / 1e6 / taken,
        }
    return found


def _pdf_libraries() -> Iterator[tuple[str, Extract]]:
    import pypdfium2

    def by_pdfium(data: bytes) -> str:
        document = pypdfium2.PdfDocument(data)
        return "\n".join(page.get_textpage().get_text_range().replace("\ufffe", "") for page in document)

    yield "pypdfium2 (taken)", by_pdfium
    try:
        from pypdf import PdfReader
    except ImportError:
        pass
    else:
        yield "pypdf", lambda data: "\n".join(page.extract_text() for page in PdfReader(BytesIO(data)).pages)
    try:
        import pdfplumber
    except ImportError:
        return

    def by_pdfplumber(data: bytes) -> str:
        with pdfplumber.open(BytesIO(data)) as document:
            pages: Sequence[Any] = document.pages[::10]  # it takes minutes for the whole
            return "\n".join(page.extract_text() for page in pages)

    yield "pdfplumber", by_pdfplumber


if __name__ == "__main__":
    app()
