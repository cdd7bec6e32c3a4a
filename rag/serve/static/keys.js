// What keys do.

import { copy } from "./actions.js";
import { all, find } from "./dom.js";
import { openHistory } from "./history.js";
import { goBack, step } from "./passages.js";

const keysDialog = find("#keys");

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
