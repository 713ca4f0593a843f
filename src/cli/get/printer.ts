// The three forms of output. Each prints a list page by page, or changes one by one.
import { type KubernetesObject, metadataOf, namespaceOf } from '../../cache/object.ts';
import { age, clean, type TableRow } from '../../pages/table-source.ts';
import { harmless } from '../lines.ts';
import type { Format } from './get-args.ts';

/** What has happened to an object. */
export interface PrintedChange {
  readonly type: string;
  readonly object: KubernetesObject;
}

/** Turns objects into text. */
export interface Printer {
  /** The text before the first object. */
  begin(resourceVersion: string): string;
  objects(some: readonly KubernetesObject[]): string;
  /** The text after the last object. */
  end(): string;
  events(some: readonly PrintedChange[]): string;
}

/** What a printer needs to know. */
export interface PrinterOptions {
  /** Whether the objects may be in several namespaces. */
  readonly manyNamespaces: boolean;
  /** One object was asked for, not a list. */
  readonly single: boolean;
  /** The columns of the server, once they are known. */
  readonly columns: () => readonly string[] | undefined;
  /** For tests. */
  readonly now?: () => number;
}

export function createPrinter(format: Format, options: PrinterOptions): Printer {
  if (format === 'json') return options.single ? new JsonObjects() : new JsonList();
  return format === 'name' ? new Names() : new TableLines(options);
}

/** `namespace/name`, like the keys of stores. */
function keyOf(object: KubernetesObject): string {
  const namespace = namespaceOf(object);
  return clean(`${namespace && `${namespace}/`}${metadataOf(object).name ?? ''}`);
}

class Names implements Printer {
  begin(): string {
    return '';
  }
  objects(some: readonly KubernetesObject[]): string {
    return some.map((object) => `${keyOf(object)}\n`).join('');
  }
  end(): string {
    return '';
  }
  events(some: readonly PrintedChange[]): string {
    return some.map(({ type, object }) => `${type} ${keyOf(object)}\n`).join('');
  }
}

function jsonOf(value: object): string {
  return harmless(JSON.stringify(value));
}

/** One object per line, without anything around them. */
class JsonObjects extends Names {
  override objects(some: readonly KubernetesObject[]): string {
    return some.map((object) => `${jsonOf(object)}\n`).join('');
  }
  override events(some: readonly PrintedChange[]): string {
    return some.map(({ type, object }) => `${jsonOf({ type, object })}\n`).join('');
  }
}

/** One List object, with each item on a line of its own. */
class JsonList extends JsonObjects {
  #first: boolean = true;

  override begin(resourceVersion?: string): string {
    return `{"kind":"List","apiVersion":"v1","metadata":${jsonOf({ resourceVersion })},"items":[`;
  }
  override objects(some: readonly KubernetesObject[]): string {
    const lines = some.map((object) => {
      const line = `${this.#first ? '' : ','}\n${jsonOf(object)}`;
      this.#first = false;
      return line;
    });
    return lines.join('');
  }
  override end(): string {
    return this.#first ? ']}\n' : '\n]}\n';
  }
}

/** Room for each type of event. */
const WIDEST = 'MODIFIED'.length;

class TableLines extends Names {
  readonly #options: PrinterOptions;
  readonly #aligned: AlignedColumns = new AlignedColumns();
  /** Whether a column says where objects are. Undefined: nothing has been printed. */
  #hasPlaces: boolean | undefined = undefined;

  constructor(options: PrinterOptions) {
    super();
    this.#options = options;
  }

  override objects(some: readonly KubernetesObject[]): string {
    return this.#aligned.lines([...this.#headFor(some), ...some.map((object) => this.#row(object))]);
  }

  override events(some: readonly PrintedChange[]): string {
    const head = this.#headFor(some.map(({ object }) => object));
    const rows = some.map(({ type, object }) => [type, ...this.#row(object)]);
    return this.#aligned.lines([...head.map((names) => ['EVENT'.padEnd(WIDEST), ...names]), ...rows]);
  }

  /** The head, before the first objects. A URL does not say whether they are in namespaces, but they do. */
  #headFor(some: readonly KubernetesObject[]): string[][] {
    if (this.#hasPlaces !== undefined || some.length === 0) return [];
    const { columns, manyNamespaces } = this.#options;
    this.#hasPlaces = manyNamespaces && some.some((object) => namespaceOf(object) !== '');
    return [[...(this.#hasPlaces ? ['NAMESPACE'] : []), ...(columns() ?? ['NAME', 'AGE'])]];
  }

  #row(object: KubernetesObject): string[] {
    return [...(this.#hasPlaces ? [clean(namespaceOf(object) || undefined)] : []), ...this.#cells(object)];
  }

  #cells(object: TableRow | KubernetesObject): readonly string[] {
    if ('cells' in object && object.cells) return object.cells;
    const { name, creationTimestamp } = metadataOf(object);
    return [clean(name), age(creationTimestamp, (this.#options.now ?? Date.now)())];
  }
}

/**
 * Lines of columns. Their widths are those of the first lines that are printed together; later ones may only make them wider,
 * because printed lines stay. So a list of any length is printed page by page.
 */
export class AlignedColumns {
  readonly #widths: number[] = [];

  lines(rows: readonly (readonly string[])[]): string {
    for (const row of rows) {
      for (const [at, cell] of row.entries()) this.#widths[at] = Math.max(this.#widths[at] ?? 0, cell.length);
    }
    const padded = rows.map((row) => row.map((cell, at) => cell.padEnd(this.#widths[at] ?? 0)));
    return padded.map((row) => `${row.join(GAP).trimEnd()}\n`).join('');
  }
}

const GAP = '   ';
