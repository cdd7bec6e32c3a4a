"""Trains the network on prepared arrays: bounded memory, a log line now and then, checkpoints to go on from."""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from autoais.training.model import Network
from autoais.training.schedule import Schedule


class Pairs:
    """Prepared arrays of several files as one set of pairs, each file so many times (a part of it below one)."""

    def __init__(self, parts: Sequence[tuple[Path, float]], seed: int) -> None:
        self._files = [dict(np.load(path, allow_pickle=False)) for path, _ in parts]
        rng = np.random.default_rng(seed)
        places = []
        for number, (arrays, (_, times)) in enumerate(zip(self._files, parts, strict=True)):
            arrays["starts"] = np.concatenate([[0], arrays["ends"][:-1]])
            size = len(arrays["labels"])
            rest = rng.permutation(size)[: round((times - int(times)) * size)]
            chosen = np.concatenate([np.tile(np.arange(size), int(times)), rest])
            places.append(np.stack([np.full_like(chosen, number), chosen], axis=1))
        self.places = np.concatenate(places)
        self.lengths = np.array([self._files[f]["ends"][i] - self._files[f]["starts"][i] for f, i in self.places])

    def batch(self, numbers: np.ndarray) -> tuple[torch.Tensor, ...]:
        """ids, mask, types, token labels (-1 unknown), labels of the pairs with those numbers, padded."""
        width = -(-int(self.lengths[numbers].max()) // 8) * 8  # few different shapes: each new one is compiled anew
        ids = np.zeros((len(numbers), width), dtype=np.int64)
        mask, types, tokens = np.zeros_like(ids), np.full_like(ids, 2), np.full_like(ids, -1)
        labels = np.zeros(len(numbers), dtype=np.float32)
        for row, number in enumerate(numbers):
            file, place = self.places[number]
            arrays = self._files[file]
            start, end = arrays["starts"][place], arrays["ends"][place]
            size = end - start
            ids[row, :size], mask[row, :size] = arrays["ids"][start:end], 1
            types[row, :size], tokens[row, :size] = arrays["types"][start:end], arrays["tokens"][start:end]
            labels[row] = arrays["labels"][place]
        return tuple(torch.from_numpy(a) for a in (ids, mask, types, tokens, labels))

    def some(self, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(ids, types) of so many pairs, evenly spread, one at a time."""
        for number in range(0, len(self.lengths), max(1, len(self.lengths) // count)):
            file, place = self.places[number]
            arrays = self._files[file]
            inside = slice(arrays["starts"][place], arrays["ends"][place])
            yield (
                torch.from_numpy(arrays["ids"][inside].astype(np.int64)[None]),
                torch.from_numpy(arrays["types"][inside].astype(np.int64)[None]),
            )

    def order(self, batch: int, epoch: int, seed: int) -> Iterator[np.ndarray]:
        """Batches of pairs of like length in a seeded random order."""
        rng = np.random.default_rng([seed, epoch])
        shuffled = rng.permutation(len(self.lengths))
        batches = []
        for at in range(0, len(shuffled), batch * 64):
            part = shuffled[at : at + batch * 64]
            part = part[np.argsort(self.lengths[part], kind="stable")]
            batches += [part[i : i + batch] for i in range(0, len(part), batch)]
        yield from (batches[i] for i in rng.permutation(len(batches)))


def loss_of(network: Network, tensors: tuple[torch.Tensor, ...], token_weight: float) -> tuple[torch.Tensor, float]:
    """Mean binary cross-entropy of the pairs plus `token_weight` times that of the known tokens; and the accuracy."""
    ids, mask, types, tokens, labels = tensors
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pair, token, _, _ = network(ids, mask, types)
    pair, token = pair.float(), token.float()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(pair, labels)
    known = tokens >= 0
    if known.any():
        loss = loss + token_weight * torch.nn.functional.binary_cross_entropy_with_logits(
            token[known], tokens[known].float()
        )
    return loss, float(((pair > 0) == (labels > 0.5)).float().mean())


def train(
    network: Network,
    pairs: Pairs,
    schedule: Schedule,
    folder: Path,
    *,
    every_s: float = 240,
    say: Callable[[str], None] | None = None,
) -> None:
    """Train, going on from `folder/checkpoint.pt` where there is one; ends with `folder/network.pt`.

    A checkpoint is written every `every_s` seconds, `log.jsonl` gets a row and `say` a line every 100 steps.
    """
    folder.mkdir(parents=True, exist_ok=True)
    learnt = [p for p in network.parameters() if p.requires_grad]
    decayed, others = [p for p in learnt if p.ndim > 1], [p for p in learnt if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=schedule.rate, fused=True)
    per_epoch = math.ceil(len(pairs.lengths) / schedule.batch)
    steps = min(int(per_epoch * schedule.epochs), schedule.most or per_epoch * math.ceil(schedule.epochs))
    done = 0
    checkpoint = folder / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["step"]
    torch.manual_seed(schedule.seed + done)
    network.train()
    began = last_saved = time.monotonic()
    seen, losses, right = 0, 0.0, 0.0
    step = 0
    with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
        for epoch in range(math.ceil(schedule.epochs)):
            for numbers in pairs.order(schedule.batch, epoch, schedule.seed):
                step += 1
                if step <= done:
                    continue
                if step > steps:
                    break
                for group in optimizer.param_groups:
                    group["lr"] = schedule.rate_at(step, steps)
                loss, accuracy = loss_of(network, pairs.batch(numbers), schedule.token_weight)
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(learnt, 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                seen, losses, right = seen + len(numbers), losses + float(loss.detach()), right + accuracy
                if step % 100 == 0:
                    row = {
                        "step": step, "steps": steps, "loss": round(losses / 100, 4), "accuracy": round(right / 100, 4),
                        "pairs_per_second": round(seen / (time.monotonic() - began), 1),
                    }  # fmt: skip
                    log.write(json.dumps(row) + "\n")
                    log.flush()
                    if say:
                        say(", ".join(f"{name} {value}" for name, value in row.items()))
                    losses = right = 0.0
                if time.monotonic() - last_saved > every_s:
                    _save(checkpoint, network, optimizer, step)
                    last_saved = time.monotonic()
    _save(checkpoint, network, optimizer, min(step, steps))
    torch.save(network.state_dict(), folder / "network.pt")


def _save(path: Path, network: Network, optimizer: torch.optim.Optimizer, step: int) -> None:
    beside = path.with_suffix(".new")
    torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, beside)
    beside.replace(path)
