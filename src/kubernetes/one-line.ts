/** Text of others in one line, without what a terminal would act on. */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim();
}
