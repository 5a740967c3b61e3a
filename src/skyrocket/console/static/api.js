// The JSON endpoints: what they answer, or an error with their own words.
import { said, t } from "./words.js";

export const session = { account: null, may_change: false, csrf: "login", name_servers: [], version: "" };

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
    throw new Refused(0, { error: t("the console does not answer: it was stopped, or the network is away") });
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer);
  if (answer.done && answer.phrase) answer.done = said(answer.done, answer.phrase);
  return answer;
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
  Object.assign(session, await get("/api/session"));
}
