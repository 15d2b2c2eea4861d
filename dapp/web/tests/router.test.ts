import { expect, it } from "vitest";
import { queryText } from "~/api/client";
import { routeOf } from "~/router";

it.each([
  ["/", { page: "market" }],
  ["/new", { page: "new" }],
  ["/tasks/7", { page: "task", id: 7 }],
  ["/tasks/0", { page: "missing" }],
  ["/tasks/7/x", { page: "missing" }],
  ["/tasks/../etc", { page: "missing" }],
  ["/workers", { page: "workers" }],
  [
    "/workers/0x5FbDB2315678afecb367f032d93F642f64180aa3",
    { page: "worker", address: "0x5FbDB2315678afecb367f032d93F642f64180aa3" },
  ],
  ["/workers/0x12", { page: "missing" }],
  ["/account", { page: "account" }],
  ["/nowhere", { page: "missing" }],
])("%s leads to %j", (path, route) => {
  expect(routeOf(path)).toEqual(route);
});

it("a query repeats lists and leaves out what is not said", () => {
  expect(queryText({ state: ["open", "running"], policy: "", cursor: undefined, limit: 20 })).toBe(
    "?state=open&state=running&limit=20",
  );
  expect(queryText({})).toBe("");
});
