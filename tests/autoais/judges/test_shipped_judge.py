"""The judge that ships: the files are those of its record, and it tells what a reader would tell."""

import json

import numpy as np
import pytest

from autoais.base.errors import UserError
from autoais.base.io.provenance import sha256_file
from autoais.base.text.excerpt import EvidenceTexts
from autoais.base.text.words import content_stems
from autoais.base.types import Attribution, Judgement, Span, Verdict
from autoais.judges import DEFAULT, minilm, open_judge
from autoais.judges.minilm import MODEL_FOLDER, MiniLMJudge, default_judge, strip_framing
from autoais.judges.numbers import Numbers
from scripts.make_judge_card import lines
from tests.conftest import Command

ZAMENHOF = (
    "Ludwik Zamenhof was an ophthalmologist who lived for most of his life in Warsaw. He is most widely known as the "
    "creator of Esperanto, the most widely used constructed international auxiliary language. Zamenhof published his "
    "book in 1887 under the name Doktoro Esperanto."
)
HOLDS = [
    "Ludwik Zamenhof created Esperanto.",
    "Zamenhof's book appeared in 1887.",
    "Ludwik Zamenhof was an ophthalmologist who lived for most of his life in Warsaw.",
]
LACKS = {
    "Zamenhof published his book in 1878.": "1878",
    "Zamenhof never published a book.": "never",
    "Zamenhof lived most of his life in Berlin.": "Berlin",
    "Ludwik Zamenhof was an ophthalmologist who lived for most of his life in Lodz.": "Lodz",
    "Ludwik Zamenhof was not an ophthalmologist.": "not",
    "The Vistula flows through Warsaw.": "Vistula",
}


def test_the_files_are_those_of_the_record_and_the_card() -> None:
    record = json.loads((MODEL_FOLDER / "training.json").read_text())
    card = (MODEL_FOLDER / "CARD.md").read_text()
    assert record["short"] is False
    for name, digest in record["files"].items():
        assert sha256_file(MODEL_FOLDER / name) == digest, name
        assert digest in card, name
    assert MiniLMJudge().name in card
    assert card.splitlines() == list(lines())  # else: python -m scripts.make_judge_card
    assert f"{np.mean([one['roc_auc'] for one in record['left_out'].values()]):.3f}" in card


def test_it_is_the_default_and_its_name_says_which_it_is(autoais: Command) -> None:
    assert DEFAULT == "minilm"
    done = autoais(
        "score", "tests/data/attributed-qa/predictions.csv", "--corpus", "tests/data/attributed-qa/passages.jsonl"
    )
    assert MiniLMJudge().name in done.stdout
    assert open_judge("minilm", threads=1).name == MiniLMJudge().name


def test_of_a_claim_of_very_many_sentences_those_are_read_that_the_evidence_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(minilm, "MAX_PARTS", 5)
    judge, read = MiniLMJudge(threads=1), list[str]()

    def counted(
        claim: str, evidence: EvidenceTexts, numbers: Numbers
    ) -> tuple[float, tuple[Span, ...], list[tuple[int, int]]]:
        read.append(claim)
        return MiniLMJudge._part(judge, claim, evidence, numbers)

    monkeypatch.setattr(judge, "_part", counted)
    judged = judge.support(f"{' '.join(HOLDS * 12)} The Vistula flows to Gdansk.", [ZAMENHOF])
    assert len(read) == 5
    assert read[-1] == "The Vistula flows to Gdansk."
    assert judged.verdict is Verdict.NOT_ATTRIBUTABLE


def test_the_evidence_is_analysed_once_for_all_sentences_of_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    analysed: list[str] = []

    def counted(text: str) -> list[str]:
        analysed.append(text)
        return content_stems(text)

    monkeypatch.setattr("autoais.base.text.excerpt.content_stems", counted)
    page = " ".join(f"In {year} the town of Lodz had a fair." for year in range(1800, 1840))
    MiniLMJudge(threads=1).support(" ".join(HOLDS * 6), [page])
    assert analysed.count("In 1800 the town of Lodz had a fair.") == 1


def test_what_the_passage_says_holds_and_a_changed_fact_does_not() -> None:
    judge = MiniLMJudge()
    holds = judge.judge([Attribution(claim, (ZAMENHOF,)) for claim in HOLDS])
    assert [judgement.verdict for judgement in holds] == [Verdict.ATTRIBUTABLE] * len(HOLDS)
    lacks = judge.judge([Attribution(claim, (ZAMENHOF,)) for claim in LACKS])
    assert [judgement.verdict for judgement in lacks] == [Verdict.NOT_ATTRIBUTABLE] * len(LACKS)
    for (claim, word), judgement in zip(LACKS.items(), lacks, strict=True):
        assert any(word in claim[start:end] for start, end in judgement.unsupported), claim


OTHERS = (
    "The harbour of Arlen has three docks. The oldest of them was built for the fishing fleet in 1871.",
    "A doctor may publish books about languages. The first language that children learn is that of their parents.",
    "Wood was dear in the winter of 1887, when the mill burnt down. Nobody was hurt, and it was built again.",
    "The railway museum shows engines, tickets and clocks. It is closed on Mondays and in the month of January.",
)


@pytest.fixture(scope="module")
def alone() -> list[Judgement]:
    """What the judge says of each claim if the passage is all the evidence."""
    return MiniLMJudge().judge([Attribution(claim, (ZAMENHOF,)) for claim in [*HOLDS, *LACKS]])


@pytest.mark.parametrize("place", range(len(OTHERS) + 1))
def test_texts_about_other_things_do_not_turn_a_verdict(alone: list[Judgement], place: int) -> None:
    among = (*OTHERS[:place], ZAMENHOF, *OTHERS[place:])
    claims = [*HOLDS, *LACKS]
    mixed = MiniLMJudge().judge([Attribution(claim, among) for claim in claims])
    assert [one.verdict for one in mixed] == [one.verdict for one in alone]
    for claim, before, after in zip(claims, alone, mixed, strict=True):
        assert before.probability is not None
        assert after.probability is not None
        assert after.probability >= before.probability, claim
        if after.probability == before.probability:  # what was read is the text that says it
            assert {span.evidence for span in after.evidence} == {place}


def test_the_words_that_the_evidence_lacks_are_unsupported() -> None:
    claim = "Zamenhof wrote the symphony for his neighbours."
    (judgement,) = MiniLMJudge().judge([Attribution(claim, (ZAMENHOF, *OTHERS))])
    assert judgement.verdict is Verdict.NOT_ATTRIBUTABLE
    words = [claim[start:end] for start, end in judgement.unsupported]
    assert "symphony" in words
    assert not any("Zamenhof" in word for word in words)


def test_a_short_answer_is_read_with_its_question() -> None:
    question = "when did zamenhof publish his book"
    right, wrong = MiniLMJudge().judge([Attribution(year, (ZAMENHOF,), question) for year in ("1887", "1878")])
    assert right.verdict is Verdict.ATTRIBUTABLE
    assert wrong.verdict is Verdict.NOT_ATTRIBUTABLE


@pytest.mark.slow
def test_the_int8_file_says_what_its_weights_say_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    from autoais.training.export import restore

    judge = MiniLMJudge()
    network = restore(MODEL_FOLDER / "model.onnx")
    for claim in [*HOLDS, *LACKS]:
        encoded = judge.encoder.encode(claim, (ZAMENHOF,))
        ids, types = torch.tensor([encoded.ids]), torch.tensor([encoded.types])
        with torch.inference_mode():
            pair, _, cosine, nearest = network(ids, torch.ones_like(ids), types)
        theirs = judge.session.run(None, {"ids": ids.numpy(), "types": types.numpy()})
        likely = [1 / (1 + np.exp(-float(one))) for one in (pair[0], theirs[0][0])]
        assert abs(likely[0] - likely[1]) < 0.05
        assert abs(float(cosine[0]) - float(theirs[2][0])) < 0.02
        assert np.abs(nearest.numpy() - theirs[3]).max() < 0.1


def test_its_trunk_says_how_alike_texts_are_whatever_else_is_asked() -> None:
    asked = "who invented the language esperanto"
    others = [ZAMENHOF, "The Vistula flows through Warsaw.", "", "東京" * 300, "\x00\ud800"]
    found = MiniLMJudge(threads=2).similarities(asked, others)
    assert found == [MiniLMJudge(threads=1).similarities(asked, [other])[0] for other in others]
    assert found[0] > 0.4 > found[1]
    assert all(-1 <= one <= 1 for one in found)
    assert MiniLMJudge().similarities(asked, [asked])[0] > 0.99
    assert MiniLMJudge().similarities(asked, []) == []


def test_partial_support_is_opt_in_and_changes_no_probability() -> None:
    attributions = [Attribution(claim, (ZAMENHOF,)) for claim in [*HOLDS, *LACKS]]
    plain, banded = MiniLMJudge(), MiniLMJudge(partial_from=0.2)
    before, after = plain.judge(attributions), banded.judge(attributions)
    assert [one.probability for one in after] == [one.probability for one in before]
    assert Verdict.PARTIALLY_ATTRIBUTABLE not in {one.verdict for one in before}
    for one in after:
        assert one.probability is not None
        partial = 0.2 <= one.probability < 0.5
        assert (one.verdict is Verdict.PARTIALLY_ATTRIBUTABLE) == partial
    assert Verdict.PARTIALLY_ATTRIBUTABLE in {one.verdict for one in after}
    assert banded.name == plain.name + "+partial0.2"


def test_three_answers_are_opt_in_and_tell_a_clash_from_what_is_not_there() -> None:
    asked = [
        Attribution("The mill of Aller was built in 1712.", ("The mill of Aller was built in 1840.",)),
        Attribution("The mill of Aller belongs to a baker from Bremen.", ("The mill of Aller was built in 1840.",)),
        Attribution("The mill of Aller was built in 1840.", ("The mill of Aller was built in 1840.",)),
    ]
    plain, telling = MiniLMJudge(), MiniLMJudge(three_way=True)
    before, after = plain.judge(asked), telling.judge(asked)
    assert [one.probability for one in after] == [one.probability for one in before]
    assert [one.verdict for one in before] == [Verdict.NOT_ATTRIBUTABLE, Verdict.NOT_ATTRIBUTABLE, Verdict.ATTRIBUTABLE]
    assert [one.verdict for one in after] == [Verdict.CONTRADICTORY, Verdict.EXTRAPOLATORY, Verdict.ATTRIBUTABLE]
    assert telling.name == plain.name + "+three-way"
    with pytest.raises(UserError, match="option 'three_way' should be bool"):
        open_judge("minilm", three_way=1)


def test_a_sentence_that_the_evidence_has_word_for_word_holds_whatever_the_network_says() -> None:
    page = "Networking\n\nRun:\n    netctl --up eth0\nMore... It is not\n(yet) safe, see netctl(8)."
    judge = MiniLMJudge()
    for quote in ("It is not (yet) safe, see netctl(8).", "netctl --up eth0"):
        judgement = judge.judge([Attribution(quote, ("Another page.", page))])[0]
        assert judgement.verdict is Verdict.ATTRIBUTABLE
        (span,) = judgement.evidence
        assert span.evidence == 1
        assert page[span.start : span.end].split() == quote.split()
    asked = Attribution("Networking", (page,), "How is it made safe?")  # a short answer is not a sentence
    assert judge.judge([asked])[0].verdict is Verdict.NOT_ATTRIBUTABLE


def test_it_is_undecided_about_other_languages() -> None:
    german = "Der Turm wurde 1901 von der Stadt gebaut, und er ist heute ein Museum für Uhren."
    hindi, english = (
        "यह मीनार 1901 में बनाई गई थी।",
        "The city built the tower in 1901, and it is a museum of clocks today.",
    )
    judge = MiniLMJudge()
    judged = judge.judge([Attribution(*pair) for pair in (
        (german, (german,)), (german, (english,)), ("Turm 1901", (german,)), (hindi, (hindi,)), (english, (hindi,)))
    ])  # fmt: skip
    assert {judgement.verdict for judgement in judged} == {Verdict.UNDECIDED}
    assert [judgement.reason for judgement in judged] == [
        "the claim is not in English",
        "the claim is not in English",
        "the evidence is not in English",
        "the claim is not in English",
        "the evidence is not in English",
    ]


@pytest.mark.parametrize(
    ("claim", "evidence", "attributable"),
    [
        ("The town has 1.2 million inhabitants.", "According to the census, the town has 1,203,114 inhabitants.", True),
        ("About 35 % of the voters stayed at home.", "In the end 34.8 % of the voters stayed at home.", True),
        ("35% of the voters stayed at home.", "In the end 34.8% of the voters stayed at home.", True),
        ("More than 20 people were hurt in the fire.", "A spokesman said that 24 people were hurt in the fire.", True),
        ("The bridge is 2 kilometres long.", "The bridge, opened in 1998, is 2,000 metres long.", True),
        ("The company paid $5 million for the patent.", "The company paid $5m for the patent in 2011.", True),
        ("The test takes 60 seconds.", "The test takes a minute and needs no training.", True),
        ("The firm sold 5M phones.", "The firm sold 5 million phones last year.", True),
        ("The fund is worth 2.5B dollars.", "The fund is worth 2.5 billion dollars, its manager said.", True),
        ("The concert begins at 20:30.", "The concert begins at 8:30 p.m. in the old hall.", True),
        ("The concert begins at 8:30 p.m.", "The concert begins at 20:30 in the old hall.", True),
        ("The law came into force in 05/2013.", "The law came into force in May 2013.", True),
        ("The law came into force in May 2013.", "The law came into force on 14/05/2013.", True),
        ("The station was opened in 2010.", "The station was opened in 2012 by the mayor.", False),
        ("Fewer than 50 ships were lost.", "In the storm 43 ships were lost.", True),
        (
            "The town has 1.2 million inhabitants.",
            "According to the census, the town has 1,403,114 inhabitants.",
            False,
        ),
        ("35% of the voters stayed at home.", "In the end 31.8% of the voters stayed at home.", False),
        ("More than 20 people were hurt in the fire.", "A spokesman said that 14 people were hurt in the fire.", False),
        ("The bridge is 2 kilometres long.", "The bridge, opened in 1998, is 3,000 metres long.", False),
        ("The company paid $5 million for the patent.", "The company paid $7m for the patent in 2011.", False),
        ("The test takes 60 seconds.", "The test takes two minutes and needs no training.", False),
        ("The firm sold 5M phones.", "The firm sold 6 million phones last year.", False),
        ("The concert begins at 20:30.", "The concert begins at 7:30 p.m. in the old hall.", False),
        ("The concert begins at 8:30 a.m.", "The concert begins at 20:30 in the old hall.", False),
        ("The law came into force in 05/2013.", "The law came into force in June 2013.", False),
        ("He scored one goal in the final.", "He scored two goals in the final.", False),
        ("He scored 2 goals in the final.", "He scored 1 goal in the final.", False),
    ],
)
def test_the_judge_compares_quantities_not_their_spelling(claim: str, evidence: str, attributable: bool) -> None:
    (judgement,) = default_judge().judge([Attribution(claim, (evidence,))])
    assert (judgement.verdict is Verdict.ATTRIBUTABLE) is attributable


@pytest.mark.parametrize(
    ("claim", "stripped"),
    [
        ("Yes, the bridge is long.", "the bridge is long."),
        ("Based on the given context, the bridge is long.", "the bridge is long."),
        ("No. According to the passages, it rained all day.", "it rained all day."),
        ("No country has more lakes.", "No country has more lakes."),
        ("Yes, but no.", "Yes, but no."),
        ("", ""),
    ],
)
def test_framing_says_nothing(claim: str, stripped: str) -> None:
    assert strip_framing(claim) == stripped


def test_unsupported_words_behind_framing_are_at_their_place() -> None:
    claim = "Yes, the bridge was opened in 1950."
    (judgement,) = default_judge().judge([Attribution(claim, ("The bridge was opened in 1970.",))])
    assert judgement.verdict is Verdict.NOT_ATTRIBUTABLE
    assert [claim[start:end] for start, end in judgement.unsupported] == ["1950."]
