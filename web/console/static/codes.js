// How many codes of a form there can be, as it is filled in. The server has the last word: others may have been made.

const hint = document.getElementById("capacity");
const allowed = JSON.parse(hint.dataset.allowed);
const number = new Intl.NumberFormat(document.documentElement.lang);
const [length, check, quantity] = ["length", "check_digit", "quantity"].map((name) => document.querySelector(`[name=${name}]`));

function tell() {
  const most = allowed[Number(length.value) - (check.checked ? 1 : 0)];
  const wanted = Number(quantity.value);
  hint.hidden = most === undefined;
  if (most === undefined) return;
  const text = most >= Number(hint.dataset.largest) ? hint.dataset.plenty : hint.dataset.most;
  hint.textContent = text.replace("{}", number.format(most));
  hint.classList.toggle("warn", wanted > most);
  hint.classList.toggle("good", wanted <= most);
}

for (const field of [length, check, quantity]) field.addEventListener("input", tell);
tell();
