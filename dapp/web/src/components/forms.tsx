/** Fields with their label, hint and error tied together. */

import { type ReactNode, useEffect, useId, useState } from "react";
import { exactAmount, formatDuration, parseAmount } from "~/protocol/units";

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  children: (ids: { id: string; describedBy: string | undefined; invalid: boolean }) => ReactNode;
}

export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const describedBy = error ? `${id}-error` : hint ? `${id}-hint` : undefined;
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>
        {label}
      </label>
      {children({ id, describedBy, invalid: Boolean(error) })}
      {error ? (
        <span className="field-error" id={`${id}-error`}>
          {error}
        </span>
      ) : (
        hint && (
          <span className="field-hint" id={`${id}-hint`}>
            {hint}
          </span>
        )
      )}
    </div>
  );
}

interface NumberProps {
  label: string;
  value: number;
  onChange: (value: number) => void;
  min?: number;
  max?: number;
  step?: number | "any";
  unit?: string;
  hint?: ReactNode;
  error?: string | undefined;
}

/** What is typed stays as typed; only whole, valid numbers are passed on. */
export function NumberField({ label, value, onChange, min, max, step = 1, unit, hint, error }: NumberProps) {
  const [text, setText] = useState(String(value));
  useEffect(() => {
    setText((shown) => (Number(shown) === value ? shown : String(value)));
  }, [value]);
  const number = Number(text);
  const isWrong =
    text.trim() === "" ||
    !Number.isFinite(number) ||
    (min !== undefined && number < min) ||
    (max !== undefined && number > max) ||
    (step !== "any" && !Number.isInteger(number / step));
  const bounds =
    max === undefined
      ? `Give a number of at least ${min ?? 0}.`
      : `Give a number from ${min ?? 0} to ${max}.`;
  return (
    <Field label={label} hint={hint} error={isWrong ? bounds : error}>
      {({ id, describedBy, invalid }) => (
        <div className={unit ? "with-unit" : ""}>
          <input
            id={id}
            className="input"
            inputMode="decimal"
            autoComplete="off"
            value={text}
            aria-invalid={invalid}
            aria-describedby={describedBy}
            onChange={(event) => {
              setText(event.target.value);
              const next = Number(event.target.value);
              const isRight = event.target.value.trim() !== "" && Number.isFinite(next);
              if (isRight && (min === undefined || next >= min) && (max === undefined || next <= max))
                onChange(next);
            }}
          />
          {unit && <span>{unit}</span>}
        </div>
      )}
    </Field>
  );
}

interface AmountProps {
  label: string;
  wei: bigint;
  symbol: string;
  onChange: (wei: bigint) => void;
  hint?: ReactNode;
  error?: string | undefined;
}

export function AmountField({ label, wei, symbol, onChange, hint, error }: AmountProps) {
  const [text, setText] = useState(exactAmount(wei));
  useEffect(() => {
    setText((shown) => (parseAmount(shown) === wei ? shown : exactAmount(wei)));
  }, [wei]);
  const isWrong = parseAmount(text) === null;
  return (
    <Field label={label} hint={hint} error={isWrong ? "Give an amount, such as 0.1." : error}>
      {({ id, describedBy, invalid }) => (
        <div className="with-unit">
          <input
            id={id}
            className="input"
            inputMode="decimal"
            autoComplete="off"
            value={text}
            aria-invalid={invalid}
            aria-describedby={describedBy}
            onChange={(event) => {
              setText(event.target.value);
              const next = parseAmount(event.target.value);
              if (next !== null) onChange(next);
            }}
          />
          <span>{symbol}</span>
        </div>
      )}
    </Field>
  );
}

const SPANS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800];

interface SpanProps {
  label: string;
  seconds: number;
  onChange: (seconds: number) => void;
  hint?: ReactNode;
  error?: string | undefined;
}

/** A length of time out of sensible ones, and the present one if it is none of them. */
export function SpanField({ label, seconds, onChange, hint, error }: SpanProps) {
  const spans = SPANS.includes(seconds) ? SPANS : [...SPANS, seconds].sort((a, b) => a - b);
  return (
    <Field label={label} hint={hint} error={error}>
      {({ id, describedBy, invalid }) => (
        <select
          id={id}
          className="select"
          value={seconds}
          aria-invalid={invalid}
          aria-describedby={describedBy}
          onChange={(event) => onChange(Number(event.target.value))}
        >
          {spans.map((span) => (
            <option key={span} value={span}>
              {formatDuration(span)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface Choice<Value extends string> {
  value: Value;
  title: string;
  text?: string;
  disabled?: boolean;
}

interface ChoicesProps<Value extends string> {
  legend: string;
  value: Value;
  choices: Choice<Value>[];
  onChange: (value: Value) => void;
}

export function Choices<Value extends string>({ legend, value, choices, onChange }: ChoicesProps<Value>) {
  const name = useId();
  return (
    <fieldset className="field">
      <legend className="field-label">{legend}</legend>
      <div className="choices">
        {choices.map((choice) => (
          <label key={choice.value} className="choice">
            <input
              type="radio"
              name={name}
              value={choice.value}
              checked={choice.value === value}
              disabled={choice.disabled}
              onChange={() => onChange(choice.value)}
            />
            <span className="bold">{choice.title}</span>
            {choice.text && <span className="small">{choice.text}</span>}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
