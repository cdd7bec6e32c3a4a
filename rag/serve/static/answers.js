// An answer as the server sends it: drafts, the answer, its verdicts, or a failure.

import { all, element, find, nodes, post, refusal } from "./dom.js";
import { panelOf, pickMarks, showFirst } from "./passages.js";

/** The server-sent events of an answer, as [name, data]. */
async function* events(question, signal) {
  const reply = await post("/ask", question, signal);
  if (!reply.ok) {
    yield ["failed", { message: await refusal(reply) }];
    return;
  }
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let buffer = ""; ;) {
    const { value, done } = await reader.read();
    buffer += value || "";
    const messages = buffer.split("\n\n");
    buffer = messages.pop();
    for (const message of messages) {
      const [, name, data] = message.match(/^event: (\w+)\ndata: (.*)$/s) || [];
      if (name) yield [name, JSON.parse(data)];
    }
    if (done) return;
  }
}

/** Write an answer into a turn as it comes, and tell `on` of it; returns the data of the answer, or null. */
export async function write(turn, question, retry, on = () => {}) {
  const stop = new AbortController();
  const button = element("button", { type: "button", textContent: "Stop" });
  button.addEventListener("click", () => stop.abort());
  const waiting = setTimeout(() => turn.append(button), 1500);
  turn.append(element("p", { className: "writing quiet", textContent: "Searching the sources" }));
  let answer = null;
  const settle = () => { clearTimeout(waiting); button.remove(); find(".writing", turn)?.remove(); };
  try {
    for await (const [name, data] of events(question, stop.signal)) {
      if (name === "draft") {
        if (data.html) grow(turn, data.html);
      } else if (name === "answer") {
        answer = data;
        settle();
        grow(turn, data.html);
        on(answer);
      } else if (name === "verdicts") {
        showVerdicts(turn, data.html);
        on(answer, data.checks);
      } else throw new Error(data.message, { cause: "server" });
    }
    if (!answer) throw new Error("no answer");
  } catch (error) {
    settle();
    if (answer) await check(turn, answer.record, (checks) => on(answer, checks));
    else if (stop.signal.aborted) fail(turn, "Stopped.", retry);
    else fail(turn, error.cause === "server" ? error.message : "The connection to the server was lost.", retry);
  }
  return answer;
}

/** Say in a turn that its question has no answer, and offer to ask it again. */
export function fail(turn, message, retry) {
  const button = element("button", { type: "button", textContent: "Retry" });
  button.addEventListener("click", retry);
  const warning = element("p", { className: "warning", textContent: message });
  warning.setAttribute("role", "alert");
  turn.append(element("div", { className: "failure" }, warning, button));
}

/** Put a longer answer into a turn: sentences and passages that are there stay, and with them focus and scroll. */
function grow(turn, html) {
  const update = find(".answer", new DOMParser().parseFromString(html, "text/html"));
  const answer = find(".answer", turn);
  const sentences = all(".sentence", update);
  const earlier = answer ? all(".sentence", answer) : [];
  if (!answer || earlier.some((sentence, n) => sentence.textContent !== sentences[n]?.textContent)) {
    answer?.remove();
    find(".writing", turn)?.remove();
    find(".question", turn).after(update);
  } else {
    const said = find(".said", answer);
    said.append(...sentences.slice(earlier.length));
    for (const part of [...said.parentElement.children]) if (part !== said) part.remove();
    const parts = [...find(".reading", update).children];
    const place = parts.findIndex((part) => part.matches(".said"));
    said.before(...parts.slice(0, place));
    said.after(...parts.slice(place + 1));
    for (const passage of all(".passage", update)) {
      const panel = find(`#${CSS.escape(passage.id)}`, answer);
      if (panel) for (const part of [".here", "header p"]) find(part, panel).replaceWith(find(part, passage)); // it may have more marks
      else find(".passages", answer).append(passage);
    }
    const current = find("[aria-current]", answer);
    if (current) pickMarks(current, panelOf(current));
  }
  prepare(turn);
}

/** Get the verdicts of an answer that came without them, and tell `on` of the checks. */
export async function check(turn, record, on) {
  const summary = find("[data-part=summary]", turn);
  if (!summary) return;
  summary.replaceChildren(element("span", { className: "quiet busy", textContent: "Checking each sentence against what it cites" }));
  try {
    const reply = await post("/verdicts", { ...record, place: find(".answer", turn).dataset.place });
    if (!reply.ok) throw new Error(await refusal(reply));
    const { html, checks } = await reply.json();
    showVerdicts(turn, html);
    on(checks);
  } catch {
    const button = element("button", { type: "button", className: "small", textContent: "Check again" });
    button.addEventListener("click", () => check(turn, record, on));
    summary.replaceChildren("The sentences were not checked. ", button);
  }
}

/** Put the verdicts into an answer; the citations stay, and with them the focus. */
function showVerdicts(turn, html) {
  const answer = find(".answer", turn);
  for (const update of nodes(html)) {
    if (!(update instanceof HTMLElement)) continue;
    if (update.dataset.part === "summary") find("[data-part=summary]", answer).replaceChildren(...update.childNodes);
    else if (update.dataset.panel) find(`#${CSS.escape(update.dataset.panel)} .here`, answer)?.replaceWith(...update.children);
    else {
      const sentence = find(`.sentence[data-sentence="${update.dataset.sentence}"]`, answer);
      for (const part of [...update.children]) find(`[data-part=${part.dataset.part}]`, sentence).replaceChildren(...part.childNodes);
    }
  }
  const current = find("[aria-current]", answer);
  if (current) pickMarks(current, panelOf(current));
}

/** Show the menus and the first passage of new answers. */
export function prepare(root) {
  for (const menu of all(".copies, .rating", root)) menu.hidden = false;
  for (const answer of all(".answer:has(.rating)", root)) for (const button of all("[data-rate=wrong-source]", answer)) button.hidden = false;
  for (const answer of all(".answer", root)) showFirst(answer);
}
