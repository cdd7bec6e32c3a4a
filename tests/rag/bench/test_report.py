"""Reports of run folders: the schema, the same bytes, and texts of others that stay texts."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from autoais.base.errors import UserError
from rag.bench.items import read_items
from rag.bench.report import report_schema, report_table, write_report
from rag.bench.report.figures import risk_coverage
from rag.bench.report.page import pack_json
from tests.conftest import Command, one_line_error, present
from tests.rag.bench.folders import HOSTILE, edit, make_run

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("towns") / "run", human=True)


@pytest.fixture(scope="module")
def written(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    assert write_report(run_folder, output_folder=out).licences == ("CC BY-SA 4.0",)
    return out


@pytest.fixture(scope="module")
def html(written: Path) -> LexborHTMLParser:
    return LexborHTMLParser((written / "report.html").read_text("utf-8"))


def unpacked(text: str) -> Any:  # noqa: ANN401  (JSON)
    return json.loads(zlib.decompress(base64.b64decode(text)))


def data_of(html: LexborHTMLParser) -> dict[str, Any]:
    node = present(html.css_first("script#data"))
    found: dict[str, Any] = unpacked(node.text())
    return found


# --- what is written -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_a_reader_learns_what_the_numbers_are_and_what_they_are_of(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", hostile=False)
    manifest = json.loads((run / "run.json").read_text("utf-8"))
    files = {"questions": {"file": "q.jsonl", "sha256": "a" * 64}, "corpus": {"": {"path": "c.jsonl", "sha256": 7}}}
    edit(run / "run.json", data=files, benchmark=manifest["benchmark"] | {"right": "em"})
    page = write_report(run, output_folder=tmp_path / "out").page
    (told,) = json.loads((tmp_path / "out/report.json").read_text("utf-8"))["provenance"]["runs"]
    assert (told["right"], told["data"], told["versions"]) == ("em", {"q.jsonl": "a" * 64}, {"python": "3.11"})
    node = present(LexborHTMLParser(page.read_text("utf-8")).body)
    text = node.text()
    assert "What the metrics are" in text
    assert "(Bohnet et al. 2022)" in text
    assert "an answer is right by the rule em" in text
    assert "SHA-256 of the benchmark's files: q.jsonl aaaaaaaaaaaa" in text
    assert "made with: python 3.11" in text


def test_the_report_fits_its_schema(written: Path) -> None:
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    report = json.loads((written / "report.json").read_text("utf-8"))
    jsonschema.validate(report, schema)
    changes: list[dict[str, object]] = [{"report_version": 2}, {"groups": []}, {"extra": 1}]
    for change in changes:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(report | change, schema)
    (group,) = report["groups"]
    for figure in group["figures"]:
        svg, png = (written / file for file in figure["files"])
        assert svg.read_text("utf-8").startswith("<?xml")
        assert png.read_bytes().startswith(b"\x89PNG")
        assert len(figure["text"]) > 20
    told = {Path(figure["files"][0]).stem: figure["text"] for figure in group["figures"]}
    assert re.match(r"reader: \d+\.\d % \[\d+\.\d, \d+\.\d\] for \S+ seconds", told["pareto-seconds"])
    names = [Path(figure["files"][0]).stem for figure in group["figures"]]
    assert names == [
        "ways", "ranks", "quality", "reliability", "risk", "pareto-seconds", "pareto-tokens", "latency", "citations",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(run_folder: Path, written: Path, tmp_path: Path) -> None:
    write_report(run_folder, output_folder=tmp_path)
    first = {path.relative_to(written): path.read_bytes() for path in written.rglob("*") if path.is_file()}
    second = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert first == second
    assert len(first) == 2 + 2 * 9


def test_every_question_is_in_the_page(html: LexborHTMLParser, run_folder: Path) -> None:
    data = data_of(html)
    (group,) = data["groups"]
    items = read_items(run_folder / "extractive" / "items.jsonl")
    assert [one["id"] for one in group["questions"]] == [item.id for item in items]
    for question, item in zip(group["questions"], items, strict=True):
        answer = question["answers"][1]
        assert question["text"] == item.question
        assert answer["way"] == item.way
        assert [one["text"] for one in answer["sentences"]] == [one.text for one in item.sentences]
        for told, sentence in zip(answer["sentences"], item.sentences, strict=True):
            for (place, start, end, _), cite in zip(told["cites"], sentence.citations, strict=True):
                passage = data["passages"][place]
                assert passage["id"] == cite.passage
                assert passage["text"][start:end] == item.passages[cite.passage].text[cite.start : cite.end]


def test_passages_are_shared_between_systems(html: LexborHTMLParser) -> None:
    keys = [(one["id"], one["text"]) for one in data_of(html)["passages"]]
    assert len(keys) == len(set(keys))


def test_the_figures_have_texts_and_the_tables_have_headings(html: LexborHTMLParser) -> None:
    assert all(len(image.attributes["alt"] or "") > 20 for image in html.css("img"))
    assert len(html.css("img")) == 9
    assert all(table.css("th[scope=col]") for table in html.css("table.numbers"))
    (metrics,) = html.css("[aria-label='Table of the metrics'] table")
    assert all(cell.text() for cell in metrics.css("tbody td:last-child"))


# --- texts of others -------------------------------------------------------------------------------------------


def test_no_text_of_the_run_becomes_markup(html: LexborHTMLParser, written: Path) -> None:
    scripts = html.css("script")
    assert [(one.attributes.get("type"), one.attributes.get("id")) for one in scripts] == [
        ("text/plain", "data"), ("module", None),
    ]  # fmt: skip
    for node in html.css("*"):
        assert not [name for name in node.attributes if name.startswith("on")], node.html
        assert not node.attributes.get("style")
    assert all((one.attributes["src"] or "").startswith("data:image/svg+xml;base64,") for one in html.css("[src]"))
    assert not html.css("link, iframe, object, embed, base, form, a[href^=javascript]")
    source = (written / "report.html").read_text("utf-8")
    assert "<script>window.broken" not in source
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", source)


def test_the_policy_allows_the_scripts_and_styles_of_the_page_and_nothing_else(html: LexborHTMLParser) -> None:
    meta = present(html.css_first("meta[http-equiv=Content-Security-Policy]"))
    policy = dict(part.strip().split(" ", 1) for part in (meta.attributes["content"] or "").split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["img-src"] == "data:"
    for kind, place in (("script-src", "script[type=module]"), ("style-src", "style")):
        node = present(html.css_first(place))
        digest = base64.b64encode(hashlib.sha256(node.text().encode()).digest()).decode()
        assert policy[kind] == f"'sha256-{digest}'"


def test_the_script_never_turns_data_into_markup() -> None:
    script = (Path(__file__).parents[3] / "rag/bench/report/page.js").read_text("utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"):
        assert word not in script


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_packed_json_cannot_be_left_and_reads_back(text: str) -> None:
    found = pack_json({"text": text})
    assert re.fullmatch("[A-Za-z0-9+/]+=*", found)
    assert unpacked(found) == {"text": text}


def test_a_hostile_name_of_system_or_benchmark_stays_text(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "<b>$x_1&\u202e\x1b[1m", systems=["reader"], benchmark="</title><script>window.broken = 5;"
    )
    other = make_run(tmp_path / "2", systems=["reader"], benchmark="</title><script>window.broken = 5;")
    page = LexborHTMLParser(write_report(run, other, output_folder=tmp_path / "out").page.read_text("utf-8"))
    assert len(page.css("script")) == 2
    assert present(page.css_first("h1")).text() == "</title><script>window.broken = 5; 1"
    assert "<b>$x_1&\ufffd\ufffd[1m/reader" in {cell.text() for cell in page.css("table.board tbody bdi")}
    assert r"\$x\_1\&" in report_table(run, other, kind="latex")
    assert "&lt;b&gt;" in report_table(run, other)


# --- the leaderboard -------------------------------------------------------------------------------------------


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """A run of two systems, and one of two files of answers, over the questions of `open-nq-pool`."""
    make = partial(make_run, n=80, benchmark="open-nq-pool", hostile=False)
    ours = make(tmp_path / "ours", systems=["reader", "extractive"])
    theirs = make(tmp_path / "theirs", systems=["gpt", "other"])
    for metrics in (*ours.glob("*/metrics.json"), *theirs.glob("*/metrics.json")):
        edit(metrics, closed_pool=True)
    for metrics in theirs.glob("*/metrics.json"):
        edit(metrics, predictions={"missing": {"count": 0, "examples": []}})
    return ours, theirs


def board_of(page: Path, number: int = 0) -> LexborHTMLParser:
    return LexborHTMLParser(str(LexborHTMLParser(page.read_text("utf-8")).css("table.board")[number].html))


@pytest.mark.usefixtures("undrawn")
def test_a_leaderboard_ranks_systems_and_answers_of_others(two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    page = write_report(*two_runs, output_folder=tmp_path / "out").page
    (group,) = json.loads(page.with_name("report.json").read_text("utf-8"))["groups"]
    jsonschema.validate(json.loads(page.with_name("report.json").read_text("utf-8")), report_schema())
    shares = {system["label"]: system["ways"]["right_attributed"]["share"] for system in group["systems"]}
    board = group["leaderboard"]
    assert board["metric"] == "right_attributed"
    labels = [row["label"] for row in board["rows"]]
    assert sorted(labels) == ["extractive", "gpt", "other", "reader"]
    assert [shares[label] for label in labels] == sorted(shares.values(), reverse=True)
    assert {row["label"]: row["kind"] for row in board["rows"]} == {
        "reader": "system", "extractive": "system", "gpt": "predictions", "other": "predictions",
    }  # fmt: skip
    letters = group["comparison"]["metrics"]["right_attributed"]["letters"]
    assert board["like_first"] == [label for label in labels[1:] if set(letters[label]) & set(letters[labels[0]])]
    table = board_of(page)
    rows = [row.text() for row in table.css("tbody tr")]
    for row, label in zip(rows, labels, strict=True):
        assert row.startswith(label)
        assert f"{100 * shares[label]:.1f} %{letters[label]}" in row
        assert ("answers of others" if label in ("gpt", "other") else "run here") in row
    assert present(table.css_first("caption")).text() == group["name"]
    assert "80 questions, judge lexical" in group["name"]
    lead = present(LexborHTMLParser(page.read_text("utf-8")).css_first(".lead")).text()
    assert lead.startswith(f"{labels[0]} is first with {100 * shares[labels[0]]:.1f} % right and attributed.")
    counts = [str(row["undecided"]) for row in board["rows"]]
    assert [row.css("td")[-1].text() for row in table.css("tbody tr")] == counts
    assert counts == [str(_undecided_of(group, label)) for label in labels]


def _undecided_of(group: dict[str, Any], label: str) -> int:
    (system,) = (system for system in group["systems"] if system["label"] == label)
    return int(system["ways"]["undecided"]["count"])


@pytest.mark.usefixtures("undrawn")
def test_published_figures_stand_apart_from_the_ranked_systems(two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    page = write_report(*two_runs, output_folder=tmp_path / "out").page
    html = LexborHTMLParser(page.read_text("utf-8"))
    published = present(html.css_first("details.published"))
    assert "Published, another corpus" in present(published.css_first("summary")).text()
    assert "BM25, k1 = 0.9, b = 0.4" in published.text()
    assert "BM25, k1" not in board_of(page).text()
    for source in published.css(".source"):
        assert (present(source.css_first("a")).attributes["href"] or "").startswith("https://")
        assert "corpus: " in source.text()
    assert "Published" not in report_table(*two_runs)
    towns = make_run(tmp_path / "towns", systems=["reader"], n=8, hostile=False)
    assert not LexborHTMLParser(write_report(towns).page.read_text("utf-8")).css(".published")


@pytest.mark.usefixtures("undrawn")
def test_a_leaderboard_is_sorted_by_any_metric(two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    for run in two_runs:
        for number, path in enumerate(sorted(run.glob("*/metrics.json"))):
            metrics = json.loads(path.read_text("utf-8"))["metrics"]
            refused = {"value": 0.1 + number / 10 + (run.name == "ours") / 100, "n": 70, "undecided": 2}
            edit(path, metrics=metrics | {"answerable_refused": refused, "em": {"value": None, "reason": "none"}})
    page = write_report(*two_runs, output_folder=tmp_path / "out", by="answerable_refused").page
    rows = board_of(page).css("tbody tr")
    assert [present(row.css_first("bdi")).text() for row in rows] == ["gpt", "extractive", "other", "reader"]  # least
    assert rows[0].css("td")[-2].text() == "70"
    assert rows[0].css("td")[-1].text() == "2"
    table = report_table(*two_runs, by="answerable_refused").splitlines()
    assert [line.split(" | ")[0] for line in table[4:]] == [
        "| gpt (answers of others)", "| extractive", "| other (answers of others)", "| reader",
    ]  # fmt: skip
    assert "Sorted by answerable refused." in table[0]
    for unknown in ("em", "speed"):
        with pytest.raises(UserError, match=f"no system has a value of '{unknown}' to sort by; there are: right_attr"):
            write_report(*two_runs, output_folder=tmp_path / "out", by=unknown)


@pytest.mark.usefixtures("undrawn")
def test_without_a_rule_for_right_answers_autoais_ranks(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=16, hostile=False)
    for label in ("reader", "extractive"):
        items = [json.loads(line) for line in (run / label / "items.jsonl").read_text("utf-8").splitlines()]
        lines = [json.dumps(item | {"right": None}) for item in items]
        (run / label / "items.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (group,) = json.loads(write_report(run).page.with_name("report.json").read_text("utf-8"))["groups"]
    assert group["leaderboard"]["metric"] == "autoais"


# --- options ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_passages_can_be_left_out(run_folder: Path, tmp_path: Path) -> None:
    path = write_report(run_folder, output_folder=tmp_path, passages=False).page
    data = data_of(LexborHTMLParser(path.read_text("utf-8")))
    assert data["passage_texts"] is False
    assert not any("text" in one for one in data["passages"])
    assert "has a bridge" not in path.read_text("utf-8")
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["passage_texts"] is False


@pytest.mark.usefixtures("undrawn")
def test_costs_and_what_did_not_fit_of_a_file_of_answers_are_shown(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", systems=["reader", "given"], hostile=False)
    missing = {"count": 39, "examples": ["a secret question"]}
    edit(
        run / "given" / "metrics.json",
        latency=None,
        tokens={"read": 900, "written": 30, "answers": 1, "per_answer": {"read": 1234.5, "written": 30.0}},
        money={"total": 0.5, "per_answer": 0.0123456},
        predictions={"format": "answers", "answers": 1, "missing": missing, "unknown": {"count": 3, "examples": []}},
    )
    written = write_report(run).page
    assert "a secret question" not in written.with_name("report.json").read_text("utf-8")
    page = LexborHTMLParser(written.read_text("utf-8"))
    rows = {row.css("th")[0].text(): [cell.text() for cell in row.css("td")] for row in page.css("tbody tr")}
    assert rows["money, an answer"] == ["–", "0.0123456"]
    assert rows["tokens read, an answer"][1] == "1,234"
    assert rows["seconds a question, median"][0] != rows["seconds a question, median"][1] == "–"
    assert "given: 3 questions outside the benchmark, discarded; 39 questions without an answer" in page.text()


@pytest.mark.usefixtures("undrawn")
def test_questions_without_a_known_gold_passage_are_counted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=12, systems=["reader"], hostile=False)
    edit(run / "reader" / "items.jsonl", gold=[], first_gold=None)
    page = LexborHTMLParser(write_report(run).page.read_text("utf-8"))
    assert "1 answerable question without a known gold passage in this corpus, counted like the others." in page.text()


@pytest.mark.usefixtures("undrawn")
def test_a_single_system_has_no_letters(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=12, systems=["reader"], hostile=False)
    page = LexborHTMLParser(write_report(run).page.read_text("utf-8"))
    assert write_report(run).page == run / "report" / "report.html"
    assert not page.css(".numbers sup")
    assert "sup" not in report_table(run)


def test_tables(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=40, hostile=False)
    markdown, latex = report_table(run), report_table(run, kind="latex")
    assert markdown == report_table(run)
    note, _, head, rule, *rows = markdown.splitlines()
    assert note.startswith("towns 1, 40 questions, judge lexical@1/full.v1. Per cent, with 95 % intervals.")
    assert head.startswith("| system | right and attributed | exact match | F1 |")
    assert rule.count("---:") == head.count("|") - 2
    assert [row.split(" | ")[0] for row in rows] == ["| reader", "| extractive"]
    em = json.loads((run / "reader/metrics.json").read_text("utf-8"))["metrics"]["em"]
    low, high = (round(100 * end) for end in em["interval95"])
    value = f"{100 * em['value']:.1f} ({low} to {high})"
    assert rows[0].split(" | ")[2].startswith(f"{value} <sup>a")
    assert latex.count("\\\\\n") == 3
    assert f"{value}$^{{\\mathrm{{a" in latex
    with pytest.raises(UserError, match="md, latex"):
        report_table(run, kind="csv")


@pytest.mark.usefixtures("undrawn")
def test_runs_of_two_benchmarks_are_refused_or_apart(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, n=12, benchmark=name, hostile=False, systems=["reader"]) for name in ("a", "b")]
    with pytest.raises(UserError, match="--out"):
        write_report(*runs)
    with pytest.raises(UserError, match="--allow-different"):
        write_report(*runs, output_folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    page = LexborHTMLParser(
        write_report(*runs, output_folder=tmp_path / "out", allow_different=True).page.read_text("utf-8")
    )
    assert len(page.css("option[value='1']")) == 1
    assert [len(one["systems"]) for one in data_of(page)["groups"]] == [1, 1]
    report = json.loads((tmp_path / "out/report.json").read_text("utf-8"))
    assert (tmp_path / "out" / report["groups"][1]["figures"][0]["files"][0]).is_file()


def test_risk_against_coverage(run_folder: Path) -> None:
    items = read_items(run_folder / "reader" / "items.jsonl")
    curve = risk_coverage(items)
    answered = [item for item in items if not (item.abstained or item.missing)]
    assert curve[-1][0] == pytest.approx(len(answered) / len(items), abs=1e-6)
    assert curve[-1][1] == pytest.approx(sum(not item.right for item in answered) / len(answered), abs=1e-6)
    assert [coverage for coverage, _ in curve] == sorted(coverage for coverage, _ in curve)


# --- commands --------------------------------------------------------------------------------------------------


@pytest.fixture
def bench(rag: Command) -> Callable[..., Any]:
    return partial(rag, "bench")


@pytest.mark.usefixtures("undrawn")
def test_the_command_warns_of_passages_of_others(bench: Callable[..., Any], run_folder: Path, tmp_path: Path) -> None:
    result = bench("report", run_folder, "--out", tmp_path)
    assert result.returncode == 0
    warning, page = result.stderr.splitlines()
    assert warning.startswith("warning: the page holds passages of others (licence: CC BY-SA 4.0)")
    assert page == str(tmp_path / "report.html")


@pytest.mark.parametrize(
    ("end", "shown"),
    [(0.0, "0"), (0.0002, "0.1"), (0.003, "0.3"), (0.006, "1"), (0.5, "50"), (0.994, "99"), (0.997, "99.7"),
     (0.9998, "99.9"), (1.0, "100")],
)  # fmt: skip
def test_an_end_of_an_interval_is_0_or_100_only_if_it_is_just_that(tmp_path: Path, end: float, shown: str) -> None:
    run = make_run(tmp_path / "run", n=6, hostile=False, systems=["reader"])
    metrics = json.loads((run / "reader/metrics.json").read_text("utf-8"))["metrics"]
    metrics["em"] |= {"interval95": [end, end]}
    edit(run / "reader/metrics.json", metrics=metrics)
    assert f"({shown} to {shown})" in report_table(run)


def test_the_command_prints_tables(bench: Callable[..., Any], run_folder: Path) -> None:
    for kind in ("md", "latex"):
        assert bench("report", run_folder, "--format", kind).stdout == report_table(run_folder, kind=kind)
    one_line_error(bench("report", run_folder, "--format", "pdf"), "pdf", "md, latex")
    one_line_error(bench("report", run_folder / "reader"), "run.json", "no such file")


def test_the_command_compares(bench: Callable[..., Any], run_folder: Path, tmp_path: Path) -> None:
    result = bench("compare", run_folder, "--out", tmp_path / "compare.json")
    assert result.returncode == 0, result.stderr
    assert "right_attributed" in result.stdout
    assert "reader - extractive" in result.stdout
    saved = json.loads((tmp_path / "compare.json").read_text("utf-8"))
    assert json.loads(bench("compare", run_folder, "--json").stdout) == saved
    assert "answers" in saved["groups"][0]["differences"][0]
    other = make_run(tmp_path / "other", judge="another")
    one_line_error(bench("compare", run_folder, other), "another", "--allow-different")
