// Something that goes on for a while: its bar and its numbers move; once its status has changed the page is loaded
// again, since other things may be done with it then.

import { Poll, troubleIn } from "./poll.js";

const root = document.getElementById("moving");
const badge = document.querySelector("[data-stands]");
const bar = root.querySelector(".bar");  // not everything has one

const poll = new Poll(() => root.dataset.address, 1000, (answer) => {
  for (const [name, text] of Object.entries(answer.texts)) {
    for (const place of document.querySelectorAll(`[data-is="${name}"]`)) {
      if (place.textContent !== text) place.textContent = text;
    }
  }
  for (const [name, { from, width }] of Object.entries(answer.parts)) {
    const part = bar?.querySelector(`[data-part="${name}"]`);
    part?.setAttribute("x", `${from}%`);
    part?.setAttribute("width", `${width}%`);
  }
  bar?.setAttribute("aria-label", `${bar.dataset.label} ${answer.texts.percent}`);
  root.dispatchEvent(new CustomEvent("answer", { detail: answer }));
  if (answer.stands !== badge.dataset.stands) stand(answer);
  else if (answer.over) poll.hold(true);
}, troubleIn(document.getElementById("trouble")));

// Whoever is about to confirm something is not interrupted.
function stand(answer) {
  badge.textContent = answer.status_word;
  badge.className = `badge ${answer.tone}`;
  if (document.querySelector("details.confirm[open]")) document.getElementById("changed").hidden = false;
  else location.replace(location.pathname);
}
