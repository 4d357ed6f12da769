"use strict";
// The rows of a page: unpacked, searched, sorted, filtered by the columns that have few values, opened, saved.
// What users wrote goes into the page as text only, never as HTML.
(function () {
  const SCREEN = 50;
  const get = (id) => document.getElementById(id);
  const table = get("texts");
  const number = (value) => value.toLocaleString("en");
  let columns = [];   // { name, kind, slug }
  let noun = "texts";
  let rows = [];      // { cells, details, words, place }
  let listed = [];
  let filters = {};
  let order = { column: null, down: false };
  let screen = 0;
  const opened = new Set();

  function el(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "onclick") element.addEventListener("click", value);
      else if (value !== null) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  async function unpack() {
    const bytes = Uint8Array.from(atob(get("packed").textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const text = await new Response(stream).text();
    const [first, ...others] = JSON.parse(`[${text.trimEnd().replaceAll("\n", ",")}]`);
    if (!first.length) return;
    noun = first[1];
    columns = first[0].map(([name, kind]) => ({ name, kind, slug: name.toLowerCase().replace(/[^a-z0-9]+/g, "-") }));
    rows = others.map(([cells, details], place) => ({
      cells, details, place,
      words: [...cells, ...details.flatMap(([, , swaps]) => swaps.map((swap) => swap.to ?? ""))].join(" ").toLowerCase(),
    }));
  }

  const single = (value) => (value === null ? "?" : typeof value === "number" && !Number.isInteger(value) ? value.toFixed(4) : String(value));
  const shown = (value) => (value === null ? "" : !Array.isArray(value) ? single(value) : value[0] === value[1] ? single(value[0]) : `[${single(value[0])}, ${single(value[1])}]`);
  const sortable = (value) => (Array.isArray(value) ? value[1] ?? value[0] ?? Infinity : value === null ? Infinity : value === "never" ? Number.MAX_VALUE : value);

  // ---- what is listed
  function keeps(row, name, value) {
    if (name === "words") return row.words.includes(value.toLowerCase());
    const at = columns.findIndex(({ slug }) => slug === name);
    return shown(row.cells[at]) === value;
  }
  function list() {
    const active = Object.entries(filters);
    listed = rows.filter((row) => active.every(([name, value]) => keeps(row, name, value)));
    const at = columns.findIndex(({ slug }) => slug === order.column);
    if (at < 0) return;
    const sign = order.down ? -1 : 1;
    const mixed = (value) => (typeof value === "number" ? 0 : 1);
    listed.sort((one, other) => {
      const [a, b] = [sortable(one.cells[at]), sortable(other.cells[at])];
      if (mixed(a) !== mixed(b)) return mixed(a) - mixed(b);
      return (a < b ? -sign : a > b ? sign : one.place - other.place);
    });
  }
  function show(changes) { filters = changes; screen = 0; list(); draw(); }
  function remember() {
    const said = { ...filters, ...(order.column ? { sort: order.column } : {}), ...(order.down ? { down: "1" } : {}) };
    const query = new URLSearchParams(said).toString();
    history.replaceState(null, "", query ? `#rows?${query}` : "#rows");
  }
  function follow() {
    const there = location.hash.slice(1);
    const id = /^row-(\d+)$/.exec(there);
    if (id) {
      filters = {};
      list();
      const at = listed.findIndex(({ cells }) => String(cells[0]) === id[1]);
      if (at < 0) return draw();
      screen = Math.floor(at / SCREEN);
      opened.add(listed[at].place);
      draw();
      get(there)?.scrollIntoView({ block: "center" });
    } else if (there === "rows" || there.startsWith("rows?")) {
      const { sort, down, ...asked } = Object.fromEntries(new URLSearchParams(there.slice(5)));
      const known = new Set(["words", ...columns.map(({ slug }) => slug)]);
      order = { column: known.has(sort) ? sort : null, down: down === "1" };
      show(Object.fromEntries(Object.entries(asked).filter(([name, value]) => known.has(name) && value !== "")));
      get("rows").scrollIntoView();
    }
  }

  // ---- drawing
  function draw() {
    const screens = Math.max(1, Math.ceil(listed.length / SCREEN));
    screen = Math.min(Math.max(screen, 0), screens - 1);
    const seen = listed.slice(screen * SCREEN, (screen + 1) * SCREEN);
    table.tBodies[0].replaceChildren(...seen.flatMap((row) => (opened.has(row.place) ? [rowOf(row), detailOf(row)] : [rowOf(row)])));
    const first = listed.length ? screen * SCREEN + 1 : 0;
    const of = listed.length === rows.length ? `${number(rows.length)} ${noun}` : `${number(listed.length)} of ${number(rows.length)} ${noun}`;
    get("page").textContent = `${number(first)} to ${number(screen * SCREEN + seen.length)}, page ${screen + 1} of ${screens}`;
    get("before").disabled = screen === 0;
    get("after").disabled = screen === screens - 1;
    const chips = Object.entries(filters).map(([name, value]) => {
      const { [name]: _, ...others } = filters;
      const said = `${name === "words" ? "words" : columns.find(({ slug }) => slug === name).name}: ${value}`;
      return el("button", { class: "chip", type: "button", "aria-label": `remove the filter ${said}`, onclick: () => { show(others); remember(); } }, said);
    });
    for (const chip of get("chips").querySelectorAll("button")) chip.remove();
    get("chips").append(...chips);
    if (get("shown").textContent !== of) get("shown").textContent = of;
    for (const head of table.querySelectorAll("[data-column]")) {
      if (head.dataset.column === order.column) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    for (const input of document.querySelectorAll("[data-filter]")) {
      const value = filters[input.dataset.filter] ?? "";
      if (input.value !== value) input.value = value;
    }
  }

  // A text cut at its swaps, counted in code points as Python counts.
  function swapped(text, swaps) {
    const points = Array.from(text);
    const pieces = [];
    let at = 0;
    for (const { characters: [start, end], to, shade } of [...swaps].sort((a, b) => a.position - b.position)) {
      if (shade !== undefined) pieces.push(points.slice(at, start).join(""), el("mark", { class: `shade-${shade}` }, points.slice(start, end).join("")));
      else pieces.push(points.slice(at, start).join(""), el("del", {}, points.slice(start, end).join("")), " ", el("ins", {}, to));
      at = end;
    }
    return [...pieces, points.slice(at).join("")];
  }

  function rowOf(row) {
    const open = opened.has(row.place);
    const cells = row.cells.map((value, index) => {
      const { kind, name } = columns[index];
      const text = kind === "text" ? el("div", { class: "text", dir: "auto" }, shown(value)) : shown(value);
      const inside = index === 0 && row.details.length
        ? el("button", { type: "button", class: "toggle", "aria-expanded": String(open), "aria-label": `${columns[0].name} ${shown(value)}` }, text) : text;
      return el("td", { class: kind === "number" ? "number" : kind === "text" ? "said" : null, "data-name": name }, inside);
    });
    const found = el("tr", { id: `row-${row.cells[0]}`, class: open ? "open" : null }, ...cells);
    if (row.details.length) found.addEventListener("click", (event) => { if (!event.target.closest("a") && getSelection().isCollapsed) turn(row); });
    return found;
  }
  function turn(row) {
    if (!opened.delete(row.place)) {
      opened.add(row.place);
      history.replaceState(null, "", `#row-${row.cells[0]}`);
    }
    draw();
    get(`row-${row.cells[0]}`)?.querySelector(".toggle")?.focus({ preventScroll: true });
  }
  function detailOf(row) {
    const parts = row.details.flatMap(([heading, text, swaps]) => [el("h3", {}, heading), el("p", { dir: "auto" }, ...(swaps.length ? swapped(text, swaps) : [text]))]);
    return el("tr", { class: "detail" }, el("td", { colspan: String(columns.length) }, ...parts));
  }

  // ---- export
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const asCsv = (some) => [columns.map(({ name }) => name), ...some.map(({ cells }) => cells.map(shown))].map((cells) => cells.map(quoted).join(",") + "\r\n").join("");
  const asJson = (some) => `${JSON.stringify(some.map(({ cells }) => Object.fromEntries(cells.map((value, at) => [columns[at].name, value]))), null, 1)}\n`;
  function save(name, type, text) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  // ---- hands on it
  function move(step) {
    const toggles = [...table.querySelectorAll(".toggle")];
    toggles[Math.min(Math.max(toggles.indexOf(document.activeElement) + step, 0), toggles.length - 1)]?.focus();
  }
  function leaf(step) { screen += step; draw(); table.querySelector(".toggle")?.focus({ preventScroll: true }); get("rows").scrollIntoView(); }
  function onKey(event) {
    const typing = event.target.matches?.("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = !typing && event.target.closest?.("#texts");
    if (event.key === "/" && !typing) document.querySelector("[data-filter=words]").focus();
    else if (event.key === "Escape" && typing) table.querySelector(".toggle")?.focus();
    else if (inside && ["ArrowDown", "ArrowUp"].includes(event.key)) move(event.key === "ArrowDown" ? 1 : -1);
    else if (inside && ["ArrowLeft", "ArrowRight"].includes(event.key)) leaf(event.key === "ArrowRight" ? 1 : -1);
    else if (event.key === "ArrowDown" && event.target.matches?.("input")) table.querySelector(".toggle")?.focus();
    else return;
    event.preventDefault();
  }

  function begin() {
    if (!table) return;
    const tools = get("tools");
    columns.forEach(({ name, kind, slug }, at) => {
      table.tHead.rows[0].append(el("th", { scope: "col", "data-column": slug, class: kind === "number" ? "number" : null }, el("button", { type: "button", onclick: () => {
        order = { column: slug, down: order.column === slug && !order.down };
        show(filters);
        remember();
      } }, name)));
      if (kind === "choice") {
        const values = [...new Set(rows.map(({ cells }) => shown(cells[at])))].sort();
        tools.insertBefore(el("label", {}, name, el("select", { "data-filter": slug }, el("option", { value: "" }, "every"), ...values.filter(Boolean).map((value) => el("option", { value }, value)))), tools.firstChild);
      }
    });
    for (const input of document.querySelectorAll("[data-filter]")) {
      input.addEventListener("input", () => {
        const { [input.dataset.filter]: _, ...others } = filters;
        show(input.value ? { ...others, [input.dataset.filter]: input.value } : others);
        remember();
      });
    }
    get("before").addEventListener("click", () => leaf(-1));
    get("after").addEventListener("click", () => leaf(1));
    get("csv").addEventListener("click", () => save(`${noun}.csv`, "text/csv", asCsv(listed)));
    get("json").addEventListener("click", () => save(`${noun}.json`, "application/json", asJson(listed)));
    window.addEventListener("hashchange", follow);
    document.addEventListener("keydown", onKey);
    tools.hidden = table.hidden = get("pager").hidden = false;
    list();
    draw();
    follow();
  }

  unpack().then(() => { begin(); document.documentElement.dataset.ready = "1"; }, (error) => { if (get("shown")) get("shown").textContent = `The rows cannot be unpacked (${error}).`; });
})();
