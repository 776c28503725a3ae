import { en, type Key } from "./en.js";
export const de: Readonly<Record<Key, string>> = en;
