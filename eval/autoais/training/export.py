"""From the trained network to the file that ships: ONNX with int8 weights, run by onnxruntime alone."""

import tempfile
from pathlib import Path

import torch

from autoais.judges.encoding import TYPES
from autoais.training.model import Network

INPUTS = ("ids", "mask", "types")


class _Probabilities(torch.nn.Module):
    """The network without its mask: the judge reads one pair at a time, so nothing is padded."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.network(ids, torch.ones_like(ids), types)


def export(network: Network, out: Path) -> None:
    """Write `out` (inputs `ids` and `types`, (1, length) int64; outputs `pair` (1,) and `tokens` (1, length)).

    Matrix products take int8 weights, one scale a column, and activations quantised as they come; the embeddings are
    int8 too. 7 bits of the 8 are used for weights, so that processors without VNNI cannot overflow.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    network.eval()
    ids = torch.tensor([[101, 2023, 102, 2003, 102]])
    types = torch.tensor([[0, 1, 0, 2, 2]]) % TYPES
    with tempfile.TemporaryDirectory() as folder:
        plain, ready = Path(folder) / "plain.onnx", Path(folder) / "ready.onnx"
        torch.onnx.export(
            _Probabilities(network), (ids, types), str(plain), input_names=["ids", "types"],
            output_names=["pair", "tokens"], opset_version=17, dynamo=False,
            dynamic_axes={"ids": {1: "length"}, "types": {1: "length"}, "tokens": {1: "length"}},
        )  # fmt: skip
        quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
        quantize_dynamic(
            str(ready), str(out), op_types_to_quantize=["MatMul", "Gather"], per_channel=True, reduce_range=True,
            weight_type=QuantType.QInt8,
        )  # fmt: skip
