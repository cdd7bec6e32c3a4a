// Adds documents with progress, one file after the other, and keeps the list as the index is. The server renders all
// HTML and escapes it; without this script the same forms work, and the page is loaded again.

import { all, announce, element, find } from "./dom.js";

const form = find("#add");
const changes = find("#changes");
const sending = find("#sending");

const parse = (html) => new DOMParser().parseFromString(html, "text/html");

/** The message of an error page. */
function problemOf(html, otherwise) {
  return find("[role=alert]", parse(html))?.textContent.trim() || otherwise;
}

// --- the state of the server ---

let isFollowing = false;

/** Show the changes, tell which have ended, and bring the list up to date. */
async function show(progress) {
  const before = all("li[data-state]", changes).filter((row) => ended(row)).length;
  const focus = changes.contains(document.activeElement) ? document.activeElement.id : null;
  changes.replaceChildren(...parse(progress.html).body.childNodes);
  const rows = all("li[data-state]", changes).filter((row) => ended(row));
  if (rows.length > before) announce(rows.slice(0, rows.length - before).map((row) => row.textContent.replace(/\s+/g, " ").trim()).join(". "), true);
  if (focus !== null) (document.getElementById(focus) || find("#library-title")).focus({ preventScroll: true });
  if (progress.checksum !== find("#library").dataset.checksum) await renew();
}

const ended = (row) => !["waiting", "running"].includes(row.dataset.state);

/** Ask for the progress until nothing waits and the list is that of now; more and more seldom, as servers limit requests. */
async function follow() {
  if (isFollowing) return;
  isFollowing = true;
  for (let wait = 500; ; wait = Math.min(wait * 1.2, 4000)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const reply = await fetch(changes.dataset.progress).catch(() => null);
    if (!reply?.ok) continue;
    const progress = await reply.json();
    await show(progress);
    if (!progress.running && progress.checksum === find("#library").dataset.checksum) break; // a server may refuse the list
  }
  isFollowing = false;
}

/** Load the list again; what is open stays open, and the focus stays. */
async function renew() {
  const reply = await fetch(location.href).catch(() => null);
  if (!reply?.ok) return;
  const library = find("#library");
  const focus = library.contains(document.activeElement) ? document.activeElement.id : null;
  const open = all("details[open] > summary", library).map((summary) => summary.id);
  library.replaceWith(find("#library", parse(await reply.text())));
  for (const id of open) {
    const summary = document.getElementById(id);
    if (summary) summary.parentElement.open = true;
  }
  if (focus !== null) (document.getElementById(focus) || find("#library-title")).focus({ preventScroll: true });
}

// --- sending files ---

const queue = [];
let isSending = false;
let pause = 0; // seconds until a server that limits requests takes the next file

/** Queue files; a `target` is the document that a file replaces. */
function add(files, target = "") {
  for (const file of files) {
    const state = element("span", { className: "quiet", textContent: "waiting" });
    const bar = element("progress", { max: 1, value: 0, ariaLabel: `Sending ${file.name}` });
    const button = element("button", { type: "button", className: "small" }, "Cancel ", element("span", { className: "unseen", textContent: file.name }));
    const row = element("li", {}, element("span", { className: "what" }, element("bdi", { textContent: file.name }), " ", state), bar, button);
    const item = { file, target, state, bar, button, row };
    button.addEventListener("click", () => stop(item));
    sending.append(row);
    if (file.size > Number(form.dataset.max)) end(item, `larger than ${Number(form.dataset.max) >> 20} MiB`);
    else queue.push(item);
  }
  pump();
}

/** Cancel a file that waits or is being sent; or remove the row of one that could not be sent. */
function stop(item) {
  const place = queue.indexOf(item);
  if (item.request) item.request.abort();
  else {
    if (place >= 0) queue.splice(place, 1);
    const hasFocus = item.row.contains(document.activeElement);
    item.row.remove();
    if (hasFocus) form.elements.files.focus();
  }
}

function end(item, problem, className = "bad") {
  item.bar.remove();
  item.button.firstChild.textContent = "Hide ";
  item.state.replaceWith(element("span", { className, textContent: `not sent: ${problem}` }));
  announce(`${item.file.name}: not sent, ${problem}`, true);
}

async function pump() {
  if (isSending) return;
  isSending = true;
  while (queue.length) {
    await send(queue.shift());
    if (pause) await new Promise((resolve) => setTimeout(resolve, 1000 * pause));
    pause = 0;
  }
  isSending = false;
}

function send(item) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest(); // fetch does not report how much was sent
    item.request = request;
    item.state.textContent = "being sent";
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) item.bar.value = event.loaded / event.total; });
    request.addEventListener("abort", () => end(item, "cancelled", "quiet"));
    request.addEventListener("error", () => end(item, "the connection was lost"));
    request.addEventListener("load", async () => {
      if (request.status === 429) {
        pause = Number(request.getResponseHeader("Retry-After")) || 5;
        item.state.textContent = "waiting";
        item.bar.value = 0;
        return void queue.unshift(item);
      }
      if (request.status !== 200) return end(item, problemOf(request.responseText, "the server did not take it; try again"));
      const hasFocus = item.row.contains(document.activeElement);
      item.row.remove();
      await show(JSON.parse(request.responseText));
      if (hasFocus) (find("button", changes) || form.elements.files).focus({ preventScroll: true });
      follow();
    });
    request.addEventListener("loadend", () => { item.request = null; resolve(); });
    const body = new FormData();
    body.append("csrf", form.elements.csrf.value);
    if (item.target) body.append("replace", item.target);
    body.append("files", item.file);
    request.open("POST", form.action);
    request.setRequestHeader("X-Requested-With", "fetch");
    request.send(body);
  });
}

if (form) {
  find(".drop").hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    add([...form.elements.files.files]);
    form.reset();
  });

  document.addEventListener("submit", async (event) => {
    const change = event.target;
    if (change.matches("[data-replace]")) {
      event.preventDefault();
      add([...change.elements.files.files], change.elements.replace.value);
      change.closest("details").open = false;
      find("summary", change.closest("details")).focus();
    } else if (change.matches("[data-change]")) {
      event.preventDefault();
      const details = change.closest("details");
      const reply = await fetch(change.action, {
        method: "POST", headers: { "X-Requested-With": "fetch" }, body: new URLSearchParams(new FormData(change)),
      }).catch(() => null);
      if (!reply?.ok) return void announce(reply ? problemOf(await reply.text(), "The server did not do it.") : "The connection was lost; try again.");
      if (details) {
        details.open = false;
        find("summary", details).focus();
      }
      await show(await reply.json());
      follow();
    }
  });

  const hasFiles = (event) => [...event.dataTransfer?.types || []].includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    find("#adding").classList.add("over");
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) find("#adding").classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    find("#adding").classList.remove("over");
    add([...event.dataTransfer.items].filter((item) => item.webkitGetAsEntry?.()?.isFile !== false).map((item) => item.getAsFile()).filter(Boolean));
  });
  window.addEventListener("beforeunload", (event) => { if (isSending) event.preventDefault(); });
  if (all("li[data-state]", changes).some((row) => !ended(row))) follow();
}
