"""Headless Chromium and a server on a free port, for pictures of pages, simulated annotators and tests."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from starlette.types import ASGIApp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_MAX_BYTES = 150_000  # bytes


@contextmanager
def serving(app: "ASGIApp") -> Iterator[str]:
    """Serve an application on a free port of this machine, and give the address."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        config = uvicorn.Config(app, log_level="critical", access_log=False, server_header=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the application does not start"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Start Chromium, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def save(page: "Page", target: Path, colours: int) -> None:
    """Write what a page shows as a PNG of few colours."""
    from PIL import Image

    target.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=target)
    with Image.open(target) as image:
        small_image = image.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    small_image.save(target, optimize=True)
    size = target.stat().st_size
    assert size < _MAX_BYTES, f"{target} has {size:,} bytes"
    print(f"{target} {size:,} bytes")
