"""Questions as a list, or in the field's formats: jsonl, Open-NQ jsonl, TREC topics (TSV), DPR's TSV with answers."""

import ast
import csv
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, unreadable
from autoais.base.io.files import allow_long_cells, records
from autoais.base.io.jsonl import field, identifier, parse_object, strings
from autoais.base.types import Question
from autoais.formats import alce
from autoais.formats.acl_verbatim import chunks_of, is_acl_verbatim

_BOM = b"\xef\xbb\xbf"
_JSON_LIST = re.compile(rb"\[\s*(?:\{|$)")


def read_questions(path: Path) -> Iterator[Question]:
    """Stream the questions of a file; its first line decides the format.

    `{"id","question"[,"answers"][,"gold"][,"nuggets"][,"answerable"]}` jsonl; FlashRAG's, with `golden_answers`;
    RAGAS's, with `user_input` or `question`, and `reference`, `ground_truth` or `ground_truths`; HAGRID's, with `query`
    and `quotes`; ACL-Verbatim's, with `query` and `results`; ALCE's, with `question` and `docs`; AutoNuggetizer's
    `{"qid","query","nuggets"}`, of which the vital nuggets count; Open-NQ jsonl `{"question","answer"}`; TREC topics
    `qid<TAB>text`; DPR `text<TAB>['answer', ...]`; in a `.txt` file also a plain question a line. JSON objects may be
    in a list, as ALCE's are. Formats without ids get the line number as id, or the place in the list. Raises
    `FormatError` for a broken row, an empty question or a duplicate id.
    """
    return (question for question, _, _ in read_question_rows(path))


def read_question_rows(path: Path) -> Iterator[tuple[Question, str, Mapping[str, Any]]]:
    """Stream the questions of a file as `read_questions`, with the place and the JSON object of each ({} without)."""
    ids: set[str] = set()
    for question, location, row in _parse(path):
        _check_question(question, location)
        if question.id in ids:
            raise FormatError(f"{location}: id {question.id!r} occurs twice")
        ids.add(question.id)
        yield question, location, row
    if not ids:
        raise FormatError(f"{path}: holds no questions")


def _parse(path: Path) -> Iterator[tuple[Question, str, Mapping[str, Any]]]:
    parse: Callable[[bytes, str, int], Question] | None = None
    is_json = False
    for number, line in enumerate(_lines(path), 1):
        if not line.strip().strip(_BOM):
            continue
        if not is_json and parse is None:
            start = line.removeprefix(_BOM).lstrip()
            if _JSON_LIST.match(start):
                yield from _parse_list(path)
                return
            is_json = start.startswith(b"{")
            parse = None if is_json else _sniff(line, is_text=path.suffix.lower() == ".txt")
        location = f"{path}:{number}"
        row = {} if parse else parse_object(line, location)
        yield (parse(line, location, number) if parse else _of_row(row, location, number)), location, row


def _parse_list(path: Path) -> Iterator[tuple[Question, str, Mapping[str, Any]]]:
    for number, (location, row) in enumerate(records(path), 1):
        if isinstance(row, FormatError):
            raise row
        yield _of_row(row, location, number), location, row


def question_of(row: Mapping[str, Any], location: str, number: int) -> Question:
    """The question of a row of jsonl; raises `FormatError` as `read_questions`."""
    return _check_question(_of_row(row, location, number), location)


def _check_question(question: Question, location: str) -> Question:
    if not question.text.strip():
        raise FormatError(f"{location}: the question is empty")
    if not _encodable(question):
        raise FormatError(f"{location}: a lone surrogate, which is not a character")
    return question


def _encodable(question: Question) -> bool:
    try:
        nuggets = (phrase for phrases in question.nuggets for phrase in phrases)
        "".join((question.id, question.text, *question.answers, *question.gold, *nuggets)).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise unreadable(path, error) from error


def _sniff(line: bytes, *, is_text: bool) -> Callable[[bytes, str, int], Question]:
    if is_text and b"\t" not in line.strip():
        return _plain
    right = line.rstrip().partition(b"\t")[2].strip(b'"')
    return _dpr if right.startswith(b"[") and right.endswith(b"]") else _topic


def _of_row(row: Mapping[str, Any], location: str, number: int) -> Question:
    if "qid" in row and "nuggets" in row and "question" not in row:
        from autoais.formats.nuggetizer import bank_of

        return bank_of(row, location).question
    if alce.is_alce_question(row):
        return alce.question_of(row, location, number)
    if is_acl_verbatim(row):
        marked_chunks = tuple(passage.id for passage, quotes in chunks_of(row, location) if quotes)
        text = field(row, "query", str, location)
        return Question(str(number), text, gold=marked_chunks, answerable=bool(marked_chunks))
    name = next((name for name in ("id", "query_id") if name in row), None)
    if "quotes" in row and "question" not in row:  # HAGRID: its answers are generated, and no references
        return Question(identifier(row, name, location) if name else str(number), field(row, "query", str, location))
    # Beside nuggets, a string is somebody's wording of the answer, which is not compared with anything.
    has_wording = "nuggets" in row and isinstance(row.get("answer"), str)
    names = ("answers", *(() if has_wording else ("answer",)), "golden_answers", "ground_truths")
    candidates = [strings(row, name, location) for name in names]
    candidates += [(field(row, name, str, location),) for name in ("ground_truth", "reference") if row.get(name)]
    answers = next(filter(None, candidates), ())
    key = identifier(row, name, location) if name else str(number)
    nuggets = field(row, "nuggets", list, location) if "nuggets" in row else []
    if not all(isinstance(nugget, list) and all(isinstance(phrase, str) for phrase in nugget) for nugget in nuggets):
        raise FormatError(f"{location}: field 'nuggets' should be a list of lists of phrases")
    answerable = field(row, "answerable", bool, location) if "answerable" in row else True
    question_field = "user_input" if "user_input" in row and "question" not in row else "question"
    text, gold = field(row, question_field, str, location), strings(row, "gold", location)
    return Question(key, text, answers, gold, tuple(map(tuple, nuggets)), answerable)


def _columns(line: bytes, location: str) -> tuple[str, str]:
    try:
        key, tab, text = line.decode("utf-8-sig").rstrip("\r\n").partition("\t")
    except UnicodeDecodeError as error:
        raise FormatError(f"{location}: not UTF-8 at byte {error.start}") from error
    if not tab:
        raise FormatError(
            f'{location}: neither JSON (`{{"id": ..., "question": ...}}`) nor `id<TAB>question`; a list of questions, '
            "one a line, is read from a .txt file"
        )
    return key, text


def _plain(line: bytes, location: str, number: int) -> Question:
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise FormatError(f"{location}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    if "\0" in text:
        raise FormatError(f"{location}: a zero byte, which no text has; save the questions as UTF-8, one a line")
    return Question(str(number), text)


def _topic(line: bytes, location: str, number: int) -> Question:
    key, text = _columns(line, location)
    return Question(key, text)


def _dpr(line: bytes, location: str, number: int) -> Question:
    # Cells that contain quotation marks are quoted as in CSV.
    allow_long_cells(len(line))
    try:
        cells = next(csv.reader(["\t".join(_columns(line, location))], delimiter="\t"), [])
    except csv.Error as error:
        raise FormatError(f"{location}: not a TSV row: {error}") from error
    if len(cells) != 2:
        raise FormatError(f"{location}: expected two columns, found {len(cells)}; are its quotation marks doubled?")
    text, cell = cells
    try:
        answers = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise FormatError(f"{location}: second column is not a list of answers") from error
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise FormatError(f"{location}: second column is not a list of strings")
    return Question(str(number), text, tuple(answers))
