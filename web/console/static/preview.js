// The preview beside a form. It follows the form, a moment after the last key; asked for by its button it comes at once,
// and nobody loses the place: the page is loaded only where nobody answers, or not to somebody who is logged in.

const DELAY_MS = 400;

export class Preview {
  // part: what is replaced by the answer; shown(all): called after that, with true where the button was pressed.
  constructor(form, part, shown) {
    Object.assign(this, { form, part, shown, timer: 0, asked: 0 });
    form.addEventListener("submit", (event) => this.press(event));
  }

  // After a change of the form.
  follow() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(false), DELAY_MS);
  }

  async press(event) {
    const button = event.submitter;
    if (button?.value !== "look" || button.dataset.plain) return;
    event.preventDefault();
    clearTimeout(this.timer);
    if (await this.ask(true)) return;
    button.dataset.plain = "yes";
    this.form.requestSubmit(button);
  }

  // False where there was no answer: the next change asks again.
  async ask(all) {
    const question = ++this.asked, body = new URLSearchParams(new FormData(this.form));
    try {
      const answer = await fetch(this.form.dataset.preview, { method: "POST", body });
      if (!answer.ok || answer.redirected) return false;
      const text = await answer.text();
      if (question !== this.asked) return true;
      this.part.setAttribute("aria-live", all ? "polite" : "off");
      this.part.innerHTML = text;
    } catch {
      return false;
    }
    this.shown(all);
    return true;
  }

  // Into sight, where it is not.
  reveal() {
    this.part.parentElement.scrollIntoView({ block: "nearest" });
  }
}
