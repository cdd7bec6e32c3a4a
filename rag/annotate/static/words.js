// Marks words by keyboard where a question asks for words: left and right go through the words of the sentence in focus,
// with Shift they add words, and Enter marks what is selected. work.js then reads the selection as if a mouse had made it.

const view = document.getElementById("view");

function isAsked() {
  return view.querySelector("#press[data-words]") !== null;
}

/** The passage that the selection, or the sentence in focus, is in. */
function currentPassage() {
  const selection = document.getSelection();
  const node = selection.rangeCount && !selection.isCollapsed ? selection.anchorNode : document.activeElement;
  const element = node instanceof Element ? node : node?.parentElement;
  return element?.closest(".passage") ?? null;
}

/** All words of a passage, as [start, end] in characters of its text. */
function wordsOf(passage) {
  const segmenter = new Intl.Segmenter(document.documentElement.lang || undefined, { granularity: "word" });
  return [...segmenter.segment(passage.textContent)]
    .filter((part) => part.isWordLike)
    .map((part) => [part.index, part.index + part.segment.length]);
}

/** The position of a node and offset in the text of a passage. */
function positionOf(passage, node, offset) {
  const range = document.createRange();
  range.setStart(passage, 0);
  range.setEnd(node, offset);
  return range.toString().length;
}

/** The text node and offset of a position; at a border between two nodes the earlier one if `atEnd`. */
function nodeAt(passage, position, atEnd) {
  const walker = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
  let before = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const inside = position - before;
    if (inside < node.length || (atEnd && inside === node.length)) return [node, inside];
    before += node.length;
  }
  return null;
}

function select(passage, anchor, focus, words) {
  const [first, last] = anchor <= focus ? [anchor, focus] : [focus, anchor];
  const start = nodeAt(passage, words[first][0], false);
  const end = nodeAt(passage, words[last][1], true);
  const selection = document.getSelection();
  if (anchor <= focus) selection.setBaseAndExtent(...start, ...end);
  else selection.setBaseAndExtent(...end, ...start);
  end[0].parentElement.scrollIntoView({ block: "nearest" });
}

/** Go to the next word, or add it to the selection. */
function goToWord(by, extend) {
  const passage = currentPassage();
  if (!passage) return false;
  const words = wordsOf(passage);
  if (!words.length) return false;
  const selection = document.getSelection();
  if (selection.isCollapsed || !passage.contains(selection.anchorNode)) {
    const sentence = document.activeElement.closest(".sentence");
    const start = positionOf(passage, sentence, 0);
    const end = positionOf(passage, sentence, sentence.childNodes.length);
    const inside = words.map((word, index) => [word, index]).filter(([word]) => word[0] >= start && word[1] <= end);
    if (!inside.length) return false;
    const index = by > 0 ? inside[0][1] : inside.at(-1)[1];
    select(passage, index, index, words);
    return true;
  }
  const anchor = positionOf(passage, selection.anchorNode, selection.anchorOffset);
  const focus = positionOf(passage, selection.focusNode, selection.focusOffset);
  const low = Math.min(anchor, focus);
  const high = Math.max(anchor, focus);
  const first = Math.max(words.findIndex((word) => word[1] > low), 0);
  const last = Math.max(words.findLastIndex((word) => word[0] < high), first);
  const [from, to] = anchor <= focus ? [first, last] : [last, first];
  const next = Math.min(Math.max(to + by, 0), words.length - 1);
  select(passage, extend ? from : next, next, words);
  return true;
}

document.addEventListener("keydown", (event) => {
  if (!isAsked() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.matches("textarea, input:not([type=checkbox])") || document.querySelector("dialog[open]")) return;
  let isDone = false;
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    isDone = goToWord(event.key === "ArrowRight" ? 1 : -1, event.shiftKey);
  } else if (event.key === "Enter" && !document.getSelection().isCollapsed && currentPassage()) {
    document.getElementById("choose").click();
    isDone = true;
  }
  if (!isDone) return;
  event.preventDefault();
  event.stopImmediatePropagation(); // work.js would mark the whole sentence too
}, true);
