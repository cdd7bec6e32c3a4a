"""Templates, static files and error pages. Templates escape every value; `Markup` is made only here."""

import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rag.answer.export.escaping import visible
from rag.web.security import HEADERS

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


_IMPORT = re.compile(rb'^(import [^;]*"\./[a-z]+\.js)(?=";)', re.MULTILINE)


def escape_text(value: object) -> Markup:
    """Return a value as HTML of its visible text; a browser would turn a bare carriage return into a line feed."""
    if isinstance(value, Markup):
        return value
    return Markup(str(escape(visible(str(value)))).replace("\r", "&#13;"))


def sentence(message: object) -> str:
    """Return the message of an error as a sentence, with one full stop."""
    text = str(message).removesuffix(".")
    return f"{text[:1].upper()}{text[1:]}."


class Pages:
    """Templates and static files of the packages named: `Pages("rag.web", "rag.annotate")`.

    A package has the folders `templates` and `static`. A template is named `<last part of the package>/<file>`, and a
    static file has the address `/static/<last part>/<file>?v=<version>`, where the version is a checksum of all static
    files. Scripts import the modules beside them, as `"./name.js"`, by these addresses too.
    """

    def __init__(self, *packages: str) -> None:
        static_files = {
            f"{name.rpartition('.')[2]}/{file.name}": file.read_bytes()
            for name in packages
            for file in files(name).joinpath("static").iterdir()
            if file.is_file()
        }
        checksums = "".join(
            f"{name} {hashlib.sha256(static_files[name]).hexdigest()}\n" for name in sorted(static_files)
        )
        self._version = hashlib.sha256(checksums.encode()).hexdigest()[:12]
        with_version = rb"\1?v=" + self._version.encode()
        self._files = {
            name: _IMPORT.sub(with_version, body) if name.endswith(".js") else body
            for name, body in static_files.items()
        }
        self._environment = Environment(
            loader=PrefixLoader({name.rpartition(".")[2]: PackageLoader(name) for name in packages}),
            autoescape=True,
            finalize=escape_text,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals["static"] = self.address

    def define(self, **values: object) -> None:
        """Give all templates these values."""
        self._environment.globals.update(values)

    def address(self, name: str) -> str:
        """Return the address of a static file, which changes when one of the files does."""
        if name not in self._files:
            raise KeyError(name)
        return f"/static/{name}?v={self._version}"

    def page(
        self,
        template: str,
        values: Mapping[str, object],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Return a rendered page."""
        return HTMLResponse(self.render(template, values), status, headers)

    def render(self, template: str, values: Mapping[str, object]) -> str:
        """Return the HTML of a template, also of a part of a page."""
        return self._environment.get_template(template).render(values)

    def error(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> HTMLResponse:
        """Return an error page with a message of one line and the security headers."""
        every = {**HEADERS, **(headers or {})}
        return self.page("web/error.html.j2", {"message": message}, status=status, headers=every)

    async def static(self, request: Request) -> Response:
        """Answer `/static/{name:path}`; the files are in memory, so no path leads out of them."""
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404)
        suffix = name[name.rindex(".") :]
        fresh = request.query_params.get("v") == self._version
        keep = "public, max-age=31536000, immutable" if fresh else "no-cache"
        return Response(self._files[name], headers={"Content-Type": _TYPES[suffix], "Cache-Control": keep})
