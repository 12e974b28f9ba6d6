// A finished study: its verdict, and its items one by one.

import { ask } from "./api.js";
import { chip, choice, digits, el, interval, intervalChart, percent, problem, py, shell, table, tools } from "./draw.js";
import * as state from "./state.js";

const COPIES = { 0: "", 1: "copy of a training text", 2: "near copy of a training text" };

async function pick(main) {
  const { rows } = await ask("library");
  const studies = rows.filter((row) => row.kind === "study" && row.state === "finished");
  main.append(el("h1", {}, "Study"));
  if (!studies.length) main.append(el("p", {}, "No finished study here yet: ", el("code", {}, "fairtrial study --variants learned rope")));
  else main.append(el("ul", {}, studies.map((row) => el("li", {}, el("a", { href: state.address("study", { study: row.path }) }, row.path), ` – ${row.sentence || ""}`))));
}

function lead(told, task) {
  const facts = told.tasks[task];
  const sentences = told.sentences.filter((each) => !each.task || each.task === task).map((each) => each.text);
  const listed = (lines) => el("ul", { class: "sentences" }, lines.map((line) => el("li", {}, line)));
  const rows = facts.comparisons.map((row) => [row.variant, row.test_set, chip(row.verdict), `${digits(row.difference)}${interval(row.low, row.high)} ${row.unit}`, row.p_adjusted == null ? "–" : digits(row.p_adjusted), row.items == null ? "" : `${row.seeds} seeds, ${row.items} items`]);
  return el("section", {},
    listed(sentences.slice(0, 6)),
    sentences.length > 6 ? el("details", {}, el("summary", {}, `${sentences.length - 6} more sentences`), listed(sentences.slice(6))) : null,
    table(["variant", "test set", "verdict", `difference from ${told.baseline}, 95%`, "p, corrected", "from"], rows, { label: "Verdicts", class: "cards" }));
}

export async function show(main) {
  const study = state.get("study");
  if (!study) return void (await pick(main));
  const told = await ask("study", { study });
  const task = told.tasks[state.get("task")] ? state.get("task") : Object.keys(told.tasks)[0];
  const facts = told.tasks[task];
  const other = facts.variants.find((name) => name !== told.baseline) || told.baseline;
  const first = Object.keys(facts.sets)[0];
  const chosen = {
    task, variant: state.get("variant", other), against: state.get("against", told.baseline), set: state.get("set", first),
  };
  const asked = () => ({ study, ...chosen });
  const trial = (variant, seed) => `${study === "." ? "" : `${study}/`}trials/${task}/${variant}/seed-${seed}`;
  const place = (name) => el("div", { class: name });
  const compared = place("compared");

  const keep = (name) => (value) => {
    chosen[name] = value;
    state.set({ [name]: value });
    if (name === "task") { state.set({ variant: "", set: "" }); state.flush(); window.dispatchEvent(new PopStateEvent("popstate")); return; }
    itemsFrom = 0;
    items();
  };

  // One chart for each test set and metric, as the verdict compares them.
  function compare() {
    const charts = Map.groupBy(facts.comparisons.filter((row) => row.difference != null), (row) => `${row.metric} on ${row.test_set}, ${row.subset} items`);
    compared.replaceChildren(...[...charts].map(([title, rows]) => el("figure", {}, el("figcaption", {}, `${title}: difference from ${told.baseline}, 95% intervals; dots are seeds; grey: smaller than of interest`),
      intervalChart(rows.map((row) => ({ name: row.variant, value: row.difference, low: row.low, high: row.high, dots: row.by_seed || [], kind: ["better", "worse"].includes(row.verdict) ? row.verdict : "none" })), { unit: rows[0].unit, label: title, zero: true, least: rows[0].margin || null }))));
  }

  let itemsFrom = 0;
  const order = { value: state.get("order", "either"), containing: state.get("containing") };
  let shownItems = [];
  const listed = place("listed");
  function answers(row, side) {
    if (row[side][0]?.nll != null) return el("span", { class: "small" }, row[side].map((each) => digits(each.nll)).join(", "), " nats per token");
    return el("span", { class: "dots" }, row[side].map((each) => el("span", { class: `dot ${each.right ? "" : "wrong"}`, }, el("span", { class: "soft" }, `seed ${each.seed}`), ` ${each.right ? "✓" : "✗"} ${each.answer}`)));
  }
  async function items() {
    try {
      const found = await ask("items", { ...asked(), order: order.value, containing: order.containing, offset: itemsFrom }, "items");
      if (!found) return;
      shownItems = found.rows;
      listed.replaceChildren(
        found.notice ? el("p", { class: "note" }, found.notice) : "",
        el("p", { class: "soft small", role: "status" }, found.count ? `${found.count} items; ${found.offset + 1} to ${found.offset + found.rows.length}. Difference: ${found.unit}.` : "No items."),
        ...found.rows.map((row) => el("article", { class: "item" },
          el("p", {}, el("b", {}, `${row.gain > 0 ? "+" : row.gain < 0 ? "−" : "±"}${digits(Math.abs(row.gain))} `), row.text ?? `item ${row.item}`),
          el("div", { class: "small" }, el("span", { class: "soft" }, `item ${row.item}${row.label ? `, label ${row.label}` : ""}${COPIES[row.copy] ? `, ${COPIES[row.copy]}` : ""}`)),
          el("div", { class: "small" }, `${chosen.variant}: `, answers(row, "variant")),
          el("div", { class: "small" }, `${chosen.against}: `, answers(row, "against")),
          row.text && row.text.length <= 1000 ? el("div", { class: "small" }, el("a", { href: state.address("playground", { a: trial(chosen.variant, row.variant[0].seed), b: trial(chosen.against, row.against[0].seed), text: row.text }) }, "read it in the playground")) : null)),
        el("div", { class: "bar" },
          el("button", { type: "button", disabled: found.offset === 0, onclick: () => { itemsFrom = Math.max(0, found.offset - 20); items(); } }, "Previous"),
          el("button", { type: "button", disabled: found.offset + found.rows.length >= found.count, onclick: () => { itemsFrom = found.offset + found.rows.length; items(); } }, "Next")));
    } catch (error) {
      listed.replaceChildren(problem(error));
    }
  }

  const tasks = Object.keys(told.tasks);
  main.append(el("h1", {}, told.name || study), lead(told, task),
    el("h2", {}, "Differences"),
    compared,
    el("h2", {}, "Items: where two variants differ"),
    el("div", { class: "bar controls" },
      tasks.length > 1 ? choice("Task", tasks, task, keep("task")) : null,
      choice("Variant", facts.variants, chosen.variant, keep("variant")),
      choice("Compared with", facts.variants, chosen.against, keep("against")),
      choice("Test set", Object.keys(facts.sets), chosen.set, keep("set"))),
    el("div", { class: "bar" },
      choice("Order", ["either", "variant better", "variant worse", "as in the file"], order.value, (value) => { order.value = value; itemsFrom = 0; state.set({ order: value }); items(); }),
      el("label", { class: "field" }, el("span", {}, "Containing"), el("input", { type: "search", value: order.containing, oninput: (event) => { order.containing = event.target.value; itemsFrom = 0; state.set({ containing: order.containing }); items(); } }))),
    listed,
    tools({
      name: "study",
      python: () => `import fairtrial as ft\n\nverdict = ft.verdict(${py(told.folder)})\nprint(verdict)\nverdict.plot()\n`,
      command: () => `fairtrial verdict ${shell(told.folder)}`,
      picture: () => compared.querySelector("svg"),
      rows: () => shownItems.map((row) => ({ item: row.item, text: row.text, label: row.label, gain: row.gain, variant: row.variant.map((each) => each.answer ?? each.nll).join(" | "), against: row.against.map((each) => each.answer ?? each.nll).join(" | ") })),
      all: () => ({ comparisons: facts.comparisons, items: shownItems }),
    }));
  const redraw = () => compare();
  window.addEventListener("themed", redraw);
  compare();
  await items();
  return () => window.removeEventListener("themed", redraw);
}
