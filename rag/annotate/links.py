"""Personal links: signed tokens of one study, and the ids of items that browsers see."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from rag.base.errors import LinkError, StudyError, UsageError, missing_extra

try:
    from itsdangerous import BadData, URLSafeSerializer
except ImportError:
    raise missing_extra("rag annotate", "annotate") from None

_MAX_TOKEN_LENGTH = 1000


def make_key(path: Path) -> None:
    """Write a new secret to a file that only its owner can read; the file must not exist."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_key(path: Path) -> bytes:
    """Return the secret; raises `StudyError` if the file is not there, or is too short for a secret."""
    try:
        key = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: the study's secret cannot be read; restore it from a backup: {error}") from error
    if len(key) < 32:
        raise StudyError(f"{path}: the study's secret is too short; restore it from a backup")
    return key.encode("ascii")


def study_id(key: bytes) -> str:
    """Return the id of the study that has this secret."""
    return hashlib.sha256(key).hexdigest()[:16]


class Links:
    """Makes and reads the links of one study. Tokens are not stored: the database has their hashes."""

    def __init__(self, key: bytes, study: str) -> None:
        self._key = key
        self._signer = URLSafeSerializer(
            key, salt=f"rag annotate {study}", signer_kwargs={"digest_method": hashlib.sha256}
        )

    def make(self, person: str) -> str:
        """Return a new token for a person."""
        return str(self._signer.dumps([person, secrets.token_urlsafe(16)]))

    def person(self, token: str) -> str:
        """Return whose token it is; raises `LinkError`. The database knows whether it is still valid."""
        try:
            if len(token) > _MAX_TOKEN_LENGTH:
                raise LinkError
            person, _ = self._signer.loads(token)
        except (BadData, UnicodeError, TypeError, ValueError):
            raise LinkError from None
        if not isinstance(person, str):
            raise LinkError
        return person

    @staticmethod
    def hash(token: str) -> str:
        """Return what the database stores of a token; it has 128 random bits, so that a plain hash is enough."""
        return hashlib.sha256(token.encode()).hexdigest()

    def sign(self, *parts: str) -> str:
        """Return a signature of the parts, which only this study can make."""
        message = "\0".join(parts).encode("utf-8", "replace")
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()

    def handle(self, person: str, item: str, attempt: int) -> str:
        """Return the item's id for this person. It reveals neither the item nor its pool."""
        message = f"{attempt}\0{person}\0{item}".encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()[:24]


def check_person(person: str) -> None:
    """Raise `UsageError` unless it is a name that can be stored, shown and typed."""
    if (
        not isinstance(person, str)
        or not 1 <= len(person) <= 100
        or not person.isprintable()
        or person != person.strip()
    ):
        raise UsageError(f"the name of a person should be 1 to 100 printable characters, found {person!r:.60}")
