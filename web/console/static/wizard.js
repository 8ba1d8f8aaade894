// A template's form in steps, and what it would do beside it. Without this script it is one long form with a button.

import { Preview } from "./preview.js";

const form = document.getElementById("wizard");
const steps = [...form.querySelectorAll("fieldset[data-step]")];
const part = document.querySelector("#preview > div");

// Fields of other kinds are out of sight.
function suit() {
  const kind = form.elements.type.value, mode = form.elements.validity_mode.value;
  for (const each of form.querySelectorAll("[data-for]")) each.hidden = !each.dataset.for.split(" ").includes(kind);
  for (const each of form.querySelectorAll("[data-for-validity]")) each.hidden = each.dataset.forValidity !== mode;
}

// Steps: a list of them at the top, "Back" and "Next" below.
const list = document.createElement("ol");
list.className = "step-list";
const nav = document.createElement("nav");
nav.setAttribute("aria-label", form.dataset.steps);
nav.append(list);
form.prepend(nav);
const button = (text) => Object.assign(document.createElement("button"), { type: "button", textContent: text });
const tabs = steps.map((step, place) => {
  const item = document.createElement("li"), tab = button(step.dataset.step);
  tab.addEventListener("click", () => go(place, true));
  item.append(tab);
  list.append(item);
  return tab;
});
const actions = form.querySelector(".steps");
const back = button(form.dataset.back), next = button(form.dataset.next);
const save = actions.querySelector("[value='save']");
actions.prepend(back, next);
let now = 0;

function go(place, focus) {
  now = Math.min(Math.max(place, 0), steps.length - 1);
  steps.forEach((step, each) => { step.hidden = each !== now; });
  tabs.forEach((tab, each) => { each === now ? tab.setAttribute("aria-current", "step") : tab.removeAttribute("aria-current"); });
  back.disabled = now === 0;
  next.hidden = now === steps.length - 1;
  next.classList.toggle("main", !next.hidden);
  save.classList.toggle("main", next.hidden);
  if (focus) steps[now].querySelector("input:not([type=hidden]), select")?.focus();
}
back.addEventListener("click", () => go(now - 1, true));
next.addEventListener("click", () => go(now + 1, true));
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input") && now < steps.length - 1) {
    event.preventDefault();
    go(now + 1, true);
  }
});

// What is wrong leads to its field, on whichever step it is.
document.addEventListener("click", (event) => {
  const link = event.target.closest(".notice a[href^='#f-'], .faults a");
  const field = link && document.getElementById(link.getAttribute("href").slice(1));
  if (!field) return;
  event.preventDefault();
  go(steps.indexOf(field.closest("fieldset")), false);
  field.focus();
});

// What is wrong is told beside its field: of one that was changed and left; of all of them once the preview was asked for.
// A field that nobody has come to yet only stands in the preview's list; what the page came with stays until then.
const watched = new Set(), marked = new Set([...form.querySelectorAll("[aria-invalid]")].map((field) => field.name));
function mark(field, message) {
  const hint = document.getElementById(field.getAttribute("aria-describedby"));
  hint.querySelectorAll(".error").forEach((old) => old.remove());
  if (message) hint.prepend(Object.assign(document.createElement("strong"), { className: "error", textContent: message }));
  message ? field.setAttribute("aria-invalid", "true") : field.removeAttribute("aria-invalid");
  field.closest(".field").classList.toggle("wrong", Boolean(message));
}
function tell(all) {
  for (const fault of part.querySelectorAll(".faults li")) {
    const label = form.querySelector(`label[for="f-${fault.dataset.field}"]`);
    if (label) fault.querySelector("a").textContent = label.textContent.trim();
    if (all || marked.has(fault.dataset.field)) watched.add(fault.dataset.field);
  }
  for (const name of watched) {
    const field = document.getElementById(`f-${name}`);
    if (field?.form === form) mark(field, part.querySelector(`[data-field="${name}"] span`)?.textContent);
  }
  colour();
}
function colour() {
  steps.forEach((step, each) => tabs[each].classList.toggle("bad", Boolean(step.querySelector("[aria-invalid]"))));
}

const preview = new Preview(form, part, (all) => {
  tell(all);
  if (!all) return;
  const wrong = steps[now].querySelector("[aria-invalid]");
  wrong ? wrong.focus() : preview.reveal();
});
form.addEventListener("input", () => {
  suit();
  preview.follow();
});
form.addEventListener("change", (event) => {
  watched.add(event.target.name);
  preview.follow();
});

suit();
const wrong = steps.findIndex((step) => step.querySelector("[aria-invalid]"));
go(Math.max(wrong, 0), false);
colour();
preview.ask(false);
