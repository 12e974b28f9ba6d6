// Elements, charts, and what every view offers beside them: copies of its question, its picture and its numbers.
// All text goes in as text: nothing that a record or a person wrote is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}
export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// New children; what had the focus has it again, if it is still there.
export function renew(place, ...children) {
  const focus = place.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
  place.replaceChildren(...children);
  if (focus) place.querySelector(`[aria-label="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export function problem(error) {
  const hint = error.hint ? [el("br"), error.hint] : [];
  return el("div", { class: "problem", role: "alert" }, el("b", {}, error.message || String(error)), ...hint);
}

let quiet = 0;
export function say(text) {
  const said = document.getElementById("said");
  said.textContent = text;
  said.classList.add("on");
  clearTimeout(quiet);
  quiet = setTimeout(() => said.classList.remove("on"), 1600);
}

// Numbers as people read them: three or four telling digits.
export function digits(value, places = 3) {
  if (value == null || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size < 1e-4) return value.toExponential(1);
  return size < 0.1 ? value.toPrecision(Math.max(1, places - 1)) : value.toFixed(size >= 100 ? 1 : Math.min(2, places - 1));
}
export const percent = (share, places = 1) => (share == null ? "–" : `${(100 * share).toFixed(share > 0 && share < 0.0005 ? places + 2 : places)}%`);
export const interval = (low, high, form = digits) => (low == null || high == null ? "" : ` [${form(low)}, ${form(high)}]`);
export function field(name, control) {
  return el("label", { class: "field" }, el("span", {}, name), control);
}

export function slider(name, { min, max, step, value, show = (number) => number }, onInput) {
  const told = el("output", {}, String(show(value)));
  const range = el("input", { type: "range", min, max, step, value, "aria-label": name });
  range.addEventListener("input", () => {
    told.textContent = String(show(Number(range.value)));
    onInput(Number(range.value));
  });
  return el("label", { class: "field" }, el("span", {}, `${name}: `, told), range);
}

export function options(values, chosen) {
  return values.map((value) => {
    const [key, text] = Array.isArray(value) ? value : [value, value];
    return el("option", { value: key, selected: key === chosen }, text);
  });
}

export function choice(name, values, chosen, onChange) {
  const select = el("select", {}, options(values, chosen));
  select.addEventListener("change", () => onChange(select.value));
  return field(name, select);
}

// What may be wider than the screen: it scrolls by itself, with the keyboard too.
export const scrolling = (label, node) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, node);

// On a phone a row is a card, and each cell says what it is.

export function chip(kind, text) {
  return el("span", { class: `chip ${String(kind).replace(/[^a-z_]/g, "")}` }, text ?? String(kind).replaceAll("_", " "));
}

// Shares as bars; `most` is what a whole bar is worth.
export function bars(rows, most = 1) {
  return el("div", { class: "bars" }, rows.flatMap(([word, value, told]) => [
    el("span", { class: "word" }, word),
    el("progress", { max: Math.max(most, 1e-9), value, "aria-label": word }),
    el("span", {}, told ?? percent(value)),
  ]));
}

// Cells of one or more boxes of a picture, to be pointed at with mouse, finger or arrow keys. `tell(box, row, column)`.
export function cells(drawn, boxes, tell) {
  for (const [name, value] of Object.entries({ tabindex: "0", role: "application" })) drawn.setAttribute(name, value);
  const cursor = svg("rect", { fill: "none", stroke: colour("worse"), "stroke-width": 2, visibility: "hidden", "pointer-events": "none" });
  drawn.append(cursor);
  let place = [0, 0, 0];
  const within = (value, count) => Math.max(0, Math.min(count - 1, value));
  function point(at, row, column) {
    const box = boxes[at];
    place = [at, within(row, box.rows), within(column, box.columns)];
    const [width, height] = [box.width / box.columns, box.height / box.rows];
    const where = { x: box.x + place[2] * width, y: box.y + place[1] * height, width, height, visibility: "visible" };
    for (const [name, value] of Object.entries(where)) cursor.setAttribute(name, value);
    tell(...place);
  }
  drawn.addEventListener("pointermove", (event) => {
    const seen = drawn.getBoundingClientRect();
    const unit = Number(drawn.getAttribute("viewBox").split(" ")[2]) / seen.width;
    const [x, y] = [(event.clientX - seen.left) * unit, (event.clientY - seen.top) * unit];
    const at = boxes.findIndex((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height);
    if (at >= 0) point(at, Math.floor(((y - boxes[at].y) / boxes[at].height) * boxes[at].rows), Math.floor(((x - boxes[at].x) / boxes[at].width) * boxes[at].columns));
  });
  drawn.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const [at, row, column] = place;
    const over = column + move[1] < 0 ? -1 : column + move[1] >= boxes[at].columns ? 1 : 0; // into the next box
    if (over && boxes[at + over]) point(at + over, row, over > 0 ? 0 : boxes[at + over].columns - 1);
    else point(at, row + move[0], column + move[1]);
  });
}

// Small map on a canvas: `value(row, column)` is null (hidden) or 0 to 1.
export function heat(canvas, rows, columns, value, tint = colour("heat")) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const [red, green, blue] = tint.split(",").map(Number);
  const picture = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row += 1) for (let column = 0; column < columns; column += 1) {
    const share = value(row, column);
    const at = 4 * (row * columns + column);
    if (share == null) picture.data.set([128, 128, 128, 40], at);
    else picture.data.set([red, green, blue, Math.round(255 * Math.sqrt(Math.max(0, Math.min(1, share))))], at);
  }
  context.putImageData(picture, 0, 0);
}

// ---- what every view offers -------------------------------------------------------------------------------------

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    const box = el("textarea", {}, text);
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    say(done ? "Copied" : "Copying is not allowed here");
  }
}

function save(name, content, type) {
  const link = el("a", { href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  say(`Saved ${name}`);
}

export function csv(rows) {
  if (!rows.length) return "";
  const heads = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  // a cell that begins like a formula would be one in a spreadsheet
  const cell = (value) => {
    const text = value == null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [heads.map(cell), ...rows.map((row) => heads.map((name) => cell(row[name])))].map((line) => line.join(",")).join("\n") + "\n";
}

function source(picture) {
  const made = picture.cloneNode(true);
  const box = (picture.getAttribute("viewBox") || "0 0 640 400").split(" ").map(Number);
  made.setAttribute("xmlns", SVG);
  made.setAttribute("width", box[2]);
  made.setAttribute("height", box[3]);
  made.setAttribute("font-family", "system-ui, sans-serif");
  made.prepend(svg("rect", { x: box[0], y: box[1], width: box[2], height: box[3], fill: colour("paper") }));
  return { text: new XMLSerializer().serializeToString(made), width: box[2], height: box[3] };
}

function savePng(name, picture) {
  const { text, width, height } = source(picture);
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = el("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    canvas.toBlob((blob) => save(name, blob));
  });
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
}

// `about` answers when a button is pressed: name, python, command, picture() -> svg, rows() -> numbers, all() -> object.
export function tools(about) {
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  const made = [
    button("Copy link", () => copy(location.href)),
    about.python && button("Copy as Python", () => copy(about.python())),
    about.command && button("Copy as command", () => copy(about.command())),
    about.picture && button("Save SVG", () => about.picture() && save(`${about.name}.svg`, source(about.picture()).text, "image/svg+xml")),
    about.picture && button("Save PNG", () => about.picture() && savePng(`${about.name}.png`, about.picture())),
    about.rows && button("Save CSV", () => save(`${about.name}.csv`, csv(about.rows()), "text/csv")),
    about.all && button("Save JSON", () => save(`${about.name}.json`, JSON.stringify(about.all(), null, 1), "application/json")),
  ];
  return el("div", { class: "tools", role: "group", "aria-label": "Copy and save" }, made);
}

// Quoted for a shell, and for Python.
export const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'\\''`)}'`);
export const py = (value) => JSON.stringify(value).replace(/^true$/, "True").replace(/^false$/, "False").replace(/^null$/, "None");
