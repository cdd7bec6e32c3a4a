"""Measures what a question costs: cold (`rag ask`, a process a question) and warm (one process, many questions).

    python -m scripts.bench.ask QUESTIONS INDEX [--against FOLDER --their-index INDEX] [--out FILE]

Cold, the default system and `extractive` take turns. A first question to each is not counted: Python compiles its
modules then, as `pip install` does for users. Warm, this revision and the checkout in FOLDER (with an index in its own
format) take turns, each in a process of its own. CPU seconds are those of all threads.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from autoais.io.provenance import processor, provenance
from autoais.questions import read_questions
from scripts.process import Used, measured
from scripts.results import tell

COLD, WARM, ROUNDS = 8, 30, 3

PROGRAM = """
import json, sys, time
from pathlib import Path
from rag.systems import answer_or_abstain, open_system
try:
    from rag.index.open import open_index
except ImportError:  # before revision 6e3c298
    from rag.index import open_index
from rag.types import Question
index, *questions = json.load(sys.stdin)
system = open_system("reader", open_index(Path(index)))
for question in questions[:3]:
    answer_or_abstain(system, Question("q", question))
cpu, wall = time.process_time(), time.perf_counter()
for question in questions[3:]:
    answer_or_abstain(system, Question("q", question))
n = len(questions) - 3
print(json.dumps([(time.process_time() - cpu) / n, (time.perf_counter() - wall) / n]))
"""


def warm(folder: Path, index: Path, questions: list[str]) -> tuple[float, float]:
    """CPU and wall-clock seconds a question, by the revision in a folder."""
    path = os.pathsep.join([str(folder), str(folder / "eval")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([str(index), *questions]),
        env=os.environ | {"PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    cpu, wall = json.loads(done.stdout)
    return cpu, wall


def main() -> None:
    """Measure, print, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--their-index", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    asked = [question.text for question in read_questions(given.questions)]
    asked = asked[:: max(1, len(asked) // (WARM + 3))][: WARM + 3]
    runs: dict[str, list[Used]] = {"reader": [], "extractive": []}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    rag = Path(sys.executable).with_name("rag")
    for system in runs:
        measured(rag, "ask", asked[0], "--index", given.index, "--system", system)
    for question in asked[:COLD]:
        for system, found in runs.items():
            found.append(measured(rag, "ask", question, "--index", given.index, "--system", system))
    result: dict[str, Any] = {
        "processor": processor(),
        "cold": {
            name: {
                "cpu_s": statistics.median(used.cpu for used in found),
                "peak_memory_mb": max(used.peak for used in found) / 1e6,
            }
            for name, found in runs.items()
        },
    }
    result["cold"]["reader / extractive"] = result["cold"]["reader"]["cpu_s"] / result["cold"]["extractive"]["cpu_s"]
    here = Path(__file__).parents[2]
    revisions = {"this": (here, given.index)}
    if given.against:
        revisions["other"] = (given.against, given.their_index or given.index)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in revisions}
    for _ in range(ROUNDS):
        for name, (folder, index) in revisions.items():
            times[name].append(warm(folder.absolute(), index.absolute(), asked))
    result["warm"] = {
        name: {
            "cpu_s_a_question": statistics.median(cpu for cpu, _ in found),
            "s_a_question": statistics.median(wall for _, wall in found),
        }
        for name, found in times.items()
    }
    if "other" in times:
        ratios = [ours[0] / theirs[0] for ours, theirs in zip(times["this"], times["other"], strict=True)]
        result["warm"]["this / other"] = {"median": statistics.median(ratios), "rounds": ratios}
    result["provenance"] = provenance({"questions": given.questions})
    tell(result, given.out)


if __name__ == "__main__":
    main()
