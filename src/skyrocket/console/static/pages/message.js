// One message: its body in several views, properties, and who has consumed it.
import { get, path, post, session } from "../api.js";
import { fill, h } from "../dom.js";
import { bytes, count, moment } from "../format.js";
import { badge, callout, dialog, empty, facts, field, head, notice, table } from "../parts.js";
import { go } from "../router.js";
import { t } from "../words.js";
import { jsonTree, parsedTree } from "./json_tree.js";
import { send } from "./topic.js";

const SHOWN_BYTES = 1048576; // of a body: the console sends no more

const TRACKS = { CONSUMED: "good", CONSUMED_BUT_FILTERED: "note", NOT_CONSUME_YET: "warn", NOT_ONLINE: "bad", UNKNOWN: "" };

export async function show(root, context) {
  const { topic, id } = context.names;
  const data = h("div", { class: "skeleton" });
  root.append(head(id, { crumb: { text: topic, href: `/topics/${encodeURIComponent(topic)}` } }), data);
  const page = await get(`${path("topics", topic)}/messages/${encodeURIComponent(id)}`);
  const message = page.message;
  data.className = "";
  const locked = { disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") };
  const cut = shortened(message);
  fill(data,
    h("div", { class: "bar" },
      h("button", { onclick: () => neighbour(message, -1) }, t("← Before")),
      h("button", { onclick: () => neighbour(message, 1) }, t("After →")),
      h("a", { class: "button", href: `/traces?id=${encodeURIComponent(message.message_id)}` }, t("Trace")),
      h("span", { class: "grow" }),
      h("button", { onclick: () => copy(curl(message)), ...cut }, t("Copy as curl")),
      h("button", { onclick: () => copy(python(message)), ...cut }, t("Copy as Python")),
      h("button", { id: "again", onclick: () => again(message), ...locked }, t("Send again")),
      h("button", { id: "edit", onclick: () => send(message.topic, editable(message)), ...locked, ...cut }, t("Edit and send"))),
    h("div", { class: "halves" },
      h("div", { class: "stack" }, bodyCard(message, page.decoded), tracksCard(page, message, locked)),
      h("div", { class: "stack" }, factsCard(message), propertiesCard(message))));
}

// Half a body is nothing to send: what a button for it has instead.
export function shortened(message) {
  return message.body_bytes > SHOWN_BYTES ? { disabled: true, title: t("Only the first mebibyte of its body is here. To send all of it: Send again.") } : {};
}

function bytesOf(message) {
  return Uint8Array.from(atob(message.body), (sign) => sign.charCodeAt(0));
}

export function text(message) {
  try {
    // A body that is cut may end within a letter.
    return new TextDecoder("utf-8", { fatal: true }).decode(bytesOf(message), { stream: message.body_bytes > SHOWN_BYTES });
  } catch {
    return null;
  }
}

// What a message is sent anew with; a body that is no text goes as it is.
export function editable(message) {
  const plain = text(message);
  const own = Object.entries(message.own_properties);
  const left = own.filter(([, value]) => value.includes("\n")).map(([name]) => name);
  return {
    ...(plain === null ? { body_base64: message.body } : { body: plain }),
    tags: message.tags || "",
    keys: message.keys.join(" "),
    sharding_key: message.sharding_key,
    properties: own.filter(([name]) => !left.includes(name)).map(([name, value]) => `${name}=${value}`).join("\n"),
    note: left.length ? t("Properties of several lines are left out: {names}", { names: left.join(", ") }) : "",
  };
}

// `decoded` is what the topic's schema says of the body, where one is known.
export function bodyCard(message, decoded) {
  const plain = text(message);
  const value = plain === null ? null : parsedTree(plain);
  const views = {};
  if (decoded && !decoded.trouble) views[decoded.format] = () => h("pre", { class: "body json", id: "decoded" }, jsonTree(decoded.value));
  if (value !== null && !views.JSON) views.JSON = () => h("pre", { class: "body json" }, jsonTree(value));
  if (plain !== null) views[t("Text")] = () => h("pre", { class: "body" }, plain);
  views[t("Bytes")] = () => h("pre", { class: "body" }, hex(bytesOf(message)));
  views.Base64 = () => h("pre", { class: "body" }, message.body);
  const shown = h("div");
  const buttons = h("div", { class: "bar" });
  const choose = (name) => {
    fill(shown, views[name]());
    fill(buttons, Object.keys(views).map((each) => h("button", { class: each === name ? "small primary" : "small", onclick: () => choose(each) }, each)), h("span", { class: "grow" }), decoded && !decoded.trouble && h("span", { class: "faint" }, t("Schema: {schema}", { schema: decoded.schema })), h("span", { class: "faint" }, message.compression ? t("{size}, decompressed from {packed} of {kind}", { size: bytes(message.body_bytes), packed: bytes(message.stored_body_bytes), kind: message.compression }) : bytes(message.body_bytes)));
  };
  choose(Object.keys(views)[0]);
  return h("div", { class: "card" }, h("h2", null, t("Body")), message.trouble && callout(message.trouble, "bad"), decoded && decoded.trouble && callout(`${t("Not decoded")}${decoded.schema ? ` (${decoded.schema})` : ""}: ${decoded.trouble}`, "warn"), buttons, shown,
    message.body_bytes > SHOWN_BYTES && callout(t("Only the first mebibyte is shown."), "warn"));
}

function hex(data) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, 16384); at += 16) {
    const row = [...data.slice(at, at + 16)];
    const codes = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(48);
    lines.push(`${at.toString(16).padStart(6, "0")}  ${codes} ${row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("")}`);
  }
  return lines.join("\n");
}

export function factsCard(message) {
  return h("div", { class: "card" }, h("h2", null, t("Facts")), facts([
    [t("Topic"), h("a", { href: `/topics/${encodeURIComponent(message.topic)}` }, message.topic)],
    [t("Stored"), moment(message.stored_ms, true)],
    [t("Born"), `${moment(message.born_ms, true)} · ${message.born_host}`],
    [t("Place"), `${message.broker} · ${t("queue")} ${message.queue} · ${t("offset")} ${count(message.offset)}`],
    [t("Store host"), message.store_host],
    [t("Tag"), message.tags ? badge(message.tags, "accent") : ""],
    [t("Keys"), message.keys.join(" ")],
    [t("Offset id"), h("span", { class: "mono" }, message.offset_message_id)],
    [t("Position in the log"), count(message.physical_offset)],
    [t("Size in the log"), bytes(message.size)],
    [t("Deliveries before"), count(message.reconsume_times)],
    [t("Checksum of the body"), String(message.body_crc)],
    [t("Flags"), `${message.flag} / ${message.sys_flag}`],
    [t("Prepared at offset"), message.prepared_transaction_offset ? count(message.prepared_transaction_offset) : ""],
  ]));
}

export function propertiesCard(message) {
  return h("div", { class: "card flush" }, h("h2", null, t("Properties")), table([
    { name: t("Name"), kind: "mono roomy", of: ([name]) => name },
    { name: t("Value"), kind: "mono", of: ([, value]) => value },
  ], Object.entries(message.properties).sort(), { nothing: empty(t("None")) }));
}

function tracksCard(page, message, locked) {
  return h("div", { class: "card flush" }, h("h2", null, t("Who has consumed it")), table([
    { name: t("Group"), kind: "name", of: (row) => h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, row.group) },
    { name: t("State"), of: (row) => badge(t(row.state), TRACKS[row.state]) },
    { name: "", kind: "soft", of: (row) => row.reason },
    { name: "", kind: "actions", of: (row) => h("button", { class: "small", onclick: () => deliver(message, row.group), ...locked }, t("Deliver again")) },
  ], page.tracks, { nothing: empty(t("No group consumes its topic")) }));
}

async function neighbour(message, step) {
  try {
    const row = await get(`${path("topics", message.topic)}/at?${new URLSearchParams({ broker: message.broker, queue: message.queue, offset: message.offset + step })}`);
    go(`/messages/${encodeURIComponent(row.topic)}/${encodeURIComponent(row.message_id)}`);
  } catch (error) {
    notice(error.message, "bad");
  }
}

function again(message) {
  dialog({
    title: t("Send again"),
    action: t("Send again"),
    body: callout(t("A copy becomes a new message of {topic}: every group that consumes it gets it.", { topic: message.topic }), "warn"),
    act: async () => {
      const sent = await post(`${path("topics", message.topic)}/messages/${encodeURIComponent(message.message_id)}/again`);
      return t("Sent: {id} to queue {queue} of {broker}", { id: sent.message_id, queue: sent.queue, broker: sent.broker });
    },
  });
}

async function deliver(message, group) {
  const page = await get(path("groups", group)).catch((error) => { notice(error.message, "bad"); return null; });
  if (!page) return;
  if (!page.clients.length) { notice(t("Nobody of this group is connected."), "bad"); return; }
  dialog({
    title: t("Deliver again to {group}", { group }),
    action: t("Deliver"),
    body: [callout(t("One client gets the message now; offsets do not change.")), field({ name: "client_id", label: t("Client"), options: page.clients.map((client) => client.client_id) })],
    act: async (values) => (await post(`${path("topics", message.topic)}/messages/${encodeURIComponent(message.message_id)}/deliver`, { group, client_id: values.client_id })).done,
  });
}

const quoted = (value) => `'${value.replaceAll("'", "'\\''")}'`;

function curl(message) {
  const body = { body_base64: message.body, tags: message.tags || "", keys: message.keys.join(" "), sharding_key: message.sharding_key, properties: message.own_properties };
  return `curl -X POST ${location.origin}${path("topics", message.topic)}/messages -H 'Content-Type: application/json' -H "X-Skyrocket-Csrf: $CSRF" -b "$COOKIE" -d ${quoted(JSON.stringify(body))}`;
}

function python(message) {
  const plain = text(message);
  const body = plain === null ? `base64.b64decode(${JSON.stringify(message.body)})` : `${JSON.stringify(plain)}.encode()`;
  return `from skyrocket import Message, Producer\n\nasync with Producer("tools", ${JSON.stringify(session.name_servers.join(";"))}) as producer:\n    await producer.send(Message(${JSON.stringify(message.topic)}, ${body}, tags=${message.tags ? JSON.stringify(message.tags) : "None"}, keys=${JSON.stringify(message.keys)}, properties=${JSON.stringify(message.own_properties)}${message.sharding_key ? `, sharding_key=${JSON.stringify(message.sharding_key)}` : ""}))\n`;
}

async function copy(value) {
  try {
    await navigator.clipboard.writeText(value);
    notice(t("Copied"));
  } catch {
    dialog({ title: t("Copy"), body: h("pre", { class: "body" }, value), wide: true });
  }
}

