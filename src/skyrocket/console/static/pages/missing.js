import { t } from "../words.js";
import { empty } from "../parts.js";

export function show(root) {
  root.append(empty(t("There is no such page"), location.pathname));
}
