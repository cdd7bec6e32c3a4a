// Asks questions, shows the passage of a citation, keeps threads. The server renders all HTML and escapes it, also that
// of stored answers; without this script the same addresses give whole pages.

import * as store from "./store.js";

const MAX_TURNS = 20; // of a thread, that a follow-up is asked with
const MAX_SENT = 1_000_000; // characters of stored answers in one request

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

/** What the server says of a request that it refuses. */
async function refusal(reply) {
  const error = await reply.json().catch(() => ({}));
  return error.message || error.error?.message || "The server cannot answer now.";
}

function post(address, value, signal) {
  return fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
    signal,
  });
}

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
async function write(turn, question, retry, on = () => {}) {
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
        on(answer);
      } else if (name === "verdicts") {
        showVerdicts(turn, data.html);
        on(answer, data.checks);
      } else throw new Error(data.message, { cause: "server" });
    }
    if (!answer) throw new Error("no answer");
  } catch (error) {
    settle();
    if (answer) showUnchecked(turn);
    else if (stop.signal.aborted) fail(turn, "Stopped.", retry);
    else fail(turn, error.cause === "server" ? error.message : "The connection to the server was lost.", retry);
  }
  return answer;
}

/** Say in a turn that its question has no answer, and offer to ask it again. */
function fail(turn, message, retry) {
  const button = element("button", { type: "button", textContent: "Retry" });
  button.addEventListener("click", retry);
  const warning = element("p", { className: "warning", textContent: message });
  warning.setAttribute("role", "alert");
  turn.append(element("div", { className: "failure" }, warning, button));
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
  find("[data-part=summary]", turn)?.replaceChildren("The sentences were not checked.");
}

/** Show the menus and the first passage of new answers. */
function prepare(root) {
  for (const menu of all(".copies, .rating", root)) menu.hidden = false;
  for (const answer of all(".answer:has(.rating)", root)) for (const button of all("[data-rate=wrong-source]", answer)) button.hidden = false;
  for (const answer of all(".answer", root)) showFirst(answer);
}

// A turn is {thread, number, question, system, row, checks}: `row` is the answer as JSON, null while there is none. The
// server makes HTML of it again, and checks it first.
const threadPart = find("#thread");
const askForm = find("#ask");
const turnOf = new WeakMap(); // of each article
let thread = null; // {id, title, named, where, questions, at}
let turns = []; // of the thread
let past = []; // questions and answers of the thread, for follow-ups
let isAsking = false;
let here = location.pathname + location.search; // the address of what is shown
let isStored = true; // whether the browser stores threads

/** Store something; a browser that stores nothing, or no more, still shows the answers. */
async function keep(act, ...values) {
  try {
    await act(...values);
  } catch {
    if (isStored) announce("This browser stores no threads: they end with this page.");
    isStored = false;
  }
}

function saveThread() {
  thread.at = Date.now();
  thread.questions = turns.map((turn) => turn.question);
  return keep(store.saveThread, thread);
}

function startThread(question, push) {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  const id = [...bytes].map((byte) => byte.toString(36).padStart(2, "0")).join("");
  thread = { id, title: question, named: false };
  setAddress(`/t/${id}`, push);
  keep(store.removeOldest);
}

function setAddress(address, push) {
  history[push ? "pushState" : "replaceState"]({}, "", address);
  here = location.pathname + location.search;
}

/** An article for a turn, at the end of the thread. */
function addArticle(turn) {
  const heading = element("h2", { className: "question", textContent: turn.question, tabIndex: -1, dir: "auto" });
  const article = element("article", { className: "turn" }, heading);
  turnOf.set(article, turn);
  threadPart.append(article);
  return article;
}

/** Take the last turn away, if its question has no answer. */
function dropFailed() {
  const article = all(".turn", threadPart).at(-1);
  const turn = article && turnOf.get(article);
  if (!turn || turn.row || find(".answer", article)) return;
  article.remove();
  turns.pop();
  keep(store.removeTurn, turn);
}

function showThread() {
  for (const part of all(".hero, .examples, #thread > .warning")) part.remove();
  askForm.elements.q.placeholder = "Ask a follow-up";
  for (const part of [find("#title"), find(".again"), find(".choices .hint")]) part.hidden = false;
  find("#thread-menu").hidden = !isStored;
  find("#title").textContent = thread.title;
  find("#title").className = thread.named ? "thread-title" : "unseen";
  document.title = `${thread.title} · attributed-rag`;
}

/** Put a question into the box, unless something else is there. */
function fillBox(question) {
  const box = askForm.elements.q;
  if (!box.value.trim()) box.value = question;
  fitBox();
}

async function ask(question, { push = true } = {}) {
  if (!question.trim()) return;
  if (isAsking) return void announce("The answer before is still being written.");
  isAsking = true;
  dropFailed();
  const { q, index, system } = askForm.elements;
  if (!thread) startThread(question, push);
  const turn = { thread: thread.id, number: (turns.at(-1)?.number ?? 0) + 1, question, system: system.value, row: null };
  turns.push(turn);
  thread.where = `${system.value}, ${index.value}`;
  const article = addArticle(turn);
  article.setAttribute("aria-busy", "true");
  if (q.value.trim() === question.trim()) q.value = "";
  fitBox();
  saveThread().then(showThread);
  keep(store.saveTurn, turn);
  showThread();
  find(".question", article).focus({ preventScroll: true });
  article.scrollIntoView({ block: "start" });
  announce("Answering", true);
  const sent = { question, index: index.value, system: system.value, history: past.slice(-MAX_TURNS), place: `t${turn.number}` };
  const answer = await write(article, sent, () => retry(question), (answer, checks) => {
    Object.assign(turn, answer.record, { checks });
    keep(store.saveTurn, turn);
  });
  article.removeAttribute("aria-busy");
  isAsking = false;
  if (!answer) return fillBox(question);
  if (answer.turn) past.push(answer.turn);
  if (!isStored) setAddress(answer.permalink, false);
  const { sentences, citations } = answer;
  announce(answer.answered ? `Answer: ${sentences} ${sentences === 1 ? "sentence" : "sentences"}, ${citations} ${citations === 1 ? "citation" : "citations"}.` : "Not answered by these sources.", true);
}

function retry(question) {
  ask(question);
}

/** Show a stored thread. The server makes HTML of its answers, and asks nobody. */
async function restore(id) {
  threadPart.setAttribute("aria-busy", "true");
  try {
    thread = await store.loadThread(id);
    turns = thread ? await store.loadTurns(id) : [];
  } catch {
    thread = null;
  }
  if (!thread) {
    const text = "This browser does not store this thread. It was deleted, or asked in another browser.";
    threadPart.replaceChildren(element("p", { className: "warning", textContent: text }));
    askForm.elements.q.placeholder = "Ask a question";
  } else {
    threadPart.replaceChildren();
    showThread();
    past = [];
    const articles = turns.map(addArticle);
    try {
      for (const batch of batches(turns)) await fillArticles(articles, batch);
      chooseLast();
      scrollTo(0, Number(sessionStorage.getItem(`scroll ${id}`)) || 0);
    } catch {
      fail(articles.at(-1), "The answers could not be shown: the server does not answer.", () => restore(id));
    }
  }
  threadPart.removeAttribute("aria-busy");
}

/** Turns in lists that are short enough for one request each. */
function batches(list) {
  const groups = [];
  let length = Infinity;
  for (const turn of list) {
    const size = JSON.stringify(turn).length;
    if (length + size > MAX_SENT || groups.at(-1).length === 100) {
      groups.push([]);
      length = 0;
    }
    groups.at(-1).push(turn);
    length += size;
  }
  return groups;
}

async function fillArticles(articles, batch) {
  const answered = batch.filter((turn) => turn.row);
  let parts = [];
  if (answered.length) {
    const reply = await post("/thread", { turns: answered.map((turn) => ({ ...turn, place: `t${turn.number}` })) });
    if (!reply.ok) throw new Error(await refusal(reply));
    parts = (await reply.json()).turns;
  }
  for (const turn of batch) {
    const article = articles[turns.indexOf(turn)];
    const data = turn.row ? parts[answered.indexOf(turn)] : { message: "This question has no answer yet." };
    if (!data.html) {
      fail(article, data.message, () => retry(turn.question));
      continue;
    }
    article.append(...nodes(data.html));
    if (!turn.checks && data.turn) showUnchecked(article);
    if (data.turn) past.push(data.turn);
    prepare(article);
  }
}

/** Show example questions, which a server that has just begun finds late. */
async function showExamples(section) {
  const reply = await fetch(section.dataset.later).catch(() => null);
  if (!reply?.ok) return;
  const { examples } = await reply.json();
  find("ul", section).append(...examples.map(({ question, href }) => {
    const link = element("a", { href, textContent: question, dir: "auto" });
    link.dataset.question = question;
    return element("li", {}, link);
  }));
  section.hidden = !examples.length;
}

/** Choose the index and system of the last answer, if the server still has them. */
function chooseLast() {
  const last = turns.findLast((turn) => turn.row);
  if (!last) return;
  for (const [name, value] of [["index", last.row.index], ["system", last.system]]) {
    const field = askForm.elements[name];
    if (all("option", field).some((option) => option.value === value)) field.value = value;
  }
}

/** Make the box as high as its text. */
function fitBox() {
  const box = askForm.elements.q;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
}

if (askForm) {
  askForm.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(askForm.elements.q.value);
  });
  askForm.elements.q.addEventListener("input", fitBox);
  askForm.elements.q.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    askForm.requestSubmit();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-question]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    ask(link.dataset.question);
  });
  for (const select of all("select", askForm)) {
    select.addEventListener("change", () => {
      if (all(".turn", threadPart).length) return;
      location.search = new URLSearchParams({ index: askForm.elements.index.value, system: askForm.elements.system.value });
    });
  }
  const examples = find(".examples[data-later]");
  if (examples) showExamples(examples);
  history.scrollRestoration = "manual";
  window.addEventListener("popstate", () => {
    if (location.pathname + location.search !== here) location.reload();
  });
  window.addEventListener("pagehide", () => {
    if (thread) sessionStorage.setItem(`scroll ${thread.id}`, scrollY);
  });
  const [, id] = location.pathname.match(/^\/t\/(\w+)$/) || []; // Back and Forward may be faster than this script
  if (id) restore(id);
  else if (threadPart.dataset.thread) location.reload();
  else if (threadPart.dataset.ask) ask(threadPart.dataset.ask, { push: false });
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
    const sent = { question, system: choice.slice(0, separator), index: choice.slice(separator + 1), place };
    return write(turn, sent, () => compare(question));
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

// --- copying and files ---

const COPIED = { text: "Copied with footnotes.", markdown: "Copied as Markdown.", bibtex: "Copied as BibTeX." };

async function copy(answer, form = "text") {
  const area = find(`.copied[data-form=${form}]`, answer);
  try {
    await navigator.clipboard.writeText(area.textContent);
    announce(COPIED[form]);
  } catch {
    area.hidden = false;
    getSelection().selectAllChildren(area);
    announce("Copy it with Ctrl+C.");
  }
}

/** Save a file that the server makes of what this browser stores. */
async function saveFile(address, value) {
  try {
    const reply = await post(address, value);
    if (!reply.ok) return void announce(await refusal(reply));
    const [, name] = reply.headers.get("Content-Disposition").match(/filename="([^"]+)"/);
    const link = element("a", { href: URL.createObjectURL(await reply.blob()), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch {
    announce("The connection to the server was lost.");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (button) copy(button.closest(".answer"), button.dataset.copy);
  const link = event.target.closest("a[data-export]");
  const turn = link && turnOf.get(link.closest(".turn"));
  if (turn?.row) { // the answer that is shown, also if the server has forgotten it
    event.preventDefault();
    saveFile(`/export/${link.dataset.export}`, turn);
  }
  for (const menu of all("details.menu[open]")) if (!menu.contains(event.target) || button || link) menu.open = false;
});

// --- feedback ---

/** Send a rating of an answer, or of a source of the sentence whose citation was followed. */
async function rate(button) {
  const answer = button.closest(".answer");
  const opinion = { answer: find(".rating", answer).dataset.answer, kind: button.dataset.rate };
  if (button.dataset.passage) {
    const link = find(`.sentence a.cite[aria-current][data-panel]`, answer) || find(`.sentence a.cite[data-panel=${CSS.escape(button.closest(".passage").id)}]`, answer);
    Object.assign(opinion, { sentence: Number(link.closest(".sentence").dataset.sentence), passage: button.dataset.passage });
  }
  try {
    const reply = await post("/feedback", opinion);
    if (!reply.ok) return void announce(await refusal(reply));
    button.disabled = !button.dataset.passage; // a source can be wrong for another sentence too
    announce("Thank you: it is stored.");
  } catch {
    announce("The connection to the server was lost.");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-rate]");
  if (!button) return;
  rate(button);
  const menu = button.closest("details");
  if (menu) menu.open = false;
});

// --- threads: in this browser only ---

const historyDialog = find("#history");
const keysDialog = find("#keys");
const renameDialog = find("#rename");

/** Ask for a title; returns the thread with it, or null. */
function rename(entry) {
  const field = find("#new-title");
  field.value = entry.title;
  renameDialog.returnValue = "cancel";
  renameDialog.showModal();
  field.select();
  return new Promise((resolve) => {
    renameDialog.addEventListener("close", async () => {
      const title = field.value.trim();
      if (renameDialog.returnValue !== "save" || !title) return resolve(null);
      Object.assign(entry, { title, named: true });
      await keep(store.saveThread, entry);
      if (thread?.id === entry.id) {
        Object.assign(thread, { title, named: true });
        showThread();
      }
      resolve(entry);
    }, { once: true });
  });
}

/** A button that deletes when it is pressed twice. */
function armedButton(button, act) {
  const label = button.textContent;
  button.addEventListener("click", (event) => {
    event.stopPropagation(); // a menu stays open
    if (button.dataset.armed) return act();
    button.dataset.armed = "1";
    button.textContent = "Press again to delete";
    announce(button.textContent, true);
  });
  button.addEventListener("blur", () => {
    delete button.dataset.armed;
    button.textContent = label;
  });
}

async function removeThread(id) {
  await keep(store.removeThread, id);
  if (thread?.id === id) location.assign("/");
}

function pastItem(entry) {
  const days = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const count = entry.questions.length;
  const details = `${days.format(entry.at)} · ${entry.where} · ${count} ${count === 1 ? "question" : "questions"}`;
  const link = element("a", { href: `/t/${entry.id}` }, element("bdi", { textContent: entry.title }), element("span", { textContent: details }));
  const renaming = element("button", { type: "button", textContent: "Rename", ariaLabel: `Rename ${entry.title}` });
  renaming.addEventListener("click", async () => {
    if (await rename(entry)) find("bdi", link).textContent = entry.title;
  });
  const removing = element("button", { type: "button", textContent: "Delete" });
  const item = element("li", {}, link, renaming, removing);
  armedButton(removing, async () => {
    item.remove();
    find("#find-thread").focus();
    await removeThread(entry.id);
  });
  return item;
}

async function showHistory() {
  const text = find("#find-thread").value.trim().toLowerCase();
  const entries = await store.listThreads().catch(() => []);
  const words = text.split(/\s+/);
  const matches = entries.filter((entry) => {
    const searched = [entry.title, ...entry.questions].join("\n").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
  find("#past").replaceChildren(...matches.map(pastItem));
  if (!matches.length) find("#past").append(element("li", { className: "quiet", textContent: entries.length ? "No thread has these words." : "No questions yet." }));
  find("#forget").hidden = !entries.length;
}

async function openHistory() {
  find("#find-thread").value = "";
  await showHistory();
  historyDialog.showModal();
}

if (keysDialog) {
  keep(async () => localStorage.removeItem("attributed-rag: history")); // of earlier versions: questions
  find(".helpers").hidden = false;
  find("#open-history").addEventListener("click", openHistory);
  find("#open-keys").addEventListener("click", () => keysDialog.showModal());
  find("#find-thread").addEventListener("input", showHistory);
  armedButton(find("#forget"), async () => {
    await keep(store.removeAll);
    if (thread) return void location.assign("/");
    historyDialog.close();
    announce("The history is cleared.");
  });
  for (const dialog of [historyDialog, keysDialog, renameDialog]) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
  const menu = find("#thread-menu");
  if (menu) {
    armedButton(find("[data-act=delete]", menu), () => removeThread(thread.id));
    menu.addEventListener("click", async (event) => {
      const act = event.target.dataset.act;
      if (!act) return;
      menu.open = false;
      if (act === "rename") return void rename(thread);
      saveFile(`/thread/${act}`, { title: thread.title, turns: turns.filter((turn) => turn.row) });
    });
  }
}

// --- keys ---

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (find("dialog[open]")) return;
  const target = event.target;
  if (event.key === "Escape") {
    const menu = find("details.menu[open]");
    if (menu) {
      menu.open = false;
      find("summary", menu).focus();
    } else if (goBack()) event.preventDefault();
    else if (target.matches("input, textarea")) target.blur();
    return;
  }
  if (target.matches("input:not([type=radio]), textarea, select")) return;
  const copies = all(".copied[data-form=text]");
  const act = {
    "/": () => find("[data-key='/']")?.focus(),
    n: () => step(1),
    p: () => step(-1),
    c: () => copies.length && copy(document.activeElement.closest(".answer") || copies.at(-1).closest(".answer")),
    h: () => keysDialog && openHistory(),
    "?": () => keysDialog?.showModal(),
  }[event.key];
  if (!act || event.repeat && event.key !== "n" && event.key !== "p") return;
  event.preventDefault();
  act();
});

prepare(document);
