// The page Check: the result is taken out of the page that the server returns.

import { prepare } from "./answers.js";
import { announce, element, find } from "./dom.js";

const checkForm = find("#check");

if (checkForm) {
  checkForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = find("button", checkForm);
    const result = find("#result");
    button.disabled = true;
    result.replaceChildren(element("p", { className: "quiet busy", textContent: "Checking each sentence" }));
    announce("Checking", true);
    try {
      const reply = await fetch(checkForm.action, { method: "POST", body: new URLSearchParams(new FormData(checkForm)) });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const content = find("#result", page) || find("main", page);
      result.replaceChildren(...content.childNodes);
      prepare(result);
      result.scrollIntoView({ block: "start" });
      result.focus({ preventScroll: true });
      announce("Checked.", true);
    } catch {
      result.replaceChildren(element("p", { className: "warning", textContent: "The connection was lost; check again." }));
    }
    button.disabled = false;
  });
}
