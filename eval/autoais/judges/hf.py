"""`hf:<model>`: transformers models as judges (TRUE-style T5, NLI classifiers, MiniCheck and AttrScore)."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from autoais.base.errors import UserError, first_line, missing_extra
from autoais.base.io.paths import user_path
from autoais.base.models.transformers import (
    load_network,
    load_tokenizer,
    local_revision,
    model_files,
    plain_text,
    quiet_logging,
)
from autoais.base.types import Attribution, Judge, Judgement, Verdict
from autoais.judges.partial import check_partial_from, partial_suffix, with_partial
from autoais.judges.templates import template as hypothesis_template
from autoais.judges.windows import Window, windows

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

DEFAULT_MODEL = "google/t5_xxl_true_nli_mixture"
_A, _P, _N = Verdict.ATTRIBUTABLE, Verdict.PARTIALLY_ATTRIBUTABLE, Verdict.NOT_ATTRIBUTABLE
_E, _C = Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY
_ATTRSCORE = (
    "As an Attribution Validator, your task is to verify whether a given reference can support the given claim. A "
    "claim can be either a plain sentence or a question followed by its answer. Specifically, your response should "
    "clearly indicate the relationship: Attributable, Contradictory or Extrapolatory. A contradictory error occurs "
    "when you can infer that the answer contradicts the fact presented in the context, while an extrapolatory error "
    "means that you cannot infer the correctness of the answer based on the information provided in the context. "
    "\n\nClaim: {hypothesis} \n Reference: {premise}"
)


@dataclass(frozen=True, slots=True)
class Family:
    """The input of a model family, and the meaning of its outputs.

    `words` maps the answers of a text-to-text model to verdicts; a classifier has labels instead (`label_verdicts`).
    `{eos}` in `prompt` is the tokenizer's end-of-sequence token. Without a prompt, a classifier takes premise and
    hypothesis as a pair.
    """

    prompt: str | None
    words: Mapping[str, Verdict]
    template: str
    decision: str = "score"
    max_length: int = 512


FAMILIES = {
    "true": Family("premise: {premise} hypothesis: {hypothesis}", {"1": _A, "0": _N}, "aqa.v1"),
    "nli": Family(None, {}, "auto.v1"),
    "minicheck": Family("{premise}{eos}{hypothesis}", {}, "auto.v1"),
    "minicheck-t5": Family("predict: {premise}{eos}{hypothesis}", {"1": _A, "0": _N}, "auto.v1"),
    "attrscore": Family(
        _ATTRSCORE,
        {"Attributable": _A, "Contradictory": _C, "Extrapolatory": _E},
        "question-answer.v1",
        "decode",
        max_length=2048,
    ),
}
# The config of a T5 does not name its training task, so public checkpoints are listed here.
_KNOWN_T5 = {
    "google/t5_xxl_true_nli_mixture": "true",
    "lytang/MiniCheck-Flan-T5-Large": "minicheck-t5",
    "osunlp/attrscore-flan-t5-large": "attrscore",
    "osunlp/attrscore-flan-t5-xl": "attrscore",
    "osunlp/attrscore-flan-t5-xxl": "attrscore",
}
_SHORT = {"google/t5_xxl_true_nli_mixture": "true-t5"}
_LABELS = (
    (_P, ("partial", "partly")),
    (_N, ("not_entail", "non_entail", "no_entail", "unsupport", "not_support", "no_support", "not_attribut")),
    (_A, ("entail", "support", "attribut")),
    (_E, ("neutral", "not_enough_info", "extrapol")),
    (_C, ("contradict", "refut")),
)
_ANSWER_TOKENS = 10  # the limit of ALCE's eval.py; answers are one to three tokens and an end-of-sequence token
_MIN_EVIDENCE_TOKENS = 32  # tokens that a claim must leave for the evidence
_UNLIMITED_TOKENS = 1 << 15  # tokens, more than any passage has; a T5 has relative positions and so no length limit
_SORTED_BATCHES = 64  # batches collected before sorting by length
_CACHED_BATCHES = 8  # batches in `at_once`
_DIGITS = 5  # digits of a probability that do not depend on the batch (fp32)


class HfJudge(Judge):
    """A transformers model as a judge; the best window over all evidence decides, and is reported as the evidence.

    `model` is a folder, or a name on the Hugging Face hub with an optional `@revision`; empty for TRUE's T5.

    A pair is attributable if any window is, else undecided if any window is, else partially attributable if any window
    is; otherwise the window with the highest probability decides (the first of equals). With `decision` "score" the
    verdict is the likeliest answer at the first token; for "1" and "0" that is P("1") / (P("1") + P("0")) > 0.5, the
    usual reading of Attributed QA's score (Bohnet et al. 2022). With "decode" the greedily decoded text must match an
    answer exactly, and any other text is undecided. Probabilities are those of the first token in both cases.

    A classifier's class "partial" is partial support. For other models, `partial_from` is the probability from which a
    no that is no contradiction is partially attributable.

    Evidence beyond `max_length` tokens is split by `windows`; a claim that leaves no room for evidence is undecided.
    Nothing is truncated. With `compat` "google-2023" a TRUE-style T5 decodes and reads premises whole, like Attributed
    QA's released script. On a GPU the model runs in bfloat16, and the judge's name contains `bf16`.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        family: str | None = None,
        template: str | None = None,
        decision: str | None = None,
        max_length: int | None = None,
        batch_size: int = 16,
        compat: str | None = None,
        partial_from: float | None = None,
    ) -> None:
        check_partial_from(partial_from)
        if family not in (None, *FAMILIES):
            raise UserError(f"no model family called {family!r}; there are: {', '.join(FAMILIES)}")
        if decision not in (None, "decode", "score"):
            raise UserError(f"no decision rule called {decision!r}; there are: decode, score")
        if compat not in (None, "google-2023"):
            raise UserError(f"no mode called {compat!r}; there is: google-2023")
        if batch_size < 1:
            raise UserError(f"batch size {batch_size}: must be at least 1")
        if template is not None:
            hypothesis_template(template)
        model = model or DEFAULT_MODEL
        checkpoint = _load(model, family)
        self._model, self._tokenizer, self._labels = checkpoint.model, checkpoint.tokenizer, checkpoint.labels
        self.family = FAMILIES[checkpoint.family]
        if compat and checkpoint.family == "true":
            decision, max_length = decision or "decode", max_length or _UNLIMITED_TOKENS
        self.decision = decision or self.family.decision
        if self.decision == "decode" and not self.family.words:
            raise UserError(f"{model}: a classifier has no text to decode; omit the decision rule")
        self.max_length = _choose_length(model, max_length, self.family.max_length, checkpoint.positions)
        self.batch_size, self.partial_from = batch_size, partial_from
        self._template = template or self.family.template
        self._hypothesis = hypothesis_template(self._template)
        self._plain = plain_text(self._tokenizer)
        parts = [self._template]
        if checkpoint.family not in ("true", "nli"):
            parts.append(checkpoint.family)
        if self.family.words:
            parts.append(self.decision)
        if checkpoint.half:
            parts.append("bf16")
        suffix = partial_suffix(partial_from)
        self._name = f"{checkpoint.short}@{checkpoint.revision}/{self.max_length}/{'+'.join(parts)}{suffix}"

    @property
    def name(self) -> str:
        """`model@revision/max length/template`, then prompt family, decision rule, precision, `partial_from` if any."""
        return self._name

    @property
    def at_once(self) -> int:
        """Pairs per call for callers that cache: enough for sorting by length to pay."""
        return _CACHED_BATCHES * self.batch_size

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge in batches sorted by length; memory holds the windows of 64 batches at a time."""
        best: list[Judgement | None] = [None] * len(attributions)
        stream = self._inputs(attributions, best)
        while inputs := list(islice(stream, _SORTED_BATCHES * self.batch_size)):
            order = sorted(range(len(inputs)), key=lambda i: len(inputs[i][2]["input_ids"]))
            for start in range(0, len(order), self.batch_size):
                batch = [inputs[i] for i in order[start : start + self.batch_size]]
                for (index, window, _), judgement in zip(batch, self._ask([ids for *_, ids in batch]), strict=True):
                    best[index] = _better(best[index], replace(judgement, evidence=window.spans))
        judgements = [j or Judgement(Verdict.NOT_ATTRIBUTABLE, None, "nothing was cited") for j in best]
        return [with_partial(judgement, self.partial_from) for judgement in judgements]

    def _inputs(
        self, attributions: Sequence[Attribution], best: list[Judgement | None]
    ) -> Iterator[tuple[int, Window, dict[str, list[int]]]]:
        """The (index, window, tokens) of each window; sets pairs that do not fit to undecided in `best`."""
        for index, attribution in enumerate(attributions):
            if not any(text.strip() for text in attribution.evidence):
                continue
            hypothesis = self._hypothesis(attribution)
            n_tokens = len(self._encode("", hypothesis)["input_ids"])
            if n_tokens + _MIN_EVIDENCE_TOKENS > self.max_length:
                reason = f"the claim takes {n_tokens} of the judge's {self.max_length} tokens"
                best[index] = Judgement(Verdict.UNDECIDED, None, reason)
                continue
            for window in windows(attribution.evidence, self._counter(hypothesis), self.max_length):
                ids = self._encode(window.text, hypothesis)
                if len(ids["input_ids"]) > self.max_length:
                    reason = "a single character of the evidence exceeds the judge's token limit"
                    best[index] = _better(best[index], Judgement(Verdict.UNDECIDED, None, reason, window.spans))
                else:
                    yield index, window, ids

    def _counter(self, hypothesis: str) -> Callable[[str], int]:
        return lambda premise: len(self._encode(premise, hypothesis)["input_ids"])

    def _encode(self, premise: str, hypothesis: str) -> dict[str, list[int]]:
        """Token ids and, for models that use them, segment ids."""
        premise, hypothesis = self._plain(premise), self._plain(hypothesis)
        if self.family.prompt is None:
            encoded = self._tokenizer(premise, hypothesis)
        else:
            eos = self._tokenizer.eos_token or self._tokenizer.sep_token
            encoded = self._tokenizer(self.family.prompt.format(premise=premise, hypothesis=hypothesis, eos=eos))
        return {name: encoded[name] for name in ("input_ids", "token_type_ids") if name in encoded}

    def _ask(self, batch: Sequence[Mapping[str, list[int]]]) -> list[Judgement]:
        import torch

        width = max(len(encoded["input_ids"]) for encoded in batch)
        fill = {"input_ids": self._tokenizer.pad_token_id, "token_type_ids": 0, "attention_mask": 0}
        rows = [{**encoded, "attention_mask": [1] * len(encoded["input_ids"])} for encoded in batch]
        inputs = {
            name: torch.tensor(
                [row[name] + [fill[name]] * (width - len(row[name])) for row in rows], device=self._model.device
            )
            for name in rows[0]
        }
        with torch.inference_mode():
            if not self.family.words:
                return [self._judgement(row) for row in self._model(**inputs).logits.float().softmax(-1).tolist()]
            logits, texts = self._generate(inputs)
        return [self._judgement(row, text) for row, text in zip(logits.softmax(-1).tolist(), texts, strict=True)]

    def _generate(self, inputs: Mapping[str, "torch.Tensor"]) -> tuple["torch.Tensor", list[str | None]]:
        """Logits of the answers' first tokens, and the decoded texts if the decision rule is "decode"."""
        decode = self.decision == "decode"
        output = self._model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=_ANSWER_TOKENS if decode else 1,
            do_sample=False,
            num_beams=1,
            output_logits=True,
            return_dict_in_generate=True,
        )
        first = [token for token, _ in self._labels]
        texts: list[str | None] = [None] * len(inputs["input_ids"])
        if decode:
            texts = self._tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        return output.logits[0][:, first].float(), texts

    def _judgement(self, probabilities: Sequence[float], text: str | None = None) -> Judgement:
        """The likeliest verdict, or the decoded one; on a tie `attributable` loses."""
        shares: dict[Verdict, float] = {}
        for (_, verdict), share in zip(self._labels, probabilities, strict=True):
            shares[verdict] = shares.get(verdict, 0.0) + share
        if not all(math.isfinite(share) for share in shares.values()):
            return Judgement(Verdict.UNDECIDED, None, "the model's output is not a number")
        probability = round(min(shares[Verdict.ATTRIBUTABLE], 1.0), _DIGITS)
        if text is not None:
            if text not in self.family.words:
                return Judgement(Verdict.UNDECIDED, probability, f"the model wrote {text[:40]!r}")
            return Judgement(self.family.words[text], probability)
        verdict = max(shares, key=lambda verdict: (round(shares[verdict], _DIGITS), verdict is not _A))
        return Judgement(verdict, probability)


@dataclass(frozen=True, slots=True)
class _Loaded:
    model: Any
    tokenizer: Any
    family: str
    labels: list[tuple[int, Verdict]]  # output index (a class, or an answer's first token) and its verdict
    positions: int | None  # the model's maximum length in tokens; None if unlimited
    short: str  # the model's name without its owner or path
    revision: str
    half: bool


def label_verdicts(model: str, id2label: Mapping[int, str]) -> list[tuple[int, Verdict]]:
    """The verdict of each class of an NLI model.

    Raises `UserError` with a list of the labels if one is unknown or none means entailment.
    """
    verdicts = []
    for index, label in sorted(id2label.items()):
        plain = re.sub(r"[\s-]+", "_", label.casefold())
        verdicts += [(index, verdict) for verdict, parts in _LABELS if any(part in plain for part in parts)][:1]
    if len(verdicts) < len(id2label) or all(verdict is not Verdict.ATTRIBUTABLE for _, verdict in verdicts):
        labels = ", ".join(repr(label) for _, label in sorted(id2label.items()))
        raise UserError(
            f"{model}: the labels {labels} do not show which is entailment; name them entailment, neutral and "
            "contradiction in id2label of its config.json"
        )
    return verdicts


def _better(current: Judgement | None, other: Judgement) -> Judgement:
    """The better judgement: attributable, undecided, partial, negative; then by probability; then by window order."""

    def rank(judgement: Judgement) -> tuple[int, float, int, int]:
        order = {Verdict.ATTRIBUTABLE: 3, Verdict.UNDECIDED: 2, _P: 1}.get(judgement.verdict, 0)
        first = judgement.evidence[0]
        return order, judgement.probability or 0.0, -first.evidence, -first.start

    return other if current is None or rank(other) > rank(current) else current


def _choose_length(model: str, limit: int | None, default: int, positions: int | None) -> int:
    length = min(default, positions or default) if limit is None else limit
    if positions is not None and length > positions:
        raise UserError(f"{model}: max length {length} is above the model's {positions} positions")
    if length <= _MIN_EVIDENCE_TOKENS:
        raise UserError(
            f"{model}: max length {length} leaves no room for evidence; give more than {_MIN_EVIDENCE_TOKENS}"
        )
    return length


def _load(model: str, family: str | None) -> _Loaded:
    try:
        import torch  # noqa: F401  (transformers imports without torch, but loads no models)
        import transformers
        from safetensors import SafetensorError
    except ImportError as error:
        raise missing_extra(f"judge hf:{model}", "models", str(error.name)) from error
    with quiet_logging(user_path(model).is_dir()):
        hub_name, folder, commit = model_files(model)
        try:
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            kind = _kind(model, config.architectures or ())
            family = family or _family(hub_name, kind, config.id2label)
            if bool(FAMILIES[family].words) is not (kind == "t5"):
                raise UserError(
                    f"{model}: is a {config.architectures[0]}, which the family {family!r} does not support"
                )
            tokenizer = _padding(model, load_tokenizer(model, folder))
            labels = _labels(model, FAMILIES[family], family, config.id2label, tokenizer)
            classifier, t5 = transformers.AutoModelForSequenceClassification, transformers.AutoModelForSeq2SeqLM
            network, missing, half = load_network(t5 if kind == "t5" else classifier, hub_name, folder, commit)
        except (ImportError, LookupError, OSError, RuntimeError, SafetensorError, TypeError, ValueError) as error:
            raise UserError(f"{model}: cannot be loaded as a model: {first_line(error)}") from error
    if missing:
        raise UserError(f"{model}: its weights lack {', '.join(missing[:3])}; was it trained for this task?")
    short = _SHORT.get(hub_name, hub_name.split("/")[-1]) if commit else folder.resolve().name
    identity = commit[:12] if commit else local_revision(folder)
    return _Loaded(network, tokenizer, family, labels, _positions(network), short, identity, half)


def _kind(model: str, architectures: Sequence[str]) -> str:
    for architecture in architectures:
        if architecture.endswith("ForSequenceClassification"):
            return "classifier"
        if architecture.endswith("T5ForConditionalGeneration"):
            return "t5"
    names = ", ".join(architectures) or "a model without architectures"
    raise UserError(f"{model}: found {names} in its config; a sequence classifier or a T5 is needed")


def _family(model: str, kind: str, id2label: Mapping[int, str]) -> str:
    if kind == "t5":
        return _KNOWN_T5.get(model, "true")
    return "minicheck" if _has_default_labels(id2label) else "nli"


def _has_default_labels(id2label: Mapping[int, str]) -> bool:
    return sorted(id2label.values()) == ["LABEL_0", "LABEL_1"]


def _labels(
    model: str, family: Family, name: str, id2label: Mapping[int, str], tokenizer: "PreTrainedTokenizerBase"
) -> list[tuple[int, Verdict]]:
    if not family.words:
        if name == "minicheck" and len(id2label) == 2:
            return [(0, Verdict.NOT_ATTRIBUTABLE), (1, Verdict.ATTRIBUTABLE)]
        return label_verdicts(model, id2label)
    # In T5's vocabulary "1" is one token and "0" two, of which the first marks the beginning of a word.
    first = [
        (tokenizer(word, add_special_tokens=False)["input_ids"][0], verdict) for word, verdict in family.words.items()
    ]
    if len({token for token, _ in first}) < len(first):
        raise UserError(
            f"{model}: its tokenizer gives two of the answers {', '.join(family.words)} the same first token"
        )
    return first


def _padding(model: str, tokenizer: "PreTrainedTokenizerBase") -> "PreTrainedTokenizerBase":
    if tokenizer.pad_token_id is None:
        raise UserError(f"{model}: its tokenizer has no padding token; set pad_token in tokenizer_config.json")
    return tokenizer


def _positions(network: "torch.nn.Module") -> int | None:
    """Rows of the model's table of position embeddings, minus those reserved for padding; None without a table."""
    import torch

    for name, module in network.named_modules():
        if name.endswith(("position_embeddings", "embed_positions")) and isinstance(module, torch.nn.Embedding):
            n_reserved = getattr(module, "offset", 0) or (0 if module.padding_idx is None else module.padding_idx + 1)
            return int(module.num_embeddings - n_reserved)
    return None
