// Questions to the server. A channel is one pane: its newer question ends the older one.

const waiting = new Map(); // channel -> AbortController

export class Problem extends Error {
  constructor(told) {
    super(told.what || "the explorer did not answer");
    this.hint = told.hint || "";
    this.kind = told.kind || "";
  }
}

function begin(channel) {
  waiting.get(channel)?.abort();
  const control = new AbortController();
  if (channel) waiting.set(channel, control);
  return control;
}

async function post(name, body, signal) {
  const headers = { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ what: "the explorer does not answer: has it been stopped?", hint: "start it again with: fairtrial explore" });
  }
  if (!answer.ok) throw new Problem(await answer.json().catch(() => ({})));
  return answer;
}

// The answer, or undefined where a newer question of the channel came first.
export async function ask(name, body = {}, channel = "") {
  const control = begin(channel);
  try {
    const answer = await post(name, body, control.signal);
    return await answer.json();
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    throw error;
  } finally {
    if (waiting.get(channel) === control) waiting.delete(channel);
  }
}

export function stop(channel) {
  waiting.get(channel)?.abort();
  waiting.delete(channel);
}

export function stopAll() {
  for (const channel of [...waiting.keys()]) stop(channel);
}
