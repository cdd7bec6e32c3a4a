"""Ragnarök's results (castorini/ragnarok, src/ragnarok/data.py): those without a run id, else they are `trec-rag-24`.

Both are also read from the envelope of its command line (`--output json`, castorini.cli.v1): a JSON object whose
`artifacts` hold the results.
"""

from collections.abc import Iterable, Iterator

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, INTEGER, STRING, list_of, record
from autoais.formats.base import Format, Notes, Row, unique_id
from autoais.formats.trec import KEEPS, read_run, run_row


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    return read_run(((location, {"run_id": "ragnarok"} | row) for location, row in rows), notes)


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer in answers:
        row = run_row(answer, None, notes)
        # Ragnarök counts characters, the track's runs count words.
        row["response_length"] = sum(len(sentence.text) for sentence in answer.sentences)
        yield dumps({name: value for name, value in row.items() if name != "run_id"})


RAGNAROK = Format(
    name="ragnarok",
    description="Ragnarök's results (jsonl, a JSON list or its command's envelope): as trec-rag-24, without a run id",
    schema=record(
        {
            "topic_id": IDENTIFIER,
            "topic": STRING,
            "references": list_of(STRING),
            "answer": list_of(record({"text": STRING, "citations": list_of(INTEGER)})),
        },
        {"response_length": INTEGER},
    ),
    required_fields=("topic_id", "topic", "references", "answer"),
    read=_read,
    write=_write,
    supports=KEEPS,
    ids=unique_id("topic_id"),
)
