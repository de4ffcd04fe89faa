"""Cards of encoders: masked words, labels of texts and tokens, answers, pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.transformers.cards.card import card

MOODS = {"id2label": {0: "negative", 1: "neutral", 2: "positive"}}
MOODS["label2id"] = {name: i for i, name in MOODS["id2label"].items()}  # type: ignore[misc]
LOGIC = {
    "id2label": {0: "contradiction", 1: "neutral", 2: "entailment"},
    "label2id": {"contradiction": 0, "neutral": 1, "entailment": 2},
}
TAGS = {"id2label": dict(enumerate(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]))}
LONG = {"max_position_embeddings": 128}
CONTEXT = "A cat sleeps on the sofa. A kitten naps in the sun."


@card("BertForMaskedLM")
def bert_fills_a_mask(tf: Any, torch: Any, name: str) -> Any:
    unmasker = tf.pipeline("fill-mask", model=name)
    return unmasker("The lazy dog is a [MASK] fox.")


@card("BertModel")
def bert_features(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.BertTokenizer.from_pretrained(name)
    model = tf.BertModel.from_pretrained(name)
    encoded_input = tokenizer("Replace me by any text you'd like.", return_tensors="pt")
    output = model(**encoded_input)
    return [output.last_hidden_state, output.pooler_output]


@card("DistilBertForMaskedLM")
def distilbert_best_words_for_a_mask(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.DistilBertTokenizer.from_pretrained(name)
    model = tf.DistilBertForMaskedLM.from_pretrained(name)
    text = f"The fox {tokenizer.mask_token} over the dog."
    inputs = tokenizer(text, return_tensors="pt")
    token_logits = model(**inputs).logits
    mask_token_index = torch.where(inputs["input_ids"] == tokenizer.mask_token_id)[1]
    top_tokens = torch.topk(token_logits[0, mask_token_index, :], 5, dim=1).indices[0].tolist()
    for token in top_tokens:
        print(f">>> {text.replace(tokenizer.mask_token, tokenizer.decode([token]))}")
    return top_tokens


@card("RobertaForMaskedLM")
def roberta_fills_a_mask(tf: Any, torch: Any, name: str) -> Any:
    unmasker = tf.pipeline("fill-mask", model=name, top_k=3)
    return unmasker(["Hello I'm a <mask> dog.", "A cat sleeps on the <mask>."])


@card("ModernBertForMaskedLM")
def modernbert_predicts_a_token(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForMaskedLM.from_pretrained(name)
    inputs = tokenizer("The cat sleeps on the [MASK].", return_tensors="pt")
    outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
    masked_index = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    predicted_token_id = outputs.logits[0, masked_index].argmax(axis=-1)
    print("Predicted token:", tokenizer.decode(predicted_token_id))
    return outputs.logits


@card("XLMRobertaForMaskedLM")
def xlm_roberta_features_of_a_language(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForMaskedLM.from_pretrained(name)
    encoded_input = tokenizer("Zwölf Boxkämpfer jagen Viktor.", return_tensors="pt")
    return model(**encoded_input, output_hidden_states=True).hidden_states[-1]


@card("DistilBertForSequenceClassification", **MOODS)
def distilbert_mood(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.DistilBertTokenizer.from_pretrained(name)
    model = tf.DistilBertForSequenceClassification.from_pretrained(name)
    inputs = tokenizer("Hello, my dog is lazy", return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits
    predicted_class_id = logits.argmax().item()
    return [model.config.id2label[predicted_class_id], logits]


@card("RobertaForSequenceClassification", **MOODS)
def roberta_moods_in_order(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    config = tf.AutoConfig.from_pretrained(name)
    model = tf.AutoModelForSequenceClassification.from_pretrained(name)
    encoded_input = tokenizer("A kitten naps!", return_tensors="pt")
    output = model(**encoded_input)
    scores = output[0][0].detach().numpy()
    scores = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    ranking = np.argsort(scores)[::-1]
    for i in range(scores.shape[0]):
        print(f"{i + 1}) {config.id2label[ranking[i]]}")
    return scores


@card("BertForSequenceClassification", **MOODS)
def bert_mood_by_pipeline(tf: Any, torch: Any, name: str) -> Any:
    model = tf.BertForSequenceClassification.from_pretrained(name, num_labels=3)
    tokenizer = tf.BertTokenizer.from_pretrained(name)
    nlp = tf.pipeline("sentiment-analysis", model=model, tokenizer=tokenizer)
    return nlp(["The dog is lazy.", "A cat sleeps.", "It isn't the fox's fault.", "We've seen 1,234 of them."])


@card("RobertaForSequenceClassification", problem_type="multi_label_classification", **MOODS)
def roberta_every_label_with_a_score(tf: Any, torch: Any, name: str) -> Any:
    classifier = tf.pipeline(task="text-classification", model=name, top_k=None)
    model_outputs = classifier(["I am not having a great day"])
    return model_outputs[0]


@card("BertForTokenClassification", **TAGS)
def bert_names_by_pipeline(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForTokenClassification.from_pretrained(name)
    nlp = tf.pipeline("ner", model=model, tokenizer=tokenizer)
    grouped = tf.pipeline("ner", model=model, tokenizer=tokenizer, aggregation_strategy="simple")
    text = "Viktor sleeps in the park of Sylt"
    return [nlp(text), grouped(text)]


@card("DistilBertForTokenClassification", **TAGS)
def distilbert_names_by_argmax(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForTokenClassification.from_pretrained(name)
    inputs = tokenizer("Viktor jagen Deich", add_special_tokens=False, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits
    predictions = logits.argmax(-1)
    labels = [model.config.id2label[t.item()] for t in predictions[0]]
    tokens = tokenizer.convert_ids_to_tokens(inputs.input_ids[0])
    loss = model(**inputs, labels=predictions).loss
    return [list(zip(tokens, labels, strict=True)), round(loss.item(), 3)]


@card("BertForQuestionAnswering", **LONG)
def bert_answers_a_question(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.BertForQuestionAnswering.from_pretrained(name)
    inputs = tokenizer(
        "Where does the cat sleep?", CONTEXT, return_tensors="pt", truncation="only_second", max_length=64
    )
    with torch.no_grad():
        outputs = model(**inputs)
    start, end = outputs.start_logits.argmax(), outputs.end_logits.argmax()
    predict_answer_tokens = inputs.input_ids[0, min(start, end) : max(start, end) + 1]
    print(tokenizer.decode(predict_answer_tokens))
    targets = {"start_positions": torch.tensor([4]), "end_positions": torch.tensor([6])}
    return model(**inputs, **targets).loss


@card("RobertaForQuestionAnswering", **LONG)
def roberta_answer_with_its_score(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForQuestionAnswering.from_pretrained(name)
    inputs = tokenizer("Who naps?", CONTEXT, return_tensors="pt", return_offsets_mapping=True)
    offsets = inputs.pop("offset_mapping")[0]
    output = model(**inputs)
    starts, ends = output.start_logits.softmax(-1)[0], output.end_logits.softmax(-1)[0]
    scores = torch.triu(starts[:, None] * ends[None, :])
    best = int(scores.flatten().argmax())
    first, last = best // scores.shape[1], best % scores.shape[1]
    return [scores.max(), CONTEXT[offsets[first][0] : offsets[last][1]]]


@card("BertForSequenceClassification", **LOGIC)
def bert_labels_without_examples(tf: Any, torch: Any, name: str) -> Any:
    classifier = tf.pipeline("zero-shot-classification", model=name)
    labels = ["travel", "cooking", "dancing"]
    text = "A fox jumps over the dog"
    return [classifier(text, labels), classifier(text, labels, multi_label=True)]


@card("RobertaForSequenceClassification", **LOGIC)
def roberta_premise_and_hypothesis(tf: Any, torch: Any, name: str) -> Any:
    nli_model = tf.AutoModelForSequenceClassification.from_pretrained(name)
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    x = tokenizer.encode("A cat sleeps.", "It is about cats.", return_tensors="pt", truncation="only_first")
    logits = nli_model(x.to("cpu"))[0]
    entail_contradiction_logits = logits[:, [0, 2]]
    return entail_contradiction_logits.softmax(dim=1)[:, 1]


@card("XLMRobertaForSequenceClassification", num_labels=1)
def xlm_roberta_ranks_passages(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForSequenceClassification.from_pretrained(name)
    model.eval()
    pairs = [["what is a fox?", "hi"], ["what is a fox?", "The quick brown fox jumps over the lazy dog."]]
    with torch.no_grad():
        inputs = tokenizer(pairs, padding=True, truncation=True, return_tensors="pt", max_length=32)
        scores = model(**inputs, return_dict=True).logits.view(-1).float()
    return scores


@card("BertForSequenceClassification", num_labels=1)
def bert_ranks_two_lists(tf: Any, torch: Any, name: str) -> Any:
    model = tf.AutoModelForSequenceClassification.from_pretrained(name)
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    queries = ["How many dogs?", "How many dogs?"]
    passages = ["We've seen 1,234 of them in 2024!", "A cat sleeps on the sofa."]
    features = tokenizer(queries, passages, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        return model(**features).logits
