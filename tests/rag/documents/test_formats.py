import gzip
import io
import json
import zipfile
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from rag.base.errors import FormatError
from rag.base.types import Passage
from rag.documents import Document, load_document, read_document
from rag.documents import navigation as nav
from rag.documents.converters.office import _fill_ranges
from rag.documents.corpus import Corpus
from rag.documents.tables import grid_rows

LONG = "This paragraph has more than twelve words, so that it stands as a passage by itself."


def read(tmp_path: Path, name: str, content: str | bytes) -> list[Passage]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_document(path, name)


def load_document_of(tmp_path: Path, name: str, content: str) -> Document:
    (tmp_path / name).write_text(content)
    return load_document(tmp_path / name, name)


def blocks(tmp_path: Path, name: str, content: str | bytes) -> list[str]:
    return [block for passage in read(tmp_path, name, content) for block in passage.text.split("\n\n")]


# --- reStructuredText -------------------------------------------------------------------------------------------


def test_a_text_with_directives_is_restructured_text(tmp_path: Path) -> None:
    text = "=====\nBuses\n=====\n\n:Author: Edward Moss\n\n.. contents::\n\n" + LONG + "\n\n- ``red``\n- blue\n"
    said = f"Author: Edward Moss\n\n{LONG}\n\n- red\n\n- blue"
    assert read(tmp_path, "buses.txt", text) == [Passage("buses.txt#1", "Buses", said)]
    (plain,) = read(tmp_path, "plain.txt", f"Write ``.. contents::`` so.\n\n  .. contents::\n\n{LONG}\n")
    assert "``.. contents::``" in plain.text


def test_rst_with_the_directives_and_roles_of_sphinx(tmp_path: Path) -> None:
    text = dedent("""\
        .. _top:

        Rivers
        ======

        .. toctree::
           one

        See :doc:`the lakes </lakes>`, :func:`~water.flow` and ``code``. It is |unknown|.

        .. note:: Mind the gap.

        .. versionadded:: 3.1

        .. method:: flow(speed)

           Lets it flow.

           .. code-block:: python

              flow(1)

        Run::

           $ make

        - one
        - two

        ==== =====
        Name Size
        ==== =====
        a    1
        ==== =====

        Indices and tables
        ------------------

        * :ref:`genindex`
        * :ref:`search`
        """)
    (passage,) = read(tmp_path, "r.rst", text)
    assert passage.title == "Rivers"
    assert passage.text.split("\n\n") == [
        "See the lakes, flow and code. It is unknown.",
        "Note: Mind the gap.",
        "New in version 3.1",
        "flow(speed): Lets it flow.",
        "    flow(1)",
        "Run:",
        "    $ make",
        "- one",
        "- two",
        "Name: a | Size: 1",
    ]


def test_code_in_the_directives_of_sphinx_stays_code(tmp_path: Path) -> None:
    text = dedent("""\
        .. plot::
           :include-source:

            import mill
            # Show it. It turns.
            mill.show()

        .. testcode:: mills
           :hide:

            print(1)

            flow(2)

        .. prompt:: bash $

           pip install mill

        .. doctest::

           >>> 1 + 1
           2

        .. code-block:: python
           :linenos:
           :emphasize-lines: 1

           x = 1

        .. ipython::
           y = 2

        .. code-block:: bash
           mill run

        .. plot:: mill.py

           The mill from above.
        """)
    assert blocks(tmp_path, "r.rst", text) == [
        "    import mill\n    # Show it. It turns.\n    mill.show()",
        "    print(1)\n    \n    flow(2)",
        "    pip install mill",
        "    >>> 1 + 1\n    2",
        "    x = 1",
        "    y = 2",
        "    mill run",
        "The mill from above.",
    ]


def test_rst_keeps_the_text_of_directives_with_options_that_docutils_lacks(tmp_path: Path) -> None:
    text = ".. note::\n   :collapsible:\n\n   Mind the gap.\n\n.. math::\n   :label: e\n\n   a + b\n"
    assert blocks(tmp_path, "r.rst", text) == ["Note: Mind the gap.", "    a + b"]


def test_references_of_rst_show_what_they_lead_to(tmp_path: Path) -> None:
    text = dedent("""\
        See :ref:`move-it`, :ref:`here <move-it>`, :ref:`other-file`, :doc:`/mills/old`, :doc:`/lakes/index`,
        `~water.Flow`, `Miller`_, `Wheel <Wheels_>`_, [Moss]_, |Dam|, :file:`~/.millrc`, :samp:`run <mill>`,
        :kbd:`<Ctrl>` and x_.

        .. seealso:: :ref:`move-it`, ``code``.

        .. versionadded:: 3.1 The ``flow``.

        .. _move-it:

        .. index:: moving

        How to move it
        --------------

        Push.
        """)
    first, second = read(tmp_path, "r.rst", f"Rivers\n======\n\n{LONG}\n{LONG}\n\n{text}{LONG} {LONG} {LONG}\n")
    assert first.text.split("\n\n")[1:] == [
        "See How to move it, here, other-file, old, lakes, Flow, Miller, Wheel, [Moss], Dam, ~/.millrc, run <mill>, "
        "<Ctrl> and x_.",
        "See also: How to move it, code.",
        "New in version 3.1: The flow.",
    ]
    assert second.section == "How to move it"


def test_a_reference_without_a_role_shows_its_title(tmp_path: Path) -> None:
    text = (
        "Call `Boat.sail <sea.Boat.sail>`, `@checks\n<sea.checks>` or `old <sea.Boat.Meta>`;"
        " `cp <file>`, `open <notes.txt>` and `x < y` are none.\n"
    )
    assert blocks(tmp_path, "r.rst", text) == [
        "Call Boat.sail, @checks or old; cp <file>, open <notes.txt> and x < y are none."
    ]


def test_parameters_in_rst_begin_with_their_names(tmp_path: Path) -> None:
    text = ".. function:: sail(to)\n\n   :param to: a port\n   :param bool fast: at once\n   :returns: the hours\n"
    assert blocks(tmp_path, "r.rst", text) == ["sail(to)", "to: a port", "fast (bool): at once", "returns: the hours"]


def test_a_signature_of_a_class_may_go_on_in_the_next_line(tmp_path: Path) -> None:
    text = ".. class:: Mill(wheels, \\\n             stones=2)\n\n   It grinds.\n"
    assert blocks(tmp_path, "a.rst", text) == ["Mill(wheels, stones=2): It grinds."]


def test_rst_leaves_out_what_is_to_do_and_names_of_files(tmp_path: Path) -> None:
    left_out = ".. todo:: Write this. It says 42.", ".. bibliography:: _static/references.bib", ".. automodapi:: mill"
    kept = ".. option:: -f", ".. function:: flow(speed)", ".. centered:: Mind the gap"
    text = "\n\n".join([*left_out, *kept])
    assert blocks(tmp_path, "r.rst", text) == ["-f", "flow(speed)", "Mind the gap"]


def test_what_rst_says_of_itself(tmp_path: Path) -> None:
    text = "Mills\n=====\n\n:Author: Ann\n:Version: 1.2\n:Valid until: May\n:Date: $Date$\n:tocdepth: 2\n\nThey turn.\n"
    (passage,) = read(tmp_path, "a.rst", text)
    assert passage.text.split("\n\n") == ["Author: Ann", "Version: 1.2", "Valid until: May", "They turn."]


def test_rst_cannot_read_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("The secret word.")
    others = ".. include:: secret.txt", ".. raw:: html\n   :file: secret.txt", ".. csv-table::\n   :file: secret.txt"
    text = "\n\n".join([*others, LONG])
    (passage,) = read(tmp_path, "r.rst", text)
    assert passage.text == LONG


@pytest.mark.parametrize(
    "text", ["=\n", "Title\n==\n\n.. x::\n\n:a:`", "|a|_\n\n.. |a| replace::", "*", "::", ".. _a: a_"]
)
def test_broken_rst_is_read_as_it_stands(tmp_path: Path, text: str) -> None:
    assert LONG in "".join(passage.text for passage in read(tmp_path, "r.rst", f"{LONG}\n\n{text}\n"))


# --- MyST ---------------------------------------------------------------------------------------------------------


def test_directives_of_myst_are_read_as_those_of_rst(tmp_path: Path) -> None:
    text = dedent("""\
        ```{toctree}
        :hidden: true
        Old mills <old>
        ```

        ```{eval-rst}
        .. automodule:: mill

        .. note:: The default is 7.
        ```

        ```{Note}
        Use *it*, see [there][1].
        ```

        [1]: https://example.org

        :::{warning}
            Do not touch
            the wheel.
        :::

        ::::{tab-set}
        :::{tab-item} Linux
        Run apt.
        :::
        ::::

        ```{code-block} python
        :linenos:

        x = 1
        ```

        ```{code-cell} ipython3
        ---
        tags: [hide]
        ---
        y = 2
        ```

        ```{image} mill.png
        :target: https://example.org
        ```

        ```{figure} mill.png
        The mill stands by the river since the year 1820, and it still turns today.
        ```

        ```{todo}
        Write this.
        ```

        :::{admonition} Mind this
        :class: tip
        The gap.
        :::

        ```{versionadded} 3.1
        It `turns`.
        ```

        ```{deprecated} 4
        ```

        ````{dropdown} More
        ```{code-block} bash
        mill run
        ```
        ````

        ```{list-table}
        :header-rows: 1

        * - Name
          - Size
        * - a
          - 1
        ```

        ```{py:function} flow(*speed)
        Lets it flow.
        ```
        """)
    found = load_document_of(tmp_path, "r.md", text)
    assert found.dropped[nav.CONTENTS] == 1
    assert [block for passage in found.passages for block in passage.text.split("\n\n")] == [
        "Note: The default is 7.",
        "Note: Use it, see there.",
        "Warning: Do not touch the wheel.",
        "Linux: Run apt.",
        "    x = 1",
        "    y = 2",
        "The mill stands by the river since the year 1820, and it still turns today.",
        "Mind this: The gap.",
        "New in version 3.1: It turns.",
        "Deprecated since version 4",
        "More:",
        "    mill run",
        "Name: a | Size: 1",
        "flow(*speed): Lets it flow.",
    ]


def test_roles_targets_and_comments_of_myst(tmp_path: Path) -> None:
    text = dedent("""\
        See {ref}`move-it`, {ref}`here <move-it>`, {doc}`/mills/old`, {class}`~water.Flow` and {ref}`other-file`.
        % A comment.
        Push it, `{code}`, ${HOME}`x`.

        (move-it)=

        ## How to `move`

        Push.
        """)
    (passage,) = read(tmp_path, "r.md", text)
    assert passage.text.split("\n\n") == [
        "See How to move, here, old, Flow and other-file.",
        "Push it, {code}, ${HOME}x.",
        "Push.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```{r, echo=FALSE}\nr <- 1\n```", ["    r <- 1"]),
        ("```{python}\n:x:\n```", ["    :x:"]),
        ("```{.python #mill}\np = 1\n```", ["    p = 1"]),
        ("% ls\n% make", ["% ls", "% make"]),
        ("Set `a`{x} and f(x)= 1.", ["Set a{x} and f(x)= 1."]),
        ("::: {.callout-note}\nMind *it*.\n:::", ["Mind it."]),
        (":::tip[Faster]\nTurn it.\n:::", ["Tip: Faster", "Turn it."]),
        ("::: mill.wheel\n", ["::: mill.wheel"]),
        ("> [!NOTE]\n> Mind it.", ["Note: Mind it."]),
    ],
)
def test_other_markdown_is_no_myst(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert blocks(tmp_path, "r.md", text) == expected


# --- MDX ----------------------------------------------------------------------------------------------------------


def test_mdx_has_imports_comments_and_components(tmp_path: Path) -> None:
    text = dedent("""\
        ---
        title: The mill
        ---
        import Tabs from "@theme/Tabs";
        import {
          Wheel,
        } from "./wheel";

        export const power = { high: 3 };

        {/* Ask Ada
        about this. */}

        # Mill

        <Tabs
          groupId="os"
          values={[{ label: "A", value: "a" }]}
        >
            <TabItem value="linux" label="Linux">

            Run `mill`.

            </TabItem>
        <TabItem value="mac" label="macOS" default>

        ```js
        import mill from "mill";
        ```

        </TabItem>
        </Tabs>

        <Card title="Oil">Oil it.</Card> It is <Badge /> red.

        <Wheel />

        :::tip My tip
        Sing.
        :::
        """)
    (passage,) = read(tmp_path, "mill.mdx", text)
    assert passage.title == "The mill"
    assert passage.text.split("\n\n") == [
        "Linux",
        "Run mill.",
        "macOS",
        '    import mill from "mill";',
        "Oil it. It is red.",
        "Tip: My tip",
        "Sing.",
    ]


# --- Python-Markdown and MkDocs -----------------------------------------------------------------------------------


def test_boxes_and_tabs_of_mkdocs(tmp_path: Path) -> None:
    text = dedent("""\
        # Mill { #mill .wide }

        !!! note
            Keep it **dry**.

            ```sh
            dry --all
            ```

        !!! warning inline end "Use `oil`"

            Oil it weekly.

        ??? question "May it stop?"
            Only at night.

        !!! tip ""
            Sing.

        1. Open it.

            !!! danger
                Mind your hand.

        === "Linux"

            Run `mill`.

        === "macOS"

            ```sh
            open mill
            ```

        //// tab | Windows

        Click it.

        /// warning
        Not twice.
        ///

        /// html | div.wide
        Not thrice.
        ///

        ////

        /// details | Why?
            type: note

        It is slow.
        ///
        /// is no box

        !!! note
        No text is indented here.

        What???

        ???

            mill --why
        """)
    (passage,) = read(tmp_path, "mill.md", text)
    assert passage.title == "Mill"
    assert passage.text.split("\n\n") == [
        "Note: Keep it dry.",
        "    dry --all",
        "Use oil: Oil it weekly.",
        "May it stop?: Only at night.",
        "Sing.",
        "1. Open it.",
        "Danger: Mind your hand.",
        "Linux: Run mill.",
        "macOS:",
        "    open mill",
        "Windows: Click it.",
        "Warning: Not twice.",
        "Not thrice.",
        "Why?: It is slow.",
        "/// is no box",
        "!!! note",
        "No text is indented here.",
        "What???",
        "    mill --why",
    ]


def test_attributes_icons_keys_and_lines_that_say_nothing(tmp_path: Path) -> None:
    text = dedent("""\
        [TOC]

        Open the [gate](gate.md){ .button target="_blank" } :material-gate: with ++ctrl+c++.
        {: .lead }

        ![A gate](gate.png){ width=300 }

        --8<-- "parts/gate.md"

        {% include "end.md" %}

        ```yaml
        {% include mill.yaml %}
        ```

        See [how to *oil*][oil-the-gate], [`Gate`][], [it][gate.Gate] and [old][old-gate].

        [old-gate]: https://example.org

        Keep a[i][j.k], [x][y], x_{i=1}, i++ and {name} as they are, and `a :material-gate:` too.
        """)
    assert blocks(tmp_path, "gate.md", text) == [
        "Open the gate with Ctrl+C.",
        "See how to oil, Gate, it and old.",
        "Keep a[i][j.k], [x][y], x_{i=1}, i++ and {name} as they are, and a :material-gate: too.",
    ]


def test_ticks_are_shown_as_github_shows_them(tmp_path: Path) -> None:
    text = "| Mill | Runs |\n|---|---|\n| old | :white_check_mark: |\n| new | :x: |\n\nThe time `:x:` or a:x:b.\n"
    assert blocks(tmp_path, "m.md", text) == ["Mill: old | Runs: ✅", "Mill: new | Runs: ❌", "The time :x: or a:x:b."]


def test_footnotes_definitions_and_abbreviations_of_markdown(tmp_path: Path) -> None:
    text = dedent("""\
        The mill[^1] grinds [^all].

        Sluice
        : A gate for water.
        Weir
        :   A low dam
            in a river.
        : A fence for fish.

        *[RPM]: Rounds per minute

        [^1]: Built

            In two parts.
        """)
    assert blocks(tmp_path, "mill.md", text) == [
        "The mill grinds [^all].",
        "Sluice: A gate for water.",
        "Weir: A low dam in a river.",
        "A fence for fish.",
        "RPM: Rounds per minute",
        "Built",
        "In two parts.",
    ]


# --- manual pages ------------------------------------------------------------------------------------------------


# --- notebooks and packed text -----------------------------------------------------------------------------------


def test_a_notebook(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Rivers\n", "\n", f"{LONG} {LONG}\n\nRun this:"]},
        {"cell_type": "code", "source": "flow()\n", "outputs": [{"text": "It flows."}]},
        {"cell_type": "markdown", "source": f"## Poland\n{LONG}\n{LONG}"},
        {"cell_type": "raw", "source": "raw"},
    ]
    first, second = read(tmp_path, "n.ipynb", json.dumps({"nbformat": 4, "cells": cells}))
    assert (first.title, first.text) == ("Rivers", f"{LONG} {LONG}\n\nRun this:\n\n    flow()")
    assert (second.section, second.text) == ("Poland", f"{LONG} {LONG}")
    old = {
        "worksheets": [
            {"cells": [{"cell_type": "heading", "level": 1, "source": "Old"}, {"cell_type": "code", "input": "x"}]}
        ]
    }
    (passage,) = read(tmp_path, "n.ipynb", json.dumps(old))
    assert (passage.title, passage.text) == ("Old", "    x")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cells": 3}', '{"cells": [3]}', "[" * 100_000])
def test_what_is_no_notebook_is_named(tmp_path: Path, content: str) -> None:
    with pytest.raises(FormatError, match=r"n\.ipynb: not a notebook"):
        read(tmp_path, "n.ipynb", content)


def test_packed_text_is_read_by_the_suffix_before(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "a.HTML.gz", gzip.compress(f"<title>T</title><p>{LONG}".encode()))
    assert (passage.title, passage.text) == ("T", LONG)
    (passage,) = read(tmp_path, "notes.txt.gz", gzip.compress(LONG.encode()))
    assert passage.title == "notes"


def test_packed_text_that_is_broken_or_too_large_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(LONG.encode() * 100)
    with pytest.raises(FormatError, match=r"a\.txt\.gz: the compressed file is cut off"):
        read(tmp_path, "a.txt.gz", packed[:-20])
    with pytest.raises(FormatError, match=r"a\.txt\.gz: the compressed file is broken"):
        read(tmp_path, "a.txt.gz", b"nonsense")
    with pytest.raises(FormatError, match=r"a\.txt\.gz: unpacks to more than 64 MiB"):
        read(tmp_path, "a.txt.gz", gzip.compress(b" " * (65 << 20)))


# --- books and office documents ----------------------------------------------------------------------------------


def packed(files: dict[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="o/b.opf"/></rootfiles></container>"""
BOOK = """<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>A Book</dc:title></metadata><manifest>
<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="b" href="two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/><itemref idref="gone"/></spine></package>"""


def book(**files: str) -> bytes:
    return packed({"META-INF/container.xml": CONTAINER, "o/b.opf": BOOK, **files})


def test_a_book_is_read_in_its_order(tmp_path: Path) -> None:
    one, two = (
        f"<html><head><title>{name}</title></head><body>{{}}<p>{LONG} {LONG} {name}</p></body></html>" for name in "AB"
    )
    data = book(
        **{"o/a.xhtml": one.format(""), "o/two b.xhtml": two.format("<h1>Chapter 2. Lakes</h1>"), "o/nav.xhtml": two}
    )
    first, second = read(tmp_path, "book.epub", data)
    assert (first.title, first.section, first.text[-2:]) == ("A Book", "A", " A")
    assert (second.title, second.section, second.text[-2:]) == ("A Book", "Lakes", " B")


@pytest.mark.parametrize("encoding", ["gb18030", "shift_jis", "x-nobody"])
def test_a_book_in_another_encoding(tmp_path: Path, encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    title = "A Book" if encoding == "x-nobody" else "古い水車の本"
    text = f"{head}{BOOK.replace('A Book', title)}".encode("utf-8" if encoding == "x-nobody" else encoding)
    page = f"<body><p>{LONG}</p></body>"
    data = packed(
        {
            "META-INF/container.xml": CONTAINER,
            "o/b.opf": text,
            "o/a.xhtml": page,
            "o/two b.xhtml": "",
            "o/nav.xhtml": "",
        }
    )
    assert [passage.title for passage in read(tmp_path, "book.epub", data)] == [title]


def test_a_word_document(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")  # writes it; the product reads it with mammoth
    file, document = io.BytesIO(), docx.Document()
    document.add_heading("Rivers", 0)
    document.add_heading("Poland", 1)
    document.add_paragraph("There are:")
    document.add_paragraph("long ones", style="List Bullet")
    table = document.add_table(2, 2)
    for number, text in enumerate(("Name", "Size", "Vistula", "1047")):
        table.cell(number // 2, number % 2).text = text
    document.save(file)
    (passage,) = read(tmp_path, "r.docx", file.getvalue())
    assert (passage.title, passage.section) == ("Rivers", "Poland")
    assert passage.text.split("\n\n")[:2] == ["There are:", "- long ones"]
    assert "Name: Vistula | Size: 1047" in passage.text


_OPEN = "http://schemas.openxmlformats.org"
_TYPE = "application/vnd.openxmlformats"
DOCX = {
    "[Content_Types].xml": f'''<Types xmlns="{_OPEN}/package/2006/content-types">
<Default Extension="rels" ContentType="{_TYPE}-package.relationships+xml"/><Override PartName="/word/document.xml"
ContentType="{_TYPE}-officedocument.wordprocessingml.document.main+xml"/></Types>''',
    "_rels/.rels": f'''<Relationships xmlns="{_OPEN}/package/2006/relationships"><Relationship Id="r"
Type="{_OPEN}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>''',
    "word/document.xml": f'''<w:document xmlns:w="{_OPEN}/wordprocessingml/2006/main"><w:body><w:p><w:r>
<w:t>{LONG}</w:t></w:r></w:p></w:body></w:document>''',
}


def test_the_smallest_word_document(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    (passage,) = read(tmp_path, "r.docx", packed({**DOCX}))
    assert (passage.title, passage.text) == ("r", LONG)


def test_formulas_of_a_word_document_are_text(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    power = "<m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    share = "<m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f>"
    text = f"""<w:document xmlns:w="{_OPEN}/wordprocessingml/2006/main"
xmlns:m="{_OPEN}/officeDocument/2006/math"><w:body><w:p><w:r><w:t xml:space="preserve">The energy is </w:t></w:r>
<m:oMath><m:r><m:t>E=m</m:t></m:r>{power}</m:oMath><w:r><w:t>.</w:t></w:r></w:p>
<w:p><m:oMathPara><m:oMath>{share}<m:r><m:t>&lt;1</m:t></m:r></m:oMath></m:oMathPara></w:p></w:body></w:document>"""
    (passage,) = read(tmp_path, "r.docx", packed({**DOCX, "word/document.xml": text}))
    assert passage.text == "The energy is E=mc^2.\n\na/b<1"


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (["<b>Skill", "<b>Level"], ["Skill: Python | Level: basic", "Skill: Welsh | Level: expert"]),
        (["Skill", "2025"], ["Skill | 2025", "Python | basic", "Welsh | expert"]),
        (["Name", "Anna Lee"], ["Name | Anna Lee", "Python | basic", "Welsh | expert"]),  # a form
    ],
)
def test_the_first_row_of_a_word_table_names_its_columns(tmp_path: Path, first: list[str], expected: list[str]) -> None:
    pytest.importorskip("mammoth")
    rows = "".join(
        f"<w:tr>{''.join(f'<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>' for cell in row)}</w:tr>"
        for row in (first, ["Python", "basic"], ["Welsh", "expert"])
    ).replace("<w:r><w:t><b>", "<w:r><w:rPr><w:b/></w:rPr><w:t>")
    document = DOCX["word/document.xml"].replace("<w:body>", f"<w:body><w:tbl>{rows}</w:tbl>")
    (passage,) = read(tmp_path, "r.docx", packed({**DOCX, "word/document.xml": document}))
    assert passage.text.split("\n\n")[:-1] == expected


_ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{part}:1.0"'
    for name, part in [(part, part) for part in ("office", "text", "table", "style", "presentation")]
    + [("draw", "drawing")]
)


def table_of(rows: list[list[str]], more: str = "") -> str:
    cells = [[f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row] for row in rows]
    lines = "".join(f"<table:table-row>{''.join(row)}</table:table-row>" for row in cells)
    return f'<table:table table:name="Bar">{lines}{more}</table:table>'


CALENDAR = r"""BEGIN:VCALENDAR
X-WR-CALNAME:Choir
BEGIN:VEVENT
SUMMARY:Concert\, with
  cake
DTSTART;TZID="Europe/London":20261103T180000
DTEND:20261103T200000Z
LOCATION:Mill Hall
DESCRIPTION:Bring a cup.\nDoors at 17:30.
BEGIN:VALARM
DESCRIPTION:Soon
END:VALARM
END:VEVENT
BEGIN:VEVENT
SUMMARY:Closed
DTSTART;VALUE=DATE:20261224
DTEND;VALUE=DATE:20261227
RRULE:FREQ=YEARLY
END:VEVENT
END:VCALENDAR
"""


def test_a_calendar(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "c.ics", CALENDAR.replace("\n", "\r\n").encode())
    assert passage.title == "Choir"
    assert passage.text.split("\n\n") == [
        "Event: Concert, with cake | Start: 2026-11-03 18:00 | End: 2026-11-03 20:00 UTC | Place: Mill Hall | "
        "Description: Bring a cup. Doors at 17:30.",
        "Event: Closed | Start: 2026-12-24 | End: 2026-12-26 | Repeats: yearly",
    ]
    with pytest.raises(FormatError, match=r"c\.ics: not a calendar"):
        read(tmp_path, "c.ics", b"Hello")


NAMES = ["Name", "Role", "Town"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [["Name", "Club"], ["Chair", "Anna"], ["Phone", "01234 5"]],
            ["Name | Club", "Chair | Anna", "Phone | 01234 5"],
        ),
        (
            [["Anna", "Chair", "a@x.org"], ["Bob", "Clerk", "b@x.org"]],
            ["Anna | Chair | a@x.org", "Bob | Clerk | b@x.org"],
        ),
        ([["Prices"], ["Item", "Price"], ["Tea", "2.6"]], ["Prices", "Item: Tea | Price: 2.6"]),
        ([["Item", "2023", "2024"], ["Tea", "10", "12"]], ["Item: Tea | 2023: 10 | 2024: 12"]),
        ([["Since", "2012"], ["Fee", "30"]], ["Since | 2012", "Fee | 30"]),
        ([["Class", "Pots"], ["Fee", "£30"], ["Lasts", "6 weeks"]], ["Class | Pots", "Fee | £30", "Lasts | 6 weeks"]),
        (
            [["Fair", "Date"], ["Pots", "3 May"], ["Rugs", "12 June"]],
            ["Fair: Pots | Date: 3 May", "Fair: Rugs | Date: 12 June"],
        ),
        (
            [NAMES, ["Anna", "Chair", "Arlen"], ["", "", ""], ["Cy", "Clerk", "Lee"], ["Di", "Aide", "Mill"]],
            ["Name: Anna | Role: Chair | Town: Arlen", "Cy | Clerk | Lee", "Di | Aide | Mill"],
        ),
        (
            [["", "Summer", "", "Winter", ""], ["Room", "Night", "Week", "Night", "Week"], ["A", "5", "30", "4", "24"]],
            ["Room: A | Summer, Night: 5 | Summer, Week: 30 | Winter, Night: 4 | Winter, Week: 24"],
        ),
        (
            [
                ["Day", "Morning", "", "Evening", ""],
                ["Day", "Who", "At", "Who", "At"],
                ["Mon", "Al", "Inn", "Bo", "Gym"],
                ["Tue", "Cy", "Gym", "Di", "Inn"],
            ],
            [
                "Day: Mon | Morning, Who: Al | Morning, At: Inn | Evening, Who: Bo | Evening, At: Gym",
                "Day: Tue | Morning, Who: Cy | Morning, At: Gym | Evening, Who: Di | Evening, At: Inn",
            ],
        ),
        ([["Item", "2024-01-31", "2024-02-29"], ["Tea", "5", "6"]], ["Item: Tea | 2024-01-31: 5 | 2024-02-29: 6"]),
        (
            [["Task", "2024-01-31", "2024-02-29"], ["Mow", "2024-03-31", "2024-04-30"]],
            ["Task | 2024-01-31 | 2024-02-29", "Mow | 2024-03-31 | 2024-04-30"],
        ),
        ([["Name:", "Ann", "Born:", "1990"], ["Town:", "Lee", "", ""]], ["Name: Ann | Born: 1990", "Town: Lee"]),
        (
            [
                ["Fruits", "", "", "Cars"],
                ["Fruit", "Price", "", "Car", "Speed"],
                ["Pear", "1", "", "Audi", "200"],
                ["Plum", "2", "", "BMW", "210"],
                ["Fig", "3"],
            ],
            [
                "Fruits",
                "Fruit: Pear | Price: 1",
                "Fruit: Plum | Price: 2",
                "Fruit: Fig | Price: 3",
                "Cars",
                "Car: Audi | Speed: 200",
                "Car: BMW | Speed: 210",
            ],
        ),
        (  # an empty column inside of one table
            [
                ["Task", "Owner", "", "State", "Due"],
                ["Mow", "Al", "", "open", "May"],
                ["Dig", "Bo", "", "open", "June"],
            ],
            ["Task: Mow | Owner: Al | State: open | Due: May", "Task: Dig | Owner: Bo | State: open | Due: June"],
        ),
    ],
)
def test_which_row_names_the_columns(rows: list[list[str]], expected: list[str]) -> None:
    assert [block.text for block in grid_rows(rows)] == expected


def test_a_presentation(tmp_path: Path) -> None:
    pptx: Any = pytest.importorskip("pptx")
    file, show = io.BytesIO(), pptx.Presentation()
    for title, lines in (("Rivers", ["They flow.", "To the sea."]), ("Lakes", ["They do not."])):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(lines)
        slide.notes_slide.notes_text_frame.text = f"{LONG} {LONG} {title}"
    show.save(file)
    first, second = read(tmp_path, "s.pptx", file.getvalue())
    assert (first.title, first.page, first.text) == (
        "Rivers",
        1,
        f"- They flow.\n\n- To the sea.\n\n{LONG} {LONG} Rivers",
    )
    assert (second.section, second.page) == ("Lakes", 2)


def test_the_first_row_of_a_table_on_a_slide_names_its_columns(tmp_path: Path) -> None:
    pptx: Any = pytest.importorskip("pptx")
    file, show = io.BytesIO(), pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    table = slide.shapes.add_table(2, 2, 0, 0, 9, 9).table
    for place, text in enumerate(["Flag", "Meaning", "Red", "Nobody may sail"]):
        table.cell(*divmod(place, 2)).text = text
    show.save(file)
    (passage,) = read(tmp_path, "s.pptx", file.getvalue())
    assert passage.text == "Flag: Red | Meaning: Nobody may sail"


def test_a_slide_without_a_title_is_not_part_of_the_one_before(tmp_path: Path) -> None:
    pptx: Any = pytest.importorskip("pptx")
    file, show = io.BytesIO(), pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "Opening\vhours", f"Monday\v{LONG} {LONG}"
    slide = show.slides.add_slide(show.slide_layouts[6])
    for top, text in ((900000, f"{LONG} {LONG}"), (0, "Tickets")):
        slide.shapes.add_textbox(0, top, 900000, 900000).text_frame.text = text
    show.slides.add_slide(show.slide_layouts[6]).shapes.add_textbox(0, 0, 9, 9).text_frame.text = f"{LONG} {LONG}!"
    show.save(file)
    first, second, third = read(tmp_path, "s.pptx", file.getvalue())
    assert (first.title, first.section, first.text) == ("Opening hours", "", f"Monday {LONG} {LONG}")
    assert (second.section, third.section) == ("Tickets", "Slide 3")


def test_a_slide_that_is_all_title_is_read(tmp_path: Path) -> None:
    pptx: Any = pytest.importorskip("pptx")
    file, show = io.BytesIO(), pptx.Presentation()
    for title in ("Rivers", "We meet again on 4 May", "Questions?"):
        show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = title
    show.save(file)
    (passage,) = read(tmp_path, "s.pptx", file.getvalue())
    assert (passage.title, passage.text) == ("Rivers", "We meet again on 4 May\n\nQuestions?")


def test_a_workbook(tmp_path: Path) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl")
    file, workbook = io.BytesIO(), openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Rivers"
    for line in (["Name", "Length"], ["Vistula", 1047], ["Oder", 854.5], [None, None], ["Sum", 1901.5]):
        sheet.append(line)
    workbook.create_sheet("Empty")
    workbook.save(file)
    (passage,) = read(tmp_path, "w.xlsx", file.getvalue())
    assert passage.section == "Rivers"
    assert passage.text.split("\n\n") == ["Name: Vistula | Length: 1047", "Name: Oder | Length: 854.5", "Sum | 1901.5"]


def test_cells_of_a_workbook_that_span_rows_and_shares(tmp_path: Path) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl")
    file, workbook = io.BytesIO(), openpyxl.Workbook()
    sheet = workbook.active
    for line in (["Day", "Who"], ["Monday", "Ann"], [None, "Bob"], ["Fee", 540], ["Cost", 4.5], ["Share", 0.25]):
        sheet.append(line)
    for line in (["Sheet", 0.0035], ["Refund", -12.5]):
        sheet.append(line)
    sheet.merge_cells("A2:A3")
    sheet["A1"].font = sheet["B1"].font = openpyxl.styles.Font(bold=True)
    sheet["B4"].number_format = '"£"#,##0.00'
    sheet["B5"].number_format = "#,##0.00 [$€-407]"
    sheet["B6"].number_format = "0%"
    sheet["B7"].number_format = sheet["B8"].number_format = "[$£-809]0.0000"
    workbook.save(file)
    (passage,) = read(tmp_path, "w.xlsx", file.getvalue())
    assert passage.text.split("\n\n") == [
        "Day: Monday | Who: Ann",
        "Day: Monday | Who: Bob",
        "Day: Fee | Who: £540",
        "Day: Cost | Who: 4.50 €",
        "Day: Share | Who: 25%",
        "Day: Sheet | Who: £0.0035",
        "Day: Refund | Who: -£12.5000",
    ]


def test_a_workbook_whose_writer_gave_a_wrong_size_is_read_whole(tmp_path: Path) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl")
    file, workbook = io.BytesIO(), openpyxl.Workbook()
    sheet = workbook.active
    for line in (["River", "Length", "Into"], ["Vistula", 1047], ["Oder", 854, "Baltic Sea"], ["Warta", 795, None]):
        sheet.append(line)
    sheet.merge_cells("C3:C4")
    workbook.save(file)
    with zipfile.ZipFile(file) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sheet_file = "xl/worksheets/sheet1.xml"
    assert b'<dimension ref="A1:C4"' in files[sheet_file]
    for size in (b"A1", b"A1:XFD1048576"):
        changed = files[sheet_file].replace(b'ref="A1:C4"', b'ref="' + size + b'"')
        (passage,) = read(tmp_path, "w.xlsx", packed({**files, sheet_file: changed}))
        assert passage.text.split("\n\n") == [
            "River: Vistula | Length: 1047",
            "River: Oder | Length: 854 | Into: Baltic Sea",
            "River: Warta | Length: 795 | Into: Baltic Sea",
        ]


PORTS = ["ANC:Ted Stevens:US:Anchorage", "ABZ:Dyce:GB:Aberdeen", "TYS:McGhee Tyson:US:", "AAR:Aarhus:DK:Aarhus"]
PORTS += ["ABD:Abadan:IR:Abadan"]


def test_cells_between_colons_are_rows(tmp_path: Path) -> None:
    head = "# Airports of the world\n#\n# Code : Airport:Country:City\n"
    (passage,) = read(tmp_path, "airport.txt", head + "\n".join(PORTS))
    assert passage.text.split("\n\n")[:2] == [
        "Airports of the world",
        "Code: ANC | Airport: Ted Stevens | Country: US | City: Anchorage",
    ]
    assert "Code: TYS | Airport: McGhee Tyson | Country: US\n\n" in passage.text
    (passage,) = read(tmp_path, "airport.txt", "\n".join(PORTS))
    assert passage.text.startswith("ANC | Ted Stevens | US | Anchorage\n\nABZ | Dyce")


@pytest.mark.parametrize(
    "line",
    [
        "10:15:00 the keeper of the lamp went out",
        "lamp: oil: 3 litres of it",
        "See https://a.example:80 or so",
        "Oil:red",
        "00:1a:2b:3c:4d:5e",
    ],
)
def test_other_lines_with_colons_are_no_rows(tmp_path: Path, line: str) -> None:
    (passage, *_) = read(tmp_path, "a.txt", "\n".join([line] * 6))
    assert " | " not in passage.text


def test_notes_above_the_names_of_a_sheet_name_no_columns() -> None:
    names = ["Name", "Profession", "Age", "Born"]
    people = [["Vera", "miller", "88", "1928-07-23"], ["Jo", "baker", "41", "1974-06-22"], ["Gwen", "smith", "61", ""]]
    notes = [["We like to", "", "", "write"], ["notes", "above", "", "names"]]
    found = [block.text for block in grid_rows([["On people", "", "", ""], *notes, names, *people])]
    assert found[:3] == ["On people", "We like to | write", "notes | above | names"]
    assert found[3] == "Name: Vera | Profession: miller | Age: 88 | Born: 1928-07-23"
    one = [block.text for block in grid_rows([["", "2023", "", "2024"], ["Town", "Jan", "Feb", "Jan"], *people])]
    assert one[0].startswith("Town: Vera")  # a row above the names may group them


def test_cells_before_one_that_spans_rows_are_limited() -> None:
    rows = [[*[""] * 9, "all"], ["a"], ["b"], ["c"]]
    _fill_ranges(rows, [(9, 0, 3)], 20)
    assert [len(cells) for cells in rows] == [10, 10, 10, 1]


def test_a_missing_library_is_one_line_that_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for library, name in (("mammoth", "r.docx"), ("pptx", "r.pptx"), ("openpyxl", "r.xlsx")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(FormatError, match=rf'{name}: needs {library}: pip install -e "\.\[documents\]"'):
            read(tmp_path, name, packed({**DOCX}))


NEEDS = {"b.docx": "mammoth", "b.pptx": "pptx", "b.xlsx": "openpyxl"}


@pytest.mark.parametrize("name", ["b.docx", "b.pptx", "b.xlsx", "b.epub"])
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "broken"),
        (b"PK\3\4nonsense", "broken"),
        (packed({"a.txt": "Nothing else."}), "broken"),
        (packed({"a.xml": b" " * (30 << 20)}), "refused, as its 1 files unpack to 30 MiB"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "encrypted, or of an old Office program"),
    ],
)
def test_archives_that_are_broken_or_bombs_are_named(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason="needs the extra 'documents'")
    with pytest.raises(FormatError, match=rf"{name}: {says}"):
        read(tmp_path, name, data)


def test_a_book_with_a_bomb_of_entities_is_named(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE x [<!ENTITY a "haha">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
    )
    with pytest.raises(FormatError, match=r"b\.epub: broken"):
        read(tmp_path, "b.epub", packed({"META-INF/container.xml": f"{laughs}]><x>&m;</x>"}))


def test_what_is_left_out_of_a_document_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(f"<nav>Home</nav><p>{LONG}")
    document = load_document(path, "a.html")
    assert (len(document.passages), document.dropped) == (1, {nav.NAVIGATION: 1})


@pytest.mark.parametrize("name", ["xl/workbook.xml", "[Content_Types].xml", "xl/worksheets/sheet1.xml"])
def test_what_a_library_says_of_a_broken_file_is_one_line(tmp_path: Path, name: str) -> None:
    # openpyxl explains itself in three lines, and lxml names the line in a second one.
    openpyxl = pytest.importorskip("openpyxl")
    file, book = io.BytesIO(), openpyxl.Workbook()
    book.save(file)
    with zipfile.ZipFile(file) as archive:
        files: dict[str, str | bytes] = {one: archive.read(one) for one in archive.namelist()}
    for broken in (b"\0", b"<a", b""):
        with pytest.raises(FormatError) as caught:
            read(tmp_path, "r.xlsx", packed(files | {name: broken}))
        assert "\n" not in str(caught.value)


def test_an_item_of_a_book_may_name_a_part_of_a_page(tmp_path: Path) -> None:
    package = BOOK.replace('href="a.xhtml"', 'href="a.xhtml#top"').replace('<itemref idref="b"/>', "")
    page = f"<body><p>{LONG}</p></body>"
    data = packed({"META-INF/container.xml": CONTAINER, "o/b.opf": package, "o/a.xhtml": page, "o/nav.xhtml": page})
    assert [passage.text for passage in read(tmp_path, "book.epub", data)] == [LONG]


def test_names_inside_a_book_stand_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, "b.epub", packed({"META-INF/container.xml": CONTAINER.replace("o/b.opf", "o&#10;b.opf")}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "a.csv",
            'Name,Size\n"Vistula, the",1047\nOder,854\n',
            ["Name: Vistula, the | Size: 1047", "Name: Oder | Size: 854"],
        ),
        (
            "a.csv",
            "Name;Size\r\n\r\nOder;8,54\r\nWarta;8,08\r\n",
            ["Name: Oder | Size: 8,54", "Name: Warta | Size: 8,08"],
        ),
        ("a.tsv", "1\t2\t3\n4\t5\t6\n", ["1 | 2 | 3", "4 | 5 | 6"]),
        ("a.csv", "Näme,Größe\nElbe,1094\n".encode("cp1252"), ["Näme: Elbe | Größe: 1094"]),
        ("a.csv", "sep=;\nName;Size\nOder;854\n", ["Name: Oder | Size: 854"]),
        ("a.csv", "Name|Size\nOder|854\n", ["Name: Oder | Size: 854"]),
        (
            "a.csv",
            "Rivers of 2025\nMade by Ann\n\nName,Size\nOder,854\n\nTotal,854\n",
            ["Rivers of 2025", "Made by Ann", "Name: Oder | Size: 854", "Name: Total | Size: 854"],
        ),
        (
            "a.csv",
            "Report;;;\nDate;1 May;;\n;;;\nName;Into;Size;Old\nOder;Sea;854;-\n",
            ["Report", "Date | 1 May", "Name: Oder | Into: Sea | Size: 854 | Old: -"],
        ),
        (
            "a.csv",
            "Rivers,,\nName,Size,Into\nOder,854,Sea\nLakes,,\nName,Size,Into\nEar,9,Oder\n",
            ["Rivers", "Name: Oder | Size: 854 | Into: Sea", "Lakes", "Name: Ear | Size: 9 | Into: Oder"],
        ),
        ("a.csv", "Ann,Meier,030 12\nBen,Schulz,030 13\n", ["Ann | Meier | 030 12", "Ben | Schulz | 030 13"]),
        ("a.csv", "Town,2021,2022\nAller,8.1,8.3\n", ["Town: Aller | 2021: 8.1 | 2022: 8.3"]),
        ("a.csv", "Ann,1980,2001\nBen,1981,2003\n", ["Ann | 1980 | 2001", "Ben | 1981 | 2003"]),
        ("a.csv", ",8:00,9:00\nMonday,Art,PE\n", ["Monday | 8:00: Art | 9:00: PE"]),
        ("a.csv", "Name,Hobbies\nAda,chess,tea,go\nBob,go\n", ["Name | Hobbies", "Ada | chess | tea | go", "Bob | go"]),
        ("a.csv", "Name,Size\nOder,854\n\nLake,Depth\nEar,9\n", ["Name: Oder | Size: 854", "Lake: Ear | Depth: 9"]),
        (
            "a.csv",
            "There are rivers, and there are lakes.\nNone is red.\n",
            ["There are rivers, and there are lakes.", "None is red."],
        ),
    ],
)
def test_rows_of_tables(tmp_path: Path, name: str, content: str | bytes, expected: list[str]) -> None:
    (passage,) = read(tmp_path, name, content)
    assert passage.title == "a"
    assert passage.text.split("\n\n") == expected


def test_a_collection_of_passages_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "psgs.tsv").write_text("id\ttext\ttitle\n1\tThe Oder is long.\tOder\n")
    (tmp_path / "rivers.csv").write_text("Name,Size\nOder,854\n")
    assert Corpus([tmp_path / "psgs.tsv"]).described[0].format != "documents"
    assert Corpus([tmp_path / "rivers.csv"]).described[0].format == "documents"


MAIL = """From: Ann <ann@mill.example>
To: all@mill.example
Date: Mon, 3 Mar 2025 09:12:44 +0100
Subject: =?utf-8?q?M=C3=BChle?= closed
Content-Type: {type}; charset={charset}

"""


def test_an_email(tmp_path: Path) -> None:
    head = [
        "From: Ann <ann@mill.example>",
        "To: all@mill.example",
        "Date: Mon, 03 Mar 2025 09:12:44 +0100",
    ]
    body = "Dear all,\n\nthe Mühle is closed.\n\nOn Sunday Ben wrote:\n> When is it closed?\n> Ben\n\nAsk me:\n> No?\n"
    plain = MAIL.format(type="text/plain", charset="iso-8859-1") + body
    page = MAIL.format(type="text/html", charset="utf-8") + "<p>Dear all,<p>the Mühle is closed."
    for data in (plain.encode("latin-1"), plain.encode("cp1252").replace(b"iso-8859-1", b"nonsense"), page.encode()):
        (passage,) = read(tmp_path, "a.eml", data)
        assert passage.title == "Mühle closed"
        lines = passage.text.split("\n\n")
        assert lines[:2] == head[:2]
        assert lines[3:5] == ["Dear all,", "the Mühle is closed."]
        assert lines[5:] in (["Ask me:"], [])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "Hello,\n\n> Is it red?\nYes, as ever.\n\n> How old\n> is it?\n>> A lot.\nTen years.\n\nAnn",
            ["Hello,", "> Is it red?", "Yes, as ever.", "> How old is it?", "Ten years.", "Ann"],
        ),
        ("Ben wrote:\n> How old is it?\n\nIt is ten years old.", ["> How old is it?", "It is ten years old."]),
        (
            "It is red.\n\nOn Sunday, Ben <b@mill.example>\nwrote:\n\n> How old?\n> Ben\n\n-- \nAnn",
            ["It is red.", "Ann"],
        ),
        ("It is red.\n\nOn Sunday, Ben <b@mill.example> wrote:\n> How old?\n\nAnn", ["It is red.", "Ann"]),
        ("Look:\n\nBegin forwarded message:\n\n> From: Ben\n>\n> The code is 4.", ["From: Ben", "The code is 4."]),
        ("> The code is 4.\n>\n> It is red.\n", ["The code is 4.", "It is red."]),
    ],
)
def test_what_an_email_quotes(tmp_path: Path, body: str, expected: list[str]) -> None:
    (passage,) = read(tmp_path, "a.eml", MAIL.format(type="text/plain", charset="utf-8") + body)
    lines = [line for line in passage.text.split("\n\n")[3:] if line != "--"]
    assert lines[-len(expected) :] == expected
    assert len(lines) <= len(expected) + 2


def test_a_page_beside_an_empty_text(tmp_path: Path) -> None:
    part = "--b\nContent-Type: text/{kind}; charset=utf-8\n\n{text}\n"
    parts = part.format(kind="plain", text="") + part.format(kind="html", text="<p>It costs 450.</p>")
    head = "From: Ann <ann@mill.example>\nContent-Type: multipart/alternative; boundary=b\n\n"
    (passage,) = read(tmp_path, "a.eml", f"{head}{parts}--b--\n")
    assert passage.text.endswith("It costs 450.")


def test_what_is_no_email_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not an e-mail"):
        read(tmp_path, "a.eml", "It is only a line of text.")


def test_grid_tables_of_markdown_have_rows_with_names(tmp_path: Path) -> None:
    text = dedent("""
        Fees:

        +---------+:------:+-----------------+
        | Boat    | Fee    | With            |
        +=========+========+=================+
        | Canoe   | £4     | - a **paddle**  |
        |         |        | - a vest        |
        +---------+--------+-----------------+
        | Punt    | £9     | a [pole](p.md)  |
        +---------+--------+-----------------+

        +---+---+
        | a | b |
        as it stands
        """)
    assert blocks(tmp_path, "fees.md", text) == [
        "Fees:",
        "Boat: Canoe | Fee: £4 | With: a paddle a vest",
        "Boat: Punt | Fee: £9 | With: a pole",
        "+---+---+ | a | b | as it stands",
    ]


def test_bold_headings_in_a_paragraph_of_markdown_stand_apart(tmp_path: Path) -> None:
    text = dedent("""
        All of the people who work here meet in the hall on each Monday.
        **Hours**
        Staff work from 9 to 5.
        **Holidays.** There are 30 days. Ask
        **Ann Bell** for more.
        **Note** that it is long.
        """)
    assert blocks(tmp_path, "staff.md", text) == [
        "All of the people who work here meet in the hall on each Monday.",
        "Hours",
        "Staff work from 9 to 5.",
        "Holidays. There are 30 days. Ask Ann Bell for more. Note that it is long.",
    ]


def test_terms_of_rst_have_one_colon(tmp_path: Path) -> None:
    text = "- Bus::\n   It goes on roads.\n\nTram::\n   It goes on rails.\n\nRun::\n\n  make\n"
    assert blocks(tmp_path, "town.rst", text) == [
        "- Bus: It goes on roads.",
        "Tram: It goes on rails.",
        "Run:",
        "    make",
    ]


@pytest.mark.parametrize(
    ("name", "heading", "title"),
    [
        ("billing.md", "Overview", "billing"),
        ("a/how_to_pay.md", "Introduction", "how_to_pay"),
        ("billing.md", "Bills", "Bills"),
        ("overview.md", "Introduction", "Introduction"),
        ("index.md", "Usage", "Usage"),
        ("ch01.md", "Introduction", "Introduction"),
    ],
)
def test_a_page_with_a_generic_title_is_called_as_its_file(tmp_path: Path, name: str, heading: str, title: str) -> None:
    path = tmp_path / "x.md"
    path.write_text(f"# {heading}\n\nIt costs 3.\n")
    (passage,) = read_document(path, name)
    assert (passage.title, passage.section) == (title, heading if title != heading else "")


LIQUID = """See the [list of tools]({% page "/tools/#list" %}) and [the rules][rules], or [ask]({{ site.url }}/ask).

{% comment %}
TODO: say more
{% endcomment %}
Write to {% channel "help-desk" %}{% comment %}or not{% endcomment %}. The {{ site.team_name }} answers.
{{Front}} stays.

{% image "_img/mill.png" "a mill" %}

- {% if page.old %}Old{% endif %} `{% raw %}{% page "/x" %}{% endraw %}` makes a link.

{% for mill in site.mills %}
{{ mill["name"] }} turns.
{% endfor %}

{% highlight sh %}
mill --start
{% endhighlight %}

[rules]: {% link process/rules.md %}
"""


def test_tags_of_liquid_in_markdown_leave_what_they_say(tmp_path: Path) -> None:
    text = LIQUID
    assert blocks(tmp_path, "a.md", text) == [
        "See the list of tools and the rules, or ask.",
        "Write to help-desk. The [team name] answers. {{Front}} stays.",
        '- Old {% page "/x" %} makes a link.',
        "    mill --start",
    ]


def test_what_kramdown_fills_in_is_left_out_and_markdown_in_elements_is_read(tmp_path: Path) -> None:
    element = '<div class="centre" markdown="1">\n## Grain\nA **mill** grinds.\n</div>'
    text = f"# Mills\n\n- TOC\n{{:toc}}\n\n{element}\n\nEnd of it.\n"
    assert blocks(tmp_path, "a.md", text) == ["A mill grinds.", "End of it."]


def test_boxes_of_mdbook_are_text(tmp_path: Path) -> None:
    text = '```admonish info\nA `mill` stops.\n```\n\n```admonish warning "Hot"\nDo not touch.\n```\n'
    assert blocks(tmp_path, "a.md", text) == ["Info: A mill stops.", "Hot: Do not touch."]


def test_endless_tags_of_liquid_are_read_at_once(tmp_path: Path) -> None:
    text = "{% comment %}" * 2_000 + "{% raw %}" * 2_000 + "{% x '" * 2_000 + "text"
    assert "text" in blocks(tmp_path, "a.md", text)[-1]


QUESTIONS = [
    "Code",
    "Name of the mill",
    "1.1: Is the mill driven by the water of a river or of a lake, or by the wind, or by steam?",
    "1.2: Has the mill been repaired by its owners or by the town at any time in the last ten years?",
    "Sum",
    "Sum of all",
    "Rank",
]


def test_questions_above_short_answers_name_columns_and_rows_say_their_beginnings() -> None:
    rows = [QUESTIONS, *([f"M{n:03}", f"Mill number {n}", "Yes", "No", "4", "5", str(n)] for n in range(10, 18))]
    result = [block.text for block in grid_rows(rows)]
    assert result[0] == f"Columns | {' | '.join(QUESTIONS)}"
    assert result[1] == (
        "Code: M010 | Name of the mill: Mill number 10 | 1.1: Is the mill driven by the…: Yes | "
        "1.2: Has the mill been repaired…: No | Sum: 4 | Sum of all: 5 | Rank: 10"
    )


def test_each_part_of_a_long_row_begins_with_what_it_is_about(tmp_path: Path) -> None:
    story = " ".join(f"In year {n} the wheel turned and the miller was glad." for n in range(30))
    rows = "".join(f"{5 - n % 3},M{n},Mill {n},{story},{story} {n}\n" for n in range(4))
    text = f"Stars,Code,Name,Story,Other story\n{rows}"
    for passage in read(tmp_path, "mills.csv", text):
        parts = passage.text.split("\n\n")
        assert all(part.startswith(("Stars: ", "Code: M")) and "Name: Mill" in part for part in parts)


def test_the_first_cells_of_a_group_stand_in_each_of_its_rows(tmp_path: Path) -> None:
    rows = "Open,Lion,Ann,High St\n,,Ben,\n,,Cid,\n,Lamb,Dan,Low St\n,,Eve,\nShut,Lynx,Fay,Oak St\n,,Gil,\n"
    text = f"State,Shop,Who,Address\n{rows}"
    assert blocks(tmp_path, "shops.csv", text) == [
        "State: Open | Shop: Lion | Who: Ann | Address: High St",
        "State: Open | Shop: Lion | Who: Ben",
        "State: Open | Shop: Lion | Who: Cid",
        "State: Open | Shop: Lamb | Who: Dan | Address: Low St",
        "State: Open | Shop: Lamb | Who: Eve",
        "State: Shut | Shop: Lynx | Who: Fay | Address: Oak St",
        "State: Shut | Shop: Lynx | Who: Gil",
    ]


def test_an_empty_cell_that_says_that_there_is_nothing_stays_empty(tmp_path: Path) -> None:
    rows = "Lee,Leonard,Bath\n,Ben,York\n,Cid,Hull\nDanny,Daniel,Bath\n,Eve,York\nFay,Fayette,Ely\n,Gil,York\n"
    text = f"Called,Name,Town\n{rows}"
    assert blocks(tmp_path, "names.csv", text)[1] == "Name: Ben | Town: York"


@pytest.mark.parametrize("title", ["Title", "Untitled", "[Project Title]", "Document1", "Microsoft Word - mill.doc"])
def test_a_title_that_says_nothing_gives_way_to_the_name_of_the_file(tmp_path: Path, title: str) -> None:
    (passage,) = read(tmp_path, "old mill.md", f"# {title}\n\nIt turns.\n")
    assert passage.title == "old mill"
    (passage,) = read(tmp_path, "old mill.html", f"<title>{title}</title><p>It turns.</p>")
    assert passage.title == "old mill"


def test_a_list_of_headings_below_a_text_has_no_title(tmp_path: Path) -> None:
    text = (
        f"News of May\n\nIn this letter:\n## Mills\n## Wells\n\n## Mills\n\n{LONG}\n\n## Wells\n\n{LONG} All of it.\n"
    )
    assert {passage.title for passage in read(tmp_path, "letter.md", text)} == {"letter"}


def test_a_label_at_the_end_of_a_line_and_its_text_are_a_definition(tmp_path: Path) -> None:
    text = dedent(r"""
        **Falling order**\
        Show the mill that has the largest stone first. (It is the old order.)

        - **Plain**\
          Shows all of the mills in the order of their names.

        Ann Miller\
        12 High Street

        Home: https://mill.example <br>
        Code: https://code.example <br>
        Skills: C++

        **Q.** How many stones are there?

        **A.** There are two.
        """)
    assert blocks(tmp_path, "mills.md", text) == [
        "Falling order: Show the mill that has the largest stone first. (It is the old order.)",
        "- Plain: Shows all of the mills in the order of their names.",
        "Ann Miller 12 High Street",
        "Home: https://mill.example",
        "Code: https://code.example",
        "Skills: C++",
        "Q. How many stones are there?",
        "A. There are two.",
    ]


def test_a_row_without_a_name_goes_on_with_that_of_the_row_above(tmp_path: Path) -> None:
    rows = "| Wheel | turns | of oak |\n| | | of iron |\n| Stone | grinds | of lava |\n"
    text = f"| Part | Use | Example |\n|---|---|---|\n{rows}"
    assert blocks(tmp_path, "mill.md", text) == [
        "Part: Wheel | Use: turns | Example: of oak",
        "Part: Wheel | Example: of iron",
        "Part: Stone | Use: grinds | Example: of lava",
    ]
