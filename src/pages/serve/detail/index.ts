import { queryWith } from '../../words.ts';
import type { PageResource } from '../api.ts';

/** An object whose detail can be shown. */
export interface DetailRef {
  readonly resource: PageResource;
  /** Absent if the resource has none. */
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Of the object that was chosen: another one may have its name later. */
  readonly uid?: string | undefined;
}

let show: (ref: DetailRef) => void = () => {};

/** Sets what shows details. */
export function showDetailsWith(by: (ref: DetailRef) => void): void {
  show = by;
}

/** Shows the detail of an object, or hides it if it is shown. */
export function openDetail(ref: DetailRef): void {
  show(ref);
}

/** Names an object among all: `orders.example.com/v1 shop/tea`. */
export function keyOfRef({ resource, namespace = '', name }: DetailRef): string {
  return `${resource.id} ${namespace}/${name}`;
}

/** The parameter of the URL that names the object in the detail, so that a link shows it to others. */
const PARAMETER = 'object';

/** The same URL with another object, or none. */
export function withObject(url: string, ref: DetailRef | undefined): string {
  const changed = new URL(url);
  changed.search = queryWith(changed.search, { [PARAMETER]: ref ? keyOfRef(ref) : '' });
  return changed.href;
}

/** The object that a URL names, if there is such a kind. */
export function objectIn(url: string, resources: readonly PageResource[]): DetailRef | undefined {
  const [, id, namespace, name] =
    /^(\S{1,500}) ([^/]{0,253})\/(.{1,500})$/.exec(new URL(url).searchParams.get(PARAMETER) ?? '') ?? [];
  const resource = resources.find((each) => each.id === id);
  if (resource === undefined || name === undefined || resource.namespaced !== (namespace !== '')) return undefined;
  return { resource, namespace: namespace || undefined, name };
}
