"""Static embeddings: distilled from a sentence encoder, then trained to match sentences and questions to passages."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import provenance, sha256_file
from autoais.base.text.excerpt import split_sentences
from autoais.base.text.folding import questions_key
from autoais.formats.questions import read_questions
from autoais.training.loop import Tensors, train
from autoais.training.model import sentence_encoder
from autoais.training.prepare import read_excluded_questions
from autoais.training.recipe import base_folder, find
from autoais.training.schedule import Schedule
from rag.base.types import Passage
from rag.index.index import Index
from rag.retrieval.encoders.static import Static
from rag.training import mining, read_recipe

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SHORT = 40
_KEEP_SHARE = 0.1  # share of sentences that stay in their passage, so that exact matches still count
_TEMPERATURE = 0.05
_DEPTH = 24
_FREQUENCY_PASSAGES = 20_000  # passages for word-piece frequencies


@dataclass(frozen=True, slots=True)
class StaticRecipe:
    """A recipe file (`eval/recipes/static.toml`): base weights, numbers of passages and questions, a schedule.

    `dimension` is that of the vectors, `sif` the constant of smooth inverse frequency weights (Arora et al. 2017).
    `passages` are sampled from the index and seen `times` each, questions `question_times` each. Questions that also
    occur in a file of `held_out` are dropped.
    """

    name: str
    kind: str
    base: str
    base_sha256: str
    seed: int
    dimension: int
    sif: float
    passages: int
    times: int
    questions: tuple[str, ...]
    question_times: int
    held_out: tuple[str, ...]
    schedule: Schedule


Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Taught:
    """Word pieces of a sentence or question, of its passage, and of a wrong passage (may be empty)."""

    left: Ids
    right: Ids
    wrong: Ids


class Bags(torch.nn.Module):
    """A table of word-piece vectors; a text's vector is their mean."""

    def __init__(self, table: NDArray[np.float32]) -> None:
        super().__init__()
        self.table = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), freeze=False, mode="mean")

    def forward(self, ids: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """The vectors of texts, (texts, dimension), with length 1."""
        return torch.nn.functional.normalize(self.table(ids, starts), dim=1)


def loss_of(network: Bags, tensors: Tensors) -> tuple[torch.Tensor, float]:
    """The cross-entropy of each text's passage among all passages of the batch, and the accuracy."""
    left_starts, left_ids, right_starts, right = tensors
    logits = network(left_ids, left_starts) @ network(right, right_starts).T / _TEMPERATURE
    targets = torch.arange(len(left_starts), device=left_ids.device)
    return torch.nn.functional.cross_entropy(logits, targets), float((logits.argmax(dim=1) == targets).float().mean())


class Lessons:
    """Several lists of `Taught`, each with its number of passes; a batch comes from one list."""

    def __init__(self, lists: Sequence[tuple[Sequence[Taught], int]]) -> None:
        self._rows = [row for rows, _ in lists for row in rows]
        self._lists = []
        start = 0
        for rows, times in lists:
            self._lists.append((np.arange(start, start + len(rows)), times))
            start += len(rows)

    def order(self, batch: int, seed: int) -> list[NDArray[np.int64]]:
        """Batches of exactly `batch` rows, or of a whole shorter list, in a seeded random order."""
        rng = np.random.default_rng(seed)
        batches = []
        for rows, times in self._lists:
            for _ in range(times):
                order = rng.permutation(rows)
                last = max(1, len(rows) - batch + 1) if len(rows) else 0
                batches += [order[i : i + batch] for i in range(0, last, batch)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def batch(self, numbers: NDArray[np.int64]) -> Tensors:
        """Offsets and word pieces of the texts, then of their passages followed by the wrong ones."""
        rows = [self._rows[number] for number in numbers]
        wrong = [row.wrong for row in rows if len(row.wrong)]
        return (*_concatenate([row.left for row in rows]), *_concatenate([*(row.right for row in rows), *wrong]))


def _concatenate(texts: Sequence[Ids]) -> tuple[torch.Tensor, torch.Tensor]:
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])[:-1]])
    return torch.from_numpy(starts), torch.from_numpy(np.concatenate(texts))


def run(
    path: Path, index: Index, data: Sequence[Path], out: Path, *, short: bool = False, log: Callable[[str], None]
) -> None:
    """Train the static embeddings of a recipe in `out`, on the passages of an index; a stopped run resumes.

    `short` uses 40 passages, 40 questions and batches of 8, only to check that the recipe runs.
    """
    recipe: StaticRecipe = read_recipe(path, StaticRecipe)
    if short:
        recipe = replace(recipe, passages=_SHORT, times=1, question_times=1, schedule=replace(recipe.schedule, batch=8))
    base = base_folder(recipe.base, recipe.base_sha256)
    never = read_excluded_questions(find(name, data) for name in recipe.held_out)
    files = [find(name, data) for name in recipe.questions]
    tokenizer = _tokenizer(base)
    sample = _draw_passages(index, recipe.passages, recipe.seed)
    table = distil(base, tokenizer, sample[:_FREQUENCY_PASSAGES], recipe.dimension, recipe.sif)
    rng = random.Random(recipe.seed)
    sentences = list(_sentences(sample, tokenizer, rng))
    question_pairs = list(_question_pairs(files, never, index, tokenizer, rng, _SHORT if short else None))
    log(f"{len(sentences):,} sentences of passages, {len(question_pairs):,} questions")
    lessons = Lessons([(sentences, recipe.times), (question_pairs, recipe.question_times)])
    network = Bags(table)
    ingredients = (recipe, index.manifest["checksum"], [sha256_file(file) for file in files], sorted(never))
    key = sha256(f"{ingredients}".encode()).hexdigest()[:8]
    train(network, lessons, partial(loss_of, network), recipe.schedule, out / f"work-{key}", seed=recipe.seed, log=log)
    _write(network.table.weight.detach().numpy(), out / "table.npz")
    copyfile(base / "tokenizer.json", out / "tokenizer.json")
    record = {
        "recipe": {"file": path.name, "sha256": sha256_file(path)},
        "short": short,
        "base": {"from": recipe.base, "sha256": recipe.base_sha256},
        "index": {key: index.manifest[key] for key in ("checksum", "passages", "recipe")},
        "taught": {"sentences": len(sentences), "questions": len(question_pairs)},
        "files": {name: sha256_file(out / name) for name in ("table.npz", "tokenizer.json")},
        "provenance": provenance({}),
    }
    write_atomic(out / "training.json", [dumps(record, indent=2)])
    log(f"{Static(out).name} in {out}")


def distil(
    base: Path, tokenizer: "Tokenizer", passages: Iterable[Passage], dimension: int, sif: float
) -> NDArray[np.float32]:
    """The initial table, (word pieces, dimension): principal components of the encoder's vector of each word piece.

    Rows are weighted by smooth inverse frequency in the passages, as in model2vec.
    """
    encoder = sentence_encoder(base)
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    size = tokenizer.get_vocab_size()
    batches = []
    with torch.inference_mode():
        for start in range(0, size, 1024):
            ids = torch.tensor([[first, piece, last] for piece in range(start, min(start + 1024, size))])
            states = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            batches.append(states.mean(dim=1).numpy())
    vectors = np.concatenate(batches)
    vectors -= vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(vectors, full_matrices=False)
    counts = np.ones(size)
    for pieces_of in _ids(tokenizer, (p.contents for p in passages)):
        np.add.at(counts, pieces_of, 1)
    weights = sif / (sif + counts / counts.sum())
    table = (vectors @ axes[:dimension].T) * weights[:, None]
    scaled_table: NDArray[np.float32] = (0.05 * table / table.std()).astype(np.float32)
    return scaled_table


def _tokenizer(base: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _ids(tokenizer: "Tokenizer", texts: Iterable[str]) -> Iterator[Ids]:
    stream = iter(texts)
    while batch := list(islice(stream, 500)):
        for encoded in tokenizer.encode_batch(batch, add_special_tokens=False):
            yield np.array(encoded.ids, dtype=np.int64)


def _draw_passages(index: Index, count: int, seed: int) -> list[Passage]:
    total = index.manifest["passages"]
    rows = random.Random(seed).sample(range(total), min(count, total))
    return index.store.rows(rows)


def _sentences(passages: Iterable[Passage], tokenizer: "Tokenizer", rng: random.Random) -> Iterator[Taught]:
    """Yield a sentence of each passage with the rest of it (inverse cloze task, Lee et al. 2019, Section 5.2)."""
    lefts, rights = [], []
    for passage in passages:
        spans = list(split_sentences(passage.text))
        if len(spans) < 2:
            continue
        start, end = rng.choice(spans)
        lefts.append(passage.text[start:end])
        remainder = passage.text if rng.random() < _KEEP_SHARE else passage.text[:start] + passage.text[end:]
        rights.append(f"{passage.headings} {remainder}")
    for left_ids, right in zip(_ids(tokenizer, lefts), _ids(tokenizer, rights), strict=True):
        if len(left_ids) and len(right):
            yield Taught(left_ids, right, left_ids[:0])


def _question_pairs(
    files: Sequence[Path],
    never: set[str],
    index: Index,
    tokenizer: "Tokenizer",
    rng: random.Random,
    limit: int | None,
) -> Iterator[Taught]:
    """Yield each question with its first BM25 hit that contains the answer and one of the first that do not."""
    for file in files:
        questions = (
            question for question in islice(read_questions(file), limit) if questions_key(question.text) not in never
        )
        groups = mining.groups(
            questions,
            index.bm25,
            lambda _, passages: [0.0] * len(passages),
            rng,
            depth=_DEPTH,
            others=1,
            each=1,
            least=0.0,
        )
        for group in groups:
            texts = (group.question, *(p.contents for p in (*group.passages, *group.others)))
            left_ids, right, wrong = _ids(tokenizer, texts)
            if len(left_ids) and len(right) and len(wrong):
                yield Taught(left_ids, right, wrong)


def _write(table: NDArray[np.float32], path: Path) -> None:
    scale = np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-12) / 127
    np.savez_compressed(path, rows=np.round(table / scale).astype(np.int8), scale=scale.astype(np.float32))
