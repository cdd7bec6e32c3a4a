// The page of one item: keys, evidence, time, and presses that are sent again until the server has them.
// The server renders everything; without this script the same forms work by mouse and Tab.

const PENDING = "annotate: pending press";
const TIMEOUT = 15_000; // milliseconds
const MAX_WAIT = 15; // seconds between two tries
const MIN_SHOWN = 500; // milliseconds that a question is shown before it takes an answer, by pointer, key or form

const view = document.getElementById("view");
const status = document.getElementById("status");
const guide = document.getElementById("guide");
const paused = document.getElementById("paused");
let sending = false;
let ready = false; // the question was shown for long enough: the second click of a double click must not answer it
let readyTimer = 0;
let spans = []; // parts of the source that were chosen by selecting text: { range, input }

// --- time: seconds that the question was on screen ---

let visibleTime = 0;
let visibleSince = null;

function startTime() {
  visibleTime = 0;
  visibleSince = document.hidden ? null : performance.now();
}

function visibleSeconds() {
  return (visibleTime + (visibleSince === null ? 0 : performance.now() - visibleSince)) / 1000;
}

/** Time counts while the page can be seen and no break is taken. */
function updateTime() {
  if (document.hidden || paused.open) {
    if (visibleSince !== null) visibleTime += performance.now() - visibleSince;
    visibleSince = null;
  } else if (visibleSince === null) visibleSince = performance.now();
}

document.addEventListener("visibilitychange", updateTime);

function takeBreak() {
  if (sending || paused.open) return;
  paused.showModal();
  updateTime();
}

// --- presses ---

function say(text, bad = false) {
  status.textContent = text;
  status.classList.toggle("bad", bad);
}

function lock(on) {
  for (const button of view.querySelectorAll(".dock button, #undo button")) {
    if (on) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }
}

function pause(seconds) {
  return new Promise((resolve) => {
    const timer = setTimeout(finish, 1000 * seconds);
    function finish() {
      clearTimeout(timer);
      window.removeEventListener("online", finish);
      resolve();
    }
    window.addEventListener("online", finish);
  });
}

/** The reply of the server; null if there is none, or an error of the server. */
async function ask(address, body) {
  try {
    const reply = await fetch(address, {
      method: body === undefined ? "GET" : "POST",
      body,
      headers: { "X-Requested-With": "fetch", ...(body === undefined ? {} : { "Content-Type": "application/x-www-form-urlencoded" }) },
      signal: AbortSignal.timeout(TIMEOUT),
    });
    if (reply.status >= 500) return null;
    return { ok: reply.ok, status: reply.status, redirect: reply.redirected ? reply.url : null, page: new DOMParser().parseFromString(await reply.text(), "text/html") };
  } catch {
    return null;
  }
}

/** Send a press until the server has it. It keeps its id, so the server records it once. */
async function send(pending) {
  if (sending) return;
  sending = true;
  lock(true);
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  say(`Saving: ${pending.label} …`);
  let reply = null;
  for (let wait = 1; ; wait = Math.min(2 * wait, MAX_WAIT)) {
    reply = await ask(pending.action, pending.body);
    if (reply) break;
    say(`Not saved yet: the server does not answer. “${pending.label}” is stored here and sent again every few seconds; leave this page open.`, true);
    await pause(wait);
  }
  sending = false;
  // If the person signed out, or in by another link: the next page of this person sends it.
  if (reply.status !== 401 && (reply.status !== 403 || pending.again)) sessionStorage.removeItem(PENDING);
  const reason = reply.page.querySelector("[role=alert]")?.textContent.trim();
  show(reply.page);
  if (reply.redirect) history.replaceState(null, "", reply.redirect); // to load the page again loads what it shows
  if (reply.ok) say(`Saved: ${pending.label}`);
  else say(reason ? `Not saved: ${reason}` : "Not saved.", true);
}

function press(form, button) {
  if (sending || button.disabled) return;
  if (!ready) {
    if (!readyTimer) say("Look at the source first: scroll to it. Then answer.", true);
    return;
  }
  if (form.id === "press") {
    const reason = form.elements.reason;
    if (form.dataset.reason === "required" && !reason.value.trim()) {
      say("Write a reason first (r), then press the key of the verdict.", true);
      reason.focus();
      return;
    }
    if (form.dataset.evidence === "required" && button.hasAttribute("data-evidence") && !new FormData(form).has("evidence")) {
      const what = form.hasAttribute("data-words") ? "Mark the words that answer" : "Choose the sentences that support it";
      say(`${what} first (↓, Enter), then press the key of the verdict.`, true);
      return;
    }
    if (form.hasAttribute("data-words") && !button.hasAttribute("data-evidence") && new FormData(form).has("evidence")) {
      say("Words are marked: take the marks away first, or press the key of another verdict.", true);
      return;
    }
    form.elements.seconds.value = visibleSeconds().toFixed(2);
  }
  const fields = new FormData(form);
  const comment = document.getElementById("comment");
  if (comment && form.id !== "undo") fields.set("comment", comment.value);
  if (button.name) fields.append(button.name, button.value);
  button.setAttribute("aria-busy", "true");
  send({
    action: new URL(form.action).pathname,
    body: new URLSearchParams(fields).toString(),
    label: button.dataset.label,
    me: view.dataset.me,
  });
}

/** Send a press that an earlier page stored, with the form token of this page: a new link has another token. */
function sendStored() {
  const stored = JSON.parse(sessionStorage.getItem(PENDING));
  const token = view.querySelector("#press [name=csrf], #undo [name=csrf]");
  if (!stored || !token || stored.me !== view.dataset.me) return; // nothing to send, or it is another person's
  const body = new URLSearchParams(stored.body);
  body.set("csrf", token.value);
  send({ ...stored, body: body.toString(), again: true });
}

/** The buttons take no answer until the source, or else what is judged, was in view for `MIN_SHOWN`. */
function awaitReading() {
  const shown = view.querySelector(".sources") || view.querySelector(".context") || document.getElementById("question");
  clearTimeout(readyTimer);
  readyTimer = 0;
  inView.disconnect();
  setReady(!shown);
  if (shown) inView.observe(shown);
}

const inView = new IntersectionObserver((entries) => {
  if (!entries.some((entry) => entry.isIntersecting)) return;
  inView.disconnect();
  readyTimer = setTimeout(setReady, MIN_SHOWN, true);
});

function setReady(on) {
  ready = on;
  view.dataset.ready = on ? "yes" : "no";
  if (!sending) lock(!on);
}

async function open(address) {
  say("");
  const reply = await ask(address);
  if (reply) show(reply.page);
  else say("The server does not answer; try again.", true);
}

/** Replace this page by another page of the study. */
function show(page) {
  const content = page.getElementById("view");
  if (content) view.replaceChildren(...content.childNodes);
  else view.replaceChildren(...page.querySelectorAll("main"));
  document.body.className = page.body.className;
  document.title = page.title;
  start();
  const question = document.getElementById("question");
  if (question) question.focus({ preventScroll: true });
}

view.addEventListener("submit", (event) => {
  if (!["press", "undo", "flags"].includes(event.target.id || event.target.parentElement.id)) return;
  event.preventDefault();
  if (event.submitter) press(event.target, event.submitter);
});

view.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (link.id === "guidelines" || link.id === "next") {
    event.preventDefault();
    if (link.id === "next" && !ready) return;
    if (link.id === "next") open(link.href);
    else openGuide(link.href);
  }
});

view.addEventListener("click", (event) => {
  if (event.target.closest(".pause")) takeBreak();
});

paused.addEventListener("close", () => {
  updateTime();
  awaitReading(); // the key that ends the break must not answer the question
});

window.addEventListener("beforeunload", (event) => {
  if (sending) event.preventDefault();
});

window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// --- guidelines ---

async function openGuide(address) {
  if (guide.dataset.address !== address) {
    const reply = await ask(address);
    const text = reply && reply.page.getElementById("guidelines-text");
    if (!text) {
      say("The guidelines cannot be loaded now; try again.", true);
      return;
    }
    const close = document.createElement("button");
    close.type = "button";
    close.className = "close";
    close.append(Object.assign(document.createElement("kbd"), { textContent: "Esc" }), " Close");
    close.addEventListener("click", () => guide.close());
    guide.replaceChildren(close, document.adoptNode(text));
    guide.dataset.address = address;
  }
  guide.showModal();
  guide.scrollTop = 0;
}

// --- evidence: sentences are check boxes; people can also select text ---

function sentences() {
  return [...view.querySelectorAll("input[name=evidence][type=checkbox]")];
}

function step(by) {
  const boxes = sentences();
  if (!boxes.length) {
    const source = view.querySelector(".sources") || view.querySelector(".context");
    if (source) source.scrollBy({ top: 60 * by });
    return;
  }
  const index = boxes.indexOf(document.activeElement);
  const last = boxes.findIndex((box) => box.tabIndex === 0);
  const next = index < 0 ? Math.max(last, 0) : Math.min(Math.max(index + by, 0), boxes.length - 1);
  for (const box of boxes) box.tabIndex = -1;
  boxes[next].tabIndex = 0;
  boxes[next].focus({ preventScroll: true });
  boxes[next].parentElement.scrollIntoView({ block: "nearest" });
}

/** Characters of a text as the server counts them: code points, where JavaScript counts UTF-16 units. */
function codePoints(text) {
  return [...text].length;
}

/** The offset of a position in a passage, in code points. */
function offset(passage, node, position) {
  const range = document.createRange();
  range.setStart(passage, 0);
  range.setEnd(node, position);
  return codePoints(range.toString());
}

/** The part of the selection that lies in one passage, without white space at its ends; null if there is none. */
function readSelection() {
  const selection = document.getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const passage = [...view.querySelectorAll(".passage")].find((node) => range.intersectsNode(node) && node.contains(range.startContainer));
  if (!passage || !passage.querySelector("input[name=evidence]")) return null;
  const inner = range.cloneRange();
  if (!passage.contains(inner.endContainer)) inner.setEnd(passage, passage.childNodes.length);
  const text = inner.toString();
  if (!text.trim()) return null;
  const start = offset(passage, inner.startContainer, inner.startOffset) + codePoints(text) - codePoints(text.trimStart());
  return { passage, range: inner, start, end: start + codePoints(text.trim()), text: text.trim() };
}

function choose() {
  const part = readSelection();
  document.getSelection().removeAllRanges();
  if (!part) return;
  const selection = view.querySelector("#press[data-words]") ? completeWords(part) : part;
  const value = `${selection.start}:${selection.end}:${selection.passage.dataset.passage}`;
  if (!spans.some((span) => span.input.value === value)) addSpan(value, selection.range, selection.text);
}

/** Choose a part of the source, and list it with a button that takes it away. */
function addSpan(value, range, text) {
  const input = Object.assign(document.createElement("input"), { type: "hidden", name: "evidence", value });
  input.setAttribute("form", "press");
  const item = document.createElement("li");
  const remove = document.createElement("button");
  const short = codePoints(text) > 60 ? `${[...text].slice(0, 60).join("")}…` : text;
  remove.type = "button";
  remove.textContent = `“${short}” ×`;
  remove.setAttribute("aria-label", `Do not choose: ${short}`);
  item.append(input, remove);
  document.getElementById("chosen").append(item);
  const span = { range, input };
  spans.push(span);
  remove.addEventListener("click", () => {
    spans = spans.filter((other) => other !== span);
    item.remove();
    paint();
  });
  paint();
}

/** A part of a passage, with the whole of each word that it cuts: a drag rarely ends where a word does. */
function completeWords({ passage, start, end }) {
  const text = passage.textContent;
  let [first, last] = [unitsOf(text, start), unitsOf(text, end)];
  const segmenter = new Intl.Segmenter(document.documentElement.lang || undefined, { granularity: "word" });
  for (const word of segmenter.segment(text)) {
    const wordEnd = word.index + word.segment.length;
    if (!word.isWordLike) continue;
    if (word.index < first && first < wordEnd) first = word.index;
    if (word.index < last && last < wordEnd) last = wordEnd;
  }
  const range = rangeOf(passage, first, last);
  return { passage, range, start: codePoints(text.slice(0, first)), end: codePoints(text.slice(0, last)), text: text.slice(first, last) };
}

/** UTF-16 units of the first `count` code points of a text. */
function unitsOf(text, count) {
  return [...text].slice(0, count).join("").length;
}

/** The range from `start` to `end` in the text of a passage, in UTF-16 units. */
function rangeOf(passage, start, end) {
  const range = document.createRange();
  range.setStart(...nodeAt(passage, start));
  range.setEnd(...nodeAt(passage, end));
  return range;
}

/** The text node and offset of a position in a passage, in UTF-16 units. */
function nodeAt(passage, position) {
  const walker = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
  let before = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (position <= before + node.length) return [node, position - before];
    before += node.length;
  }
  return [passage, passage.childNodes.length];
}

/** Show the parts that were chosen before as new ones are shown; without this script they are check boxes. */
function showEarlierSpans() {
  const boxes = [...view.querySelectorAll("#chosen input[type=checkbox]")];
  for (const { value } of boxes) {
    const [, start, end, id] = value.match(/^(\d+):(\d+):(.*)$/s);
    const passage = [...view.querySelectorAll(".passage")].find((node) => node.dataset.passage === id);
    const range = rangeOf(passage, ...[start, end].map((count) => unitsOf(passage.textContent, Number(count))));
    addSpan(value, range, range.toString());
  }
  for (const box of boxes) box.closest("li").remove();
}

function paint() {
  if ("highlights" in CSS) CSS.highlights.set("chosen", new Highlight(...spans.map((span) => span.range)));
}

let hasDragged = false;

view.addEventListener("pointerup", (event) => {
  if (event.pointerType !== "mouse" || !event.target.closest(".sources") || !readSelection()) return;
  hasDragged = true; // the click that follows must not choose the sentence
  setTimeout(() => { hasDragged = false; choose(); }, 0);
});

view.addEventListener("click", (event) => {
  if (hasDragged && event.target.closest(".sentence")) event.preventDefault();
}, true);

document.addEventListener("selectionchange", () => {
  const button = document.getElementById("choose");
  if (button) button.hidden = !readSelection();
});

view.addEventListener("pointerdown", (event) => {
  if (event.target.closest("#choose")) event.preventDefault(); // keeps the selection
});

view.addEventListener("click", (event) => {
  if (event.target.closest("#choose")) choose();
});

// --- keys ---

function toggleDetails(details, on) {
  details.open = on;
  if (!on) return;
  const first = details.querySelector("textarea, .panel button");
  if (first) first.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (guide.open) {
    if (key === "g") guide.close();
    return;
  }
  if (paused.open) {
    if (key === "z") paused.close();
    return;
  }
  const menu = view.querySelector("details[open]");
  if (key === "Escape") {
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (target.matches("textarea")) target.blur();
    return;
  }
  if (target.matches("textarea, input:not([type=checkbox]), select")) return;
  if (key === "ArrowDown" || key === "ArrowUp") {
    if (menu) return;
    event.preventDefault();
    step(key === "ArrowDown" ? 1 : -1);
    return;
  }
  if (event.repeat) return;
  if (key === "Enter") {
    const next = document.getElementById("next");
    if (target.matches("input[type=checkbox]")) target.click();
    else if (next && !target.closest("a, button, summary")) next.click();
    else return;
    event.preventDefault();
    return;
  }
  const flags = view.querySelector("#flags[open]");
  const control = [...view.querySelectorAll(flags ? "[data-flag-key], summary[data-key]" : "[data-key]")]
    .find((node) => (node.dataset.flagKey || node.dataset.key) === key);
  if (!control) return;
  event.preventDefault();
  if (control.matches("summary")) toggleDetails(control.parentElement, !control.parentElement.open);
  else if (control.matches("textarea")) {
    const details = control.closest("details");
    if (details) details.open = true;
    control.focus();
  }
  else control.click();
});

// --- start ---

function start() {
  spans = [];
  const form = document.getElementById("press");
  if (form) form.noValidate = true; // press() says what is missing, and where its key is
  showEarlierSpans();
  paint();
  sentences().forEach((box, index) => { box.tabIndex = index ? -1 : 0; });
  startTime();
  awaitReading();
  for (const button of view.querySelectorAll(".pause")) button.hidden = false;
  const copy = document.getElementById("copy");
  if (copy) copy.hidden = false;
}

view.addEventListener("click", async (event) => {
  if (event.target.id !== "copy") return;
  const link = document.getElementById("link");
  link.select();
  try {
    await navigator.clipboard.writeText(link.value);
    say("Copied.");
  } catch {
    say("Copy it with Ctrl+C.");
  }
});

start();
sendStored();
