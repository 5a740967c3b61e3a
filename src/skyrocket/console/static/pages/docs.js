// The JSON endpoints, from their own description.
import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { badge, head, table } from "../parts.js";
import { t } from "../words.js";

const COLOURS = { get: "good", post: "accent", put: "warn", delete: "bad" };

const typeOf = (schema) => {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `${typeOf(schema.items)}[]`;
  if (schema.additionalProperties) return `{string: ${typeOf(schema.additionalProperties)}}`;
  return schema.type || "any";
};

export async function show(root) {
  const place = h("div", { class: "stack" });
  root.append(head(t("JSON API"), { says: t("every number of a page comes from here"), actions: [h("a", { class: "button", href: "/api/openapi.json" }, "openapi.json")] }), place);
  const document_ = await get("/api/openapi.json");
  const families = new Map();
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const family = operation.tags[0];
      families.set(family, [...(families.get(family) || []), { path, method, operation }]);
    }
  }
  const answer = (operation) => typeOf(Object.values(operation.responses["200"].content)[0].schema);
  fill(place, h("p", { class: "soft" }, document_.info.description), [...families].map(([family, operations]) => h("div", { class: "card flush" }, h("h2", null, family), table([
    { name: "", of: (row) => badge(row.method.toUpperCase(), COLOURS[row.method]) },
    { name: t("Path"), kind: "mono", of: (row) => row.path },
    { name: "", of: (row) => row.operation.summary },
    { name: t("Takes"), kind: "mono", of: (row) => [...row.operation.parameters.filter((parameter) => parameter.in === "query").map((parameter) => `${parameter.name}: ${typeOf(parameter.schema)}`), row.operation.requestBody ? typeOf(row.operation.requestBody.content["application/json"].schema) : ""].filter(Boolean).join(", ") },
    { name: t("Answers"), kind: "mono roomy", of: (row) => answer(row.operation) },
  ], operations))),
  h("div", { class: "card flush" }, h("h2", null, t("Types")), table([
    { name: t("Name"), kind: "name", of: ([name]) => name },
    { name: "", of: ([, schema]) => schema.description },
    { name: t("Fields"), kind: "mono", of: ([, schema]) => Object.entries(schema.properties || {}).map(([name, type]) => `${name}: ${typeOf(type)}`).join(", ") },
  ], Object.entries(document_.components.schemas))));
}
