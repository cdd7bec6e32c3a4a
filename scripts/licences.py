"""Writes the table of packages and their licences into docs/licences.md, from what is installed: `make lock`."""

import re
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
BEGIN, END = "<!-- table -->\n", "<!-- end -->\n"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_SHORT = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "BSD License": "BSD",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
    "The Unlicense (Unlicense)": "Unlicense",
}
_LICENCE_FILES = {"pgserver": "Apache-2.0"}  # of the licence file in the package, whose metadata name none


def pins(name: str) -> dict[str, list[str]]:
    """The versions of each package in a lock file: several if they depend on the system."""
    versions: dict[str, list[str]] = {}
    for package, version in _PIN.findall((ROOT / name).read_text("utf-8")):
        versions.setdefault(package, []).append(version)
    return versions


def licence_of(package: str) -> str:
    """The licence that a package names, "not installed here" if it is for another system."""
    try:
        package_metadata = metadata(package)
    except PackageNotFoundError:
        return "not installed here"
    return _LICENCE_FILES.get(package) or _licence_name(package_metadata)


def _licence_name(package_metadata: PackageMetadata) -> str:
    fields = package_metadata.json
    classifiers = [c.rpartition(" :: ")[2] for c in fields.get("classifier", ()) if c.startswith("License")]
    names = [c for c in classifiers if c != "OSI Approved"]
    first = str(fields.get("license", "")).strip().splitlines()[:1]
    name = str(fields.get("license_expression", "")) or ", ".join(_SHORT.get(c, c) for c in names) or "".join(first)
    return " ".join(name.split())[:80] or "not named"


def table() -> str:
    """A row per package of the lock files; those that `pip install .` needs are marked."""
    core, dev = pins("requirements.lock"), pins("requirements-dev.lock")
    rows = ["| package | versions | licence | needed by |", "|---|---|---|---|"]
    for package in sorted({*core, *dev}):
        versions = ", ".join(sorted({*core.get(package, ()), *dev.get(package, ())}))
        source = "`pip install .`" if package in core else "an extra, or the tests"
        rows.append(f"| {package} | {versions} | {licence_of(package)} | {source} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Replace the table of the page."""
    page = PAGE.read_text("utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
