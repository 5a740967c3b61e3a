// The one search box: `o-1`, or `topic:Orders tag:paid since:2h sql:"price > 3"`; as the parts of an address, and back.
import { localInput } from "../format.js";

const NAMES = { topic: "topic", id: "id", key: "id", tag: "tags", sql: "sql", body: "contains", since: "from", until: "to", offset: "offset", queue: "queue", property: "property" };
const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PARTS = ["topic", "id", "tags", "sql", "contains", "from", "to", "offset", "broker", "queue", "property_name", "property_value"];

export const EMPTY = Object.fromEntries(PARTS.map((name) => [name, ""]));

// What a text asks for, by the names of an address; throws what to say.
export function parsed(text, say) {
  const found = { ...EMPTY };
  const words = text.match(/[A-Za-z]+:"(?:[^"\\]|\\.)*"|"(?:[^"\\]|\\.)*"|\S+/g) || [];
  for (const word of words) {
    const [, name, given] = /^([A-Za-z]+):(.*)$/s.exec(word) || [null, "id", word];
    const value = given.startsWith('"') && given.endsWith('"') && given.length > 1 ? given.slice(1, -1).replace(/\\(.)/g, "$1") : given;
    const part = NAMES[name];
    if (!part) throw new Error(say(name, Object.keys(NAMES).join(", ")));
    if (part === "from" || part === "to") found[part] = moment(value);
    else if (part === "queue") [found.broker, found.queue] = place(value);
    else if (part === "property") [found.property_name, found.property_value] = [value.split("=")[0], value.split("=").slice(1).join("=")];
    else found[part] = value;
  }
  return found;
}

function moment(value) {
  const ago = /^(\d+)([smhd])$/.exec(value);
  return ago ? localInput(Date.now() - Number(ago[1]) * UNITS[ago[2]], ago[2] === "s") : value;
}

// broker-a/3
function place(value) {
  const at = value.lastIndexOf("/");
  return [value.slice(0, Math.max(at, 0)), value.slice(at + 1)];
}

const quoted = (value) => (/[\s"]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value);

// The text for parts of an address.
export function written(parts) {
  const names = { topic: "topic", id: "id", tags: "tag", sql: "sql", contains: "body", from: "since", to: "until", offset: "offset" };
  const words = Object.entries(names).filter(([part]) => parts[part]).map(([part, name]) => `${name}:${quoted(parts[part])}`);
  if (parts.queue) words.push(`queue:${quoted(`${parts.broker}/${parts.queue}`)}`);
  if (parts.property_name) words.push(`property:${quoted(parts.property_value ? `${parts.property_name}=${parts.property_value}` : parts.property_name)}`);
  return words.join(" ");
}
