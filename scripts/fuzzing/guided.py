"""Fuzzing guided by coverage: atheris (libFuzzer) looks for inputs that reach new lines of this project.

    make fuzz-guided [SECONDS=60]
    python -m scripts.fuzzing.guided TARGET [--seconds N]

The targets are those of `make fuzz`, and so is what counts as a finding. It ends at the first one and leaves the input
in `work/fuzz/TARGET`, where the inputs that reached something new are kept for the next run.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

WORK = Path("work") / "fuzz"


def main() -> None:
    """Fuzz one target, or each of them in a process of its own."""
    from scripts.fuzzing.targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", choices=[target.name for target in TARGETS], help="default: all")
    parser.add_argument("--seconds", type=int, default=60, help="of each target")
    given = parser.parse_args()
    if given.target is not None:
        fuzz(given.target, given.seconds)
        return
    failed = []
    for target in TARGETS:
        argv = [sys.executable, "-m", "scripts.fuzzing.guided", target.name, "--seconds", str(given.seconds)]
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
        runs = [line for line in done.stderr.splitlines() if line.startswith("Done ")]
        print(f"{target.name}: {runs[-1] if runs else done.stderr[-2000:]}", flush=True)
        if done.returncode:
            failed.append(target.name)
    print(f"{len(failed)} of {len(TARGETS)} targets with a finding {' '.join(failed)}")
    raise SystemExit(1 if failed else 0)


def fuzz(name: str, seconds: int) -> None:
    """Fuzz one target until the first finding; atheris ends the process."""
    corpus = WORK.absolute() / name
    corpus.mkdir(parents=True, exist_ok=True)
    os.environ |= {"RAG_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "RAG_CONFIG": os.devnull}
    os.chdir(tempfile.mkdtemp(prefix="fuzz-"))  # some targets write to the working directory
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with atheris.instrument_imports(include=["autoais", "rag"]):
        from scripts.fuzz import ACCEPTED, REFUSED, fed
        from scripts.fuzzing.targets import TARGETS

        (target,) = (one for one in TARGETS if one.name == name)
        seeds = target.seeds
        for file, data in seeds:  # what is imported late is instrumented too
            fed(replace(target, refuses=False), file, data, random.Random(0))
    names = sorted({file for file, _ in seeds})
    for number, (file, data) in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(bytes([names.index(file)]) + data)

    def one(data: bytes) -> None:
        if data:
            outcome = fed(target, names[data[0] % len(names)], data[1:], random.Random(len(data)))
            if outcome not in (ACCEPTED, REFUSED):
                raise AssertionError(outcome)

    options = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=20000"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={corpus}/", str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
