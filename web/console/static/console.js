// What every page does by itself: it tells the server the reader's time zone, and keeps the menu as wide screens want it.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`cw_zone=${zone}`)) {
  document.cookie = `cw_zone=${zone}; path=/console; max-age=31536000; samesite=strict`;
}

const menu = document.getElementById("menu");
if (menu) {
  const wide = matchMedia("(min-width: 60rem)");
  const arrange = () => { menu.open = wide.matches; };
  wide.addEventListener("change", arrange);
  arrange();
  // Not by scrollIntoView: that would move the place from which Tab goes on.
  const side = menu.parentElement, shown = menu.querySelector("[aria-current]"), who = menu.querySelector(".who");
  if (wide.matches && shown) side.scrollTop = shown.offsetTop + 2 * shown.offsetHeight + who.offsetHeight - side.clientHeight;
}

// A narrow screen shows each row by itself, its cells with their columns' titles.
for (const table of document.querySelectorAll(".scroll > table")) {
  const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, position) => {
      if (titles[position]) cell.dataset.label = titles[position];
      else cell.classList.add("bare");
      if (cell.tagName === "TD") {
        const box = document.createElement("div");
        box.append(...cell.childNodes);
        cell.append(box);
      }
    });
  }
  table.classList.add("stack");
}

// One confirmation is open at a time, and Escape closes it.
document.addEventListener("toggle", (event) => {
  if (event.target.matches?.("details.confirm[open]")) {
    for (const other of document.querySelectorAll("details.confirm[open]")) {
      if (other !== event.target) other.open = false;
    }
    event.target.querySelector("textarea, form button")?.focus();
  }
}, true);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector("details.confirm[open]");
  if (open) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});

// What is wrong is told by the fields' labels.
for (const link of document.querySelectorAll(".notice a[href^='#f-']")) {
  const label = document.querySelector(`label[for="${CSS.escape(link.getAttribute("href").slice(1))}"]`);
  if (label) link.textContent = label.textContent.trim();
}

// After a form that was refused the focus is on the first field to mend, also where a step of it had to be opened first;
// or on the link that leads to a group of fields.
addEventListener("load", () => {
  const link = document.querySelector("main [role=alert] a[href^='#f-']");
  if (!link) return;
  ([...document.querySelectorAll("main [aria-invalid]")].find((field) => field.checkVisibility()) ?? link).focus();
});

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (event.target.dataset.sent) event.preventDefault();
  else event.target.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});
