// The threads that this browser stores, as a list, and the menu of the thread that is shown.

import { saveFile } from "./actions.js";
import { announce, element, find } from "./dom.js";
import * as store from "./store.js";
import { keep, showThread, thread, turns } from "./thread.js";

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
  const renameButton = element("button", { type: "button", textContent: "Rename", ariaLabel: `Rename ${entry.title}` });
  renameButton.addEventListener("click", async () => {
    if (await rename(entry)) find("bdi", link).textContent = entry.title;
  });
  const deleteButton = element("button", { type: "button", textContent: "Delete" });
  const item = element("li", {}, link, renameButton, deleteButton);
  armedButton(deleteButton, async () => {
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
    const content = [entry.title, ...entry.questions].join("\n").toLowerCase();
    return words.every((word) => content.includes(word));
  });
  find("#past").replaceChildren(...matches.map(pastItem));
  if (!matches.length) find("#past").append(element("li", { className: "quiet", textContent: entries.length ? "No thread has these words." : "No questions yet." }));
  find("#forget").hidden = !entries.length;
}

export async function openHistory() {
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
