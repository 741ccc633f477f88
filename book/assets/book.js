/* What Sphinx and MathJax leave undone for readers without a mouse or a screen. */
"use strict";
addEventListener("load", async () => {
  // Sphinx gives an entry of the bibliography a role that no list may contain, and is deprecated.
  document.querySelectorAll("[role=doc-biblioentry]").forEach(one => { one.setAttribute("role", "listitem"); });

  // Where a formula is wider than its page, the keyboard has to reach it to scroll it.
  await window.MathJax?.startup.promise;
  const formulas = document.querySelectorAll("mjx-container[display=true]");
  const mark = () => formulas.forEach(formula => {
    formula.removeAttribute("tabindex");
    if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
  });
  mark();
  addEventListener("resize", mark);
});
