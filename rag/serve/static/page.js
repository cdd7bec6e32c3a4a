// Asks questions, shows the passage of a citation, keeps the history. The server renders all HTML and escapes it;
// without this script the same addresses give whole pages.

const HISTORY = "attributed-rag: history";
const MOST_PAST = 100;
const MOST_TURNS = 20;

const find = (css, root = document) => root.querySelector(css);
const all = (css, root = document) => [...root.querySelectorAll(css)];
const narrow = matchMedia("(max-width: 54rem)");

document.documentElement.classList.add("js");

/** Tell people something: seen for some seconds, or with `silent` only by screen readers. */
function say(text, silent = false) {
  const status = find("#status");
  status.classList.toggle("silent", silent);
  status.textContent = text;
  clearTimeout(say.timer);
  if (!silent) say.timer = setTimeout(() => { status.textContent = ""; }, 5000);
}

/** HTML of the server, as nodes. */
function nodes(html) {
  return [...new DOMParser().parseFromString(html, "text/html").body.childNodes];
}

function element(name, values = {}, ...inside) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...inside);
  return made;
}

// --- citations and passages ---

const LINKS = "a.cite, a.found[data-panel]";
let pinned = null; // the citation whose passage stays, also when another one is only looked at

function panelOf(link) {
  const answer = link.closest(".answer");
  return answer && find(`#${CSS.escape(link.dataset.panel)}`, answer);
}

/** Show the passage of a citation; with `open` it stays, on a phone it comes up from below. */
function show(link, open = false) {
  const panel = panelOf(link);
  if (!panel || (narrow.matches && !open)) return;
  const answer = link.closest(".answer");
  for (const one of all(".passage", answer)) {
    one.classList.toggle("shown", one === panel);
    one.classList.toggle("open", one === panel && open);
  }
  for (const one of all("[aria-current]", answer)) one.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  const sentence = link.closest(".sentence");
  for (const one of all(".sentence.now", answer)) one.classList.remove("now");
  if (sentence) sentence.classList.add("now");
  const number = sentence && sentence.dataset.sentence;
  const marks = all("mark", panel);
  const own = number === null ? marks : marks.filter((one) => one.dataset.for.split(" ").includes(number));
  for (const one of marks) one.classList.toggle("other", own.length > 0 && !own.includes(one));
  const page = find(".page", panel);
  const first = own[0] || find(".here", panel);
  page.scrollTop += first.getBoundingClientRect().top - page.getBoundingClientRect().top - page.clientHeight / 4;
  if (open) {
    pinned = link;
    find(".shut", panel).hidden = false;
  }
}

/** Go back from a passage to its citation. */
function back() {
  const panel = find(".passage.open");
  if (!panel) return false;
  panel.classList.remove("open");
  if (pinned && pinned.isConnected) pinned.focus();
  pinned = null;
  return true;
}

/** Show what the first sentence cites, so that nobody has to ask for it. */
function showFirst(answer) {
  const first = find(LINKS, answer);
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
  if (event.target.closest(".shut")) return void back();
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
  const links = all(".answer a.cite").filter((one) => one.checkVisibility());
  if (!links.length) return;
  const from = document.activeElement.closest(".passage") && pinned ? pinned : document.activeElement;
  const at = links.indexOf(from);
  const next = at >= 0 ? at + by : by > 0 ? links.findIndex((one) => from.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING) : links.length - 1;
  const link = links[Math.min(Math.max(next, 0), links.length - 1)];
  const open = narrow.matches && find(".passage.open");
  back();
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
    const told = await reply.json().catch(() => ({}));
    yield ["failed", { message: told.message || "The server cannot answer now; try again." }];
    return;
  }
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    rest += value || "";
    const whole = rest.split("\n\n");
    rest = whole.pop();
    for (const one of whole) {
      const [, name, data] = one.match(/^event: (\w+)\ndata: (.*)$/s) || [];
      if (name) yield [name, JSON.parse(data)];
    }
    if (done) return;
  }
}

/** Write an answer into a turn as it comes; returns the data of the answer, or null. */
async function write(turn, question) {
  const stop = new AbortController();
  const writing = element("p", { className: "writing", dir: "auto" });
  const button = element("button", { type: "button", textContent: "Stop" });
  button.addEventListener("click", () => stop.abort());
  const waiting = setTimeout(() => turn.append(button), 1500);
  turn.append(writing);
  let answer = null;
  const settle = () => { clearTimeout(waiting); button.remove(); writing.remove(); };
  try {
    for await (const [name, data] of events(question, stop.signal)) {
      if (name === "text") writing.append(data.text);
      else if (name === "answer") {
        answer = data;
        settle();
        turn.append(...nodes(data.html));
        ready(turn);
      } else if (name === "verdicts") judge(turn, data.html);
      else {
        settle();
        turn.append(element("p", { className: "warning", textContent: data.message }));
        turn.lastChild.setAttribute("role", "alert");
        if (answer) unjudged(turn);
        return null;
      }
    }
    if (!answer) throw new Error("no answer");
  } catch (error) {
    if (answer) unjudged(turn);
    else {
      settle();
      const told = stop.signal.aborted ? "Stopped." : "The connection was lost; ask again.";
      turn.append(element("p", { className: "warning", textContent: told }));
    }
  }
  return answer;
}

/** Put the verdicts into an answer; the citations stay, and with them the focus. */
function judge(turn, html) {
  const answer = find(".answer", turn);
  for (const one of nodes(html)) {
    if (!(one instanceof HTMLElement)) continue;
    if (one.dataset.part === "summary") find("[data-part=summary]", answer).replaceChildren(...one.childNodes);
    else {
      const sentence = find(`.sentence[data-sentence="${one.dataset.sentence}"]`, answer);
      for (const part of [...one.children]) find(`[data-part=${part.dataset.part}]`, sentence).replaceChildren(...part.childNodes);
    }
  }
}

function unjudged(turn) {
  find("[data-part=summary]", turn)?.replaceChildren("The sentences could not be checked.");
}

/** What a new answer needs. */
function ready(root) {
  for (const one of all(".copy", root)) one.hidden = false;
  for (const one of all(".answer", root)) showFirst(one);
}

const thread = find("#thread");
const askForm = find("#ask");
let turns = [];
let asking = false;

async function ask(question, { push = true } = {}) {
  if (asking || !question.trim()) return;
  asking = true;
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
  say("Answering", true);
  const { index, system } = askForm.elements;
  const answer = await write(turn, { question, index: index.value, system: system.value, history: turns, place: `t${number}` });
  turn.removeAttribute("aria-busy");
  asking = false;
  if (!answer) return;
  if (answer.turn) turns = [...turns, answer.turn].slice(-MOST_TURNS);
  const { sentences, citations } = answer;
  say(answer.answered ? `Answer: ${sentences} ${sentences === 1 ? "sentence" : "sentences"}, ${citations} ${citations === 1 ? "citation" : "citations"}.` : "Not answered by these sources.", true);
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
    const at = choice.lastIndexOf("@");
    const turn = element("article", { className: "turn" }, element("h2", { className: "question", textContent: choice }));
    sides.append(turn);
    return write(turn, { question, system: choice.slice(0, at), index: choice.slice(at + 1), place });
  }));
  say("Both have answered.", true);
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
    say("Checking", true);
    try {
      const reply = await fetch(checkForm.action, { method: "POST", body: new URLSearchParams(new FormData(checkForm)) });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const found = find("#result", page) || find("main", page);
      result.replaceChildren(...found.childNodes);
      ready(result);
      result.scrollIntoView({ block: "start" });
      result.focus({ preventScroll: true });
      say("Checked.", true);
    } catch {
      result.replaceChildren(element("p", { className: "warning", textContent: "The connection was lost; check again." }));
    }
    button.disabled = false;
  });
}

// --- documents ---

for (const form of all("form[data-progress]")) {
  const report = find(".report", form.parentElement);
  const button = find("button", form);

  const follow = async () => {
    for (;;) {
      const told = await (await fetch(form.dataset.progress)).json();
      report.replaceChildren(...nodes(told.html));
      if (!told.running) return;
      await new Promise((done) => setTimeout(done, 700));
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    button.disabled = true;
    const bar = element("progress", { max: 1, value: 0, ariaLabel: "Sending the files" });
    report.replaceChildren(bar);
    const sending = new XMLHttpRequest(); // fetch does not say how much was sent
    sending.upload.addEventListener("progress", (told) => { if (told.lengthComputable) bar.value = told.loaded / told.total; });
    sending.addEventListener("loadend", async () => {
      if (sending.status === 200) {
        form.reset();
        await follow().catch(() => say("The connection was lost; reload the page."));
      } else {
        const page = new DOMParser().parseFromString(sending.responseText, "text/html");
        const told = find("[role=alert]", page);
        report.replaceChildren(element("p", { className: "warning", textContent: told ? told.textContent : "The files could not be sent; try again." }));
      }
      button.disabled = false;
    });
    sending.open("POST", form.action);
    sending.setRequestHeader("X-Requested-With", "fetch");
    sending.send(new FormData(form));
  });
  if (find("progress", report)) follow();
}

// --- copying ---

async function copy(answer) {
  const text = find(".footnotes", answer).textContent;
  try {
    await navigator.clipboard.writeText(text);
    say("Copied with footnotes.");
  } catch {
    const area = find(".footnotes", answer);
    area.hidden = false;
    getSelection().selectAllChildren(area);
    say("Copy it with Ctrl+C.");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".copy");
  if (button) copy(button.closest(".answer"));
  for (const one of all("details.export[open]")) if (!one.contains(event.target)) one.open = false;
});

// --- history: in this browser only ---

function past() {
  try {
    const found = JSON.parse(localStorage.getItem(HISTORY));
    return Array.isArray(found) ? found.filter((one) => typeof one.question === "string" && /^\/\?/.test(one.address)) : [];
  } catch {
    return [];
  }
}

function remember(question, address, where) {
  const others = past().filter((one) => one.address !== address);
  try {
    localStorage.setItem(HISTORY, JSON.stringify([{ question, address, where, at: Date.now() }, ...others].slice(0, MOST_PAST)));
  } catch { /* private windows may keep nothing */ }
}

const pastDialog = find("#history");
const keysDialog = find("#keys");

function openHistory() {
  const list = past();
  const days = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  find("#past").replaceChildren(...list.map((one) => element("li", {}, element("a", { href: one.address }, one.question,
    element("span", { textContent: `${days.format(one.at)} · ${one.where}` })))));
  if (!list.length) find("#past").append(element("li", { className: "quiet", textContent: "No questions yet." }));
  find("#forget").hidden = !list.length;
  pastDialog.showModal();
}

if (keysDialog) {
  find(".helpers").hidden = false;
  find("#open-history").addEventListener("click", openHistory);
  find("#open-keys").addEventListener("click", () => keysDialog.showModal());
  find("#forget").addEventListener("click", () => {
    localStorage.removeItem(HISTORY);
    pastDialog.close();
    say("The history is cleared.");
  });
  for (const dialog of [pastDialog, keysDialog]) {
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
    } else if (back()) event.preventDefault();
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

ready(document);
