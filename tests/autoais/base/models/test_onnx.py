"""A network that is cut down to one of its values."""

from pathlib import Path

import numpy as np
import pytest

from autoais.base.errors import UserError
from autoais.base.models.onnx import open_session

onnx = pytest.importorskip("onnx")


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """y = (x + 1) * 2, z = 1 / (x + 1)."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Add", ["x", "one"], ["more"]),
        helper.make_node("Mul", ["more", "two"], ["y"]),
        helper.make_node("Div", ["one", "more"], ["z"]),
    ]
    numbers = [onnx.numpy_helper.from_array(np.float32(n), name) for n, name in ((1, "one"), (2, "two"))]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, kind, ["n"]) for name in names] for names in (["x"], ["y", "z"])
    )
    graph = helper.make_graph(nodes, "arithmetic", inputs, outputs, numbers)
    opset = [helper.make_opsetid("", 17)]
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())
    return path


@pytest.mark.parametrize(("name", "value"), [("y", 8.0), ("z", 0.25), ("more", 4.0)])
def test_a_network_is_cut_down_to_what_a_value_needs(network: Path, name: str, value: float) -> None:
    from autoais.base.models.onnx import _cut

    session = open_session(network, only=name)
    assert [output.name for output in session.get_outputs()] == [name]
    assert session.run(None, {"x": np.array([3], np.float32)})[0].tolist() == [value]
    needed = {"y": ["Add", "Mul"], "z": ["Add", "Div"], "more": ["Add"]}[name]
    assert [node.op_type for node in onnx.load_from_string(_cut(network.read_bytes(), name)).graph.node] == needed


def test_a_value_that_is_not_there_and_a_damaged_network_are_one_clear_error(network: Path) -> None:
    for content, name in (
        (network.read_bytes(), "nothing"),
        (network.read_bytes()[:-3], "y"),
        (b"\xff" * 20, "y"),
        (b"\x0b", "y"),
    ):
        network.write_bytes(content)
        with pytest.raises(UserError, match=r"model\.onnx: not a usable ONNX model \(.*\)$"):
            open_session(network, only=name)
