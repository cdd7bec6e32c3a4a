"""Corpora as record formats, for `autoais schema` and `autoais validate`; `autoais.corpora` reads them."""

from autoais.base.io.schema import IDENTIFIER, STRING, TEXT_OR_NULL, record
from autoais.formats.base import Format, unique_id

AQA = Format(
    name="aqa-corpus",
    description="Attributed QA's Wikipedia (jsonl): id, `contents` as « Title » « Title, Section » text; also Pyserini",
    schema=record({"id": IDENTIFIER, "contents": STRING}),
    required_fields=("id", "contents"),
    ids=unique_id("id"),
)
MIRACL = Format(
    name="miracl-corpus",
    description="MIRACL's passages (jsonl): docid, title, text; our pool has the same fields",
    schema=record({"docid": IDENTIFIER, "text": STRING}, {"title": TEXT_OR_NULL, "section": TEXT_OR_NULL}),
    required_fields=("docid", "text"),
    ids=unique_id("docid"),
)
MSMARCO = Format(
    name="msmarco-v2.1-corpus",
    description="MS MARCO v2.1's segments (jsonl), the corpus of TREC RAG: docid, url, title, headings, segment",
    schema=record({"docid": IDENTIFIER, "segment": STRING}, {"title": TEXT_OR_NULL}),
    required_fields=("docid", "segment"),
    ids=unique_id("docid"),
)
BEIR = Format(
    name="beir-corpus",
    description="BEIR's corpus.jsonl: _id, title, text",
    schema=record({"_id": IDENTIFIER, "text": STRING}, {"title": TEXT_OR_NULL}),
    required_fields=("_id", "text"),
    ids=unique_id("_id"),
)
DPR = Format(
    name="dpr-corpus",
    description="DPR's psgs_w100.tsv: id, text, title",
    schema=record({"id": IDENTIFIER, "text": STRING, "title": STRING}),
    required_fields=("id", "text", "title"),
    ids=unique_id("id"),
    csv=True,
)
