"""Offsets in UTF-16 code units, by which JavaScript, Java and C# index text; ours count characters (code points)."""


def utf16_offset(text: str, offset: int) -> int:
    """Return the number of UTF-16 code units before the character at `offset`: two for each above U+FFFF, else one."""
    return offset + sum(character > "\uffff" for character in text[:offset])


def utf16_span(text: str, start: int, end: int) -> dict[str, int]:
    """Return a span of characters as the fields `start_utf16` and `end_utf16` of a response."""
    return {"start_utf16": utf16_offset(text, start), "end_utf16": utf16_offset(text, end)}
