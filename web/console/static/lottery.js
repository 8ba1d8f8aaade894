// The newest draws of a lottery move; whoever is at one of them is not interrupted.

const root = document.getElementById("moving");
const feed = document.getElementById("feed");
let shown = "";

root.addEventListener("answer", ({ detail }) => {
  if (!feed || !detail.rows || detail.rows === shown || feed.contains(document.activeElement)) return;
  shown = detail.rows;
  const body = feed.querySelector("tbody");
  body.innerHTML = detail.rows;
  const titles = [...feed.querySelectorAll("thead th")].map((cell) => cell.textContent);
  for (const row of body.rows) {
    [...row.cells].forEach((cell, place) => {
      cell.dataset.label = titles[place];
      if (cell.tagName !== "TD") return;
      const box = document.createElement("div");
      box.append(...cell.childNodes);
      cell.append(box);
    });
  }
  feed.hidden = !body.rows.length;
  document.getElementById("no-draws")?.toggleAttribute("hidden", body.rows.length > 0);
});
