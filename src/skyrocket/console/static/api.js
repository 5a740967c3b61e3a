// The JSON endpoints: what they answer, or an error with their own words.
import { said, t } from "./words.js";

export const session = { account: null, may_change: false, csrf: "login", name_servers: [], version: "" };

const SILENT = () => t("the console does not answer: it was stopped, or the network is away");

export class Refused extends Error {
  constructor(status, answer) {
    super(said(answer.error, answer.phrase) || `HTTP ${status}`);
    this.status = status;
    this.kind = answer.kind || "";
  }
}

async function ask(method, path, body) {
  const headers = method === "GET" ? {} : { "Content-Type": "application/json", "X-Skyrocket-Csrf": session.csrf };
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new Refused(0, { error: SILENT() });
  }
  if (!response.ok) throw await refused(response);
  const answer = await response.json().catch(() => ({}));
  if (answer.done && answer.phrase) answer.done = said(answer.done, answer.phrase);
  return answer;
}

// The console was started anew, or another window has logged in or out: this one has to hear of it.
async function refused(response) {
  const answer = await response.json().catch(() => ({}));
  const before = session.csrf;
  if (response.status === 401 || answer.kind === "CrossSite") await refreshSession().catch(() => null);
  if (answer.kind !== "CrossSite" || session.csrf === before) return new Refused(response.status, answer);
  return new Refused(response.status, { error: t("Another window has logged in as {account} meanwhile, and so have you: look again, and try once more.", { account: session.account }) });
}

// Why a stream does not begin, which browsers do not tell; null where it does.
export async function refusalOf(address) {
  const enough = new AbortController();
  try {
    const response = await fetch(address, { signal: enough.signal, credentials: "same-origin" });
    return response.ok ? null : (await refused(response)).message;
  } catch {
    return SILENT();
  } finally {
    enough.abort();
  }
}

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);
export const put = (path, body = {}) => ask("PUT", path, body);
export const remove = (path, body = {}) => ask("DELETE", path, body);

// path("topics", name, "messages") with every name encoded
export function path(...parts) {
  return `/api/${parts.map(encodeURIComponent).join("/")}`;
}

export function query(base, values) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? `${base}?${new URLSearchParams(given)}` : base;
}

export async function refreshSession() {
  const before = session.account;
  Object.assign(session, await get("/api/session"));
  if (session.account !== before) dispatchEvent(new CustomEvent("session"));
}
