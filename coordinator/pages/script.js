// SPDX-License-Identifier: Apache-2.0
// Pages work without this. It asks for a page again while it can be seen, and sorts tables.
(() => {
  "use strict";
  const PERIOD_MS = 2000;
  const sorted = new Map(); // table's id: {column, up}
  let tag = null;
  let busy = false;

  function valueOf(row, column) {
    const cell = row.cells[column];
    const text = cell ? cell.dataset.v ?? cell.textContent.trim() : "";
    const number = Number(text);
    return text !== "" && !Number.isNaN(number) ? number : text;
  }

  function compare(a, b) {
    if (typeof a === typeof b) {
      return typeof a === "number" ? a - b : a.localeCompare(b);
    }
    return typeof a === "number" ? -1 : 1;
  }

  function sort(table, column, up) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    rows.sort((a, b) => (up ? 1 : -1) * compare(valueOf(a, column), valueOf(b, column)));
    body.append(...rows);
    table.querySelectorAll("th").forEach((head, i) => {
      if (i === column) {
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
      } else {
        head.removeAttribute("aria-sort");
      }
    });
  }

  function prepare(root) {
    root.querySelectorAll("table[id]").forEach(table => {
      table.querySelectorAll("thead th").forEach((head, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...head.childNodes);
        button.addEventListener("click", () => {
          const before = sorted.get(table.id);
          const up = !(before && before.column === column && before.up);
          sorted.set(table.id, {column, up});
          sort(table, column, up);
        });
        head.append(button);
      });
      const order = sorted.get(table.id);
      if (order) {
        sort(table, order.column, order.up);
      }
    });
  }

  function replace(fresh) {
    const old = document.querySelector("main");
    const main = document.importNode(fresh, true);
    old.querySelectorAll("details[id]").forEach(details => {
      const other = main.querySelector("#" + CSS.escape(details.id));
      if (other) {
        other.open = details.open;
      }
    });
    old.replaceWith(main);
    prepare(main);
  }

  function tell(text) {
    const line = document.getElementById("line");
    if (line && line.textContent !== text) {
      line.textContent = text;
    }
  }

  // A selection or a field in use is left alone until the next time.
  function isUsed() {
    const selection = getSelection();
    const active = document.activeElement;
    return (selection && !selection.isCollapsed) ||
        (active && active.closest("main") && active.matches("input, a, button, summary"));
  }

  function poll() {
    if (busy || document.hidden || isUsed()) {
      return;
    }
    busy = true;
    // It parses without a sink of Trusted Types, which fetch() and a parser would need.
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    if (tag) {
      request.setRequestHeader("If-None-Match", tag);
    }
    request.addEventListener("loadend", () => {
      busy = false;
      const page = request.response;
      const main = page && page.querySelector("main[data-live]");
      if (request.status === 200 && main) {
        tag = request.getResponseHeader("ETag");
        replace(main);
      } else if (request.status === 200) {
        location.reload(); // the cookie has ended
      }
      tell(request.status === 0 ? "wpkd does not answer" : "");
    });
    request.send();
  }

  prepare(document);
  if (document.querySelector("main[data-live]")) {
    setInterval(poll, PERIOD_MS);
    document.addEventListener("visibilitychange", poll);
  }
})();
