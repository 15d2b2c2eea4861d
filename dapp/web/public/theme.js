// Runs before the first paint, so that no page flashes in the other theme. It is a file of its own, since
// the content security policy allows no inline scripts.
try {
  const chosen = localStorage.getItem("trainyard.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is blocked: the system's theme will do.
}
