// The page of one item: keys, evidence, time, and presses that are sent again until the server has them.
// The server renders everything; without this script the same forms work by mouse and Tab.

const PENDING = "annotate: pending press";
const TIMEOUT = 15_000; // milliseconds
const LONGEST_WAIT = 15; // seconds between two tries
const SETTLING = 300; // milliseconds in which a new question takes no key: a double tap must not answer it unread

const view = document.getElementById("view");
const status = document.getElementById("status");
const guide = document.getElementById("guide");
let sending = false;
let shown = -Infinity; // when the question was put on the page
let spans = []; // stretches of the source chosen by selecting text: { range, place, input }

// --- time: seconds that the question was on screen ---

let seen = 0;
let since = null;

function startTime() {
  seen = 0;
  since = document.hidden ? null : performance.now();
}

function secondsSeen() {
  return (seen + (since === null ? 0 : performance.now() - since)) / 1000;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    if (since !== null) seen += performance.now() - since;
    since = null;
  } else if (since === null) since = performance.now();
});

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
  return new Promise((done) => {
    const timer = setTimeout(finish, 1000 * seconds);
    function finish() {
      clearTimeout(timer);
      window.removeEventListener("online", finish);
      done();
    }
    window.addEventListener("online", finish);
  });
}

/** The answer of the server, or null if there is none, or it says that it cannot answer now. */
async function ask(address, body) {
  try {
    const reply = await fetch(address, {
      method: body === undefined ? "GET" : "POST",
      body,
      headers: { "X-Requested-With": "fetch", ...(body === undefined ? {} : { "Content-Type": "application/x-www-form-urlencoded" }) },
      signal: AbortSignal.timeout(TIMEOUT),
    });
    if (reply.status >= 500) return null;
    return { ok: reply.ok, status: reply.status, page: new DOMParser().parseFromString(await reply.text(), "text/html") };
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
  for (let wait = 1; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    reply = await ask(pending.action, pending.body);
    if (reply) break;
    say(`Not saved yet: the server does not answer. “${pending.label}” is kept here and sent again every few seconds; leave this page open.`, true);
    await pause(wait);
  }
  sending = false;
  // Signed out, or in by another link meanwhile: it is sent from the next page of this person.
  if (reply.status !== 401 && (reply.status !== 403 || pending.again)) sessionStorage.removeItem(PENDING);
  const why = reply.page.querySelector("[role=alert]")?.textContent.trim();
  show(reply.page);
  if (reply.ok) say(`Saved: ${pending.label}`);
  else say(why ? `Not saved: ${why}` : "Not saved.", true);
}

function press(form, button) {
  if (sending || button.disabled) return;
  if (form.id === "press") {
    const reason = form.elements.reason;
    if (form.dataset.reason === "required" && !reason.value.trim()) {
      say("Write a reason first (r), then press the key of the verdict.", true);
      reason.focus();
      return;
    }
    if (form.dataset.evidence === "required" && button.hasAttribute("data-evidence") && !new FormData(form).has("evidence")) {
      say("Choose the sentences that support it first (↓, Enter), then press the key of the verdict.", true);
      return;
    }
    form.elements.seconds.value = secondsSeen().toFixed(2);
  }
  const fields = new FormData(form);
  if (button.name) fields.append(button.name, button.value);
  button.setAttribute("aria-busy", "true");
  send({
    action: new URL(form.action).pathname,
    body: new URLSearchParams(fields).toString(),
    label: button.dataset.label,
    me: view.dataset.me,
  });
}

/** Send a press that an earlier page kept, with the form token of this page: a new link has another one. */
function sendKept() {
  const kept = JSON.parse(sessionStorage.getItem(PENDING));
  const token = view.querySelector("#press [name=csrf], #undo [name=csrf]");
  if (!kept || !token || kept.me !== view.dataset.me) return; // nothing to send, or it is another person's
  const body = new URLSearchParams(kept.body);
  body.set("csrf", token.value);
  send({ ...kept, body: body.toString(), again: true });
}

async function open(address) {
  say("");
  const reply = await ask(address);
  if (reply) show(reply.page);
  else say("The server does not answer; try again.", true);
}

/** Put another page of the study in the place of this one. */
function show(page) {
  const found = page.getElementById("view");
  if (found) view.replaceChildren(...found.childNodes);
  else view.replaceChildren(...page.querySelectorAll("main"));
  document.body.className = page.body.className;
  document.title = page.title;
  shown = performance.now();
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
    if (link.id === "next") open(link.href);
    else openGuide(link.href);
  }
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
    const found = reply && reply.page.getElementById("guidelines-text");
    if (!found) {
      say("The guidelines cannot be loaded now; try again.", true);
      return;
    }
    const close = document.createElement("button");
    close.type = "button";
    close.className = "close";
    close.append(Object.assign(document.createElement("kbd"), { textContent: "Esc" }), " Close");
    close.addEventListener("click", () => guide.close());
    guide.replaceChildren(close, document.adoptNode(found));
    guide.dataset.address = address;
  }
  guide.showModal();
  guide.scrollTop = 0;
}

// --- evidence: sentences are check boxes; a selection is a stretch of its own ---

function sentences() {
  return [...view.querySelectorAll("input[name=evidence][type=checkbox]")];
}

function go(by) {
  const all = sentences();
  if (!all.length) {
    const source = view.querySelector(".sources") || view.querySelector(".context");
    if (source) source.scrollBy({ top: 60 * by });
    return;
  }
  const at = all.indexOf(document.activeElement);
  const last = all.findIndex((one) => one.tabIndex === 0);
  const next = at < 0 ? Math.max(last, 0) : Math.min(Math.max(at + by, 0), all.length - 1);
  for (const one of all) one.tabIndex = -1;
  all[next].tabIndex = 0;
  all[next].focus({ preventScroll: true });
  all[next].parentElement.scrollIntoView({ block: "nearest" });
}

/** Characters of a text as the server counts them: code points, where JavaScript counts UTF-16 units. */
function codePoints(text) {
  return [...text].length;
}

/** The offset in code points of a place in a passage. */
function offset(passage, node, at) {
  const range = document.createRange();
  range.setStart(passage, 0);
  range.setEnd(node, at);
  return codePoints(range.toString());
}

/** The part of the selection that lies in one passage, without white space at its ends; null if there is none. */
function selected() {
  const selection = document.getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const passage = [...view.querySelectorAll(".passage")].find((one) => range.intersectsNode(one) && one.contains(range.startContainer));
  if (!passage || !passage.querySelector("input[name=evidence]")) return null;
  const inner = range.cloneRange();
  if (!passage.contains(inner.endContainer)) inner.setEnd(passage, passage.childNodes.length);
  const text = inner.toString();
  if (!text.trim()) return null;
  const start = offset(passage, inner.startContainer, inner.startOffset) + codePoints(text) - codePoints(text.trimStart());
  return { passage, range: inner, start, end: start + codePoints(text.trim()), text: text.trim() };
}

function choose() {
  const found = selected();
  document.getSelection().removeAllRanges();
  if (!found) return;
  const value = `${found.start}:${found.end}:${found.passage.dataset.passage}`;
  if (spans.some((one) => one.input.value === value)) return;
  const input = Object.assign(document.createElement("input"), { type: "hidden", name: "evidence", value });
  input.setAttribute("form", "press");
  const place = document.createElement("li");
  const remove = document.createElement("button");
  const short = codePoints(found.text) > 60 ? `${[...found.text].slice(0, 60).join("")}…` : found.text;
  remove.type = "button";
  remove.textContent = `“${short}” ×`;
  remove.setAttribute("aria-label", `Do not choose: ${short}`);
  place.append(input, remove);
  document.getElementById("chosen").append(place);
  const span = { range: found.range, input };
  spans.push(span);
  remove.addEventListener("click", () => {
    spans = spans.filter((one) => one !== span);
    place.remove();
    paint();
  });
  paint();
}

function paint() {
  if ("highlights" in CSS) CSS.highlights.set("chosen", new Highlight(...spans.map((one) => one.range)));
}

let dragged = false;

view.addEventListener("pointerup", (event) => {
  if (event.pointerType !== "mouse" || !event.target.closest(".sources") || !selected()) return;
  dragged = true; // the click that follows must not choose the sentence
  setTimeout(() => { dragged = false; choose(); }, 0);
});

view.addEventListener("click", (event) => {
  if (dragged && event.target.closest(".sentence")) event.preventDefault();
}, true);

document.addEventListener("selectionchange", () => {
  const button = document.getElementById("choose");
  if (button) button.hidden = !selected();
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
  const opened = view.querySelector("details[open]");
  if (key === "Escape") {
    if (opened) {
      opened.open = false;
      opened.querySelector("summary").focus();
    } else if (target.matches("textarea")) target.blur();
    return;
  }
  if (target.matches("textarea, input:not([type=checkbox]), select")) return;
  if (key === "ArrowDown" || key === "ArrowUp") {
    if (opened) return;
    event.preventDefault();
    go(key === "ArrowDown" ? 1 : -1);
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
  const found = [...view.querySelectorAll(flags ? "[data-flag-key], summary[data-key]" : "[data-key]")]
    .find((one) => (one.dataset.flagKey || one.dataset.key) === key);
  if (!found) return;
  event.preventDefault();
  if (found.matches("summary")) toggleDetails(found.parentElement, !found.parentElement.open);
  else if (found.matches("textarea")) found.focus();
  else if (performance.now() - shown >= SETTLING) found.click();
});

// --- start ---

function start() {
  spans = [];
  const form = document.getElementById("press");
  if (form) form.noValidate = true; // press() says what is missing, and where its key is
  paint();
  sentences().forEach((one, place) => { one.tabIndex = place ? -1 : 0; });
  startTime();
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
sendKept();
