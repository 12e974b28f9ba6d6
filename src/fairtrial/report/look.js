// Draws the maps that stand in this page as numbers. Asks no network.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
let chosen = { text: 0, head: 0, cell: null };

function bytes(coded) {
  return Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0));
}

const texts = data.texts.map(({ words, trained, untrained, open }) => {
  const size = words.length, cells = size * size, wide = Math.ceil(cells / 8);
  const shares = (coded) => { const raw = bytes(coded); return new Uint16Array(raw.buffer, 0, raw.length / 2); };
  const bits = bytes(open);
  return {
    words, size,
    maps: { before: shares(untrained), after: shares(trained) },
    // null: hidden
    at(which, head, query, key) {
      const cell = query * size + key;
      if (!((bits[head * wide + (cell >> 3)] >> (7 - (cell & 7))) & 1)) return null;
      return this.maps[which][head * cells + cell] / 65535;
    },
  };
});

function colours() {
  return dark.matches && !printing
    ? { ramp: [[24, 29, 36], [36, 92, 158], [176, 218, 255]], ground: "#2a2f37", stroke: "#5a6470", ink: "#e7eaee", mark: "#ffb45e" }
    : { ramp: [[247, 251, 255], [88, 161, 207], [8, 48, 107]], ground: "#efefef", stroke: "#b5b5b5", ink: "#1c1f24", mark: "#c2410c" };
}

function shade(share, { ramp }) {
  const part = 2 * Math.sqrt(share), stop = part < 1 ? 0 : 1, to = ramp[stop + 1];
  return `rgb(${ramp[stop].map((from, at) => Math.round(from + (to[at] - from) * (part - stop))).join(",")})`;
}

function hatched(context, { ground, stroke }) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.fillStyle = ground;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = stroke;
  pen.beginPath();
  for (const from of [-6, 0, 6]) { pen.moveTo(from, 6); pen.lineTo(from + 6, 0); }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

function shown(word) {
  if (word.trim() === "") return word.replace(/ /g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥") || "∅";
  const bare = word.trim();
  return bare.length > 14 ? bare.slice(0, 13) + "…" : bare;
}

function paint(context, text, which, head, cell, left, top) {
  const look = colours();
  context.fillStyle = hatched(context, look);
  context.fillRect(left, top, cell * text.size, cell * text.size);
  for (let query = 0; query < text.size; query++) {
    for (let key = 0; key < text.size; key++) {
      const share = text.at(which, head, query, key);
      if (share === null) continue;
      context.fillStyle = shade(share, look);
      context.fillRect(left + key * cell, top + query * cell, cell, cell);
    }
  }
}

const places = {};  // where the large maps' cells stand, for the pointer

function drawLarge(which) {
  const canvas = byId(which), text = texts[chosen.text], look = colours();
  const room = Math.min(canvas.closest("figure").clientWidth, 620);
  const type = 12, labels = text.words.map(shown);
  const pen = canvas.getContext("2d");
  pen.font = `${type}px system-ui, sans-serif`;
  const margin = Math.ceil(Math.max(...labels.map((word) => pen.measureText(word).width))) + 8;
  const cell = Math.max(13, Math.min(28, Math.floor((room - margin - 2) / text.size)));
  const side = margin + cell * text.size + 2, ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.height = side * ratio;
  canvas.style.width = canvas.style.height = `${side}px`;
  canvas.style.touchAction = side <= room ? "pan-y" : "auto";  // a finger that moves across a map reads it, unless the map itself has to move
  pen.scale(ratio, ratio);
  paint(pen, text, which, chosen.head, cell, margin, 0);
  pen.font = `${type}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const mark = chosen.cell;
  labels.forEach((word, place) => {
    const middle = place * cell + cell / 2;
    pen.fillStyle = mark && mark[0] === place ? look.mark : look.ink;
    pen.fillText(word, margin - 5, middle);
    pen.save();
    pen.translate(margin + middle, cell * text.size + 5);
    pen.rotate(-Math.PI / 2);
    pen.fillStyle = mark && mark[1] === place ? look.mark : look.ink;
    pen.fillText(word, 0, 0);
    pen.restore();
  });
  if (mark) {
    pen.strokeStyle = look.mark;
    pen.lineWidth = 2;
    pen.strokeRect(margin + mark[1] * cell, mark[0] * cell, cell, cell);
  }
  places[which] = { margin, cell };
  const { layer, head, caption } = data.heads[chosen.head];
  canvas.setAttribute("aria-label", `Attention map of layer ${layer}, head ${head}, ${which === "after" ? "trained: " + caption : data.stage}.`
    + " Arrow keys read its cells.");
}

function drawSmall() {
  const text = texts[chosen.text];
  document.querySelectorAll("#grid canvas").forEach((canvas) => {
    const cell = Math.max(2, Math.round(140 / text.size)) * (window.devicePixelRatio > 1 ? 2 : 1);
    canvas.width = canvas.height = cell * text.size;
    paint(canvas.getContext("2d"), text, canvas.dataset.which, Number(canvas.dataset.head), cell, 0, 0);
  });
}

function drawLegend() {
  const look = colours(), scale = byId("scale").getContext("2d"), hatch = byId("hatch")?.getContext("2d");
  for (let at = 0; at < 160; at++) {
    scale.fillStyle = shade(at / 159, look);
    scale.fillRect(at, 0, 1, 14);
  }
  if (!hatch) return;
  hatch.fillStyle = hatched(hatch, look);
  hatch.fillRect(0, 0, 28, 14);
}

function percent(share) {
  return share >= 0.0995 ? `${(100 * share).toFixed(0)}%` : `${(100 * share).toFixed(1)}%`;
}

function read() {
  const text = texts[chosen.text];
  if (!chosen.cell) {
    byId("readout").textContent = "Point at a cell, or tap it, to read it.";
    return;
  }
  const [query, key] = chosen.cell;
  const after = text.at("after", chosen.head, query, key), before = text.at("before", chosen.head, query, key);
  const pair = `“${shown(text.words[query])}” (${query}) at “${shown(text.words[key])}” (${key})`;
  byId("readout").textContent = after === null
    ? `${pair}: hidden` : `${pair}: ${percent(after)} trained, ${percent(before)} ${data.stage}`;
}

function drawAll() {
  if (!texts.length || !data.heads.length) return;
  const { layer, head, caption } = data.heads[chosen.head];
  byId("which").textContent = `Layer ${layer}, head ${head}: ${caption}`;
  drawLarge("before");
  drawLarge("after");
  read();
}

function build() {
  data.heads.forEach(({ layer, head, caption }, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML = "<b></b><span></span><div class=maps><div><i></i><canvas data-which=before></canvas></div>"
      + "<div>trained<canvas data-which=after></canvas></div></div>";
    button.querySelector("b").textContent = `Layer ${layer}, head ${head}`;
    button.querySelector("span").textContent = caption;
    button.querySelector("i").textContent = data.stage;
    button.querySelectorAll("canvas").forEach((canvas) => { canvas.dataset.head = place; });
    button.addEventListener("click", () => {
      chosen.head = place;
      press();
      drawAll();
      byId("which").scrollIntoView({ block: "nearest", behavior: "smooth" });
    });
    byId("grid").append(button);
  });
}

function press() {
  document.querySelectorAll("#grid button").forEach((button, place) => button.setAttribute("aria-pressed", place === chosen.head));
}

function point(which, event) {
  const { margin, cell } = places[which], text = texts[chosen.text];
  const box = byId(which).getBoundingClientRect();
  const key = Math.floor((event.clientX - box.left - margin) / cell), query = Math.floor((event.clientY - box.top) / cell);
  if (key < 0 || query < 0 || key >= text.size || query >= text.size) return;
  if (chosen.cell && chosen.cell[0] === query && chosen.cell[1] === key) return;
  chosen.cell = [query, key];
  drawAll();
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

for (const which of ["before", "after"]) {
  byId(which).addEventListener("pointermove", (event) => point(which, event));
  byId(which).addEventListener("pointerdown", (event) => point(which, event));
  byId(which).addEventListener("keydown", (event) => {
    const step = STEPS[event.key], last = texts[chosen.text].size - 1;
    if (!step) return;
    event.preventDefault();
    const [query, key] = chosen.cell || [0, 0];
    chosen.cell = [query + step[0], key + step[1]].map((place) => Math.max(0, Math.min(last, place)));
    drawAll();
  });
}
byId("choose")?.addEventListener("change", (event) => {
  chosen = { text: Number(event.target.value), head: chosen.head, cell: null };
  document.querySelectorAll(".drawn").forEach((part, place) => { part.hidden = place !== chosen.text; });
  drawAll();
  drawSmall();
});
function again() { drawAll(); drawSmall(); drawLegend(); }
dark.addEventListener("change", again);
addEventListener("beforeprint", () => { printing = true; again(); });
addEventListener("afterprint", () => { printing = false; again(); });
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawAll(); } });
build();
press();
again();
