"""Retrievers, fusion and reranking."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.base.errors import IndexingError, QuestionError, RagError
from rag.base.resources import names
from rag.base.types import Hit, Passage, best_first
from rag.index.analysis import is_lookup, name_pattern
from rag.index.open import open_index
from rag.index.parts import adding, parse_size
from rag.index.retriever_config import RetrieverConfig, read_config, walk_configs
from rag.retrieval import Retriever, kind_of, open_retriever
from rag.retrieval.exact import Exact
from rag.retrieval.fusion import Fusion
from rag.retrieval.newest import find_date, lower_older
from rag.retrieval.rerank import Rerank
from rag.testing import check_retriever
from tests.conftest import Command, one_line_error, write_corpus


class Listed:
    """Gives the passages it was made with, whatever is asked."""

    def __init__(self, name: str, *scored: tuple[str, float]) -> None:
        self.name = name
        self._hits = [Hit(Passage(identifier, "", identifier), score) for identifier, score in scored]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if "" in queries:
            raise QuestionError("the question is empty")
        return [self._hits[:k] for _ in queries]


def listed(retriever: Retriever, k: int = 10) -> list[tuple[str, float]]:
    return [(hit.passage.id, round(hit.score, 6)) for hit in retriever.search(["q"], k)[0]]


A = Listed("a", ("x", 9.0), ("y", 5.0), ("z", 1.0))
B = Listed("b", ("z", 0.4), ("w", 0.2))


def test_reciprocal_rank_fusion_as_in_the_paper() -> None:
    fused = listed(Fusion([A, B], k=60))
    assert [identifier for identifier, _ in fused] == ["z", "x", "w", "y"]
    assert dict(fused) == {"z": 0.032266, "x": 0.016393, "w": 0.016129, "y": 0.016129}  # 1/63 + 1/61, 1/61, 1/62


def test_fusion_by_scores_scales_each_list_first() -> None:
    assert listed(Fusion([A, B], method="scores")) == [("x", 1.0), ("z", 1.0), ("y", 0.5), ("w", 0.0)]
    assert listed(Fusion([A, B], method="scores", weights=[1, 3]))[0] == ("z", 3.0)


def test_fusion_by_shares_of_the_highest_score() -> None:
    fused = listed(Fusion([A, B], method="max", weights=[1, 0.5]))
    assert fused == [("x", 1.0), ("z", 0.611111), ("y", 0.555556), ("w", 0.25)]
    below = Listed("c", ("x", -0.1), ("y", -0.2))
    assert listed(Fusion([below, B], method="max")) == [("z", 1.0), ("w", 0.5), ("x", 0.0), ("y", 0.0)]


@pytest.mark.parametrize(
    ("query", "lookup"),
    [
        ("What does max_depth do?", True),
        ("what is knsec3hash for?", True),
        ("Which value does pageCount have at first?", True),
        ("Which files does --exclude-from leave out?", True),
        ("How do I call std::sort on a list?", True),
        ("Which lines of /etc/hosts are read first?", True),
        ("Where does os.path.join look first?", True),
        ("Why is sha256 the default checksum?", True),
        ("What does open() return on a closed file?", True),
        ("How do I keep well-known names short?", False),
        ("Who wrote the first manual of the FLTK library?", False),
        ("Is a backup of yesterday enough?  Yes, or no.", False),
        ("what is it", False),
    ],
)
def test_a_lookup_asks_for_something_by_its_exact_name(query: str, lookup: bool) -> None:
    assert is_lookup(query) is lookup


@pytest.mark.parametrize(
    ("query", "found", "others"),
    [
        ("What is the default of max_depth?", "MAX_DEPTH is 3", "the_max_depth max_depths"),
        ("What is max_depth's default?", "(max_depth)", "max_depths"),
        ("How can I set “max_depth”?", "max_depth.", "max_depth.first"),
        ("what is a ruleset", "A ruleset has rules.", "rulesets"),
        ("what's a ruleset", "A Ruleset: rules.", "ruleset-file"),
        ("What does open() do?", "open(path)", "openly reopen"),
        ("What does --exclude do?", "--exclude FILE", "--exclude-from FILE"),
        ("What is -c for?", "use -c", "use -C"),
        ("What is os.path?", "os.path is a module", "os.path.join"),
    ],
)
def test_a_query_about_a_name_finds_the_whole_name(query: str, found: str, others: str) -> None:
    name = name_pattern(query)
    assert name is not None
    assert name.search(found)
    assert not name.search(others)


@pytest.mark.parametrize(
    "query",
    [
        "Is --all the same as --any?",
        "How do I set max_depth for the search of one folder?",
        "Who wrote the manual?",
        "what does the 2nd amendment say",
        "Who led the U.S. army?",
        "Can I arrive at 10am?",
        "Is it open 24/7?",
        "Does it take 2.5kg?",
    ],
)
def test_a_query_about_more_than_a_name_has_none(query: str) -> None:
    assert name_pattern(query) is None


def test_a_name_that_many_hits_have_puts_none_first() -> None:
    exact = Exact.of("How do I feed a dog in FurHack?")
    hits = [
        Hit(Passage(f"p{n}", "", "FurHack 3.6" if n % 2 else "Give the dog meat."), 1.0 - n / 100) for n in range(20)
    ]
    assert exact.first(hits, 2.0) == hits
    rare = [*hits[::2], hits[1]]
    assert exact.first(rare, 2.0)[0].passage.id == "p1"


def test_passages_with_the_very_name_come_first() -> None:
    class Told(Listed):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            texts = {"x": "bounce_size_limit and more", "y": "The limit is message_size_limit.", "z": "size"}
            titles = {"z": "max_depth"}
            return [[Hit(Passage(key, titles.get(key, ""), texts[key]), 3.0 - n) for n, key in enumerate(texts)]]

    def first(query: str, *, exact_first: bool = True) -> str:
        (hits,) = Fusion([Told("a"), Told("b")], exact_first=exact_first).search([query], 3)
        return hits[0].passage.id

    assert first("What is message_size_limit?") == "y"
    assert first("What is max_depth?") == "z"  # the name is in its headings
    assert first("What is message_size_limit?", exact_first=False) == "x"
    assert first("Which message has a size above the limit?") == "x"


def test_hits_with_the_text_of_an_earlier_one_can_be_left_out() -> None:
    class Twice(Listed):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            oak = "Oak is hard and " * 6
            texts = {"a": f"{oak} heavy.", "b": f"{oak}heavy.", "c": "Pine is soft.", "d": "Pine is soft."}
            return [[Hit(Passage(key, "", text), 3.0 - n) for n, (key, text) in enumerate(texts.items())]]

    every, distinct = (Fusion([Twice("a"), Twice("b")], distinct=chosen) for chosen in (False, True))
    assert [key for key, _ in listed(every)] == ["a", "b", "c", "d"]
    assert [key for key, _ in listed(distinct)] == ["a", "c", "d"]
    assert [hit.passage.id for hit in distinct.search(["q"], 2)[0]] == ["a", "c"]
    assert every.name != distinct.name


def test_lookups_have_weights_of_their_own() -> None:
    fusion = Fusion([A, B], method="max", weights=[1, 2], lookup_weights=[3, 2])
    assert fusion.name == "max@100(1|3*a,2*b)"
    assert Fusion([A, B], exact_first=True).name == "rrf60@100(a,b,names and definitions first)"
    (words,), (name,) = fusion.search(["how do tides turn the wheel"], 9), fusion.search(["wheel_speed"], 9)
    assert [hit.passage.id for hit in words] == ["z", "w", "x", "y"]
    assert [hit.passage.id for hit in name] == ["x", "z", "y", "w"]
    assert Fusion([A, B], weights=[1, 2]).search(["wheel_speed"], 9) == Fusion([A, B], weights=[1, 2]).search(["q"], 9)


def test_definitions_come_first_though_many_passages_have_the_name() -> None:
    class Many(Listed):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            texts = {f"{n:03}": "Gle is fast." for n in range(300)} | {"200": "Gle is a language."}
            return [[Hit(Passage(key, "", text), 300.0 - n) for n, (key, text) in enumerate(texts.items())][:k]]

    fusion = Fusion([Many("a"), Listed("b")], exact_first=True)
    assert fusion.search(["what is gle"], 2)[0][0].passage.id == "200"
    assert fusion.search(["is gle fast"], 2)[0][0].passage.id == "000"
    assert Fusion([Many("a"), Listed("b")]).search(["what is gle"], 2)[0][0].passage.id == "000"


def test_the_first_hits_of_each_retriever_are_among_the_first() -> None:
    words = Listed("words", *((f"w{n}", 20.0 - n) for n in range(10)))
    vectors = Listed("vectors", ("v0", 0.9), ("w9", 0.8), ("v1", 0.7))
    plain = Fusion([words, vectors], method="max", weights=[1, 0.2])
    fusion = Fusion([words, vectors], method="max", weights=[1, 0.2], places=2, among=6)
    assert [key for key, _ in listed(plain, 6)] == ["w0", "w1", "w2", "w3", "w4", "w5"]
    (hits,) = fusion.search(["q"], 100)
    assert [hit.passage.id for hit in hits[:6]] == ["w0", "w1", "w2", "v0", "w3", "w9"]
    assert sorted(hit.passage.id for hit in hits) == sorted(key for key, _ in listed(plain, 100))
    assert hits == best_first(hits)
    assert fusion.name == "max@100(words,0.2*vectors,2 of each in 6)"
    with pytest.raises(RagError, match="2 \\* places at most among, found 0, 4 and 6"):
        Fusion([words, vectors], places=4, among=6)


def test_the_first_hits_may_be_those_places_alone() -> None:
    # What both find comes first by rank, and has to make way.
    (hits,) = Fusion([Listed("a", *_ranked("xcd")), Listed("b", *_ranked("ycd"))], places=1, among=2).search(["q"], 9)
    assert "".join(hit.passage.id for hit in hits) == "xycd"


def _ranked(keys: str) -> list[tuple[str, float]]:
    return [(key, -float(rank)) for rank, key in enumerate(keys)]


@given(
    st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), unique=True, min_size=1), min_size=2, max_size=3),
    st.integers(0, 3),
    st.integers(0, 4),
)
def test_places_lose_no_hit_and_keep_the_order_of_scores(lists: list[list[str]], places: int, more: int) -> None:
    retrievers = [Listed(f"r{n}", *((x, -float(i)) for i, x in enumerate(keys))) for n, keys in enumerate(lists)]
    among = len(lists) * places + more
    (hits,) = Fusion(retrievers, places=places, among=among).search(["q"], 100)
    assert hits == best_first(hits)
    assert {hit.passage.id for hit in hits} == {key for keys in lists for key in keys}
    assert {key for keys in lists for key in keys[:places]} <= {hit.passage.id for hit in hits[:among]}


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("minutes/2025-03-14.md", (2025, 3, 14)),
        ("minutes_20250314", (2025, 3, 14)),
        ("minutes-march-2025.md", (2025, 3, 0)),
        ("Annual meeting, 14 March 2025", (2025, 3, 14)),
        ("Annual meeting of March 4th, 2025", (2025, 3, 4)),
        ("Prices 2023 and 2024", (2024, 0, 0)),
        ("Part 120255 of rule 1850", None),
        ("mayor 12", None),
        ("market-2024.md", (2024, 0, 0)),
    ],
)
def test_dates_in_names(text: str, date: tuple[int, int, int] | None) -> None:
    assert find_date(text) == date


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Who is the chair?", "minutes-june-2025.md#1"),
        ("What is the current fee?", "minutes-june-2025.md#1"),
        ("What was decided about the roof?", "minutes-2019-05-02.md#1"),  # minutes are no editions of one text
        ("Who is the chair of 2019?", "minutes-2019-05-02.md#1"),
        ("How long is the notice?", "rules-2025.md#1"),  # a new edition, whatever the question
        ("How long was the notice in 2021?", "rules-2021.md#1"),
        ("How long is the notice at 2048 bytes?", "rules-2025.md#1"),
        ("notice 2021", "rules-2021.md#1"),
        ("Who is the chair now, says the page without a date?", "contacts.md#1"),
    ],
)
def test_the_newest_document_comes_first(question: str, first: str) -> None:
    texts = {
        "minutes-2019-05-02.md#1": "The roof leaks. Ann Lee is elected chair. The fee is ten pounds.",
        "minutes-june-2025.md#1": "Bo Ray takes the chair. Members pay a fee of twelve pounds for the boats.",
        "rules-2021.md#1": "A member who leaves gives notice of seven days in writing.",
        "rules-2025.md#1": "A member who leaves gives notice of nine days in writing.",
        "contacts.md#1": "Cy Poe is the chair.",
    }
    order = {"notice": ["rules-2021.md#1", "rules-2025.md#1"], "page": ["contacts.md#1", *list(texts)[:2]]}
    keys = next((keys for word, keys in order.items() if word in question), list(texts)[:2])
    hits = [Hit(Passage(key, "", texts[key]), 1 - n / 100) for n, key in enumerate(keys)]
    ranking = lower_older(question, hits, 1.0)
    assert ranking[0].passage.id == first
    assert ranking == best_first(ranking)
    assert {hit.passage.id for hit in ranking} == set(keys)


def test_a_list_that_cannot_be_asked_is_left_out() -> None:
    class Mute(Listed):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            raise QuestionError("nothing to search for")

    assert [identifier for identifier, _ in listed(Fusion([Mute("m"), B]))] == ["z", "w"]
    with pytest.raises(QuestionError):
        Fusion([Mute("m"), Mute("n")]).search(["q"], 3)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), min_size=2, max_size=4), st.integers(1, 9))
def test_fusion_keeps_all_that_was_found_and_k_is_a_prefix(lists: list[list[str]], k: int) -> None:
    retrievers = [Listed(f"r{n}", *((x, -float(i)) for i, x in enumerate(one))) for n, one in enumerate(lists)]
    whole = listed(Fusion(retrievers), 100)
    assert {identifier for identifier, _ in whole} == {x for one in lists for x in one}
    assert listed(Fusion(retrievers), k) == whole[:k]


class Lengths:
    """Scores a passage by how often the first letter of the question stands in it."""

    name = "letters"

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        return [float(passage.text.lower().count(question[:1].lower())) for passage in passages]


def test_reranking_orders_the_first_and_leaves_the_rest_below(shelf: Path) -> None:
    bm25 = open_index(shelf).bm25
    for depth in (1, 2, 5):
        reranked = Rerank(bm25, Lengths(), depth=depth)
        check_retriever(reranked, ["river of Poland", "Nobel Prize", "東京", "capital"])
        (before,), (after,) = bm25.search(["river of Poland"], 9), reranked.search(["river of Poland"], 9)
        assert {h.passage.id for h in after[:depth]} == {h.passage.id for h in before[:depth]}
        assert [h.passage.id for h in after[depth:]] == [h.passage.id for h in before[depth:]]
    assert Rerank(bm25, Lengths(), depth=5, retriever_weight=0.5).name == "bm25.v1>letters+0.5*retriever@5"


def test_reranking_can_put_names_and_definitions_first() -> None:
    class Many(Listed):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            texts = {f"{n:03}": "gle " * (1 + n % 7) for n in range(60)} | {
                "030": "Big gle is a language.",
                "002": "a_b",
            }
            return [[Hit(Passage(key, "", text), 60.0 - n) for n, (key, text) in enumerate(texts.items())][:k]]

    plain, first = (Rerank(Many("m"), Lengths(), depth=10, exact_first=chosen) for chosen in (False, True))
    (before,), (after,) = plain.search(["what is big gle"], 60), first.search(["what is big gle"], 60)
    assert after[0].passage.id == "030"  # beyond the depth
    assert [hit.passage.id for hit in after[1:]] == [hit.passage.id for hit in before if hit.passage.id != "030"]
    assert [hit.score for hit in after] == sorted((hit.score for hit in after), reverse=True)
    assert first.search(["what does a_b do"], 1)[0][0].passage.id == "002"
    assert first.search(["big gle or else"], 60) == plain.search(["big gle or else"], 60)
    assert (plain.name, first.name) == ("m>letters@10", "m>letters@10,names and definitions first")
    for query, every in (("what is big gle", after), ("what does a_b do", first.search(["what does a_b do"], 60)[0])):
        assert all(first.search([query], k) == [every[:k]] for k in range(1, 60))


RERANK = "name = 'x'\nkind = 'rerank'\nbase = 'bm25'\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind = 'bm25'", "not the configuration of a retriever: field 'name' is missing"),
        ("name = 'x'\nkind = 'nope'", "no kind called 'nope'; there are: bm25"),
        ("name = 'x'\nkind = 'bm25'\nweight = 1", "unknown setting 'weight' of kind bm25; there are: b, engine"),
        ("name = 'x'\nkind = 'bm25'\nweights = 3", "weights should be dict, found 3"),
        ("name = 'x'\nkind = 'bm25'\n[weights]\ncontents = nan", "should be above 0"),
        ("name = 'x'\nkind = 'bm25'\n[weights]\ncontents = 'much'", "should be above 0"),
        ("name = 'x'\nkind = 'fusion'\nretrievers = ['bm25']", "two or more different retrievers"),
        ("name = 'x'\nkind = 'fusion'\nretrievers = ['bm25', 'bm25']", "two or more different retrievers"),
        ("name = 'x'\nkind = 'fusion'\nretrievers = ['bm25', 'bm25-rerank']\nmethod = 'min'", "no fusion called 'min'"),
        ("name = 'x'\nkind = 'fusion'\nretrievers = ['bm25', 'bm25-rerank']\nweights = [1]", "as many weights above 0"),
        (
            "name = 'x'\nkind = 'fusion'\nretrievers = ['bm25', 'bm25-rerank']\nweights = [1, inf]",
            "as many weights above 0",
        ),
        (
            "name = 'x'\nkind = 'fusion'\nretrievers = ['bm25', 'bm25-rerank']\nlookup_weights = [0, 1]",
            "as many weights above 0",
        ),
        ("name = 'x'\nkind = 'bm25'\n[weights]\ncontents = 1e300", "should be above 0"),
        ("name = 'x'\nkind = 'reference'\nk1 = 1" + "0" * 400, "k1 should be a finite number"),
        ("name = " + "[" * 9999, "not the configuration of a retriever"),
        ("name = 'x'\nkind = 'bm25'\nweights = 1" + "0" * 5000, "not the configuration of a retriever"),
        ("name = 'x'\nkind = 'reference'\nk1 = -1", "k1 should be at least 0 and b from 0 to 1"),
        (
            RERANK + "[[stages]]\nmodel = 'static'\ndepth = 9\nretriever_weight = nan",
            "retriever_weight should be a finite number, found nan",
        ),
        ("name = 'x'\nkind = 'rerank'\nof = 'bm25'", "unknown setting 'of' of kind rerank; there are: base, stages"),
        ("name = 'x'\nkind = 'fusion'\nof = ['bm25', 'bm25-rerank']", "unknown setting 'of' of kind fusion"),
        (
            RERANK + "[[stages]]\nmodel = 'oracle'\ndepth = 9",
            "no reranker called 'oracle'",
        ),
        (RERANK + "[[stages]]\nmodel = 'cosine'\ndepth = true", "depth should be int"),
        (RERANK + "[[stages]]\nmodel = 'cosine'\ndepth = 0", "depth of at least 1"),
        (
            RERANK + "[[stages]]\nmodel = 'reader:nowhere'\ndepth = 9",
            "model.onnx is missing",
        ),
        (RERANK + "model = 'cosine'\ndepth = 9", "unknown setting 'depth'"),
        (RERANK + "stages = []", "needs at least one [[stages]] table"),
        (RERANK + "stages = ['cosine']", "should be tables, found 'cosine'"),
        (
            RERANK + "[[stages]]\nmodel = 'static:no'\ndepth = 9",
            "table.npz is missing",
        ),
        ("kind = [", "not the configuration of a retriever"),
    ],
)
def test_a_retriever_that_cannot_be_followed_is_one_clear_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(RagError) as caught:
        open_retriever(str(path), open_index(None))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_retriever_made_of_itself_is_one_clear_line(tmp_path: Path) -> None:
    for name, of in (("a", "b"), ("b", "a")):
        text = f"name = '{name}'\nkind = 'rerank'\nbase = '{tmp_path / of}.toml'"
        (tmp_path / f"{name}.toml").write_text(text)
    with pytest.raises(RagError, match=r"a\.toml is based on itself: .*a\.toml of .*b\.toml of .*a\.toml"):
        open_retriever(str(tmp_path / "a.toml"), open_index(None))


def test_what_a_retriever_is_made_of_is_listed_once() -> None:
    assert [name for name, _ in walk_configs("bm25-rerank")] == ["bm25-rerank", "reranked", "bm25"]
    assert [name for name, _ in walk_configs("default")] == ["default"]
    assert [name for name, _ in walk_configs("default+hybrid")] == [
        "default+hybrid",
        "default",
        "hybrid",
        "bm25",
        "minilm-shipped",
    ]
    assert [name for name, _ in walk_configs("bm25-rerank+fused")] == [
        "bm25-rerank+fused",
        "bm25-rerank",
        "reranked",
        "bm25",
        "fused",
        "static",
    ]


def test_a_retriever_adds_the_parts_of_those_it_is_made_of(rag: Command, shelf: Path) -> None:
    one_line_error(rag("search", "river", "--retriever", "fused", "--index", shelf), "has no data of 'static.v1' yet")
    added = rag("index", "build", "--to", shelf, "--retriever", "fused", "--retriever", "bm25-rerank")
    assert added.returncode == 0, added.stderr
    assert [line.partition(":")[0] for line in added.stderr.splitlines()] == [
        "static", f"static was added to {shelf}", "bm25-rerank",
    ]  # fmt: skip
    assert added.stderr.endswith("bm25-rerank: adds nothing to the index\n")
    assert rag("search", "river", "--retriever", "fused", "--index", shelf).returncode == 0


def test_two_processes_do_not_add_one_part(shelf: Path) -> None:
    index, retriever = open_index(shelf), read_config("static")
    with (
        adding(index, retriever, {}),
        pytest.raises(
            IndexingError, match=r"another process is adding 'static\.v1' to .*; wait for it \(process \d+\)$"
        ),
        adding(index, retriever, {}),
    ):
        pass


def test_every_shipped_retriever_names_a_kind_and_no_two_have_one_name() -> None:
    retrievers = [read_config(name) for name in names("indexes", ".toml")]
    assert len({retriever.name for retriever in retrievers}) == len(retrievers)
    for retriever in retrievers:
        assert kind_of(retriever)
    assert read_config("bm25+reference") == RetrieverConfig(
        "bm25+reference", "fusion", {"retrievers": ["bm25", "reference"]}
    )


def test_a_retriever_of_ones_own_searches(rag: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("name = 'mine'\nkind = 'bm25'\n[weights]\ncontents = 2\n")
    mine = tmp_path / "mine.toml"
    for name in (mine, f"bm25+{mine}", f"{mine}+bm25"):
        found = rag("search", "closed pool", "--retriever", name, "--json")
        assert found.returncode == 0, found.stderr
    one_line_error(
        rag("search", "x", "--retriever", tmp_path / "nowhere.toml"),
        "cannot be read as the configuration of a retriever",
    )


def test_what_adds_nothing_says_so(rag: Command, shelf: Path) -> None:
    done = rag("index", "build", "--to", shelf, "--retriever", "bm25")
    assert done.returncode == 0, done.stderr
    assert "bm25: adds nothing to the index" in done.stderr
    one_line_error(rag("index", "build", "--to", shelf), "nothing to build")
    one_line_error(
        rag("index", "build", "--to", shelf, "--retriever", "bm25", "--memory", "much"),
        "write passages as 33M, memory as 8GiB",
    )


def test_what_cannot_be_added_is_refused_before_anything_is_built(rag: Command, shelf: Path, tmp_path: Path) -> None:
    before = (shelf / "manifest.json").read_bytes()
    corpus = write_corpus(tmp_path / "c.jsonl", [("1", "", "a text")])
    build = ("index", "build", corpus, "--to", shelf)
    one_line_error(rag(*build, "--retriever", "nope"), "no retriever called 'nope'")
    one_line_error(
        rag(*build, "--retriever", "static", "--memory", "9" * 400 + "GiB"), "write passages as 33M, memory as 8GiB"
    )
    one_line_error(rag(*build, "--memory", "8GiB"), "--memory is for the data that --retriever NAME adds")
    assert (shelf / "manifest.json").read_bytes() == before


@pytest.mark.parametrize(("text", "size"), [("8GiB", 8 * 2**30), ("500MB", 500e6), ("1.5 g", 1.5e9), ("12", 12)])
def test_amounts_of_memory(text: str, size: float) -> None:
    assert parse_size(text) == size
