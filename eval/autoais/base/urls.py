"""URLs as sources: what is one, how it is written, and its host."""

import ipaddress
import re
from urllib.parse import quote, urlsplit, urlunsplit

from autoais.base.errors import UsageError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SCHEMES = {"http": 80, "https": 443}
_SAFE_CHARACTERS = "/%:@!$&'()*+,;=~-._?"  # of a path or a query, which need no quoting


def is_url(source: object) -> bool:
    """Whether a source is a URL, of whatever scheme; a `Path` never is."""
    return isinstance(source, str) and _URL.match(source) is not None


def normalize_url(url: str) -> str:
    """A URL as it is requested: quoted, the host in lower case, without default port and fragment.

    Raises `UsageError` for a scheme other than http and https, a user name, or no host.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except ValueError as error:  # also UnicodeError: no name of a host
        raise UsageError(f"{url[:200]!r} is not a URL: {error}") from error
    if parts.scheme not in _SCHEMES:
        raise UsageError(f"{url[:200]!r} is not an http or https URL")
    if not host or re.search(r"[^a-z0-9._:-]", host):
        raise UsageError(f"{url[:200]!r} is not a URL: it names no host")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"{parts.scheme}://{host}: a URL with a user name or password is not read")
    host_text = f"[{host}]" if ":" in host else host
    netloc = host_text if port in (None, _SCHEMES[parts.scheme]) else f"{host_text}:{port}"
    path, query = quote(parts.path or "/", safe=_SAFE_CHARACTERS), quote(parts.query, safe=_SAFE_CHARACTERS)
    return urlunsplit((parts.scheme, netloc, path, query, ""))


def host_of(url: str) -> str:
    """The host of a URL, with its port unless that is the default one; raises `UsageError` as `normalize_url` does."""
    return urlsplit(normalize_url(url)).netloc


def key_of(url: str) -> str:
    """A URL without its scheme, by which pages are told apart; raises `UsageError` as `normalize_url` does."""
    return normalize_url(url).partition("://")[2]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
