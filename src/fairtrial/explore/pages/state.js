// What a view shows is in its address: a link opens the same picture.

let later = 0;
const current = () => new URLSearchParams(location.search);

export const view = () => location.pathname.slice(1) || "library";
export const get = (name, fallback = "") => current().get(name) ?? fallback;
export const number = (name, fallback) => {
  const value = Number(current().get(name) ?? NaN);
  return Number.isFinite(value) ? value : fallback;
};
export const list = (name) => (current().get(name) || "").split(",").filter(Boolean);

export function address(view, values = {}) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value != null));
  return `/${view}${query.size ? `?${query}` : ""}`;
}

// Changes the address in place; typing does so a moment later, since browsers bound how often they let us.
export function set(values) {
  const query = { ...Object.fromEntries(current()), ...pending, ...values };
  pending = query;
  clearTimeout(later);
  later = setTimeout(flush, 150);
}

let pending = {};
export function flush() {
  clearTimeout(later);
  if (!Object.keys(pending).length) return;
  const where = address(view(), pending);
  pending = {};
  if (where !== location.pathname + location.search) history.replaceState(null, "", where);
}

export function go(where) {
  flush();
  history.pushState(null, "", where);
  window.dispatchEvent(new PopStateEvent("popstate"));
}
