"""The pages: ask, passage, check, compare, export. The server renders all HTML; the script only moves parts of it.

`routes(service)` returns their routes. An answer goes to the browser as events: drafts, which have the sentences that
are complete and the passages that these cite, the answer, then the verdicts.
"""

import asyncio
import re
import secrets
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rag.answer.llms import Price
from rag.base.errors import BusyError, ModelFailureError, NotFoundError, QuestionError, UsageError, UserError
from rag.base.terminal import pluralize
from rag.base.types import Answer, Passage, Turn
from rag.index.index import Index
from rag.index.joined import split_names
from rag.serve.checking import check_text, read_sources
from rag.serve.document_pages import DocumentPages, has_documents
from rag.serve.examples import example_questions
from rag.serve.feedback import FeedbackFile, FeedbackPages
from rag.serve.http import EventStream, base_of, error_parts, event, json_response, last_item, read_json, with_messages
from rag.serve.library import Libraries
from rag.serve.links import links_to, passage_url, read_marks
from rag.serve.originals import OriginalPages, ServedOriginals
from rag.serve.recent import RecentAnswers
from rag.serve.service import Service
from rag.serve.site import Site
from rag.serve.threads import ThreadPages
from rag.serve.turns import AnsweredTurn, TurnRenderer, check_export, export_turn, read_place
from rag.serve.uploads import Documents
from rag.serve.views import split_at_marks, view_answer
from rag.web.pages import sentence

_THREAD = re.compile(r"[a-z0-9]{8,32}")
_TURNS = 20  # of a thread, the last ones
_EXAMPLES = 4
_SOON, _LATER = 0.5, 30.0  # seconds that the first page and its script wait for example questions


def routes(
    service: Service,
    documents: Mapping[str, Documents],
    libraries: Libraries,
    *,
    price: Price | None = None,
    base_url: str | None = None,
    feedback: Path | None = None,
    originals: ServedOriginals | None = None,
) -> list[Route]:
    """Return the routes of the pages, with those of their static files.

    `documents` are those that people may change, by the name of the index. With a `price`, answers of language models
    say their cost. Links in exported files begin with `base_url`, by default the address of the request. Without
    `originals`, none are shown. With `feedback`, people may rate answers: ratings go to this file
    (`rag.serve.feedback`). Raises `RagError` for a file that cannot be written.
    """
    lists_documents = any(map(has_documents, service.indexes.values()))
    originals = originals or ServedOriginals(service, is_allowed=False)
    site = Site(service, documents=lists_documents, originals=originals.is_allowed)
    ratings = None if feedback is None else FeedbackFile(feedback)
    recent, turns = RecentAnswers(), TurnRenderer(site, price, ratings)
    ask, threads = AskPages(site, turns, recent, originals, base_url), ThreadPages(service, turns, base_url)
    other = OtherPages(site, originals)
    files = OriginalPages(service, originals)
    page_routes = [
        Route("/", site.with_error_pages(ask.page)),
        Route("/examples", with_messages(ask.examples)),
        Route("/t/{thread}", site.with_error_pages(ask.thread)),
        Route("/ask", with_messages(ask.events), methods=["POST"]),
        Route("/thread", with_messages(threads.show), methods=["POST"]),
        Route("/verdicts", with_messages(threads.check), methods=["POST"]),
        Route("/thread/{format}", with_messages(threads.export), methods=["POST"]),
        Route("/compare", site.with_error_pages(ask.compare)),
        Route("/export/{format}", site.with_error_pages(ask.export), methods=["GET"]),
        Route("/export/{format}", with_messages(threads.export_one), methods=["POST"]),
        Route("/check", site.with_error_pages(other.check), methods=["GET", "POST"]),
        Route("/p/{index}/{passage:path}", site.with_error_pages(other.passage)),
        Route("/original/{index}/{passage:path}", site.with_error_pages(files.picture)),
        Route("/view/{index}/{passage:path}", site.with_error_pages(files.view)),
        Route("/download/{index}/{passage:path}", site.with_error_pages(files.download)),
        Route("/static/{name:path}", site.pages.static),
    ]
    if ratings is not None:
        rate = FeedbackPages(service, recent, ratings).rate
        page_routes.append(Route("/feedback", with_messages(rate), methods=["POST"]))
    if lists_documents:
        page_routes += DocumentPages(site, documents, libraries).routes()
    return page_routes


class AskPages:
    """The pages that answer questions."""

    def __init__(
        self, site: Site, turns: TurnRenderer, recent: RecentAnswers, originals: ServedOriginals, base_url: str | None
    ) -> None:
        self._site, self._service, self._base_url = site, site.service, base_url
        self._recent, self._turns, self._originals = recent, turns, originals
        self._examples: dict[str, tuple[Index, Future[list[str]]]] = {}

    # --- pages --------------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """Show the question box; with `q` and `whole`, also the answer. The script asks `q` by itself."""
        return await self._page(request)

    async def thread(self, request: Request) -> Response:
        """Show a thread, which the script takes from where the browser stores it."""
        thread = request.path_params["thread"]
        if not _THREAD.fullmatch(thread):
            raise NotFoundError(f"no thread {thread[:40]!r}")
        return await self._page(request, thread)

    async def _page(self, request: Request, thread: str = "") -> Response:
        question, index, system = self._read_link(request.query_params)
        turn, status = None, 200
        selection = {"index": index, "system": system}
        whole = f"/?{urlencode({'q': question, **selection, 'whole': 1})}"
        if question and "whole" in request.query_params:
            try:
                turn = await self._whole(question, index, system, "t1", base_of(request, self._base_url))
            except ModelFailureError as error:
                turn, status = self._failure(error, whole), 502
        examples = [] if question or thread else await self._examples_of(index, _SOON)
        number = int(self._service.index(index).manifest["passages"])
        choices = self._service.choices
        return self._site.page(
            request,
            "ask.html.j2",
            "Ask",
            status=status,
            question=question,
            thread=thread,
            unanswered=question if status == 502 else "",
            turn=turn,
            whole=whole,
            here_query=urlencode(selection),
            collection=f"This server searches {pluralize(number, 'passage')} of {' and '.join(split_names(index))}.",
            limit=self._service.limits.question,
            indexes=choices if index in choices else [*choices, index],
            systems=list(self._service.systems),
            index=index,
            system=system,
            examples=self._example_links(examples or [], selection),
            later=None if question or thread or examples is not None else f"/examples?{urlencode(selection)}",
        )

    async def compare(self, request: Request) -> Response:
        """Show a question's answers side by side."""
        choices = [f"{system}@{index}" for index in self._service.choices for system in self._service.systems]
        names_index = len(self._service.indexes) > 1
        labels = {choice: choice if names_index else choice.rpartition("@")[0] for choice in choices}
        parameters = request.query_params
        a = self._choice(parameters.get("a") or choices[0])
        b = self._choice(parameters.get("b") or choices[min(1, len(choices) - 1)])
        question = self._question(parameters)
        whole = f"/compare?{urlencode({'q': question, 'a': '@'.join(a), 'b': '@'.join(b), 'whole': 1})}"
        sides = []
        if question and "whole" in parameters:
            for id_prefix, (system, index) in (("a", a), ("b", b)):
                try:
                    turn = await self._whole(question, index, system, id_prefix, base_of(request, self._base_url))
                except ModelFailureError as error:  # the other side may have an answer
                    turn = self._failure(error, whole)
                sides.append((labels.get(f"{system}@{index}", f"{system}@{index}"), turn))
        return self._site.page(
            request,
            "compare.html.j2",
            "Compare",
            question=question,
            choices=choices,
            labels=labels,
            a="@".join(a),
            b="@".join(b),
            sides=sides,
            limit=self._service.limits.question,
            whole=whole,
        )

    async def export(self, request: Request) -> Response:
        """Return an answer as a file: the one that the page shows, or a new one if that is no longer stored."""
        name = request.path_params["format"]
        check_export(name)
        question, index, system = self._read_link(request.query_params)
        if not question:
            raise UsageError("there is no question to export the answer of")
        reply = self._recent.find(question, index, system, self._service.index(index))
        if reply is None:
            work = self._service.run_question(index, system, self._service.stream, question, index, system)
            reply = await self._service.run(self._originals.with_pages, await last_item(work))
            self._recent.add(reply)
        return export_turn(AnsweredTurn.of(reply, question), name, base_of(request, self._base_url))

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
        if system not in self._service.systems:
            raise NotFoundError(f"no system called {system[:100]!r}; there are: {', '.join(self._service.systems)}")
        # In an address that a person types, a plus is a space.
        return system, self._service.index_name(index.replace(" ", "+") or None)

    # --- examples -----------------------------------------------------------------------------------------------------

    async def examples(self, request: Request) -> Response:
        """Return example questions of an index for a page that was shown before they were there."""
        _, index, system = self._read_link(request.query_params)
        questions = await self._examples_of(index, _LATER)
        return json_response({"examples": self._example_links(questions or [], {"index": index, "system": system})})

    @staticmethod
    def _example_links(examples: Sequence[str], selection: Mapping[str, str]) -> list[dict[str, str]]:
        return [{"question": example, "href": f"/?{urlencode({'q': example, **selection})}"} for example in examples]

    async def _examples_of(self, name: str, seconds: float) -> list[str] | None:
        """Return the examples of an index, or of several in turn; None if the search takes longer than `seconds`."""
        lists = await asyncio.gather(*(self._examples_of_index(part, seconds) for part in split_names(name)))
        if any(examples is None for examples in lists):
            return None
        in_turn = chain.from_iterable(zip_longest(*(examples or [] for examples in lists)))
        return [example for example in in_turn if example][:_EXAMPLES]

    async def _examples_of_index(self, name: str, seconds: float) -> list[str] | None:
        index = self._service.index(name)
        if name not in self._examples or self._examples[name][0] is not index:
            future: Future[list[str]] = Future()
            self._examples[name] = (index, future)
            threading.Thread(target=_look_for_examples, args=(index, future), daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await asyncio.shield(asyncio.wrap_future(self._examples[name][1]))
        return None

    # --- answers ------------------------------------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        """Answer a question as server-sent events: `draft`, `answer`, `verdicts`, or `failed` with a message."""
        form = _QuestionForm(await read_json(request))
        system, index = self._choice(f"{form.system}@{form.index}")
        base = base_of(request, self._base_url)
        return EventStream(
            _send_events(self._service.run_question(index, system, self._events, form, index, system, base))
        )

    def _events(
        self, form: "_QuestionForm", index: str, system: str, base: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        length = 0
        for reply in self._service.stream(form.question, index, system, history=form.history, identifier=_new_id()):
            if not reply.is_complete:
                turn = AnsweredTurn.of(reply, form.question)
                is_longer = len(reply.answer.sentences) > length
                length = len(reply.answer.sentences)
                html = self._turns.draft(turn, form.id_prefix) if is_longer else ""
                yield "draft", {"html": html}  # also an empty one, so that the work can be stopped
                continue
            reply = self._originals.with_pages(reply)
            self._recent.add(reply)
            turn = AnsweredTurn.of(reply, form.question)
            yield "answer", self._answer_event(turn, form.id_prefix, base)
            judged_turn = turn.with_checks(self._service.judge_model)
            if judged_turn.checks is not None:
                yield "verdicts", self._turns.verdicts(judged_turn, form.id_prefix)

    def _answer_event(self, turn: AnsweredTurn, id_prefix: str, base: str) -> dict[str, Any]:
        return {
            "html": self._turns.answer(turn, id_prefix, base),
            "turn": turn.history,
            "permalink": turn.permalink,
            "sentences": len(turn.answer.sentences),
            "citations": sum(len(sentence.cites) for sentence in turn.answer.sentences),
            "answered": turn.history is not None,
            "record": self._turns.record(turn),
        }

    async def _whole(self, question: str, index: str, system: str, id_prefix: str, base: str) -> Markup:
        """The answer with its verdicts, for a browser without the script."""

        def turns() -> Iterator[Markup]:
            for reply in self._service.stream(question, index, system, identifier=_new_id()):
                if not reply.is_complete:
                    yield Markup()  # so that the work can be stopped
                    continue
                reply = self._originals.with_pages(reply)
                self._recent.add(reply)
                turn = AnsweredTurn.of(reply, question).with_checks(self._service.judge_model)
                yield self._turns.answer(turn, id_prefix, base)

        return await last_item(self._service.run_question(index, system, turns))

    def _failure(self, error: ModelFailureError, retry: str) -> Markup:
        """What stands in the place of an answer; `retry` is the address that asks again."""
        return self._site.part("failure.html.j2", message=sentence(error), retry=retry)


def _look_for_examples(index: Index, future: "Future[list[str]]") -> None:
    """Find questions that the index answers. The reader is asked, as it takes milliseconds."""
    from rag.answer.systems import open_system

    try:
        future.set_result(example_questions(index, open_system("reader", index).ask))
    except Exception:  # noqa: BLE001  (an index that the reader cannot search has no examples, and its pages work)
        future.set_result([])


def _new_id() -> str:
    """An id of an answer, which no other answer has."""
    return f"q-{secrets.token_hex(6)}"


class _QuestionForm:
    """A question as the script sends it; raises `UsageError` for another shape."""

    def __init__(self, body: object) -> None:
        if not isinstance(body, dict):
            raise UsageError("the question should be an object")
        self.question, self.index, self.system = (_text(body, name) for name in ("question", "index", "system"))
        if not self.question.strip():
            raise UsageError("the question is empty")
        self.id_prefix = read_place(body)
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
    """Yield the pieces as server-sent events; an error is an event too."""
    try:
        async for name, data in pieces:
            yield event(name, data)
    except UserError as error:
        kind = "unsearched" if isinstance(error, QuestionError) else "failed"
        yield event(kind, {"message": sentence(error_parts(error)[2])})
    except Exception:
        yield event("failed", {"message": "The server failed."})
        raise
    finally:
        await pieces.aclose()


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
        indexes = self._service.choices
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
            index = self._service.index_name(index)

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
            uncited_note="" if sources else "No passage of the index supports it",
        )
        source_label = pluralize(len(sources), "pasted source") if sources else index
        return self._site.part(
            "turn.html.j2",
            view=view,
            meta=[f"compared with {source_label}", f"judge {self._service.judge_name}"],
            permalink="",
            links=(),
            copies=(),
            feedback="",
            searched="",
            unanswered="Nothing to check",
            rest="Not cited" if sources else "Also found",
        )
