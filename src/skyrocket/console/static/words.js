// English is written where it is shown; Chinese is looked up. What is missing there is shown in English.
import { chinese } from "./words_zh.js";

const wanted = () => localStorage.getItem("language") || (navigator.language.startsWith("zh") ? "zh" : "en");

export let language = wanted();
document.documentElement.lang = language;

export function choose(next) {
  localStorage.setItem("language", next);
  location.reload();
}

// counted(1, "{n} topic", "{n} topics"); `shown` is the number as it is written. Chinese has one form, that of many.
export function counted(number, one, many, shown = number) {
  const found = (language === "zh" && chinese[many]) || (number === 1 ? one : many);
  return found.replaceAll("{n}", shown);
}

// With values: t of "newest {when}" and {when: "now"}.
export function t(text, values) {
  let found = (language === "zh" && chinese[text]) || text;
  for (const [name, value] of Object.entries(values || {})) found = found.replaceAll(`{${name}}`, value);
  return found;
}
