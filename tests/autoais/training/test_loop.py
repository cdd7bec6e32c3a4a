"""The training loop and its checkpoint: a stopped training ends with the same weights, and a checkpoint that does not
fit is refused."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autoais.base.errors import UserError
from autoais.training.loop import Tensors, train
from autoais.training.schedule import Schedule


class Numbers:
    """Twelve batches of three random rows; `stop` counts the batches until one fails."""

    def __init__(self, stop: int = 99) -> None:
        self.left = stop

    def order(self, batch: int, seed: int) -> list[np.ndarray]:
        return [np.arange(3) + 3 * number for number in range(12)]

    def batch(self, numbers: np.ndarray) -> Tensors:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return (torch.from_numpy(np.random.default_rng(int(numbers[0])).random((3, 4), dtype=np.float32)),)


class Two(torch.nn.Module):
    """Two layers; with `swapped`, the same parameters are found in another order."""

    def __init__(self, *, swapped: bool = False) -> None:
        super().__init__()
        torch.manual_seed(1)
        wide, narrow = torch.nn.Linear(4, 6, bias=False), torch.nn.Linear(6, 1, bias=False)
        for name, layer in (("narrow", narrow), ("wide", wide)) if swapped else (("wide", wide), ("narrow", narrow)):
            self.add_module(name, layer)

    def loss(self, tensors: Tensors) -> tuple[torch.Tensor, float]:
        out = self.get_submodule("narrow")(self.get_submodule("wide")(tensors[0]))
        return ((out - 1) ** 2).mean(), 0.0


def trained(network: Two, folder: Path, stop: int = 99) -> dict[str, torch.Tensor]:
    train(network, Numbers(stop), network.loss, Schedule(1e-2, 3, 2, 0.5), folder, seed=1, every_s=0)
    return network.state_dict()


def test_a_stopped_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    straight = trained(Two(), tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        trained(Two(), tmp_path / "stopped", stop=5)
    resumed = trained(Two(), tmp_path / "stopped")
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)
    assert not torch.equal(straight["wide.weight"], Two().state_dict()["wide.weight"])


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        trained(Two(), tmp_path, stop=5)
    # The names and sizes of the weights fit, but not their order, by which the optimizer keeps its state.
    with pytest.raises(UserError, match=r"checkpoint\.pt: the checkpoint is of another network; remove it"):
        trained(Two(swapped=True), tmp_path)


@pytest.mark.parametrize("size", [0, 1, 10, 300, 2000, -1])
def test_a_checkpoint_that_was_cut_off_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        trained(Two(), tmp_path, stop=5)
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UserError, match=r"checkpoint\.pt: the checkpoint cannot be read: .*; remove it"):
        trained(Two(), tmp_path)


@pytest.mark.parametrize("state", [{"step": 5}, [1], {"network": {}, "optimizer": {}, "step": 1}])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path, state: object) -> None:
    torch.save(state, tmp_path / "checkpoint.pt")
    with pytest.raises(UserError, match=r"the checkpoint cannot be read"):
        trained(Two(), tmp_path)
