// What pages can do without a server: write the command for other parameters, sort tables, be printed.
"use strict";

// As a POSIX shell reads it: plain words as they are, all else in single quotes.
const quoted = (word) =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

function writeCommand(form) {
  const changed = [...form.querySelectorAll("input")].filter(
    (input) => input.value.trim() !== input.dataset.default,
  );
  const given = changed.map((input) => `-p ${input.name} ${quoted(input.value.trim())}`);
  form.querySelector("pre.command").textContent = [form.dataset.command, ...given].join(" ");
}

// What is between numbers, and the numbers, in turn: of n 10_000, seed 2 or of 4 816 ± 61.
function pieces(cell) {
  const text = cell.textContent.trim().replaceAll("−", "-");
  const plain = text.replace(/(\d)[,_\u2009\u202f](?=\d{3})/g, "$1");
  return plain.split(/((?:\B[+-])?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/); // no sign within 2026-11-23
}

// Piece by piece, numbers by their value and all else by letters.
function compare(one, other) {
  const [a, b] = [one, other].map(pieces);
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const apart = at % 2 ? a[at] - b[at] : a[at].localeCompare(b[at]);
    if (apart) return apart;
  }
  return a.length - b.length;
}

function sortBy(button) {
  const head = button.closest("th");
  const body = head.closest("table").tBodies[0];
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const place = head.cellIndex;
  const rows = [...body.rows].sort((a, b) => sign * compare(a.cells[place], b.cells[place]));
  body.append(...rows);
}

// On a phone, a row of a table of prose becomes a list, in which texts have the names of columns.
function nameColumns(table) {
  if (getComputedStyle(table.rows[0]).display === "flex") return; // its rows are lines already
  const names = [...table.tHead.rows[0].cells].map((head) =>
    head.textContent.trim().replaceAll(/\\[()]/g, "")); // formulas are not yet set
  const cells = [...table.tBodies[0].rows].flatMap((row) => [...row.cells]);
  const letters = cells.reduce((sum, cell) => sum + cell.textContent.length, 0);
  if (names.length < 3 || letters < 15 * cells.length) return;
  table.classList.add("listed");
  for (const cell of cells) cell.dataset.column = names[cell.cellIndex];
}

document.addEventListener("DOMContentLoaded", () => {
  for (const form of document.querySelectorAll("form.rerun")) {
    form.addEventListener("input", () => writeCommand(form));
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  // Bootstrap marks in the contents of a page what is read. The theme names other contents, and would
  // have it wait until a tenth of a section is seen, which of a long one never is.
  Object.assign(document.body.dataset, { bsTarget: "#pst-page-toc-nav", bsThreshold: "[0]" });
  for (const table of document.querySelectorAll(".bd-article table.table:not(.sortable, .rerun *)"))
    nameColumns(table);
  for (const head of document.querySelectorAll("table.sortable thead th")) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(button));
  }
});

// A browser that goes back to a page puts into its fields what was typed there, and tells nobody.
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form.rerun input, figure.explorable input"))
    field.dispatchEvent(new Event("input", { bubbles: true }));
});

// Who reads in the dark prints in the light.
const root = document.documentElement;
let theme;
addEventListener("beforeprint", () => {
  theme = root.dataset.theme;
  root.dataset.theme = "light";
});
addEventListener("afterprint", () => { root.dataset.theme = theme; });

// Formulas stand on the page as TeX, within \(…\) or \[…\], until KaTeX sets them.
addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".math").forEach(one => {
    const tex = one.textContent.trim();
    katex.render(tex.slice(2, -2), one, {displayMode: tex.startsWith("\\["), throwOnError: false});
    // What follows within the line, such as a comma, goes into its element: no line may begin with it.
    const after = one.nextSibling;
    const [marks] = (one.matches("span") && after?.data?.match(/^[,.;:!?)]+/)) || [];
    if (marks) {
      one.append(marks);
      after.deleteData(0, marks.length);
    }
  });
});

// What Sphinx and KaTeX leave undone for readers without a mouse or a screen.
addEventListener("load", () => {
  // The theme takes the focus from these when they are clicked, also by the keyboard, which needs it.
  document.querySelectorAll(".theme-switch-button, .search-button, .sidebar-toggle").forEach(one => {
    one.blur = () => one.matches(":focus-visible") || HTMLElement.prototype.blur.call(one);
  });

  // Sphinx gives an entry of the bibliography a role that no list may contain, and is deprecated.
  document.querySelectorAll("[role=doc-biblioentry]").forEach(one => { one.setAttribute("role", "listitem"); });

  // Where a formula or a figure is wider than its page, the keyboard has to reach it to scroll it.
  const wide = document.querySelectorAll(".katex-display, .cell_output:has(> figure)");
  const scrolls = (one) => one.scrollWidth > one.clientWidth;
  const mark = () => wide.forEach(one => {
    one.removeAttribute("tabindex");
    one.style.removeProperty("font-size");
    // A formula that is a little too wide becomes a little smaller.
    if (one.matches(".katex-display") && 0.77 * one.scrollWidth < one.clientWidth)
      for (let size = 99; size > 74 && scrolls(one); size--) one.style.fontSize = `${size}%`;
    if (scrolls(one)) one.tabIndex = 0;
  });
  mark();
  addEventListener("toggle", mark, true); // what unfolds has a width from then on
  // A page also changes its width when the menus beside it come or go.
  let width = 0;
  new ResizeObserver(([page]) => {
    if (width !== page.contentRect.width) mark();
    width = page.contentRect.width;
  }).observe(document.querySelector("article") ?? document.body);
});
