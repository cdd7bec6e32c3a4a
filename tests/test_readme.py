"""The README's transcripts are real: each `console` block is run and compared, `...` standing for anything."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import Command

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_transcript(
    block: str, tmp_path: Path, rag: Command, autoais: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("docs", "tests/data"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert steps
    for line, expected in steps:
        program, *arguments = shlex.split(line)
        result = {"rag": rag, "autoais": autoais}[program](*arguments)
        assert result.returncode == 0, result.stderr
        pattern = re.escape(expected.strip()).replace(re.escape("..."), ".*")
        assert re.fullmatch(pattern, (result.stdout + result.stderr).strip(), re.DOTALL), result.stdout + result.stderr


def test_every_file_the_readme_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_handbook_pages_have_titles_and_enough_passages() -> None:
    from rag.corpus.documents import read_document

    pages = sorted((ROOT / "docs/handbook").glob("*.md"))
    passages = [passage for page in pages for passage in read_document(page, page.name)]
    assert len(passages) >= 60
    assert all(passage.title and passage.section for passage in passages)


@pytest.mark.parametrize("system", ["reader", "extractive"])
def test_the_numbers_in_the_readme_are_those_of_the_result_file(system: str) -> None:
    result = json.loads((ROOT / f"eval/results/open-nq-pool/{system}.json").read_text("utf-8"))
    names = ("Success@1", "Success@5", "Success@20", "answer_recall")
    row = " | ".join(f"{100 * result['metrics'][name]['value']:.1f} %" for name in names)
    assert f"| [`{system}`](eval/results/open-nq-pool/{system}.json) | {row} |" in README
    assert result["closed_pool"]
    if "seconds_a_question" in result:
        assert f" {result['seconds_a_question']['p50']:.2f} s |" in README
