"use strict";
(() => {
  const search = document.getElementById("search");
  const method = document.getElementById("method");
  const verdict = document.getElementById("verdict");
  const clear = document.getElementById("clear");
  const hits = document.getElementById("hits");
  const rows = [...document.querySelectorAll("tr[data-methods]")];
  const figures = [...document.querySelectorAll("figure")];
  const folders = [...document.querySelectorAll("main article")];
  const sections = [...document.querySelectorAll("main > section")];

  // What a row, or a figure, can be found by: its texts, the names of its table, and what is behind its cells.
  const BEHIND = /^(Run|Why|Note|Data)/;
  let details;
  const wordsOf = (item) => {
    if (item.words === undefined) {
      details ??= JSON.parse(document.getElementById("details").textContent);
      const place = item.closest("article, section");
      const texts = [place.id, place.querySelector("h2, h3").textContent, item.textContent, item.dataset.words ?? "", item.dataset.methods ?? ""];
      for (const cell of item.querySelectorAll(".cell")) {
        for (const [label, entries] of details[cell.dataset.address].lines) {
          if (BEHIND.test(label)) texts.push(...entries.map((entry) => entry.text));
        }
      }
      item.words = texts.join(" ").toLowerCase();
    }
    return item.words;
  };
  // A long word may stand anywhere, a short one starts a word: "at" is AT and ATMC, not "data".
  const has = (words, word) => {
    if (word.length > 2) return words.includes(word);
    for (let at = words.indexOf(word); at >= 0; at = words.indexOf(word, at + 1)) {
      if (at === 0 || !/[\p{L}\p{N}]/u.test(words[at - 1])) return true;
    }
    return false;
  };

  const among = (list, chosen) => !chosen || JSON.parse(list ?? "[]").includes(chosen);
  const matches = (item, wanted) =>
    among(item.dataset.methods, method.value) && among(item.dataset.verdicts, verdict.value) && wanted.every((word) => has(wordsOf(item), word));
  const shown = (items) => items.filter((item) => !item.hidden);

  const NAMES = { tables: ["row of tables", "rows of tables"], figures: ["figure", "figures"], diff: ["difference", "differences"], claims: ["claim", "claims"] };
  const tell = (asked) => {
    const parts = [];
    for (const section of shown(asked ? sections : [])) {
      const count = shown([...section.querySelectorAll("tr[data-methods], figure")]).length;
      const link = document.createElement("a");
      link.href = `#${section.id}`;
      link.textContent = `${count} ${NAMES[section.id][count === 1 ? 0 : 1]}`;
      parts.push(parts.length ? ", " : "", link);
    }
    hits.replaceChildren(...(asked && !parts.length ? ["Nothing matches."] : parts));
  };
  const apply = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const asked = wanted.length > 0 || method.value !== "" || verdict.value !== "";
    for (const item of [...rows, ...figures]) item.hidden = asked && !matches(item, wanted);
    for (const folder of folders) folder.hidden = !shown([...folder.querySelectorAll("tr[data-methods]")]).length;
    for (const section of sections) section.hidden = asked && !shown([...section.querySelectorAll("tr[data-methods], figure")]).length;
    for (const line of document.querySelectorAll("tr[data-of]")) line.hidden = document.getElementById(line.dataset.of).hidden;
    for (const cell of document.querySelectorAll("td[data-verdict]")) cell.classList.toggle("faded", verdict.value !== "" && cell.dataset.verdict !== verdict.value);
    for (const table of document.querySelectorAll("table.results")) {
      const cells = shown([...table.tBodies[0].rows]).flatMap((row) => [...row.querySelectorAll(".cell")]);
      if (!cells.length || cells.some((cell) => cell.tabIndex === 0)) continue;
      for (const other of table.querySelectorAll('.cell[tabindex="0"]')) other.tabIndex = -1;
      cells[0].tabIndex = 0;
    }
    clear.hidden = !asked;
    tell(asked);
  };
  const reset = () => {
    search.value = method.value = verdict.value = "";
    apply();
  };

  search.addEventListener("input", apply);
  method.addEventListener("change", apply);
  verdict.addEventListener("change", apply);
  clear.addEventListener("click", () => { reset(); search.focus(); });
  // A link to something that a filter hides shows everything again.
  document.addEventListener("click", (event) => {
    const target = document.getElementById(event.target.closest('a[href^="#"]')?.hash.slice(1) ?? "");
    if (target?.closest("[hidden]")) reset();
  });
  apply(); // browsers bring back what was typed before a reload
})();
