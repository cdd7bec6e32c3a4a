"""`ratings.jsonl`: one verdict of one person per line (`autoais.formats.human_ratings`)."""

from autoais.formats.base import Format, check_by_reading
from autoais.formats.human_ratings.ratings import SCHEMA, from_row

RATINGS = Format(
    name="ratings",
    description="people's ratings (jsonl): annotator, item, question and value per line",
    schema=SCHEMA,
    required_fields=("item", "annotator", "question", "value"),
    check=check_by_reading(from_row),
)
