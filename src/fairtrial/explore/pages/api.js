// Questions to the server. A channel is one pane: its newer question ends the older one, here and on the server.

const tab = crypto.randomUUID().slice(0, 8);
const waiting = new Map(); // channel -> AbortController
let turn = 0; // of a question: they may reach the server in another order

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

async function post(name, body, channel, signal) {
  const headers = { "Content-Type": "application/json" };
  if (channel) Object.assign(headers, { "X-Channel": `${tab}-${channel}`, "X-Turn": String((turn += 1)) });
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
    const answer = await post(name, body, channel, control.signal);
    return await answer.json();
  } catch (error) {
    if (error.name === "AbortError" || error.kind === "Stale") return undefined;
    throw error;
  } finally {
    if (waiting.get(channel) === control) waiting.delete(channel);
  }
}

// Each event of a long answer as it comes; the promise ends with the last one. `stop(channel)` ends it early.
export async function listen(name, body, onEvent, channel) {
  const control = begin(channel);
  try {
    const answer = await post(name, body, channel, control.signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const event = JSON.parse(part.replace(/^data: /, ""));
        if (event && event.error) {
          if (event.error.kind === "Stale") return;
          throw new Problem(event.error);
        }
        onEvent(event);
      }
    }
  } catch (error) {
    if (error.name !== "AbortError") throw error;
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
