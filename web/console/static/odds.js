// The odds editor: what each weight means, whether all of them add up, and what a user will see. The server has the last
// word; without this script the form's buttons do the same.

import { Preview } from "./preview.js";

const form = document.getElementById("lottery");
const rows = document.getElementById("rows");
const told = document.getElementById("sum");
const restOdds = document.getElementById("rest-odds");
const part = document.querySelector("#preview > div");  // not where a lottery is changed
const preview = part && new Preview(form, part, (all) => all && preview.reveal());
const whole = Number(form.dataset.whole);
const number = new Intl.NumberFormat(document.documentElement.lang);
const percent = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 4 });
let next = rows.children.length;

const weightField = (row) => row.querySelector("[name$='.weight']");
const odds = (weight) => `${percent.format(weight / (whole / 100))}%`;

// A whole number from 0 to a million, commas forgiven as the server forgives none: null for anything else.
function weightOf(row) {
  const text = weightField(row).value.trim();
  if (text === "") return 0;
  return /^[0-9]{1,7}$/.test(text) && Number(text) <= whole ? Number(text) : null;
}

function tell() {
  let sum = 0, unread = null;
  for (const row of rows.children) {
    const weight = weightOf(row);
    weightField(row).setAttribute("aria-invalid", weight === null);
    row.querySelector("[data-odds]").textContent = weight === null ? "—" : odds(weight);
    if (weight === null) unread ??= row;
    sum += weight ?? 0;
  }
  const rest = whole - sum, fills = form.elements.rest?.checked && rest > 0;
  if (restOdds) restOdds.textContent = odds(fills ? rest : 0);
  const words = form.dataset;
  const text = unread ? words.unread : !rest ? words.exact : fills ? words.filled : rest > 0 ? words.missing : words.many;
  const message = text.replace("{}", number.format(Math.abs(rest)));
  if (told.textContent !== message) told.textContent = message;
  const fine = !unread && (!rest || fills);
  told.className = `notice ${fine ? "good" : "bad"}`;
  return fine ? null : weightField(unread ?? rows.firstElementChild);
}

// Another row, and away with one; the last one stays.
function arrange() {
  if (preview) [...rows.children].forEach((row, place) => {
    for (const mark of row.querySelectorAll("[data-no]")) mark.textContent = place + 1;
    if (!row.querySelector("[data-remove]")) {
      const remove = Object.assign(document.createElement("button"), { type: "button", textContent: form.dataset.remove });
      remove.dataset.remove = "";
      const mark = row.querySelector("label .hidden").cloneNode(true);
      remove.append(mark);
      row.append(remove);
      remove.addEventListener("click", () => take(row));
    }
    row.querySelector("[data-remove]").hidden = rows.children.length === 1;
  });
  tell();
}

function take(row) {
  const after = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  arrange();
  after.querySelector("input").focus();
  changed();
}

document.getElementById("another")?.addEventListener("click", (event) => {
  event.preventDefault();
  const made = document.createElement("div");
  made.innerHTML = document.getElementById("row").innerHTML.replaceAll("__n__", next++);
  rows.append(...made.children);
  arrange();
  rows.lastElementChild.querySelector("input").focus();
});

// What does not add up is not sent.
form.addEventListener("submit", (event) => {
  if (event.submitter?.value === "look") return;
  const wrong = tell();
  if (!wrong) return;
  event.preventDefault();
  told.setAttribute("role", "alert");
  wrong.focus();
});

function changed() {
  preview?.follow();
}
form.addEventListener("input", () => {
  tell();
  changed();
});

arrange();
preview?.ask(false);
