"use strict";
(() => {
  const details = JSON.parse(document.getElementById("details").textContent);
  const by = () => document.querySelector('input[name="by"]:checked').value;
  const said = document.getElementById("said");

  // Sorting: up, down, the paper's order. Empty values stay last either way; equal ones keep the paper's order.
  const valueOf = (cell) => (cell.dataset.ours === undefined ? cell.dataset.value : cell.dataset[by()]);
  const compare = (a, b) => {
    const numbers = [Number(a), Number(b)];
    return numbers.some(Number.isNaN) ? a.localeCompare(b, "en", { numeric: true }) : numbers[0] - numbers[1];
  };
  const order = (table, column, direction) => {
    const rows = table.originalRows.map((row) => ({ row, value: valueOf(row.cells[column]) ?? "" }));
    if (direction) {
      rows.sort((a, b) => {
        if (a.value === "" || b.value === "") return (a.value === "") - (b.value === "");
        return direction * compare(a.value, b.value);
      });
    }
    table.tBodies[0].append(...rows.map(({ row }) => row));
    table.classList.toggle("sorted", direction !== 0);
  };
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
  const DIRECTION = { none: 0, ascending: 1, descending: -1 };
  for (const table of document.querySelectorAll("table:has(.sort)")) {
    table.originalRows = [...table.tBodies[0].rows];
    const heads = [...table.querySelectorAll("th[aria-sort]")];
    heads.forEach((head, column) => {
      head.querySelector(".sort").addEventListener("click", () => {
        const state = NEXT[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", state);
        order(table, column, DIRECTION[state]);
        const name = head.querySelector(".sort").getAttribute("aria-label") ?? head.textContent.trim();
        said.textContent = state === "none" ? "The paper's order" : `Sorted by ${name}, ${state}`;
      });
    });
    table.again = () => {
      const column = heads.findIndex((head) => head.getAttribute("aria-sort") !== "none");
      if (column >= 0) order(table, column, DIRECTION[heads[column].getAttribute("aria-sort")]);
    };
  }
  for (const choice of document.querySelectorAll('input[name="by"]')) {
    choice.addEventListener("change", () => document.querySelectorAll("table.results").forEach((table) => table.again()));
  }

  // What is behind a cell: a tip while pointing at it, a dialog when pressed.
  const list = (lines) => {
    const all = document.createElement("dl");
    for (const [label, entries] of lines) {
      const term = document.createElement("dt");
      const text = document.createElement("dd");
      term.textContent = label;
      for (const entry of entries) {
        const line = document.createElement("div");
        const inside = entry.href ? document.createElement("a") : document.createElement("span");
        if (entry.href) inside.href = entry.href;
        inside.textContent = entry.text;
        line.append(inside);
        text.append(line);
      }
      all.append(term, text);
    }
    return all;
  };
  const tip = document.getElementById("tip");
  const dialog = document.getElementById("detail");
  const BRIEF = new Set(["Checks", "Files", "Logs"]);
  const showTip = (cell) => {
    tip.replaceChildren(list(details[cell.dataset.address].lines.filter(([label]) => !BRIEF.has(label))));
    tip.hidden = false;
    const at = cell.getBoundingClientRect();
    const left = Math.min(at.left, innerWidth - tip.offsetWidth - 8);
    const below = at.bottom + 6 + tip.offsetHeight <= innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, below ? at.bottom + 6 : at.top - tip.offsetHeight - 6)}px`;
  };
  const hideTip = () => { tip.hidden = true; };
  for (const cell of document.querySelectorAll(".cell")) {
    cell.addEventListener("pointerenter", () => showTip(cell));
    cell.addEventListener("pointerleave", hideTip);
    cell.addEventListener("click", () => {
      hideTip();
      const { name, lines } = details[cell.dataset.address];
      document.getElementById("detail-head").textContent = name;
      dialog.querySelector("dl").replaceWith(list(lines));
      dialog.showModal();
    });
  }
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  addEventListener("scroll", hideTip, { passive: true, capture: true });
  addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

  // One tab stop per table; arrow keys move from cell to cell.
  const STEP = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  for (const table of document.querySelectorAll("table.results")) {
    const first = table.querySelector(".cell");
    if (first) first.tabIndex = 0;
    table.addEventListener("keydown", (event) => {
      const cell = event.target.closest(".cell");
      const step = STEP[event.key];
      if (!cell || !step) return;
      const place = cell.closest("td");
      const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      const row = rows[rows.indexOf(place.parentElement) + step[0]];
      const next = row?.cells[place.cellIndex + step[1]]?.querySelector(".cell");
      if (!next) return;
      event.preventDefault();
      cell.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
    table.addEventListener("focusin", (event) => {
      const cell = event.target.closest(".cell");
      if (!cell) return;
      for (const other of table.querySelectorAll('.cell[tabindex="0"]')) other.tabIndex = -1;
      cell.tabIndex = 0;
    });
  }

  // The system's colours, or the reader's choice, which is remembered where the browser allows it.
  const THEMES = ["system", "light", "dark"];
  const button = document.getElementById("theme");
  const remembered = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* the choice lasts as long as the page */ } };
  const wear = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    return theme;
  };
  let theme = wear(THEMES.includes(remembered()) ? remembered() : "system");
  button.addEventListener("click", () => {
    theme = wear(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
    remember(theme);
  });
})();
