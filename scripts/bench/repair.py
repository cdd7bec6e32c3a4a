"""Effect of citation repair on a language model's answers: compares them as written and as repaired.

    rag bench run open-nq-pool --system gguf:FILE,k=5 --limit 100 --seed 13 --index POOL.index --data DATA --out RUN
    python -m scripts.bench.repair RUN/SYSTEM/answers.jsonl --out eval/results/open-nq-pool/repair.json

The answers contain the model's output (`trace.raw`), so both versions come from one run; `--as-parsed FILE` writes
those without repair. A citation is right if its passage is gold or contains a reference, independent of any judge.
Intervals take the questions as units, as `autoais score` does.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.base.answers import CitedAnswer, read_answers, write_answers
from autoais.base.io.jsonl import dumps, parse_object, read_objects, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.base.text.claims import is_applicable
from autoais.base.types import Attribution, Judge
from autoais.judges.lexical import LexicalJudge
from autoais.judges.minilm import default_judge
from autoais.metrics.rates import Rate
from autoais.metrics.short_answers import has_answer
from rag.answer.answer_files import tokens_of
from rag.answer.attribution.repair import RepairedGenerator
from rag.answer.generators.cited import CitedGenerator
from rag.answer.llms import Completion, Message, Schema
from rag.answer.llms.prompts import Prompt
from rag.base.types import Answer, Hit, Passage, Question


@dataclass
class ReplayModel:
    """A language model that replays a stored output."""

    text: str
    name: str = "said"
    context: int = 1 << 20

    def count(self, messages: Sequence[Message]) -> int:
        """Zero, so that every passage fits the context."""
        return 0

    def complete(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Completion:
        """The stored text."""
        return Completion(self.text, False, 0, 0)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Iterator[str | Completion]:
        """The stored text in one piece."""
        yield self.complete(messages, max_tokens, stop)


def passage_of(row: Mapping[str, Any]) -> Passage:
    """The passage of a row; the row has headings if they differ from title and section."""
    headings: Any = row.get("headings")
    return Passage(row["id"], row["title"], row["text"], row["section"], headings)


def parse_output(row: Mapping[str, Any]) -> Answer:
    """The answer as written by the model."""
    passages = {passage["id"]: passage for passage in row["passages"]}
    hits = [Hit(passage_of(passages[key]), passages[key]["score"]) for key in row["trace"]["shown"]]
    question = Question(row["id"], row["question"], tuple(row.get("answers", ())), tuple(row.get("gold", ())))
    return CitedGenerator(ReplayModel(row["trace"]["raw"]), Prompt.read("hagrid.v1"), max_tokens=1 << 18).generate(
        question, hits
    )


def measure_citations(answers: Sequence[Answer], judges: Mapping[str, Judge]) -> dict[str, Any]:
    """The share of claims that are cited, and the shares of citations that are right or supported by each judge."""
    claims, right = [], []
    of_claim, of_citation = [], []  # the question of each
    verdicts: dict[str, list[bool | None]] = {name: [] for name in judges}
    for number, answer in enumerate(answers):
        passages = {hit.passage.id: hit.passage for hit in answer.hits}
        for sentence in answer.sentences:
            claim = answer.text[sentence.start : sentence.end]
            if sentence.citations or is_applicable(claim, answer.short_answer):
                claims.append(bool(sentence.citations))
                of_claim.append(number)
            ids = dict.fromkeys(citation.passage for citation in sentence.citations)
            cited_passages = [passages[identifier] for identifier in ids]
            of_citation += [number] * len(ids)
            right += [
                p.id in answer.question.gold or has_answer(p.text, answer.question.answers) for p in cited_passages
            ]
            pairs = [Attribution(claim, (passage.evidence,), answer.question.text) for passage in cited_passages]
            for name, judge in judges.items():
                verdicts[name] += [judgement.verdict.ais for judgement in judge.judge(pairs)]
    return {
        "sentences_cited": Rate.of(claims, of_claim).record(),
        "citations_right": Rate.of(right, of_citation).record(),
        **{
            f"citations_supported_by_{name}": Rate.of(values, of_citation).record() for name, values in verdicts.items()
        },
    }


def _with_tokens(answer: CitedAnswer, trace: Mapping[str, Any]) -> CitedAnswer:
    """The answer with the tokens of the model, which the replay did not count."""
    return replace(answer, extra={**answer.extra, "trace": {**answer.extra["trace"], "tokens": trace["tokens"]}})


def main(
    answers: Annotated[Path, typer.Argument(help="Answers of a language model, from `rag bench run` or `rag answer`.")],
    output: Annotated[Path, typer.Option("--out", help="Output file (json).")],
    as_parsed: Annotated[Path | None, typer.Option(help="Write the answers without repair (answers.jsonl).")] = None,
) -> None:
    """Measure and write the result."""
    rows = [row for _, row in read_objects(answers)]
    bench = answers.parents[1] / "run.json"
    record = bench if bench.exists() else answers.with_name(answers.name + ".run.json")
    answer_command = parse_object(record.read_bytes(), str(record))["command"]
    raw_answers = [parse_output(row) for row in rows if row["sentences"]]
    repair = RepairedGenerator(CitedGenerator(ReplayModel(""), Prompt.read("hagrid.v1")), default_judge())
    repaired_answers = [repair.repair(answer) for answer in raw_answers]
    if as_parsed is not None:
        raw_by_id = {answer.question.id: answer.to_cited() for answer in raw_answers}
        rows_of = ((raw_by_id.get(answer.id, answer), answer.extra["trace"]) for answer in read_answers(answers))
        write_atomic(as_parsed, write_answers(_with_tokens(answer, trace) for answer, trace in rows_of))
    judges: dict[str, Judge] = {"minilm": default_judge(), "lexical": LexicalJudge(template="auto.v1")}
    counts: Counter[str] = Counter()
    for answer in repaired_answers:
        counts.update({name: count for name, count in answer.trace["repair"].items() if name != "uncited"})
    prompt_tokens, output_tokens = tokens_of(answers)
    result = {
        "system": rows[0]["system"],
        "judges": {name: judge.name for name, judge in judges.items()},
        "questions": len(rows),
        "answered": len(raw_answers),
        "failed": sum(row["failed"] for row in rows),
        "holds_a_reference": Rate.of(
            has_answer(answer.text, answer.question.answers) for answer in raw_answers
        ).record(),
        "unresolved_markers": sum(len(answer.unresolved) for answer in raw_answers),
        "as_written": measure_citations(raw_answers, judges),
        "repaired": measure_citations(repaired_answers, judges),
        "repair": dict(sorted(counts.items())),
        "note": "repair asks the judge minilm, so that its own rate of the repaired is close to 1 by construction",
        "tokens": {"read": prompt_tokens, "written": output_tokens},
        "seconds_a_question": sorted(row["seconds"] for row in rows)[len(rows) // 2],
        "answer_command": answer_command,
        "provenance": provenance({"answers": answers}),
    }
    write_atomic(output, [dumps(round_floats(result, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
