"""Checks that numbers in the documentation equal the result file that is named beside them.

    python -m scripts.check_numbers

Reads README.md, docs/ and the model cards. A number is checked if a result file (`eval/results/...json`, or one in the
folder of the page) is named in its sentence, or in the paragraph before its table. It has to be a value of one of these
files, or a hundred times one, as rounded where it is printed; with a unit, also in another one. A file with many values
holds most round numbers by chance: the check finds slips, and proves nothing. `EXCEPTIONS` lists numbers that are no
value of the file, with the reason.
"""

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/**/*.md", "rag/data/*/CARD.md", "eval/autoais/data/*/CARD.md")
_RESULTS = "eval/results/"
_FILE = re.compile(r"`([\w./-]+\.json)`")
_NOT_TEXT = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|!\[[^\]]*\]")  # code, targets of links, tags, pictures
_NUMBER = re.compile(r"(?<![\w.,/@#:^-])[-+±−]?(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w/:-]|[.,]\d| words)(?: (\w+))?")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b|\b[A-Z]\w+ (?:19|20)\d{2}\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z*\[`(])")

_UNITS = {  # what a file may hold of one such unit
    "million": (1e6,),
    "min": (60.0,),
    "minutes": (60.0,),
    "h": (3600.0,),
    "MB": (1e6, 1.0, 1e6 / 2**20),
    "GB": (1e9, 1e3, 1e9 / 2**20),
    "MiB": (2.0**20,),
    "GiB": (2.0**30, 2.0**10),
}
_PLANNED = "`rag plan` computes it for 33 million passages"

EXCEPTIONS: dict[tuple[str, str], dict[str, str]] = {
    ("README.md", "eval/results/own-documents/confidence.json"): {"514": "the sum of the five parts"},
    ("docs/handbook/reference/scale.md", "eval/results/retrieval/parts.json"): dict.fromkeys(
        ("33", "15", "27", "1.9", "18", "2.5", "1.6"), _PLANNED
    ),
    ("docs/limits.md", "eval/results/systems/open-nq-pool.json"): {"66.8": "in the file as of revision a9c2ffc"},
    ("docs/handbook/reference/benchmarks.md", "eval/results/judges-outside.json"): {"1,686": "the sum of three sets"},
    ("eval/autoais/data/minilm/CARD.md", "eval/results/judges-outside.json"): {"1,686": "the sum of three sets"},
    ("docs/handbook/reference/statistics.md", "eval/results/coverage-clusters.json"): {"0.05": "the level of tests"},
    ("docs/limits.md", "eval/results/mutation.json"): {"89": "per cent: 6,632 of 7,453"},
}
"""By page and result file: numbers that are not in the file, and why."""

LEVEL = "95"
"""The level of the intervals, which is no result."""


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number, the page and line where it stands, and the result files that are named beside it."""

    page: str
    line: int
    text: str
    files: tuple[Path, ...]
    unit: str = ""

    @property
    def value(self) -> float:
        """Its absolute value."""
        return float(self.text.replace(",", ""))

    @property
    def decimals(self) -> int:
        """How many decimals are printed."""
        return len(self.text.partition(".")[2])


def numbers_of(path: Path, root: Path = ROOT) -> Iterator[Number]:
    """Yield the numbers of a page that stand beside the name of a result file."""

    def files(text: str) -> tuple[Path, ...]:
        names = dict.fromkeys(_FILE.findall(text))
        paths = [root / name if name.startswith(_RESULTS) else path.parent / name for name in names]
        return tuple(file for file in paths if file.exists() or file.is_relative_to(root / _RESULTS))

    def numbers(line: int, text: str, files: tuple[Path, ...]) -> Iterator[Number]:
        for match in _NUMBER.finditer(_DATE.sub(" ", _NOT_TEXT.sub(" ", text))) if files else ():
            yield Number(path.relative_to(root).as_posix(), line, match[1] + (match[2] or ""), files, match[3] or "")

    caption = ""
    for line, block in _blocks(path.read_text("utf-8")):
        if block.startswith("|"):
            for offset, row in enumerate(block.splitlines()):
                if row.startswith("| mean |"):  # of the rows above
                    continue
                yield from numbers(line + offset, row, files(row) or files(caption))
        else:
            position = 0
            for sentence in _SENTENCE_END.split(block):
                position = block.index(sentence, position)
                yield from numbers(line + block.count("\n", 0, position), sentence, files(sentence))
        caption = block


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, items of lists and tables of a page with their first lines; no code."""
    lines: list[str] = []
    first, is_code = 1, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        begins = not line.strip() or fence or bool(re.match(r"\s*(?:[-*]|\d+\.) |#", line))
        if lines and (begins or line.startswith("|") != lines[0].startswith("|")):
            yield first, "\n".join(lines)
            lines = []
        if fence:
            is_code = not is_code
        elif line.strip() and not is_code:
            first = first if lines else number
            lines.append(line)


@cache
def values_of(path: Path) -> list[float]:
    """Return the absolute numbers of a JSON file, sorted: values, those in keys, and lengths of lists and objects."""
    values: set[float] = set()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            for name in value:
                values.update(map(float, re.findall(r"\d+(?:\.\d+)?", name)))
            value = list(value.values())
        if isinstance(value, list):
            values.add(float(len(value)))
            for item in value:
                collect(item)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            values.add(abs(float(value)))

    collect(json.loads(path.read_text("utf-8")))
    return sorted(values)


def occurs(number: Number, values: list[float]) -> bool:
    """Whether a value, or a hundred times one, is the number where it is rounded as printed."""
    half = 0.5 * 10.0**-number.decimals
    for scale in (1.0, 0.01, *_UNITS.get(number.unit, ())):
        low, high = (number.value - half) * scale, (number.value + half) * scale
        place = bisect_left(values, low - 1e-9)
        if place < len(values) and values[place] <= high + 1e-9:
            return True
    return False


def wrong_numbers(root: Path = ROOT) -> tuple[list[str], int]:
    """Return a line for each number that is not in its file, and how many were checked."""
    faults, count = [], 0
    missing_files: set[tuple[str, str]] = set()  # with the page that names them
    for path in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        for number in numbers_of(path, root):
            count += 1
            place, names = f"{number.page}:{number.line}", [file.relative_to(root).as_posix() for file in number.files]
            if missing_names := [name for name in names if not (root / name).exists()]:
                if (number.page, missing_names[0]) not in missing_files:  # once, not for each of its numbers
                    missing_files.add((number.page, missing_names[0]))
                    faults.append(f"{place}: {missing_names[0]} is missing")
            elif (
                number.text != LEVEL
                and not any(occurs(number, values_of(file)) for file in number.files)
                and not any(number.text in EXCEPTIONS.get((number.page, name), {}) for name in names)
            ):
                faults.append(f"{place}: {number.text} is not in {' or '.join(names)}")
    return faults, count


def main() -> None:
    """Print the numbers that are wrong; the exit status is 1 if there are any."""
    faults, count = wrong_numbers()
    print(*faults, f"{count:,} numbers checked, {len(faults):,} faults", sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
