// The theme that a person chose, the keys that follow the links of a page.
"use strict";
const root = document.documentElement, THEME = "gristmill-theme";
const set = (theme) => { if (theme) root.dataset.theme = theme; };
try { set(localStorage.getItem(THEME)); } catch { /* a browser that stores nothing */ }
const turn = () => {
  const now = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  set(now === "dark" ? "light" : "dark");
  try { localStorage.setItem(THEME, root.dataset.theme); } catch { /* it stays for this page */ }
};
addEventListener("click", (event) => { if (event.target.closest("[data-theme-switch]")) turn(); });
// With a modifier or in a field keys keep their meaning.
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
  if (event.key === "d") turn();
  if (/^[jk]$/.test(event.key)) {
    const rows = [...document.querySelectorAll(".rows th[scope=row] a, .list td a")], at = rows.indexOf(document.activeElement);
    rows[Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), rows.length - 1)]?.focus();
    return;
  }
  const key = { ArrowRight: "n", ArrowLeft: "p" }[event.key] || event.key;
  const link = /^[nputh]$/.test(key) && document.querySelector(`a[data-key="${key}"]`);
  // A wide table scrolls by the arrows.
  if (link && !(event.key.startsWith("Arrow") && event.target.closest(".wide,pre"))) link.click();
});
// What is counted meanwhile: asked for each second, and shown where it stands once it is there.
const waiting = async () => {
  const place = document.querySelector("[data-wait]");
  if (!place?.dataset.wait) return;
  const read = async (address) => new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
  const asked = await read(place.dataset.wait), now = asked.querySelector("[data-wait]");
  if (now) {
    place.textContent = now.textContent;
    setTimeout(waiting, 1000);
    return;
  }
  const fresh = (await read(location.href)).querySelectorAll("[data-fresh]");
  document.querySelectorAll("[data-fresh]").forEach((old, at) => fresh[at] && old.replaceWith(fresh[at]));
};
addEventListener("DOMContentLoaded", () => setTimeout(waiting, 300));
