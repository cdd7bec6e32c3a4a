"""The lock files and the table of licences name what the package needs."""

import re
import tomllib

from scripts.licences import PAGE, ROOT, pins


def names(requirements: list[str]) -> set[str]:
    found = {re.split(r"[\[<>=;! ]", one)[0].lower().replace("_", "-") for one in requirements}
    return found - {"attributed-rag", "torch"}


def test_the_lock_files_hold_every_requirement() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert names(project["dependencies"]) <= pins("requirements.lock").keys()
    extras = project["optional-dependencies"]
    chosen = ("alce", "dense", "documents", "gguf", "lucene", "measures", "models", "train", "dev", "docs")
    every = [one for name in chosen for one in extras[name]]
    assert names(every) <= pins("requirements-dev.lock").keys()
    assert pins("requirements.lock").keys() <= pins("requirements-dev.lock").keys()


def test_every_line_of_a_lock_file_has_a_hash() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        blocks = re.split(r"^(?=\w)", (ROOT / name).read_text(), flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in block for block in blocks)


def test_the_table_names_every_package_with_its_versions_and_a_licence() -> None:
    rows = dict(re.findall(r"^\| ([\w.-]+) \| ([^|]+ \| [^|]+) \|", PAGE.read_text(), flags=re.MULTILINE))
    for package, versions in (pins("requirements.lock") | pins("requirements-dev.lock")).items():
        told, licence = rows[package].split(" | ")
        assert set(versions) <= set(told.split(", ")), package
        assert licence.strip() not in ("", "not named"), package
