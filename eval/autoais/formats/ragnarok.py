"""Ragnarök's results (Castorini): those that name no run; with a run id they are `trec-rag-24`.

Both are also read from the envelope of its command line (`--output json`, castorini.cli.v1): a JSON object whose
`artifacts` hold the results.
"""

from collections.abc import Iterable, Iterator

from autoais.answers import CitedAnswer
from autoais.formats.base import Format, Notes, Row, unique_id
from autoais.formats.trec import read_run
from autoais.io.schema import IDENTIFIER, INTEGER, STRING, listed, record


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    return read_run(((where, {"run_id": "ragnarok"} | row) for where, row in rows), notes)


RAGNAROK = Format(
    name="ragnarok",
    description="Ragnarök's results (jsonl, a JSON list or its command's envelope): as trec-rag-24, without a run id",
    schema=record(
        {
            "topic_id": IDENTIFIER,
            "topic": STRING,
            "references": listed(STRING),
            "answer": listed(record({"text": STRING, "citations": listed(INTEGER)})),
        },
        {"response_length": INTEGER},
    ),
    required_fields=("topic_id", "topic", "references", "answer"),
    read=_read,
    ids=unique_id("topic_id"),
)
