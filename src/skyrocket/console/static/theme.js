// Before the first paint: dark or light as chosen, else as the system has it.
(function () {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage may be forbidden: the system decides */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
