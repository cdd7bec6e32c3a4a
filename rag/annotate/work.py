"""The annotators' pages: the current item, and verdicts, flags and undo."""

import math
import secrets
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rag.annotate.crowd_pages import CrowdPages
from rag.annotate.highlight import Segment, content_words, pieces, segments
from rag.annotate.items import Item, Source
from rag.annotate.schemes import Question, flags_for
from rag.annotate.site import Site, comment_of, field, reason_of
from rag.annotate.study import Study
from rag.annotate.types import Annotator, Entry, Evidence, Feedback, Work
from rag.base.errors import PressError
from rag.web.pages import sentence


class WorkPages:
    """The pages of an annotator."""

    def __init__(self, site: Site, crowd: CrowdPages) -> None:
        self._site, self._study, self._crowd = site, site.study, crowd

    async def work(self, request: Request) -> Response:
        """Show the person's current item."""
        person = await self._site.person(request)
        if person.role == "admin":
            return RedirectResponse("/admin", 303)
        return await self._now(request, person)

    async def _now(self, request: Request, person: Annotator, *, notice: str = "", status: int = 200) -> Response:
        if (page := await self._crowd.before_items(request, person, notice=notice, status=status)) is not None:
            return page
        if person.block_reason is not None:
            return self._site.page(request, "blocked.html.j2", status=status, reason=person.block_reason)
        work = await run_in_threadpool(self._study.next, person.id)
        if work is None:
            now = await run_in_threadpool(self._study.annotator, person.id)  # the last item may have blocked them
            if now.block_reason is not None:
                page = await self._crowd.before_items(request, now)
                return page or self._site.page(request, "blocked.html.j2", status=status, reason=now.block_reason)
            if (page := await self._crowd.after_items(request, person, notice=notice, status=status)) is not None:
                return page
            undo = await run_in_threadpool(self._study.can_undo, person.id)
            press = secrets.token_urlsafe(16)
            return self._site.page(
                request, "thanks.html.j2", status=status, me=person.id, press=press, can_undo=undo, notice=notice
            )
        return self._site.page(
            request,
            "work.html.j2",
            status=status,
            notice=notice,
            me=person.id,
            revising=False,
            **work_view(self._study, await self._crowd.limit(person, work)),
        )

    async def press(self, request: Request) -> Response:
        """Record a verdict, and show the next item, or in training the feedback."""
        person, form = await self._site.person(request), await self._site.form(request)
        item = field(form, "item")
        before = await run_in_threadpool(self._study.next, person.id) if field(form, "phase") == "training" else None
        feedback = await run_in_threadpool(self._study.verdict, person.id, item, entry_of(form))
        if feedback is not None:
            after = await run_in_threadpool(self._study.next, person.id)
            if after is not None and after.item.id == item:  # the explanation would give away the next question
                feedback = replace(feedback, explanation="")
            return self._feedback(request, feedback, before if before and before.item.id == item else None, form)
        return await self._after(request, person)

    def _feedback(self, request: Request, feedback: Feedback, work: Work | None, form: FormData) -> Response:
        """Show the feedback; without the item (`work`) if the press came twice, as after a lost response."""
        if work is None:
            return self._site.page(
                request, "feedback.html.j2", feedback=feedback, answer_label="", expected=feedback.expected, work=None
            )
        labels = {option.value: option.label_for(work.item.kind) for option in work.question.options}
        return self._site.page(
            request,
            "feedback.html.j2",
            feedback=feedback,
            answer_label=labels.get(field(form, "value"), ""),
            expected=labels.get(feedback.expected, feedback.expected),
            **work_view(self._study, work),
        )

    async def flag(self, request: Request) -> Response:
        """Take the item out of the person's queue."""
        person, form = await self._site.person(request), await self._site.form(request)
        await run_in_threadpool(
            self._study.flag,
            person.id,
            field(form, "item"),
            field(form, "value"),
            press=field(form, "press"),
            comment=comment_of(form),
            shown=field(form, "shown"),
        )
        return await self._after(request, person)

    async def undo(self, request: Request) -> Response:
        """Take back the person's last press."""
        person, form = await self._site.person(request), await self._site.form(request)
        await run_in_threadpool(self._study.undo, person.id, press=field(form, "press"))
        return await self._after(request, person)

    async def _after(self, request: Request, person: Annotator) -> Response:
        # The page's own script takes the next page at once; a browser without it is redirected, so that it can reload.
        if request.headers.get("X-Requested-With") == "fetch":
            return await self._now(request, person)
        return RedirectResponse("/", 303)

    async def on_press_error(self, request: Request, error: Exception) -> Response:
        """Say why a press was not recorded, and show the current item."""
        person = await self._site.person(request)
        if person.role == "admin":
            return self._site.pages.error(409, sentence(error))
        return await self._now(request, person, notice=sentence(error), status=409)


def entry_of(form: FormData) -> Entry:
    """Return what a person entered in the form of a question. Raises `PressError` for evidence that is no span."""
    return Entry(
        field(form, "question"),
        field(form, "value"),
        press=field(form, "press"),
        evidence=_evidence_of(form),
        reason=reason_of(form),
        comment=comment_of(form),
        seconds=_seconds_of(form),
        shown=field(form, "shown"),
    )


def _evidence_of(form: FormData) -> tuple[Evidence, ...]:
    """Return the spans `start:end:passage` of a form, each once, in order. Raises `PressError`."""
    spans = []
    for value in map(str, form.getlist("evidence")):
        start, _, remainder = value.partition(":")
        end, _, passage = remainder.partition(":")
        if not (start.isdecimal() and end.isdecimal() and len(value) < 1_000 and start.isascii() and end.isascii()):
            raise PressError("the evidence is not a span of a source; choose it again")
        spans.append(Evidence(passage, int(start), int(end)))
    return tuple(sorted(dict.fromkeys(spans), key=lambda span: (span.passage, span.start, span.end)))


def _seconds_of(form: FormData) -> float | None:
    """Return the seconds that the browser measured; None if it measured none, NaN for what is no number."""
    seconds = field(form, "seconds")
    try:
        return float(seconds) if seconds else None
    except ValueError:
        return math.nan


def work_view(study: Study, work: Work) -> dict[str, Any]:
    """Return what the templates show of a person's work, with what the person entered before."""
    is_optional = work.question.evidence_for and study.settings.evidence != "off"
    choosable = bool((is_optional or work.question.words_for) and work.item.sources)
    view = item_view(study, work.item, work.question, choosable=choosable)
    entered = work.entered
    labels = {option.value: option.label_for(work.item.kind) for option in work.question.options}
    return (
        view
        | {"work": work, "entered_label": labels.get(entered.value, "") if entered else ""}
        | _evidence_view(view["sources"], entered.evidence if entered else ())
    )


def _evidence_view(
    sources: Sequence[tuple[Source, Sequence[Segment]]], evidence: Collection[Evidence]
) -> dict[str, Any]:
    """Return the evidence as the forms send it: `chosen` has whole sentences, `spans` other parts, with their texts."""
    texts = {source.id: source.text for source, _ in sources}
    sentences = {
        f"{segment.start}:{segment.end}:{source.id}"
        for source, segments in sources
        for segment in segments
        if segment.is_sentence
    }
    sentence_values, spans = set(), []
    for span in evidence:
        value = f"{span.start}:{span.end}:{span.passage}"
        if value in sentences:
            sentence_values.add(value)
        elif span.passage in texts:
            spans.append((value, texts[span.passage][span.start : span.end]))
    return {"chosen": sentence_values, "spans": spans}


def item_view(study: Study, item: Item, question: Question, *, choosable: bool = False) -> dict[str, Any]:
    """Return what the templates show of an item and a question; `choosable` if evidence can be chosen."""
    words = content_words(item.text) if study.settings.highlight else frozenset()
    return {
        "item": item,
        "question": question,
        "options": [
            {
                "key": option.key,
                "value": option.value,
                "label": option.label_for(item.kind),
                "evidence": choosable and option.value in (question.words_for or question.evidence_for),
            }
            for option in question.options
        ],
        "sources": [(source, segments(source.text, words)) for source in item.sources],
        "mark_words": lambda text: tuple(pieces(text, words)),
        "choosable": choosable,
        "flags": flags_for(item.kind, question.source),
        "heading": _heading(item),
    }


def _heading(item: Item) -> str:
    output = {"qa": "response", "summarization": "summary", "table": "caption"}[item.kind]
    return f"System {output}" if item.sentence is None else f"System {output}: judge the marked sentence"
