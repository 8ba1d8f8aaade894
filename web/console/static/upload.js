// A file that is too large is refused before it is sent: the server would end the connection in its midst.

for (const field of document.querySelectorAll("input[type=file][data-most-bytes]")) {
  field.addEventListener("change", () => {
    const size = field.files[0]?.size ?? 0;
    field.setCustomValidity(size > Number(field.dataset.mostBytes) ? field.dataset.tooLarge : "");
    field.reportValidity();
  });
}
