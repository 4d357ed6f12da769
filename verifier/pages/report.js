"use strict";
// The table of texts of report.html: its rows are unpacked from the page, and one screen of them is drawn at a time.
// What users wrote goes into the page as text only, never as HTML.
(function () {
  const SCREEN = 50;
  const STATUSES = ["exact", "unbreakable", "open", "ambiguous", "already_wrong"];
  const GROUNDS = {
    float32: "proved for every float32 evaluation of the model, in any order of summation",
    kernel: "proved as far as the runtime's functions err by no more than was measured",
    real: "proved over real arithmetic with the model's weights, without what float32 rounds",
    replay: "not proved: every such sentence was evaluated by the deployed model, here",
  };
  const get = (id) => document.getElementById(id);
  const body = document.querySelector("#texts tbody");
  const spaced = (name) => name.replaceAll("_", " ");
  const number = (value) => value.toLocaleString("en");
  const swapsOf = (count) => (count === 1 ? "1 swap" : `${count} swaps`);

  let about = { labels: [] };
  let options = null;  // lists of a word and its candidates; null where the page has no room for them
  let rows = [];      // all, weakest first
  let listed = [];    // those that the filters keep, in the order asked for
  let filters = {};   // name -> value, see FILTERS
  let order = { column: "min_swaps", down: false };
  let screen = 0;
  const opened = new Set();  // ids of the rows that are open

  // Elements: el("p", { class: "more" }, "text", otherElement)
  function el(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "onclick") element.addEventListener("click", value);
      else if (value !== null) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  // What there is to filter by: how a filter is called, how its value is shown, which rows it keeps.
  const labelOf = (index) => about.labels[index] ?? `class ${index}`;
  const high = (line) => line.min_swaps.high ?? Infinity;
  const never = (line) => line.status === "unbreakable";
  const FILTERS = {
    status: { name: "status", shown: spaced, keeps: ({ line }, value) => line.status === value },
    label: { name: "label", shown: (value) => labelOf(+value), keeps: ({ line }, value) => line.label === +value },
    level: { name: "level", shown: String, keeps: ({ line }, value) => line.level === value },
    engine: { name: "engine", shown: String, keeps: ({ line }, value) => (line.engine ?? "") === value },
    low: { name: "low end of min_swaps", shown: String, keeps: ({ line }, value) => line.min_swaps.low === +value },
    finite: {
      name: "counted in MMWS", shown: () => "yes",
      keeps: ({ line }) => (line.status === "exact" || line.status === "open") && line.min_swaps.high !== null,
    },
    correct: { name: "answered rightly", shown: () => "yes", keeps: ({ line }) => line.predicted === line.label },
    cut: { name: "cut to the model's length", shown: () => "yes", keeps: ({ line }) => line.cut > 0 },
    robust: {
      name: "certified at", shown: (value) => swapsOf(+value),
      keeps: ({ line }, value) => never(line) || (line.status !== "ambiguous" && line.min_swaps.low > +value),
    },
    unbroken: { name: "not known to be broken by", shown: (value) => swapsOf(+value), keeps: ({ line }, value) => high(line) > +value },
    words: { name: "words", shown: (value) => `“${value}”`, keeps: ({ words }, value) => words.includes(value.toLowerCase()) },
  };

  // What there is to sort by; min_swaps ascending is the order of the rows in the page: weakest first.
  const COLUMNS = {
    id: (row) => row.line.id,
    label: (row) => labelOf(row.line.label),
    min_swaps: (row) => row.place,
    status: (row) => STATUSES.indexOf(row.line.status),
    text: (row) => row.words,
    level: (row) => Object.keys(GROUNDS).indexOf(row.line.level),
    engine: (row) => row.line.engine ?? "",
    seconds: (row) => row.line.seconds,
  };

  async function unpack() {
    const bytes = Uint8Array.from(atob(get("packed").textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const text = await new Response(stream).text();
    const [first, ...others] = JSON.parse(`[${text.trimEnd().replaceAll("\n", ",")}]`);
    [about, options] = first;
    rows = others.map(([line, places], place) => ({
      line, places, place,
      words: [line.text, ...(line.witness?.swaps ?? []).map((swap) => swap.to)].join(" ").toLowerCase(),
    }));
  }

  // ---- what is listed
  function list() {
    const active = Object.entries(filters);
    listed = rows.filter((row) => active.every(([name, value]) => FILTERS[name].keeps(row, value)));
    if (order.column === "min_swaps" && !order.down) return;
    const key = COLUMNS[order.column];
    const keys = new Map(listed.map((row) => [row, key(row)]));
    const sign = order.down ? -1 : 1;
    const last = (row) => (order.column === "min_swaps" && row.line.status === "already_wrong" ? 1 : 0);
    listed.sort((one, other) => {
      const [a, b] = [keys.get(one), keys.get(other)];
      return last(one) - last(other) || (a < b ? -sign : a > b ? sign : one.place - other.place);
    });
  }

  function show(changes) {
    filters = changes;
    screen = 0;
    list();
    draw();
  }

  // The address says what is listed, so that it can be copied.
  function remember() {
    const said = { ...filters };
    if (order.column !== "min_swaps" || order.down) Object.assign(said, { sort: order.column, ...(order.down ? { down: "1" } : {}) });
    const query = new URLSearchParams(said).toString();
    history.replaceState(null, "", query ? `#rows?${query}` : "#rows");
  }

  function follow() {
    const there = location.hash.slice(1);
    const id = /^text-(\d+)$/.exec(there);
    for (const row of body.querySelectorAll("tr.target")) row.classList.remove("target");
    if (id) {
      filters = {};
      list();
      const at = listed.findIndex(({ line }) => line.id === +id[1]);
      if (at < 0) return draw();
      screen = Math.floor(at / SCREEN);
      opened.add(+id[1]);
      draw();
      const row = get(there);
      row.classList.add("target");
      row.scrollIntoView({ block: "center" });
    } else if (there === "rows" || there.startsWith("rows?")) {
      const { sort, down, ...asked } = Object.fromEntries(new URLSearchParams(there.slice(5)));
      if (sort in COLUMNS) order = { column: sort, down: down === "1" };
      show(Object.fromEntries(Object.entries(asked).filter(([name, value]) => name in FILTERS && value !== "")));
      get("rows").scrollIntoView();
    }
  }

  // ---- drawing
  function draw() {
    const screens = Math.max(1, Math.ceil(listed.length / SCREEN));
    screen = Math.min(Math.max(screen, 0), screens - 1);
    const seen = listed.slice(screen * SCREEN, (screen + 1) * SCREEN);
    body.replaceChildren(...seen.flatMap((row) => (opened.has(row.line.id) ? [rowOf(row), detailOf(row)] : [rowOf(row)])));
    const first = listed.length ? screen * SCREEN + 1 : 0;
    const of = listed.length === rows.length ? `${number(rows.length)} texts` : `${number(listed.length)} of ${number(rows.length)} texts`;
    get("page").textContent = `${number(first)} to ${number(screen * SCREEN + seen.length)}, page ${screen + 1} of ${screens}`;
    get("before").disabled = screen === 0;
    get("after").disabled = screen === screens - 1;
    drawChips(of);
    for (const head of document.querySelectorAll("#texts [data-column]")) {
      if (head.dataset.column === order.column) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    for (const input of document.querySelectorAll("[data-filter]")) {
      const value = filters[input.dataset.filter] ?? "";
      if (input.value !== value) input.value = value;
    }
  }

  function drawChips(of) {
    const chips = Object.entries(filters).map(([name, value]) => {
      const { [name]: _, ...others } = filters;
      const said = `${FILTERS[name].name}: ${FILTERS[name].shown(value)}`;
      return el("button", { class: "chip", type: "button", "aria-label": `remove the filter ${said}`, onclick: () => { show(others); remember(); } }, said);
    });
    if (chips.length > 1) chips.push(el("button", { type: "button", onclick: () => { show({}); remember(); } }, "all texts"));
    for (const chip of get("chips").querySelectorAll("button")) chip.remove();
    get("chips").append(...chips);
    if (get("shown").textContent !== of) get("shown").textContent = of;
  }

  function endsOf(line) {
    const { low, high } = line.min_swaps;
    if (never(line)) return "never";
    return low === high ? String(low) : `[${low}, ${high ?? "?"}]`;
  }

  // The text cut at its swaps, counted in code points as Python counts.
  function swapped(line) {
    const swaps = [...(line.witness?.swaps ?? [])].sort((a, b) => a.position - b.position);
    if (!swaps.length) return [line.text];
    const points = Array.from(line.text);
    const pieces = [];
    let at = 0;
    for (const { characters: [start, end], to } of swaps) {
      pieces.push(points.slice(at, start).join(""), el("del", {}, points.slice(start, end).join("")), " ", el("ins", {}, to));
      at = end;
    }
    return [...pieces, points.slice(at).join("")];
  }

  function rowOf(row) {
    const { line } = row;
    const open = opened.has(line.id);
    const toggle = el("button", { type: "button", class: "toggle", "aria-expanded": String(open), "aria-controls": open ? `detail-${line.id}` : null, "aria-label": `text ${line.id}` }, String(line.id));
    const found = el("tr", { id: `text-${line.id}`, class: open ? "open" : null },
      el("td", { class: "number" }, toggle),
      el("td", {}, labelOf(line.label)),
      el("td", { class: "number" }, endsOf(line)),
      el("td", {}, el("span", { class: `status ${line.status}` }, spaced(line.status))),
      el("td", {}, el("div", { class: "text", dir: "auto" }, ...swapped(line))),
      el("td", {}, line.level),
      el("td", {}, line.engine ?? ""),
      el("td", { class: "number" }, line.seconds.toFixed(3)));
    found.addEventListener("click", (event) => {
      if (!event.target.closest("a") && getSelection().isCollapsed) turn(row, found);
    });
    return found;
  }

  function turn(row, found) {
    const { id } = row.line;
    if (opened.delete(id)) found.nextElementSibling.remove();
    else {
      opened.add(id);
      found.after(detailOf(row));
      history.replaceState(null, "", `#text-${id}`);
    }
    const open = opened.has(id);
    found.classList.toggle("open", open);
    const toggle = found.querySelector(".toggle");
    toggle.setAttribute("aria-expanded", String(open));
    if (open) toggle.setAttribute("aria-controls", `detail-${id}`);
    else toggle.removeAttribute("aria-controls");
  }

  // ---- one text
  function detailOf(row) {
    const { line } = row;
    const parts = [...claimOf(line), ...leftOutOf(line), ...wordsOf(row), ...droppedOf(line), ...othersOf(line), ...historyOf(line), ...checkOf(line)];
    return el("tr", { class: "detail", id: `detail-${line.id}` }, el("td", { colspan: "8" }, ...parts));
  }

  const heading = (text) => el("h3", {}, text);
  const paragraph = (...children) => el("p", {}, ...children);

  // What is claimed of a text, in plain words.
  function claimOf(line) {
    const { low, high } = line.min_swaps;
    const label = labelOf(line.label);
    const ground = GROUNDS[line.level] ?? line.level;
    const said = [];
    if (line.status === "already_wrong") {
      const answer = line.predicted === null ? "another class" : labelOf(line.predicted);
      said.push(`The model answers ${answer}, and the label is ${label}: no swap is needed.`);
    } else if (line.status === "unbreakable") {
      said.push(`However many of its words are swapped, the answer stays ${label} (${ground}).`);
    } else if (low > 1) {
      said.push(`With at most ${swapsOf(low - 1)} the answer stays ${label} (${ground}).`);
    } else {
      said.push(low === 1 ? `Without a swap the answer is ${label}.` : "Nothing is known that the answer withstands.");
    }
    if (high) said.push(`${high === 1 ? "The swap marked above changes" : `The ${high} swaps marked above change`} it: replayed through the deployed model.`);
    else if (line.status === "open") said.push("No sentence is known that changes it.");
    if (line.reason) said.push(`Why it is ${line.status}: ${line.reason}.`);
    if (line.rounding) said.push(`Rounding decides of fewer swaps: ${line.rounding}.`);
    if (line.covered) {
      const { robust, total, swaps, level } = line.covered;
      const share = Number((BigInt(robust) * 1000000n) / BigInt(total)) / 10000;
      const keep = level === "replay" ? "were evaluated and keep" : "are proved to keep";
      said.push(`Of its sentences with at most ${swapsOf(swaps)}, ${share.toFixed(4)} % ${keep} the answer (${level}).`);
    }
    for (const claim of line.claims ?? []) said.push(`Claimed by ${claim.by}, not proved: ${swapsOf(claim.low - 1)} are harmless.`);
    const found = [heading("What is claimed"), paragraph(said.join(" "))];
    if (line.contradiction) found.push(el("p", { class: "verdict unchecked" }, line.contradiction));
    if (line.witness?.sentence && high) found.push(paragraph(el("span", { class: "more" }, "The sentence that fools the model: "), el("span", { dir: "auto" }, line.witness.sentence)));
    return found;
  }

  function leftOutOf(line) {
    const words = (count) => (count === 1 ? "1 word" : `${number(count)} words`);
    const parts = [`${words(line.positions)}, ${line.candidates === 1 ? "1 single swap" : `${number(line.candidates)} single swaps`}`];
    if (line.cut) parts.push(`${words(line.cut)} beyond the model's length ${line.cut === 1 ? "is" : "are"} not read`);
    if (line.unknown) parts.push(`${words(line.unknown)} unknown to the vocabulary: not swapped unless asked`);
    const counted = about.left_out ? "" : " What was left out of the swaps of all texts, and why, is counted under “The swaps”.";
    return [el("p", { class: "more" }, `${parts.join("; ")}.${counted}`)];
  }

  // The candidates that its words did not get, word by word, with the reasons.
  function droppedOf(line) {
    if (!about.left_out) return [];
    const numbers = about.left_out.texts[line.id] ?? [];
    if (!numbers.length) return [el("p", { class: "more" }, "No candidate of its words was left out.")];
    const lists = numbers.map((number) => about.left_out.words[number]);
    const count = lists.reduce((sum, [, reasons]) => sum + reasons.reduce((own, [, found]) => own + found.length, 0), 0);
    const items = lists.flatMap(([word, reasons]) => [el("dt", {}, word), el("dd", {}, ...reasons.flatMap(([reason, found], place) => [place ? "; " : "", found.join(", "), " ", el("span", { class: "more" }, `(${reason})`)]))]);
    return [el("details", {}, el("summary", {}, `What was left out of its swaps, and why: ${number(count)} candidate${count === 1 ? "" : "s"}`), el("dl", { class: "words" }, ...items))];
  }

  // What other runs found of it, as they were given to `report --beside`.
  function othersOf(line) {
    return (about.beside?.[line.id] ?? []).flatMap(([name, said, marks]) => [heading(name), el("p", { dir: "auto" }, ...shaded(said, marks))]);
  }
  function shaded(said, marks) {
    const points = Array.from(said);
    const pieces = [];
    let at = 0;
    for (const { characters: [start, end], shade } of marks) {
      pieces.push(points.slice(at, start).join(""), el("mark", { class: `shade-${shade}` }, points.slice(start, end).join("")));
      at = end;
    }
    return [...pieces, points.slice(at).join("")];
  }

  function wordsOf({ line, places }) {
    if (!options) return [el("p", { class: "more" }, "The candidates of its words stand in spaces.jsonl.")];
    if (!places?.length) return [el("p", { class: "more" }, "None of its words can be swapped.")];
    const taken = new Map((line.witness?.swaps ?? []).map((swap) => [swap.position, swap.to]));
    const items = places.flatMap(([position, number]) => {
      const [word, ...others] = options[number];
      const shown = others.flatMap((other, index) => [index ? ", " : "", taken.get(position) === other ? el("ins", {}, other) : other]);
      const name = taken.has(position) ? el("del", {}, word) : word;
      return [el("dt", {}, name, " ", el("span", { class: "more" }, String(position + 1))), el("dd", {}, ...shown)];
    });
    return [...rejecting(line), heading(`Words that can be swapped (${places.length}), and for what`), el("dl", { class: "words" }, ...items)];
  }

  // A reader who sees "at -> during" stops believing the number: what to do about it.
  const inShell = (word) => (/^[\w.-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", "'\\''")}'`);
  function rejecting(line) {
    const swaps = line.witness?.swaps ?? [];
    if (!swaps.length) return [];
    const commands = swaps.map(({ from, to }) => {
      const command = `swapproof synonyms reject ${[from, to].map((word) => inShell(word.toLowerCase())).join(" ")} --task task.toml`;
      const copy = el("button", { type: "button", "aria-label": `copy the command that rejects ${from} and ${to}` }, "copy");
      copy.addEventListener("click", () => navigator.clipboard.writeText(command).then(() => { copy.textContent = "copied"; }, () => { copy.textContent = "copy it by hand"; }));
      return el("p", { class: "reject" }, el("code", {}, command), " ", copy);
    });
    return [heading("Is one of these no synonym?"), paragraph("Reject the pair and give certify again: only texts whose swaps this changes are settled again."), ...commands];
  }

  // How each engine narrowed the interval, where the run recorded it.
  function historyOf(line) {
    if (!line.history?.length) return [heading("Time"), paragraph(`${line.engine ?? "no engine"} was last; ${line.seconds.toFixed(3)} s, ${number(line.evaluations)} sentences evaluated, ${number(line.requests)} calls of the runtime.`)];
    const cells = (tag, ...values) => el("tr", {}, ...values.map((value, index) => el(tag, index ? { class: "number" } : {}, value)));
    return [heading("How each engine narrowed the interval"), el("table", {},
      el("thead", {}, cells("th", "engine", "low", "high", "seconds")),
      el("tbody", {}, ...line.history.map((step) => cells("td", step.engine, String(step.low), step.high === null ? "?" : String(step.high), step.seconds.toFixed(3)))))];
  }

  function checkOf(line) {
    const named = line.certificate ?? line.transcript ?? "";
    const evidence = /^(certificates|transcripts)\/\d{6}\.json$/.test(named) ? named : null;
    const copy = el("button", { type: "button" }, "copy link");
    copy.addEventListener("click", () => navigator.clipboard.writeText(`${location.href.split("#")[0]}#text-${line.id}`).then(() => { copy.textContent = "copied"; }, () => { copy.textContent = "copy it from the address bar"; }));
    const found = [heading("How to check it")];
    if (evidence) {
      const what = line.certificate ? "Certificate" : "Transcript";
      found.push(paragraph(`${what}: `, el("a", { href: evidence }, evidence), ". In the folder of this page, ", el("code", {}, "swapproof check ."), line.certificate ? " checks it and replays the sentence above; " : " asks the model again.", ...(line.certificate ? [el("code", {}, "python -I -S proofs/check.py ."), " (from a clone, with its path) checks the certificate alone."] : [])));
    } else found.push(paragraph("There is no certificate: nothing is claimed of this text but what was replayed. ", el("code", {}, "swapproof check ."), " in the folder of this page replays it."));
    return [...found, paragraph(el("a", { href: `#text-${line.id}` }, `#text-${line.id}`), " ", copy)];
  }

  // ---- export
  const CELLS = {
    id: ({ line }) => line.id, label: ({ line }) => labelOf(line.label),
    predicted: ({ line }) => (line.predicted === null ? "" : labelOf(line.predicted)),
    low: ({ line }) => line.min_swaps.low, high: ({ line }) => line.min_swaps.high ?? "",
    status: ({ line }) => line.status, level: ({ line }) => line.level, engine: ({ line }) => line.engine ?? "",
    seconds: ({ line }) => line.seconds, candidates: ({ line }) => line.candidates, text: ({ line }) => line.text,
    swaps: ({ line }) => (line.witness?.swaps ?? []).map((swap) => `${swap.position}:${swap.from}>${swap.to}`).join(" "),
    certificate: ({ line }) => line.certificate ?? "",
  };
  const quoted = (value) => (/[",\r\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const asCsv = (some) => [Object.keys(CELLS), ...some.map((row) => Object.values(CELLS).map((cell) => cell(row)))].map((cells) => cells.map(quoted).join(",") + "\r\n").join("");
  const asJson = (some) => `${JSON.stringify(some.map((row) => row.line), null, 1)}\n`;
  function save(name, type, text) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  // ---- hands on it
  function fill(name, values, shown) {
    const select = document.querySelector(`[data-filter=${name}]`);
    select.replaceChildren(el("option", { value: "" }, "every"), ...values.map((value) => el("option", { value }, shown(value))));
  }
  function move(step) {
    const toggles = [...body.querySelectorAll(".toggle")];
    const at = toggles.indexOf(document.activeElement);
    toggles[Math.min(Math.max(at + step, 0), toggles.length - 1)]?.focus();
  }
  function leaf(step) {
    screen += step;
    draw();
    body.querySelector(".toggle")?.focus({ preventScroll: true });
    get("rows").scrollIntoView();
  }
  function onKey(event) {
    const typing = event.target.matches?.("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !typing) document.querySelector("[data-filter=words]").focus();
    else if (event.key === "Escape" && typing) body.querySelector(".toggle")?.focus();
    else if (!typing && event.target.closest?.("#texts") && ["ArrowDown", "ArrowUp"].includes(event.key)) move(event.key === "ArrowDown" ? 1 : -1);
    else if (!typing && event.target.closest?.("#texts") && ["ArrowLeft", "ArrowRight"].includes(event.key)) leaf(event.key === "ArrowRight" ? 1 : -1);
    else if (event.key === "ArrowDown" && event.target.matches?.("input")) body.querySelector(".toggle")?.focus();
    else return;
    event.preventDefault();
  }

  function begin() {
    const present = (value) => [...new Set(rows.map(value))];
    fill("status", STATUSES.filter((status) => rows.some(({ line }) => line.status === status)), spaced);
    fill("label", present(({ line }) => line.label).sort((a, b) => a - b).map(String), (value) => labelOf(+value));
    fill("level", Object.keys(GROUNDS).filter((level) => rows.some(({ line }) => line.level === level)), String);
    fill("engine", present(({ line }) => line.engine ?? "").filter(Boolean).sort(), String);
    for (const input of document.querySelectorAll("[data-filter]")) {
      input.addEventListener("input", () => {
        const { [input.dataset.filter]: _, ...others } = filters;
        show(input.value ? { ...others, [input.dataset.filter]: input.value } : others);
        remember();
      });
    }
    for (const head of document.querySelectorAll("#texts [data-column]")) {
      const { column } = head.dataset;
      head.replaceChildren(el("button", { type: "button", onclick: () => {
        order = { column, down: order.column === column && !order.down };
        show(filters);
        remember();
      } }, head.textContent));
    }
    get("before").addEventListener("click", () => leaf(-1));
    get("after").addEventListener("click", () => leaf(1));
    get("csv").addEventListener("click", () => save("texts.csv", "text/csv", asCsv(listed)));
    get("json").addEventListener("click", () => save("texts.json", "application/json", asJson(listed)));
    window.addEventListener("hashchange", follow);
    document.addEventListener("keydown", onKey);
    get("tools").hidden = get("texts").hidden = get("pager").hidden = false;
    list();
    draw();
    follow();
    document.documentElement.dataset.ready = "1";
  }

  get("shown").textContent = "unpacking the rows …";
  unpack().then(begin, (error) => { get("shown").textContent = `The rows cannot be unpacked (${error}); results.jsonl beside this page holds the same lines.`; });
})();
