// Attention by construction: drag keys in the plane, say what attention should return, and see why it can or cannot.

import { ask } from "./api.js";
import { bars, chip, choice, colour, digits, el, heat, percent, problem, py, shell, slider, svg, table, tools } from "./draw.js";
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

function plane(main) {
  const keys = state.get("keys", START).split(";").map((pair) => pair.split(",").map(Number)).filter((pair) => pair.length === 2 && pair.every(Number.isFinite)).slice(0, 12);
  let asked = state.get("ask", "select");
  let wanted = state.list("wanted").map(Number).filter((at) => at < keys.length);
  if (!wanted.length) wanted = [0];
  let precision = state.number("precision", 0.99);
  let answer = null;
  let fixed = null; // the query that stays, when a key is replaced
  let frames = 0;
  const drawn = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "plane", role: "group", "aria-label": "Keys in the plane: drag them, or move the chosen one with arrow keys" });
  const told = el("div", { role: "status" });
  const weights = el("div");

  function draw() {
    frames += 1;
    const [ink, soft, line, accent, worse] = ["ink", "soft", "line", "accent", "worse"].map(colour);
    const parts = [svg("line", { x1: 0, x2: SIZE, y1: SIZE / 2, y2: SIZE / 2, stroke: line }), svg("line", { y1: 0, y2: SIZE, x1: SIZE / 2, x2: SIZE / 2, stroke: line })];
    parts.push(svg("polygon", { points: hull(keys).map((key) => place(key).join(",")).join(" "), fill: accent, "fill-opacity": 0.08, stroke: accent, "stroke-opacity": 0.6 }));
    if (answer?.key) {
      const [x, y] = place(answer.key);
      parts.push(svg("circle", { cx: x, cy: y, r: 9, fill: "none", stroke: worse, "stroke-width": 2, "stroke-dasharray": "3 2" }), svg("text", { x: x + 12, y, "font-size": 13, fill: worse }, "new key"));
    }
    if (answer) {
      const [qx, qy] = answer.query;
      const long = Math.hypot(qx, qy) || 1;
      const size = Math.min(1.4, 0.35 * Math.log1p(long));
      const [x, y] = place([(qx / long) * size, (qy / long) * size]);
      if (long > 1e-6) parts.push(svg("line", { x1: SIZE / 2, y1: SIZE / 2, x2: x, y2: y, stroke: worse, "stroke-width": 3 }), svg("circle", { cx: x, cy: y, r: 5, fill: worse }), svg("text", { x: x + 8, y: y - 6, "font-size": 13, fill: worse }, `query, length ${digits(long)}`));
      if (answer.certificate?.balance) for (const at of answer.in_the_way) {
        const [px, py_] = place(keys[at]);
        parts.push(svg("circle", { cx: px, cy: py_, r: 19, fill: "none", stroke: worse, "stroke-dasharray": "4 3" }));
      }
    }
    const focus = document.activeElement?.dataset?.key;
    keys.forEach((key, at) => {
      const [x, y] = place(key);
      const weight = answer?.weights?.[at] ?? 0;
      const node = svg("g", { class: "key", tabindex: "0", role: "button", "data-key": at, "aria-pressed": String(wanted.includes(at)), "aria-label": `Key ${at} at ${digits(key[0])}, ${digits(key[1])}; weight ${percent(weight)}${wanted.includes(at) ? ", wanted" : ""}. Enter chooses it, arrows move it` },
        svg("circle", { cx: x, cy: y, r: 8 + 14 * Math.sqrt(weight), fill: accent, "fill-opacity": 0.15 + 0.7 * weight, stroke: wanted.includes(at) ? worse : ink, "stroke-width": wanted.includes(at) ? 3 : 1.2 }),
        svg("text", { x: x + 14, y: y - 12, "font-size": 14, fill: ink }, `${at}: ${percent(weight, 0)}`));
      parts.push(node);
    });
    parts.push(svg("text", { x: 8, y: SIZE - 8, "font-size": 12, fill: soft }, "circles: keys, their size: the weight; shaded: their hull"));
    drawn.replaceChildren(...parts);
    if (focus != null) drawn.querySelector(`[data-key="${focus}"]`)?.focus({ preventScroll: true });
  }

  let busy = false;
  let again = false;
  async function solve() {
    if (busy) { again = true; return; } // the newest positions are asked for next; none in between
    busy = true;
    const shares = keys.map((_, at) => [wanted.includes(at) ? (asked === "mix" ? wanted.length - wanted.indexOf(at) : 1) : 0]);
    const others = keys.map((_, at) => at).filter((at) => at !== wanted[0]);
    try {
      if (asked === "replace" && !fixed) fixed = (await ask("solve", { ask: "average", keys, shares: keys.map((_, at) => [others.slice(0, 2).includes(at) ? 1 : 0]), precision })).answer.query;
      const found = await ask("solve", { ask: asked, keys, shares, precision, ...(asked === "replace" ? { place: wanted[0], query: fixed.map((value) => [value]) } : {}) });
      if (found) {
        answer = found.answer;
        requestAnimationFrame(draw);
        weights.replaceChildren(bars(answer.weights.map((weight, at) => [`key ${at}`, weight, `${percent(weight)}, wanted ${percent(answer.wanted[at])}`])));
        told.replaceChildren(el("p", {}, chip(answer.possible ? "pass" : "red", answer.possible ? "possible" : "impossible")), el("pre", {}, found.lines.slice(2).join("\n")));
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
    if (asked === "select" || asked === "replace") wanted = [at];
    else wanted = wanted.includes(at) ? wanted.filter((other) => other !== at) : [...wanted, at];
    if (!wanted.length) wanted = [at];
    fixed = null;
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
  main.append(el("h2", {}, "Keys in the plane"),
    el("p", {}, "Drag a key; click one, or press Enter on it, to choose what attention should return."),
    el("div", { class: "bar" },
      choice("Attention should", [["select", "select one key"], ["average", "average the chosen keys"], ["mix", "mix them, the first most"], ["replace", "select a key by replacing it"]], asked, (value) => {
        asked = value;
        if (value === "select" || value === "replace") wanted = wanted.slice(0, 1);
        fixed = null;
        change();
      }),
      slider("Precision", { min: 0.6, max: 0.999, step: 0.001, value: precision }, (value) => { precision = value; change(); }),
      el("button", { type: "button", onclick: () => { if (keys.length < 12) { keys.push([0.3, 0.4]); change(); } } }, "Add a key"),
      el("button", { type: "button", onclick: () => { if (keys.length > 2) { keys.pop(); wanted = wanted.filter((at) => at < keys.length); if (!wanted.length) wanted = [0]; change(); } } }, "Remove the last")),
    el("div", { class: "two" }, el("div", {}, drawn), el("div", {}, weights, told)));
  draw();
  solve();
  return {
    draw, picture: () => drawn, keys, frames: () => frames,
    rows: () => keys.map((key, at) => ({ key: at, x: key[0], y: key[1], weight: answer?.weights?.[at], wanted: answer?.wanted?.[at] })),
    all: () => answer,
    python: () => {
      const call = asked === "select" ? `puzzles.select(keys, ${wanted[0]}` : asked === "average" ? `puzzles.average(keys, ${py(wanted)}` : asked === "mix" ? `puzzles.mix(keys, {${wanted.map((at, rank) => `${at}: ${(wanted.length - rank) / ((wanted.length * (wanted.length + 1)) / 2)}`).join(", ")}}` : `puzzles.replace_key(keys, ${wanted[0]}, puzzles.select_target(len(keys), ${wanted[0]}), ${py(fixed)}`;
      return `from fairtrial.apps import puzzles\n\nkeys = ${py(keys)}\nanswer = ${call}, precision=${precision})\nprint(answer.possible, answer.query, answer.weights)\n`;
    },
  };
}

async function tour(main) {
  const { questions } = await ask("course");
  const at = Math.min(5, Math.max(0, state.number("question", 1) - 1));
  const shown = el("div");
  function draw(number) {
    const each = questions[number];
    state.set({ question: number + 1 });
    shown.replaceChildren(el("h3", {}, `${each.question}. ${each.title}`), el("p", {}, each.lesson),
      ...each.answers.slice(0, 1).map((answer) => bars(answer.weights.map((weight, key) => [`key ${key}`, weight, `${percent(weight)}, wanted ${percent(answer.wanted[key])}`]))),
      el("pre", {}, each.lines.join("\n")), el("p", { class: "soft small" }, `Checked in real attention: precision ${digits(each.checked_precision, 5)}.`),
      el("div", { class: "bar" }, el("button", { type: "button", disabled: !number, onclick: () => draw(number - 1) }, "Previous question"), el("button", { type: "button", class: "main", disabled: number === 5, onclick: () => draw(number + 1) }, "Next question")));
  }
  main.append(el("h2", {}, "The course's six questions"), el("p", { class: "soft" }, "Four random keys of length 1 in three dimensions, scores not scaled."), shown);
  draw(at);
}

function byHand(main) {
  const words = el("input", { value: state.get("words", "the cat saw the dog and the cat"), size: 40, "aria-label": "Sequence" });
  let name = state.get("head", "induction");
  const shown = el("div", { role: "status" });
  async function draw() {
    state.set({ words: words.value, head: name });
    try {
      const told = await ask("head", { words: words.value, head: name }, "head");
      if (!told) return;
      const maps = told.maps.map((layer, at) => {
        const canvas = el("canvas", { role: "img", "aria-label": `Map of layer ${at}` });
        heat(canvas, layer.length, layer.length, (row, column) => (column > row ? null : layer[row][column]));
        return el("figure", {}, el("figcaption", {}, `layer ${at}: queries go down, keys across`), el("div", { class: "maps" }, el("div", {}, canvas)));
      });
      shown.replaceChildren(el("p", {}, told.story), el("div", { class: "three" }, maps),
        table(["word", "looks at", "says next"], told.words.map((word, at) => [word, `${told.words[told.right[at]]} (${told.right[at]})`, told.predicted[at]]), { label: "What the head does" }));
    } catch (error) {
      shown.replaceChildren(problem(error));
    }
  }
  words.addEventListener("input", draw);
  main.append(el("h2", {}, "Heads by hand"), el("div", { class: "bar" }, choice("Head", ["previous token", "first token", "same word before", "induction"], name, (value) => { name = value; draw(); }), el("label", { class: "field" }, el("span", {}, "Words, separated by blanks"), words)), shown);
  draw();
  return draw;
}

export async function show(main) {
  main.append(el("h1", {}, "Puzzles"));
  const first = plane(main);
  main.append(tools({ name: "puzzle", python: first.python, command: () => `fairtrial puzzle select 0 --keys keys.csv  # the numbers that Save CSV gives\nfairtrial puzzle course`, picture: first.picture, rows: first.rows, all: first.all }));
  const rest = byHand(main);
  await tour(main).catch((error) => main.append(problem(error)));
  const redraw = () => { first.draw(); rest(); };
  window.addEventListener("themed", redraw);
  return () => window.removeEventListener("themed", redraw);
}
