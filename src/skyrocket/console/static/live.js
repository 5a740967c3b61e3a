import { said } from "./words.js";

// What has not changed is drawn again all the same: "5 s ago" would stand there for hours.
const AGED_MS = 15_000;

// An answer that is kept up to date. A page that nobody sees follows nothing.
export function follow(path, onAnswer, onTrouble) {
  let source = null;
  let ageing = 0;
  const draw = (answer) => {
    clearTimeout(ageing);
    ageing = setTimeout(draw, AGED_MS, answer);
    onAnswer(answer);
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(`/api/live?of=${encodeURIComponent(path)}`);
    source.addEventListener("answer", (event) => draw(JSON.parse(event.data)));
    source.addEventListener("trouble", (event) => {
      clearTimeout(ageing); // the old answer would take the words away
      onTrouble(troubleOf(event));
    });
    source.onerror = () => {
      if (source && source.readyState === EventSource.CLOSED) close();
    };
  };
  const close = () => {
    clearTimeout(ageing);
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
