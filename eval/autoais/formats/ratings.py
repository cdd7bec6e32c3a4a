"""`ratings.jsonl`: one verdict of one person per line (`autoais.ratings`)."""

from collections.abc import Iterable, Iterator

from autoais.errors import FormatError
from autoais.formats.base import Fault, Format, Row
from autoais.ratings import SCHEMA, from_row


def _check(rows: Iterable[Row]) -> Iterator[Fault]:
    for where, row in rows:
        try:
            from_row(row, where)
        except FormatError as error:
            yield Fault(where, str(error).removeprefix(f"{where}: "))


RATINGS = Format(
    name="ratings",
    description="people's ratings (jsonl): annotator, item, question and value per line",
    schema=SCHEMA,
    required_fields=("item", "annotator", "question", "value"),
    check=_check,
)
