"""Measures the page of a report in Chromium: size, first paint, when its table is there, messages, accessibility.

    python -m scripts.bench.page RUN... --out eval/results/page.json

RUN... are folders of `rag bench run` that compare. Times are medians of some loads, from the start of the navigation.
`console` counts messages and errors of the page, `axe` the findings of axe-core by impact, with one question open.
Needs the packages playwright and axe-core-python, and Chromium.
"""

import statistics
import tempfile
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.provenance import processor, provenance
from rag.bench.report import write_report
from rag.bench.results import read_run
from scripts.browser import chromium
from scripts.results import tell

PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
FILLED = "document.getElementById('count').textContent ? performance.now() : 0"


def page(*runs: Path, loads: int = 5) -> dict[str, Any]:
    """What is measured of the page of a report of these runs."""
    axe = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    paints, tables, said = [], [], []
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        written = write_report(*runs, out=temporary).page
        size = written.stat().st_size / 1e6
        for _ in range(loads):
            opened = browser.new_page(bypass_csp=True)  # the waiting evaluates scripts
            opened.on("console", lambda message: said.append(message.text))
            opened.on("pageerror", lambda error: said.append(str(error)))
            opened.goto(written.as_uri())
            tables.append(opened.wait_for_function(FILLED).json_value())
            paints.append(opened.wait_for_function(PAINTED).json_value())
            opened.close()
        checked = browser.new_context(bypass_csp=True).new_page()  # axe itself is a script from elsewhere
        checked.goto(written.as_uri())
        checked.locator("button.open").first.click()
        checked.evaluate(axe)
        found = Counter(one["impact"] for one in checked.evaluate("axe.run()")["violations"])
    systems = [one for run in runs for one in read_run(run).systems]
    return {
        "questions": len(systems[0].items),
        "systems": len(systems),
        "mb": size,
        "first_paint_ms": statistics.median(paints),
        "table_ms": statistics.median(tables),
        "console": len(said),
        "axe": dict(found),
    }


def main(runs: list[Path], out: Annotated[Path, typer.Option(help="Output file (json).")]) -> None:
    """Measure, print, and write to --out."""
    result = {"processor": processor(), **page(*runs), "provenance": provenance({})}
    tell(result, out)


if __name__ == "__main__":
    typer.run(main)
