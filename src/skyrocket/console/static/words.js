// English is written where it is shown; Chinese is looked up. What is missing there is shown in English.
import { saidInChinese } from "./said_zh.js";
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
export function t(text, values = {}) {
  return filled((language === "zh" && chinese[text]) || text, values);
}

// In one go: a value that looks like a field, or like a pattern of replace(), stays as it is.
const filled = (template, values) => template.replace(/{(\w+)}/g, (field, name) => (Object.hasOwn(values, name) ? values[name] : field));

// What the server says, with the phrase that it is made of: {template, values}, where a value may be a phrase again.
export function said(english, phrase) {
  if (language !== "zh" || !phrase || !Object.hasOwn(saidInChinese, phrase.template)) return english;
  const values = Object.entries(phrase.values).map(([name, value]) => [name, value.template ? said(value.template, value) : value]);
  return filled(saidInChinese[phrase.template], Object.fromEntries(values));
}
