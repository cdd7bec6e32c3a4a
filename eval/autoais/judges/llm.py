"""`llm:<model>`: chat models on any OpenAI-compatible server as judges; the label is read from the reply's text."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from autoais.base.errors import UserError
from autoais.base.models.chat import ChatClient, NoReply, Reply, Request, estimated_tokens
from autoais.base.models.thoughts import without_thoughts
from autoais.base.types import Attribution, Judge, Judgement, Verdict
from autoais.judges.prompts import read_prompt
from autoais.judges.windows import Window, windows

DEFAULT_PROMPT = "attrscore-attribution-with-definition.v1"
OSU_2023 = "osu-2023"  # reads replies like AttrScore's released notebook
_MIN_EVIDENCE_TOKENS = 32  # tokens that question and claim must leave for long evidence
_ROUNDS = 4  # requests per connection in `at_once`; with fewer, many connections would wait for the slowest one
_PLACEHOLDER = re.compile(r"\{(claim|statement|question|evidence|mark)\}")

Labels = Mapping[str, Verdict]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message with placeholders, the labels allowed in the reply, and the SHA-256 of the shipped file with both."""

    name: str
    message: str
    labels: Labels
    sha256: str

    @classmethod
    def read(cls, name: str) -> "Prompt":
        """The shipped prompt of that name (format: prompts/README.md); `UserError` with the known names if missing."""
        data = read_prompt(name)
        message, _, labels = data.decode("utf-8").rpartition("\n---\n")
        pairs = (line.split(": ") for line in labels.splitlines())
        return cls(
            name, message, {label: Verdict(verdict) for label, verdict in pairs}, hashlib.sha256(data).hexdigest()
        )

    def fill(self, attribution: Attribution) -> str:
        """The message for one attribution; evidence texts are separated by blank lines.

        `{claim}` is question, space and claim, with a missing or "nan" part empty (AttrScore, Yue et al. 2023).
        """
        question, statement = ("" if text == "nan" else text for text in (attribution.question, attribution.claim))
        evidence = "\n\n".join(text for text in attribution.evidence if text.strip())
        content = "\0".join((question, statement, evidence)).encode("utf-8", "surrogatepass")
        values = {
            "claim": f"{question} {statement}",
            "statement": statement,
            "question": question,
            "evidence": evidence,
            "mark": hashlib.sha256(content).hexdigest()[:8],
        }
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.message)


class LlmJudge(Judge):
    """A model on a server, prompted with one of the prompts in `prompts/judge`; temperature 0, seed 0.

    `budget` is the maximum number of tokens of a whole prompt, estimated as one per three bytes, which tends to
    overestimate. Longer evidence is split by `windows`, one request each. A claim is attributable if any window is,
    else undecided if any window is; otherwise contradictory ranks above partial support, and partial support above
    other negative verdicts. The first of equals decides and is reported as the evidence. A claim that leaves no room
    for evidence is undecided; nothing is truncated.

    A reply has at most `max_tokens` tokens. A pair is undecided if the server did not answer or the reply has no label;
    the reason quotes the error or the reply. Otherwise the reason is the label in lower case. `support.v1` asks for the
    levels of the TREC RAG track: full support is attributable, partial support partially attributable.
    `compat="osu-2023"` reads AttrScore's replies with the defects of its released notebook. Judgements have no
    probability.

    `concurrency` requests run at once, each with a `timeout` in seconds and up to `retries` retries; a `client` has its
    own settings instead.
    """

    def __init__(
        self,
        model: str,
        *,
        prompt: str = DEFAULT_PROMPT,
        compat: str | None = None,
        budget: int = 4000,
        max_tokens: int = 512,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 5,
        client: ChatClient | None = None,
    ) -> None:
        if not model.strip():
            raise UserError("the judge 'llm:' names no model; write llm:<model>, such as llm:gpt-4o-mini")
        if compat not in (None, OSU_2023):
            raise UserError(f"no mode called {compat!r} for an llm judge; there is: {OSU_2023}")
        if compat is not None and not prompt.startswith("attrscore-"):
            raise UserError(f"{compat} reads replies to AttrScore's prompts; {prompt!r} is not one of them")
        if budget < 1 or max_tokens < 1:
            raise UserError(f"llm judge with budget {budget} and max_tokens {max_tokens}: both must be at least 1")
        self.model = model
        self.prompt = Prompt.read(prompt)
        self.compat = compat
        self.budget = budget
        self.max_tokens = max_tokens
        self.client = client or ChatClient(concurrency=concurrency, timeout=timeout, retries=retries)

    @property
    def name(self) -> str:
        """`llm:<model>@<server>/<budget>+<max_tokens>/<prompt>`, with `+osu-2023` appended in that mode.

        The server's host and path (without a path of just `/v1`) take the place of a revision: the name must be known
        before the first call, and the model name that a server reports may change between calls. `client.served` holds
        the reported names.
        """
        mode = f"+{self.compat}" if self.compat else ""
        return f"llm:{self.model}@{self.client.endpoint}/{self.budget}+{self.max_tokens}/{self.prompt.name}{mode}"

    @property
    def at_once(self) -> int:
        """Pairs per call for callers that cache; a killed run repeats at most this many requests."""
        return _ROUNDS * self.client.concurrency

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge each attribution, with one request per window; raises `UserError` like `ChatClient.answer_async`."""
        requests: list[tuple[int, Window | None, str]] = []
        best: list[Judgement | None] = [None] * len(attributions)
        for index, attribution in enumerate(attributions):
            full_prompt = self.prompt.fill(attribution)
            bare = estimated_tokens(self.prompt.fill(replace(attribution, evidence=())))
            if estimated_tokens(full_prompt) <= self.budget:
                requests.append((index, None, full_prompt))
            elif bare + _MIN_EVIDENCE_TOKENS > self.budget:
                reason = f"the claim takes {bare} of the judge's {self.budget} tokens"
                best[index] = Judgement(Verdict.UNDECIDED, None, reason)
            else:
                requests += [(index, window, message) for window, message in self._windows(attribution)]
        replies = self.client.answer([self._request(message) for _, _, message in requests])
        for (index, window, _), reply in zip(requests, replies, strict=True):
            judgement = self._read(reply)
            if window is not None:
                judgement = replace(judgement, evidence=window.spans)
            before = best[index]
            best[index] = judgement if before is None or _rank(judgement) > _rank(before) else before
        return [judgement for judgement in best if judgement is not None]

    def _windows(self, attribution: Attribution) -> Iterator[tuple[Window, str]]:
        def fill(text: str) -> str:
            return self.prompt.fill(replace(attribution, evidence=(text,)))

        for window in windows(attribution.evidence, lambda text: estimated_tokens(fill(text)), self.budget):
            yield window, fill(window.text)

    def _request(self, message: str) -> Request:
        label = {"type": "string", "enum": list(self.prompt.labels)}
        schema = {
            "type": "object",
            "properties": {"label": label},
            "required": ["label"],
            "additionalProperties": False,
        }
        return Request(self.model, (("user", message),), self.max_tokens, schema=None if self.compat else schema)

    def _read(self, reply: Reply | NoReply) -> Judgement:
        if isinstance(reply, NoReply):
            return Judgement(Verdict.UNDECIDED, None, reply.reason)
        read_reply = read_label_osu_2023 if self.compat else read_label
        verdict, reason = read_reply(reply.text, self.prompt.labels)
        if verdict is Verdict.UNDECIDED:
            cut = f" (stopped at {self.max_tokens} tokens)" if reply.cut else ""
            reason = f"{reason} in the reply{cut}: {self.client.excerpt(reply.text)!r}"
        return Judgement(verdict, None, reason)


def _rank(judgement: Judgement) -> int:
    ranks = (Verdict.PARTIALLY_ATTRIBUTABLE, Verdict.CONTRADICTORY, Verdict.UNDECIDED, Verdict.ATTRIBUTABLE)
    return ranks.index(judgement.verdict) + 1 if judgement.verdict in ranks else 0


_VARIANTS: Mapping[str, tuple[str, ...]] = {  # other wordings of a label (patterns); `-` is any space or dash
    "Full support": ("fully-support", r"support(?:-level)?\s*[:=]\s*fully?"),
    "Partial support": ("part(?:ial)?ly-support", r"support(?:-level)?\s*[:=]\s*partial(?:ly)?"),
    "No support": ("not-support", "unsupport", r"support(?:-level)?\s*[:=]\s*no(?:ne)?"),
    "Entailment": ("entail",),
    "Contradiction": ("contradict", "contradictory"),
    "Contradictory": ("contradict", "contradiction"),
    "Contradict": ("contradiction", "contradictory"),
    "Not Enough Information": ("not-enough-info",),
}
_WORD = (
    r"[^\S\n]+(?!(?:but|rather|instead|and|so|thus|therefore|hence|because|since|as|while|though|although|that|which"
    r"|who|whose|what|where|when|whether|if)\b)\w[\w'’-]*"
)
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|cannot|never|neither|nor|no|none|nothing|without|fail(?:s|ed)? to|unable to|insufficient|little"
    r"|partial(?:ly)?|partly|non|lack(?:s|ed|ing)?|absence|hardly|barely|scarcely|far from|short of"
    r"|(?:rather|other|less) than|instead of)|n['’]t)"
    rf"\b(?![^\S\n]+(?:only|doubt|question)\b)(?:{_WORD}){{0,7}}[^\S\n]+\Z",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    # "Support: none", "Full support? Hardly."
    r"\s*[:=?]\s*(?:no|not|none|false|never|hardly|partial(?:ly)?|partly|lacking|missing|absent|insufficient)\b"
    # "Full support of the claim is not given", "Full support would need a date"
    rf"|(?:{_WORD}){{0,5}}?(?:[^\S\n]+(?:cannot|can['’]t|would[^\S\n]+(?:need|require))\b"
    r"|[^\S\n]+(?:is|are|was|were|be|been|has|have|had|can|could|does|do|did|would|should|may|might|must|will)"
    r"(?:n['’]t|[^\S\n]+(?:not|never|hardly|lacking|missing|absent|impossible|wrong|false)(?![^\S\n]+only))\b)"
    r"|[^\S\n]+(?:needs|requires)\b"
    # "Supported, but only in part"
    r"|[\s,;(–—-]+(?:(?:but|though|although|albeit)\s+)?(?:(?:only|just|merely)\s+)?"
    r"(?:partial(?:ly)?|partly|in[^\S\n]+part|not[^\S\n]+(?:fully|entirely|completely|wholly|in[^\S\n]+full))"
    r"\b(?!(?:[^\S\n]|-)+support)",
    re.IGNORECASE,
)
_ANNOUNCEMENT = re.compile(
    r"(?:\A|\b(?:answer|label|verdict|response|output|conclusion|level)\b\W*(?:is\b|:)?)\W*\Z", re.IGNORECASE
)
_SEPARATORS = " \t\n\r\f\v,/|"  # the labels of a list


@dataclass(frozen=True, slots=True)
class _Mention:
    label: str
    is_denied: bool
    is_announced: bool


def read_label(reply: str, labels: Labels) -> tuple[Verdict, str]:
    """The verdict stated in a model's reply, and the label in lower case.

    Reads the `label` of a JSON object, else plain text: the longest label first, on word boundaries, also inflected
    (`supports` for Support) or as one of its variants (`contradicts` for Contradiction, `fully supported` for Full
    support). A label at the start of the reply, or after "answer:" and the like, takes precedence. Otherwise two
    different labels are undecided, and so is a label both stated and negated. If the attributable label is negated
    ("not attributable", "unsupported", "full support is not given") and no other label is stated, the verdict is not
    attributable; other negated labels are ignored. Thoughts are not read.
    """
    text = re.sub(r"[*_`\"“”]", " ", _json_label(without_thoughts(reply)))
    mentions = _mentions(text, labels)
    positive_mentions = [m for m in mentions if not m.is_denied]
    announced_mentions = [m for m in positive_mentions if m.is_announced]
    denied_labels = {m.label for m in mentions if m.is_denied}
    stated_labels = {m.label for m in announced_mentions or positive_mentions}
    if len(stated_labels) > 1:
        return Verdict.UNDECIDED, "more than one label"
    if stated_labels:
        (label,) = stated_labels
        if label in denied_labels:
            return Verdict.UNDECIDED, "a label both stated and negated"
        return labels[label], label.lower()
    for label in sorted(denied_labels):
        if labels[label] is Verdict.ATTRIBUTABLE:
            return Verdict.NOT_ATTRIBUTABLE, f"not {label.lower()}"
    return Verdict.UNDECIDED, "no label"


def read_label_osu_2023(reply: str, labels: Labels) -> tuple[Verdict, str]:
    """The verdict and the label in lower case, extracted like AttrScore's released notebook does.

    The notebook takes the first label name anywhere, even inside a word or negated, and capitalises it. `Not Enough
    Information` is therefore never found in the label map.
    """
    match = re.search("|".join(labels), reply.strip(), re.IGNORECASE)
    label = match.group().capitalize() if match else ""
    return (labels[label], label.lower()) if label in labels else (Verdict.UNDECIDED, "no label")


def _json_label(text: str) -> str:
    """The `label` if the whole reply is a JSON object, bare or in a code fence; else the reply."""
    bare = text.strip()
    if len(bare) > 5 and bare.startswith("```") and bare.endswith("```"):
        bare = bare[3:-3].removeprefix("json")
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return text
    label = value.get("label") if isinstance(value, dict) else None
    return label if isinstance(label, str) else text


def _mentions(text: str, labels: Labels) -> list[_Mention]:
    wordings = [(name.removesuffix("ed").replace(" ", "-"), name) for name in labels]
    wordings += [(variant, name) for name in labels for variant in _VARIANTS.get(name, ())]
    wordings.sort(key=lambda pair: (-len(pair[0]), pair))
    names = [name for _, name in wordings]
    stems = (stem.replace("-", r"[\s-]+") for stem, _ in wordings)
    choice = "|".join(f"(?P<label{number}>{stem})" for number, stem in enumerate(stems))
    pattern = re.compile(rf"(?<!\w)(un-?|non-?)?(?:{choice})(?:e|s|es|d|ed)?(?!\w)", re.IGNORECASE)
    matches = list(pattern.finditer(text))
    list_ends = {
        a.end()
        for a, b in pairwise(matches)
        if text[a.end() : b.start()].strip(_SEPARATORS).lower() in ("", "or", "and")
    }
    mentions = []
    for match in matches:
        before = text[max(0, match.start() - 100) : match.start()]
        is_denied = match[1] is not None or bool(
            _DENIED_BEFORE.search(before) or _DENIED_AFTER.match(text, match.end())
        )
        is_announced = match.end() not in list_ends and bool(_ANNOUNCEMENT.search(before))
        mentions.append(_Mention(names[int(str(match.lastgroup).removeprefix("label"))], is_denied, is_announced))
    return mentions
