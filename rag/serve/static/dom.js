// What all scripts of the pages use: elements, messages, requests.

export const find = (css, root = document) => root.querySelector(css);
export const all = (css, root = document) => [...root.querySelectorAll(css)];

document.documentElement.classList.add("js");

/** Show a message for some seconds, or with `silent` only to screen readers. */
export function announce(text, silent = false) {
  const status = find("#status");
  status.classList.toggle("silent", silent);
  status.textContent = text;
  clearTimeout(announce.timer);
  if (!silent) announce.timer = setTimeout(() => { status.textContent = ""; }, 5000);
}

/** HTML of the server, as nodes. */
export function nodes(html) {
  return [...new DOMParser().parseFromString(html, "text/html").body.childNodes];
}

export function element(name, values = {}, ...children) {
  const node = Object.assign(document.createElement(name), values);
  node.append(...children);
  return node;
}

/** What the server says of a request that it refuses. */
export async function refusal(reply) {
  const error = await reply.json().catch(() => ({}));
  return error.message || error.error?.message || "The server cannot answer now.";
}

export function post(address, value, signal) {
  return fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
    signal,
  });
}

/** Make a box of a question as high as its text. */
export function fitBox(box) {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
}

/** Let a box grow with its text; Enter sends it, Shift+Enter begins a new line. */
export function growBox(box) {
  fitBox(box);
  window.addEventListener("resize", () => fitBox(box));
  box.addEventListener("input", () => fitBox(box));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    box.form.requestSubmit();
  });
}
