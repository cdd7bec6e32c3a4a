// The table of questions of a benchmark report. Texts of a run come from others: they only ever become textContent.
"use strict";

const DATA = await unpacked(document.getElementById("data").textContent);
const PAGE = 50; // rows shown at once
const MANY = 4; // more systems have signs without words
const CUT = 1200; // characters of a passage or sentence shown at first

const WAYS = {
  right_attributed: ["✔", "right and attributed"],
  right_unattributed: ["◐", "right, unattributed"],
  wrong_attributed: ["▲", "wrong, attributed"],
  wrong_unattributed: ["✘", "wrong"],
  refused_right: ["○", "refused, rightly"],
  refused_wrong: ["●", "refused, wrongly"],
  undecided: ["?", "undecided"],
};
const VERDICTS = {
  attributable: ["✔", "supported", "yes"],
  partially_attributable: ["◐", "partly supported", "partly"],
  not_attributable: ["✘", "not supported", "no"],
  extrapolatory: ["✘", "not in the passages", "no"],
  contradictory: ["≠", "contradicted", "no"],
  undecided: ["?", "undecided", "unknown"],
  not_applicable: ["–", "claims nothing", "unknown"],
};
const WINS = new Set(["right_attributed", "refused_right"]);
// Control characters, halves of characters, and marks that reorder what follows; one sign each, so that offsets fit.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\p{Cs}]/gu;

/** The JSON, compressed by zlib, in base64. */
async function unpacked(text) {
  try {
    const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  } catch (error) {
    document.getElementById("count").textContent =
      "The table cannot be unpacked: the file is damaged, or the browser is older than 2023.";
    throw error;
  }
}

const $ = (id) => document.getElementById(id);
const shown = (text) => String(text).replace(HIDDEN, "\ufffd");
const cut = (text, length) => (text.length > length ? text.slice(0, length) + "…" : text);

for (const one of DATA.groups) { // what becomes an attribute too
  one.systems = one.systems.map(shown);
  for (const question of one.questions) if (question.kind) question.kind = shown(question.kind);
}

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null) node.append(child); // a string becomes a text node
  return node;
}

/** An element that holds a text of the run, isolated from the direction of what is around it. */
const said = (tag, text, attributes = {}) => make(tag, { dir: "auto", ...attributes }, shown(text));

/** The text with elements around spans of code points (start, end); overlapping spans are joined. */
function marked(text, spans, tag, attributes = {}) {
  const characters = Array.from(text);
  const joined = [];
  for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = joined[joined.length - 1];
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else if (end > start) joined.push([start, end]);
  }
  const parts = [];
  let at = 0;
  for (const [start, end] of joined) {
    parts.push(shown(characters.slice(at, start).join("")));
    parts.push(make(tag, attributes, shown(characters.slice(start, end).join(""))));
    at = end;
  }
  parts.push(shown(characters.slice(at).join("")));
  return parts;
}

/** As `marked`, but of a long text only the part around the first span; and a button for all of it (or null). */
function excerpt(place, text, spans, tag, attributes = {}) {
  const characters = Array.from(text);
  const full = () => place.replaceChildren(...marked(text, spans, tag, attributes));
  if (characters.length <= CUT) {
    full();
    return null;
  }
  const first = spans.length ? Math.min(...spans.map((span) => span[0])) : 0;
  const start = Math.max(0, Math.min(first - CUT / 4, characters.length - CUT));
  const inside = spans.map(([a, b]) => [Math.max(0, a - start), Math.min(CUT, b - start)]).filter(([a, b]) => a < b);
  const part = characters.slice(start, start + CUT).join("");
  place.append(start ? "… " : "", ...marked(part, inside, tag, attributes), start + CUT < characters.length ? " …" : "");
  const button = make("button", { type: "button" }, `Show all ${characters.length.toLocaleString("en")} characters`);
  button.addEventListener("click", () => { full(); button.remove(); });
  return button;
}

/** What happened, as a sign and words on a colour; `brief` hides the words, for tables of many systems. */
function chip(way, brief = false) {
  const [sign, words] = WAYS[way];
  return make("span", { class: `chip ${way}`, title: brief ? words : null },
    make("span", { "aria-hidden": "true" }, sign), make("span", { class: brief ? "hidden" : null }, ` ${words}`));
}

// --- state: in the fragment of the address, so that a view can be sent to others ---

const state = { group: 0, system: "", ways: new Set(), differs: false, winner: "", loser: "", kind: "", q: "", page: 0, open: new Set() };
let rows = []; // numbers of the questions that pass the filters
let current = 0; // row of the keyboard, in `rows`

function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const group = Number(given.get("group"));
  state.group = Number.isInteger(group) && group >= 0 && group < DATA.groups.length ? group : 0;
  const labels = DATA.groups[state.group].systems;
  for (const name of ["system", "winner", "loser"]) state[name] = labels.includes(given.get(name)) ? given.get(name) : "";
  state.ways = new Set((given.get("ways") || "").split(",").filter((way) => Object.hasOwn(WAYS, way)));
  state.differs = given.get("differs") === "1";
  state.kind = given.get("kind") || "";
  state.q = given.get("q") || "";
  state.page = Math.max(0, (parseInt(given.get("page"), 10) || 1) - 1);
  state.open = new Set(given.getAll("open"));
}

function writeState() {
  const kept = new URLSearchParams();
  if (state.group) kept.set("group", state.group);
  for (const name of ["system", "winner", "loser", "kind", "q"]) if (state[name]) kept.set(name, state[name]);
  if (state.ways.size) kept.set("ways", [...state.ways].join(","));
  if (state.differs) kept.set("differs", "1");
  if (state.page) kept.set("page", state.page + 1);
  for (const id of state.open) kept.append("open", id);
  const hash = kept.toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

// --- filters ---

const group = () => DATA.groups[state.group];
const texts = new Map();

/** What a search looks through: question, references, answers, ids; lower case, made on the first search. */
function haystack(number) {
  const key = `${state.group} ${number}`;
  if (!texts.has(key)) {
    const question = group().questions[number];
    const answers = question.answers.map((answer) => `${answer.short || ""} ${answer.sentences.map((s) => s.text).join(" ")}`);
    texts.set(key, [question.id, question.text, ...(question.references || []), ...answers].join("\n").toLowerCase());
  }
  return texts.get(key);
}

function passes(question, number) {
  const at = (label) => question.answers[group().systems.indexOf(label)].way;
  const ways = state.system ? [at(state.system)] : question.answers.map((answer) => answer.way);
  if (state.ways.size && !ways.some((way) => state.ways.has(way))) return false;
  if (state.differs && new Set(question.answers.map((answer) => answer.way)).size < 2) return false;
  if (state.winner && !WINS.has(at(state.winner))) return false;
  if (state.loser && WINS.has(at(state.loser))) return false;
  if (state.kind && question.kind !== state.kind) return false;
  return !state.q || haystack(number).includes(state.q.toLowerCase());
}

function update({ keepPage = false } = {}) {
  rows = group().questions.map((_, number) => number).filter((number) => passes(group().questions[number], number));
  const last = Math.max(0, Math.ceil(rows.length / PAGE) - 1);
  state.page = keepPage ? Math.min(state.page, last) : 0;
  current = state.page * PAGE;
  draw();
  writeState();
}

// --- drawing ---

function draw() {
  const first = state.page * PAGE;
  const visible = rows.slice(first, first + PAGE);
  const body = make("tbody");
  visible.forEach((number, place) => body.append(...drawRow(number, first + place)));
  $("rows").replaceChildren(...(visible.length ? [head(), body] : []));
  $("none").hidden = visible.length > 0;
  const all = group().questions.length;
  $("count").textContent = rows.length === all ? `${all.toLocaleString("en")} questions` : `${rows.length.toLocaleString("en")} of ${all.toLocaleString("en")} questions`;
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  for (const pager of document.querySelectorAll(".pager")) {
    pager.hidden = pages === 1;
    pager.querySelector(".where").textContent = `page ${state.page + 1} of ${pages}`;
    pager.querySelector(".previous").disabled = state.page === 0;
    pager.querySelector(".next").disabled = state.page === pages - 1;
  }
}

function head() {
  const cells = ["Question", ...group().systems].map((name) => said("th", cut(name, 40), { scope: "col" }));
  return make("thead", {}, make("tr", {}, ...cells));
}

function drawRow(number, place) {
  const question = group().questions[number];
  const open = state.open.has(question.id);
  const detail = `detail-${number}`;
  const button = make("button", { class: "open", type: "button", "aria-expanded": String(open), "aria-controls": open ? detail : null, "data-place": place },
    said("span", cut(question.text, 300)));
  button.addEventListener("click", () => toggle(number, place));
  button.addEventListener("focus", () => { current = place; });
  const ways = question.answers.map((answer, system) => make("td", { "data-system": cut(shown(group().systems[system]), 40) }, chip(answer.way, question.answers.length > MANY)));
  const row = make("tr", { class: open ? "opened" : null }, make("th", { scope: "row" }, button), ...ways);
  if (!open) return [row];
  return [row, make("tr", { class: "detail", id: detail }, make("td", { colspan: String(1 + ways.length) }, drawDetail(question, number)))];
}

function toggle(number, place) {
  const { id } = group().questions[number];
  if (!state.open.delete(id)) state.open.add(id);
  draw();
  writeState();
  focusRow(place);
}

function facts(pairs) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "" || value.length === 0) continue;
    list.append(make("div", {}, make("dt", {}, name), said("dd", cut(Array.isArray(value) ? value.join(" · ") : String(value), 2000))));
  }
  return list;
}

function drawDetail(question, number) {
  const about = facts([
    ["id", question.id],
    ["question", question.text.length > 300 ? question.text : null],
    ["reference answers", question.references],
    ["must contain", (question.nuggets || []).map((phrases) => phrases.join(" or "))],
    ["gold passages", question.gold],
    ["kind", question.kind],
    ["collection", question.collection],
    ["answerable", question.unanswerable ? "no" : null],
  ]);
  const panels = question.answers.map((answer, system) => drawAnswer(answer, group().systems[system], `${number}-${system}`));
  return make("div", {}, about, make("div", { class: "panels" }, ...panels));
}

function drawAnswer(answer, label, key) {
  const panel = make("section", { class: "panel", "aria-labelledby": `a-${key}` },
    make("h3", { id: `a-${key}` }, said("bdi", cut(label, 60)), " ", chip(answer.way)));
  const cited = [...new Set(answer.sentences.flatMap((sentence) => sentence.cites.map((cite) => cite[0])))];
  if (answer.sentences.length === 0) {
    panel.append(make("p", { class: "quiet" }, answer.missing ? "No answer in the file." : answer.abstained ? "The system refused to answer." : "No sentences."));
  }
  const list = make("ol", { class: "sentences" });
  for (const sentence of answer.sentences) list.append(drawSentence(sentence, cited, key));
  if (answer.sentences.length) panel.append(list);
  panel.append(facts([
    ["short answer", answer.short],
    ["reason", answer.reason],
    ["exact match", answer.em],
    ["F1", answer.f1],
    ["nugget recall", answer.nugget_recall],
    ["confidence", answer.confidence],
    ["rank of the first gold passage", answer.first_gold],
    ["rank of the first passage with a reference", answer.answer_hit],
    ["seconds", answer.seconds],
    ["tokens read and written", answer.tokens ? answer.tokens.join(" + ") : null],
    ["failed", answer.failed ? "the model failed" : null],
  ]));
  cited.forEach((place, index) => {
    const spans = answer.sentences.flatMap((s) => s.cites.filter((c) => c[0] === place && c[1] !== null).map((c) => [c[1], c[2]]));
    panel.append(drawPassage(DATA.passages[place], spans, `[${index + 1}] `, `p-${key}-${place}`));
  });
  const others = (answer.hits || []).filter((place) => !cited.includes(place));
  if (others.length) {
    const more = make("details", {}, make("summary", {}, `${others.length} other ${others.length === 1 ? "hit" : "hits"}`));
    const fill = () => more.append(...others.map((place) => drawPassage(DATA.passages[place], [], "", `p-${key}-${place}`)));
    more.addEventListener("toggle", fill, { once: true });
    panel.append(more);
  }
  return panel;
}

function drawSentence(sentence, cited, key) {
  const [sign, words, kind] = VERDICTS[sentence.verdict];
  const probability = sentence.p === undefined ? "" : ` (${sentence.p.toFixed(2)})`;
  const claim = make("span", { dir: "auto", class: "said" });
  const more = excerpt(claim, sentence.text, sentence.unsupported || [], "u", { class: "unsupported", title: "no support for these words" });
  const item = make("li", {}, claim, ...(more ? [" ", more] : []));
  for (const [place, , , verdict] of sentence.cites) {
    const alone = verdict ? VERDICTS[verdict] : null;
    const link = make("a", { href: `#p-${key}-${place}`, class: "cite", title: alone ? `this passage alone: ${alone[1]}` : null }, `[${cited.indexOf(place) + 1}]`);
    link.addEventListener("click", (event) => { // the fragment holds the state
      event.preventDefault();
      const target = $(`p-${key}-${place}`);
      target.scrollIntoView({ block: "nearest" });
      target.focus({ preventScroll: true });
    });
    item.append(" ", link);
  }
  item.append(" ", make("span", { class: `verdict ${kind}` }, make("span", { "aria-hidden": "true" }, sign), ` ${words}${probability}`));
  if (sentence.human !== undefined) item.append(" ", make("span", { class: "verdict people" }, sentence.human ? "people: supported" : "people: not supported"));
  return item;
}

/** The address of a web page, or null: no other kind of address becomes a link. */
function source(text) {
  const address = text && URL.canParse(text) ? new URL(text) : null;
  return address && ["http:", "https:"].includes(address.protocol) ? address.href : null;
}

function drawPassage(passage, spans, prefix, id) {
  const name = cut([passage.title, passage.section].filter(Boolean).join(", ") || passage.id, 200);
  const heading = make("p", { class: "from" }, prefix, said("bdi", name), " ", said("code", cut(passage.id, 120)));
  const address = source(passage.url);
  if (address) {
    heading.append(" ", make("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank", "aria-label": `source of ${shown(name)}` }, "source"));
  }
  const block = make("div", { class: "passage", id, tabindex: "-1" }, heading);
  if (passage.text === undefined) {
    block.append(make("p", { class: "quiet" }, DATA.passage_texts ? "Its text is unknown." : "Its text is left out of this report."));
    return block;
  }
  const place = make("p", { dir: "auto", class: "text" });
  const more = excerpt(place, passage.text, spans, "mark");
  block.append(place, ...(more ? [more] : []));
  return block;
}

// --- controls ---

function options(select, names, first) {
  select.replaceChildren(make("option", { value: "" }, first), ...names.map((name) => make("option", { value: name }, cut(shown(name), 60))));
}

function drawControls() {
  const several = group().systems.length > 1;
  for (const name of ["system", "winner", "loser"]) {
    options($(name), group().systems, { system: "any system", winner: "any", loser: "any" }[name]);
    $(name).value = state[name];
  }
  for (const one of document.querySelectorAll(".several")) one.hidden = !several;
  const kinds = [...new Set(group().questions.map((question) => question.kind).filter(Boolean))].sort();
  options($("kind"), kinds, "any kind");
  $("kind").value = state.kind;
  $("kinds").hidden = kinds.length === 0;
  $("differs").checked = state.differs;
  $("q").value = state.q;
  for (const box of document.querySelectorAll("input[name=way]")) box.checked = state.ways.has(box.value);
  if ($("group")) $("group").value = String(state.group);
}

function listen() {
  for (const name of ["system", "winner", "loser", "kind"]) {
    $(name).addEventListener("change", (event) => { state[name] = event.target.value; update(); });
  }
  $("differs").addEventListener("change", (event) => { state.differs = event.target.checked; update(); });
  for (const box of document.querySelectorAll("input[name=way]")) {
    box.addEventListener("change", () => { if (!state.ways.delete(box.value)) state.ways.add(box.value); update(); });
  }
  let waiting = 0;
  $("q").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.q = event.target.value; update(); }, 150);
  });
  $("clear").addEventListener("click", clear);
  if ($("group")) {
    $("group").addEventListener("change", (event) => { location.hash = `group=${event.target.value}`; });
  }
  for (const pager of document.querySelectorAll(".pager")) {
    pager.querySelector(".previous").addEventListener("click", () => turn(-1));
    pager.querySelector(".next").addEventListener("click", () => turn(1));
  }
  window.addEventListener("hashchange", () => { readState(); drawControls(); update({ keepPage: true }); });
  document.addEventListener("keydown", onKey);
}

function clear() {
  Object.assign(state, { system: "", ways: new Set(), differs: false, winner: "", loser: "", kind: "", q: "", open: new Set() });
  drawControls();
  update();
}

function turn(by) {
  state.page = Math.min(Math.max(0, state.page + by), Math.max(0, Math.ceil(rows.length / PAGE) - 1));
  current = state.page * PAGE;
  draw();
  writeState();
  focusRow(current);
}

function focusRow(place) {
  current = place;
  const button = document.querySelector(`button.open[data-place="${place}"]`);
  if (button) button.focus();
}

/** Focus the row that is `by` further, on another page if need be. */
function move(by) {
  const inside = document.activeElement && document.activeElement.classList.contains("open");
  const next = Math.min(Math.max(0, current + (inside ? by : 0)), rows.length - 1);
  if (next < 0) return;
  if (Math.floor(next / PAGE) !== state.page) {
    state.page = Math.floor(next / PAGE);
    draw();
    writeState();
  }
  focusRow(next);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (state.open.size) { state.open.clear(); draw(); writeState(); focusRow(current); }
    return;
  }
  if (typing) return;
  const action = { "/": () => $("q").focus(), j: () => move(1), k: () => move(-1), n: () => turn(1), p: () => turn(-1), o: () => rows.length && toggle(rows[current], current), x: clear }[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
}

readState();
drawControls();
listen();
update({ keepPage: true });
