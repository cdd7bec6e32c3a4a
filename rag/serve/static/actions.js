// What people do with an answer: copy it, save it as a file, rate it.

import { all, announce, element, find, post, refusal } from "./dom.js";
import { turnOf } from "./thread.js";

const COPIED = { text: "Copied with footnotes.", markdown: "Copied as Markdown.", bibtex: "Copied as BibTeX." };

export async function copy(answer, form = "text") {
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
export async function saveFile(address, value) {
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

/** Send a rating of an answer, or of a source of the sentence whose citation was followed. */
async function rate(button) {
  const answer = button.closest(".answer");
  const opinion = { answer: find(".rating", answer).dataset.answer, kind: button.dataset.rate };
  const turn = turnOf.get(button.closest(".turn"));
  if (turn?.row) Object.assign(opinion, { row: turn.row, signature: turn.signature || "" }); // the server forgets answers
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
