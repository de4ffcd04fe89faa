"""Cards of sentence encoders: means, first and last tokens, and a judge of documents."""

from __future__ import annotations

from typing import Any

from tests.transformers.cards.card import card

SENTENCES = ["A cat sleeps on the sofa.", "The quick brown fox", "A kitten naps in the sun, isn't it lazy?"]


def mean_pooling(torch: Any, model_output: Any, attention_mask: Any) -> Any:
    token_embeddings = model_output[0]
    expanded = attention_mask.unsqueeze(-1).expand(token_embeddings.size()).float()
    return torch.sum(token_embeddings * expanded, 1) / torch.clamp(expanded.sum(1), min=1e-9)


def last_token_pool(torch: Any, last_hidden_states: Any, attention_mask: Any) -> Any:
    if attention_mask[:, -1].sum() == attention_mask.shape[0]:
        return last_hidden_states[:, -1]
    lengths = attention_mask.sum(dim=1) - 1
    rows = torch.arange(last_hidden_states.shape[0], device=last_hidden_states.device)
    return last_hidden_states[rows, lengths]


@card("BertModel")
def bert_means(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModel.from_pretrained(name)
    encoded_input = tokenizer(SENTENCES, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        model_output = model(**encoded_input)
    embeddings = mean_pooling(torch, model_output, encoded_input["attention_mask"])
    return torch.nn.functional.normalize(embeddings, p=2, dim=1)


@card("BertModel")
def bert_first_tokens(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModel.from_pretrained(name)
    model.eval()
    encoded_input = tokenizer(SENTENCES, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        sentence_embeddings = model(**encoded_input)[0][:, 0]
    sentence_embeddings = torch.nn.functional.normalize(sentence_embeddings, p=2, dim=1)
    return sentence_embeddings @ sentence_embeddings.T


@card("XLMRobertaModel")
def xlm_roberta_queries_and_passages(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModel.from_pretrained(name)
    texts = ["query: who sleeps?", *(f"passage: {text}" for text in SENTENCES)]
    batch_dict = tokenizer(texts, max_length=24, padding=True, truncation=True, return_tensors="pt")
    outputs = model(**batch_dict)
    mask = batch_dict["attention_mask"]
    hidden = outputs.last_hidden_state.masked_fill(~mask[..., None].bool(), 0.0)
    embeddings = torch.nn.functional.normalize(hidden.sum(dim=1) / mask.sum(dim=1)[..., None], p=2, dim=1)
    return ((embeddings[:1] @ embeddings[1:].T) * 100).tolist()


@card("Qwen3Model", head_dim=16)
def qwen3_last_tokens(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name, padding_side="left")
    model = tf.AutoModel.from_pretrained(name)
    texts = [f"Instruct: find a match\nQuery:{SENTENCES[0]}", *SENTENCES]
    batch_dict = tokenizer(texts, padding=True, truncation=True, max_length=30, return_tensors="pt")
    batch_dict.to(model.device)
    outputs = model(**batch_dict)
    return last_token_pool(torch, outputs.last_hidden_state, batch_dict["attention_mask"])


@card("MistralModel", sliding_window=None)
def mistral_last_tokens_padded_right(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModel.from_pretrained(name)
    batch_dict = tokenizer(SENTENCES, padding=True, return_attention_mask=True, return_tensors="pt")
    with torch.no_grad():
        outputs = model(**batch_dict)
    return last_token_pool(torch, outputs.last_hidden_state, batch_dict["attention_mask"])


@card("Qwen3ForCausalLM", head_dim=16)
def qwen3_judges_documents(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name, padding_side="left")
    model = tf.AutoModelForCausalLM.from_pretrained(name).eval()
    prefix, suffix = (tokenizer.encode(text, add_special_tokens=False) for text in ("Judge:", "\nAnswer:"))
    yes, no = tokenizer.convert_tokens_to_ids("y"), tokenizer.convert_tokens_to_ids("n")
    pairs = [f"<Query>: who sleeps?\n<Document>: {text}" for text in SENTENCES]
    room = 40 - len(prefix) - len(suffix)
    inputs = tokenizer(pairs, padding=False, truncation="longest_first", return_attention_mask=False, max_length=room)
    for i, ids in enumerate(inputs["input_ids"]):
        inputs["input_ids"][i] = prefix + ids + suffix
    inputs = tokenizer.pad(inputs, padding=True, return_tensors="pt", max_length=40)
    with torch.no_grad():
        batch_scores = model(**inputs).logits[:, -1, :]
    stacked = torch.stack([batch_scores[:, no], batch_scores[:, yes]], dim=1)
    return torch.nn.functional.log_softmax(stacked, dim=1)[:, 1].exp().tolist()


@card("DistilBertModel")
def distilbert_features_by_pipeline(tf: Any, torch: Any, name: str) -> Any:
    extractor = tf.pipeline("feature-extraction", model=name)
    return extractor(SENTENCES[:2])
