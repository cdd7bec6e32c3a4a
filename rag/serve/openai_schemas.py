"""What OpenAI's API takes and returns, for the description at `/openapi.json`; nothing is checked against it here."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class UrlCitation(BaseModel):
    """A citation: its place in the text, end exclusive, and the passage with what is cited marked."""

    start_index: int = Field(description="Counts characters (Unicode code points).")
    end_index: int
    start_utf16: int = Field(description="`start_index` in UTF-16 code units, as JavaScript counts.")
    end_utf16: int
    title: str
    url: str
    quotes: list[str] = Field(description="What the sentence cites, verbatim.")


class ChatAnnotation(BaseModel):
    """A citation in the nested form of chat completions."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class ChatMessage(BaseModel):
    """The answer; its text has a marker for each annotation."""

    role: Literal["assistant"]
    content: str
    refusal: None
    annotations: list[ChatAnnotation]


class Choice(BaseModel):
    """The only answer."""

    index: int
    message: ChatMessage
    logprobs: None
    finish_reason: Literal["stop", "length"]


class PromptDetails(BaseModel):
    """Always zero: tokens are text, and none is counted as cached."""

    audio_tokens: int
    cached_tokens: int


class CompletionDetails(BaseModel):
    """Always zero: tokens are text, and those of reasoning are not told apart."""

    accepted_prediction_tokens: int
    audio_tokens: int
    reasoning_tokens: int
    rejected_prediction_tokens: int


class ChatUsage(BaseModel):
    """Tokens of the language model; zero for a system without one."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class SourceCard(BaseModel):
    """A cited passage as Open WebUI reads it."""

    source: dict[str, str]
    document: list[str] = Field(description="The quotes; a space parts what a program would load or link.")
    metadata: list[dict[str, str]]


class AnswerDetails(BaseModel):
    """What OpenAI's objects have no field for."""

    abstained: bool = Field(description="The passages do not answer the question; `reason` says why.")
    failed: bool
    reason: str | None
    confidence: float | None
    question: str = Field(description="As it was searched: a follow-up question as a whole one.")
    index: str
    system: str


class ChatCompletion(BaseModel):
    """An answer; with `stream` it comes as chunks, the last of them `[DONE]`."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    attributed_rag: AnswerDetails
    sources: list[SourceCard] | None = Field(None, description="Only with `cite` `open-webui`.")


class ResponseAnnotation(UrlCitation):
    """A citation in the flat form of responses."""

    type: Literal["url_citation"]


class OutputText(BaseModel):
    """The text of an answer, with a marker for each annotation."""

    type: Literal["output_text"]
    text: str
    annotations: list[ResponseAnnotation]
    logprobs: list[Any]


class OutputMessage(BaseModel):
    """The answer."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    status: str
    content: list[OutputText]


class CachedTokens(BaseModel):
    """Always zero."""

    cached_tokens: int
    cache_write_tokens: int


class ReasoningTokens(BaseModel):
    """Always zero."""

    reasoning_tokens: int


class ResponseUsage(BaseModel):
    """Tokens of the language model; zero for a system without one."""

    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


class ResponseObject(BaseModel):
    """An answer; with `stream` it comes as events, the last of them `response.completed` or `response.incomplete`."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int
    model: str
    status: str
    output: list[OutputMessage]
    instructions: str | None
    metadata: dict[str, str]
    usage: ResponseUsage
    attributed_rag: AnswerDetails


class ModelObject(BaseModel):
    """A model: a system (`reader`), or a system over an index (`reader@docs`)."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(BaseModel):
    """The models that are served."""

    object: Literal["list"]
    data: list[ModelObject]


class OpenAIFault(BaseModel):
    """An error in one line, and the field at fault."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIError(BaseModel):
    """An error in the shape of OpenAI's API."""

    error: OpenAIFault


ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": OpenAIError, "description": "Something in the request cannot be used."},
    401: {"model": OpenAIError, "description": "The key is missing or wrong."},
    404: {"model": OpenAIError, "description": "There is no such model."},
    413: {"description": "The request is too large."},
    429: {"model": OpenAIError, "description": "Too many requests; `Retry-After` says when to try again."},
    502: {"model": OpenAIError, "description": "The language model did not answer."},
    503: {"model": OpenAIError, "description": "The server is too busy; `Retry-After` says when to try again."},
    504: {"model": OpenAIError, "description": "The time limit is over."},
}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the description of a request whose body is of a model, with the parts of the model inside."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def inline(node: Any) -> Any:  # noqa: ANN401  (JSON)
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            return inline(parts[name]) if name else {key: inline(value) for key, value in node.items()}
        return [inline(item) for item in node] if isinstance(node, list) else node

    return {"requestBody": {"required": True, "content": {"application/json": {"schema": inline(schema)}}}}
