// A template's form in steps, and what it would do beside it. Without this script it is one long form with a button.

const form = document.getElementById("wizard");
const steps = [...form.querySelectorAll("fieldset[data-step]")];
const preview = document.querySelector("#preview > div");

// Fields of other kinds are out of sight.
function suit() {
  const kind = form.elements.type.value, mode = form.elements.validity_mode.value;
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind);
  for (const part of form.querySelectorAll("[data-for-validity]")) part.hidden = part.dataset.forValidity !== mode;
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
  if (step.querySelector("[aria-invalid]")) tab.classList.add("bad");
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
for (const link of document.querySelectorAll(".notice a[href^='#f-']")) {
  link.addEventListener("click", (event) => {
    const field = document.querySelector(link.getAttribute("href"));
    if (!field) return;
    event.preventDefault();
    go(steps.indexOf(field.closest("fieldset")), false);
    field.focus();
  });
}

// The preview follows the form, a moment after the last key.
let timer, asked = 0;
async function look() {
  const question = ++asked;
  try {
    const answer = await fetch(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (answer.ok && question === asked) preview.innerHTML = await answer.text();
  } catch { /* the next key asks again */ }
}
form.addEventListener("input", () => {
  suit();
  clearTimeout(timer);
  timer = setTimeout(look, 400);
});

suit();
const wrong = steps.findIndex((step) => step.querySelector("[aria-invalid]"));
go(Math.max(wrong, 0), false);
look();
