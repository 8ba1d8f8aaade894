// The list of campaigns that run: its numbers move.

import { Poll, troubleIn } from "./poll.js";

const number = new Intl.NumberFormat(document.documentElement.lang);
const rows = new Map([...document.querySelectorAll("tr[data-id]")].map((row) => [row.dataset.id, row]));
const query = new URLSearchParams([...rows.keys()].map((id) => ["id", id]));

function fill(place, name, text) {
  const cell = place.querySelector(`[data-is="${name}"]`);
  if (cell && cell.textContent !== text) cell.textContent = text;
}

const age = (ms) => (ms < 1000 ? "" : ` · ${number.format(Math.floor(ms / 1000))} s`);

new Poll(() => `/console/data/live?${query}`, 1000, ({ templates, queues }) => {
  for (const template of templates) {
    const row = rows.get(template.id);
    fill(row, "accepted", number.format(template.accepted_rate));
    fill(row, "other", number.format(template.other_rate));
    fill(row, "queued", number.format(template.queued) + (template.queued ? age(template.oldest_ms) : ""));
    if (template.warmed) {
      fill(row, "left", number.format(template.remaining));
      row.querySelector("meter").value = template.remaining;
    }
  }
  const list = document.getElementById("queues");
  if (typeof queues === "string") {
    list.textContent = queues;
    return;
  }
  for (const queue of queues) {
    const card = list.querySelector(`[data-queue="${queue.name}"]`) ?? made(list, queue.name);
    fill(card, "depth", number.format(queue.depth) + age(queue.age_ms ?? 0));
    fill(card, "dead", queue.dead ? `${list.dataset.dead} ${number.format(queue.dead)}` : "");
  }
}, troubleIn(document.getElementById("trouble")));

function made(list, name) {
  const card = document.getElementById("queue-card").content.firstElementChild.cloneNode(true);
  card.dataset.queue = name;
  fill(card, "name", name);
  list.append(card);
  return card;
}
