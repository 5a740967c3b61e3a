// Users and rights of brokers.
import { get, path, post, put, query, remove, session } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count, moment } from "../format.js";
import { badge, callout, confirmByName, dialog, empty, field, head, table, trouble as shownTrouble } from "../parts.js";
import { show as reload } from "../router.js";
import { said, t } from "../words.js";

const QUOTAS = ["sendMessagesPerSecond", "sendBytesPerSecond", "readMessagesPerSecond", "readBytesPerSecond", "connections", "newConnectionsPerSecond", "topics", "storedBytes"];
const ACTIONS = ["All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List"];

export async function show(root) {
  const data = h("div", { class: "stack" });
  root.append(head(t("Access"), { says: t("users of the brokers, and what they may do"), actions: session.may_change ? [h("button", { id: "new-user", onclick: newUser }, t("New user")), h("button", { id: "new-right", onclick: newRight }, t("New right")), h("button", { id: "new-quota", onclick: () => setQuota() }, t("Set quota"))] : [] }), data);
  if (!session.account) { fill(data, callout(t("Log in to see accounts."), "warn")); return; }
  let page;
  // Tokens are not the brokers' matter: they are there when brokers say nothing, or keep no users.
  try { page = await get("/api/access"); } catch (error) { fill(data, shownTrouble(error), await tokens(), await quotas()); return; }
  fill(data,
    page.trouble && callout(said(page.trouble, page.trouble_phrase), "warn"),
    h("div", { class: "card flush" }, h("h2", null, t("Users")), table([
      { name: t("Name"), kind: "name", of: (row) => row.name },
      { name: t("Kind"), of: (row) => badge(row.kind, row.kind === "Super" ? "warn" : "") },
      { name: t("State"), of: (row) => (row.status === "disable" ? badge(t("disabled"), "bad") : badge(t("enabled"), "good")) },
      { name: t("Brokers"), kind: "soft", of: (row) => row.brokers.join(", ") },
      { name: "", kind: "actions", of: (row) => [h("button", { class: "small", onclick: () => editUser(row) }, t("Change")), " ", h("button", { class: "small danger", onclick: () => dropUser(row) }, t("Delete"))] },
    ], page.users, { nothing: empty(t("No users")) })),
    h("div", { class: "card flush" }, h("h2", null, t("Rights")), rightsTable(page.rights, empty(t("No rights")))),
    tester(),
    await tokens(),
    await quotas());
}

// Also a tab of a topic's page.
export function rightsTable(rights, nothing) {
  return table([
    { name: t("Subject"), kind: "name", of: (row) => row.subject },
    { name: t("Resource"), kind: "mono", of: (row) => row.resource },
    { name: t("Actions"), of: (row) => row.actions.map((action) => [badge(action), " "]) },
    { name: t("Decision"), of: (row) => badge(t(row.decision), row.decision === "Deny" ? "bad" : "good") },
    { name: t("From addresses"), kind: "mono", of: (row) => row.source_ips.join(" ") || "–" },
    { name: "", kind: "actions", of: (row) => h("button", { class: "small danger", onclick: () => dropRight(row) }, t("Delete")) },
  ], rights, { nothing });
}

async function quotas() {
  const page = await get("/api/quotas").catch((error) => error);
  if (page instanceof Error) return shownTrouble(page);
  return h("div", { class: "card flush", id: "quotas" }, h("h2", null, t("Quotas")), page.trouble && callout(said(page.trouble, page.trouble_phrase), "warn"), table([
    { name: t("Subject"), of: (row) => badge(row.subject === "account" ? t("account") : t("namespace")) },
    { name: t("Name"), kind: "name", of: (row) => row.name || "–" },
    { name: t("Quota"), kind: "mono", of: (row) => row.quota },
    { name: t("Limit"), kind: "number", of: (row) => count(row.limit) },
    { name: t("Used"), kind: "number", of: (row) => count(Math.round(row.used)) },
    { name: t("Exceeded"), kind: "number", of: (row) => (row.exceeded ? badge(count(row.exceeded), "warn") : "0") },
    { name: t("Broker"), kind: "soft", of: (row) => row.broker },
    { name: "", kind: "actions", of: (row) => session.may_change && [h("button", { class: "small", onclick: () => setQuota(row) }, t("Change")), " ", h("button", { class: "small danger", onclick: () => dropQuota(row) }, t("Delete"))] },
  ], page.quotas, { nothing: empty(t("No quotas")) }));
}

// For scripts; the operator alone has to do with them.
async function tokens() {
  const page = await get("/api/access/tokens").catch((error) => error);
  if (page instanceof Error) return page.status === 403 ? null : shownTrouble(page);
  return h("div", { class: "card flush", id: "tokens" },
    h("div", { class: "card-head" }, h("h2", null, t("Tokens for scripts")), h("span", { class: "grow" }), h("button", { class: "small", id: "new-token", onclick: newToken }, t("New token"))), table([
      { name: t("Name"), kind: "name", of: (row) => row.name },
      { name: t("May"), of: (row) => (row.may_change ? badge(t("look and change"), "warn") : badge(t("look"))) },
      { name: t("Made by"), of: (row) => row.made_by || "–" },
      { name: t("Made"), kind: "soft", of: (row) => moment(row.made_ms) },
      { name: t("Used"), kind: "soft", of: (row) => (row.used_ms ? ago(row.used_ms) : t("never")) },
      { name: "", kind: "actions", of: (row) => h("button", { class: "small danger", onclick: () => dropToken(row) }, t("Take back")) },
    ], page.tokens, { nothing: empty(t("No tokens"), t("A script sends one with each request: Authorization: Bearer …")) }));
}

function newToken() {
  dialog({
    title: t("New token"), action: t("Create"),
    body: [field({ name: "name", label: t("Name"), required: true, placeholder: "nightly-report" }), field({ name: "may_change", label: t("For changes, too"), type: "checkbox" }), callout(t("Whoever has it may do what the console's own account may."), "warn")],
    act: async (values) => {
      const made = await post("/api/access/tokens", values);
      reload();
      dialog({ title: t("New token"), body: [callout(t("It is shown this once: copy it now."), "warn"), h("p", { class: "mono", id: "token-text", style: { "overflow-wrap": "anywhere" } }, made.token)] });
      return "";
    },
  });
}

function dropToken(row) {
  dialog({ title: t("Take back"), action: t("Take back"), kind: "primary danger", body: callout(t("Scripts with the token {name} are refused from now on.", { name: row.name }), "warn"), act: async () => again(await remove(path("access", "tokens", row.id))) });
}

function tester() {
  const verdict = h("div");
  const form = h("form", { class: "card" }, h("h2", null, t("May this user do that?")),
    h("div", { class: "form-row" }, field({ name: "user", label: t("User") }), field({ name: "resource", label: t("Resource"), placeholder: "Topic:Orders" }), field({ name: "action", label: t("Action"), options: ACTIONS.slice(1) }), field({ name: "address", label: t("From address (empty: anywhere)"), placeholder: "192.0.2.1" })),
    h("div", { class: "bar", style: { "margin-top": "12px" } }, h("button", null, t("Ask"))), verdict);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    const answer = await get(query("/api/access/may", values)).catch((error) => error);
    fill(verdict, answer instanceof Error ? shownTrouble(answer) : callout(`${answer.allowed ? t("Yes") : t("No")}: ${answer.because}`, answer.allowed ? "good" : "bad"));
  });
  return form;
}

const again = (done) => { reload(); return done.done; };

function newUser() {
  dialog({
    title: t("New user"), action: t("Create"),
    body: [field({ name: "name", label: t("Name"), required: true }), field({ name: "password", label: t("Password"), type: "password", required: true }), field({ name: "kind", label: t("Kind"), options: [["Normal", t("Normal: what its rights allow")], ["Super", t("Super: everything")]] })],
    act: async (values) => again(await post("/api/access/users", values)),
  });
}

function editUser(row) {
  dialog({
    title: t("Change {name}", { name: row.name }), action: t("Apply"),
    body: [field({ name: "password", label: t("New password"), type: "password", hint: t("Empty: it stays") }), field({ name: "kind", label: t("Kind"), options: ["Normal", "Super"], value: row.kind }), field({ name: "status", label: t("State"), options: [["enable", t("enabled")], ["disable", t("disabled")]], value: row.status })],
    act: async (values) => again(await put(path("access", "users", row.name), { ...values, password: values.password || null })),
  });
}

function dropUser(row) {
  confirmByName({ title: t("Delete {name}", { name: row.name }), name: row.name, action: t("Delete user"), effects: callout(t("Clients with this account are refused from now on."), "warn"), act: async () => again(await remove(path("access", "users", row.name))) });
}

function newRight() {
  dialog({
    title: t("New right"), action: t("Give"),
    body: [
      field({ name: "subject", label: t("Subject"), placeholder: "User:alice", required: true }), field({ name: "resource", label: t("Resource"), placeholder: "Topic:Orders, Group:Billing*, Cluster:*", required: true }),
      h("div", { class: "bar" }, ACTIONS.map((action) => field({ name: `action-${action}`, label: action, type: "checkbox" }))),
      field({ name: "decision", label: t("Decision"), options: [["Allow", t("Allow")], ["Deny", t("Deny")]] }), field({ name: "source_ips", label: t("From addresses"), hint: t("Separated by blanks; empty: from everywhere") })],
    act: async (values) => again(await post("/api/access/rights", { subject: values.subject, resource: values.resource, decision: values.decision, actions: ACTIONS.filter((action) => values[`action-${action}`]), source_ips: values.source_ips.split(/\s+/).filter(Boolean) })),
  });
}

function dropRight(row) {
  dialog({ title: t("Delete right"), action: t("Delete"), kind: "primary danger", body: callout(`${row.subject} · ${row.resource}`, "warn"), act: async () => again(await remove("/api/access/rights", { subject: row.subject, resource: row.resource })) });
}

function setQuota(row = { subject: "account", name: "", quota: QUOTAS[0], limit: "" }) {
  dialog({
    title: t("Set quota"), action: t("Apply"),
    body: [
      field({ name: "subject", label: t("Subject"), options: [["account", t("account")], ["namespace", t("namespace")]], value: row.subject }),
      field({ name: "name", label: t("Name"), value: row.name, hint: t("*: each without a quota of its own") }),
      field({ name: "quota", label: t("Quota"), options: QUOTAS, value: row.quota, hint: t("connections are of accounts; the topics of an account are those that it created") }),
      field({ name: "limit", label: t("Limit"), type: "number", value: row.limit, min: 1, required: true })],
    act: async (values) => again(await put("/api/quotas", values)),
  });
}

function dropQuota(row) {
  dialog({ title: t("Delete quota"), action: t("Delete"), kind: "primary danger", body: callout(`${row.name || "–"} · ${row.quota}`, "warn"), act: async () => again(await put("/api/quotas", { subject: row.subject, name: row.name, quota: row.quota, limit: null })) });
}
