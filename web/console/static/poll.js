// Asks an address again and again, one question at a time, and not while nobody looks.

export class Poll {
  // take(answer) gets each answer; trouble(kind) "lost" or "out", or null once all is well again.
  constructor(address, everyMs, take, trouble) {
    Object.assign(this, { address, everyMs, take, trouble, held: false });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.#ask(); });
    this.#ask();
  }

  hold(held) {
    this.held = held;
    if (!held) this.#ask();
  }

  async #ask() {
    clearTimeout(this.timer);
    if (this.held || document.hidden || this.asking) return;
    this.asking = true;
    let over = false;
    try {
      const answer = await fetch(this.address(), { headers: { Accept: "application/json" } });
      if (answer.status === 401) {
        over = true;
        this.trouble("out");
      } else if (!answer.ok) {
        this.trouble("lost");
      } else {
        this.take(await answer.json());
        this.trouble(null);
      }
    } catch {
      this.trouble("lost");
    }
    this.asking = false;
    if (!over) this.timer = setTimeout(() => this.#ask(), this.everyMs);
  }
}

// Shows trouble in the element that has the words for it, and when it began.
export function troubleIn(place) {
  let told = null;
  return (kind) => {
    if (kind === told) return; // what has been told is not told again each second
    told = kind;
    place.hidden = kind === null;
    // What stands there is no longer so: it says since when, and looks it.
    document.querySelector("main").classList.toggle("stale", kind !== null);
    const since = new Date().toLocaleTimeString(document.documentElement.lang, { hour12: false });
    if (kind) place.textContent = kind === "lost" ? place.dataset.lost.replace("{}", since) : place.dataset[kind];
  };
}
