"""The pages: ask, passage, check, compare, export. The server renders all of them; the script only moves parts about.

`routes(service)` returns their routes. An answer goes to the browser as events: its text as it is written, the answer
with its passages, then the verdicts.
"""

import asyncio
import json
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from autoais.base.answers import to_row
from autoais.base.io.jsonl import dumps
from rag.answer.llms import Price, cost
from rag.base.errors import NotFoundError, QuestionError, UsageError, UserError
from rag.base.terminal import counted
from rag.base.types import Answer, Passage, Turn
from rag.index.index import Index
from rag.serve.checking import SentenceCheck, check_answer, check_text, read_sources
from rag.serve.examples import example_questions
from rag.serve.http import EventStream, base_of, event, last_of, retry_of, told_of
from rag.serve.links import answer_urls, links_to, passage_url, read_marks
from rag.serve.passages import Shown
from rag.serve.service import Asked, Service
from rag.serve.site import Site
from rag.serve.uploads import MOST_BYTES, UploadPages
from rag.serve.views import AnswerView, marks_of, view_answer
from rag.web.pages import sentence

_PLACE = re.compile(r"[a-z][a-z0-9]{0,11}")
_KEPT = 256  # answers kept for exports
_TURNS = 20  # of a thread, the last ones
_EXPORTS = {"markdown": "Markdown", "html": "HTML", "json": "JSON", "bibtex": "BibTeX", "csl": "CSL-JSON"}
_SOON = 0.5  # seconds that the first page waits for example questions


def routes(
    service: Service, *, uploads: Sequence[str] = (), price: Price | None = None, base_url: str | None = None
) -> list[Route]:
    """Return the routes of the pages, with those of their static files.

    Documents may be added to the indexes named in `uploads`. With a `price`, answers of language models say their cost.
    Links in exported files begin with `base_url`, by default the address of the request.
    Raises `UsageError` for an index that documents cannot be added to.
    """
    site = Site(service, uploads=bool(uploads))
    ask, other = AskPages(site, price, base_url), OtherPages(site)
    found = [
        Route("/", site.guarded(ask.page)),
        Route("/ask", ask.events, methods=["POST"]),
        Route("/compare", site.guarded(ask.compare)),
        Route("/export/{format}", site.guarded(ask.export)),
        Route("/check", site.guarded(other.check), methods=["GET", "POST"]),
        Route("/p/{index}/{passage:path}", site.guarded(other.passage)),
        Route("/static/{name:path}", site.pages.static),
    ]
    if uploads:
        pages = UploadPages(site, uploads)
        larger = Middleware(RequestBodyLimitMiddleware, max_body_size=MOST_BYTES + (1 << 20))
        found += [
            Route("/documents", site.guarded(pages.page)),
            Route("/documents/{index}", site.guarded(pages.upload), methods=["POST"], middleware=[larger]),
            Route("/documents/{index}/progress", site.guarded(pages.progress)),
        ]
    return found


class Kept:
    """The answers that were shown last, so that an export is of what was shown. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[str, str, str], tuple[Index, Asked]] = OrderedDict()

    def keep(self, asked: Asked, index: Index) -> None:
        """Keep an answer, and forget the oldest."""
        with self._lock:
            key = (asked.question, asked.index, asked.system)
            self._answers[key] = (index, asked)
            self._answers.move_to_end(key)
            if len(self._answers) > _KEPT:
                self._answers.popitem(last=False)

    def find(self, question: str, index: str, system: str, opened: Index) -> Asked | None:
        """Return the answer, unless the index has been replaced since."""
        with self._lock:
            found = self._answers.get((question, index, system))
        return found[1] if found is not None and found[0] is opened else None


class AskPages:
    """The pages that answer questions."""

    def __init__(self, site: Site, price: Price | None, base_url: str | None) -> None:
        self._site, self._service, self._price, self._base_url = site, site.service, price, base_url
        self._kept = Kept()
        self._examples: dict[str, tuple[Index, Future[list[str]]]] = {}

    # --- pages --------------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """Show the question box; with `q` and `whole`, also the answer. The script asks `q` by itself."""
        question, index, system = self._asked_for(request.query_params)
        turn = None
        if question and "whole" in request.query_params:
            turn = await self._whole(question, index, system, "t1")
        examples = [] if question else await self._examples_of(index)
        manifest = self._service.indexes[index].manifest
        number = int(manifest["passages"])
        chosen = {"index": index, "system": system}
        return self._site.page(
            request,
            "ask.html.j2",
            "Ask",
            question=question,
            turn=turn,
            whole=f"/?{urlencode({'q': question, **chosen, 'whole': 1})}",
            here_query=urlencode(chosen),
            told=f"This server searches {counted(number, 'passage')} of {index}.",
            limit=self._service.limits.question,
            indexes=list(self._service.indexes),
            systems=list(self._service.systems),
            index=index,
            system=system,
            examples=[{"question": one, "href": f"/?{urlencode({'q': one, **chosen})}"} for one in examples],
        )

    async def compare(self, request: Request) -> Response:
        """Show a question's answers side by side."""
        choices = [f"{system}@{index}" for index in self._service.indexes for system in self._service.systems]
        given = request.query_params
        a = self._choice(given.get("a") or choices[0])
        b = self._choice(given.get("b") or choices[min(1, len(choices) - 1)])
        question = self._question(given)
        sides = []
        if question and "whole" in given:
            for place, (system, index) in (("a", a), ("b", b)):
                turn = await self._whole(question, index, system, place)
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
            whole=f"/compare?{urlencode({'q': question, 'a': '@'.join(a), 'b': '@'.join(b), 'whole': 1})}",
        )

    async def export(self, request: Request) -> Response:
        """Return an answer as a file: the one that was shown, or if it is no longer kept, the same question's again."""
        name = request.path_params["format"]
        if name not in _EXPORTS:
            raise NotFoundError(f"no format {name[:40]!r}; there are: {', '.join(_EXPORTS)}")
        question, index, system = self._asked_for(request.query_params)
        if not question:
            raise UsageError("there is no question to export the answer of")
        asked = self._kept.find(question, index, system, self._service.indexes[index])
        if asked is None:
            work = self._service.run_question(index, system, self._service.partials, question, index, system)
            asked = await last_of(work)
            self._kept.keep(asked, self._service.indexes[index])
        body, media, suffix = _exported(asked, name, base_of(request, self._base_url))
        slug = re.sub(r"[^a-z0-9]+", "-", question.lower()).strip("-")[:60] or "answer"
        headers = {"Content-Disposition": f'attachment; filename="{slug}{suffix}"'}
        return Response(body.encode("utf-8", "replace"), media_type=media, headers=headers)

    def _asked_for(self, given: Mapping[str, str]) -> tuple[str, str, str]:
        """The question, the index and the system of a link; raises `NotFoundError` for names that are not served."""
        system, index = self._choice(f"{given.get('system', '')}@{given.get('index', '')}")
        return self._question(given), index, system

    def _question(self, given: Mapping[str, str]) -> str:
        question, most = given.get("q", "").strip(), self._service.limits.question
        if len(question) > most:
            raise UsageError(f"the question has {len(question):,} characters; the maximum is {most:,}")
        return question

    def _choice(self, name: str) -> tuple[str, str]:
        """System and index of `system@index`; an empty name is the first."""
        system, _, index = name.rpartition("@")
        system = system or self._service.systems[0]
        index = index or next(iter(self._service.indexes))
        for what, one, served in (("system", system, self._service.systems), ("index", index, self._service.indexes)):
            if one not in served:
                raise NotFoundError(f"no {what} called {one[:100]!r}; there are: {', '.join(served)}")
        return system, index

    # --- examples -----------------------------------------------------------------------------------------------------

    async def _examples_of(self, name: str) -> list[str]:
        """The examples of an index; none if they are not found soon, and then the next page has them."""
        index = self._service.indexes[name]
        if name not in self._examples or self._examples[name][0] is not index:
            found: Future[list[str]] = Future()
            self._examples[name] = (index, found)
            threading.Thread(target=_look_for_examples, args=(index, found), daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_SOON):
                return await asyncio.shield(asyncio.wrap_future(self._examples[name][1]))
        return []

    # --- answers ------------------------------------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        """Answer a question as server-sent events: `text`, `answer`, `verdicts`, or `failed` with a message."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return JSONResponse({"message": "The question should be sent as JSON."}, 415)  # no form can send it
        try:
            given = _Question(json.loads(await request.body()))
            system, index = self._choice(f"{given.system}@{given.index}")
            pieces = self._service.run_question(index, system, self._events, given, index, system)
        except UserError as error:
            status, _, message = told_of(error)
            return JSONResponse({"message": sentence(message)}, status, retry_of(status))
        except (ValueError, RecursionError, ClientDisconnect):
            return JSONResponse({"message": "The question is not JSON."}, 400)
        return EventStream(_sent(pieces))

    def _events(self, given: "_Question", index: str, system: str) -> Iterator[tuple[str, dict[str, Any]]]:
        opened = self._service.indexes[index]
        for piece in self._service.stream(given.question, index, system, history=given.history):
            if isinstance(piece, str):
                yield "text", {"text": piece}  # also without text, so that the work can be stopped
                continue
            self._kept.keep(piece, opened)
            view = self._view(piece, given.place)
            told = piece.answer.headline or next((one.text for one in piece.answer.sentences), "")
            yield (
                "answer",
                {
                    "html": self._turn(piece, view, given.question),
                    "turn": None if view.abstained else {"question": piece.question, "answer": told[:2_000]},
                    "permalink": _permalink(piece),
                    "sentences": len(view.sentences),
                    "citations": sum(len(one.cites) for one in view.sentences),
                    "answered": not view.abstained,
                },
            )
            if not view.abstained:
                judged = self._view(piece, given.place, self._checks(piece.answer))
                yield "verdicts", {"html": self._site.part("verdicts.html.j2", view=judged)}

    async def _whole(self, question: str, index: str, system: str, place: str) -> Markup:
        """The answer with its verdicts, for a browser without the script."""

        def turns() -> Iterator[Markup]:
            for asked in self._service.stream(question, index, system):
                if isinstance(asked, str):
                    yield Markup()  # so that the work can be stopped
                    continue
                self._kept.keep(asked, self._service.indexes[index])
                yield self._turn(asked, self._view(asked, place, self._checks(asked.answer)), question)

        return await last_of(self._service.run_question(index, system, turns))

    def _checks(self, answer: Answer) -> list[SentenceCheck] | None:
        return None if answer.abstained else check_answer(answer, self._service.judge_model)

    def _view(self, asked: Asked, place: str, checks: Sequence[SentenceCheck] | None = None) -> AnswerView:
        return view_answer(
            asked.answer,
            place=place,
            urls=answer_urls("", asked.index, asked.answer),
            look=looking_in(self._service, asked.index),
            checks=checks,
        )

    def _turn(self, asked: Asked, view: AnswerView, question: str) -> Markup:
        given = urlencode({"q": asked.question, "index": asked.index, "system": asked.system})
        return self._site.part(
            "turn.html.j2",
            view=view,
            meta=self._meta(asked, view),
            permalink=_permalink(asked),
            links=[(label, f"/export/{name}?{given}") for name, label in _EXPORTS.items()],
            searched="" if asked.question.strip() == question.strip() else asked.question,
            unanswered="Not answered by these sources",
            rest="Also read",
        )

    def _meta(self, asked: Asked, view: AnswerView) -> list[str]:
        """Who answered from what, and what it cost."""
        found = [
            asked.system,
            asked.index,
            f"{asked.seconds:.2f} s" if asked.seconds < 10 else f"{asked.seconds:.0f} s",
        ]
        found.append(f"{counted(view.read, 'passage')} read")
        if view.tokens is not None:
            read, written = view.tokens
            found.append(f"{read:,} tokens in, {written:,} out")
            if self._price is not None:
                found.append(f"cost {cost(read, written, self._price):.5f}")
        else:
            found.append("no language model")
        return found


def _look_for_examples(index: Index, found: "Future[list[str]]") -> None:
    """Find questions that the index answers, by a system that takes milliseconds, whatever is served."""
    from rag.answer.systems import open_system

    try:
        found.set_result(example_questions(index, open_system("reader", index).ask))
    except Exception:  # noqa: BLE001  (an index that the reader cannot search has no examples, and its pages work)
        found.set_result([])


class _Question:
    """A question as the script sends it; raises `UsageError` for another shape."""

    def __init__(self, given: object) -> None:
        if not isinstance(given, dict):
            raise UsageError("the question should be an object")
        self.question, self.index, self.system = (_text(given, name) for name in ("question", "index", "system"))
        if not self.question.strip():
            raise UsageError("the question is empty")
        place = _text(given, "place") or "t1"
        self.place = place if _PLACE.fullmatch(place) else "t1"  # it becomes a part of ids in the page
        history = given.get("history", [])
        if not isinstance(history, list):
            raise UsageError("the history should be a list")
        self.history = tuple(self._turn(one) for one in history[-_TURNS:])

    @staticmethod
    def _turn(given: object) -> Turn:
        if not isinstance(given, dict):
            raise UsageError("a turn should be an object")
        return Turn(_text(given, "question"), _text(given, "answer"))


def _text(given: Mapping[str, object], name: str) -> str:
    found = given.get(name, "")
    if not isinstance(found, str):
        raise UsageError(f"{name!r} should be a string")
    return found


async def _sent(pieces: AsyncGenerator[tuple[str, dict[str, Any]], None]) -> AsyncGenerator[bytes, None]:
    """The pieces as server-sent events; what goes wrong on the way is one too."""
    try:
        async for name, data in pieces:
            yield event(name, data)
    except UserError as error:
        kind = "unsearched" if isinstance(error, QuestionError) else "failed"
        yield event(kind, {"message": sentence(told_of(error)[2])})
    except Exception:
        yield event("failed", {"message": "The server has a fault."})
        raise
    finally:
        await pieces.aclose()


def _permalink(asked: Asked) -> str:
    return f"/?{urlencode({'q': asked.question, 'index': asked.index, 'system': asked.system})}"


def _exported(asked: Asked, name: str, base: str) -> tuple[str, str, str]:
    """The text of a file, its media type and the end of its name."""
    if name == "json":
        row = to_row(asked.answer.to_cited(asked.index, asked.seconds))
        row["urls"] = answer_urls(base, asked.index, asked.answer)
        return dumps(row, indent=2) + "\n", "application/json", ".json"
    from rag.answer.export import FORMATS, export_answer

    today: date = datetime.now(UTC).date()
    body = export_answer(asked.answer, name, links_to(base, asked.index), container=asked.index, accessed=today)
    return body, FORMATS[name].media_type, FORMATS[name].suffix


def looking_in(service: Service, index: str) -> Callable[[str], Shown | None]:
    """Return a function that looks up the passages of an index; an upload may have removed one meanwhile."""

    def look(identifier: str) -> Shown | None:
        try:
            return service.passage(index, identifier)
        except NotFoundError:
            return None

    return look


class OtherPages:
    """The pages of a passage, and of a pasted text."""

    def __init__(self, site: Site) -> None:
        self._site, self._service = site, site.service

    async def passage(self, request: Request) -> Response:
        """Show a passage with the marks of the link, and its neighbours."""
        index, identifier = request.path_params["index"], request.path_params["passage"]
        shown = await self._service.run(self._service.passage, index, identifier)
        passage = shown.passage
        return self._site.page(
            request,
            "passage.html.j2",
            "",
            index=index,
            shown=shown,
            title=passage.title or passage.section or passage.id,
            pieces=marks_of(passage.text, read_marks(request.query_params.get("mark", ""))),
            before=shown.before and passage_url("", index, shown.before.id),
            after=shown.after and passage_url("", index, shown.after.id),
        )

    async def check(self, request: Request) -> Response:
        """Show the form; once it is sent, check the text. The script takes the result from the same page."""
        indexes = list(self._service.indexes)
        given = {"text": "", "sources": "", "question": "", "against": "index", "index": indexes[0]}
        result, problem, status = None, "", 200
        if request.method == "POST":
            form = await request.form(max_files=0, max_fields=20, max_part_size=8 * self._service.limits.text)
            given |= {name: value for name in given if isinstance(value := form.get(name), str)}
            try:
                result = await self._service.run(self._checked, given)
            except UserError as error:
                status, _, message = told_of(error)
                problem = sentence(message)
        limits = self._service.limits
        return self._site.page(
            request,
            "check.html.j2",
            "Check",
            status=status,
            given=given,
            result=result,
            problem=problem,
            indexes=indexes,
            limit=limits.text,
            sources_limit=4 * limits.text,
            question_limit=limits.question,
        )

    def _checked(self, given: Mapping[str, str]) -> Markup:
        text, index, limits, sources = given["text"], given["index"], self._service.limits, list[Passage]()
        for what, value, most in (
            ("text", text, limits.text),
            ("question", given["question"], limits.question),
            ("text of the sources", given["sources"], 4 * limits.text),
        ):
            if len(value) > most:
                raise UsageError(f"the {what} has {len(value):,} characters; the maximum is {most:,}")
        text, question = text.replace("\r\n", "\n"), given["question"].strip()
        judge = self._service.judge_model
        if given["against"] == "sources":
            sources = read_sources(given["sources"])
            answer, checks = check_text(text, judge, sources=sources, question=question, most=limits.claims)
        else:
            if index not in self._service.indexes:
                raise NotFoundError(f"no index called {index[:100]!r}")

            def attribute(question: str, answer: str) -> Answer:
                return self._service.attribute(question, answer, index)

            answer, checks = check_text(text, judge, attribute=attribute, question=question, most=limits.claims)
        if sources:
            numbers = {source.id: int(source.id) for source in sources}
            urls = {source.id: f"#c-p{source.id}" for source in sources}
        else:
            numbers, urls = None, answer_urls("", index, answer)
        view = view_answer(
            answer,
            place="c",
            urls=urls,
            look=(lambda _: None) if sources else looking_in(self._service, index),
            checks=checks,
            numbers=numbers,
            untitled="Source " if sources else "",
        )
        compared = counted(len(sources), "pasted source") if sources else index
        return self._site.part(
            "turn.html.j2",
            view=view,
            meta=[f"compared with {compared}", f"judge {self._service.judge_name}"],
            permalink="",
            links=(),
            searched="",
            unanswered="Nothing to check",
            rest="Not cited" if sources else "Also found",
        )
