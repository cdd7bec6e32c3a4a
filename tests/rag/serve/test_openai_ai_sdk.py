"""The AI SDK's provider for servers that are like OpenAI's, in Node.js, asked to speak to a server of ours.

`make test-extras` installs the packages, in a folder that `AI_SDK` names.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rag.serve.served import make_index, running

pytest.importorskip("fastapi", reason="needs the extra serve")
NODE, FOLDER = shutil.which("node"), Path(os.environ.get("AI_SDK", ".venv-extras"))
if NODE is None:
    pytest.skip("needs node", allow_module_level=True)
if not (FOLDER / "node_modules/@ai-sdk/openai-compatible").is_dir():
    pytest.skip("needs @ai-sdk/openai-compatible: make test-extras", allow_module_level=True)

QUESTION = "When did the Aller bridge open?"
ASK = """
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";

const [address, prompt, model, options] = process.argv.slice(1);
const provider = createOpenAICompatible({ name: "rag", baseURL: `${address}/v1`, includeUsage: true });
const call = { model: provider(model), prompt, providerOptions: JSON.parse(options), maxRetries: 0 };
try {
  const whole = await generateText(call);
  const stream = streamText(call);
  const pieces = [];
  for await (const piece of stream.textStream) pieces.push(piece);
  const reasons = [whole.finishReason, await stream.finishReason];
  const tokens = [whole.usage.totalTokens, (await stream.usage).totalTokens];
  console.log(JSON.stringify({ text: whole.text, pieces, reasons, tokens }));
} catch (error) {
  console.log(JSON.stringify({ status: error.statusCode, message: error.message }));
}
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("sdk")
    make_index(folder)
    with running(folder / "town.index") as server:
        yield server.url


def ask(address: str, model: str = "reader", **options: Any) -> Any:  # noqa: ANN401
    """What the SDK gives, asked once for a whole answer and once for a stream."""
    command = [str(NODE), "--input-type=module", "-e", ASK, address, QUESTION, model, json.dumps({"rag": options})]
    finished = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(finished.stdout)


def test_text_is_read_streamed_or_not(address: str) -> None:
    found = ask(address)
    assert "opened in 1931 [1]" in found["text"]
    assert "".join(found["pieces"]) == found["text"]
    assert (found["reasons"], found["tokens"]) == (["stop", "stop"], [0, 0])


def test_sources_are_in_the_text(address: str) -> None:
    found = ask(address, cite="footnotes")
    assert "opened in 1931[^1]." in found["text"]
    assert f"\n\n[^1]: [The Aller bridge, History]({address}/p/town/" in found["text"]
    assert "“The Aller bridge opened in 1931.”" in found["text"]
    assert "".join(found["pieces"]) == found["text"]


def test_a_refusal_says_why(address: str) -> None:
    assert ask(address, "no") == {"status": 404, "message": "no model 'no'; there are: reader, reader@town"}
