import { refusalOf } from "./api.js";
import { said } from "./words.js";

// What has not changed is drawn again all the same: "5 s ago" would stand there for hours.
const AGED_MS = 15_000;
// Browsers open a stream that was cut again by themselves, most often before that.
const LOST_MS = 5_000;

// An answer that is kept up to date. A page that nobody sees follows nothing.
export function follow(path, onAnswer, onTrouble) {
  const address = `/api/live?of=${encodeURIComponent(path)}`;
  let source = null;
  let ageing = 0;
  let lost = 0;
  const draw = (answer) => {
    clearTimeout(ageing);
    ageing = setTimeout(draw, AGED_MS, answer);
    onAnswer(answer);
  };
  const tell = (text) => {
    clearTimeout(ageing); // the old answer would take the words away
    onTrouble(text);
  };
  const open = () => {
    if (source || document.hidden) return;
    const opened = source = new EventSource(address);
    opened.addEventListener("answer", (event) => draw(JSON.parse(event.data)));
    opened.addEventListener("trouble", (event) => tell(troubleOf(event)));
    opened.onopen = () => { clearTimeout(lost); lost = 0; };
    opened.onerror = () => { lost = lost || setTimeout(ask, LOST_MS, opened); };
  };
  // Nothing is followed for a while: why? A browser does not open again what was refused.
  const ask = async (cut) => {
    lost = 0;
    const why = await refusalOf(address);
    if (source !== cut) return;
    if (why) tell(why);
    if (cut.readyState === EventSource.CLOSED) { close(); open(); }
  };
  const close = () => {
    clearTimeout(ageing);
    clearTimeout(lost);
    lost = 0;
    if (source) source.close();
    source = null;
  };
  const look = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", look);
  open();
  return () => {
    document.removeEventListener("visibilitychange", look);
    close();
  };
}

export function troubleOf(event) {
  const told = JSON.parse(event.data);
  return said(told.error, told.phrase);
}
