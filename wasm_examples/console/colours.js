/** The colours of Python code: words, strings, numbers, comments and names that are defined. Unfinished code has colours too. */

/** @typedef {[kind: string, text: string]} Token  `kind` is "keyword", "string", "number", "comment", "name" or "" */

const MAX_CHARACTERS = 50_000; // longer code is plain
const MAX_LEVEL = 20; // of strings in fields of strings
const KEYWORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except finally for from global if import in is " +
    "lambda nonlocal not or pass raise return try while with yield").split(" "),
);
const NAMING = new Set(["def", "class"]); // the name follows
const COMMENT = /#[^\n]*/y;
const STRING = /([a-z]{0,2})("""|'''|"|')/iy;
const PREFIXES = /^(|[rbuft]|br|rb|fr|rf|tr|rt)$/i;
const NUMBER = /0x[\da-f_]+|0o[0-7_]+|0b[01_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[+-]?\d[\d_]*)?j?/iy;
const NAME = /[\p{L}_][\p{L}\p{M}\p{N}_]*/uy;
const DECORATOR = /@[ \t]*[\p{L}_][\p{L}\p{N}_.]*/uy;

/** The match of a sticky expression at a place. @param {RegExp} pattern @param {string} code @param {number} at */
function matchAt(pattern, code, at) {
  pattern.lastIndex = at;
  return pattern.exec(code);
}

/** Split code into tokens, which together are the code. @param {string} code @returns {Token[]} */
export function tokensOf(code) {
  /** @type {Token[]} */
  const tokens = [];
  let plain = 0; // the start of text without a colour
  let naming = false;
  const add = (/** @type {string} */ kind, /** @type {number} */ start, /** @type {number} */ end) => {
    if (plain < start) tokens.push(["", code.slice(plain, start)]);
    tokens.push([kind, code.slice(start, end)]);
    plain = end;
  };
  for (let at = 0; at < code.length; ) {
    const end = endOfString(code, at) ?? at;
    const comment = end === at ? matchAt(COMMENT, code, at) : null;
    const name = end === at ? matchAt(NAME, code, at) : null;
    const number = end === at && !name ? matchAt(NUMBER, code, at) : null;
    if (end > at) {
      add("string", at, end);
      at = end;
    } else if (comment) {
      add("comment", at, (at += comment[0].length));
    } else if (name) {
      const word = name[0];
      const next = at + word.length;
      if (naming) add("name", at, next);
      else if (KEYWORDS.has(word)) add("keyword", at, next);
      naming = !naming && NAMING.has(word);
      at = next;
    } else if (number) {
      add("number", at, (at += number[0].length));
    } else {
      const isFirst = code[at] === "@" && !code.slice(code.lastIndexOf("\n", at) + 1, at).trim();
      const decorator = isFirst ? matchAt(DECORATOR, code, at) : null;
      if (decorator) add("name", at, (at += decorator[0].length));
      else at++;
    }
  }
  if (plain < code.length) tokens.push(["", code.slice(plain)]);
  return tokens;
}

/**
 * Where the string that starts at a place ends; null if none starts there.
 * @param {string} code @param {number} start @param {number} [level]  of nesting in formatted strings @returns {number | null}
 */
function endOfString(code, start, level = 0) {
  const opening = level < MAX_LEVEL ? matchAt(STRING, code, start) : null;
  if (!opening || !PREFIXES.test(opening[1])) return null;
  const [whole, prefix, quote] = opening;
  const hasFields = /[ft]/i.test(prefix);
  for (let at = start + whole.length; at < code.length; at++) {
    if (code[at] === "\\") at++;
    else if (code.startsWith(quote, at)) return at + quote.length;
    else if (code[at] === "\n" && quote.length === 1) return at; // unfinished
    else if (hasFields && code[at] === "{") at = code[at + 1] === "{" ? at + 1 : endOfField(code, at, quote, level) - 1;
  }
  return code.length;
}

/** Where a field {...} of a formatted string ends. It may contain strings. @param {string} code @param {number} start @param {string} quote  of the string around it @param {number} level */
function endOfField(code, start, quote, level) {
  let depth = 0;
  for (let at = start; at < code.length; at++) {
    if ("{[(".includes(code[at])) depth++;
    else if ("}])".includes(code[at]) && --depth === 0) return at + 1;
    else if (code[at] === "\n" && quote.length === 1) return at;
    const end = /["']/.test(code[at]) ? endOfString(code, at, level + 1) : null;
    if (end !== null) at = end - 1;
  }
  return code.length;
}

/**
 * Code as elements: a span with the class of its kind for each token.
 * @param {string} code @param {(line: number) => string} [prefix]  what stands before each line
 */
export function coloured(code, prefix) {
  const content = document.createDocumentFragment();
  let line = 0;
  const mark = () => {
    if (prefix) content.append(span("mark", prefix(line++)));
  };
  mark();
  for (const [kind, text] of code.length > MAX_CHARACTERS ? [["", code]] : tokensOf(code)) {
    for (const [i, part] of (prefix ? text.split(/(?<=\n)/) : [text]).entries()) {
      if (i > 0) mark();
      content.append(kind ? span(kind, part) : part);
    }
    if (prefix && text.endsWith("\n")) mark();
  }
  return content;
}

/** @param {string} name @param {string} text */
function span(name, text) {
  return Object.assign(document.createElement("span"), { className: name, textContent: text });
}
