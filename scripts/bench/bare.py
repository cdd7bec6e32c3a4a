"""Baseline: Tantivy used directly, without this project's code, to index a MIRACL file or answer one query.

python scripts/bench/bare.py index passages.jsonl.zst FOLDER
python scripts/bench/bare.py query FOLDER "who got the first nobel prize"
"""

import io
import json
import sys
from pathlib import Path

import zstandard
from tantivy import Document, Filter, Index, SchemaBuilder, TextAnalyzer, TextAnalyzerBuilder, Tokenizer


def analyzer() -> TextAnalyzer:
    """The text analysis of `rag`, without stop words."""
    simple = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(40)).filter(Filter.lowercase())
    return simple.filter(Filter.stemmer("english")).build()


def index(corpus: str, folder: str) -> None:
    """Build a self-contained index in the shortest loop: title and text indexed and stored, id stored."""
    builder = SchemaBuilder()
    for name in ("title", "text"):
        builder.add_text_field(name, stored=True, tokenizer_name="english", index_option="freq")
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    Path(folder).mkdir()
    bare_index = Index(builder.build(), path=folder)
    bare_index.register_tokenizer("english", analyzer())
    writer = bare_index.writer(256_000_000, 2)
    with Path(corpus).open("rb") as file:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8"):
            row = json.loads(line)
            writer.add_document(Document(id=row["docid"], title=row["title"], text=row["text"]))
    writer.commit()
    writer.wait_merging_threads()


def query(folder: str, text: str) -> None:
    """Open the index, search it and print the first passage."""
    bare_index = Index.open(folder)
    bare_index.register_tokenizer("english", analyzer())
    searcher = bare_index.searcher()
    parsed = bare_index.parse_query(" ".join(analyzer().analyze(text)), ["title", "text"])
    hits = searcher.search(parsed, 10).hits
    print(searcher.doc(hits[0][1]).get_first("text"))


if __name__ == "__main__":
    {"index": index, "query": query}[sys.argv[1]](*sys.argv[2:])
