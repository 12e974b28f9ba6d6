// Type a text and watch one or two networks read it.

import { ask, stop } from "./api.js";
import { bars, colour, digits, el, field, percent, problem, py, renew, shell, tools } from "./draw.js";
import { attention, unpack } from "./maps.js";
import * as state from "./state.js";

const SENTENCE = "My fellow Americans, tonight the state of our union is strong.";

function picker(side, models, onChange) {
  const chosen = state.get(side);
  const select = el("select", { "aria-label": `Model ${side.toUpperCase()}` });
  if (side === "b") select.append(el("option", { value: "" }, "none"));
  const groups = new Map();
  for (const model of models) {
    if (!groups.has(model.group)) groups.set(model.group, el("optgroup", { label: model.group }));
    groups.get(model.group).append(el("option", { value: model.path, selected: model.path === chosen }, model.path));
  }
  select.append(...groups.values());
  const untrained = el("input", { type: "checkbox", checked: state.get(`${side}0`) === "1" });
  const told = () => {
    state.set({ [side]: select.value, [`${side}0`]: untrained.checked ? "1" : "" });
    onChange();
  };
  select.addEventListener("change", told);
  untrained.addEventListener("change", told);
  return { select, untrained, node: el("div", { class: "bar" }, field(`Model ${side.toUpperCase()}`, select), el("label", {}, untrained, "untrained")) };
}

// How surprising each token is: the deeper its shade, the less expected.
function surprisal(answer, most) {
  const tint = colour("tint");
  const told = el("p", { role: "status", class: "small" }, answer.counting ? `Point at a token. ${answer.counting[0].toUpperCase()}${answer.counting.slice(1)}.` : "");
  const strip = el("div", { class: "strip surprisal", role: "group", "aria-label": "Surprisal of each token" }, answer.tokens.map((token, at) => {
    const button = el("button", { type: "button", class: token.unknown ? "unknown" : "" }, token.written.trim() || token.word);
    if (token.nll != null) button.style.backgroundColor = `rgba(${tint}, ${Math.min(0.62, token.nll / 16)})`;
    const tell = () => {
      told.textContent = token.nll == null ? `“${token.word}” has no context and is not counted.`
        : `“${token.word}”: ${digits(token.nll)} nats, probability ${percent(Math.exp(-token.nll), 2)}`;
    };
    for (const kind of ["pointerenter", "focus", "click"]) button.addEventListener(kind, tell);
    return button;
  }));
  const next = answer.next.slice(0, 12).map((row) => [row.word, row.probability, percent(row.probability)]);
  return el("div", {}, el("h3", {}, "Surprisal"), strip, told, el("p", { class: "perplexity" }, `Perplexity ${digits(answer.perplexity)}.`), el("h3", {}, "Next word"), bars(next, most));
}

function classes(answer) {
  const rows = answer.labels.map((label, at) => [label, answer.shares[at], percent(answer.shares[at])]);
  return el("div", {}, el("h3", {}, "Classes"), bars(rows));
}

export async function show(main) {
  const { models } = await ask("models");
  if (!models.length) {
    main.append(el("h1", {}, "Playground"), el("p", {}, "No finished record here yet. Train one, and it appears: ", el("code", {}, "fairtrial train lm")));
    return undefined;
  }
  const strange = ["a", "b"].map((side) => state.get(side)).find((path) => path && !models.some((model) => model.path === path));
  if (strange) main.append(problem({ message: `${strange} is not here, or not finished`, hint: "choose another model" }));
  if (!state.get("a") || strange === state.get("a")) state.set({ a: models[0].path });
  if (strange === state.get("b")) state.set({ b: "" });
  state.flush();
  const text = el("textarea", { "aria-label": "Text", spellcheck: "false" });
  text.value = state.get("text", SENTENCE);
  const panes = el("div", { class: "two" });
  const shown = {}; // side -> answer and its maps
  const pickers = { a: picker("a", models, () => start("a")), b: picker("b", models, () => start("b")) };

  function start(side) {
    panes.querySelector(`[data-side=${side}]`)?.remove();
    delete shown[side];
    stop(`read-${side}`);
    if (!pickers[side].select.value) return;
    const place = el("section", { class: "card", "data-side": side, "aria-label": `Model ${side.toUpperCase()}` }, el("h2", {}, pickers[side].select.value.replaceAll("/", "/\u200b") + (pickers[side].untrained.checked ? ", untrained" : "")), el("div", { class: "answer" }, "Reading …"));
    side === "a" ? panes.prepend(place) : panes.append(place);
    shown[side] = { place };
    read(side);
  }

  async function read(side) {
    const mine = shown[side];
    const asked = { model: pickers[side].select.value, untrained: pickers[side].untrained.checked, text: text.value };
    try {
      const told = await ask("read", asked, `read-${side}`);
      if (!told || shown[side] !== mine) return;
      mine.told = told;
      const scale = likeliest();
      mine.unpacked = unpack(told.maps);
      for (const other of Object.keys(shown)) if (other === side || (shown[other].told?.task === "lm" && shown[other].scale !== scale)) {
        shown[other].scale = scale;
        draw(other);
      }
    } catch (error) {
      mine.place.querySelector(".answer").replaceChildren(problem(error));
    }
  }

  // One scale for both sides, so that their bars can be compared.
  const likeliest = () => Math.max(...Object.values(shown).map(({ told }) => told?.answer?.next?.[0]?.probability || 0));

  function draw(side) {
    const mine = shown[side];
    const { told } = mine;
    mine.maps = attention(mine.unpacked, {
      chosen: state.get("head", "0.0").split(".").map(Number),
      onChoose: (layer, head) => state.set({ head: `${layer}.${head}` }),
    });
    const answer = !told.answer || !Object.keys(told.answer).length ? null : told.task === "lm" ? surprisal(told.answer, likeliest()) : classes(told.answer);
    const notes = told.notices.map((note) => el("p", { class: "note" }, note));
    renew(mine.place.querySelector(".answer"), ...[...notes, el("h3", {}, "Attention"), mine.maps.node, answer].filter(Boolean));
  }

  text.addEventListener("input", () => {
    state.set({ text: text.value });
    for (const side of Object.keys(shown)) read(side);
  });
  const redraw = () => Object.keys(shown).forEach((side) => shown[side].told && draw(side));
  window.addEventListener("themed", redraw);
  main.append(el("h1", {}, "Playground"), el("div", { class: "bar" }, pickers.a.node, pickers.b.node), text, panes,
    tools({
      name: "reading",
      python: () => Object.keys(shown).map((side) => {
        const { told } = shown[side];
        const question = told?.task === "classify" ? "print(run.predict(text))" : "print(run.surprisal(text))";
        return `import fairtrial as ft\n\ntext = ${py(text.value)}\nrun = ft.load(${py(told?.folder)})\n${question}\nrun.attention(text).plot()\n`;
      }).join("\n"),
      command: () => Object.values(shown).map(({ told }) => `fairtrial look ${shell(told.folder)} ${shell(text.value)}`).join("\n"),
      picture: () => shown.a?.maps?.picture(),
      rows: () => Object.keys(shown).flatMap((side) => shown[side].maps.rows().map((row) => ({ model: pickers[side].select.value, ...row }))),
      all: () => Object.fromEntries(Object.keys(shown).map((side) => [pickers[side].select.value, { ...shown[side].told, maps: shown[side].maps.rows() }])),
    }));
  start("a");
  start("b");
  return () => window.removeEventListener("themed", redraw);
}
