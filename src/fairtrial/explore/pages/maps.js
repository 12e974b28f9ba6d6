// Attention maps: all layers and heads small, one large, and for each word whom it reads and who reads it.

import { cells, colour, el, heat, percent, svg } from "./draw.js";

function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// The maps of an answer, unpacked: weight(layer, head, query, key) is a share, null where the key is hidden.
export function unpack(packed) {
  const size = packed.words.length;
  const [weights, open] = [new Uint16Array(bytesOf(packed.weights).buffer), bytesOf(packed.open)];
  const at = (layer, head, query, key) => ((layer * packed.heads + head) * size + query) * size + key;
  const hidden = (layer, query, key) => !open[(layer * size + query) * size + key];
  return {
    ...packed,
    size,
    weight: (layer, head, query, key) => (hidden(layer, query, key) ? null : weights[at(layer, head, query, key)] / 65535),
  };
}

const shown = (word) => (word.trim() ? word : "␣");

// One large map, to be read with mouse, finger or arrow keys. `say` receives what a cell holds.
function largeMap(maps, layer, head, value, say, label) {
  const size = maps.size;
  const margin = Math.min(120, 14 + 7.6 * Math.max(...maps.words.map((word) => Math.min(14, word.length))));
  const cell = Math.max(8, Math.min(26, 460 / size));
  const side = cell * size;
  const points = Math.min(13, cell * 0.9);
  const canvas = el("canvas");
  heat(canvas, size, size, (query, key) => value(layer, head, query, key));
  const drawn = svg("svg", { viewBox: `0 0 ${margin + side + 4} ${margin + side + 4}`, class: "chart", "aria-label": `${label}: attention map, arrow keys move` });
  drawn.style.maxWidth = `min(${margin + side + 4}px, max(40vh, ${margin + 9 * size}px))`; // above the fold, unless the text is long
  const ink = colour("ink");
  drawn.append(svg("rect", { x: margin, y: margin, width: side, height: side, fill: "none", stroke: colour("line") }),
    svg("image", { href: canvas.toDataURL(), x: margin, y: margin, width: side, height: side, preserveAspectRatio: "none", style: null, "image-rendering": "pixelated" }));
  maps.words.forEach((word, at) => {
    const text = shown(word).length > 14 ? `${shown(word).slice(0, 13)}…` : shown(word);
    const middle = margin + (at + 0.5) * cell;
    drawn.append(svg("text", { x: margin - 5, y: middle + points / 3, "text-anchor": "end", "font-size": points, fill: ink }, text),
      svg("text", { transform: `translate(${middle + points / 3} ${margin - 5}) rotate(-90)`, "font-size": points, fill: ink }, text));
  });
  cells(drawn, [{ x: margin, y: margin, width: side, height: side, rows: size, columns: size }], (_, query, key) => say(layer, head, query, key));
  return drawn;
}

// Everything about one answer's maps. `chosen`: [layer, head].
export function attention(maps, { chosen, onChoose }) {
  let [layer, head] = chosen;
  layer = Math.min(layer, maps.layers - 1);
  head = Math.min(head, maps.heads - 1);
  const readout = el("p", { role: "status", class: "small" }, "Point at a cell, or at a word.");
  const large = el("figure", { class: "large" });
  const grid = el("div", { class: "maps" });
  if (maps.heads <= 4) grid.style.gridTemplateColumns = `repeat(${maps.heads}, minmax(0, 6rem))`; // a row for each layer
  const strip = el("div", { class: "strip", role: "group", "aria-label": "Words: whom each reads, who reads it" });

  function tell(at, from, query, key) {
    const weight = maps.weight(at, from, query, key);
    readout.textContent = `“${maps.words[query]}” (${query}) reads “${maps.words[key]}” (${key}): ${weight == null ? "hidden" : percent(weight)}`;
  }
  function word(at) {
    const given = maps.words.map((_, key) => maps.weight(layer, head, at, key));
    const got = maps.words.map((_, query) => maps.weight(layer, head, query, at));
    const best = (row) => row.map((share, place) => [share ?? 0, place]).sort((one, two) => two[0] - one[0]).slice(0, 4).filter(([share]) => share > 0.005)
      .map(([share, place]) => `“${maps.words[place]}” ${percent(share, 0)}`).join(", ") || "nothing";
    readout.textContent = `“${maps.words[at]}” in layer ${layer}, head ${head} reads ${best(given)}. It is read by ${best(got)}.`;
    const tint = colour("tint");
    [...strip.children].forEach((button, place) => {
      button.style.backgroundColor = given[place] ? `rgba(${tint}, ${Math.sqrt(given[place]) * 0.6})` : "";
      button.style.borderBottom = got[place] > 0.01 ? `${Math.max(1, Math.round(7 * got[place]))}px solid ${colour("worse")}` : "";
      button.classList.toggle("on", place === at);
    });
  }
  strip.append(...maps.words.map((text, at) => {
    const button = el("button", { type: "button", "data-at": at }, shown(text));
    for (const kind of ["pointerenter", "focus", "click"]) button.addEventListener(kind, () => word(at));
    return button;
  }));

  function choose(at, from) {
    [layer, head] = [at, from];
    onChoose?.(layer, head);
    draw();
  }
  function draw() {
    const name = `layer ${layer}, head ${head}`;
    const picture = largeMap(maps, layer, head, maps.weight, tell, name);
    const caption = `${name[0].toUpperCase()}${name.slice(1)}: ${maps.captions[layer][head]}. Queries go down, keys across; grey is hidden. The shade is the square root of the weight.`;
    large.replaceChildren(picture, el("figcaption", {}, caption, readout));
    for (const button of grid.querySelectorAll("button.map")) button.setAttribute("aria-pressed", String(button.dataset.head === `${layer}.${head}`));
    for (const button of strip.children) {
      button.style.backgroundColor = button.style.borderBottom = "";
      button.classList.remove("on");
    }
  }
  function small() {
    const cells = [];
    for (let at = 0; at < maps.layers; at += 1) for (let from = 0; from < maps.heads; from += 1) {
      const id = `${at}.${from}`;
      const canvas = el("canvas", { "aria-hidden": "true" });
      heat(canvas, maps.size, maps.size, (query, key) => maps.weight(at, from, query, key));
      const button = el("button", { type: "button", class: "map", "data-head": id, "aria-pressed": String(at === layer && from === head), "aria-label": `Show layer ${at}, head ${from}`, onclick: () => choose(at, from) }, canvas);
      cells.push(el("div", {}, button, el("span", { class: "effect" }, id)));
    }
    grid.replaceChildren(...cells);
  }
  small();
  draw();
  return {
    node: el("div", {}, strip, el("div", { class: "beside" }, grid, large)),
    picture: () => large.querySelector("svg"),
    rows() {
      const found = [];
      for (let at = 0; at < maps.layers; at += 1) for (let from = 0; from < maps.heads; from += 1)
        for (let query = 0; query < maps.size; query += 1) for (let key = 0; key < maps.size; key += 1) {
          const weight = maps.weight(at, from, query, key);
          if (weight != null) found.push({ layer: at, head: from, query, key, from: maps.words[query], to: maps.words[key], weight });
        }
      return found;
    },
  };
}
