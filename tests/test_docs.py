"""The documentation is real: transcripts, Python blocks and examples run, links lead somewhere, figures are measured.

A `console` block is a transcript, in which `...` stands for anything. The `python` blocks of a page run in order, in
one namespace, in a folder that has a copy of docs/ and tests/data.
"""

import json
import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from autoais.judges import JUDGES
from autoais.meta.leaderboard_tables import leaderboard_markdown
from rag.answer.system import System
from rag.answer.systems import open_system
from rag.api import build_index
from rag.bench.report.tables import metric_of
from rag.index.open import open_index
from rag.retrieval import RETRIEVERS
from scripts.results_page import pool_table, summary_table
from tests.conftest import Command

ROOT = Path(__file__).parents[1]
HANDBOOK = sorted((ROOT / "docs/handbook").glob("*/*.md"))
PAGES = [ROOT / "README.md", ROOT / "docs/index.md", *HANDBOOK]
TRANSCRIPTS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL), 1)
]
CLINIC = ROOT / "eval/benchmarks/everyday/documents/alderbrook-veterinary-practice"
WITH_PYTHON = [page for page in PAGES if "```python\n" in page.read_text("utf-8")]
ANSWERING = ("asking", "attrscore", "citation-metrics", "evaluation", "hagrid", "library", "retrieval")
UNREAD = {page.name for page in HANDBOOK if page.stem not in ANSWERING}
NEEDED = {"annotating.md": ("sqlalchemy",), "library.md": ("ir_measures", "pandas")}  # packages that it uses
SAYS = {
    "own_documents.py": "  reference/citation-metrics.md#2, characters 0 to 93: 'Citation precision is the share",
    "score_another_system.py": "difference 0.5 95 % interval [-1.0, 1.0]",
    "custom_retriever_and_judge.py": "AutoAIS 1.0 by numbers.v1",
}


@pytest.fixture(scope="module")
def reader() -> System:
    """The default system over the handbook."""
    return open_system("reader", open_index(None))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with what the pages read: data, a clinic's papers, and the part of the handbook that answers."""
    shutil.copytree(ROOT / "tests/data", tmp_path / "tests/data")
    shutil.copytree(CLINIC, tmp_path / "clinic")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=lambda _, names: [n for n in names if n in UNREAD])
    return tmp_path


@pytest.mark.parametrize("block", TRANSCRIPTS)
def test_transcript(block: str, copied: Path, rag: Command, autoais: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copied)
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert steps
    for line, expected in steps:
        program, *arguments = shlex.split(line)
        if "clinic.index" in arguments and not Path("clinic.index").exists() and "build" not in arguments:
            build_index(Path("clinic"), Path("clinic.index"))
        result = {"rag": rag, "autoais": autoais}[program](*arguments)
        assert result.returncode == 0, result.stderr
        pattern = re.escape(expected.strip()).replace(re.escape("..."), ".*")
        assert re.fullmatch(pattern, (result.stdout + result.stderr).strip(), re.DOTALL), result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_python_blocks(page: Path, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in NEEDED.get(page.name, ()):
        pytest.importorskip(module)
    program = copied / f"page_{page.stem}.py"  # `collections.py` would stand before Python's own
    program.write_text(python_of(page.read_text("utf-8")), "utf-8")
    run_program(program, copied, monkeypatch)


def python_of(page: str) -> str:
    """The Python blocks of a page; other lines are empty, so that a traceback names the line of the page."""
    inside, lines = False, []
    for line in page.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("system", ["extractive", "reader"])
def test_the_page_that_asks_the_handbook_does_not_answer_itself(system: str) -> None:
    asked = re.findall(r'"([A-Z][^"]*\?)"', python_of((ROOT / "docs/handbook/reference/library.md").read_text("utf-8")))
    assert len(asked) >= 5
    for answer in open_system(system, open_index(None), k=5).answer(asked[:4]):
        assert answer.sentences, answer
        first = answer.sentences[0].citations[0]
        assert not first.passage.startswith("reference/library.md"), (answer.question.text, str(answer))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "says"), SAYS.items(), ids=SAYS)
def test_example(
    name: str, says: str, copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_program(ROOT / "docs/examples" / name, copied, monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(says) for line in lines), lines


def run_program(program: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a program in that folder; a warning is an error."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(program.parent))
    monkeypatch.setattr("sys.argv", [str(program)])
    for registry in (JUDGES, RETRIEVERS):  # what the program registers must not stay
        monkeypatch.setattr(registry, "_known", dict(registry._known))
    runpy.run_path(str(program), run_name="__main__")


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "docs/examples").glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_a_page_links_to_is_there(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_the_readme_is_a_landing_page() -> None:
    assert len(PAGES[0].read_text("utf-8").splitlines()) <= 130


def test_the_handbook_pages_have_titles_and_enough_passages() -> None:
    from rag.documents import read_document

    passages = [passage for page in HANDBOOK for passage in read_document(page, page.name)]
    assert len(passages) >= 60
    assert all(passage.title for passage in passages)
    assert sum(bool(passage.section) for passage in passages) > 0.95 * len(passages)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What is citation precision?", "Citation precision is the share of citations that support"),
        ("What is a closed pool?", "A closed pool is a sample of a large corpus"),
        (
            "How is an index built over one's own documents?",
            "An index over one's own documents is built with rag index",
        ),
        ("What is a retriever?", "A retriever finds the passages for a question"),
        ("Which option sets the minimum confidence?", "The option --min-confidence"),
        ("When does the reader abstain?", "The reader abstains when the passages found do not seem to answer"),
        ("Which Python version do I need?", "Python 3.11 or newer"),
        ("Do I need an OpenAI key?", "The default system needs no key"),
        ("How do I ask questions about my own PDFs?", "Put them into a folder, build an index of it"),
    ],
)
def test_the_handbook_answers(reader: System, question: str, says: str) -> None:
    answer = reader.ask(question)
    assert says in answer.text
    assert not answer.abstained


@pytest.mark.parametrize("system", ["reader", "extractive", "first-passage"])
def test_the_figures_of_the_systems_are_those_of_the_result_file(system: str) -> None:
    (group,) = json.loads((ROOT / "eval/results/systems/open-nq-pool.json").read_text("utf-8"))["groups"]
    result = next(one for one in group["systems"] if one["label"] == system)
    names = ("right", "em", "f1", "autoais", "Success@1", "Success@20")
    found = [metric_of(result, name)["value"] for name in names]
    cells = ["–" if value is None else f"{100 * value:.1f} %" for value in found]
    row = f"| `{system}` | {' | '.join(cells)} |\n"
    for page in ("README.md", "docs/handbook/reference/benchmarks.md"):
        assert row in (ROOT / page).read_text("utf-8")
    assert group["closed_pool"]


def test_the_leaderboard_of_judges_is_that_of_the_result_file() -> None:
    result = json.loads((ROOT / "eval/results/judges.json").read_text("utf-8"))
    page = (ROOT / "docs/judges.md").read_text("utf-8")
    assert page.partition("<!-- the leaderboard -->\n\n")[2] == leaderboard_markdown(result)


def test_how_often_the_judge_misses_a_changed_fact_is_told_beside_what_it_is_made_for() -> None:
    judges = json.loads((ROOT / "eval/results/judges.json").read_text("utf-8"))["judges"]
    (found,) = (one["averages"]["contrast"] for name, one in judges.items() if name.startswith("minilm@"))
    page = (ROOT / "docs/handbook/reference/evaluation.md").read_text("utf-8")
    assert f"balanced accuracy is {100 * found['balanced_accuracy']:.1f}%" in page
    card = (ROOT / "eval/autoais/data/minilm/CARD.md").read_text("utf-8")
    changed = re.findall(r"(\d+\.\d) % \([\d. to]+\)", card.partition("Minimal pairs:")[2])[1::2][:2]
    passes = [f"{100 - float(one):.0f}%" for one in changed]
    assert f"accepts {passes[0]} of the changed sentences, and {passes[1]} of those" in page


@pytest.mark.parametrize("page", ["README.md", "docs/handbook/reference/benchmarks.md"])
def test_the_figures_of_systems_are_those_of_the_result_files(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert "\n".join(summary_table()) in text
    assert "\n".join(pool_table()) in text


@pytest.mark.parametrize("size", [4, 32])
def test_the_figures_about_a_model_server_are_those_of_the_result_file(size: int) -> None:
    found = json.loads((ROOT / "eval/results/served.json").read_text("utf-8"))["servers"][f"batch of {size}"]
    page = (ROOT / "docs/handbook/reference/scale.md").read_text("utf-8")
    assert f"{100 * found['auto_to_best']:.1f} %" in page
    assert found["runs"]["auto"]["refused"] == 0


def test_the_curve_of_refusals_is_that_of_the_result_file() -> None:
    shown, measured = ROOT / "docs" / "images" / "nomiracl.svg", ROOT / "eval" / "results" / "nomiracl" / "reader.svg"
    assert shown.read_bytes() == measured.read_bytes()


def test_the_mutations_are_those_of_the_result_file() -> None:
    found = json.loads((ROOT / "eval" / "results" / "mutation.json").read_text("utf-8"))
    told = f"{found['killed']:,} of {found['total']:,} mutations of {len(found['modules'])} modules"
    assert told in (ROOT / "docs/limits.md").read_text("utf-8")
