// The server is told the visitor's time zone; countdowns go by the server's clock, whatever this machine's says; and a
// claim is waited for.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`cw_zone=${zone}`)) {
  document.cookie = `cw_zone=${zone}; path=/shop; max-age=31536000; samesite=strict`;
}

const ahead = Date.parse(document.body.dataset.now) - Date.now();

const clocks = [...document.querySelectorAll("[data-until]")];
const two = (number) => String(number).padStart(2, "0");

function tick() {
  for (const clock of clocks) {
    const left = Math.max(0, Math.ceil((Date.parse(clock.dataset.until) - Date.now() - ahead) / 1000));
    const days = Math.floor(left / 86400);
    clock.textContent = `${days ? `${document.body.dataset.days.replace("#", days)} ` : ""}${two(Math.floor(left / 3600) % 24)}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
    if (!left && "reload" in clock.dataset) {
      delete clock.dataset.reload;
      setTimeout(() => location.reload(), 300);
    }
  }
}

if (clocks.length) {
  tick();
  setInterval(tick, 500);
}

const claim = document.querySelector("[data-claim]");

async function look() {
  const answer = await fetch(claim.dataset.claim).catch(() => null);
  const state = answer?.ok ? await answer.json() : null;
  if (state && state.status !== "queued") location.reload();
  else setTimeout(look, 700);
}

if (claim) look();
