// All records and studies of the folder; what runs moves.

import { ask } from "./api.js";
import { chip, digits, el, interval, percent, scrolling, shell, tools, py } from "./draw.js";
import * as state from "./state.js";

const HEADS = ["name", "task", "parts", "data", "seeds", "result", "leak audit", "changed"];

function result(row) {
  if (row.state === "damaged") return el("span", {}, chip("damaged"), " ", row.problem);
  if (row.headlines) return el("span", {}, row.headlines.flatMap((each, at) => [at ? el("br") : null, chip(each.verdict), ` ${each.variant}, ${each.test_set}: ${digits(each.difference)}${interval(each.low, each.high)} ${each.unit}`]));
  if (row.headline) {
    const { metric, value, low, high, set } = row.headline;
    const form = metric === "accuracy" ? percent : digits;
    return `${metric.replaceAll("_", " ")} ${form(value)}${interval(low, high, form)} on ${set}`;
  }
  if (row.state === "running" || row.state === "unfinished") {
    const done = row.kind === "study" ? `${row.done} of ${row.total ?? "?"} trials` : `step ${row.step}${row.steps ? ` of ${row.steps}` : ""}`;
    const share = row.kind === "study" ? row.done / row.total : row.step / row.steps;
    return el("div", {}, chip(row.state), ` ${done}`,
      Number.isFinite(share) ? el("progress", { max: 1, value: share, "aria-label": `done of ${row.path}` }) : null);
  }
  return "";
}

function link(row) {
  const where = state.address("playground", { a: row.kind !== "study" ? row.path : row.path === "." ? row.first : `${row.path}/${row.first}` });
  const open = row.state === "finished";
  const name = open ? el("a", { href: where }, row.path) : row.path;
  return el("div", {}, name, el("div", { class: "soft small" }, row.kind, row.sentence ? `: ${row.sentence}` : ""));
}

function line(row) {
  const when = row.changed ? new Date(1000 * row.changed).toLocaleString("sv").slice(0, 16) : "";
  const cells = [link(row), row.task, row.parts, row.data, row.seeds, result(row), row.passport ? chip(row.passport) : "", when];
  return el("tr", {}, cells.map((cell, at) => el("td", { "data-name": at ? HEADS[at] : null, class: at === 0 || at === 5 ? "wide" : at > 6 ? "whole" : "" }, cell ?? "")));
}

export async function show(main) {
  const rows = new Map();
  const drawn = new Map(); // path -> the row's element and what it shows
  const filter = el("input", { type: "search", value: state.get("filter"), placeholder: "task, part, data, name …", "aria-label": "Filter by typing" });
  const count = el("p", { class: "soft", role: "status" });
  const body = el("tbody");
  const matches = (row) => filter.value.toLowerCase().split(/\s+/).every((word) => JSON.stringify(row).toLowerCase().includes(word));
  const visible = () => [...rows.values()].filter(matches).sort((one, two) => (two.changed || 0) - (one.changed || 0));

  function draw() {
    const found = visible();
    body.replaceChildren(...found.map((row) => {
      const before = drawn.get(row.path);
      if (before && before.row === row) return before.node;
      const node = line(row);
      drawn.set(row.path, { row, node });
      return node;
    }));
    const running = found.filter((row) => row.state === "running").length;
    count.textContent = `${found.length} of ${rows.size} records and studies${running ? `, ${running} running` : ""}`;
  }

  function take(told) {
    const paths = new Set(told.rows.map((row) => row.path));
    const changed = told.rows.filter((row) => JSON.stringify(rows.get(row.path)) !== JSON.stringify(row));
    const gone = [...rows.keys()].filter((path) => !paths.has(path));
    for (const row of changed) rows.set(row.path, row);
    for (const path of gone) rows.delete(path);
    if (changed.length || gone.length) draw();
  }

  filter.addEventListener("input", () => {
    state.set({ filter: filter.value });
    draw();
  });
  const redraw = () => {
    drawn.clear();
    draw();
  };
  window.addEventListener("themed", redraw);
  const first = await ask("library");
  main.append(
    el("h1", {}, "Records and studies"),
    el("p", { class: "soft" }, "In ", el("code", {}, first.folder), ". Intervals are 95%: of a record over test items, of a study over seeds and items."),
    el("div", { class: "bar" }, filter),
    count,
    scrolling("Records and studies", el("table", { class: "cards" }, el("thead", {}, el("tr", {}, HEADS.map((name) => el("th", { scope: "col" }, name)))), body)),
    tools({
      name: "library",
      python: () => `import fairtrial as ft\n\nexplorer = ft.explore(${py(first.folder)})\n`,
      command: () => `fairtrial show ${shell(first.folder)}`,
      rows: visible,
      all: visible,
    }),
  );
  take(first);
  if (!rows.size) count.textContent = "Nothing here yet: train something with `fairtrial train` or `fairtrial study`, and it appears.";
  const timer = setInterval(() => ask("library", {}, "library").then((told) => told && take(told), () => {}), 1500);
  return () => {
    clearInterval(timer);
    window.removeEventListener("themed", redraw);
  };
}
