// The contrast of a page's colours, as WCAG defines it: of each that texts have, on each that is behind texts.
const INKS = ['ink', 'dim', 'accent', 'good', 'warn', 'bad', 'magenta', 'cyan'] as const;
const GROUNDS = ['panel', 'ground', 'soft', 'bad-tint'] as const;

/** Returns the ratios in light and dark, by ink and ground. */
export function contrast(html: string): Record<'light' | 'dark', Record<string, number>> {
  const dark = Array.from(html.matchAll(/prefers-color-scheme:\s*dark\)\s*\{\s*:root\s*\{([^}]*)/g), ([, rules]) => rules).join(
    ';',
  );
  const light = Array.from(html.matchAll(/(?<!\)\s*\{\s*):root\s*\{([^}]*)/g), ([, rules]) => rules).join(';');
  return { light: ratios(light), dark: ratios(dark) };
}

function ratios(rules: string): Record<string, number> {
  const all = new Map(Array.from(rules.matchAll(/--([\w-]+):\s*(#[\da-f]+)/g), ([, name, value]) => [name, value as string]));
  const colour = (name: string): number[] => {
    const value = all.get(name);
    if (value === undefined) throw new Error(`no colour --${name} in ${rules}`);
    const digits = value.slice(1);
    const long = digits.length < 6 ? Array.from(digits, (digit) => digit + digit).join('') : digits;
    return (long.match(/../g) as string[]).map((part) => Number.parseInt(part, 16) / 255);
  };
  const panel = colour('panel');
  const over = ([r = 0, g = 0, b = 0, a = 1]: number[]): number[] =>
    [r, g, b].map((each, at) => each * a + (panel[at] ?? 0) * (1 - a));
  const result: Record<string, number> = {};
  for (const ink of INKS) {
    for (const ground of GROUNDS) {
      const [one, other] = [luminance(over(colour(ink))), luminance(over(colour(ground)))] as [number, number];
      result[`${ink} on ${ground}`] = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    }
  }
  return result;
}

function luminance(colour: number[]): number {
  const [r = 0, g = 0, b = 0] = colour.map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
