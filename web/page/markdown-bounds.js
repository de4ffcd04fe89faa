/**
 * Bounds on the work that a text of Markdown takes. What a model writes or a notebook contains may take a parser minutes: it recurses
 * for each level of nesting, and its regular expressions search the rest of a paragraph at each letter.
 */

// In letters that are looked at: more than a megabyte of ordinary text. The parser takes less than a second for as many of the worst ones.
const MOST_WORK = 6e7;
const BLOCK_WORK = 30; // for each letter of a block, at each level of nesting
const CELL_WORK = 600; // for each cell of a table
const MOST_NESTING = 100; // lists, quotes and emphasis in one another; browsers nest 512 elements
const MOST_INLINE = 20_000; // letters of a paragraph
// Addresses are not searched in paragraphs with more letters without a blank, or more blanks.
const LONG_RUN = 1000;
const LONG_GAP = 100;
const RULE = /^[ |:-]*\|[ |:-]*$/; // below the head of a table

/** The text takes too much work. */
class TooMuch extends Error {}

/**
 * Make a lexer class that throws when a text takes too much work, and the functions of a tokenizer that it needs.
 * @param {any} Lexer  of marked
 * @returns {{ BoundedLexer: any, tokenizer: Record<string, (this: any, source: string) => any> }}  a function that returns false leaves the work to marked
 */
export function bounded(Lexer) {
  class BoundedLexer extends Lexer {
    hasLongRun = false;
    #work = 0;
    #depth = 0;

    /** @param {number} letters */
    spend(letters) {
      this.#work += letters;
      if (this.#work > MOST_WORK) throw new TooMuch("the text takes too much work");
    }

    /** @template T @param {() => T} tokens @returns {T} */
    #nested(tokens) {
      if (++this.#depth > MOST_NESTING) throw new TooMuch("the text is nested too deep");
      const result = tokens();
      this.#depth--;
      return result;
    }

    /** @param {string} source @param {unknown[]} rest */
    blockTokens(source, ...rest) {
      this.spend(BLOCK_WORK * source.length);
      return this.#nested(() => super.blockTokens(source, ...rest));
    }

    /** @param {string} source @param {unknown[]} rest */
    inlineTokens(source, ...rest) {
      if (source.length > MOST_INLINE) throw new TooMuch("a paragraph is too long");
      const outer = this.hasLongRun;
      this.hasLongRun = runsLong(source);
      const tokens = this.#nested(() => super.inlineTokens(source, ...rest));
      this.hasLongRun = outer;
      return tokens;
    }
  }
  const tokenizer = {
    /** Called first for each token of a paragraph, with the rest of it. @this {any} @param {string} source */
    escape(source) {
      this.lexer.spend(source.length);
      return false;
    },
    /** @this {any} @param {string} source */
    url(source) {
      return this.lexer.hasLongRun ? undefined : false;
    },
    /** @this {any} @param {string} source */
    inlineText(source) {
      if (!this.lexer.hasLongRun) return false;
      const raw = source.slice(0, 1) + (/^[^\\<![`*~_\n]*/.exec(source.slice(1))?.[0] ?? "");
      return { type: "text", raw, text: raw, escaped: this.lexer.state.inRawBlock };
    },
    /** Each line of a table gets as many cells as its head. @this {any} @param {string} source */
    table(source) {
      const [, rule = ""] = source.split("\n", 2);
      if (RULE.test(rule)) this.lexer.spend(CELL_WORK * rule.split("|").length * source.split(/\n[ \t]*\n/, 1)[0].split("\n").length);
      return false;
    },
  };
  return { BoundedLexer, tokenizer };
}

/** @param {string} source */
function runsLong(source) {
  for (const [run] of source.matchAll(/\S+|\s+/g)) if (run.length > (run.trim() ? LONG_RUN : LONG_GAP)) return true;
  return false;
}
