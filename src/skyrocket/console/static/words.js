// English is written where it is shown; Chinese is looked up. What is missing there is shown in English.
import { chinese } from "./words_zh.js";

const wanted = () => localStorage.getItem("language") || (navigator.language.startsWith("zh") ? "zh" : "en");

export let language = wanted();
document.documentElement.lang = language;

export function choose(next) {
  localStorage.setItem("language", next);
  location.reload();
}

// t("{n} topics", {n: 3})
export function t(text, values) {
  let found = (language === "zh" && chinese[text]) || text;
  for (const [name, value] of Object.entries(values || {})) found = found.replaceAll(`{${name}}`, value);
  return found;
}
