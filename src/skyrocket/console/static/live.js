import { said } from "./words.js";

// An answer that is kept up to date. A page that nobody sees follows nothing.
export function follow(path, onAnswer, onTrouble) {
  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(`/api/live?of=${encodeURIComponent(path)}`);
    source.addEventListener("answer", (event) => onAnswer(JSON.parse(event.data)));
    source.addEventListener("trouble", (event) => onTrouble(troubleOf(event)));
    source.onerror = () => {
      if (source && source.readyState === EventSource.CLOSED) close();
    };
  };
  const close = () => {
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
