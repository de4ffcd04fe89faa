"""Rerankers that are language models: the score of a pair is the logit of the token "yes" after a prompt with both
texts, less that of "no".

The chat template writes the prompt, from messages in the roles "query" and "document" after an instruction in the role
"system". Where a folder has no template that writes both, the prompt is the one that Qwen3-Reranker was trained with.

Letters: B texts of a batch, T positions, V vocabulary.

Source:  Zhang et al. 2025, arXiv:2506.05176, section 2; files as sentence-transformers writes them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError, MissingPackageError, TokenizerError
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG, read_entries
from tallow.models.encoders.sentence_folder import modules_of, prompts_of, text_config
from tallow.models.encoders.text_classifier import TextClassifier
from tallow.models.text_batches import Text, Vectors
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.text.marks import Encoded
from tallow.text.tokenizer import Batch, Tokenizer

SCORE = "LogitScore"  # a kind of module
LOGITS = "causal_logits"  # what it reads
YES, NO = "yes", "no"
QUERY, DOCUMENT = "QUERY-4f1c", "DOCUMENT-9b27"  # stand for the texts where the parts of a prompt are found
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
TURN = "<|im_start|>"
JUDGE = (
    f"{TURN}system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    f'Note that the answer can only be "yes" or "no".<|im_end|>\n{TURN}user\n<Instruct>: '
)
ANSWER = f"<|im_end|>\n{TURN}assistant\n<think>\n\n</think>\n\n"


class TokenScorer(TextClassifier):
    """Scores how well a text answers a query by a language model; `TextClassifier.from_pretrained` returns it for one.

    Args:
        model: a language model, trained for it.
        max_length: the most tokens of a prompt; of longer ones, the document is cut.
        lowercase: convert texts to lower case first.
        activation: maps scores to others; None means their sigmoid, the probability of "yes" against "no".
        true_token, false_token: the ids of "yes" and "no"; None for no `false_token`: its logit is not subtracted.
        prompts: instructions by name.
        default_prompt: the name of the one for calls without an instruction.
        variables: of the chat template, such as {"add_generation_prompt": True}.

    Raises:  CheckpointError for tokens that the model does not have

    Example:
        reranker = TextClassifier.from_pretrained("Qwen/Qwen3-Reranker-0.6B")
        reranker.rank("Where do cats sleep?", ["Cats sleep on sofas.", "The bank is closed."])
    """

    kinds = (CausalLM,)

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Any,
        *,
        true_token: int,
        false_token: int | None,
        max_length: int | None = None,
        lowercase: bool = False,
        activation: Module | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(tokenizer, model, max_length=max_length, lowercase=lowercase, activation=activation)
        size = model.vocab_size
        if any(not 0 <= token < size for token in (true_token, false_token) if token is not None):
            raise CheckpointError(
                f"true_token={true_token}, false_token={false_token}: the model has tokens 0 to {size - 1}",
                hint="use the files of one model",
            )
        self.true_token, self.false_token = true_token, false_token
        self.prompts = dict(prompts or {})
        self.default_prompt = default_prompt
        self.variables = dict(variables or {})
        self.parts_of = lru_cache(8)(self._parts_of)

    @classmethod
    def options_of(cls, folder: Path) -> dict[str, Any]:
        return {**cls.settings_of(folder), **prompts_of(folder), **token_ids(folder), "variables": variables_of(folder)}

    @property
    def labels(self) -> tuple[str, ...]:
        """The text of the token whose logit is the score."""
        return (self.tokenizer.decode([self.true_token]),)

    def tokenize(
        self, texts: Sequence[Text], *, truncate: bool = True, special: bool = True, side: str | None = None
    ) -> list[Encoded]:
        """As `TextClassifier.tokenize`, with the default instruction; without `special`, the texts without a prompt.

        Raises:  ArgumentError for a text that is no pair
        """
        if not special:
            return super().tokenize(texts, truncate=truncate, special=False, side=side)
        default = None if self.default_prompt is None else self.prompts[self.default_prompt]
        return self.tokenize_with(texts, default, truncate=truncate, side=side)

    def tokenize_with(
        self, texts: Sequence[Text], prompt: str | None, *, truncate: bool = True, side: str | None = None
    ) -> list[Encoded]:
        parts, limit = self.parts_of(prompt), self.max_length if truncate else None
        return [self._encode(pair, parts, limit, side or "right") for pair in self.prepare(texts)]

    def _encode(self, pair: Text, parts: tuple[str, str, str], limit: int | None, side: str) -> Encoded:
        """Return the tokens of a prompt."""
        if isinstance(pair, str):
            raise ArgumentError("a text alone; the model scores pairs", hint="pass (query, text)")
        (before, between, after), (query, document) = parts, pair
        encode = self.tokenizer.encode_prompt
        lead = f"{before}{query}{between}"
        ids = encode(f"{lead}{document}{after}", add_special_tokens=False)
        if limit is not None and len(ids) > limit:
            whole, last = (encode(part, add_special_tokens=False) for part in (f"{lead}{document}", after))
            room = max(0, limit - len(last))
            kept = room if side == "right" else min(room, len(encode(lead, add_special_tokens=False)))
            ids = [*whole[:kept], *whole[len(whole) - room + kept :], *last]
        return Encoded(ids, [0] * len(ids))

    def _parts_of(self, prompt: str | None) -> tuple[str, str, str]:
        """Return the prompt's text before the query, between it and the document, and after the document.

        Raises:  TokenizerError if neither the chat template nor the tokenizer has a prompt for pairs
        """
        messages = [] if prompt is None else [{"role": "system", "content": prompt}]
        messages += [{"role": "query", "content": QUERY}, {"role": "document", "content": DOCUMENT}]
        text = ""
        if self.tokenizer.chat_template is not None:
            try:
                text = self.tokenizer.render_chat(messages, **self.variables)
            except MissingPackageError:
                raise
            except (ArgumentError, TokenizerError):
                text = ""  # a template that knows no such roles
        before, found, rest = text.partition(QUERY)
        between, also, after = rest.partition(DOCUMENT)
        if found and also:
            return before, between, after
        if self.tokenizer.token_to_id(TURN) is None:
            raise TokenizerError(
                "the chat template writes no query and no document, so the model is no reranker",
                hint='choose one whose template has the roles "query" and "document", or a Qwen3-Reranker',
            )
        return f"{JUDGE}{INSTRUCTION if prompt is None else prompt}\n<Query>: ", "\n<Document>: ", ANSWER

    def classify(self, batch: Batch) -> Vectors:
        with no_grad():
            scores_B1 = self.scores_of(self.placed(batch.input_ids), self.placed(batch.attention_mask))
        return scores_B1.float().cpu().numpy()

    def scores_of(self, input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Tensor:
        if options:
            raise ArgumentError(f"a language model with {', '.join(options)}", hint="pass tokens and their mask")
        hidden_BTD = self.model.hidden(input_ids, None)  # no position sees the padding, which is at the end
        last_B = attention_mask.long().sum(1) - 1
        last_B1D = hidden_BTD[arange(last_B.shape[0], device=last_B.device), last_B].unsqueeze(1)
        logits_BV = self.model.logits(last_B1D)[:, 0]
        scores_B = logits_BV[:, self.true_token]
        if self.false_token is not None:
            scores_B = scores_B - logits_BV[:, self.false_token]
        return scores_B.unsqueeze(1)


def token_ids(folder: Path) -> dict[str, int | None]:
    """Return the arguments `true_token` and `false_token`: as the module LogitScore says, else "yes" and "no".

    Raises:  CheckpointError for other modules, and a tokenizer without the tokens
    """
    for kind, place in modules_of(folder):
        if kind == SCORE:
            path = place / CONFIG
            entries = read_entries(path)
            yes, no, reads = (entries.get(name) for name in ("true_token_id", "false_token_id", "module_input_name"))
            if type(yes) is not int or not (no is None or type(no) is int) or reads not in (LOGITS, None):
                raise CheckpointError(
                    f"{path}: true_token_id={yes!r:.80}, false_token_id={no!r:.80}, module_input_name={reads!r:.80}",
                    hint=f"tallow supports ids of tokens, of {LOGITS}",
                )
            return {"true_token": yes, "false_token": no}
        if kind != "Transformer" or place != folder:
            raise CheckpointError(f"{folder}: a reranker with a module of kind {kind!r:.80}")
    tokenizer = Tokenizer.from_pretrained(folder)
    ids = [tokenizer.token_to_id(token) for token in (YES, NO)]
    if None in ids:
        raise CheckpointError(
            f"{folder}: the tokenizer has no tokens {YES!r} and {NO!r}, by which a language model ranks",
            hint=TextClassifier.choose,
        )
    return dict(zip(("true_token", "false_token"), ids, strict=True))


def variables_of(folder: Path) -> dict[str, Any]:
    """Return the variables of the chat template.  Raises: CheckpointError for other settings of a tokenizer"""
    path, entries = text_config(folder)
    settings = entries.get("processing_kwargs") or {}
    variables = settings.get("chat_template", {}) if isinstance(settings, dict) else None
    if not isinstance(variables, dict) or set(settings) - {"chat_template"}:
        raise CheckpointError(f"{path}: processing_kwargs is {settings!r:.200}; tallow supports only a chat_template")
    return {name: value for name, value in variables.items() if name != "restore_suffix"}
