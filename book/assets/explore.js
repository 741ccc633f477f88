// Figures that a reader can move. Each is a function from its values to a drawing and a sentence, and
// without this script the drawing for the first values stands on the page (book/stills.py writes it).
"use strict";

const grouped = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const money = (value) => `${Math.round(value) < 0 ? "−" : ""}$${grouped(Math.abs(value))}`;
const text = (x, y, words, more = "") => `<text x="${x}" y="${y}" ${more}>${words}</text>`;
const box = (x, y, width, height, kind) =>
  `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(width, 0).toFixed(1)}" height="${height.toFixed(1)}" class="${kind}"/>`;
const HATCH =
  '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6" class="other"/></pattern></defs>';
const drawing = (height, parts, role = "img", label = "") =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 ${height}" role="${role}" aria-label="${label}">\n${parts.flat().join("\n")}\n</svg>`;

// --- Confounding: what is seen, and what is done -----------------------------------------------

// The world of the introduction: half have support; chances of studying with it and without.
function confounding({ withSupport, without, support, studies }) {
  const among = (a, b) => a / (a + b); // who have support, among those who took an arm
  const shares = [among(withSupport, without), among(1 - withSupport, 1 - without)];
  const bias = support * (shares[0] - shares[1]);
  const [left, zero, scale] = [96, 160, 136 / 38_000]; // the largest difference, and its label
  const rows = ["studied", "did not"].map((arm, row) => [
    text(0, 38 + 34 * row, arm),
    box(left, 20 + 34 * row, 264, 26, "pale"),
    box(left, 20 + 34 * row, 264 * shares[row], 26, "other"),
    shares[row] < 0.15
      ? text(left + 264 * shares[row] + 6, 38 + 34 * row, `${Math.round(100 * shares[row])} %`)
      : text(left + 6, 38 + 34 * row, `${Math.round(100 * shares[row])} %`, 'class="onto"'),
  ]);
  const bar = (y, name, value) => [
    text(0, y + 18, name),
    box(zero + Math.min(0, value) * scale, y, Math.abs(value) * scale, 26, "main"),
    text(zero + Math.max(0, value) * scale + 6, y + 18, money(value)),
  ];
  const from = zero + Math.min(studies, studies + bias) * scale;
  return {
    values: { seen: studies + bias, done: studies },
    drawn: drawing(196, [
      HATCH,
      text(left, 12, "share who have support", 'class="small"'),
      rows,
      text(left, 112, "difference of mean incomes", 'class="small"'),
      bar(120, "seen", studies + bias),
      box(from, 120, Math.abs(bias) * scale, 26, "hatched"),
      bar(154, "done", studies),
      `<line x1="${zero}" x2="${zero}" y1="116" y2="184" class="rule"/>`,
    ], "img", "Two bars show the share with support among those who studied and those who did not, and two more the difference of incomes that is seen and the one that is done."),
    said:
      Math.abs(bias) < 1
        ? "Those who studied have support as often as the others, or support pays nothing: seeing equals doing."
        : `The difference seen is off by ${money(bias)}: what support pays, ${money(support)}, times the difference of the two shares.`,
  };
}

// --- Overlap: how many people a weight is worth ------------------------------------------------

// Propensities e with log odds γ z, z standard normal, for which E[1/e] = 1 + exp(γ²/2).
function overlap({ gamma, size }) {
  const n = Math.round(10 ** size);
  const [bins, steps, spread] = [20, 4_000, 20_000];
  const mass = Array(bins).fill(0);
  for (let step = 0; step < steps; step += 1) {
    const z = -6 + (12 * (step + 0.5)) / steps;
    const e = 1 / (1 + Math.exp(-gamma * z));
    mass[Math.min(bins - 1, Math.floor(e * bins))] += Math.exp((-z * z) / 2);
  }
  const total = mass.reduce((sum, one) => sum + one);
  const tallest = Math.max(...mass.map((one, bin) => one * Math.max((bin + 0.5) / bins, 1 - (bin + 0.5) / bins)));
  const bars = mass.map((one, bin) => {
    const [middle, height] = [(bin + 0.5) / bins, (64 * one) / tallest];
    return one / total < 1e-6
      ? []
      : [
          box(18 * bin + 1, 86 - height * middle, 16, height * middle, "main"),
          box(18 * bin + 1, 88, 16, height * (1 - middle), "other"),
        ];
  });
  const worse = 1 + Math.exp((gamma * gamma) / 2);
  const errors = { "by weighting": spread * Math.sqrt((2 * worse) / n), "in a lottery": (2 * spread) / Math.sqrt(n) };
  const scale = 150 / Math.max(...Object.values(errors));
  const worth = n / worse;
  return {
    values: { worth, error: errors["by weighting"], lottery: errors["in a lottery"] },
    drawn: drawing(262, [
      text(0, 14, "studied ↑", 'class="small"'),
      text(0, 172, "did not ↓", 'class="small"'),
      bars,
      `<line x1="0" x2="360" y1="87" y2="87" class="rule"/>`,
      text(360, 172, "chance of studying: from 0 to 1", 'class="small" text-anchor="end"'),
      text(0, 198, "standard error of the average effect", 'class="small"'),
      Object.entries(errors).map(([name, error], row) => [
        text(0, 221 + 30 * row, name),
        box(108, 206 + 30 * row, error * scale, 22, row ? "pale" : "other"),
        text(114 + error * scale, 221 + 30 * row, `± ${money(error)}`),
      ]),
    ], "img", "Bars by the chance of studying, upwards those who studied and downwards those who did not; below, the standard error of weighting and that of a lottery."),
    said: `The ${grouped(n / 2)} who studied are worth ${grouped(worth)}, once each is weighted by one over the chance.`,
  };
}

// --- A graph of true and false: three rungs ------------------------------------------------------

const GRAPH = [
  { name: "A", parents: [], all: false, chance: 0.5, at: [34, 60] },
  { name: "B", parents: [0], all: false, chance: 0.4, at: [106, 116] },
  { name: "C", parents: [0, 1], all: true, chance: 0.8, at: [178, 60] },
  { name: "D", parents: [2], all: false, chance: 0.4, at: [250, 116] },
  { name: "E", parents: [2, 3], all: true, chance: 0.7, at: [322, 60] },
];
const LEAF = GRAPH.length - 1;

// The value of each node: its noise and, or or, all of its parents; but what is set, is set.
function run(noise, done = {}) {
  const found = [];
  GRAPH.forEach(({ parents, all }, node) => {
    const inputs = [noise[node], ...parents.map((parent) => found[parent])];
    found.push(node in done ? done[node] : all ? inputs.every(Boolean) : inputs.some(Boolean));
  });
  return found;
}

// P(leaf | event) by adding up all states of the noise.
function probability(event, done = {}) {
  let [both, one] = [0, 0];
  for (let state = 0; state < 2 ** GRAPH.length; state += 1) {
    const noise = GRAPH.map((_, node) => Boolean(state & (1 << node)));
    const weight = GRAPH.reduce((product, { chance }, node) => product * (noise[node] ? chance : 1 - chance), 1);
    const found = run(noise, done);
    if (!event(found)) continue;
    one += weight;
    both += found[LEAF] ? weight : 0;
  }
  return both / one;
}

function rungs({ cause, noise }) {
  const seen = [true, false].map((value) => probability((found) => found[cause] === value));
  const done = [true, false].map((value) => probability(() => true, { [cause]: value }));
  const here = run(noise);
  const there = run(noise, { [cause]: !here[cause] });
  const name = GRAPH[cause].name;
  const say = (value) => (value ? "true" : "false");
  const arrows = GRAPH.flatMap(({ parents, at: [x, y] }) =>
    parents.map((parent) => {
      const [a, b] = GRAPH[parent].at;
      const [dx, dy] = [x - a, y - b].map((one) => one / Math.hypot(x - a, y - b));
      return `<line x1="${(a + 22 * dx).toFixed(1)}" y1="${(b + 22 * dy).toFixed(1)}" x2="${(x - 27 * dx).toFixed(1)}" y2="${(y - 27 * dy).toFixed(1)}" class="arrow" marker-end="url(#tip)"/>`;
    }),
  );
  const nodes = GRAPH.map(({ name, at: [x, y], all }, node) => {
    const asked = node === LEAF ? "" : `data-cause="${node}"`;
    return [
      `<g class="node ${node === cause ? "chosen" : ""}" aria-label="${name}, ${say(here[node])}" ${asked}>`,
      `<circle cx="${x}" cy="${y}" r="20" class="${here[node] ? "main" : "pale"}"/>`,
      text(x, y + 5, name, `text-anchor="middle" class="${here[node] ? "onto" : ""}"`),
      there[node] === here[node] ? "" : text(x, y - 28, say(there[node]), 'text-anchor="middle" class="small changed"'),
      "</g>",
    ].join("");
  });
  const bar = (y, rung, name, [one, other]) => [
    text(0, y + 15, rung),
    box(80, y, 120, 20, "pale"),
    box(80, y, 120 * Math.abs(one - other), 20, "main"),
    text(206, y + 15, `${name} ${(one - other).toFixed(3)}`),
  ];
  return {
    values: { seen: seen[0] - seen[1], done: done[0] - done[1], here, there },
    drawn: drawing(244, [
      '<defs><marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L10,5 L0,10 z" class="tip"/></marker></defs>',
      arrows,
      nodes,
      bar(156, "seen", "difference", seen),
      bar(184, "done", "difference", done),
      text(0, 227, "imagined"),
      text(80, 227, here[LEAF] === there[LEAF] ? `E stays ${say(here[LEAF])}` : `E would be ${say(there[LEAF])}, and is ${say(here[LEAF])}`),
    ], "group", "Five nodes from A to E joined by arrows, and below them the three rungs."),
    said: `Seen: E is true with probability ${seen[0].toFixed(3)} where ${name} is true, and ${seen[1].toFixed(3)} where it is false. Done: ${done[0].toFixed(3)} if ${name} is made true, ${done[1].toFixed(3)} if it is made false. Imagined: with ${name} ${say(!here[cause])}, this subject's E ${here[LEAF] === there[LEAF] ? "would be the same" : `would be ${say(there[LEAF])}`}.`,
  };
}

// --- What moves them -------------------------------------------------------------------------------

const dollars = [0, 20_000, 1_000, money];
const percent = (value) => `${Math.round(100 * value)} %`;

// A slider: its label, first value, least, greatest, step, and how its value is said.
const EXPLORABLES = {
  confounding: {
    draw: confounding,
    sliders: {
      withSupport: ["chance of studying with support", 0.8, 0.05, 0.95, 0.05, percent],
      without: ["chance of studying without", 0.2, 0.05, 0.95, 0.05, percent],
      support: ["what support pays", 8_000, ...dollars],
      studies: ["what studies pay", 12_000, ...dollars],
    },
  },
  overlap: {
    draw: overlap,
    sliders: {
      gamma: ["how strongly choice follows the covariate, γ", 1.5, 0, 3, 0.1, (value) => value.toFixed(1)],
      size: ["people", 3, 2, 5, 0.25, (value) => grouped(10 ** value)],
    },
  },
  rungs: {
    draw: rungs,
    sliders: {},
    state: { cause: 1, noise: [true, false, true, false, true] },
  },
};

function first(name) {
  const { sliders, state = {} } = EXPLORABLES[name];
  return { ...state, ...Object.fromEntries(Object.entries(sliders).map(([key, [, value]]) => [key, value])) };
}

function explore(figure) {
  const name = figure.dataset.explorable;
  const { draw, sliders } = EXPLORABLES[name];
  const values = first(name);
  const [place, form] = [figure.querySelector(".drawn"), document.createElement("form")];
  const said = document.createElement("output");
  const show = () => {
    const focused = place.contains(document.activeElement) && document.activeElement.dataset.cause;
    const found = draw(values);
    place.innerHTML = found.drawn;
    said.textContent = found.said;
    figure.found = found.values;
    for (const node of place.querySelectorAll("[data-cause]")) {
      node.setAttribute("role", "button");
      node.setAttribute("tabindex", "0");
      node.setAttribute("aria-pressed", node.classList.contains("chosen"));
    }
    if (focused) place.querySelector(`[data-cause="${focused}"]`).focus();
  };
  for (const [key, [label, value, min, max, step, say]] of Object.entries(sliders)) {
    const row = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "range", name: key, min, max, step, value });
    const now = document.createElement("span");
    const tell = (number) => {
      now.textContent = say(number);
      input.setAttribute("aria-valuetext", say(number)); // which is heard instead of the number
    };
    tell(value);
    row.append(`${label}: `, now, input);
    input.addEventListener("input", () => {
      values[key] = Number(input.value);
      tell(values[key]);
      show();
    });
    form.append(row);
  }
  if ("noise" in values) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Another subject" });
    button.addEventListener("click", () => {
      values.noise = GRAPH.map(({ chance }) => Math.random() < chance);
      show();
    });
    form.append(button);
    const choose = (event) => {
      const node = event.target.closest("[data-cause]");
      if (!node || (event.key && !["Enter", " "].includes(event.key))) return;
      event.preventDefault();
      values.cause = Number(node.dataset.cause);
      show();
    };
    place.addEventListener("click", choose);
    place.addEventListener("keydown", choose);
  }
  place.after(form, said);
  show();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("figure[data-explorable]").forEach(explore);
});
