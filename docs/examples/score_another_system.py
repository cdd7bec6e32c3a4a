# %% [markdown]
"""# Score the answers of another system

`autoais` scores anybody's cited answers: dicts in memory, or a file in one of the formats of `autoais schema`. Run it
from the repository root: `python docs/examples/score_another_system.py`
"""

# %%
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import autoais

DATA = Path("tests/data/attributed-qa")

# %% [markdown]
# An answer needs an id, the question, its sentences with the passages they cite, and the texts of these passages.

# %%
WARSAW = {"id": "w#1", "title": "Warsaw", "text": "Warsaw is the capital of Poland. It lies on the Vistula."}
CURIE = {"id": "c#1", "title": "Marie Curie", "text": "Marie Curie was born in Warsaw in 1867."}


def row(number: int, question: str, said: str, cited: dict[str, str]) -> dict[str, Any]:
    """One answer of one sentence, as a row of `answers.jsonl`."""
    sentences = [{"text": said, "citations": [{"passage": cited["id"]}]}]
    return {"id": str(number), "question": question, "sentences": sentences, "passages": [WARSAW, CURIE]}


CAPITAL, BIRTH = "What is the capital of Poland?", "When was Marie Curie born?"
careful = [
    row(1, CAPITAL, "Warsaw is the capital of Poland.", WARSAW),
    row(2, BIRTH, "Marie Curie was born in 1867.", CURIE),
]
careless = [
    row(1, CAPITAL, "Warsaw is the capital of Poland.", CURIE),
    row(2, BIRTH, "Marie Curie was born in 1867.", CURIE),
]

reports = [autoais.score(answers) for answers in (careful, careless)]
for report in reports:
    rate = report.metrics["autoais"]
    print(f"AutoAIS {rate.value} of {rate.n} answers, 95 % interval {rate.interval95}, by {report.judge}")

# %% [markdown]
# Which sentences failed, and why? `judgements` has one row per sentence.

# %%
for judgement in reports[1].judgements:
    print(judgement["verdict"], judgement["probability"], judgement["text"])

result = autoais.compare(*reports)
print("difference", result["difference"]["value"], "95 % interval", result["difference"]["interval95"])

# %% [markdown]
# Attributed QA's predictions name passages by id only, so `corpus` gives their texts. `questions` is the benchmark, in
# which a question without an answer counts as a no.

# %%
report = autoais.score(
    DATA / "predictions.csv", corpus=[DATA / "passages.jsonl"], questions=DATA / "questions.jsonl", metrics="alce"
)
for name, metric in report.metrics.items():
    print(f"{name:20} {metric.value if metric.value is not None else metric.reason}")
if find_spec("pandas"):
    print(report.to_frame()[["value", "n"]].head(3))
