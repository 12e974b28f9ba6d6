// The shell: which view is shown, the theme, and how problems look. One view, one file, each with `show(main)`.

import { stopAll } from "./api.js";
import { el, problem, say } from "./draw.js";
import * as state from "./state.js";

const VIEWS = { library: "Library", playground: "Playground", parts: "Parts", puzzles: "Puzzles" };
const main = document.getElementById("main");
const nav = document.querySelector("nav");
let leave = null; // what a view does when another takes its place
let shown = 0;

function navigation() {
  const links = Object.keys(VIEWS).map((name) => {
    const link = el("a", { href: name === "library" ? "/" : `/${name}` }, VIEWS[name]);
    if (name === state.view()) link.setAttribute("aria-current", "page");
    return link;
  });
  nav.replaceChildren(...links);
}

async function show() {
  const turn = (shown += 1);
  leave?.();
  leave = null;
  stopAll();
  const name = VIEWS[state.view()] ? state.view() : "library";
  document.title = `${VIEWS[name]} – fairtrial explorer`;
  navigation();
  const place = el("div");
  main.replaceChildren(place);
  try {
    const module = await import(`./${name}.js`);
    const ended = await module.show(place);
    if (turn === shown) leave = ended ?? null;
    else ended?.();
  } catch (error) {
    place.append(problem(error));
  }
}

// Links between views change the address, not the page.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  state.go(link.getAttribute("href"));
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
window.addEventListener("popstate", show);
window.addEventListener("pagehide", state.flush);
window.addEventListener("unhandledrejection", (event) => {
  main.append(problem(event.reason));
});

// "/" goes to the first text of a view.
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName || "");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    const field = main.querySelector("input[type=search], textarea");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  }
});

const THEMES = ["system", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");
function theme(chosen, tell) {
  localStorage.setItem("theme", chosen);
  document.documentElement.dataset.theme = chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
  button.textContent = `Theme: ${chosen}`;
  window.dispatchEvent(new Event("themed"));
  if (tell) say(`Theme: ${chosen}`);
}
const chosen = () => (THEMES.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "system");
button.addEventListener("click", () => theme(THEMES[(THEMES.indexOf(chosen()) + 1) % 3], true));
dark.addEventListener("change", () => theme(chosen()));
theme(chosen());
show();
