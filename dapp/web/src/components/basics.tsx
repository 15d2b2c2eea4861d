/** The small parts that every page is made of. */

import { type ButtonHTMLAttributes, type ReactNode, useEffect, useRef, useState } from "react";
import { Icon, type IconName } from "~/components/icons";
import { lookOf, type Tone } from "~/protocol/states";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  look?: "primary" | "secondary" | "danger" | "quiet";
  size?: "normal" | "small" | "wide";
  busy?: boolean;
};

/** While it is busy it keeps its focus, its width and its place. */
export function Button({
  look = "secondary",
  size = "normal",
  busy = false,
  children,
  onClick,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      className={`button button-${look} button-${size}`}
      aria-disabled={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
      {...rest}
    >
      {busy && <span className="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}

export function Badge({
  tone = "neutral",
  live = false,
  children,
}: {
  tone?: Tone;
  live?: boolean;
  children: ReactNode;
}) {
  return (
    <span className={`badge badge-${tone}`}>
      <span className={`dot${live ? " dot-live" : ""}`} aria-hidden="true" />
      {children}
    </span>
  );
}

export function StateBadge({ state }: { state: string }) {
  const look = lookOf(state);
  const isLive = look.tone === "info" || state === "open" || state === "disputed";
  return (
    <Badge tone={look.tone} live={isLive}>
      <span title={look.means}>{look.label}</span>
    </Badge>
  );
}

interface CardProps {
  title?: ReactNode;
  level?: 2 | 3;
  action?: ReactNode;
  flush?: boolean;
  id?: string;
  className?: string;
  children: ReactNode;
}

export function Card({ title, level = 2, action, flush = false, id, className = "", children }: CardProps) {
  const Heading = `h${level}` as const;
  return (
    <section className={`card ${className}`} {...(id ? { id } : {})}>
      {title && (
        <div className="card-head">
          <Heading>{title}</Heading>
          {action}
        </div>
      )}
      <div className={flush ? "card-body-flush" : "card-body"}>{children}</div>
    </section>
  );
}

interface NoticeProps {
  tone: Exclude<Tone, "neutral">;
  title: ReactNode;
  children?: ReactNode;
  action?: ReactNode;
  /** Whether screen readers are told at once. */
  urgent?: boolean;
}

const NOTICE_ICONS: Record<NoticeProps["tone"], IconName> = {
  good: "check",
  info: "info",
  warn: "alert",
  bad: "alert",
};

export function Notice({ tone, title, children, action, urgent = false }: NoticeProps) {
  return (
    <div className={`notice notice-${tone}`} role={urgent ? "alert" : "status"}>
      <Icon name={NOTICE_ICONS[tone]} size={18} />
      <div className="notice-text">
        <strong>{title}</strong>
        {children && <div className="small">{children}</div>}
      </div>
      {action && <div className="notice-act">{action}</div>}
    </div>
  );
}

interface EmptyProps {
  icon?: IconName;
  title: string;
  /** One where nothing else on the page has a heading. */
  level?: 1 | 3;
  children?: ReactNode;
}

export function Empty({ icon = "inbox", title, level = 3, children }: EmptyProps) {
  const Heading = `h${level}` as const;
  return (
    <div className="empty">
      <Icon name={icon} size={28} />
      <Heading>{title}</Heading>
      {children}
    </div>
  );
}

export function Skeleton({ height = "1.2em", width = "100%" }: { height?: string; width?: string }) {
  return <span className="skeleton" style={{ height, width }} aria-hidden="true" />;
}

/** Rows of the height that the real ones will have. */
export function SkeletonRows({ rows, height }: { rows: number; height: string }) {
  return (
    <div className="stack stack-s" aria-busy="true">
      <span className="visually-hidden">Loading …</span>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
        <Skeleton key={row} height={height} />
      ))}
    </div>
  );
}

export function Bar({ part, label }: { part: number; label: string }) {
  const bounded = Math.min(1, Math.max(0, part));
  return (
    <div
      className="bar"
      role="progressbar"
      aria-label={label}
      aria-valuenow={Math.round(bounded * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <span style={{ transform: `scaleX(${bounded})` }} />
    </div>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <button
      type="button"
      className="icon-button icon-button-small above-link"
      aria-label={isCopied ? "Copied" : label}
      title={isCopied ? "Copied" : label}
      onClick={() => void navigator.clipboard?.writeText(text).then(() => setCopied(true))}
    >
      <Icon name={isCopied ? "check" : "copy"} size={14} />
    </button>
  );
}

interface DialogProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** The browser's own dialog: it keeps the focus inside, and Escape closes it. */
export function Dialog({ title, open, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (!dialog) return;
    if (open && !dialog.open) dialog.showModal();
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click beside the dialog closes it; keys have Escape
    <dialog
      ref={element}
      className="dialog"
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === element.current && onClose()}
    >
      {open && (
        <>
          <div className="dialog-head">
            <h2>{title}</h2>
            <button type="button" className="icon-button" aria-label="Close" onClick={onClose}>
              <Icon name="cross" />
            </button>
          </div>
          <div className="dialog-body">{children}</div>
        </>
      )}
    </dialog>
  );
}

export interface TabItem {
  id: string;
  label: string;
}

/** Tabs with the keys that people expect: arrows move, Home and End jump. */
export function Tabs({
  label,
  tabs,
  current,
  onChange,
}: {
  label: string;
  tabs: TabItem[];
  current: string;
  onChange: (id: string) => void;
}) {
  const strip = useRef<HTMLDivElement>(null);
  const move = (key: string) => {
    const at = tabs.findIndex((tab) => tab.id === current);
    const last = tabs.length - 1;
    const to = {
      ArrowRight: at === last ? 0 : at + 1,
      ArrowLeft: at === 0 ? last : at - 1,
      Home: 0,
      End: last,
    }[key];
    const tab = to === undefined ? undefined : tabs[to];
    if (!tab) return false;
    onChange(tab.id);
    strip.current?.querySelector<HTMLElement>(`[data-tab="${tab.id}"]`)?.focus();
    return true;
  };
  return (
    <div className="tabs" role="tablist" aria-label={label} ref={strip}>
      {tabs.map((tab) => (
        <button
          key={tab.id}
          type="button"
          role="tab"
          className="tab"
          id={`tab-${tab.id}`}
          data-tab={tab.id}
          aria-selected={tab.id === current}
          aria-controls={`panel-${tab.id}`}
          tabIndex={tab.id === current ? 0 : -1}
          onClick={() => onChange(tab.id)}
          onKeyDown={(event) => move(event.key) && event.preventDefault()}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}

export function TabPanel({ id, children }: { id: string; children: ReactNode }) {
  return (
    <div role="tabpanel" id={`panel-${id}`} aria-labelledby={`tab-${id}`} className="stack">
      {children}
    </div>
  );
}
