// One campaign, second by second.

import { Chart } from "./chart.js";
import { Poll, troubleIn } from "./poll.js";

const SPAN_S = 300;
const NAMED = ["ACCEPTED", "SOLD_OUT", "LIMIT_REACHED", "DAILY_LIMIT_REACHED", "RATE_LIMITED"];

const root = document.getElementById("live");
const words = JSON.parse(root.dataset.words);
const outcomes = JSON.parse(root.dataset.outcomes);
const number = new Intl.NumberFormat(document.documentElement.lang);

const chartIn = (id, options) => new Chart(document.querySelector(`#${id} .plot`), { spanS: SPAN_S, ...options });
const charts = {
  claims: chartIn("claims", { stacked: true }),
  stock: chartIn("stock", {}),
  queue: chartIn("queue", {}),
  age: chartIn("age", { unit: " s" }),
  latency: chartIn("latency", { unit: " ms" }),
};

// Everything by second of the epoch; what is older than the span is forgotten.
const kept = {
  outcomes: Object.fromEntries([...NAMED, "other"].map((name) => [name, new Map()])),
  codes: new Map(),
  stock: new Map(), queue: new Map(), age: new Map(), median: new Map(), p99: new Map(),
};
let last = 0;

const poll = new Poll(() => `${root.dataset.address}?after=${last}`, 1000, (answer) => {
  for (const [second, counts] of Object.entries(answer.seconds)) {
    for (const [code, count] of Object.entries(counts)) {
      const values = kept.outcomes[NAMED.includes(code) ? code : "other"];
      values.set(+second, (values.get(+second) ?? 0) + count);
      kept.codes.set(`${second}:${code}`, [code, count]);
    }
  }
  for (const { second, median_ms, p99_ms } of answer.latency) {
    kept.median.set(second, median_ms);
    kept.p99.set(second, p99_ms);
  }
  if (!last) drainBackwards(answer);
  kept.stock.set(answer.now, answer.remaining);
  kept.queue.set(answer.now, answer.queued);
  kept.age.set(answer.now, answer.queued ? answer.oldest_ms / 1000 : 0);
  last = answer.now;
  forget(last - SPAN_S);
  show(answer);
}, troubleIn(document.getElementById("trouble")));

const hold = document.getElementById("hold");
hold.addEventListener("click", () => {
  const held = hold.getAttribute("aria-pressed") !== "true";
  hold.setAttribute("aria-pressed", held);
  poll.hold(held);
});

// What was left before the page was opened: what is left now, and what was taken since.
function drainBackwards(answer) {
  let left = answer.remaining;
  for (let second = answer.now; second > answer.now - SPAN_S; second--) {
    kept.stock.set(second, Math.min(left, answer.total));
    left += kept.outcomes.ACCEPTED.get(second) ?? 0;
  }
}

function forget(before) {
  for (const values of [...Object.values(kept.outcomes), kept.stock, kept.queue, kept.age, kept.median, kept.p99]) {
    for (const second of values.keys()) if (second <= before) values.delete(second);
  }
  for (const name of kept.codes.keys()) if (+name.split(":")[0] <= before) kept.codes.delete(name);
}

const recent = (values, seconds = 5) => {
  let sum = 0;
  for (let second = last - seconds + 1; second <= last; second++) sum += values.get(second) ?? 0;
  return sum / seconds;
};
const newest = (values) => (values.size ? values.get(Math.max(...values.keys())) : null);
const rate = (value) => number.format(Math.round(value * 10) / 10);

function show(answer) {
  const accepted = recent(kept.outcomes.ACCEPTED);
  const others = [...NAMED.slice(1), "other"].reduce((sum, name) => sum + recent(kept.outcomes[name]), 0);
  const p99 = newest(kept.p99);
  tell("accepted", rate(accepted));
  tell("refused", rate(others));
  tell("left", number.format(answer.remaining));
  tell("queued", number.format(answer.queued));
  tell("oldest", answer.queued ? `${number.format(answer.oldest_ms)} ms` : "—");
  tell("p99", p99 === null ? "—" : `${number.format(p99)} ms`);
  tell("status", answer.status_word);
  document.getElementById("cold").hidden = answer.warmed || !["active", "scheduled"].includes(answer.status);
  const line = (name, values, color = "s1") => [{ name, color, values }];
  const stacks = [...NAMED, "other"].map((name, place) => (
    { name: outcomes[name] ?? words.other, color: `s${place + 1}`, values: kept.outcomes[name] }));
  charts.claims.draw(stacks, last, `${words.accepted} ${rate(accepted)}/s, ${words.refused} ${rate(others)}/s`);
  charts.stock.top = answer.total;
  charts.stock.draw(line(words.left, kept.stock), last, `${words.left} ${number.format(answer.remaining)}`);
  charts.queue.draw(line(words.queued, kept.queue), last, `${words.queued} ${number.format(answer.queued)}`);
  charts.age.draw(line(words.oldest, kept.age, "s2"), last, `${words.oldest} ${number.format(answer.oldest_ms)} ms`);
  charts.latency.draw([...line(words.median, kept.median, "s3"), ...line("p99", kept.p99, "s2")], last,
    `p99 ${p99 === null ? "—" : `${number.format(p99)} ms`}`);
  tellCodes();
}

function tell(name, text) {
  const place = root.querySelector(`[data-is="${name}"]`);
  if (place.textContent !== text) place.textContent = text;
}

function tellCodes() {
  const sums = new Map();
  for (const [code, count] of kept.codes.values()) sums.set(code, (sums.get(code) ?? 0) + count);
  const list = document.getElementById("codes");
  const rows = [...sums].sort((one, other) => other[1] - one[1]).map(([code, count]) => {
    const place = NAMED.indexOf(code);
    const item = document.createElement("li");
    const mark = document.createElement("i");
    mark.className = `mark s${place < 0 ? 6 : place + 1}`;
    const value = document.createElement("b");
    value.textContent = number.format(count);
    item.append(mark, `${outcomes[code] ?? code} `, value);
    return item;
  });
  list.replaceChildren(...rows);
  document.getElementById("quiet").hidden = rows.length > 0;
}
