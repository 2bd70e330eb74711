// Keeps a served page fresh: asks for the page again and takes over what changes of it.

const PAUSE = 2000;

async function refresh(): Promise<void> {
  const live = document.getElementById("live");
  if (!live || document.hidden) return;
  const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
  if (!answer.ok) return;
  // Parsed, not run: scripts of a parsed page never start, and the page's policy allows none but this file.
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
  if (!fresh || fresh.isEqualNode(live)) return;
  const focused = document.activeElement?.id;
  live.replaceChildren(...fresh.childNodes);
  if (focused) document.getElementById(focused)?.focus();
}

function again(): void {
  // A server that is gone may come back.
  refresh().catch(() => undefined).finally(() => setTimeout(again, PAUSE));
}

setTimeout(again, PAUSE);
