// A form with a file says how much of it was sent. Without this script the browser sends it by itself.

for (const form of document.querySelectorAll("form[data-sending]")) {
  const line = document.getElementById("sending");
  const bar = line.querySelector("progress"), words = line.querySelector("span");

  form.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    const button = form.querySelector("button.main"), call = new XMLHttpRequest();
    button.disabled = true;
    line.hidden = false;
    call.upload.addEventListener("progress", ({ loaded, total }) => {
      bar.value = total ? Math.floor((100 * loaded) / total) : 0;
      words.textContent = form.dataset.sending.replace("{}", `${bar.value} %`);
    });
    call.upload.addEventListener("load", () => { words.textContent = form.dataset.reading; });
    call.addEventListener("error", () => {
      button.disabled = false;
      words.textContent = form.dataset.lost;
    });
    call.addEventListener("load", () => {
      if (call.responseURL !== form.action) location.assign(call.responseURL);
      else show(call.responseText);
    });
    call.open("POST", form.action);
    call.send(new FormData(form));
  });
}

// What was refused is the same page with what is wrong in it: it is taken over whole, and its scripts run. A module
// runs once a document, and this stays the same one: each gets an address of its own.
function show(text) {
  const again = `&amp;again=${Date.now()}`;
  document.open();
  document.write(text.replace(/(<script type="module" src="[^"?]+\?[^"]+)"/g, `$1${again}"`));
  document.close();
}
