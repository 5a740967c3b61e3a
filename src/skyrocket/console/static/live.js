import { get } from "./api.js";
import { said } from "./words.js";

// What has not changed is drawn again all the same: "5 s ago" would stand there for hours.
const AGED_MS = 15_000;
const AGAIN_MS = 5_000;

// An answer that is kept up to date. A page that nobody sees follows nothing.
export function follow(path, onAnswer, onTrouble) {
  let source = null;
  let ageing = 0;
  let reopening = 0;
  let heard = 0; // events; who has heard one since, or has left, is told no older trouble
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
    source = new EventSource(`/api/live?of=${encodeURIComponent(path)}`);
    source.addEventListener("answer", (event) => { heard += 1; draw(JSON.parse(event.data)); });
    source.addEventListener("trouble", (event) => { heard += 1; tell(troubleOf(event)); });
    source.onerror = lost;
  };
  const close = () => {
    clearTimeout(ageing);
    clearTimeout(reopening);
    if (source) source.close();
    source = null;
    heard += 1;
  };
  // Without this the last figures would stand there as if they were of now. The browser itself tries again only where
  // nobody answers; what is refused, by the console or by a proxy while that is started anew, it leaves for ever.
  const lost = () => {
    if (source && source.readyState === EventSource.CLOSED) {
      close();
      reopening = setTimeout(open, AGAIN_MS);
    }
    const before = heard;
    const still = (act) => (what) => { if (heard === before) act(what); };
    get(path).then(still(draw), still((error) => tell(error.message)));
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
