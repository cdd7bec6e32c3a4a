// The threads that this browser stores, as a list, and the menu of the thread that is shown. Where there is room, the
// list stands beside the answers; elsewhere it comes from the side.

import { saveFile } from "./actions.js";
import { all, announce, element, find } from "./dom.js";
import * as store from "./store.js";
import { keep, showThread, thread, turns } from "./thread.js";

const historyDialog = find("#history");
const keysDialog = find("#keys");
const renameDialog = find("#rename");
const sidebar = find("#sidebar"); // of the page Ask
const wide = matchMedia("(min-width: 75rem)");
const SIDEBAR = "attributed-rag: sidebar"; // "open" or "closed"

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
      showThreads();
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
  const count = entry.questions.length;
  const isThisYear = new Date(entry.at).getFullYear() === new Date().getFullYear();
  const day = new Date(entry.at).toLocaleDateString(undefined, { day: "numeric", month: "short", year: isThisYear ? undefined : "numeric" });
  const details = `${day} · ${count} ${count === 1 ? "question" : "questions"}`;
  const link = element("a", { href: `/t/${entry.id}`, title: entry.title }, element("bdi", { textContent: entry.title }), element("span", { textContent: details }));
  if (entry.id === thread?.id) link.setAttribute("aria-current", "page");
  const renameButton = element("button", { type: "button", textContent: "Rename" });
  renameButton.addEventListener("click", () => rename(entry));
  const deleteButton = element("button", { type: "button", textContent: "Delete" });
  const more = element("summary", { ariaLabel: `Rename or delete ${entry.title}`, textContent: "⋯" });
  const item = element("li", {}, link, element("details", {}, more, element("div", {}, renameButton, deleteButton)));
  armedButton(deleteButton, async () => {
    item.remove();
    find("#find-thread").focus();
    await removeThread(entry.id);
    showThreads();
  });
  return item;
}

async function showThreads() {
  const text = find("#find-thread").value.trim().toLowerCase();
  const entries = await store.listThreads().catch(() => []);
  const words = text.split(/\s+/);
  const matches = entries.filter((entry) => {
    const content = [entry.title, ...entry.questions, ...(entry.answers || [])].join("\n").toLowerCase();
    return words.every((word) => content.includes(word));
  });
  find("#past").replaceChildren(...matches.map(pastItem));
  if (!matches.length) find("#past").append(element("li", { className: "quiet", textContent: entries.length ? "No thread has these words." : "No questions yet." }));
  find("#forget").hidden = !entries.length;
  return entries.length;
}

// --- beside the answers, or from the side ---

const hasRoom = () => Boolean(sidebar && wide.matches);

function setSidebar(isOpen) {
  document.body.classList.toggle("with-threads", isOpen && hasRoom());
  find("#open-history").setAttribute("aria-expanded", String(isOpen && hasRoom()));
}

/** The last choice of the reader; null before the first one. */
function readChoice() {
  try {
    return localStorage.getItem(SIDEBAR);
  } catch {
    return null;
  }
}

function choose(isOpen) {
  keep(async () => localStorage.setItem(SIDEBAR, isOpen ? "open" : "closed"));
  setSidebar(isOpen);
}

function placeThreads() {
  if (historyDialog.open) historyDialog.close();
  (hasRoom() ? sidebar : find("#history-place")).append(find("#threads"));
  setSidebar(readChoice() === "open");
}

/** Show the threads, and search in them. */
export async function openHistory() {
  find("#find-thread").value = "";
  await showThreads(); // first, so that no menu is replaced that the reader has opened
  if (hasRoom()) {
    choose(true);
    find("#find-thread").focus(); // on a phone, it would bring up the keyboard
  } else if (!historyDialog.open) historyDialog.showModal();
}

if (keysDialog) {
  keep(async () => localStorage.removeItem("attributed-rag: history")); // of earlier versions: questions
  find(".helpers").hidden = false;
  find("#open-history").addEventListener("click", () => {
    if (document.body.classList.contains("with-threads")) choose(false);
    else openHistory();
  });
  find("#open-keys").addEventListener("click", () => keysDialog.showModal());
  find("#find-thread").addEventListener("input", showThreads);
  armedButton(find("#forget"), async () => {
    await keep(store.removeAll);
    if (thread) return void location.assign("/");
    if (historyDialog.open) historyDialog.close();
    showThreads();
    announce("The history is cleared.");
  });
  for (const dialog of [historyDialog, keysDialog, renameDialog]) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
  placeThreads();
  wide.addEventListener("change", placeThreads);
  document.addEventListener("threads", () => { // a first thread opens the list
    if (readChoice() === null) choose(true);
    if (sidebar) showThreads();
  });
  if (sidebar) showThreads().then((count) => { if (count && readChoice() === null) choose(true); });
  document.addEventListener("click", (event) => {
    for (const menu of all("#past details[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
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
