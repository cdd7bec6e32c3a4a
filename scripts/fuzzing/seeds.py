"""Small valid files of every type, written here; the same bytes every time."""

# ruff: noqa: E501  (data)

import gzip
import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any

from scripts.fuzzing.mutations import pack

Seeds = Sequence[tuple[str, bytes]]
"""Names of files, and what is in them."""

MILL = "The mill in Arlen was built in 1802 by the miller's guild of the valley, and it ground corn until 1911."
CANAL = "The canal of Arlen is 12 miles long. Nora Finch runs the ferry at Arlen, as her mother did before her."
QUESTION = "When was the mill in Arlen built?"


def json_lines(*rows: object) -> bytes:
    """A JSON value a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _record(text: str, **fields: object) -> dict[str, Any]:
    return {"title": "Arlen", "text": text, **fields}


CORPORA: Seeds = (
    ("miracl.jsonl", json_lines(_record(MILL, docid="a#0", section="Mill"), _record(CANAL, docid="a#1"))),
    ("beir.jsonl", json_lines(_record(MILL, _id="1"), _record(CANAL, _id=2))),
    ("aqa.jsonl", json_lines({"id": "x", "contents": f"« Arlen » « Arlen, Mill » {MILL}"}, {"id": "y", "contents": CANAL})),
    ("pyserini.jsonl", json_lines({"id": "x", "contents": MILL}, {"id": "y", "contents": CANAL})),
    ("msmarco.jsonl", json_lines({"docid": "d#0", "title": "Arlen", "headings": "Arlen\nMill", "segment": MILL})),
    ("dpr.tsv", f'id\ttext\ttitle\n1\t"{MILL}"\tArlen\n2\t{CANAL}\tArlen\n'.encode()),
    ("packed.jsonl.gz", gzip.compress(json_lines(_record(MILL, docid="a#0")), mtime=0)),
)  # fmt: skip

MARKDOWN = f"""---
title: Arlen
---
# Arlen

{MILL} [^1]

## Water & wood

- {CANAL}
  1. with *emphasis*, `code`, [a link](http://localhost/x "t") and ![an image](x.png)

| Year | Length |
|------|-------:|
| 1802 | 12     |

```python
print("Arlen")
```

> A quotation<br>of <b>two</b> lines

[^1]: A note.
"""
HTML = f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Arlen</title></head><body>
<nav><a href="/">Home</a></nav><main><h1>Arlen</h1><p>{MILL}</p><h2 id="w">Water</h2><p>{CANAL}</p>
<table><tr><th>Year</th><th>Length</th></tr><tr><td rowspan="2">1802</td><td colspan=2>12</td></tr></table>
<dl><dt>Ferry</dt><dd>at Arlen</dd></dl><pre>code &amp; &#65; more</pre><ul><li>one<li>two<ul><li>three</ul></ul></main></body></html>
"""
RST = f"""=====
Arlen
=====

{MILL}

Water
-----

* {CANAL}
* ``code`` and `a link <http://localhost/>`_ and |sub|

.. |sub| replace:: text

.. note:: Mind the ferry.

+------+--------+
| Year | Length |
+======+========+
| 1802 | 12     |
+------+--------+

.. code-block:: python

   print("Arlen")
"""
TEXT = f"ARLEN\n=====\n\n{MILL}\n\n1. WATER\n\n   {CANAL}\n\n   * one\n   * two\n\nYear    Length\n1802    12\n1803    13\n"
NOTEBOOK = {
    "nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"language": "python"}},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Arlen\n", MILL]},
        {"cell_type": "code", "metadata": {}, "source": "print(1)", "execution_count": 1,
         "outputs": [{"output_type": "stream", "name": "stdout", "text": [CANAL]},
                     {"output_type": "execute_result", "data": {"text/plain": "12"}, "metadata": {}, "execution_count": 1}]},
    ],
}  # fmt: skip

CALENDAR = f"""BEGIN:VCALENDAR
X-WR-CALNAME:Arlen
BEGIN:VEVENT
SUMMARY:Day of the mill\\, with
  cake
DTSTART;TZID="Europe/London":20261103T180000
DTEND;VALUE=DATE:20261105
RRULE:FREQ=YEARLY
DESCRIPTION:{MILL}
END:VEVENT
END:VCALENDAR
"""

MAILBOX = f"From a@example.org Mon May  6 10:00:00 2024\nFrom: Ann <a@example.org>\nSubject: Mill\n\n{MILL}\n\n" * 2
DOCUMENTS: Seeds = (
    ("a.md", MARKDOWN.encode()),
    ("a.html", HTML.encode()),
    ("a.rst", RST.encode()),
    ("a.txt", TEXT.encode()),
    ("a.ipynb", json.dumps(NOTEBOOK).encode()),
    ("a.txt.gz", gzip.compress(TEXT.encode(), mtime=0)),
    ("a.ics", CALENDAR.encode()),
    ("a.mbox", MAILBOX.encode()),
)

MAN_PAGE = rf"""'\" t
.TH ARLEN 1 "June 2026"
.SH NAME
arlen \- {MILL}
.SH OPTIONS
.TP
\fB\-a\fR, \fB\-\-all\fR
{CANAL}
.IP \(bu 2
a bullet; see
.BR mill (1)
.TS
tab(|);
l l.
\fBYear\fP|Length
1802|12
.TE
"""
MDOC_PAGE = f""".Dd June 1, 2026
.Dt ARLEN 1
.Os
.Sh NAME
.Nm arlen
.Nd {MILL}
.Sh DESCRIPTION
.Bl -tag -width Ds
.It Fl a Ar file
{CANAL}
.El
"""
LATEX = rf"""\documentclass{{article}}
\newcommand{{\name}}[1]{{the #1 mill}}
\title{{Arlen}}\begin{{document}}\maketitle
\begin{{abstract}}{MILL}\end{{abstract}}
\section{{Water}}\label{{water}} {CANAL} See Section~\ref{{water}} and \name{{grey}}.\footnote{{A note.}}
\begin{{itemize}}\item one \item $x_1 \le \frac{{1}}{{2}}$\end{{itemize}}
\begin{{tabular}}{{ll}} Year & Length \\ 1802 & 12 \\ \end{{tabular}}
\end{{document}}
"""
DOCBOOK = f"""<?xml version="1.0"?>
<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "docbookx.dtd" [<!ENTITY mill "<application>Mill</application>">]>
<book><title>Arlen</title><chapter id="a"><title>&mill;</title><para>{MILL}<footnote><para>A note.</para></footnote></para>
<variablelist><varlistentry><term>Canal</term><listitem><para>{CANAL}</para></listitem></varlistentry></variablelist>
<table><title>Years</title><tgroup cols="2"><tbody><row><entry>1802</entry><entry>12</entry></row></tbody></tgroup></table>
</chapter></book>
"""
ORG = f"""#+TITLE: Arlen
#+MACRO: name the $1 mill
* TODO Water :work:
{MILL} It is =code= and {{{{{{name(grey)}}}}}}, see [[http://localhost/][a link]].[fn:1]
- {CANAL}
  - [X] two
| Year | Length |
|------+--------|
| 1802 | 12     |
#+begin_src sh
grind --now
#+end_src
[fn:1] A note.
"""
RTF = rf"""{{\rtf1\ansi\deff0{{\fonttbl{{\f0 Arial;}}}}{{\info{{\title Arlen}}}}
\pard {MILL} \'e9l\'e9gant, \u8364?5 and \b old\b0 .{{\footnote A note.}}\par
\trowd\cellx100\cellx200\pard\intbl Year\cell Length\cell\row
\pard {CANAL}\par}}"""
_ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table", "style")
)
_ODT = {
    "mimetype": "application/vnd.oasis.opendocument.text",
    "content.xml": f'<office:document-content {_ODF}><office:automatic-styles/><office:body><office:text><text:h text:outline-level="1">Arlen</text:h>'
    f"<text:p>{MILL}</text:p><text:list><text:list-item><text:p>{CANAL}</text:p></text:list-item></text:list>"
    "<table:table><table:table-row><table:table-cell><text:p>1802</text:p></table:table-cell></table:table-row></table:table>"
    "</office:text></office:body></office:document-content>",
    "styles.xml": f"<office:document-styles {_ODF}/>",
}  # fmt: skip
FOR_PANDOC: Seeds = (
    ("a.1", MAN_PAGE.encode()),
    ("b.1", MDOC_PAGE.encode()),
    ("a.tex", LATEX.encode()),
    ("a.docbook", DOCBOOK.encode()),
    ("a.org", ORG.encode()),
    ("a.rtf", RTF.encode()),
    ("a.odt", pack({name: text.encode() for name, text in _ODT.items()})),
)

_OPEN, _TYPE = "http://schemas.openxmlformats.org", "application/vnd.openxmlformats"
_WORD = f'xmlns:w="{_OPEN}/wordprocessingml/2006/main"'
_DOCX = {
    "[Content_Types].xml": f'<Types xmlns="{_OPEN}/package/2006/content-types"><Default Extension="rels" '
    f'ContentType="{_TYPE}-package.relationships+xml"/><Override PartName="/word/document.xml" '
    f'ContentType="{_TYPE}-officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_OPEN}/package/2006/relationships"><Relationship Id="r" '
    f'Type="{_OPEN}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/document.xml": f"<w:document {_WORD}><w:body>"
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Arlen</w:t></w:r></w:p>'
    f"<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>{MILL}</w:t></w:r></w:p>"
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Year</w:t></w:r></w:p></w:tc><w:tc><w:tcPr><w:gridSpan w:val=\"2\"/></w:tcPr>"
    "<w:p><w:r><w:t>Length</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    f"<w:p><w:hyperlink><w:r><w:t>{CANAL}</w:t></w:r></w:hyperlink></w:p></w:body></w:document>",
    "word/styles.xml": f'<w:styles {_WORD}><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/>'
    "</w:style></w:styles>",
    "word/_rels/document.xml.rels": f'<Relationships xmlns="{_OPEN}/package/2006/relationships"><Relationship Id="s" '
    f'Type="{_OPEN}/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>',
}  # fmt: skip
_PAGE = "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>{0}</title></head><body><h1>{0}</h1><p>{1}</p></body></html>"
_EPUB = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="o/b.opf"/></rootfiles></container>',
    "o/b.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<dc:title>Arlen</dc:title></metadata><manifest>"
    '<item id="n" href="n.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    '<item id="a" href="a%20a.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/></manifest>'
    '<spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/></spine></package>',
    "o/n.xhtml": _PAGE.format("Contents", "a, b"),
    "o/a a.xhtml": _PAGE.format("Mill", MILL),
    "o/b.xhtml": _PAGE.format("Canal", CANAL),
}  # fmt: skip


def _same(data: bytes) -> bytes:
    """An archive without the time at which it was made."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith((".jpeg", ".bin"))}
    core = f'<cp:coreProperties xmlns:cp="{_OPEN}/package/2006/metadata/core-properties"/>'
    return pack(files | {name: core.encode() for name in files if name.endswith("core.xml")})


def archives() -> Seeds:
    """Office documents and an e-book."""
    import openpyxl
    import pptx

    sheets, table = openpyxl.Workbook(), io.BytesIO()
    for row in (("Year", "Length", "Note"), (1802, 12.5, MILL), (1803, True, CANAL), ("=1+1", None, "12%")):
        sheets.active.append(row)
    sheets.save(table)
    slides, show = pptx.Presentation(), io.BytesIO()
    for title, text in (("Mill", MILL), ("Canal", CANAL)):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    slides.save(show)
    return (
        ("a.docx", pack({name: text.encode() for name, text in _DOCX.items()})),
        ("a.epub", pack({name: text.encode() for name, text in _EPUB.items()})),
        ("a.xlsx", _same(table.getvalue())),
        ("a.pptx", _same(show.getvalue())),
    )


def pdf(*pages: str) -> bytes:
    """A PDF with a bookmark, and a line of text on each page."""
    count = len(pages)
    bodies = [
        f"<</Type/Catalog/Pages 2 0 R/Outlines {4 + 2 * count} 0 R>>",
        f"<</Type/Pages/Kids[{' '.join(f'{4 + 2 * n} 0 R' for n in range(count))}]/Count {count}>>",
        "<</Title(Arlen)>>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 14 Tf 50 740 Td (Heading {number}) Tj ET\nBT /F1 10 Tf 50 700 Td ({text}) Tj ET"
        bodies += [
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1<</Type/Font/Subtype/Type1"
            f"/BaseFont/Helvetica>>>>>>/Contents {5 + 2 * number} 0 R>>",
            f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
        ]
    bodies.append(f"<</Type/Outlines/First {5 + 2 * count} 0 R/Last {5 + 2 * count} 0 R/Count 1>>")
    bodies.append(f"<</Title(Mill)/Parent {4 + 2 * count} 0 R/Dest[4 0 R/XYZ 0 790 0]>>")
    file, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(file))
        file += f"{number} 0 obj{body}endobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    return (
        file
        + (
            f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}"
            f"trailer<</Size {len(bodies) + 1}/Root 1 0 R/Info 3 0 R>>\nstartxref\n{len(file)}\n%%EOF"
        ).encode()
    )


PDFS: Seeds = (("a.pdf", pdf(MILL, CANAL)), ("b.pdf", pdf(MILL)))

_TREC = {"run_id": "r1", "topic_id": "1", "topic": QUESTION, "references": ["d#0", "d#1"], "response_length": 20,
         "answer": [{"text": MILL, "citations": [0, 1]}, {"text": CANAL, "citations": []}]}  # fmt: skip
_LIU = {"query": QUESTION, "response": f"{MILL} [1][2].", "statement": MILL, "source_title": "Arlen", "source_content_title": None,
        "source_date": None, "source_author": None, "source_text": MILL, "source_raw_text": MILL, "source_url": "http://a",
        "source_supports_statement": "complete_support", "source_localized_evidence": "the mill"}  # fmt: skip
_LIU_LABELS: dict[str, Any] = {"fluency": "Agree", "perceived_utility": "Agree", "statement_to_annotation": {
    "It is old.": {"statement_is_verification_worthy": True, "statement_supported": "Yes", "citation_annotations": [
        {"citation_text": "[1]", "citation_supports": "Citation Completely Supports Statement", "evidence": "1802"}]},
    "Good.": {"statement_is_verification_worthy": False, "statement_supported": None, "citation_annotations": None}}}  # fmt: skip
TEXTS = json_lines(*({"docid": name, "title": "Arlen", "text": MILL} for name in ("d#0", "d#1", "x#1")))
ANSWERS: Seeds = (
    ("answers.jsonl", json_lines(
        {"id": "1", "question": QUESTION, "answer": "In 1802. By a guild.", "output": "In 1802 [1]. By a guild [2][7].",
         "short_answer": "1802", "system": "ours", "answers": ["1802"], "gold": ["p"], "confidence": 0.5,
         "sentences": [
             {"text": "In 1802.", "start": 0, "end": 8, "attributable": True,
              "citations": [{"passage": "p", "start": 0, "end": 8, "quote": MILL[:8]}]},
             {"text": "By a guild.", "citations": [{"passage": "r", "support": "partial", "quote": "canal"}]}],
         "passages": [{"id": "p", "rank": 2, "title": "Arlen", "section": "Mill", "text": MILL, "score": 1.5},
                      {"id": "r", "rank": 1, "title": "Arlen", "text": CANAL}],
         "unresolved": [{"marker": "[7]", "reason": "out-of-range", "sentence": 1}]},
        {"id": "2", "question": "And the ferry?", "abstained": True, "system": "ours"})),
    ("hagrid.jsonl", json_lines(
        {"query_id": 7, "query": QUESTION,
         "quotes": [{"idx": 1, "docid": "a#1", "text": MILL}, {"idx": 2, "docid": "b#1", "text": CANAL}],
         "answers": [{"answer": "In 1802 [1]. Long [2].", "answer_type": "long", "informative": 1, "attributable": 0,
                      "sentences": [{"index": 0, "text": "In 1802 [1].", "informative": 1, "attributable": 1},
                                    {"index": 1, "text": "Long [2].", "informative": 0, "attributable": 0}]}]})),
    ("alce.json", json.dumps(
        {"args": {"shot": 2}, "data": [
            {"sample_id": "s1", "question": QUESTION, "qa_pairs": [{"short_answers": ["1802"]}],
             "docs": [{"id": "11", "title": "Arlen", "text": MILL, "score": 1.0}, {"id": "12", "title": "Arlen", "text": CANAL}],
             "output": "In 1802 [1][2]. It is long [2].\nMore [9]."},
            {"sample_id": "s2", "question": "Empty?", "docs": [], "output": ""}]}, indent=1).encode()),
    ("trec-24.jsonl", json_lines(_TREC)),
    ("trec-25.jsonl", json_lines(
        {"metadata": {"team_id": "t", "run_id": "r", "narrative_id": "9", "narrative": QUESTION, "type": "automatic"},
         "references": ["d#0"], "answer": [{"text": MILL, "citations": ["d#0"]}, {"text": CANAL, "citations": [0]}]})),
    ("liu-judgements.jsonl", json_lines(_LIU, _LIU | {"source_supports_statement": "no_support", "source_url": "http://b"})),
    ("liu-annotations.jsonl", json_lines(
        {"id": "h", "query": QUESTION, "response": "It is old [1]. Good.", "split": "eli5_live", "system_name": "you",
         "citations": [{"text": "[1]", "start_index": 10, "end_index": 13, "link_target": "http://a"}],
         "statements_to_citation_texts": {"It is old.": ["[1]"], "Good.": []}, "annotation": _LIU_LABELS})),
    ("attributionbench.jsonl", json_lines(
        {"question": QUESTION, "claim": "In 1802 [5].", "claim_raw_string": "In 1802 [5].", "response": "In 1802 [5]. Good.",
         "references": [f"[5] https://localhost\n\n{MILL}"], "citation_links": [], "webpage_references": [],
         "attribution_label": "attributable", "src_dataset": "ExpertQA", "id": "e1"})),
    ("attrscore.jsonl", json_lines({"id": "a", "query": QUESTION, "answer": "1802", "reference": MILL, "label": "Attributable"})),
    ("labels.jsonl", json_lines({"dataset": "D", "id": "1", "question": QUESTION, "claim": "In 1802.", "evidence": [MILL], "label": 1})),
    ("aqa-predictions.csv", b'question,answer,attribution\r\nwho,"Ann, or\nBob",x#1\r\nwhere,,\r\n'),
    ("aqa-ais.csv", b'question,answer,passage,autoais\r\nwho,Ann,"Title: T\nSection: S\n\nAnn did.",Y\r\n'),
    ("aqa-ratings.csv", b"system_name,question,answer,attribution,passage,human_rating,auto_ais,nli_score\r\n"
     b'Post-4,who,Ann,x#1,"Title: T\nSection: S\n\nAnn did.",Y,Y,0.98\r\nPost-4,where,Rome,x#2,Rome.,,N,0.1\r\n'),
    ("qampari.json", json.dumps({"data": [
        {"question": QUESTION, "answers": [["a mill", "mill"], ["ferry"]], "claims": ["It is old."], "annotations": [{"long_answer": MILL}],
         "docs": [{"title": "Arlen", "text": MILL}], "output": "Mill [1], ferry [2, 1]."}]}).encode()),
    ("ragas.jsonl", json_lines({"user_input": QUESTION, "retrieved_contexts": [MILL, CANAL], "response": "In 1802 [1]. So.", "reference": "1802"})),
    ("ragas.csv", b"user_input,retrieved_contexts,response\r\nWhen?,\"['It was 1802.', \"\"So it's old.\"\"]\",In 1802.\r\n"),
    ("ragchecker.json", json.dumps({"results": [
        {"query_id": "1", "query": QUESTION, "gt_answer": "1802", "response": "In 1802.",
         "retrieved_context": [{"doc_id": "p", "text": MILL}]}], "metrics": {}}, indent=1).encode()),
    ("deepeval.json", json.dumps([
        {"input": QUESTION, "actual_output": "In 1802.", "retrieval_context": [MILL], "expected_output": "1802"}]).encode()),
    ("trulens.jsonl", json_lines({"query": QUESTION, "response": "In 1802.", "contexts": [MILL]})),
    ("trulens-records.json", json.dumps([
        {"record_id": "r", "app_id": "a", "main_input": QUESTION, "main_output": "In 1802.", "calls": [{"rets": [MILL]}]}]).encode()),
    ("flashrag.json", json.dumps([
        {"id": "1", "question": QUESTION, "golden_answers": ["1802"],
         "output": {"retrieval_result": [{"id": "p", "contents": f'"Arlen"\n{MILL}', "score": 1.5}], "pred": "1802"}}]).encode()),
    ("open-rag-eval.csv", "query_id,query,query_run,passage_id,passage,generated_answer\r\n"
     f'1,{QUESTION},1,[1],"{MILL}",In 1802 [1].\r\n1,{QUESTION},1,[2],"{CANAL}",\r\n'.encode()),
    ("expertqa.jsonl", json_lines(
        {"question": QUESTION, "annotator_id": "a", "metadata": {}, "answers": {"gpt4": {"answer_string": "In 1802.", "claims": [
            {"claim_string": "In 1802 [1].", "evidence": [f"[1] http://a\n\n{MILL}"], "support": "Complete", "worthiness": "Yes"}]}}})),
    ("aggrefact.csv", f'dataset,doc,claim,label,contamination_identifier\r\nD,"{MILL}",In 1802.,1,x\r\n'.encode()),
    ("ragnarok.json", json.dumps({"schema_version": "castorini.cli.v1", "artifacts": [
        {"name": "r", "kind": "data", "data": [{key: value for key, value in _TREC.items() if key != "run_id"}]}]}).encode()),
    ("scores.txt", b"AutoAIS: 0.5\nEM: 0.5\n"),
)  # fmt: skip

QUESTIONS: Seeds = (
    ("own.jsonl", json_lines({"id": "1", "question": QUESTION, "answers": ["1802"], "gold": ["a#0"], "nuggets": [["1802"]]},
                             {"id": 2, "question": "And the ferry?"})),
    ("nq.jsonl", json_lines({"question": QUESTION, "answer": ["1802"]})),
    ("topics.tsv", f"1\t{QUESTION}\n2\tWho runs the ferry?\n".encode()),
    ("dpr.tsv", f"{QUESTION}\t['1802', \"in '02\"]\n".encode()),
)  # fmt: skip

RUNS: Seeds = (
    ("run.trec", b"1 Q0 a#0 1 2.5 ours\n1 Q0 a#1 2 1.5 ours\n2 Q0 a#1 1 7 ours\n"),
    ("qrels.txt", b"1 0 a#0 1\n1 0 a#1 0\n2 0 a#1 2\n"),
    ("qrels.tsv", b"query-id\tcorpus-id\tscore\n1\ta#0\t1\n2\ta#1\t1\n"),
    ("judgements.jsonl", json_lines(*(
        {"id": key, "sentence": 0, "text": MILL, "cites": ["p"], "verdict": verdict, "probability": 0.9, "judge": "lexical"}
        for key, verdict in (("1", "attributable"), ("2", "not_attributable"))))),
    ("gold.jsonl", QUESTIONS[0][1]),
)  # fmt: skip

_RATING = {
    "item": "1#0",
    "answer": "1",
    "sentence": 0,
    "annotator": "ada",
    "system": "ours",
    "seconds": 3.5,
    "at": "2026",
}
_REPORT = {"run_id": "r", "topic_id": "1", "sentences": [{"text": MILL, "citations": ["p"]}], "documents": {}}
_AUTOJUDGE = {
    "dataset": "d",
    "topic_id": "1",
    "username": "ada",
    "comment": "",
    "spans": [{"start": 0, "end": 3, "text": "The"}],
}
RATINGS: Seeds = (
    ("ratings.jsonl", json_lines(
        _RATING | {"question": "interpretable", "value": "yes"},
        _RATING | {"question": "quality", "value": "4", "evidence": [{"passage": "p", "start": 0, "end": 3}]},
        _RATING | {"question": "attributable", "value": "no", "annotator": "bob", "phase": "study", "reason": "no"},
        _RATING | {"question": "flag", "value": "missing", "annotator": "eve"},
        _RATING | {"question": "attributable", "value": "no", "annotator": "lead", "phase": "audit", "audited": "bob"})),
    ("studio.json", json.dumps([{
        "id": 1, "data": {"item": "1#0", "text": MILL},
        "annotations": [{
            "completed_by": {"email": "ada@x"}, "lead_time": 4.5, "was_cancelled": False,
            "result": [
                {"from_name": "attributable", "to_name": "text", "type": "choices", "value": {"choices": ["Yes"]}},
                {"from_name": "reason", "type": "textarea", "value": {"text": ["so"]}},
                {"from_name": "quality", "type": "rating", "value": {"rating": 4}, "meta": {"annotator": "bob"}}]}],
        "predictions": []}]).encode()),
    ("autojudge.jsonl", json_lines(
        _AUTOJUDGE | {"rating": "So-so", "run_id": "r", "report": _REPORT},
        _AUTOJUDGE | {"rating": "Bad", "citation": {"report": _REPORT, "sentence_idx": 0, "docid": "p", "document": None}})),
)  # fmt: skip

_TO_JUDGE: dict[str, Any] = {
    "id": "q1/1", "text": MILL, "answer": "q1/1", "query": QUESTION, "turns": [{"speaker": "user", "text": "Hello"}],
    "sources": [{"id": "p", "title": "Mill", "section": "", "text": MILL}], "system": "s", "group": 7, "flags": [],
}  # fmt: skip
ITEMS: Seeds = (
    ("items.jsonl", json_lines(
        _TO_JUDGE,
        _TO_JUDGE | {"id": "q1/1#0@p", "sentence": 0, "citation": "p", "before": "It was.", "after": "So."},
        _TO_JUDGE | {"id": 3, "expected": {"attributable": "no"}, "explanation": "Why.", "table": None})),
    ("tables.jsonl", json_lines({
        "id": "t", "text": MILL, "kind": "table",
        "table": {"title": "T", "rows": [[{"text": "1998", "header": True, "highlighted": True}], []]}})),
)  # fmt: skip
RETRIEVERS: Seeds = (
    ("bm25.toml", b'name = "bm25.v2"\nkind = "bm25"\nengine = "tantivy"\nk1 = 1.2\nb = 0.75\n[weights]\ncontents = 1.0\ntitle = 0.2\n'),
    ("static.toml", b'name = "static.v1"\nkind = "dense"\nencoder = "static"\nindex = "flat"\n'),
    ("fused.toml", b'name = "f"\nkind = "fusion"\nretrievers = ["bm25", "static"]\nmethod = "scores"\nweights = [1, 0.5]\ndepth = 10\n'),
    ("ranks.toml", b'name = "f"\nkind = "fusion"\nretrievers = ["bm25", "static"]\nmethod = "rrf"\n'),
    ("rerank.toml", b'name = "r"\nkind = "rerank"\nbase = "bm25"\n[[stages]]\nmodel = "static"\ndepth = 5\nretriever_weight = 0.2\n'),
    ("reference.toml", b'name = "rank-bm25.v1"\nkind = "reference"\nk1 = 1.2\nb = 0.75\n'),
)  # fmt: skip

REPLIES: Seeds = tuple((str(n), reply.encode()) for n, reply in enumerate((
    "The mill in Arlen was built in 1802 [1]. The canal is 12 miles long [2][1].",
    "<think>Which one?</think>\nIt was built in 1802 [1, 2]. See also [7] and [1-3].",
    "I don't know; the passages do not say.",
    "- In 1802 [1]\n- By the guild【2†source】\n\n| a | b [1] |\n|---|---|\n\n```\ncode [1]\n```\n",
    "Answer: It was built in 1802.\nShort: 1802\nPage: Arlen\nSearch: mill Arlen",
    "**Answer:** It was 1802 [1].\n**Short**: 1802\nQuestion: What next?\nAnswer: None",
    "Question: When was the mill in Arlen built?",
    "Sentence: The mill in Arlen was built in 1802.",
    '{"label": "Full support"}',
    "```json\n{\"label\": \"No support\"}\n```",
    "The claim is not fully supported; Answer: Partial support, because the year is missing.",
    "Attributable. The evidence supports the claim, and does not contradict it.",
)))  # fmt: skip

TURNS: Seeds = tuple((str(n), text.encode()) for n, text in enumerate((
    QUESTION,
    "Who runs the ferry at Arlen, and why?",
    "what about the canal",
    "and in 1911?",
    "why?",
    'mill AND canal OR "the ferry" -guild title:Arlen ferry~2 mil*',
    "How many is 12 + 30?",
)))  # fmt: skip
