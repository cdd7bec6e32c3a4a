"""LaTeX: papers, parts of them, and files of commands that are called so, too."""

from pathlib import Path

import pytest

from rag.base.errors import FormatError
from rag.documents import Document, load_document
from rag.documents.corpus import Corpus


def load(tmp_path: Path, text: str, name: str = "mill.tex") -> Document:
    (tmp_path / name).write_text(text)
    return load_document(tmp_path / name, name)


def blocks(document: Document) -> list[str]:
    return [block for passage in document.passages for block in passage.text.split("\n\n")]


PAPER = r"""\documentclass[a4paper]{article}
\usepackage{hyperref} % links
\newcommand{\sys}{\textsc{Mill}Works\xspace}
\newcommand{\R}{\mathbb{R}}
\newcommand{\cmd}[1]{\texttt{#1}}
\newtheorem{thm}{Theorem}[section]
\title[Short]{The Old Mill\thanks{Grant 5} \\ of Arlen}
\author{Ed Moss\\Univ. of Arlen \and Nora Finch}
\date{\today}
\begin{document}
\maketitle
\begin{abstract}
We study ``\sys'' with \cmd{ls -l}.
\end{abstract}
\section{Wheels \& more}\label{sec:a}
\sys{} is old---very old, see Section~\ref{sec:a} and \citep[p.~3]{a,b}\footnote{A note.}. % a comment
Nearly 100\% of
% a line of its own
the wheels turn.
\subsection*{Tables}
\begin{table}[htb]
\centering
\begin{tabular}{|l|c|r|}
\hline
Name & \multicolumn{2}{c|}{Size} \\ \hline
a & 1 & 2\\[2pt]
b & 3 & 4\\ \hline
\end{tabular}
\caption{Sizes of mills\label{tab:x}}
\end{table}
\begin{lstlisting}[language=C,caption={The code}]
int x = 1; % 5
  \run{}
\end{lstlisting}
\begin{thm}[Moss] Mills \textbf{turn}.
\end{thm}
\begin{figure}\includegraphics[width=3cm]{x.png}\caption{A mill.}\end{figure}
\begin{tikzpicture}\draw (0,0) -- (1,1);\end{tikzpicture}
\input{chapter}
\begin{thebibliography}{9}
\bibitem{a} Moss, E. \emph{Mills}. 1990.
\end{thebibliography}
\end{document}
This is not shown.
"""


def test_a_paper(tmp_path: Path) -> None:
    found = load(tmp_path, PAPER)
    assert found.title == "The Old Mill of Arlen"
    assert found.dropped == {"footnote": 1, "included file": 1, "drawing": 1}
    assert {passage.section for passage in found.passages} == {"", "Wheels & more, Tables", "References"}
    assert blocks(found) == [
        "Author: Ed Moss, Univ. of Arlen, Nora Finch",
        "Abstract: We study “MillWorks” with ls -l.",
        "Wheels & more: MillWorks is old—very old, see Section [sec:a] and [a, b]. Nearly 100% of the wheels turn.",
        "Sizes of mills",
        "Name: a | Size: 1 | Size: 2",
        "Name: b | Size: 3 | Size: 4",
        "The code",
        "    int x = 1; % 5\n      \\run{}",
        "Theorem (Moss): Mills turn.",
        "A mill.",
        "- [a] Moss, E. Mills. 1990.",
    ]


LINES = [
    (r"caf\'{e}, na\"\i ve, Stra\ss e, \v{C}apek, \aa ngstr\"om", ["café, naïve, Straße, Čapek, ångström"]),
    ("``a'' `b' it's 1--2 --help a---b x~y", ["“a” ‘b’ it's 1–2 --help a—b x y"]),
    (r"\href{http://a.b/~x%20y}{the site} \url{http://a.b/%20~x_y--z}", ["the site http://a.b/%20~x_y--z"]),
    (r"$x^{2} \leq 3$, \(\alpha_{i}\) and $\frac{a}{b}$", [r"x^2 ≤ 3, α_i and $\frac{a}{b}$"]),
    (r"It costs \$5 \verb|a_b%c| \textbackslash x {\bf bold}", ["It costs $5 a_b%c \\x bold"]),
    (r"So \[ E = mc^2 \] and \begin{align} a &= b \label{e} \\ c &= d \end{align}.", ["So E = mc^2 and a = b c = d."]),
    (r"We use \foo{} and \noindent\bar[x]{words}{here}", ["We use foo and words here"]),
    (r"a \iffalse b \ifx c \fi d \else e \fi f", ["a e f"]),
    (r"\begin{quote} a \end{quote} b \vspace{1cm} c \hskip 2pt d", ["a", "b c d"]),
    ("a\n\nb\\par c\\\\d", ["a", "b", "c d"]),
    (r"\begin{minipage}[t]{0.5\textwidth}a\end{minipage}", ["a"]),
    (r"\enquote{a} \begin{comment} b \end{comment} \index{c} \todo[inline]{d} e", ["“a” e"]),
    (r"\def\mill{Old Mill} \let\a\b \def\x#1{no} the \mill\ of", ["the Old Mill of"]),
    (
        r"\begin{itemize} \item a \begin{enumerate} \item b \item c \end{enumerate} \item[Foo] d \end{itemize} e",
        ["- a", "  1. b", "  2. c", "Foo: d", "e"],
    ),
    (
        r"\begin{description} \item [--help] shows it \item[A] \item[B] both \end{description}",
        ["--help: shows it", "A, B: both"],
    ),
    (
        r"\begin{longtable}{ll} \caption{Sizes} \\ Name & Size \\ \endfirsthead Name & Size \\ \endhead a & 1 \\ "
        r"b & 2 \\ \end{longtable}",
        ["Sizes", "Name: a | Size: 1", "Name: b | Size: 2"],
    ),
    (r"\begin{tabular}{ll} a & \begin{tabular}{c} b \\ c \end{tabular} \\ d & e \end{tabular}", ["a | b c", "d | e"]),
    (
        r"\begin{tabular}{ll} \hline \textbf{A} & \textbf{B} \\ \hline c & d \\ \hline e & f \\ \hline \end{tabular}",
        ["A: c | B: d", "A: e | B: f"],
    ),
    (r"\begin{minted}{python}" + "\nx = 1\n\n\ty\n" + r"\end{minted}", ["    x = 1\n    \n            y"]),
]


@pytest.mark.parametrize(("text", "expected"), LINES)
def test_lines(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert blocks(load(tmp_path, f"\\begin{{document}}\n{text}\n\\end{{document}}")) == expected


def test_a_part_of_a_book(tmp_path: Path) -> None:
    found = load(
        tmp_path, "\\chapter{Mills}\n\\section{Wheels}\nThey turn.\n\\paragraph{Oak} They are of oak.\n", "a.ltx"
    )
    assert [passage.section for passage in found.passages] == ["Mills, Wheels"]
    assert blocks(found) == ["They turn.", "Oak: They are of oak."]


def test_prose_without_commands(tmp_path: Path) -> None:
    text = "The mill of the valley is old and it turns all day.\n" * 3
    assert blocks(load(tmp_path, f"% a part\n{text}")) == [text.strip().replace("\n", " ")]


PROGRAMS = [
    "\\ProvidesPackage{mill}\n\\newcommand{\\mill}[1]{The mill is #1 and old.}\n",
    "\\def\\a#1{b}\n\\let\\c\\d\n\\newif\\ifmill\n\\section{x}\n",
    "\\input texinfo\n@node Top\nThe mill is old and it turns all day.\n",
    "Mills turn in the wind and they are of oak, as we know.\n\\bye\n",
    "",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_files_of_commands_are_counted_and_not_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "mill.tex").write_text(text)
    with pytest.raises(FormatError, match=r"mill\.tex: not a LaTeX document"):
        load_document(tmp_path / "mill.tex", "mill.tex")
    (tmp_path / "a.md").write_text("The mill is old.\n")
    corpus = Corpus([tmp_path])
    assert [passage.text for _, passage in corpus.read()] == ["The mill is old."]
    assert corpus.report.bad == 0
