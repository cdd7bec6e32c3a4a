"""Which texts count as English."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.text.language import is_english

ENGLISH = (
    "The tower was built between 1901 and 1904 by the city of Vienna.",
    "tar -xzf backup.tar.gz -C /usr/local/share",
    "Georges Gilles de la Tourette",
    "U.S. Military, 12:41 p.m. ET, 1900s - 2000s",
    "La Dolce Vita is a film by Federico Fellini.",
    "The word for peace is мир in Russian.",
    "E = mc²",
    "",
    "1986",
)
OTHERS = (
    "Der Turm wurde zwischen 1901 und 1904 von der Stadt Wien gebaut, und er ist heute ein Museum.",
    "La tour a été construite entre 1901 et 1904 par la ville de Vienne, et elle est aujourd'hui un musée.",
    "La torre fue construida por la ciudad entre 1901 y 1904, y es hoy un museo.",
    "La torre è stata costruita dalla città nel 1901 e oggi è un museo della scienza.",
    "De toren werd tussen 1901 en 1904 door de stad gebouwd en is nu een museum.",
    "मीनार 1901 और 1904 के बीच बनाई गई थी।",
    "这座塔建于1901年至1904年之间。",
    "Башня была построена между 1901 и 1904 годами.",
    "تم بناء البرج بين عامي 1901 و 1904.",
)


@pytest.mark.parametrize("text", ENGLISH)
def test_english_names_and_code_count_as_english(text: str) -> None:
    assert is_english(text)


@pytest.mark.parametrize("text", OTHERS)
def test_another_language_is_told(text: str) -> None:
    assert not is_english(text)


@given(st.text())
def test_enough_english_outweighs_anything(text: str) -> None:
    assert is_english(text + " It was the one that they had." * len(text))


@given(st.lists(st.one_of(st.sampled_from((*ENGLISH, *OTHERS)), st.text()), max_size=6))
def test_texts_are_judged_together(texts: list[str]) -> None:
    assert is_english(*texts) == is_english("\n".join(texts))
