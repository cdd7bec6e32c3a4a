"""The pages: ask, passage, check, compare, export. The server renders all HTML; the script only moves parts of it.

`routes(service)` returns their routes. An answer goes to the browser as events: drafts, which have the sentences that
are complete and the passages that these cite, the answer, then the verdicts.
"""

import asyncio
import json
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from autoais.base.answers import to_row
from autoais.base.io.jsonl import dumps
from rag.answer.attribution.check import SentenceCheck, check_answer
from rag.answer.llms import Price, cost
from rag.base.errors import BusyError, ModelFailureError, NotFoundError, QuestionError, UsageError, UserError
from rag.base.terminal import pluralize
from rag.base.types import Answer, Passage, Turn
from rag.index.index import Index
from rag.serve.checking import check_text, read_sources
from rag.serve.document_pages import DocumentPages, has_documents
from rag.serve.examples import example_questions
from rag.serve.http import EventStream, base_of, error_parts, event, last_item, retry_header
from rag.serve.library import Libraries
from rag.serve.links import answer_urls, links_to, passage_url, read_marks
from rag.serve.originals import OriginalPages, ServedOriginals
from rag.serve.service import Reply, Service
from rag.serve.site import Site
from rag.serve.uploads import Documents
from rag.serve.views import AnswerView, split_at_marks, view_answer
from rag.web.pages import sentence

_ID_PREFIX = re.compile(r"[a-z][a-z0-9]{0,11}")
_MAX_RECENT = 256  # answers kept for exports
_TURNS = 20  # of a thread, the last ones
_EXPORTS = {"markdown": "Markdown", "html": "HTML", "json": "JSON", "bibtex": "BibTeX", "csl": "CSL-JSON"}
_SOON = 0.5  # seconds that the first page waits for example questions


def routes(
    service: Service,
    documents: Mapping[str, Documents],
    libraries: Libraries,
    *,
    price: Price | None = None,
    base_url: str | None = None,
    originals: ServedOriginals | None = None,
) -> list[Route]:
    """Return the routes of the pages, with those of their static files.

    `documents` are those that people may change, by the name of the index. With a `price`, answers of language models
    say their cost. Links in exported files begin with `base_url`, by default the address of the request. Without
    `originals`, none are shown.
    """
    lists_documents = any(map(has_documents, service.indexes.values()))
    originals = originals or ServedOriginals(service, is_allowed=False)
    site = Site(service, documents=lists_documents, originals=originals.is_allowed)
    ask, other = AskPages(site, price, base_url), OtherPages(site, originals)
    files = OriginalPages(service, originals)
    page_routes = [
        Route("/", site.with_error_pages(ask.page)),
        Route("/ask", ask.events, methods=["POST"]),
        Route("/compare", site.with_error_pages(ask.compare)),
        Route("/export/{format}", site.with_error_pages(ask.export)),
        Route("/check", site.with_error_pages(other.check), methods=["GET", "POST"]),
        Route("/p/{index}/{passage:path}", site.with_error_pages(other.passage)),
        Route("/original/{index}/{passage:path}", site.with_error_pages(files.picture)),
        Route("/download/{index}/{passage:path}", site.with_error_pages(files.download)),
        Route("/static/{name:path}", site.pages.static),
    ]
    if lists_documents:
        page_routes += DocumentPages(site, documents, libraries).routes()
    return page_routes


class RecentAnswers:
    """The latest answers, so that an export has the answer that the page shows. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[str, str, str], Reply] = OrderedDict()

    def add(self, reply: Reply) -> None:
        """Add an answer, and remove the oldest."""
        with self._lock:
            key = (reply.question, reply.index, reply.system)
            self._answers[key] = reply
            self._answers.move_to_end(key)
            if len(self._answers) > _MAX_RECENT:
                self._answers.popitem(last=False)

    def find(self, question: str, index: str, system: str, current_index: Index) -> Reply | None:
        """Return the answer, unless the index has been replaced since."""
        with self._lock:
            reply = self._answers.get((question, index, system))
        return reply if reply is not None and reply.passages.index is current_index else None


class AskPages:
    """The pages that answer questions."""

    def __init__(self, site: Site, price: Price | None, base_url: str | None) -> None:
        self._site, self._service, self._price, self._base_url = site, site.service, price, base_url
        self._recent = RecentAnswers()
        self._examples: dict[str, tuple[Index, Future[list[str]]]] = {}

    # --- pages --------------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """Show the question box; with `q` and `whole`, also the answer. The script asks `q` by itself."""
        question, index, system = self._read_link(request.query_params)
        turn, status = None, 200
        selection = {"index": index, "system": system}
        whole = f"/?{urlencode({'q': question, **selection, 'whole': 1})}"
        if question and "whole" in request.query_params:
            try:
                turn = await self._whole(question, index, system, "t1")
            except ModelFailureError as error:
                turn, status = self._failure(error, whole), 502
        examples = [] if question else await self._examples_of(index)
        manifest = self._service.indexes[index].manifest
        number = int(manifest["passages"])
        return self._site.page(
            request,
            "ask.html.j2",
            "Ask",
            status=status,
            question=question,
            unanswered=question if status == 502 else "",
            turn=turn,
            whole=whole,
            here_query=urlencode(selection),
            collection=f"This server searches {pluralize(number, 'passage')} of {index}.",
            limit=self._service.limits.question,
            indexes=list(self._service.indexes),
            systems=list(self._service.systems),
            index=index,
            system=system,
            examples=[
                {"question": example, "href": f"/?{urlencode({'q': example, **selection})}"} for example in examples
            ],
        )

    async def compare(self, request: Request) -> Response:
        """Show a question's answers side by side."""
        choices = [f"{system}@{index}" for index in self._service.indexes for system in self._service.systems]
        parameters = request.query_params
        a = self._choice(parameters.get("a") or choices[0])
        b = self._choice(parameters.get("b") or choices[min(1, len(choices) - 1)])
        question = self._question(parameters)
        whole = f"/compare?{urlencode({'q': question, 'a': '@'.join(a), 'b': '@'.join(b), 'whole': 1})}"
        sides = []
        if question and "whole" in parameters:
            for id_prefix, (system, index) in (("a", a), ("b", b)):
                try:
                    turn = await self._whole(question, index, system, id_prefix)
                except ModelFailureError as error:  # the other side may have an answer
                    turn = self._failure(error, whole)
                sides.append((f"{system}@{index}", turn))
        return self._site.page(
            request,
            "compare.html.j2",
            "Compare",
            question=question,
            choices=choices,
            a="@".join(a),
            b="@".join(b),
            sides=sides,
            limit=self._service.limits.question,
            whole=whole,
        )

    async def export(self, request: Request) -> Response:
        """Return an answer as a file: the one that the page shows, or a new one if that is no longer stored."""
        name = request.path_params["format"]
        if name not in _EXPORTS:
            raise NotFoundError(f"no format {name[:40]!r}; there are: {', '.join(_EXPORTS)}")
        question, index, system = self._read_link(request.query_params)
        if not question:
            raise UsageError("there is no question to export the answer of")
        reply = self._recent.find(question, index, system, self._service.indexes[index])
        if reply is None:
            work = self._service.run_question(index, system, self._service.stream, question, index, system)
            reply = await last_item(work)
            self._recent.add(reply)
        body, media, suffix = _render_export(reply, name, base_of(request, self._base_url))
        slug = re.sub(r"[^a-z0-9]+", "-", question.lower()).strip("-")[:60] or "answer"
        headers = {"Content-Disposition": f'attachment; filename="{slug}{suffix}"'}
        return Response(body.encode("utf-8", "replace"), media_type=media, headers=headers)

    def _read_link(self, parameters: Mapping[str, str]) -> tuple[str, str, str]:
        """Return question, index and system of a link; raises `NotFoundError` for a name that is not served."""
        system, index = self._choice(f"{parameters.get('system', '')}@{parameters.get('index', '')}")
        return self._question(parameters), index, system

    def _question(self, parameters: Mapping[str, str]) -> str:
        question, max_length = parameters.get("q", "").strip(), self._service.limits.question
        if len(question) > max_length:
            raise UsageError(f"the question has {len(question):,} characters; the maximum is {max_length:,}")
        return question

    def _choice(self, name: str) -> tuple[str, str]:
        """System and index of `system@index`; an empty name is the first."""
        system, _, index = name.rpartition("@")
        system = system or self._service.systems[0]
        index = index or next(iter(self._service.indexes))
        for kind, value, choices in (
            ("system", system, self._service.systems),
            ("index", index, self._service.indexes),
        ):
            if value not in choices:
                raise NotFoundError(f"no {kind} called {value[:100]!r}; there are: {', '.join(choices)}")
        return system, index

    # --- examples -----------------------------------------------------------------------------------------------------

    async def _examples_of(self, name: str) -> list[str]:
        """Return the examples of an index; none if the search takes too long, and then the next page has them."""
        index = self._service.indexes[name]
        if name not in self._examples or self._examples[name][0] is not index:
            future: Future[list[str]] = Future()
            self._examples[name] = (index, future)
            threading.Thread(target=_look_for_examples, args=(index, future), daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_SOON):
                return await asyncio.shield(asyncio.wrap_future(self._examples[name][1]))
        return []

    # --- answers ------------------------------------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        """Answer a question as server-sent events: `draft`, `answer`, `verdicts`, or `failed` with a message."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return JSONResponse({"message": "The question should be sent as JSON."}, 415)  # no form can send it
        try:
            form = _QuestionForm(json.loads(await request.body()))
            system, index = self._choice(f"{form.system}@{form.index}")
            pieces = self._service.run_question(index, system, self._events, form, index, system)
        except UserError as error:
            status, _, message = error_parts(error)
            return JSONResponse({"message": sentence(message)}, status, retry_header(status))
        except (ValueError, RecursionError, ClientDisconnect):
            return JSONResponse({"message": "The question is not JSON."}, 400)
        return EventStream(_send_events(pieces))

    def _events(self, form: "_QuestionForm", index: str, system: str) -> Iterator[tuple[str, dict[str, Any]]]:
        length = 0
        for reply in self._service.stream(form.question, index, system, history=form.history):
            if not reply.is_complete:
                is_longer = len(reply.answer.sentences) > length
                length = len(reply.answer.sentences)
                html = self._draft(reply, form.id_prefix) if is_longer else ""
                yield "draft", {"html": html}  # also an empty one, so that the work can be stopped
                continue
            self._recent.add(reply)
            view = self._view(reply, form.id_prefix)
            short_answer = reply.answer.headline or next((sentence.text for sentence in reply.answer.sentences), "")
            yield (
                "answer",
                {
                    "html": self._turn(reply, view, form.question),
                    "turn": None if view.abstained else {"question": reply.question, "answer": short_answer[:2_000]},
                    "permalink": _permalink(reply),
                    "sentences": len(view.sentences),
                    "citations": sum(len(sentence_view.cites) for sentence_view in view.sentences),
                    "answered": not view.abstained,
                },
            )
            if not view.abstained:
                judged_view = self._view(reply, form.id_prefix, self._checks(reply.answer))
                yield "verdicts", {"html": self._site.part("verdicts.html.j2", view=judged_view)}

    async def _whole(self, question: str, index: str, system: str, id_prefix: str) -> Markup:
        """The answer with its verdicts, for a browser without the script."""

        def turns() -> Iterator[Markup]:
            for reply in self._service.stream(question, index, system):
                if not reply.is_complete:
                    yield Markup()  # so that the work can be stopped
                    continue
                self._recent.add(reply)
                yield self._turn(reply, self._view(reply, id_prefix, self._checks(reply.answer)), question)

        return await last_item(self._service.run_question(index, system, turns))

    def _failure(self, error: ModelFailureError, retry: str) -> Markup:
        """What stands in the place of an answer; `retry` is the address that asks again."""
        return self._site.part("failure.html.j2", message=sentence(error), retry=retry)

    def _checks(self, answer: Answer) -> list[SentenceCheck] | None:
        return None if answer.abstained else check_answer(answer, self._service.judge_model, nearest=True)

    def _view(self, reply: Reply, id_prefix: str, checks: Sequence[SentenceCheck] | None = None) -> AnswerView:
        return view_answer(
            reply.answer,
            id_prefix=id_prefix,
            link=links_to("", reply.index),
            look=reply.passages.find,
            checks=checks,
        )

    def _draft(self, reply: Reply, id_prefix: str) -> Markup:
        return self._site.part("draft.html.j2", view=self._view(reply, id_prefix))

    def _turn(self, reply: Reply, view: AnswerView, question: str) -> Markup:
        parameters = urlencode({"q": reply.question, "index": reply.index, "system": reply.system})
        return self._site.part(
            "turn.html.j2",
            view=view,
            meta=self._meta(reply, view),
            permalink=_permalink(reply),
            links=[(label, f"/export/{name}?{parameters}") for name, label in _EXPORTS.items()],
            searched="" if reply.question.strip() == question.strip() else reply.question,
            unanswered="Not answered by these sources",
            rest="Also read",
        )

    def _meta(self, reply: Reply, view: AnswerView) -> list[str]:
        """System, index, time, passages and cost of an answer."""
        parts = [
            reply.system,
            reply.index,
            f"{reply.seconds:.2f} s" if reply.seconds < 10 else f"{reply.seconds:.0f} s",
        ]
        parts.append(f"{pluralize(view.passage_count, 'passage')} read")
        if view.tokens is not None:
            input_tokens, output_tokens = view.tokens
            parts.append(f"{input_tokens:,} tokens in, {output_tokens:,} out")
            if self._price is not None:
                parts.append(f"cost {cost(input_tokens, output_tokens, self._price):.5f}")
        else:
            parts.append("no language model")
        return parts


def _look_for_examples(index: Index, future: "Future[list[str]]") -> None:
    """Find questions that the index answers. The reader is asked, as it takes milliseconds."""
    from rag.answer.systems import open_system

    try:
        future.set_result(example_questions(index, open_system("reader", index).ask))
    except Exception:  # noqa: BLE001  (an index that the reader cannot search has no examples, and its pages work)
        future.set_result([])


class _QuestionForm:
    """A question as the script sends it; raises `UsageError` for another shape."""

    def __init__(self, body: object) -> None:
        if not isinstance(body, dict):
            raise UsageError("the question should be an object")
        self.question, self.index, self.system = (_text(body, name) for name in ("question", "index", "system"))
        if not self.question.strip():
            raise UsageError("the question is empty")
        id_prefix = _text(body, "place") or "t1"
        self.id_prefix = id_prefix if _ID_PREFIX.fullmatch(id_prefix) else "t1"  # it becomes a part of ids in the page
        history = body.get("history", [])
        if not isinstance(history, list):
            raise UsageError("the history should be a list")
        self.history = tuple(self._turn(turn) for turn in history[-_TURNS:])

    @staticmethod
    def _turn(turn: object) -> Turn:
        if not isinstance(turn, dict):
            raise UsageError("a turn should be an object")
        return Turn(_text(turn, "question"), _text(turn, "answer"))


def _text(body: Mapping[str, object], name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        raise UsageError(f"{name!r} should be a string")
    return value


async def _send_events(pieces: AsyncGenerator[tuple[str, dict[str, Any]], None]) -> AsyncGenerator[bytes, None]:
    """Yield the pieces as server-sent events; an error is an event too, with `retry` if asking again may help."""
    try:
        async for name, data in pieces:
            yield event(name, data)
    except UserError as error:
        kind = "unsearched" if isinstance(error, QuestionError) else "failed"
        retry = {"retry": True} if isinstance(error, ModelFailureError) else {}
        yield event(kind, {"message": sentence(error_parts(error)[2]), **retry})
    except Exception:
        yield event("failed", {"message": "The server failed."})
        raise
    finally:
        await pieces.aclose()


def _permalink(reply: Reply) -> str:
    return f"/?{urlencode({'q': reply.question, 'index': reply.index, 'system': reply.system})}"


def _render_export(reply: Reply, name: str, base: str) -> tuple[str, str, str]:
    """Return the text of an export, its media type and the suffix of its file."""
    if name == "json":
        row = to_row(reply.answer.to_cited(reply.index, reply.seconds))
        row["urls"] = answer_urls(base, reply.index, reply.answer)
        return dumps(row, indent=2) + "\n", "application/json", ".json"
    from rag.answer.export import FORMATS, export_answer

    today: date = datetime.now(UTC).date()
    body = export_answer(reply.answer, name, links_to(base, reply.index), container=reply.index, accessed=today)
    return body, FORMATS[name].media_type, FORMATS[name].suffix


class OtherPages:
    """The pages of a passage and of a pasted text."""

    def __init__(self, site: Site, originals: ServedOriginals) -> None:
        self._site, self._service, self._originals = site, site.service, originals

    async def passage(self, request: Request) -> Response:
        """Show a passage with the marks of the link, its neighbours, and its pages if it is of a PDF."""
        index, identifier = request.path_params["index"], request.path_params["passage"]
        context = await self._service.run(self._service.passage, index, identifier)
        passage, marks = context.passage, read_marks(request.query_params.get("mark", ""))
        original, problem = None, ""
        try:
            original = await self._service.run(self._originals.find, index, passage.id, marks or None)
        except (NotFoundError, BusyError) as error:
            problem = str(error)
        return self._site.page(
            request,
            "passage.html.j2",
            "",
            index=index,
            shown=context,
            title=passage.title or passage.section or passage.id,
            pieces=split_at_marks(passage.text, marks),
            original=original,
            problem=problem,
            source_url=context.url_at(marks),
            before=context.before and passage_url("", index, context.before.id),
            after=context.after and passage_url("", index, context.after.id),
        )

    async def check(self, request: Request) -> Response:
        """Show the form, and after it is sent the result. The script takes the result out of this page."""
        indexes = list(self._service.indexes)
        fields = {"text": "", "sources": "", "question": "", "against": "index", "index": indexes[0]}
        result, problem, status = None, "", 200
        if request.method == "POST":
            form = await request.form(max_files=0, max_fields=20, max_part_size=8 * self._service.limits.text)
            fields |= {name: value for name in fields if isinstance(value := form.get(name), str)}
            try:
                result = await self._service.run(self._check_form, fields)
            except UserError as error:
                status, _, message = error_parts(error)
                problem = sentence(message)
        limits = self._service.limits
        return self._site.page(
            request,
            "check.html.j2",
            "Check",
            status=status,
            fields=fields,
            result=result,
            problem=problem,
            indexes=indexes,
            limit=limits.text,
            sources_limit=4 * limits.text,
            question_limit=limits.question,
        )

    def _check_form(self, fields: Mapping[str, str]) -> Markup:
        text, index, limits, sources = fields["text"], fields["index"], self._service.limits, list[Passage]()
        for label, value, max_length in (
            ("text", text, limits.text),
            ("question", fields["question"], limits.question),
            ("text of the sources", fields["sources"], 4 * limits.text),
        ):
            if len(value) > max_length:
                raise UsageError(f"the {label} has {len(value):,} characters; the maximum is {max_length:,}")
        text, question = text.replace("\r\n", "\n"), fields["question"].strip()
        judge = self._service.judge_model
        if fields["against"] == "sources":
            sources = read_sources(fields["sources"])
            answer, checks = check_text(text, judge, sources=sources, question=question, max_sentences=limits.claims)
        else:
            if index not in self._service.indexes:
                raise NotFoundError(f"no index called {index[:100]!r}")

            def attribute(question: str, answer: str) -> Answer:
                return self._service.attribute(question, answer, index)

            answer, checks = check_text(
                text, judge, attribute=attribute, question=question, max_sentences=limits.claims
            )
        numbers = {source.id: int(source.id) for source in sources} if sources else None
        view = view_answer(
            answer,
            id_prefix="c",
            link=(lambda source, _: f"#c-p{source.id}") if sources else links_to("", index),
            look=(lambda _: None) if sources else self._service.passages(index).find,
            checks=checks,
            numbers=numbers,
            untitled_prefix="Source " if sources else "",
        )
        source_label = pluralize(len(sources), "pasted source") if sources else index
        return self._site.part(
            "turn.html.j2",
            view=view,
            meta=[f"compared with {source_label}", f"judge {self._service.judge_name}"],
            permalink="",
            links=(),
            searched="",
            unanswered="Nothing to check",
            rest="Not cited" if sources else "Also found",
        )
