/** What drafts are made of, by the names of the API. */

export type { DataPreview, LayerView, Manifest, ModelView, Wei } from "~/api/types";
export type { Policy } from "~/protocol/states";
