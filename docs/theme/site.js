const up = document.currentScript.dataset.up;
const root = document.documentElement;
const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
root.dataset.theme = stored() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

// Every word must begin a word of the section; words of headings count more.
function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const score = (entry, word) => (` ${entry[1]} `.toLowerCase().includes(` ${word}`) ? 6 : 0) + (` ${entry[2]}`.toLowerCase().includes(` ${word}`) ? 4 : 0)
    + (` ${entry[3]}`.toLowerCase().includes(` ${word}`) ? 1 : 0) + (entry[3].toLowerCase().includes(word) ? 0.5 : 0);
  const ranked = INDEX.map((entry) => [words.map((word) => score(entry, word)), entry]).filter(([scores]) => scores.every((each) => each > 0));
  return ranked.sort((a, b) => sum(b[0]) - sum(a[0])).slice(0, 12).map(([, entry]) => entry);
}
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 60);
  return (at ? "… " : "") + text.slice(at, at + 160);
}

addEventListener("DOMContentLoaded", () => {
  const field = document.getElementById("search"), found = document.getElementById("found"), menu = document.getElementById("menu");
  if (matchMedia("(max-width: 56rem)").matches) menu.open = false;
  document.getElementById("theme").onclick = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a page that was opened as a file */ }
  };
  field.onfocus = () => {
    if (typeof INDEX !== "undefined" || document.getElementById("index")) return;
    document.head.append(Object.assign(document.createElement("script"), { id: "index", src: `${up}search_index.js`, onload: () => field.oninput() }));
  };
  field.oninput = () => {
    const text = field.value.trim();
    found.hidden = !text || typeof INDEX === "undefined";
    if (found.hidden) return;
    const entries = search(text);
    found.replaceChildren(...entries.map(([url, page, heading, words]) => {
      const link = Object.assign(document.createElement("a"), { href: up + url, textContent: page === heading ? page : `${page}: ${heading}` });
      link.append(Object.assign(document.createElement("span"), { textContent: excerpt(words, text.toLowerCase().split(/\s+/)[0]) }));
      return link;
    }));
    if (!entries.length) found.textContent = "Nothing was found.";
  };
  found.onclick = () => { found.hidden = true; };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") { field.value = ""; found.hidden = true; }
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
  });
  document.querySelectorAll("main pre").forEach((block) => {
    const button = Object.assign(document.createElement("button"), { className: "copy", type: "button", textContent: "copy" });
    button.onclick = () => navigator.clipboard.writeText(block.innerText.replace(/\ncopy$/, ""));
    block.append(button);
  });
});
