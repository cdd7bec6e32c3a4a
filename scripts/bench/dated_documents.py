"""Minutes and rules of several years in one folder: which year do answers come from?

    python -m scripts.bench.dated_documents --out eval/results/dated-documents.json

Eight invented clubs have minutes and rules of four years; each year names another chair, fee, room and notice. Seven
questions to each ask for the present state, in so many words or not, and two for a year. An answer is right if it has
the fact of the newest year, or of the year that the question names, before that of any other; the first hit is the
baseline. The row "without" is the retriever `hybrid` without its rule (`newest`).
"""

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import rag
from autoais.base.io.provenance import provenance
from autoais.metrics.rates import Rate
from rag.base.resources import folder as resource_folder
from scripts.results import tell

CLUBS = ("Rowing Club", "Allotments", "Choir", "Food Coop", "Chess Circle", "Ski Hut", "Makers", "Reading Room")
FIRST_NAMES = "Ada Bruno Carla Dmitri Elena Farid Greta Hugo Ines Jonas Karin Leo Mira Nils Olga Piet Rosa Sven".split()
LAST_NAMES = "Abel Brandt Costa Dahl Egger Frost Gruber Holm Ivers Jansen Keller Lund Moser Novak Quist Ritter".split()
ROOMS = ("boathouse", "parish hall", "old school", "library annex", "green pavilion", "station cafe")
MONTHS = ("January", "February", "March", "April", "September", "October", "November", "December")
YEARS = (2021, 2023, 2024, 2025)
QUESTIONS = (
    ("Who is the chair?", "chair", 2025),
    ("Who is the treasurer now?", "treasurer", 2025),
    ("What is the current membership fee?", "fee", 2025),
    ("How much is the membership?", "fee", 2025),
    ("What is the latest rule on the notice when I leave?", "notice", 2025),
    ("How many days of notice do I give when I leave?", "notice", 2025),
    ("Where does the committee meet nowadays?", "room", 2025),
    ("Who was the chair in 2021?", "chair", 2021),
    ("What was the membership fee in 2023?", "fee", 2023),
)


@dataclass(frozen=True, slots=True)
class Club:
    """A folder of documents, and the facts by year."""

    folder: Path
    facts: dict[int, dict[str, str]]


def write_clubs(folder: Path) -> Iterator[Club]:
    """Write the documents of each club to a folder of its own; the same on every run."""
    choice = random.Random(13)
    names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    for club in CLUBS:
        home = folder / club.lower().replace(" ", "-")
        home.mkdir()
        people, rooms = choice.sample(names, 2 * len(YEARS)), choice.sample(ROOMS, len(YEARS))
        fees, notices = choice.sample(range(20, 200), len(YEARS)), choice.sample(range(7, 60), len(YEARS))
        facts = {}
        for n, year in enumerate(YEARS):
            month = choice.choice(MONTHS)
            date = choice.choice((f"{month.lower()}-{year}", f"{year}-{1 + choice.randrange(9):02}-11"))
            facts[year] = {
                "chair": people[2 * n],
                "treasurer": people[2 * n + 1],
                "fee": f"{fees[n]} pounds",
                "notice": f"{notices[n]} days",
                "room": rooms[n],
            }
            fact = facts[year]
            (home / f"minutes-{date}.md").write_text(
                f"# {club}: annual meeting, {month} {year}\n\n## Elections\n\n{fact['chair']} is elected chair of the "
                f"{club}. {fact['treasurer']} is the treasurer. The meeting thanked all who helped.\n\n## Fees\n\nThe "
                f"membership fee is {fact['fee']} a year from now on. Juniors pay half.\n\n## Rooms\n\nThe committee "
                f"meets in the {fact['room']}. The key is with the secretary.\n",
                "utf-8",
            )
            (home / f"rules-{year}.md").write_text(
                f"# Rules of the {club}, {year} edition\n\n## Leaving\n\nA member who leaves gives notice of "
                f"{fact['notice']} in writing. The deposit is paid back afterwards.\n",
                "utf-8",
            )
        yield Club(home, facts)


def is_right(text: str, club: Club, fact: str, year: int) -> bool:
    """Whether the first fact of its kind in a text is that of the year."""
    places = {other: text.find(club.facts[other][fact]) for other in YEARS}
    in_order = sorted((place, other) for other, place in places.items() if place >= 0)
    return bool(in_order) and in_order[0][1] == year


def main(out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None) -> None:
    """Count the answers with the fact of the right year, with the rule and without."""
    counts: dict[str, list[bool]] = {"hybrid": [], "without": [], "first hit": []}
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "without.toml"
        lines = (resource_folder("indexes") / "hybrid.toml").read_text("utf-8").splitlines(keepends=True)
        plain.write_text("".join(line for line in lines if not line.startswith("newest")), "utf-8")
        documents = Path(folder) / "documents"
        documents.mkdir()
        for club in write_clubs(documents):
            index = rag.build_index(club.folder, Path(folder) / f"{club.folder.name}.index")
            for question, fact, year in QUESTIONS:
                for name, retriever in (("hybrid", "hybrid"), ("without", str(plain))):
                    answer = rag.ask(question, index=index, retriever=retriever)
                    counts[name].append(is_right(f"{answer.short_answer or ''} {answer.text}", club, fact, year))
                hit = rag.search(question, index=index, retriever=str(plain), k=1)[0]
                counts["first hit"].append(is_right(hit.passage.text, club, fact, year))
    present = [year == YEARS[-1] for _, _, year in QUESTIONS] * len(CLUBS)
    rows: list[dict[str, Any]] = [
        {
            "retriever": name,
            "present": Rate.of([flag for flag, now in zip(flags, present, strict=True) if now]).record(),
            "year named": Rate.of([flag for flag, now in zip(flags, present, strict=True) if not now]).record(),
        }
        for name, flags in counts.items()
    ]
    tell({"rows": rows, "provenance": provenance({})}, out)


if __name__ == "__main__":
    typer.run(main)
