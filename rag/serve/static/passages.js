// Citations, and the passages beside an answer.

import { all, find } from "./dom.js";

const narrow = matchMedia("(max-width: 54rem)");
const LINKS = "a.cite, a.found[data-panel]";
let openLink = null; // the citation whose passage stays open while the mouse is over others

export function panelOf(link) {
  const answer = link.closest(".answer");
  return answer && find(`#${CSS.escape(link.dataset.panel)}`, answer);
}

/** Show the passage of a citation. With `open` it stays; on a phone it slides in from below. */
function show(link, open = false) {
  const panel = panelOf(link);
  if (!panel || (narrow.matches && !open)) return;
  const answer = link.closest(".answer");
  for (const passage of all(".passage", answer)) {
    passage.classList.toggle("shown", passage === panel);
    passage.classList.toggle("open", passage === panel && open);
  }
  for (const citation of all("[aria-current]", answer)) citation.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  for (const current of all(".sentence.now", answer)) current.classList.remove("now");
  link.closest(".sentence")?.classList.add("now");
  const page = find(".page", panel);
  const first = pickMarks(link, panel)[0] || find(".here", panel);
  page.scrollTop += first.getBoundingClientRect().top - page.getBoundingClientRect().top - page.clientHeight / 4;
  if (open) {
    openLink = link;
    find(".shut", panel).hidden = false;
  }
}

/** The marks of a passage for the sentence of a citation; the others become fainter. */
export function pickMarks(link, panel) {
  const sentence = link.closest(".sentence");
  const marks = all("mark", panel);
  const ownMarks = sentence ? marks.filter((mark) => mark.dataset.for.split(" ").includes(sentence.dataset.sentence)) : marks;
  for (const mark of marks) mark.classList.toggle("other", ownMarks.length > 0 && !ownMarks.includes(mark));
  return ownMarks;
}

/** Go back from a passage to its citation. */
export function goBack() {
  const panel = find(".passage.open");
  if (!panel) return false;
  panel.classList.remove("open");
  if (openLink && openLink.isConnected) openLink.focus();
  openLink = null;
  return true;
}

/** Show the passage of the first citation, unless one is shown. */
export function showFirst(answer) {
  if (find("[aria-current]", answer)) return;
  const first = find(".sentence:not(.aside) a.cite", answer) || find(LINKS, answer);
  if (first) show(first);
}

document.addEventListener("mouseover", (event) => {
  if (!event.movementX && !event.movementY) return; // the page scrolled under a mouse that rests
  const link = event.target.closest(LINKS);
  if (link && !(openLink && openLink.closest(".answer") === link.closest(".answer"))) show(link);
});

document.addEventListener("focusin", (event) => {
  const link = event.target.closest(LINKS);
  if (link && !narrow.matches) show(link);
});

document.addEventListener("click", (event) => {
  if (event.target.closest(".shut")) return void goBack();
  const link = event.target.closest(LINKS);
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) {
    if (openLink && !event.target.closest(".passage")) {
      const panel = find(".passage.open");
      if (panel) panel.classList.remove("open");
      openLink = null;
    }
    return;
  }
  const panel = panelOf(link);
  if (!panel) return;
  event.preventDefault();
  show(link, true);
  find(".page", panel).focus({ preventScroll: true });
});

document.addEventListener("toggle", (event) => { // the picture is below what is shown
  const page = event.target.matches(".pdf[open]") && event.target.closest(".page");
  if (page) page.scrollTop += event.target.getBoundingClientRect().top - page.getBoundingClientRect().top;
}, true);

/** Move the focus to the next citation, or the one before. */
export function step(by) {
  const links = all(".answer a.cite").filter((link) => link.checkVisibility());
  if (!links.length) return;
  const start = document.activeElement.closest(".passage") && openLink ? openLink : document.activeElement;
  const index = links.indexOf(start);
  const next = index >= 0 ? index + by : by > 0 ? links.findIndex((link) => start.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING) : links.length - 1;
  const link = links[Math.min(Math.max(next, 0), links.length - 1)];
  const open = narrow.matches && find(".passage.open");
  goBack();
  link.focus();
  if (open) show(link, true);
}
