"""The training loop on prepared arrays in memory, with log lines and checkpoints to resume from."""

import json
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from autoais.base.errors import UserError, first_line
from autoais.training.model import Network
from autoais.training.prepare import is_for_calibration
from autoais.training.schedule import Schedule

Tensors = tuple[torch.Tensor, ...]

BLOCK = 4  # adjacent pairs stay together: claims from one passage that differ in one fact


class Batches(Protocol):
    """Training data as numbered items that can be batched in any order."""

    def order(self, batch: int, seed: int) -> list[np.ndarray]:
        """The item numbers of each batch of about `batch` pairs, in a seeded order."""
        ...

    def batch(self, numbers: np.ndarray) -> Tensors:
        """The items with those numbers; the first tensor has one row per pair."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """A file of prepared arrays, how often its pairs are used, and which of them are excluded.

    The fractional part of `times` adds a random part of the pairs. Excluded are data sets whose names start with one of
    `without`, and `spare` rows (`kept_for_calibration`).
    """

    arrays: Path
    times: float
    without: tuple[str, ...] = ()
    spare: float = 0.0


class Pairs:
    """Several parts as one set of pairs, in blocks of adjacent pairs."""

    def __init__(self, parts: Sequence[Part], seed: int) -> None:
        self._files: list[dict[str, np.ndarray]] = []
        self._blocks: list[tuple[int, np.ndarray]] = []
        rng = np.random.default_rng(seed)
        for number, part in enumerate(parts):
            arrays = dict(np.load(part.arrays, allow_pickle=False))
            arrays["starts"] = np.concatenate([[0], arrays["ends"][:-1]])
            self._files.append(arrays)
            excluded_sources = [
                i for i, name in enumerate(arrays["names"]) if part.without and str(name).startswith(part.without)
            ]
            rows = np.arange(len(arrays["labels"]))
            spare = np.array([is_for_calibration(int(row), part.spare) for row in rows])
            rows = rows[~np.isin(arrays["sources"], excluded_sources) & ~spare]
            blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
            extra_blocks = rng.permutation(len(blocks))[: round((part.times - int(part.times)) * len(blocks))]
            block_numbers = [*list(range(len(blocks))) * int(part.times), *extra_blocks]
            self._blocks += [(number, blocks[i]) for i in block_numbers]
        if not self._blocks:
            raise UserError("no pairs are left to train on")
        self._longest = np.array([max(self._length(f, row) for row in rows) for f, rows in self._blocks])
        self.size = sum(len(rows) for _, rows in self._blocks)

    def _length(self, file: int, row: int) -> int:
        return int(self._files[file]["ends"][row] - self._files[file]["starts"][row])

    def batch(self, numbers: np.ndarray) -> Tensors:
        """Padded ids, mask, types, token labels (-1: unknown) and labels of the pairs in those blocks."""
        width = -(-int(self._longest[numbers].max()) // 8) * 8  # few distinct shapes, since each new one is compiled
        pair_indices = [
            (file, pair_index) for file, rows in (self._blocks[number] for number in numbers) for pair_index in rows
        ]
        ids = np.zeros((len(pair_indices), width), dtype=np.int64)
        mask, types, tokens = np.zeros_like(ids), np.full_like(ids, 2), np.full_like(ids, -1)
        labels = np.zeros(len(pair_indices), dtype=np.float32)
        for row, (file, pair_index) in enumerate(pair_indices):
            arrays = self._files[file]
            start, end = arrays["starts"][pair_index], arrays["ends"][pair_index]
            size = end - start
            ids[row, :size], mask[row, :size] = arrays["ids"][start:end], 1
            types[row, :size], tokens[row, :size] = arrays["types"][start:end], arrays["tokens"][start:end]
            labels[row] = arrays["labels"][pair_index]
        return tuple(torch.from_numpy(a) for a in (ids, mask, types, tokens, labels))

    def some(self, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The (ids, types) of about `count` evenly spaced pairs, one at a time."""
        for number in range(0, len(self._blocks), max(1, len(self._blocks) // count)):
            file, (pair_index, *_) = self._blocks[number]
            yield pair_of(self._files[file], pair_index)

    def order(self, batch: int, seed: int) -> list[np.ndarray]:
        """The block numbers of each batch: blocks of similar length, in a seeded random order."""
        return batches_of_like_length(self._longest, max(1, batch // BLOCK), seed)


def batches_of_like_length(lengths: np.ndarray, size: int, seed: int) -> list[np.ndarray]:
    """Batches of `size` item numbers with similar lengths, in a seeded random order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), size * 64):
        part = order[start : start + size * 64]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches += [part[i : i + size] for i in range(0, len(part), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def pair_of(arrays: Mapping[str, np.ndarray], pair_index: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The (ids, types), each (1, length), of one pair in arrays with concatenated pairs."""
    pair_slice = slice(arrays["starts"][pair_index], arrays["ends"][pair_index])
    ids, types = (torch.from_numpy(arrays[name][pair_slice].astype(np.int64)[None]) for name in ("ids", "types"))
    return ids, types


def training_device() -> torch.device:
    """The GPU if torch sees one (`CUDA_VISIBLE_DEVICES` hides it), else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def mixed_precision(device: torch.device | None = None) -> torch.autocast:
    """A context of bfloat16 where the GPU or the CPU computes in it; others only emulate it, and stay in float32."""
    if device is not None and device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.autocast("cuda", dtype=torch.bfloat16, enabled=native)
    computes = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=computes)


def loss_of(network: Network, tensors: Tensors, token_weight: float) -> tuple[torch.Tensor, float]:
    """The loss and the accuracy of a batch.

    The loss is the mean binary cross-entropy of the pairs plus `token_weight` times that of the labelled tokens.
    """
    ids, mask, types, tokens, labels = tensors
    with mixed_precision(ids.device):
        pair, token = network.logits(ids, mask, types)
    pair, token = pair.float(), token.float()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(pair, labels)
    is_labelled = tokens >= 0
    if is_labelled.any():
        loss = loss + token_weight * torch.nn.functional.binary_cross_entropy_with_logits(
            token[is_labelled], tokens[is_labelled].float()
        )
    return loss, float(((pair > 0) == (labels > 0.5)).float().mean())


def train(
    network: torch.nn.Module,
    pairs: Batches,
    loss_of: Callable[[Tensors], tuple[torch.Tensor, float]],
    schedule: Schedule,
    folder: Path,
    *,
    seed: int,
    every_s: float = 240,
    log: Callable[[str], None] | None = None,
) -> None:
    """Train for one pass over the pairs, resuming from `folder/checkpoint.pt` if it exists, on `training_device`.

    The network is on the CPU afterwards. `loss_of` returns the loss and accuracy of a batch. A checkpoint is written
    every `every_s` seconds. Every 100 steps `log.jsonl` gets a row and `log` is called with a line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    device = training_device()
    network.to(device)
    parameters = [p for p in network.parameters() if p.requires_grad]
    matrices, vectors = [p for p in parameters if p.ndim > 1], [p for p in parameters if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=schedule.rate, fused=True)
    batches = pairs.order(schedule.batch, seed)[: schedule.most]
    checkpoint = folder / "checkpoint.pt"
    n_done = _restore(checkpoint, network, optimizer)
    network.train()
    start_time = last_saved = time.monotonic()
    n_pairs, n_steps, losses, right = 0, 0, 0.0, 0.0
    with (folder / "log.jsonl").open("a", encoding="utf-8") as log_file:
        for step, numbers in enumerate(batches[n_done:], n_done + 1):
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate_at(step, len(batches))
            tensors = tuple(tensor.to(device) for tensor in pairs.batch(numbers))
            loss, accuracy = loss_of(tensors)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            n_pairs, n_steps = n_pairs + len(tensors[0]), n_steps + 1
            losses, right = losses + float(loss.detach()), right + accuracy
            if step % 100 == 0:
                row = {
                    "step": step,
                    "steps": len(batches),
                    "loss": round(losses / n_steps, 4),
                    "accuracy": round(right / n_steps, 4),
                    "pairs_per_second": round(n_pairs / (time.monotonic() - start_time), 1),
                }
                log_file.write(json.dumps(row) + "\n")
                log_file.flush()
                if log:
                    log(", ".join(f"{name} {value}" for name, value in row.items()))
                n_steps, losses, right = 0, 0.0, 0.0
            if time.monotonic() - last_saved > every_s:
                _save(checkpoint, network, optimizer, step)
                last_saved = time.monotonic()
    _save(checkpoint, network, optimizer, len(batches))
    network.to("cpu")


def _restore(path: Path, network: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Load the checkpoint and return the number of completed steps; 0 without a checkpoint.

    Raises `UserError` for a broken checkpoint and for one of another network.
    """
    if not path.exists():
        return 0
    try:
        state = torch.load(path, weights_only=True, map_location=training_device())
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        fits = all(  # a fused step over moments of other sizes would write past their end
            moment.ndim == 0 or moment.shape == weight.shape
            for group in optimizer.param_groups
            for weight in group["params"]
            for moment in optimizer.state[weight].values()
        )
        step = int(state["step"])
    except (EOFError, OSError, RuntimeError, ValueError, LookupError, TypeError, pickle.UnpicklingError) as error:
        raise UserError(
            f"{path}: the checkpoint cannot be read: {first_line(error)}; remove it to start again"
        ) from error
    if not fits:
        raise UserError(f"{path}: the checkpoint is of another network; remove it to start again")
    return step


def _save(path: Path, network: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    new_path = path.with_suffix(".new")
    try:
        torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, new_path)
        new_path.replace(path)
    except (OSError, RuntimeError) as error:  # PyTorch's own, on a full disk
        raise UserError(f"{path}: the checkpoint cannot be written: {first_line(error)}") from error
