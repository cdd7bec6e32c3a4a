"""The machine that a measurement was made on."""

import os
import platform
from pathlib import Path


def processor() -> str:
    """The processor's name, its number of cores, and whether it has VNNI."""
    try:
        info = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        info = ""
    name = next((line.partition(": ")[2] for line in info.splitlines() if line.startswith("model name")), "")
    return f"{name or platform.processor()}, {os.cpu_count()} cores, {'with' if 'vnni' in info else 'without'} VNNI"
