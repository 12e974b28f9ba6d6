// A data set: copies between training and test side by side, drift, lengths, telling words; and the cleaned copy.

import { ask, listen } from "./api.js";
import { bars, chip, choice, el, intervalChart, percent, problem, py, shell, table, tools } from "./draw.js";
import * as state from "./state.js";

const marked = (pieces) => pieces.map(([text, shared]) => (shared ? el("mark", {}, text) : text));

export async function show(main) {
  const { sources } = await ask("sources");
  const source = sources.some((each) => each.source === state.get("source")) ? state.get("source") : sources[0].source;
  const tasks = sources.find((each) => each.source === source).tasks;
  const task = tasks.includes(state.get("task")) ? state.get("task") : tasks[0];
  const about = { source, task };
  let [offset, kind, set] = [0, state.get("kind", "all"), state.get("set")];
  let told = null;
  let rows = [];
  const summary = el("div", { role: "status" }, "Reading …");
  const listed = el("div");
  const go = (values) => state.go(state.address("data", { ...about, ...values }));

  async function pairs() {
    try {
      const found = await ask("pairs", { ...about, kind, offset, ...(set ? { set } : {}) }, "pairs");
      if (!found) return;
      rows = found.rows;
      listed.replaceChildren(
        el("div", { class: "bar" }, choice("Test set", found.sets, set || found.sets[0], (value) => { set = value; offset = 0; state.set({ set }); pairs(); }), choice("Copies", ["all", "exact", "near"], kind, (value) => { kind = value; offset = 0; state.set({ kind }); pairs(); })),
        el("p", { class: "soft small", role: "status" }, found.count ? `${found.count} test items; ${found.offset + 1} to ${found.offset + found.rows.length}. Marked: runs of three words that both have.` : "No such copies."),
        ...found.rows.map((row) => el("article", { class: "pair" },
          el("div", {}, el("div", { class: "soft small" }, chip("amber", row.kind), ` test ${row.test.where} ${row.test.label}${row.share ? `, ${percent(row.share, 0)} of the item` : ""}`), marked(row.test.pieces)),
          el("div", {}, el("div", { class: "soft small" }, `training ${row.train.where} ${row.train.label}`), marked(row.train.pieces)))),
        el("div", { class: "bar" }, el("button", { type: "button", disabled: !offset, onclick: () => { offset = Math.max(0, offset - 25); pairs(); } }, "Previous"), el("button", { type: "button", disabled: offset + found.rows.length >= found.count, onclick: () => { offset += 25; pairs(); } }, "Next")));
    } catch (error) {
      listed.replaceChildren(problem(error));
    }
  }

  function draw() {
    const bad = told.findings.filter((each) => each.verdict !== "PASS");
    const shown = (each) => [`${each.id} ${each.name}`, each.where, each.shown, chip(each.verdict === "RED" ? "red" : each.verdict === "AMBER" ? "amber" : each.verdict === "PASS" ? "pass" : "none", each.verdict.toLowerCase()), el("div", {}, each.meaning, ...(each.examples || []).map((line) => el("div", { class: "small soft" }, line)))];
    const sets = Object.entries(told.sets);
    const width = Math.max(...sets.map(([, each]) => each.lengths.length));
    const names = Array.from({ length: width }, (_, at) => (at ? `${2 ** at}–${2 ** (at + 1) - 1}` : "1"));
    const classes = [...new Set(sets.flatMap(([, each]) => Object.keys(each.classes)))];
    summary.replaceChildren(el("p", {}, chip(told.level), ` ${told.findings.length} checks, ${bad.length} to look at.`),
      ...told.notes.map((note) => el("p", { class: "note" }, note)),
      table(["check", "where", "measured", "verdict", "meaning"], bad.map(shown), { label: "Findings", class: "cards" }),
      el("details", {}, el("summary", {}, "Checks that passed"), table(["check", "where", "measured", "verdict", "meaning"], told.findings.filter((each) => each.verdict === "PASS").map(shown), { label: "Passed" })),
      ...telling(),
      el("h2", {}, "Sets"),
      el("div", { class: "three" }, sets.map(([name, each]) => el("figure", { class: "card" }, el("figcaption", {}, el("b", {}, name), `, ${each.documents.toLocaleString("en")} texts: how many words they have`), bars(names.map((words, at) => [words, (each.lengths[at] || 0) / each.documents])),
        classes.length ? el("div", {}, el("p", { class: "small soft" }, "Classes"), bars(classes.map((label) => [label, (each.classes[label] || 0) / each.documents]))) : null))));
  }

  // Words that tell a class: an interval chart without intervals, so that it can be saved as the view's picture.
  function telling() {
    const kinds = Object.entries(told.telling).filter(([, words]) => words.length);
    if (!kinds.length) return [];
    return [el("h2", {}, "Telling words"), el("p", { class: "soft small" }, "How much more likely a training text of the class has the word than one of the others (log-odds). Is that the task, or an artefact of how the data were made?"),
      el("div", { class: "three" }, kinds.map(([label, words], at) => el("figure", { class: "telling" }, el("figcaption", {}, el("b", {}, label)),
        intervalChart(words.map((row) => ({ name: `${row.word} (${row.own} : ${row.other})`, value: row.log_odds, kind: `v${at % 6}` })), { unit: "log-odds; (texts of the class : of others)", label: `Words that tell ${label}`, zero: true, row: 24, width: 420 }))))];
  }

  const cleaned = el("div", { role: "status" });
  async function clean(drop) {
    cleaned.replaceChildren("Writing …");
    try {
      const found = await ask("clean", { ...about, drop }, "clean");
      if (found) cleaned.replaceChildren(el("p", {}, "Written: ", el("code", {}, found.out)), table(["file", "texts", "kept"], Object.entries(found.files).map(([name, each]) => [name, each.documents, each.kept]), { label: "Cleaned files" }));
    } catch (error) {
      cleaned.replaceChildren(problem(error));
    }
  }

  main.append(el("h1", {}, "Data"),
    el("div", { class: "bar" }, choice("Source", sources.map((each) => each.source), source, (value) => go({ source: value, task: "" })), choice("For", tasks, task, (value) => go({ task: value }))),
    summary, el("h2", {}, "Copies between training and test"), listed,
    el("h2", {}, "A cleaned copy"), el("p", {}, "Written beside your records; the source is only read. ", el("button", { type: "button", onclick: () => clean("train") }, "Drop copies from training"), " ", el("button", { type: "button", onclick: () => clean("test") }, "Drop them from the test sets")), cleaned,
    tools({
      name: "data",
      python: () => `import fairtrial as ft\n\nprint(ft.audit_data(${py(source)}, task=${py(task)}))\nft.clean(${py(source)}, "cleaned")\n`,
      command: () => `fairtrial data audit --data ${shell(source)} --task ${shell(task)}\nfairtrial clean --data ${shell(source)} --out cleaned`,
      picture: () => summary.querySelector(".telling svg, svg"),
      rows: () => rows.map((row) => ({ kind: row.kind, test: row.test.pieces.map(([text]) => text).join(""), train: row.train.pieces.map(([text]) => text).join(""), test_at: row.test.where, train_at: row.train.where })),
      all: () => ({ findings: told?.findings, sets: told?.sets, telling: told?.telling, copies: rows }),
    }));
  try {
    await listen("audit", about, (event) => {
      if (event.status) summary.replaceChildren(`${event.status} …`);
      if (event.findings) { told = event; draw(); }
    }, "audit");
    await pairs();
  } catch (error) {
    summary.replaceChildren(problem(error));
  }
}
