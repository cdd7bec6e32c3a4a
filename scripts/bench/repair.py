"""What checking a language model's citations changes: its answers as it wrote them, and as they were repaired.

    awk 'NR % 80 == 1' DATA/nq/nq_pool_dev.jsonl > QUESTIONS
    rag answer QUESTIONS --index POOL.index --system gguf:FILE --out ANSWERS
    python -m scripts.bench.repair ANSWERS --out eval/results/open-nq-pool/repair.json

`repair-few-shot.json` is of `awk 'NR % 40 == 1'` and `--prompt hagrid-few-shot.v1`.

What the model wrote stands in the answers (`trace.raw`), so both are made from one run. Where the answers hold
references and gold, a citation is right if its passage is gold or holds a reference: that asks no judge.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, parse_object, read_objects, round_floats, write_whole
from autoais.io.provenance import provenance
from autoais.judges.lexical import LexicalJudge
from autoais.judges.minilm import shipped
from autoais.metrics.rates import Rate
from autoais.metrics.short_answers import has_answer
from autoais.text.claims import applicable
from autoais.types import Attribution, Judge
from rag.answering import tokens_of
from rag.attribution.repair import Repaired
from rag.generators.cited import Cited
from rag.llms import Completion, Message
from rag.llms.prompts import Prompt
from rag.types import Answer, Hit, Passage, Question


@dataclass
class Said:
    """A model that says again what it said."""

    text: str
    name: str = "said"
    context: int = 1 << 20

    def count(self, messages: Sequence[Message]) -> int:
        """Whatever was shown is shown again."""
        return 0

    def complete(self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = ()) -> Completion:
        """The text."""
        return Completion(self.text, False, 0, 0)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = ()
    ) -> Iterator[str | Completion]:
        """The text at once."""
        yield self.complete(messages, max_tokens, stop)


def passage_of(row: Mapping[str, Any]) -> Passage:
    """The passage of a row; its headings are given where they are not those of title and section."""
    headings: Any = row.get("headings")
    return Passage(row["id"], row["title"], row["text"], row["section"], headings)


def written(row: Mapping[str, Any]) -> Answer:
    """The answer as the model wrote it."""
    shown = {passage["id"]: passage for passage in row["passages"]}
    hits = [Hit(passage_of(shown[key]), shown[key]["score"]) for key in row["trace"]["shown"]]
    question = Question(row["id"], row["question"], tuple(row.get("answers", ())), tuple(row.get("gold", ())))
    return Cited(Said(row["trace"]["raw"]), Prompt.read("hagrid.v1"), max_tokens=1 << 18).generate(question, hits)


def measured(answers: Sequence[Answer], judges: Mapping[str, Judge]) -> dict[str, Any]:
    """Of sentences that claim something: cited. Of citations: right, and supported by each judge."""
    claims, right = [], []
    supported: dict[str, list[bool | None]] = {name: [] for name in judges}
    for answer in answers:
        passages = {hit.passage.id: hit.passage for hit in answer.hits}
        for sentence in answer.sentences:
            claim = answer.text[sentence.start : sentence.end]
            if sentence.citations or applicable(claim, answer.short_answer):
                claims.append(bool(sentence.citations))
            cited = [passages[key] for key in dict.fromkeys(citation.passage for citation in sentence.citations)]
            right += [p.id in answer.question.gold or has_answer(p.text, answer.question.answers) for p in cited]
            pairs = [Attribution(claim, (passage.evidence,), answer.question.text) for passage in cited]
            for name, judge in judges.items():
                supported[name] += [judgement.verdict.ais for judgement in judge.judge(pairs)]
    return {
        "sentences_cited": Rate.of(claims).record(),
        "citations_right": Rate.of(right).record(),
        **{f"citations_supported_by_{name}": Rate.of(all_of).record() for name, all_of in supported.items()},
    }


def main(
    answers: Annotated[Path, typer.Argument(help="Answers of a language model by `rag answer`.")],
    out: Annotated[Path, typer.Option(help="Where the result goes (json).")],
) -> None:
    """Measure and write."""
    rows = [row for _, row in read_objects(answers)]
    run = parse_object(answers.with_name(answers.name + ".run.json").read_bytes(), str(answers))
    said = [written(row) for row in rows if row["sentences"]]
    repair = Repaired(Cited(Said(""), Prompt.read("hagrid.v1")), shipped())
    mended = [repair.repaired(answer) for answer in said]
    judges: dict[str, Judge] = {"minilm": shipped(), "lexical": LexicalJudge(template="auto.v1")}
    done: Counter[str] = Counter()
    for answer in mended:
        done.update({name: count for name, count in answer.trace["repair"].items() if name != "uncited"})
    read, wrote = tokens_of(answers)
    result = {
        "system": run["system"],
        "judges": {name: judge.name for name, judge in judges.items()},
        "questions": len(rows),
        "answered": len(said),
        "failed": sum(row["failed"] for row in rows),
        "holds_a_reference": Rate.of(has_answer(answer.text, answer.question.answers) for answer in said).record(),
        "unresolved_markers": sum(len(answer.unresolved) for answer in said),
        "as_written": measured(said, judges),
        "repaired": measured(mended, judges),
        "repair": dict(sorted(done.items())),
        "note": "repair asks the judge minilm, so that its own rate of the repaired is close to 1 by construction",
        "tokens": {"read": read, "written": wrote},
        "seconds_a_question": sorted(row["seconds"] for row in rows)[len(rows) // 2],
        "answer_command": run["command"],
        "provenance": provenance({"answers": answers}),
    }
    write_whole(out, [dumps(round_floats(result, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
