// Sorting, filtering and colours of source. Every page reads without it.
"use strict";

// Tables: a click on a column's head sorts by it, a second one the other way round.
const valueOf = (row, column, table) => {
  const cell = row.cells[column];
  if (column === 0 && table.closest(".board")?.querySelector(".rank-all")?.checked) {
    return cell.dataset.all ?? cell.textContent.trim();
  }
  return cell.dataset.value ?? cell.textContent.trim();
};

const compare = (a, b) => {
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
};

const sortBy = (table, column, descending) => {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [valueOf(row, column, table), row]);
  // What has no value comes last, whichever way the others go.
  rows.sort(([a], [b]) =>
    a === "" || b === "" ? (a === "") - (b === "") : descending ? compare(b, a) : compare(a, b));
  body.append(...rows.map(([, row]) => row));
  [...table.tHead.rows[0].cells].forEach((head, index) => {
    if (index === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
};

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      // Numbers are first shown from the highest on, but for ranks.
      const first = head.classList.contains("number") && head.dataset.sort !== "rank";
      sortBy(table, column, now === null ? first : now === "ascending");
    });
  });
}

// Filters: words that a row must have, and an outcome.
for (const filters of document.querySelectorAll(".filters")) {
  const table = filters.parentElement.querySelector("table");
  const find = filters.querySelector(".find");
  const choose = filters.querySelector(".choose");
  const count = filters.querySelector(".count");
  const rows = [...table.tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const apply = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const outcome = choose?.value ?? "";
    let shown = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => texts.get(row).includes(word)) ||
        (outcome !== "" && row.dataset.outcome !== outcome);
      shown += !row.hidden;
    }
    count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
  };
  find.addEventListener("input", apply);
  choose?.addEventListener("change", apply);
  filters.hidden = false;
  apply(); // a browser that goes back fills fields in again
}

// Source: one pattern a language; a CUDA program inside a Python string is read as CUDA.
const words = (text) => `\\b(?:${text.trim().split(/\s+/).join("|")})\\b`;
const NUMBER = "\\b(?:0[xX][\\da-fA-F]+|(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][-+]?\\d+)?)[fFuUlL]*\\b";
const PATTERNS = {
  python: [
    ["comment", "#[^\\n]*"],
    ["string", "[rRbBfF]{0,2}(?:\"\"\"[^]*?(?:\"\"\"|(?![^]))|'''[^]*?(?:'''|(?![^]))|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?)"],
    ["keyword", words(`and as assert async await break class continue def del elif else except
      finally for from global if import in is lambda nonlocal not or pass raise return try while
      with yield None True False`)],
    ["type", words("self super int float bool str list tuple dict torch")],
    ["number", NUMBER],
  ],
  cuda: [
    ["comment", "//[^\\n]*|/\\*[^]*?(?:\\*/|(?![^]))"],
    ["directive", "^[ \\t]*#[^\\n]*"],
    ["string", "\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?"],
    ["keyword", words(`if else for while do return switch case break continue const constexpr static
      inline struct class namespace using template typename extern volatile public private operator
      new delete true false nullptr sizeof auto __global__ __device__ __host__ __shared__
      __constant__ __restrict__ __forceinline__ __launch_bounds__ __syncthreads __syncwarp`)],
    ["type", words(`void int unsigned signed char short long float double bool half __half
      __nv_bfloat16 float2 float4 int2 int4 uint4 size_t int64_t int32_t uint32_t threadIdx blockIdx
      blockDim gridDim dim3`)],
    ["number", NUMBER],
  ],
};
const matchers = Object.fromEntries(Object.entries(PATTERNS).map(([language, kinds]) =>
  [language, new RegExp(kinds.map(([, pattern]) => `(${pattern})`).join("|"), "gm")]));

const tokens = (text, language, from, found) => {
  for (const match of text.matchAll(matchers[language])) {
    const kind = PATTERNS[language][match.slice(1).findIndex((part) => part !== undefined)][0];
    const start = from + match.index;
    if (kind === "string" && /__global__|#include/.test(match[0])) {
      tokens(match[0], "cuda", start, found);
    } else {
      found.push([start, start + match[0].length, kind]);
    }
  }
  return found;
};

const paint = (lines, language) => {
  const texts = lines.map((line) => line.textContent);
  const found = tokens(texts.join(""), language, 0, []);
  let next = 0, start = 0;
  lines.forEach((line, index) => {
    const end = start + texts[index].length;
    const parts = [];
    let at = start;
    while (next < found.length && found[next][0] < end) {
      const [first, last, kind] = found[next];
      if (first > at) parts.push(texts[index].slice(at - start, first - start));
      const stop = Math.min(last, end);
      const span = document.createElement("span");
      span.className = `t-${kind}`;
      span.textContent = texts[index].slice(Math.max(first, at) - start, stop - start);
      parts.push(span);
      at = stop;
      if (last > end) break; // goes on in the next line
      next += 1;
    }
    parts.push(texts[index].slice(at - start));
    line.replaceChildren(...parts);
    start = end;
  });
};

for (const listing of document.querySelectorAll(".listing")) {
  const lines = [...listing.querySelectorAll("code > span")];
  const language = listing.dataset.language;
  if (lines.length > 20000) continue;
  paint(lines.filter((line) => !line.classList.contains("removed")), language);
  paint(lines.filter((line) => line.classList.contains("removed")), language);
}
