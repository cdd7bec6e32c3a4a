// The page Ask: a thread of questions and answers, which this browser stores.

import { check, fail, prepare, write } from "./answers.js";
import { all, announce, element, find, fitBox, growBox, nodes, post, refusal } from "./dom.js";
import * as store from "./store.js";

const MAX_TURNS = 20; // of a thread, that a follow-up is asked with
const MAX_SENT = 1_000_000; // characters of stored answers in one request

// A turn is {thread, number, question, system, row, checks}: `row` is the answer as JSON, null while there is none. The
// server makes HTML of it again, and checks it first.
const threadPart = find("#thread");
const askForm = find("#ask");
export const turnOf = new WeakMap(); // of each article
export let thread = null; // {id, title, named, where, questions, at}
export let turns = []; // of the thread
let context = []; // questions and answers of the thread, for follow-ups
let isAsking = false;
let here = location.pathname + location.search; // the address of what is shown
let isStored = true; // whether the browser stores threads

/** Store something; a browser that stores nothing, or no more, still shows the answers. */
export async function keep(act, ...values) {
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
  thread.answers = turns.map((turn) => turn.row?.answer || "");
  return keep(store.saveThread, thread).then(() => document.dispatchEvent(new Event("threads")));
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

export function showThread() {
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
  fitBox(askForm.elements.q);
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
  fitBox(askForm.elements.q);
  saveThread().then(showThread);
  keep(store.saveTurn, turn);
  showThread();
  find(".question", article).focus({ preventScroll: true });
  article.scrollIntoView({ block: "start" });
  announce("Answering", true);
  const request = { question, index: index.value, system: system.value, history: context.slice(-MAX_TURNS), place: `t${turn.number}` };
  const answer = await write(article, request, () => retry(question), (answer, checks) => {
    Object.assign(turn, answer.record, { checks });
    keep(store.saveTurn, turn);
    saveThread();
  });
  article.removeAttribute("aria-busy");
  isAsking = false;
  if (!answer) return fillBox(question);
  if (answer.turn) context.push(answer.turn);
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
    context = [];
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
  const complete = batch.filter((turn) => turn.row);
  let parts = [];
  if (complete.length) {
    const reply = await post("/thread", { turns: complete.map((turn) => ({ ...turn, place: `t${turn.number}` })) });
    if (!reply.ok) throw new Error(await refusal(reply));
    parts = (await reply.json()).turns;
  }
  for (const turn of batch) {
    const article = articles[turns.indexOf(turn)];
    const data = turn.row ? parts[complete.indexOf(turn)] : { message: "This question has no answer yet." };
    if (!data.html) {
      fail(article, data.message, () => retry(turn.question));
      continue;
    }
    article.append(...nodes(data.html));
    if (data.turn) context.push(data.turn);
    prepare(article);
    if (!turn.checks && data.turn) check(article, turn, (checks) => { // the page was left before they came
      turn.checks = checks;
      keep(store.saveTurn, turn);
    });
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

if (askForm) {
  askForm.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(askForm.elements.q.value);
  });
  growBox(askForm.elements.q);
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
