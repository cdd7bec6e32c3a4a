"""Writes the lists of the benchmark miracl-public: ids of passages and questions of our pool that are public.

    python -m scripts.make_id_list ../shared/data eval/benchmarks/miracl-public

Passages are those with an id of MIRACL's corpus, each with the first digits of its text's SHA-256. The kinds of all
others are counted.
"""

import re
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from autoais.base.errors import FormatError
from autoais.base.io.jsonl import write_atomic
from autoais.formats.corpora import read_passages
from autoais.formats.questions import read_questions

DIGITS = 8
_MIRACL = re.compile(r"\d+#\d+")


def main(
    data: Annotated[Path, typer.Argument(help="Data folder with wiki/ and miracl/.")],
    folder: Annotated[Path, typer.Argument(help="Folder of the lists.")],
) -> None:
    """Write passages.tsv and questions.txt."""
    public, others = list[str](), Counter[str]()
    for _, passage in read_passages(data / "wiki/passages.jsonl.zst", "miracl", empty=True):
        if isinstance(passage, FormatError):
            raise passage
        if _MIRACL.fullmatch(passage.id):
            public.append(f"{passage.id}\t{sha256(passage.text.encode()).hexdigest()[:DIGITS]}")
        else:
            others[passage.id.partition(":")[0]] += 1
    write_atomic(folder / "passages.tsv", sorted(public))
    write_atomic(folder / "questions.txt", sorted(q.id for q in read_questions(data / "miracl/dev_pool.jsonl")))
    print(f"{len(public):,} public passages; others: {dict(sorted(others.items()))}")


if __name__ == "__main__":
    typer.run(main)
