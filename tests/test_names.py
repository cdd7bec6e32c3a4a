import ast
import json
from pathlib import Path

import pytest

from scripts import names


@pytest.fixture(scope="module")
def counts() -> tuple[names.Count, names.Count]:
    packages = [names.count_names(names.ROOT / package) for package in names.PACKAGES]
    return names.merge([bound for bound, _ in packages]), names.merge([defined for _, defined in packages])


def _frequent(count: names.Count) -> str:
    return ", ".join(f"{text} {number}" for text, number in names.frequent(count, 20))


def test_values_are_named_by_nouns(counts: tuple[names.Count, names.Count]) -> None:
    bound, _ = counts
    assert bound.share <= names.MAX_BANNED_NAMES_SHARE, f"see python -m scripts.names --list: {_frequent(bound)}"


def test_functions_are_named_by_verbs(counts: tuple[names.Count, names.Count]) -> None:
    _, functions = counts
    assert functions.share <= names.MAX_PARTICIPLE_SHARE, f"see python -m scripts.names --list: {_frequent(functions)}"


@pytest.mark.parametrize(
    "name",
    "one found said told kept given place out asked known listed named wanted seen shown chosen made left done there "
    "what whole twins where which why how at held taken written dropped stored cited judged others rest most own ours "
    "theirs such each again inside above below hidden lacking drawn mixed near about of same both more some way "
    "_opened joined _MOST _LONGEST_LINE left_out".split(),
)
def test_words_that_say_nothing_are_banned(name: str) -> None:
    assert names.is_banned(name)


@pytest.mark.parametrize(
    "name",
    "question passage hit statement claim evidence citation verdict judgement gold expected last first other seed "
    "encoded to is_built answer_read MAX_ITEMS longest _ split need missing before after".split(),
)
def test_words_of_the_field_are_allowed(name: str) -> None:
    assert not names.is_banned(name)


@pytest.mark.parametrize("name", "_opened told_of told as_given read_quoted _cited_claims _made".split())
def test_participles_name_no_function(name: str) -> None:
    assert names.is_participle_function(name)


@pytest.mark.parametrize(
    "name", "open_model read_pages is_done has_joined cut_text closed_book embed _seed feed".split()
)
def test_imperatives_nouns_and_booleans_may(name: str) -> None:
    assert not names.is_participle_function(name)


def test_all_that_binds_a_name_counts() -> None:
    tree = ast.parse(
        "import numpy as found\n"
        "def read(self, path, *rows, key=1, **options):\n"
        "    total: int = 0\n"
        "    for a, (b, _) in rows:\n"
        "        with open(path) as file: pass\n"
        "    try: (n := 1)\n"
        "    except OSError as error: pass\n"
        "    match rows:\n"
        "        case [*others] as line: pass\n"
        "    return lambda x: [y for y in rows]\n"
    )
    assert sorted(name for name, _ in names.bindings(tree)) == sorted(
        "path rows key options total a b file n error others line x y".split()
    )
    assert [name for name, _ in names.functions(tree)] == ["read"]


def test_a_room_is_counted_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rag" / "index").mkdir(parents=True)
    (tmp_path / "rag" / "index" / "build.py").write_text("one = 1\nrow = 2\n\n\ndef opened(): ...\n")
    (tmp_path / "rag" / "indexes.py").write_text("found = 1\n")
    names.main([str(tmp_path / "rag"), "--room", "rag.index", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["Names that say nothing"]["all"] == {
        "total": 2,
        "offenders": 1,
        "share": 50.0,
        "frequent": {"one": 1},
    }
    names.main([str(tmp_path / "rag"), "--list"])
    lines = capsys.readouterr().out.splitlines()
    assert "Names that say nothing" in lines
    assert f"{tmp_path}/rag/index/build.py:1: one" in lines
    assert f"{tmp_path}/rag/indexes.py:1: found" in lines
    assert f"{tmp_path}/rag/index/build.py:5: opened" in lines
