/* The search page: all sections that hold every word of the query, the best first, each with an
   excerpt. `bookSections` comes from sections.js, `Stemmer` and `stopwords` from Sphinx. */
"use strict";
(() => {
  const most = 50; // results shown
  const query = (new URLSearchParams(location.search).get("q") ?? "").trim();
  const element = (name, ...content) => {
    const made = document.createElement(name);
    made.append(...content);
    return made;
  };

  /* What a word looks like on a page: 40919 also as 40,919 or 40 919, and a word in its forms. */
  const stemmer = new Stemmer();
  const pattern = word => {
    if (/^\d[\d.]*$/.test(word)) {
      const number = word.replace(/\B(?=(\d{3})+(?!\d))(?<!\..*)/g, "(?:,|\\{,\\}|\\s)?");
      return `(?<![\\d.]|\\d[,\\u202f])${number.replace(/\.(?=\d)/g, "\\.")}(?!\\u202f?\\d)`;
    }
    let root = stemmer.stemWord(word);
    // Three letters are an abbreviation more often than a root: ATE, not ated.
    if (root.length < 4) root = `${word}${word[2] ? "s?" : ""}(?![\\p{L}\\p{N}])`;
    else if (root.endsWith("i")) root = `${root.slice(0, -1)}[iy]`;
    else while (!word.startsWith(root)) root = root.slice(0, -1);
    return `(?<![\\p{L}\\p{N}])${root.replaceAll(".", "\\.")}[\\p{L}\\p{N}]*`;
  };
  const joined = query.toLowerCase().replace(
    /(?<![\d.])\d{1,3}(?:[,\s]\d{3})+(?!\d)/g, number => number.replace(/\D/g, ""));
  const all = joined.match(/[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)*/gu) ?? [];
  const telling = all.filter(word => !stopwords.includes(word));
  const words = (telling.length ? telling : all).map(pattern);
  const phrase = all.map(pattern).join("[^\\p{L}\\p{N}]{1,3}");
  const count = (text, sought) => [...text.matchAll(new RegExp(sought, "giu"))].length;

  const marked = text => text.split(new RegExp(`(${[phrase, ...words].join("|")})`, "iu"))
    .map((piece, index) => (index % 2 ? element("mark", piece) : piece));
  const excerpt = text => {
    const at = [phrase, ...words].map(sought => text.search(new RegExp(sought, "iu")));
    const start = text.lastIndexOf(" ", Math.max(0, at.find(one => one >= 0) - 90) || 0) + 1;
    const end = text.indexOf(" ", start + 240);
    return [
      start ? "… " : "", ...marked(text.slice(start, end < 0 ? undefined : end)), end < 0 ? "" : " …"];
  };
  const worth = ({anchor, heading, text}) => {
    const weight = anchor.startsWith("term-") ? 24 : 8; // where a word is explained comes first
    const hits = words.map(
      word => weight * count(heading, word) + Math.log2(1 + count(text, word)));
    const together = weight * count(heading, phrase) + 2 * Math.log2(1 + count(text, phrase));
    return hits.every(hit => hit > 0) || together ? hits.reduce((a, b) => a + b, together) : 0;
  };

  const field = [...document.querySelectorAll("input[name=q]")].at(-1); // the first is a dialog's
  field.value = query;
  field.focus();
  if (!query) return;
  const found = bookSections.map(section => ({...section, worth: words.length && worth(section)}))
    .filter(section => section.worth).sort((a, b) => b.worth - a.worth);
  const said = ["No section holds", "1 section holds"][found.length] ?? `${found.length} sections hold`;
  const status = element("p", `${said} “${query}”${found.length > most ? `; the best ${most}:` : "."}`);
  status.setAttribute("role", "status");
  const items = found.slice(0, most).map(({address, anchor, page, heading, text}) => {
    const link = element("a", ...marked(heading));
    link.href = `${address}#${anchor}`;
    return element("li", link, ...(page === heading ? [] : [` in ${page}`]),
      element("p", ...excerpt(text)));
  });
  document.getElementById("search-results").append(status, element("ol", ...items));
})();
