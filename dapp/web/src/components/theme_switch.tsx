import { useState } from "react";
import { Icon, type IconName } from "~/components/icons";

type Theme = "system" | "light" | "dark";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const LOOKS: Record<Theme, { icon: IconName; label: string }> = {
  system: { icon: "system", label: "Theme: as the system. Switch to light" },
  light: { icon: "sun", label: "Theme: light. Switch to dark" },
  dark: { icon: "moon", label: "Theme: dark. Switch to the system's" },
};
const KEY = "trainyard.theme";

export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(() => {
    const set = document.documentElement.dataset.theme;
    return set === "light" || set === "dark" ? set : "system";
  });
  const change = () => {
    const next = NEXT[theme];
    setTheme(next);
    if (next === "system") {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem(KEY);
    } else {
      document.documentElement.dataset.theme = next;
      localStorage.setItem(KEY, next);
    }
    // Charts are painted, not styled, and must be told.
    window.dispatchEvent(new Event("trainyard-theme"));
  };
  const look = LOOKS[theme];
  return (
    <button type="button" className="icon-button" aria-label={look.label} title={look.label} onClick={change}>
      <Icon name={look.icon} size={18} />
    </button>
  );
}
