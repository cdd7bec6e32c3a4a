"""Letters of scripts without blanks between words, as parts of a class in a regular expression."""

HAN = r"\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han characters and kana."""

UNSPACED = (
    HAN + r"\u3005-\u3007\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"
    r"\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd"
)
"""Han and kana, Thai, Lao, Burmese and Khmer."""
