"""Works through an annotation study with simulated annotators, each in a browser of their own. No person is involved.

python -m scripts.simulate_study STUDY [--people 5] [--seed 13] [--url http://127.0.0.1:8000] [--out simulation.json]

The annotators are called `simulated-1`, `simulated-2` and so on, and the title of the study must say that it is a
simulation. They press the keys that the pages show, in headless Chromium, and know only what the pages show. The
labels come from a noise model: how many of the content words of the judged text the source has decides what is right,
and each annotator errs with a probability of their own. They also flag items, take presses back, press twice, reload
the page, and answer in a second tab that is out of date. The labels say nothing about the answers; they test the way
from questions to an agreement report.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.text.words import content_stems
from rag.annotate import open_study
from rag.annotate.app import create_app
from scripts.browser import CHROMIUM, serving

_ERRORS = (0.04, 0.07, 0.10, 0.13, 0.16)  # how often each annotator errs; more people begin again at the first
_UNCLEAR = 0.06  # share of texts that are not interpretable, informative or worthy
_SUPPORT_SHARES = (0.75, 0.45)  # shares of content words from which a text is supported, and in part
_MODEL = {
    "error_rates": _ERRORS,
    "unclear": _UNCLEAR,
    "supported_from": _SUPPORT_SHARES[0],
    "partly_supported_from": _SUPPORT_SHARES[1],
}


@dataclass(frozen=True)
class Habits:
    """Shares of the questions at which something else than a plain verdict happens."""

    flagged: float = 0.01
    undone: float = 0.01
    doubled: float = 0.02
    reloaded: float = 0.02
    in_two_tabs: float = 0.02


_PRESS_AGAIN = """([press, key]) => {
  const observer = new MutationObserver(() => {
    if (document.querySelector(`#press input[name=press][value='${press}']`)) return;
    observer.disconnect();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    document.querySelector(".verdicts button")?.click();
  });
  observer.observe(document.body, { childList: true, subtree: true });
}"""
_READ_PAGE = """() => {
  const text = (css) => [...document.querySelectorAll(css)].map((one) => one.textContent).join(" ");
  const form = document.getElementById("press");
  if (!form) return { end: text("main") };
  return {
    press: form.elements.press.value,
    item: form.querySelector("[name=item]").value,
    question: form.elements.question.value,
    training: form.elements.phase.value === "training",
    judged: text(".judged") || text(".answer"),
    source: text(".passage, .cells, .source h3, .source > p"),
    sourced: document.querySelector(".sources") !== null,
    evidence: form.dataset.evidence,
    reason: form.dataset.reason,
    sentences: [...document.querySelectorAll("label.sentence")].map((one) => one.textContent),
    options: [...document.querySelectorAll(".verdicts button")].map((one) => ({
      value: one.value, key: one.dataset.key, evidence: one.hasAttribute("data-evidence"),
    })),
    flags: [...document.querySelectorAll("[data-flag-key]")].map((one) => ({
      value: one.value, key: one.dataset.flagKey,
    })),
    undo: !document.querySelector("#undo button").disabled,
  };
}"""


@dataclass
class Log:
    """What one simulated annotator did."""

    verdicts: Counter[str] = field(default_factory=Counter)
    flags: int = 0
    undos: int = 0
    doubles: int = 0
    reloads: int = 0
    tabs: int = 0
    keys: int = 0
    meant: dict[str, dict[str, str]] = field(default_factory=dict)
    """What was meant to be recorded: by item, as its page calls it, the verdict on each question, and the flag."""
    milliseconds: list[float] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    end: str = ""


def chance(*parts: object) -> float:
    """Return a number from 0 to 1 that follows from the parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def right_option(page: dict[str, Any], seed: int) -> int:
    """Return the place of the option that the model takes for right; the first is the most favourable one."""
    options = [option["value"] for option in page["options"]]
    if not page["sourced"]:
        return int(chance(seed, "clear", page["question"], page["judged"]) < _UNCLEAR)
    claim_stems, source_stems = set(content_stems(page["judged"])), set(content_stems(page["source"]))
    share = len(claim_stems & source_stems) / len(claim_stems) if claim_stems else 0.0
    if options[0] == "5":  # from 5, fully, to 1, not at all
        return min(4, int(5 * (1 - share)))
    if "partial" in options:
        return 0 if share >= _SUPPORT_SHARES[0] else 1 if share >= _SUPPORT_SHARES[1] else 2
    return 0 if share >= _SUPPORT_SHARES[0] else 1


def choose_option(page: dict[str, Any], person: int, seed: int) -> int:
    """Return the place of the option that a person chooses: the right one, or one beside it."""
    right, last = right_option(page, seed), min(3, len(page["options"])) - 1
    last = 4 if page["options"][0]["value"] == "5" else last
    draw = chance(seed, person, page["question"], page["judged"], page["source"])
    error = _ERRORS[person % len(_ERRORS)]
    if draw >= error:
        return right
    return right + 1 if right == 0 or (right < last and draw < error / 2) else right - 1


class Annotator:
    """A simulated annotator, who reads the page and presses its keys."""

    def __init__(self, page: Page, person: int, seed: int, habits: Habits) -> None:
        self._page, self._person, self._seed, self._habits = page, person, seed, habits
        self.log = Log()
        page.on("console", lambda message: self.log.console.append(message.text))
        page.on("pageerror", lambda error: self.log.console.append(str(error)))

    async def work(self, link: str) -> Log:
        """Judge until nothing is left."""
        await self._page.goto(link)
        await self._page.wait_for_function("location.pathname === '/'")
        await self._wait()
        while "press" in (form := await self._page.evaluate(_READ_PAGE)):
            await self._judge(form)
        self.log.end = " ".join(form["end"].split())
        return self.log

    async def _judge(self, form: dict[str, Any]) -> None:
        form = await self._reload(form)
        if form["flags"] and not form["training"] and self._happens("flag", self._habits.flagged, form):
            await self._key("x")
            await self._press(form["flags"][-1]["key"], form)
            self.log.flags += 1
            self.log.meant.setdefault(form["item"], {})["flag"] = form["flags"][-1]["value"]
            return
        option = form["options"][choose_option(form, self._person, self._seed)]
        if option["evidence"] and form["sentences"]:
            await self._choose(form)
        if form["reason"] == "required":
            await self._key("r")
            await self._page.keyboard.type("simulated")
            await self._key("Escape")
        await self._answer(option, form)
        self.log.verdicts[f"{form['question']} {option['value']}"] += 1
        if form["training"]:
            return
        self.log.meant.setdefault(form["item"], {})[form["question"]] = option["value"]
        if self._happens("undo", self._habits.undone, form):
            after = await self._page.evaluate(_READ_PAGE)
            if after.get("undo"):
                await self._press("u", after)
                form_after = await self._page.evaluate(_READ_PAGE)
                if option["evidence"] and form_after["sentences"]:
                    await self._choose(form_after)
                await self._press(option["key"], form_after)
                self.log.undos += 1

    def _happens(self, what: str, share: float, form: dict[str, Any]) -> bool:
        return chance(self._seed, self._person, what, form["question"], form["judged"], form["source"]) < share

    async def _reload(self, form: dict[str, Any]) -> dict[str, Any]:
        """Perhaps load the page again; return what it shows."""
        if not self._happens("reload", self._habits.reloaded, form):
            return form
        self.log.reloads += 1
        await self._page.reload()
        await self._wait()
        found: dict[str, Any] = await self._page.evaluate(_READ_PAGE)
        return found

    async def _answer(self, option: dict[str, Any], form: dict[str, Any]) -> None:
        """Give the verdict: perhaps twice, as by a double click, or then again in a tab that is out of date."""
        other = None
        if not form["training"] and self._happens("tab", self._habits.in_two_tabs, form):
            other = await self._page.context.new_page()
            await other.goto(self._page.url)
            await other.wait_for_selector("#view[data-ready=yes]")
        await self._press(option["key"], form, double=self._happens("double", self._habits.doubled, form))
        if other is not None:
            self.log.tabs += 1
            await other.locator(".verdicts button").last.click()
            await other.wait_for_selector("#status.bad")  # it says that this is not the question asked now
            await other.close()

    async def _choose(self, form: dict[str, Any]) -> None:
        """Choose the sentence that shares most words, as a keyboard does."""
        stems = set(content_stems(form["judged"]))
        shares = [len(stems & set(content_stems(text))) for text in form["sentences"]]
        for _ in range(shares.index(max(shares)) + 1):
            await self._key("ArrowDown")
        await self._key("Enter")

    async def _key(self, key: str) -> None:
        self.log.keys += 1
        await self._page.keyboard.press(key)

    async def _press(self, key: str, form: dict[str, Any], *, double: bool = False) -> None:
        """Press a key, and wait until the page says that it is saved.

        If `double`, the key is pressed and the first button clicked again as soon as the next question is there: by the
        page itself, as this program may be slower than a person's second click.
        """
        start = time.perf_counter()
        if double:
            self.log.doubles += 1
            await self._page.evaluate(_PRESS_AGAIN, [form["press"], key])
        await self._key(key)
        await self._page.wait_for_function(
            "id => document.querySelector(`#press input[name=press][value='${id}']`) === null",
            arg=form["press"],
            timeout=60_000,
        )
        self.log.milliseconds.append(1000 * (time.perf_counter() - start))
        if await self._page.locator("#next").count():  # feedback in training
            await self._wait()
            await self._key("Enter")
            await self._page.wait_for_selector("#next", state="detached")
        await self._wait()

    async def _wait(self) -> None:
        """Wait until the page takes an answer."""
        await self._page.wait_for_selector("#view[data-ready=yes]")


async def simulate(links: list[str], seed: int, habits: Habits) -> list[Log]:
    """Let one annotator work behind each link, all at the same time."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        people = [Annotator(await _page(browser), person, seed, habits) for person in range(len(links))]
        return await asyncio.gather(*(annotator.work(link) for annotator, link in zip(people, links, strict=True)))


async def _page(browser: Browser) -> Page:
    return await (await browser.new_context(viewport={"width": 1280, "height": 800})).new_page()


def run(
    folder: Path, *, people: int = 5, seed: int = 13, url: str | None = None, habits: Habits | None = None
) -> dict[str, Any]:
    """Simulate a study, and return what happened. Raises `UserError` unless its title says that it is a simulation."""
    study, habits = open_study(folder), habits or Habits()
    if "simulation" not in study.settings.title.lower():
        raise UserError(
            f"{folder / 'study.toml'}: the title {study.settings.title!r} should say that this is a simulation; "
            "what simulated annotators press must not be taken for labels of people"
        )
    names = [f"simulated-{n}" for n in range(1, people + 1)]
    tokens = [study.invite(name) for name in names]
    with contextlib.ExitStack() as stack:
        address = url.rstrip("/") if url else stack.enter_context(serving(create_app(open_study(folder))))
        start = time.monotonic()
        logs = asyncio.run(simulate([f"{address}/in/{token}" for token in tokens], seed, habits))
        seconds = time.monotonic() - start
    waits = sorted(wait for log in logs for wait in log.milliseconds)
    return {
        "simulation": "Labels of a noise model, drawn by scripts/simulate_study.py. No person was involved.",
        "study": study.settings.title,
        "scheme": study.settings.scheme,
        "seed": seed,
        "model": _MODEL | asdict(habits),
        "annotators": {
            name: {
                "error_rate": _ERRORS[n % len(_ERRORS)],
                "verdicts": dict(sorted(log.verdicts.items())),
                "flags": log.flags,
                "undone": log.undos,
                "doubled": log.doubles,
                "reloaded": log.reloads,
                "in_two_tabs": log.tabs,
                "keys": log.keys,
                "end": log.end[:200],
            }
            for n, (name, log) in enumerate(zip(names, logs, strict=True))
        },
        "meant": {name: log.meant for name, log in zip(names, logs, strict=True)},
        "presses": len(waits),
        "seconds": round(seconds, 1),
        "press_to_saved_ms": {"p50": round(median(waits), 1), "p95": round(waits[int(0.95 * len(waits))], 1)}
        if waits
        else None,
        "console": [line for log in logs for line in log.console],
    }


def main() -> None:
    """Parse, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="folder of the study")
    parser.add_argument("--people", type=int, default=5, help="number of simulated annotators (default: 5)")
    parser.add_argument("--seed", type=int, default=13, help="seed of the noise model (default: 13)")
    parser.add_argument("--url", help="address of a server that runs (default: one is started)")
    parser.add_argument("--out", type=Path, help="file for the result (JSON)")
    options = parser.parse_args()
    try:
        result = run(options.study, people=options.people, seed=options.seed, url=options.url)
    except UserError as error:
        sys.exit(str(error))
    if options.out:
        write_atomic(options.out, [dumps(result, indent=2)])
    print(json.dumps(result, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
