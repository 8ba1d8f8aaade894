// A wheel turns to the prize that the server has drawn. A draw has the id that its form carries until it is answered: a
// lost answer, asked for again, tells of the same prize.

const TURNS = 5, TURN_MS = 3500, AGAIN_MS = 700;
const still = matchMedia("(prefers-reduced-motion: reduce)");

for (const form of document.querySelectorAll("form[data-turn]")) new Wheel(form);

function Wheel(form) {
  const place = form.closest("section");
  const disc = place.querySelector(".disc"), result = place.querySelector(".result");
  const button = form.querySelector("button"), left = place.querySelector(".left strong");
  let angle = 0, busy = false, newest = "";

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    // Not disabled: that would take the focus away from whoever turns it by keyboard.
    button.setAttribute("aria-disabled", "true");
    say(form.dataset.turning, "plain");
    const body = new URLSearchParams(new FormData(form));
    const answer = await ask(body);
    if (answer) await show(answer, body);
    else say(form.dataset.lost, "bad");
    button.removeAttribute("aria-disabled");
    busy = false;
  });

  async function ask(body) {
    try {
      const answer = await fetch(form.dataset.turn, { method: "POST", body, headers: { Accept: "application/json" } });
      if (answer.redirected) location.assign(answer.url);
      return answer.ok && !answer.redirected ? await answer.json() : null;
    } catch {
      return null;
    }
  }

  async function show(answer, body) {
    newest = answer.request_id;
    if (answer.stop !== null) {
      form.elements.request_id.value = answer.next;
      await turn(answer.stop);
    }
    say(answer.text, answer.tone);
    if (left && answer.left) left.textContent = answer.left;
    if (answer.waits) setTimeout(() => settle(body), AGAIN_MS);
    else if (answer.tone === "good") lookIntoWallet();
  }

  // The same draw again, until its coupon is there.
  async function settle(body) {
    const answer = await ask(body);
    if (!answer || answer.waits) {
      setTimeout(() => settle(body), AGAIN_MS);
      return;
    }
    if (answer.request_id === newest && !busy) say(answer.text, answer.tone);
    lookIntoWallet();
  }

  async function lookIntoWallet() {
    const answer = await fetch(form.dataset.wallet).catch(() => null);
    if (answer?.ok && !answer.redirected) document.getElementById("wallet").innerHTML = await answer.text();
  }

  async function turn(stop) {
    const from = angle, part = 360 / Number(form.dataset.parts);
    angle = (TURNS + Math.ceil(from / 360)) * 360 - (stop + 0.5) * part;
    disc.style.transform = `rotate(${angle}deg)`;
    if (still.matches) return;
    const steps = [{ transform: `rotate(${from}deg)` }, { transform: `rotate(${angle}deg)` }];
    const turning = disc.animate(steps, { duration: TURN_MS, easing: "cubic-bezier(.15,.7,.2,1)" });
    // A page that nobody looks at is not kept waiting by a picture.
    await Promise.race([turning.finished, new Promise((done) => { setTimeout(done, TURN_MS + 500); })]);
  }

  function say(text, tone) {
    result.textContent = text;
    result.className = `notice ${tone} result`;
  }
}
