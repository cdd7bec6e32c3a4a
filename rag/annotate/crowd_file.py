"""`crowd.toml` of a study: the consent text, questions about the person, and what crowd services need."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

from rag.annotate.scheme_file import Table, read_toml

CROWD = "crowd.toml"
Service = Literal["", "prolific", "mturk"]

PARAMETERS: dict[Service, tuple[str, str, str]] = {
    "prolific": ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
    "mturk": ("workerId", "hitId", "assignmentId"),
}
"""The parameters of a service's links: who takes part, in which task of the service, and which turn of the person."""

_KEYS = (
    "consent", "consent_version", "service", "items", "completion_url", "completion_code", "screen_out_url",
    "questions",
)  # fmt: skip
_QUESTION_KEYS = ("name", "text", "choices", "required")
_MAX_QUESTIONS, _MAX_CHOICES, _MAX_ITEMS = 30, 60, 1_000_000


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """A question about the person; without `choices` the answer is a text."""

    name: str
    text: str
    choices: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """What `crowd.toml` says.

    `consent` is Markdown that a person accepts before the first item, `consent_version` its name; a person who accepted
    another text is asked again. `items` is how many items a participant of `service` gets, 0 for all that there are.
    At the end a participant gets the link `completion_url` and the code `completion_code`: prolific needs at least one,
    mturk has a code for each participant. A participant who is blocked gets the link `screen_out_url`.
    """

    consent: str = ""
    consent_version: str = ""
    service: Service = ""
    items: int = 0
    completion_url: str = ""
    completion_code: str = ""
    screen_out_url: str = ""
    questions: tuple[PersonQuestion, ...] = ()


def read_crowd(path: Path) -> CrowdSettings:
    """Read `crowd.toml`; raises `UserError` that names the file, the key, and what was there."""
    table = Table(read_toml(path, "settings of a crowd"), str(path), _KEYS)
    consent = table.text("consent", 200_000, default="")
    version = table.text("consent_version", 100, default=None if consent else "")
    items = table.value("items", int, 0)
    if not 0 <= items <= _MAX_ITEMS:
        raise table.error("items", f"should be from 0 (all) to {_MAX_ITEMS:,}, found {items}")
    questions: list[PersonQuestion] = []
    for row in table.tables("questions", _QUESTION_KEYS, 1, _MAX_QUESTIONS) if "questions" in table.values else ():
        question = _question(row)
        if question.name in [earlier.name for earlier in questions]:
            raise row.error("name", f"{question.name!r} is taken; name the question otherwise")
        questions.append(question)
    service = cast("Service", table.choice("service", ("", *PARAMETERS), ""))
    url, code = _url(table, "completion_url"), table.text("completion_code", 100, default="").strip()
    if service == "prolific" and not (url or code):
        raise table.error("completion_url", "is missing; copy it from Prolific, or set completion_code")
    return CrowdSettings(consent, version, service, items, url, code, _url(table, "screen_out_url"), tuple(questions))


def _question(table: Table) -> PersonQuestion:
    choices = table.value("choices", list, [])
    for choice in choices:
        if not isinstance(choice, str) or not choice.strip() or len(choice) > 200:
            raise table.error("choices", f"should be texts of 1 to 200 characters, found {str(choice)[:60]!r}")
    if len(choices) > _MAX_CHOICES or len(set(choices)) < len(choices) or len(choices) == 1:
        raise table.error("choices", f"should be 2 to {_MAX_CHOICES} different texts; leave it out for a free answer")
    return PersonQuestion(
        table.name("name"), table.text("text", 1_000), tuple(choices), table.value("required", bool, False)
    )


def _url(table: Table, key: str) -> str:
    url = table.text(key, 1_000, default="")
    try:
        parts = urlsplit(url)
        is_web = parts.scheme == "https" and bool(parts.hostname)
    except ValueError:
        is_web = False
    if url and not (is_web and url.isprintable() and " " not in url):
        raise table.error(key, f"should be an address that begins with https://, found {url!r:.60}")
    return url
