/** Line icons, drawn for this page. They say nothing to screen readers: the text beside them does. */

const PATHS = {
  check: "M3.5 8.5 6.5 11.5 12.5 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  alert: "M8 5v4M8 11.5v.01M8 1.8 14.6 13.5H1.4Z",
  info: "M8 7.2v4M8 4.8v.01M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4Z",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8Z",
  external: "M6.5 3.5h-4v10h10v-4M9.5 2.5h4v4M13 3 7.5 8.5",
  wallet: "M2.5 4.5h9a2 2 0 0 1 2 2v5a2 2 0 0 1-2 2h-9Zm0 0 7.5-2.5v2.5M10.8 9v.01",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.2v1.4M8 13.4v1.4M1.2 8h1.4M13.4 8h1.4M3.2 3.2l1 1M11.8 11.8l1 1M12.8 3.2l-1 1M4.2 11.8l-1 1",
  moon: "M13.2 9.6A5.8 5.8 0 0 1 6.4 2.8a5.8 5.8 0 1 0 6.8 6.8Z",
  system: "M2 3h12v8H2ZM5.5 14h5M8 11v3",
  bell: "M4 7a4 4 0 0 1 8 0c0 3.5 1.5 4.5 1.5 4.5h-11S4 10.5 4 7ZM6.7 13.7a1.4 1.4 0 0 0 2.6 0",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14",
  download: "M8 2v8.5M4.5 7.5 8 11l3.5-3.5M2.5 14h11",
  upload: "M8 11V2.5M4.5 5.5 8 2l3.5 3.5M2.5 14h11",
  play: "M4.5 2.5v11l9-5.5Z",
  shield: "M8 1.5 13.5 4v4c0 3.5-2.4 5.6-5.5 6.6C4.9 13.6 2.5 11.5 2.5 8V4Z",
  chip: "M4.5 4.5h7v7h-7ZM6.5 4.5v-2M9.5 4.5v-2M6.5 13.5v-2M9.5 13.5v-2M4.5 6.5h-2M4.5 9.5h-2M13.5 6.5h-2M13.5 9.5h-2",
  flame:
    "M8 14.5c2.8 0 4.5-1.8 4.5-4.3C12.5 7 9.5 5.5 9 1.5 6 3.5 6.5 6 5.5 7.5 4.8 7 4.7 6 4.7 6c-.8 1-1.2 2.5-1.2 4 0 2.7 1.7 4.5 4.5 4.5Z",
  refresh: "M13.5 8a5.5 5.5 0 1 1-1.6-3.9L13.5 5.6M13.5 2.2v3.4h-3.4",
  inbox: "M2 9h3.5l1 2h3l1-2H14M2 9l2-6h8l2 6v4.5H2Z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        stroke="currentColor"
        strokeWidth="1.5"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}

export function Logo() {
  return (
    <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" fill="#3447d4" />
      <path
        d="M11 26 14.5 6M21 26 17.5 6M9.5 23h13M11 17.5h10M12.4 12h7.2"
        stroke="#fff"
        strokeWidth="2"
        strokeLinecap="round"
        fill="none"
      />
    </svg>
  );
}
