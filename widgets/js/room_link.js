// The connection of a page to the server of a class: it comes back by itself.

import { t } from "./words.js";

/** Milliseconds until the first try, and between two at most. */
const FIRST = 400;
const LONGEST = 5000;
/** The server closes with these codes where another try would end the same way. */
const FINAL = new Set([4401, 4409, 4410]);

/**
 * Milliseconds until the next try: longer each time, and not for all phones at the same moment.
 * @param {number} tries
 * @param {number} [dice]
 */
export function pause(tries, dice = Math.random()) {
  return Math.min(LONGEST, FIRST * 2 ** Math.min(tries, 10)) * (0.5 + dice / 2);
}

/**
 * Listen to the server. Returns what ends it.
 * @param {object} hello what is said first
 * @param {{ data: (data: any) => void, state: (on: boolean) => void, over: (code: number) => void }} to
 */
export function listen(hello, to) {
  let tries = 0;
  let ended = false;
  /** @type {WebSocket} */
  let socket;
  /** @type {ReturnType<typeof setTimeout>} */
  let timer;
  const open = () => {
    const address = new URL("live", location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.hash = "";
    socket = new WebSocket(address);
    socket.onopen = () => socket.send(JSON.stringify(hello));
    socket.onmessage = (event) => {
      tries = 0;
      to.state(true);
      to.data(JSON.parse(event.data));
    };
    socket.onclose = (event) => {
      if (ended) return;
      to.state(false);
      if (FINAL.has(event.code)) return to.over(event.code);
      timer = setTimeout(open, pause(tries++));
    };
  };
  const now = () => {
    // A phone that wakes up does not wait for its timer.
    if (
      document.visibilityState === "visible" &&
      socket.readyState === WebSocket.CLOSED &&
      !ended
    ) {
      clearTimeout(timer);
      open();
    }
  };
  document.addEventListener("visibilitychange", now);
  open();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", now);
    socket.close();
  };
}

/**
 * Send JSON. The status is 0 where the server could not be reached.
 * @param {string} path
 * @param {object} message
 * @param {Record<string, string>} [headers]
 * @returns {Promise<{ status: number, why: string, wait: number }>}
 */
export async function post(path, message, headers = {}) {
  try {
    const reply = await fetch(new URL(path, location.href), {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(message),
      signal: AbortSignal.timeout?.(10_000),
    });
    const told = await reply.json().catch(() => ({}));
    return { status: reply.status, why: told.why ?? "", wait: told.wait ?? 0 };
  } catch {
    return { status: 0, why: t("there is no connection"), wait: 0 };
  }
}
