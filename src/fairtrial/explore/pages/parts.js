// Every part, drawn with its options.

import { ask } from "./api.js";
import { cells, choice, colour, digits, el, field, heat, problem, py, renew, shell, slider, svg, tools } from "./draw.js";
import * as state from "./state.js";

// One picture of a part: panels that share a scale; null cells are hidden.
function picture(told) {
  const [low, high] = told.range;
  const columns = Math.max(...told.panels.map((panel) => panel.values[0].length));
  const rows = Math.max(...told.panels.map((panel) => panel.values.length));
  const side = Math.max(90, Math.min(230, 900 / told.panels.length));
  const [width, height] = [side, Math.max(18 * Math.min(rows, 4), Math.min(side, (side * rows) / columns))];
  const scale = `${told.rows ? `${told.rows} goes down, ` : ""}${told.columns} across; shades from ${digits(low)} to ${digits(high)}`;
  const wide = Math.max(told.panels.length * (width + 16) + 10, 6.6 * scale.length);
  const drawn = svg("svg", { viewBox: `0 0 ${wide} ${height + 44}`, class: "chart", "aria-label": `${told.what}, arrow keys move` });
  drawn.style.maxWidth = `${1.4 * wide}px`;
  told.panels.forEach((panel, at) => {
    const canvas = el("canvas");
    heat(canvas, panel.values.length, panel.values[0].length, (row, column) => {
      const value = panel.values[row][column];
      return value == null ? null : high > low ? ((value - low) / (high - low)) ** 2 : 0.25;
    });
    const x = 10 + at * (width + 16);
    drawn.append(svg("text", { x, y: 12, "font-size": 12, fill: colour("ink") }, panel.title),
      svg("image", { href: canvas.toDataURL(), x, y: 18, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated" }),
      svg("rect", { x, y: 18, width, height, fill: "none", stroke: colour("line") }));
  });
  drawn.append(svg("text", { x: 10, y: height + 36, "font-size": 12, fill: colour("soft") }, scale));
  const readout = el("p", { class: "small", role: "status" }, "Point at a cell, or move with arrow keys.");
  cells(drawn, told.panels.map((panel, at) => ({ x: 10 + at * (width + 16), y: 18, width, height, rows: panel.values.length, columns: panel.values[0].length })), (at, row, column) => {
    const value = told.panels[at].values[row][column];
    readout.textContent = `${told.panels[at].title ? `${told.panels[at].title}, ` : ""}${told.rows ? `${told.rows} ${row}, ` : ""}${told.columns} ${column}: ${value == null ? "hidden" : digits(value)}`;
  });
  return el("figure", {}, el("figcaption", {}, `${told.what[0].toUpperCase()}${told.what.slice(1)}`, told.how ? `. ${told.how}` : ""), drawn, readout);
}

const typed = (text) => (["true", "false"].includes(text) ? text === "true" : Number.isNaN(Number(text)) ? text : Number(text));

// An option is typed as on the command line; empty: as the part has it.
function control(name, usual, value, onInput) {
  return field(name, el("input", { value, placeholder: usual, size: 8, oninput: (event) => onInput(event.target.value.trim()) }));
}

export async function show(main) {
  const { parts } = await ask("parts");
  const name = parts.some((part) => part.name === state.get("part")) ? state.get("part") : "alibi";
  const part = parts.find((each) => each.name === name) || parts[0];
  const drawn = el("div", { class: "drawn" });
  const chosen = { heads: state.number("heads", 4), length: state.number("length", 24), decoder: state.get("in", part.hooks.includes("pool") ? "encoder" : "decoder") === "decoder" };
  const options = Object.fromEntries(Object.keys(part.options).map((key) => [key, state.get(`o_${key}`)]));
  let told = null;
  const changed = () => Object.fromEntries(Object.entries(options).filter(([, value]) => value));

  async function draw() {
    try {
      const found = await ask("draw", { part: part.name, ...chosen, options: changed() }, "draw");
      if (!found) return;
      told = found;
      renew(drawn, ...found.pictures.map(picture));
    } catch (error) {
      drawn.replaceChildren(problem(error));
    }
  }
  const set = (key, value) => {
    options[key] = value;
    state.set({ [`o_${key}`]: value });
    draw();
  };
  const groups = [...new Set(parts.map((each) => each.changes))];
  const select = el("select", { "aria-label": "Part" }, groups.map((group) => el("optgroup", { label: group }, parts.filter((each) => each.changes === group).map((each) => el("option", { value: each.name, selected: each.name === part.name }, each.name)))));
  select.addEventListener("change", () => state.go(state.address("parts", { part: select.value })));
  main.append(el("h1", {}, "Parts"),
    el("div", { class: "bar" }, field("Part", select),
      choice("In", ["decoder", "encoder"], chosen.decoder ? "decoder" : "encoder", (value) => { chosen.decoder = value === "decoder"; state.set({ in: value }); draw(); }),
      slider("Heads", { min: 1, max: 12, step: 1, value: chosen.heads }, (value) => { chosen.heads = value; state.set({ heads: value }); draw(); }),
      slider("Tokens", { min: 4, max: 64, step: 1, value: chosen.length }, (value) => { chosen.length = value; state.set({ length: value }); draw(); }),
      Object.entries(part.options).map(([key, usual]) => control(key, usual, options[key], (value) => set(key, value)))),
    el("p", {}, el("b", {}, part.name), `: ${part.line}.`),
    el("p", { class: "soft small" }, `Changes ${part.changes}. Hooks: ${part.hooks.join(", ") || "none"}. ${part.claims.length ? `Claims: ${part.claims.join(", ")}.` : ""} ${part.options_help}`),
    drawn, el("details", {}, el("summary", {}, "Definition"), el("pre", {}, part.definition)),
    tools({
      name: `part-${part.name}`,
      python: () => `import fairtrial as ft\n\npart = ft.catalogue(${py(part.name)})\npart.plot(heads=${chosen.heads}, length=${chosen.length}, encoder=${py(!chosen.decoder)}${Object.entries(changed()).map(([key, value]) => `, ${key}=${py(typed(value))}`).join("")})\nprint(ft.audit(${py(part.name)}))\n`,
      command: () => `fairtrial parts ${shell(part.name)} --figure ${shell(part.name)}.svg\nfairtrial audit ${shell(part.name)}`,
      picture: () => drawn.querySelector("svg"),
      rows: () => (told?.pictures || []).flatMap((each) => each.panels.flatMap((panel) => panel.values.flatMap((row, at) => row.map((value, column) => ({ picture: each.what, panel: panel.title, row: at, column, value }))))),
      all: () => ({ part, pictures: told?.pictures }),
    }));
  window.addEventListener("themed", draw);
  await draw();
  return () => window.removeEventListener("themed", draw);
}
