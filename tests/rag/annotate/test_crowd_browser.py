"""A participant of a crowd service in a real browser, from the service's link to the way back."""

from pathlib import Path

from rag.annotate import create_study
from rag.annotate.crowd import Crowd
from rag.annotate.settings import Settings
from tests.rag.annotate.test_browser import Browser, Serve, press, wait
from tests.rag.annotate.test_browser import browser as browser
from tests.rag.annotate.test_browser import serve as serve
from tests.rag.annotate.test_crowd import ADA, OURS
from tests.rag.annotate.web_study import ANSWER, several
from tests.rag.browser import NEEDS_CHROMIUM, PHONE, check, expect

pytestmark = NEEDS_CHROMIUM


def test_a_participant_comes_consents_answers_works_and_goes_back(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "crowd.toml").write_text(OURS, "utf-8")
    settings = Settings(scheme="ais-direct")
    study = create_study(tmp_path / "study", items=several(ANSWER, 4), settings=settings, crowd=tmp_path / "crowd.toml")
    server = serve(study)
    address = f"http://127.0.0.1:{server.port}/join/{Crowd(study).key}"
    query = "&".join(f"{name}={value}" for name, value in ADA.items())
    page = browser.open(f"{address}?{query}", viewport=PHONE, bypass_csp=True)
    check(page)
    page.locator("[name=agree]").check()
    page.locator("button[value=accept]").click()
    page.wait_for_selector("#about-age")
    check(page)
    page.locator("#about-age").select_option("30 or more")
    page.locator("main button.first").click()
    page.wait_for_selector("#press")
    wait(page)
    press(page, "y")
    page.keyboard.press("y")
    expect(page.locator("#complete")).to_have_attribute("href", "https://app.prolific.com/submissions/complete?cc=C1A2")
    check(page)
