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

  /* Letters without their accents, each in its place: who looks for Huyuk finds Hüyük. */
  const plain = text => text.replace(/[\u00c0-\u1eff]/g, letter => letter.normalize("NFD")[0]);

  /* What a word looks like on a page: 40919 also as 40,919, 40 919 or 40_919, a word in its forms,
     and a sign as it is. */
  const stemmer = new Stemmer();
  const pattern = word => {
    if (!/[\p{L}\p{N}_]/u.test(word)) return word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    if (/^\d[\d.]*$/.test(word)) {
      const [gap, group] = ["(?:,|\\{,\\}|_|\\s)?", "(?:[,_\\u202f]|\\{,\\})"];
      const number = word.replace(/\B(?=(\d{3})+(?!\d))(?<!\..*)/g, gap).replace(/\.(?=\d)/g, "\\.");
      return `(?<![\\d.]|\\d${group})${number}(?!\\d|${group}\\d{3})`;
    }
    let root = stemmer.stemWord(word);
    // Three letters are an abbreviation more often than a root: ATE, not ated.
    if (root.length < 4) root = `${word}${word[2] ? "s?" : ""}(?![\\p{L}\\p{N}])`;
    else if (root.endsWith("i")) root = `${root.slice(0, -1)}[iy]`;
    else while (!word.startsWith(root)) root = root.slice(0, -1);
    return `(?<![\\p{L}\\p{N}])${root.replaceAll(".", "\\.")}[\\p{L}\\p{N}]*`;
  };
  const joined = plain(query.normalize("NFC").toLowerCase()).replace(
    /(?<![\p{L}\d._])\d{1,3}(?:[,_\s]\d{3})+(?!\d)/gu, number => number.replace(/\D/g, ""));
  const all = joined.match(/[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)*/gu) ?? joined.match(/\S+/g) ?? [];
  const telling = all.filter(word => !stopwords.includes(word));
  const words = (telling.length ? telling : all).map(pattern);
  const phrase = all.map(pattern).join("[^\\p{L}\\p{N}]{1,3}");
  const hits = (text, sought) => [...plain(text).matchAll(new RegExp(sought, "giu"))];
  const count = (text, sought) => hits(text, sought).length;

  const marked = text => {
    const ends = hits(text, [phrase, ...words].join("|"))
      .flatMap(({0: hit, index}) => [index, index + hit.length]);
    return [0, ...ends].map((start, place) => {
      const piece = text.slice(start, ends[place]);
      return place % 2 ? element("mark", piece) : piece;
    });
  };
  const excerpt = text => {
    const at = [phrase, ...words].map(sought => hits(text, sought)[0]?.index ?? -1);
    const start = text.lastIndexOf(" ", Math.max(0, at.find(one => one >= 0) - 90) || 0) + 1;
    const end = text.indexOf(" ", start + 240);
    return [
      start ? "… " : "", ...marked(text.slice(start, end < 0 ? undefined : end)), end < 0 ? "" : " …"];
  };
  const worth = ({anchor, heading, text}) => {
    const weight = anchor.startsWith("term-") ? 24 : 8; // where a word is explained comes first
    const each = words.map(
      word => weight * count(heading, word) + Math.log2(1 + count(text, word)));
    const together = weight * count(heading, phrase) + 2 * Math.log2(1 + count(text, phrase));
    const named = weight * plain(heading.toLowerCase()).split(" · ").includes(joined); // as it is
    return each.every(hit => hit > 0) || together ? each.reduce((a, b) => a + b, together + named) : 0;
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
