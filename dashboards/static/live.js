// Keeps the part of a page that changes up to date: on each server-sent event, or every few seconds where there are none.
// Without it the page reloads itself (meta refresh).
"use strict";

const PAUSE_MS = 2000; // a worker's batches come several a second, and a fragment may be judged anew each time
const live = document.getElementById("live");

function isFinished() {
  const mark = live.querySelector("[data-state]");
  return mark !== null && mark.dataset.state === "finished";
}

function note(text) {
  const place = document.getElementById("live-note");
  if (place !== null && place.textContent !== text) place.textContent = text;
}

function swap(html) {
  const opened = new Map([...live.querySelectorAll("details[id]")].map((each) => [each.id, each.open]));
  const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  live.innerHTML = html; // escaped by the server; the page's policy allows no inline script
  for (const each of live.querySelectorAll("details[id]")) {
    if (opened.has(each.id)) each.open = opened.get(each.id);
  }
  if (focused !== null) live.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

async function refresh() {
  try {
    const answer = await fetch(live.dataset.fragment);
    if (answer.ok) swap(await answer.text());
    return answer.ok;
  } catch {
    return false;
  }
}

function follow(address) {
  let waiting = false;
  const source = new EventSource(address);
  const look = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(async () => {
      waiting = false;
      await refresh();
      if (isFinished()) {
        source.close();
        note("This run has ended.");
      }
    }, PAUSE_MS);
  };
  source.addEventListener("open", () => note("Live."));
  source.addEventListener("entry", look);
  source.addEventListener("progress", look);
  source.addEventListener("error", () => note("No connection to the service; trying again."));
}

if (live !== null && !isFinished()) {
  if (live.dataset.events !== undefined) follow(live.dataset.events);
  else {
    const timer = setInterval(async () => {
      await refresh();
      if (isFinished()) clearInterval(timer);
    }, 1000 * Number(live.dataset.every));
  }
}
