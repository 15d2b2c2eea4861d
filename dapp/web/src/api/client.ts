/** Asking the server: one way in, one kind of error out. */

import type { ProblemDetail } from "~/api/types";

export const BASE = "/api/v1";

/** What the server said no with, or that it could not be reached. `fix` says what to do about it. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly status: number;
  readonly problem: ProblemDetail;

  constructor(status: number, problem: ProblemDetail) {
    super(problem.message);
    this.status = status;
    this.problem = problem;
  }

  get isMissing(): boolean {
    return this.status === 404;
  }

  /** Whether the same may be taken later: nobody was reached, or somebody was too busy. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

export function queryText(query: Query): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (Array.isArray(value)) for (const one of value) found.append(name, one);
    else found.append(name, String(value));
  }
  const text = found.toString();
  return text ? `?${text}` : "";
}

// Set at sign-in; a changing request without it is refused by the server.
let csrfToken: string | null = null;

export function rememberCsrf(token: string | null): void {
  csrfToken = token;
}

export async function get<Answer>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Answer> {
  return request<Answer>(`${path}${queryText(query)}`, { ...(signal ? { signal } : {}) });
}

export async function send<Answer>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Answer> {
  return request<Answer>(path, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    ...(signal ? { signal } : {}),
  });
}

export async function request<Answer>(path: string, options: RequestInit): Promise<Answer> {
  const headers = new Headers(options.headers);
  headers.set("accept", "application/json");
  if (csrfToken && options.method) headers.set("x-csrf-token", csrfToken);
  let answer: Response;
  try {
    answer = await fetch(`${BASE}${path}`, { ...options, headers, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, unreachable);
  }
  if (!answer.ok) throw await errorOf(answer);
  if (answer.status === 204) return undefined as Answer;
  return (await answer.json()) as Answer;
}

const unreachable: ProblemDetail = {
  code: "unreachable",
  message: "The server does not answer.",
  fix: "Check your connection; the page tries again by itself.",
  field: null,
  retry_after_s: null,
};

/** What an answer that is no good says, also to who asks by other means than those above. */
export async function errorOf(answer: Response): Promise<ApiError> {
  const after = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const retry_after_s = Number.isFinite(after) ? after : null;
  try {
    const { error } = (await answer.json()) as { error?: ProblemDetail };
    if (error?.message)
      return new ApiError(answer.status, { ...error, retry_after_s: error.retry_after_s ?? retry_after_s });
  } catch {
    // Something between the server and us answered.
  }
  return new ApiError(answer.status, {
    code: String(answer.status),
    message: `The server answered with status ${answer.status}.`,
    fix: answer.status >= 500 ? "Try again in a moment." : null,
    field: null,
    retry_after_s,
  });
}

export function problemText(error: unknown): string {
  return error instanceof Error && error.message ? error.message : "Something went wrong.";
}

/** What went wrong, and what to do about it where the server said that. */
export function fullText(error: unknown): string {
  const fix = error instanceof ApiError ? error.problem.fix : null;
  return [problemText(error), ...(fix ? [fix] : [])].map(asSentence).join(" ");
}

/** Unless it begins with the name of something, such as a CID or the place of a field. */
function asSentence(text: string): string {
  const sentence = /^[a-z]+[ ,]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[.!?…]$/.test(sentence) ? sentence : `${sentence}.`;
}
