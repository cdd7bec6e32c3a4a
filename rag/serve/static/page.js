// Asks questions, shows the passage of a citation, keeps the history. The server renders all HTML and escapes it;
// without this script the same addresses give whole pages.

const HISTORY = "attributed-rag: history";
const MAX_HISTORY = 100;
const MAX_TURNS = 20;

const find = (css, root = document) => root.querySelector(css);
const all = (css, root = document) => [...root.querySelectorAll(css)];
const narrow = matchMedia("(max-width: 54rem)");

document.documentElement.classList.add("js");

/** Show a message for some seconds, or with `silent` only to screen readers. */
function announce(text, silent = false) {
  const status = find("#status");
  status.classList.toggle("silent", silent);
  status.textContent = text;
  clearTimeout(announce.timer);
  if (!silent) announce.timer = setTimeout(() => { status.textContent = ""; }, 5000);
}

/** HTML of the server, as nodes. */
function nodes(html) {
  return [...new DOMParser().parseFromString(html, "text/html").body.childNodes];
}

function element(name, values = {}, ...children) {
  const node = Object.assign(document.createElement(name), values);
  node.append(...children);
  return node;
}

// --- citations and passages ---

const LINKS = "a.cite, a.found[data-panel]";
let pinned = null; // the citation whose passage stays open while the mouse is over others

function panelOf(link) {
  const answer = link.closest(".answer");
  return answer && find(`#${CSS.escape(link.dataset.panel)}`, answer);
}

/** Show the passage of a citation. With `open` it stays; on a phone it slides in from below. */
function show(link, open = false) {
  const panel = panelOf(link);
  if (!panel || (narrow.matches && !open)) return;
  const answer = link.closest(".answer");
  for (const passage of all(".passage", answer)) {
    passage.classList.toggle("shown", passage === panel);
    passage.classList.toggle("open", passage === panel && open);
  }
  for (const citation of all("[aria-current]", answer)) citation.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  for (const current of all(".sentence.now", answer)) current.classList.remove("now");
  link.closest(".sentence")?.classList.add("now");
  const page = find(".page", panel);
  const first = pickMarks(link, panel)[0] || find(".here", panel);
  page.scrollTop += first.getBoundingClientRect().top - page.getBoundingClientRect().top - page.clientHeight / 4;
  if (open) {
    pinned = link;
    find(".shut", panel).hidden = false;
  }
}

/** The marks of a passage for the sentence of a citation; the others become fainter. */
function pickMarks(link, panel) {
  const sentence = link.closest(".sentence");
  const marks = all("mark", panel);
  const picked = sentence ? marks.filter((mark) => mark.dataset.for.split(" ").includes(sentence.dataset.sentence)) : marks;
  for (const mark of marks) mark.classList.toggle("other", picked.length > 0 && !picked.includes(mark));
  return picked;
}

/** Go back from a passage to its citation. */
function goBack() {
  const panel = find(".passage.open");
  if (!panel) return false;
  panel.classList.remove("open");
  if (pinned && pinned.isConnected) pinned.focus();
  pinned = null;
  return true;
}

/** Show the passage of the first citation, unless one is shown. */
function showFirst(answer) {
  if (find("[aria-current]", answer)) return;
  const first = find(".sentence:not(.aside) a.cite", answer) || find(LINKS, answer);
  if (first) show(first);
}

document.addEventListener("mouseover", (event) => {
  if (!event.movementX && !event.movementY) return; // the page scrolled under a mouse that rests
  const link = event.target.closest(LINKS);
  if (link && !(pinned && pinned.closest(".answer") === link.closest(".answer"))) show(link);
});

document.addEventListener("focusin", (event) => {
  const link = event.target.closest(LINKS);
  if (link && !narrow.matches) show(link);
});

document.addEventListener("click", (event) => {
  if (event.target.closest(".shut")) return void goBack();
  const link = event.target.closest(LINKS);
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) {
    if (pinned && !event.target.closest(".passage")) {
      const panel = find(".passage.open");
      if (panel) panel.classList.remove("open");
      pinned = null;
    }
    return;
  }
  const panel = panelOf(link);
  if (!panel) return;
  event.preventDefault();
  show(link, true);
  find(".page", panel).focus({ preventScroll: true });
});

/** Move the focus to the next citation, or the one before. */
function step(by) {
  const links = all(".answer a.cite").filter((link) => link.checkVisibility());
  if (!links.length) return;
  const start = document.activeElement.closest(".passage") && pinned ? pinned : document.activeElement;
  const index = links.indexOf(start);
  const next = index >= 0 ? index + by : by > 0 ? links.findIndex((link) => start.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING) : links.length - 1;
  const link = links[Math.min(Math.max(next, 0), links.length - 1)];
  const open = narrow.matches && find(".passage.open");
  goBack();
  link.focus();
  if (open) show(link, true);
}

// --- asking ---

/** The server-sent events of an answer, as [name, data]. */
async function* events(question, signal) {
  const reply = await fetch("/ask", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
    signal,
  });
  if (!reply.ok) {
    const error = await reply.json().catch(() => ({}));
    yield ["failed", { message: error.message || "The server cannot answer now; try again." }];
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

/** Write an answer into a turn as it comes; returns the data of the answer, or null. `retry` asks again. */
async function write(turn, question, retry) {
  const stop = new AbortController();
  const button = element("button", { type: "button", textContent: "Stop" });
  button.addEventListener("click", () => stop.abort());
  const waiting = setTimeout(() => turn.append(button), 1500);
  turn.append(element("p", { className: "writing" }));
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
      } else if (name === "verdicts") showVerdicts(turn, data.html);
      else {
        settle();
        turn.append(element("p", { className: "warning", textContent: data.message }));
        turn.lastChild.setAttribute("role", "alert");
        if (data.retry) {
          const button = element("button", { type: "button", className: "retry", textContent: "Retry" });
          button.addEventListener("click", retry);
          turn.lastChild.append(" ", button);
        }
        if (answer) showUnchecked(turn);
        return null;
      }
    }
    if (!answer) throw new Error("no answer");
  } catch (error) {
    if (answer) showUnchecked(turn);
    else {
      settle();
      const message = stop.signal.aborted ? "Stopped." : "The connection was lost; ask again.";
      turn.append(element("p", { className: "warning", textContent: message }));
    }
  }
  return answer;
}

/** Put a longer answer into a turn: sentences and passages that are there stay, and with them focus and scroll. */
function grow(turn, html) {
  const longer = find(".answer", new DOMParser().parseFromString(html, "text/html"));
  const answer = find(".answer", turn);
  const sentences = all(".sentence", longer);
  const earlier = answer ? all(".sentence", answer) : [];
  if (!answer || earlier.some((sentence, n) => sentence.textContent !== sentences[n]?.textContent)) {
    answer?.remove();
    find(".writing", turn)?.remove();
    find(".question", turn).after(longer);
  } else {
    const said = find(".said", answer);
    said.append(...sentences.slice(earlier.length));
    for (const part of [...said.parentElement.children]) if (part !== said) part.remove();
    const parts = [...find(".reading", longer).children];
    const place = parts.findIndex((part) => part.matches(".said"));
    said.before(...parts.slice(0, place));
    said.after(...parts.slice(place + 1));
    for (const passage of all(".passage", longer)) {
      const panel = find(`#${CSS.escape(passage.id)}`, answer);
      if (panel) find(".here", panel).replaceWith(find(".here", passage)); // it may have more marks
      else find(".passages", answer).append(passage);
    }
    const current = find("[aria-current]", answer);
    if (current) pickMarks(current, panelOf(current));
  }
  prepare(turn);
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

function showUnchecked(turn) {
  find("[data-part=summary]", turn)?.replaceChildren("The sentences could not be checked.");
}

/** Show the buttons and the first passage of new answers. */
function prepare(root) {
  for (const button of all(".copy", root)) button.hidden = false;
  for (const answer of all(".answer", root)) showFirst(answer);
}

const thread = find("#thread");
const askForm = find("#ask");
let turns = [];
let isAsking = false;

async function ask(question, { push = true } = {}) {
  if (isAsking || !question.trim()) return;
  isAsking = true;
  const number = all(".turn", thread).length + 1;
  const heading = element("h2", { className: "question", textContent: question, tabIndex: -1, dir: "auto" });
  const turn = element("article", { className: "turn" }, heading);
  find(".hero")?.replaceWith(element("h1", { className: "unseen", textContent: "Ask" }));
  find(".examples")?.remove();
  thread.append(turn);
  turn.setAttribute("aria-busy", "true");
  const box = askForm.elements.q;
  box.value = "";
  box.placeholder = "Ask a follow-up question";
  find(".again").hidden = false;
  find(".choices .hint").hidden = false;
  heading.focus({ preventScroll: true });
  turn.scrollIntoView({ block: number > 1 ? "start" : "nearest" });
  announce("Answering", true);
  const { index, system } = askForm.elements;
  const retry = () => {
    if (isAsking) return;
    turn.remove();
    ask(question, { push });
  };
  const answer = await write(turn, { question, index: index.value, system: system.value, history: turns, place: `t${number}` }, retry);
  turn.removeAttribute("aria-busy");
  isAsking = false;
  if (!answer) {
    box.value ||= question;
    return;
  }
  if (answer.turn) turns = [...turns, answer.turn].slice(-MAX_TURNS);
  const { sentences, citations } = answer;
  announce(answer.answered ? `Answer: ${sentences} ${sentences === 1 ? "sentence" : "sentences"}, ${citations} ${citations === 1 ? "citation" : "citations"}.` : "Not answered by these sources.", true);
  document.title = `${question} · attributed-rag`;
  if (push && number === 1) history.pushState({}, "", answer.permalink);
  else history.replaceState({}, "", answer.permalink);
  remember(question, answer.permalink, `${system.value}, ${index.value}`);
}

if (askForm) {
  askForm.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(askForm.elements.q.value);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-question]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    ask(link.dataset.question);
  });
  for (const select of all("select", askForm)) {
    select.addEventListener("change", () => {
      if (all(".turn", thread).length) return;
      location.search = new URLSearchParams({ index: askForm.elements.index.value, system: askForm.elements.system.value });
    });
  }
  window.addEventListener("popstate", () => location.reload());
  if (thread.dataset.ask) ask(thread.dataset.ask, { push: false });
}

// --- comparing ---

const compareForm = find("#compare");
const sides = find("#sides");

async function compare(question) {
  const { a, b } = compareForm.elements;
  sides.replaceChildren();
  find(".hero")?.replaceWith(element("h1", { className: "unseen", textContent: "Compare two answers" }));
  history.replaceState({}, "", `/compare?${new URLSearchParams({ q: question, a: a.value, b: b.value })}`);
  await Promise.all([["a", a.value], ["b", b.value]].map(([place, choice]) => {
    const separator = choice.lastIndexOf("@");
    const turn = element("article", { className: "turn" }, element("h2", { className: "question", textContent: choice }));
    sides.append(turn);
    return write(turn, { question, system: choice.slice(0, separator), index: choice.slice(separator + 1), place }, () => compare(question));
  }));
  announce("Both have answered.", true);
}

if (compareForm) {
  compareForm.addEventListener("submit", (event) => {
    event.preventDefault();
    compare(compareForm.elements.q.value.trim());
  });
  if (sides.dataset.ask) compare(sides.dataset.ask);
}

// --- checking ---

const checkForm = find("#check");

if (checkForm) {
  checkForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = find("button", checkForm);
    const result = find("#result");
    button.disabled = true;
    result.replaceChildren(element("p", { className: "quiet busy", textContent: "Checking each sentence" }));
    announce("Checking", true);
    try {
      const reply = await fetch(checkForm.action, { method: "POST", body: new URLSearchParams(new FormData(checkForm)) });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const content = find("#result", page) || find("main", page);
      result.replaceChildren(...content.childNodes);
      prepare(result);
      result.scrollIntoView({ block: "start" });
      result.focus({ preventScroll: true });
      announce("Checked.", true);
    } catch {
      result.replaceChildren(element("p", { className: "warning", textContent: "The connection was lost; check again." }));
    }
    button.disabled = false;
  });
}

// --- copying ---

async function copy(answer) {
  const text = find(".footnotes", answer).textContent;
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied with footnotes.");
  } catch {
    const area = find(".footnotes", answer);
    area.hidden = false;
    getSelection().selectAllChildren(area);
    announce("Copy it with Ctrl+C.");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".copy");
  if (button) copy(button.closest(".answer"));
  for (const menu of all("details.export[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// --- history: in this browser only ---

function readHistory() {
  try {
    const entries = JSON.parse(localStorage.getItem(HISTORY));
    return Array.isArray(entries) ? entries.filter((entry) => typeof entry.question === "string" && /^\/\?/.test(entry.address)) : [];
  } catch {
    return [];
  }
}

function remember(question, address, where) {
  const earlier = readHistory().filter((entry) => entry.address !== address);
  try {
    localStorage.setItem(HISTORY, JSON.stringify([{ question, address, where, at: Date.now() }, ...earlier].slice(0, MAX_HISTORY)));
  } catch { /* private windows may store nothing */ }
}

const historyDialog = find("#history");
const keysDialog = find("#keys");

function openHistory() {
  const list = readHistory();
  const days = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  find("#past").replaceChildren(...list.map((entry) => element("li", {}, element("a", { href: entry.address }, entry.question,
    element("span", { textContent: `${days.format(entry.at)} · ${entry.where}` })))));
  if (!list.length) find("#past").append(element("li", { className: "quiet", textContent: "No questions yet." }));
  find("#forget").hidden = !list.length;
  historyDialog.showModal();
}

if (keysDialog) {
  find(".helpers").hidden = false;
  find("#open-history").addEventListener("click", openHistory);
  find("#open-keys").addEventListener("click", () => keysDialog.showModal());
  find("#forget").addEventListener("click", () => {
    localStorage.removeItem(HISTORY);
    historyDialog.close();
    announce("The history is cleared.");
  });
  for (const dialog of [historyDialog, keysDialog]) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
}

// --- keys ---

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (find("dialog[open]")) return;
  const target = event.target;
  if (event.key === "Escape") {
    const menu = find("details.export[open]");
    if (menu) {
      menu.open = false;
      find("summary", menu).focus();
    } else if (goBack()) event.preventDefault();
    else if (target.matches("input, textarea")) target.blur();
    return;
  }
  if (target.matches("input:not([type=radio]), textarea, select")) return;
  const copies = all(".copy:not([hidden])");
  const act = {
    "/": () => find("[data-key='/']")?.focus(),
    n: () => step(1),
    p: () => step(-1),
    c: () => copies.length && copy((document.activeElement.closest(".answer") || copies.at(-1).closest(".answer"))),
    h: () => keysDialog && openHistory(),
    "?": () => keysDialog?.showModal(),
  }[event.key];
  if (!act || event.repeat && event.key !== "n" && event.key !== "p") return;
  event.preventDefault();
  act();
});

prepare(document);
