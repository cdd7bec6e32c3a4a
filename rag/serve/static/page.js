// Asks questions, shows the passage of a citation, keeps threads. The server renders all HTML and escapes it, also that
// of stored answers; without this script the same addresses give whole pages.

import "./passages.js";
import "./thread.js";
import "./compare.js";
import "./check.js";
import "./actions.js";
import "./history.js";
import "./keys.js";
import { prepare } from "./answers.js";

prepare(document);
