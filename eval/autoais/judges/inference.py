"""ONNX models as every part of the product runs them: one thread a run, on the CPU."""

from pathlib import Path
from typing import TYPE_CHECKING

from autoais.errors import UserError, first_line

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def open_session(path: Path, error: type[UserError] = UserError, way_out: str = "") -> "InferenceSession":
    """The network in a file; `error`, with a way out where there is one, for a file that is none that runs.

    One thread, since texts run beside one another: then no number of cores changes a sum.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as fault:
        raise error(f"{path}: not a model that runs ({first_line(fault)}){way_out}") from fault
