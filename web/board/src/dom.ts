/** Elements that are made once and then changed: a tile that moves stays the same element. */

/** Returns a new element. */
export function element(tag: string, name: string, attributes: Readonly<Record<string, string>> = {}): HTMLElement {
  const made = document.createElement(tag);
  made.className = name;
  made.setAttribute("part", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Sets attributes that have changed; undefined removes one. */
export function set(target: Element, attributes: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) target.removeAttribute(name);
    else if (target.getAttribute(name) !== value) target.setAttribute(name, value);
  }
}

/** Sets the classes of an element, which are its parts too. */
export function mark(target: Element, ...names: readonly (string | false | undefined)[]): void {
  const text = names.filter(Boolean).join(" ");
  set(target, { class: text, part: text });
}

/** Makes nodes the children of an element, in order. Those that are there already and in place are not touched. */
export function fill(parent: Element, nodes: readonly (Node | false | undefined)[]): void {
  let at = parent.firstChild;
  for (const node of nodes) {
    if (!node) continue;
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Elements by a key; those that were not asked for since the last `sweep` are dropped. */
export class Kept<E> {
  #all = new Map<string | number, E>();
  #used = new Map<string | number, E>();

  get(key: string | number, make: () => E): E {
    const kept = this.#used.get(key) ?? this.#all.get(key) ?? make();
    this.#used.set(key, kept);
    return kept;
  }

  sweep(): void {
    this.#all = this.#used;
    this.#used = new Map();
  }
}
