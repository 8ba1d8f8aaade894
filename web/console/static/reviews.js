// Held claims by keyboard. Keys are heard only while a row's box has the focus, so that they take nobody's typing.

const form = document.getElementById("reviews");

if (form) {
  const boxes = [...form.querySelectorAll("[name='claim_id']")];
  const count = document.getElementById("count");
  const decide = (name) => form.querySelector(`[name='decision'][value='${name}']`).click();
  const tell = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    count.textContent = chosen ? count.dataset.count.replace("{}", chosen) : "";
  };
  const step = (by) => {
    const place = boxes.indexOf(document.activeElement) + by;
    boxes[Math.min(Math.max(place, 0), boxes.length - 1)].focus();
  };
  const keys = {
    Enter: () => {},
    j: () => step(1),
    k: () => step(-1),
    x: () => document.activeElement.click(),
    a: () => decide("approved"),
    r: () => {
      const reason = document.getElementById("f-reason");
      if (reason.value.trim()) decide("rejected");
      else reason.focus();
    },
  };
  form.addEventListener("keydown", (event) => {
    if (!boxes.includes(event.target) || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  form.addEventListener("change", tell);
  document.getElementById("keys").hidden = false;
  tell();
}
