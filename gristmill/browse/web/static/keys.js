// Keys that follow the links of a page; with a modifier or in a field they keep their meaning.
"use strict";
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const field = document.getElementById("search");
  if (event.target.closest("input,select,textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "/" && field) {
    event.preventDefault();
    field.focus();
    field.select();
    return;
  }
  const key = { ArrowRight: "n", ArrowLeft: "p" }[event.key] || event.key;
  const link = /^[nput]$/.test(key) && document.querySelector(`a[data-key="${key}"]`);
  // A wide table scrolls by the arrows.
  if (link && !(event.key.startsWith("Arrow") && event.target.closest(".wide,pre"))) link.click();
});
