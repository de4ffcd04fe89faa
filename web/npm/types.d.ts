/** The types of index.js. Errors are `Problem`s: their message is that of the exception in Python. */

/** Where the files of the package are, what they load, and how to stop. */
export interface Options {
  /**
   * The folder with `site.json`, which has Pyodide, the wheel and the snapshot; relative to the page. The default is the
   * package's own folder. A bundler moves the module away from that folder: then pass it.
   */
  files?: string | URL;
  /** Called while Python starts and files load. `loaded` and `total` are bytes. */
  onProgress?: (progress: Progress) => void;
  /** Stops the work. The promise rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface Progress {
  stage: "python" | "download" | "cache" | "file" | "model";
  /** The step of the start, or the file. */
  name: string;
  loaded: number;
  total: number | null;
}

export interface LoadOptions extends Options {}

/**
 * Load a language model.
 * @param model  "story", the model of the package (the default); a GGUF file on the Hugging Face Hub, as in
 *   "Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf"; the address of a GGUF file; or the file
 */
export function load(model?: string | URL | Blob, options?: LoadOptions): Promise<LanguageModel>;

export interface LanguageModel {
  /** The number of parameters. */
  readonly parameters: number;
  /** Continue the prompt, piece by piece. Leaving the loop stops the model. */
  generate(prompt: string, options?: GenerateOptions): AsyncGenerator<string, void>;
  /** Free the model's memory. */
  close(): Promise<void>;
}

export interface GenerateOptions {
  /** Default: 256. */
  maxTokens?: number;
  /** 0 always takes the most probable token. Default: 0.8. */
  temperature?: number;
  /** Sample from this many of the most probable tokens. Default: all. */
  topK?: number;
  /** Sample from the most probable tokens up to this total probability. Default: 0.95. */
  topP?: number;
  /** Sample from tokens at least this many times as probable as the most probable one. Default: 0. */
  minP?: number;
  /** Above 1, repeated tokens are less probable. Default: 1. */
  repetitionPenalty?: number;
  /** The same seed gives the same text. Default: random. */
  seed?: number;
  signal?: AbortSignal;
}

export interface TranscribeOptions extends Options {
  /** A Whisper on the Hub, as in "openai/whisper-tiny", or the address of its folder. Default: the package's, which knows a hundred words. */
  model?: string;
  /** A code, as in "de". Default: detected. */
  language?: string;
  /** Default: "transcribe". */
  task?: "transcribe" | "translate";
  /** Called with new text while the sound is read. */
  onText?: (text: string) => void;
}

/** Return the text of speech. @param sound  a sound file of any format that the browser plays */
export function transcribe(sound: Blob, options?: TranscribeOptions): Promise<Transcript>;

export interface Transcript {
  text: string;
  /** The code of the language. */
  language: string;
  /** Times are in seconds. */
  segments: { start: number; end: number; text: string }[];
}

export interface EmbedOptions extends Options {
  /** A sentence encoder on the Hub, or the address of its folder. Default: "sentence-transformers/all-MiniLM-L6-v2". */
  model?: string;
}

/** Return a vector of length 1 for each text: the dot product of two is their cosine similarity. */
export function embed(texts: string[], options?: EmbedOptions): Promise<Float32Array[]>;
export function embed(text: string, options?: EmbedOptions): Promise<Float32Array>;

export interface PipelineOptions extends Pick<Options, "files" | "onProgress"> {
  /** "fp32" (the default), "fp16", "q8" or "q4". */
  dtype?: string | null;
  /** "wasm" and "cpu": pipelines compute on the CPU. */
  device?: string | null;
  /** Of the repository on the Hub. */
  revision?: string | null;
  /** Called with status "initiate", "progress" (`file` is a line about a download) and "ready". */
  progress_callback?: (progress: { status: string; name?: string; file?: string; task?: string; model?: string }) => void;
}

export interface Pipeline {
  /**
   * Compute. Arguments are in the order of transformers.js: `(text, options)`, `(text, labels, options)`,
   * `(question, context, options)`; names of options have underscores. Results are those of the task's pipeline in
   * Python; vectors are tensors with `data`, `dims`, `size` and `tolist()`.
   */
  (...inputs: any[]): Promise<any>;
  readonly task: string;
  /** For a `TextStreamer`. */
  readonly tokenizer: unknown;
  /** Free the model's memory. */
  dispose(): Promise<void>;
}

/**
 * Return a pipeline: a function from texts, pictures or sounds to results.
 * @param task  "text-generation", "text-classification", "automatic-speech-recognition" and others; docs/transformers.md
 *   lists them
 * @param model  a model on the Hugging Face Hub in the format of safetensors. Default: one of the package, for
 *   text-generation, feature-extraction, zero-shot-classification and automatic-speech-recognition
 */
export function pipeline(task: string, model?: string | null, options?: PipelineOptions): Promise<Pipeline>;

export interface TextStreamerOptions {
  skip_prompt?: boolean;
  skip_special_tokens?: boolean;
  /** Called with each piece of text. Default: the browser's console. */
  callback_function?: (text: string) => void;
}

/** Passes generated text on, as the option `streamer` of text-generation. */
export class TextStreamer {
  constructor(tokenizer: unknown, options?: TextStreamerOptions);
  readonly options: { skip_prompt: boolean; skip_special_tokens: boolean };
  readonly write: (text: string) => void;
}

export interface PythonOptions extends Pick<Options, "files" | "onProgress"> {
  /** Global variables that are set before the code runs. Typed arrays arrive as memoryviews. */
  variables?: Record<string, unknown>;
  /** Called with what the code prints. Default: the browser's console. */
  onOutput?: (text: string) => void;
}

/**
 * Run Python code, which may use `await`; return the value of its last expression. Variables last from call to call.
 * Numbers, text, lists and dicts are converted, tensors and arrays become typed arrays; of other objects, their `repr`.
 */
export function python(code: string, options?: PythonOptions): Promise<any>;

/** End Python, which frees its memory. The next call starts it again. */
export function close(options?: Pick<Options, "files">): Promise<void>;

/** An exception in Python, or a failed download. */
export class Problem extends Error {
  constructor(name: string, message: string, hint?: string | null, details?: string | null);
  /** What to do about it. */
  hint: string | null;
  /** The traceback. */
  details: string | null;
}
