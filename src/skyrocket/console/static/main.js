// The frame around all pages, and which page an address shows.
import { get, post, refreshSession, session } from "./api.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { begin, go, prepare, route, show } from "./router.js";
import { callout, dialog, field, notice } from "./parts.js";
import { follow } from "./live.js";
import { choose, counted, language, t } from "./words.js";

const page = (name) => async () => (await import(`./pages/${name}.js`)).show;

const NAV = [
  ["", [["/", "overview", "Overview", "o"]]],
  ["Messaging", [
    ["/topics", "topics", "Topics", "t"],
    ["/messages", "messages", "Messages", "m"],
    ["/groups", "groups", "Groups", "g"],
    ["/dead-letters", "dead", "Dead letters", "d"],
    ["/delayed", "delayed", "Delayed", "l"],
    ["/transactions", "transactions", "Transactions", "x"],
    ["/traces", "traces", "Traces", "r"],
  ]],
  ["Operations", [
    ["/cluster", "cluster", "Cluster", "c"],
    ["/clients", "clients", "Clients", "n"],
    ["/pipelines", "pipelines", "Pipelines", "p"],
    ["/metrics", "metrics", "Metrics", "h"],
    ["/alerts", "alerts", "Alerts", "w"],
    ["/access", "access", "Access", "a"],
    ["/audit", "audit", "Audit", "u"],
  ]],
];

route("/", page("overview"));
route("/counter", page("counter"));
route("/topics", page("topics"));
route("/topics/:topic", page("topic"));
route("/topics/:topic/tail", page("tail"));
route("/messages", page("messages"));
route("/messages/:topic/:id", page("message"));
route("/groups", page("groups"));
route("/groups/:group", page("group"));
route("/dead-letters", page("dead_letters"));
route("/dead-letters/:group", page("dead_letters_of_group"));
route("/delayed", page("delayed"));
route("/transactions", page("transactions"));
route("/traces", page("traces"));
route("/cluster", page("cluster"));
route("/cluster/:address", page("broker"));
route("/clients", page("clients"));
route("/pipelines", page("pipelines"));
route("/metrics", page("metrics"));
route("/alerts", page("alerts"));
route("/access", page("access"));
route("/audit", page("audit"));
route("/docs", page("docs"));
route(".*", page("missing"));

function drawNav() {
  const links = NAV.map(([title, entries]) => [
    title && h("div", { class: "nav-title" }, t(title)),
    entries.map(([href, name, text, key]) => {
      const here = href === "/" ? location.pathname === "/" : location.pathname.startsWith(href);
      return h("a", { class: "nav-link", href, "aria-current": here ? "page" : null, title: t("{text} (g, then {key})", { text: t(text), key }) }, icon(name), t(text));
    }),
  ]);
  fill(document.getElementById("nav"),
    h("a", { class: "brand", href: "/" }, h("img", { src: new URL("icon.svg", import.meta.url).href, alt: "" }), "Skyrocket"),
    links,
    h("div", { class: "nav-foot" }, h("a", { href: "/docs" }, t("JSON API")), h("br"), session.name_servers.join(", "), h("br"), session.version));
}

const strip = h("a", { href: "/alerts", class: "badge", id: "health" }, "…");

// Notes are no illness: the page of alerts has them.
function drawHealth(health) {
  const isIll = health.critical || health.warnings;
  const kind = health.critical ? "bad" : health.warnings ? "warn" : health.examined_ms ? "good" : "";
  const text = isIll
    ? [health.critical && t("{n} critical", { n: health.critical }), health.warnings && counted(health.warnings, "{n} warning", "{n} warnings")].filter(Boolean).join(", ")
    : health.examined_ms ? t("All well") : t("Examining …");
  strip.className = `badge ${kind}`;
  fill(strip, h("i", { class: "dot" }), text);
}

const maySee = () => session.account || session.anonymous_may_read;
let unwatch = () => {};

// Anew with each login: what is wrong with accounts is told to those who have one.
function watch() {
  unwatch();
  strip.className = "badge";
  fill(strip, "…");
  unwatch = maySee() ? follow("/api/health", drawHealth, (text) => { strip.className = "badge bad"; fill(strip, text.slice(0, 90)); }) : () => {};
}

function drawTop() {
  const search = h("input", { class: "find", type: "search", placeholder: t("Find a topic, group, message id or key  ( / )"), "aria-label": t("Find"), id: "find" });
  const form = h("form", { role: "search", onsubmit: (event) => { event.preventDefault(); find(search.value.trim()); } }, search);
  const other = isDark() ? "light" : "dark";
  fill(document.getElementById("top"), form, strip, h("span", { class: "grow" }),
    h("button", { class: "quiet", title: t("Dark or light"), "aria-label": t("Dark or light"), onclick: () => setTheme(other) }, icon(isDark() ? "sun" : "moon")),
    h("button", { class: "quiet", id: "language", onclick: () => choose(language === "zh" ? "en" : "zh") }, language === "zh" ? "English" : "中文"),
    session.account
      ? [h("span", { class: "badge accent", id: "account" }, session.account), h("button", { class: "quiet", id: "logout", onclick: logOut }, t("Log out"))]
      : [h("span", { class: "badge", title: t("Nothing can be changed without a login") }, t("Read-only")), h("button", { id: "login", onclick: () => logIn() }, t("Log in"))]);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  localStorage.setItem("theme", theme);
  document.documentElement.dataset.theme = theme;
  drawTop();
}

async function find(text) {
  if (!text) return;
  const found = await get(`/api/find?text=${encodeURIComponent(text)}`).catch((error) => { notice(error.message, "bad"); return null; });
  if (found) go(found.topics.length === 1 && found.topics[0] === text ? `/topics/${encodeURIComponent(text)}`
    : found.groups.length === 1 && found.groups[0] === text ? `/groups/${encodeURIComponent(text)}`
    : found.topics.length ? `/topics?search=${encodeURIComponent(text)}`
    : found.groups.length ? `/groups?search=${encodeURIComponent(text)}`
    : `/messages?id=${encodeURIComponent(text)}`);
}

export function logIn(why = "") {
  dialog({
    title: t("Log in"),
    action: t("Log in"),
    body: [
      why && callout(why, "warn"),
      field({ name: "account", label: t("Account of the brokers"), hint: t("User (ACL 2.0) or accessKey (ACL 1.0). What it may do, the brokers decide.") }),
      field({ name: "password", label: t("Password"), type: "password" }),
      field({ name: "token", label: t("Or the console's token"), type: "password", hint: t("It is printed where the console was started.") }),
    ],
    act: async (values) => {
      await post("/api/login", values);
      await again();
      return t("Logged in");
    },
  });
}

async function logOut() {
  await post("/api/logout").catch((error) => notice(error.message, "bad"));
  await again();
}

async function again() {
  await refreshSession();
  show();
}

async function tokenOfAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search); // it shall not stay in the address bar
  await post("/api/login", { token }).catch((error) => notice(error.message, "bad"));
  await refreshSession();
}

function keyboard() {
  let waiting = 0;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
    if (event.key === "/") { event.preventDefault(); document.getElementById("find").focus(); return; }
    if (event.key === "?") { shortcuts(); return; }
    if (Date.now() - waiting < 1500) { // first, for the g of "g g" is a place too
      const entry = NAV.flatMap(([, entries]) => entries).find(([, , , key]) => key === event.key);
      waiting = 0;
      if (entry) go(entry[0]);
    } else if (event.key === "g") waiting = Date.now();
  });
}

function shortcuts() {
  const rows = [["/", t("Find")], ["?", t("This list")], ...NAV.flatMap(([, entries]) => entries.map(([, , text, key]) => [`g ${key}`, t(text)]))];
  dialog({ title: t("Keyboard"), body: h("dl", { class: "facts" }, rows.map(([keys, text]) => [h("dt", null, keys.split(" ").map((key) => [h("kbd", null, key), " "])), h("dd", null, text)])) });
}

drawNav();
prepare();
await refreshSession().catch((error) => notice(error.message, "bad"));
await tokenOfAddress();
drawNav();
drawTop();
addEventListener("page", drawNav);
addEventListener("session", () => { drawNav(); drawTop(); watch(); });
watch();
if (!maySee()) logIn(t("This console shows nothing to those who have not logged in."));
keyboard();
begin();
