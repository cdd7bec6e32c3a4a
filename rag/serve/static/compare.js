// The page Compare: two answers side by side.

import { write } from "./answers.js";
import { announce, element, find, growBox } from "./dom.js";

const compareForm = find("#compare");
const sides = find("#sides");

async function compare(question) {
  const { a, b } = compareForm.elements;
  sides.replaceChildren();
  find(".hero")?.replaceWith(element("h1", { className: "unseen", textContent: "Compare two answers" }));
  history.replaceState({}, "", `/compare?${new URLSearchParams({ q: question, a: a.value, b: b.value })}`);
  await Promise.all([["a", a], ["b", b]].map(([place, select]) => {
    const choice = select.value;
    const separator = choice.lastIndexOf("@");
    const turn = element("article", { className: "turn" }, element("h2", { className: "question", textContent: select.selectedOptions[0].text }));
    sides.append(turn);
    const request = { question, system: choice.slice(0, separator), index: choice.slice(separator + 1), place };
    return write(turn, request, () => compare(question));
  }));
  announce("Both have answered.", true);
}

if (compareForm) {
  compareForm.addEventListener("submit", (event) => {
    event.preventDefault();
    compare(compareForm.elements.q.value.trim());
  });
  growBox(compareForm.elements.q);
  if (sides.dataset.ask) compare(sides.dataset.ask);
}
