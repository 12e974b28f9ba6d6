// Attention by construction: drag keys in the plane, say what attention should return, and see why it can or cannot.

import { ask } from "./api.js";
import { bars, chip, choice, colour, digits, el, percent, problem, py, slider, svg, tools } from "./draw.js";
import * as state from "./state.js";

const START = "0,1;0.95,0.3;0.6,-0.8;-0.6,-0.8;-0.95,0.3;0.1,0.05";
const [SIZE, REACH] = [480, 1.6]; // of the plane: pixels, and the greatest coordinate
const place = ([x, y]) => [SIZE / 2 + (x / REACH) * (SIZE / 2), SIZE / 2 - (y / REACH) * (SIZE / 2)];

// The convex hull of points in the plane (Andrew's monotone chain), anticlockwise.
export function hull(points) {
  const sorted = [...points].sort((one, two) => one[0] - two[0] || one[1] - two[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (row) => row.reduce((chain, point) => {
    while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
    chain.push(point);
    return chain;
  }, []);
  if (sorted.length < 3) return sorted;
  return [...half(sorted).slice(0, -1), ...half(sorted.reverse()).slice(0, -1)];
}

const along = (vector, times) => vector.map((value) => value * times);
const dot = (one, two) => one[0] * two[0] + one[1] * two[1];

// Why it can be done: a line through what is wanted, with all other keys behind it; or why it cannot: keys that are
// wanted and keys that are not, mixed in some proportions, meet in one point, and so do their scores for every query.
function certificate(answer, keys) {
  const { direction, lead, balance } = answer;
  const [soft, worse] = [colour("soft"), colour("worse")];
  if (balance) {
    const sides = [1, -1].map((sign) => keys.map((key, at) => [key, sign * balance[at]]).filter(([, share]) => share > 1e-9));
    const total = sides[0].reduce((sum, [, share]) => sum + share, 0);
    const meet = [0, 1].map((axis) => sides[0].reduce((sum, [key, share]) => sum + (key[axis] * share) / total, 0));
    const [x, y] = place(meet);
    const lines = sides.flatMap((side, at) => side.map(([key]) => svg("line", { x1: place(key)[0], y1: place(key)[1], x2: x, y2: y, stroke: worse, "stroke-width": 1.5, "stroke-dasharray": at ? "2 4" : null })));
    return [...lines, svg("path", { d: `M${x - 6} ${y - 6}l12 12m0 -12l-12 12`, stroke: worse, "stroke-width": 2.5 }), label(x + 9, y + 18, "they meet here", worse)];
  }
  if (!direction || Math.hypot(...direction) < 1e-9) return [];
  const front = Math.max(...keys.map((key) => dot(key, direction)));
  return [front, lead > 1e-9 ? front - lead : null].filter((offset) => offset != null).map((offset, at) => {
    const [from, to] = [-9, 9].map((far) => place([direction[0] * offset - direction[1] * far, direction[1] * offset + direction[0] * far]));
    return svg("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], stroke: soft, "stroke-dasharray": at ? "2 5" : "8 4" });
  });
}

// A text that is read on any ground.
const label = (x, y, text, tint, anchor = "start") => svg("text", { x, y, "font-size": 14, fill: tint, stroke: colour("paper"), "stroke-width": 4, "paint-order": "stroke", "text-anchor": anchor, "pointer-events": "none" }, text);

// The first sentences say why; numbers are there for those who want them.
function explained(sentences) {
  return [el("p", {}, sentences.slice(0, 2).join(" ")), el("details", {}, el("summary", {}, "All numbers"), ...sentences.slice(2).map((line) => el("p", {}, line)))];
}

function plane(main) {
  const keys = state.get("keys", START).split(";").map((pair) => pair.split(",").map(Number)).filter((pair) => pair.length === 2 && pair.every(Number.isFinite)).slice(0, 12);
  let asked = state.get("ask") === "average" ? "average" : "select";
  let wanted = state.list("wanted").map(Number).filter((at) => at < keys.length);
  if (!wanted.length) wanted = [0];
  if (asked === "select") wanted = wanted.slice(0, 1);
  let precision = state.number("precision", 0.99);
  let answer = null;
  const drawn = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "plane", role: "group", "aria-label": "Keys in the plane: drag them, or move the chosen one with arrow keys" });
  const told = el("div", { role: "status" });
  const weights = el("div");

  function draw() {
    const [ink, line, accent, worse] = ["ink", "line", "accent", "worse"].map(colour);
    const parts = [svg("line", { x1: 0, x2: SIZE, y1: SIZE / 2, y2: SIZE / 2, stroke: line }), svg("line", { y1: 0, y2: SIZE, x1: SIZE / 2, x2: SIZE / 2, stroke: line })];
    parts.push(svg("polygon", { points: hull(keys).map((key) => place(key).join(",")).join(" "), fill: accent, "fill-opacity": 0.08, stroke: accent, "stroke-opacity": 0.6 }));
    if (answer && answer.weights.length === keys.length) parts.push(...certificate(answer, keys));
    const focus = document.activeElement?.dataset?.key;
    keys.forEach((key, at) => {
      const [x, y] = place(key);
      const weight = answer?.weights?.[at] ?? 0;
      const size = 8 + 14 * Math.sqrt(weight);
      const side = x > SIZE - 80 ? -1 : 1; // of its label
      const node = svg("g", { class: "key", tabindex: "0", role: "button", "data-key": at, "aria-pressed": String(wanted.includes(at)), "aria-label": `Key ${at} at ${digits(key[0])}, ${digits(key[1])}; weight ${percent(weight)}${wanted.includes(at) ? ", wanted" : ""}. Enter chooses it, arrows move it` },
        svg("circle", { cx: x, cy: y, r: size, fill: accent, "fill-opacity": 0.15 + 0.7 * weight, stroke: wanted.includes(at) ? worse : ink, "stroke-width": wanted.includes(at) ? 3 : 1.2 }),
        label(x + side * (size + 3), y - 0.5 * size, `${at}: ${percent(weight, 0)}`, ink, side < 0 ? "end" : "start"));
      parts.push(node);
    });
    if (answer) { // above the keys, since it often ends in one
      const long = Math.hypot(...answer.query);
      const [x, y] = place(along(answer.query, Math.min(1.4, 0.35 * Math.log1p(long)) / (long || 1)));
      parts.push(...(long > 1e-6 ? [svg("line", { x1: SIZE / 2, y1: SIZE / 2, x2: x, y2: y, stroke: worse, "stroke-width": 3, "pointer-events": "none" }), svg("circle", { cx: x, cy: y, r: 5, fill: worse, "pointer-events": "none" })] : []),
        label(10, SIZE - 12, `query: length ${digits(long)}`, worse));
    }
    drawn.replaceChildren(...parts);
    if (focus != null) drawn.querySelector(`[data-key="${focus}"]`)?.focus({ preventScroll: true });
  }

  let busy = false;
  let again = false;
  async function solve() {
    if (busy) { again = true; return; } // the newest positions are asked for next; none in between
    busy = true;
    const parts = keys.map((_, at) => [wanted.includes(at) ? 1 : 0]);
    try {
      const found = await ask("solve", { ask: asked, keys, shares: parts, precision });
      if (found) {
        answer = found.answer;
        requestAnimationFrame(draw);
        weights.replaceChildren(bars(answer.weights.map((weight, at) => [`key ${at}`, weight, `${percent(weight)}, wanted ${percent(answer.wanted[at])}`])));
        const open = told.querySelector("details")?.open;
        told.replaceChildren(el("p", {}, chip(answer.possible ? "pass" : "red", answer.possible ? "possible" : "impossible")), ...explained(found.sentences));
        told.querySelector("details").open = open;
      }
    } catch (error) {
      told.replaceChildren(problem(error));
    }
    busy = false;
    if (again) { again = false; solve(); }
  }
  const keep = () => state.set({ keys: keys.map((key) => key.map((value) => Number(value.toFixed(3))).join(",")).join(";"), ask: asked, wanted: wanted.join(","), precision });
  function change() { keep(); requestAnimationFrame(draw); solve(); }
  function choose(at) {
    if (asked === "select") wanted = [at];
    else wanted = wanted.includes(at) ? wanted.filter((other) => other !== at) : [...wanted, at];
    if (!wanted.length) wanted = [at];
    change();
  }
  let held = null;
  let moved = false;
  drawn.addEventListener("pointerdown", (event) => {
    const key = event.target.closest("[data-key]");
    if (!key) return;
    held = Number(key.dataset.key);
    moved = false;
    drawn.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  drawn.addEventListener("pointermove", (event) => {
    if (held == null) return;
    const box = drawn.getBoundingClientRect();
    const bound = (value) => Math.max(-REACH, Math.min(REACH, value));
    keys[held] = [bound(((event.clientX - box.left) / box.width - 0.5) * 2 * REACH), bound((0.5 - (event.clientY - box.top) / box.height) * 2 * REACH)];
    moved = true;
    change();
  });
  drawn.addEventListener("pointerup", () => {
    if (held != null && !moved) choose(held);
    held = null;
  });
  drawn.addEventListener("keydown", (event) => {
    const at = Number(event.target.closest("[data-key]")?.dataset.key ?? NaN);
    const move = { ArrowUp: [0, 0.05], ArrowDown: [0, -0.05], ArrowLeft: [-0.05, 0], ArrowRight: [0.05, 0] }[event.key];
    if (Number.isNaN(at) || !(move || ["Enter", " "].includes(event.key))) return;
    event.preventDefault();
    if (!move) return void choose(at);
    keys[at] = [keys[at][0] + move[0], keys[at][1] + move[1]];
    change();
  });
  const asking = choice("Attention should", [["select", "select one key"], ["average", "average the chosen keys"]], asked, (value) => {
    [asked, wanted] = [value, value === "select" ? wanted.slice(0, 1) : wanted];
    change();
  });
  main.append(el("h2", {}, "Keys in the plane"),
    el("p", {}, "Attention weighs keys by the softmax of their scores with a query. Drag a key; click one, or press Enter on it, to choose what attention should return: the query that does it, or why no query can, follows."),
    el("div", { class: "bar" },
      asking,
      slider("Precision", { min: 0.6, max: 0.999, step: 0.001, value: precision }, (value) => { precision = value; change(); }),
      el("button", { type: "button", onclick: () => { if (keys.length < 12) { keys.push([0.3, 0.4]); change(); } } }, "Add a key"),
      el("button", { type: "button", onclick: () => { if (keys.length > 2) { keys.pop(); wanted = wanted.filter((at) => at < keys.length); if (!wanted.length) wanted = [0]; change(); } } }, "Remove the last")),
    el("div", { class: "two" }, el("figure", {}, drawn, el("figcaption", {}, "Circles are keys, their size the weight; ringed: wanted; shaded: the hull of the keys. Dashed: the wanted keys lie on the first line, all others behind the second. Crossed lines: mixed in these proportions, wanted and other keys meet, so that no query tells them apart.")), el("div", {}, told, weights)));
  draw();
  solve();
  return {
    draw, picture: () => drawn,
    rows: () => keys.map((key, at) => ({ key: at, x: key[0], y: key[1], weight: answer?.weights?.[at], wanted: answer?.wanted?.[at] })),
    all: () => answer,
    python: () => {
      const call = asked === "select" ? `puzzles.select(keys, ${wanted[0]}` : `puzzles.average(keys, ${py(wanted)}`;
      return `from fairtrial import puzzles\n\nkeys = ${py(keys)}\nanswer = ${call}, precision=${precision})\nprint(answer)\n`;
    },
    command: () => {
      const written = (name, rows) => `printf '${rows.map((row) => row.join(",")).join("\\n")}\\n' > ${name}\n`;
      return `${written("keys.csv", keys)}fairtrial puzzle ${asked} ${wanted.join(" ")} --keys keys.csv --precision ${precision}`;
    },
  };
}

export async function show(main) {
  main.append(el("h1", {}, "Puzzles"));
  const first = plane(main);
  main.append(tools({ name: "puzzle", ...first }));
  const redraw = () => first.draw();
  window.addEventListener("themed", redraw);
  return () => window.removeEventListener("themed", redraw);
}
