"""Recurrent networks for words: a language model that carries its state, and a tagger of packed sentences."""

import argparse
import math
import os

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

WORDS = 20


class LanguageModel(nn.Module):
    def __init__(self, kind, width=12, layers=2, drop=0.2):
        super(LanguageModel, self).__init__()
        self.kind, self.width, self.layers = kind, width, layers
        self.embed = nn.Embedding(WORDS, width)
        self.drop = nn.Dropout(drop)
        if kind in ("LSTM", "GRU"):
            self.rnn = getattr(nn, kind)(width, width, layers, dropout=0.0)
        else:
            self.rnn = nn.RNN(width, width, layers, nonlinearity=kind.lower(), dropout=0.0)
        self.out = nn.Linear(width, WORDS)
        self.out.weight = self.embed.weight
        self.out.bias.data.zero_()
        self.out.weight.data.uniform_(-0.1, 0.1)

    def start(self, batch):
        zeros = next(self.parameters()).new_zeros(self.layers, batch, self.width)
        return (zeros, zeros.clone()) if self.kind == "LSTM" else zeros

    def forward(self, ids, state):
        self.rnn.flatten_parameters()
        hidden, state = self.rnn(self.drop(self.embed(ids)), state)
        scores = self.out(self.drop(hidden)).view(-1, WORDS)
        return nn.functional.log_softmax(scores, dim=1), state


class Tagger(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 6, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * 6, tags)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        hidden, last = self.rnn(packed)
        hidden, back = pad_packed_sequence(hidden, batch_first=True)
        assert torch.equal(back, torch.as_tensor(lengths, device=back.device))
        return self.out(hidden), torch.cat((last[0], last[1]), dim=-1)


def without_history(state):
    return state.detach() if torch.is_tensor(state) else tuple(without_history(part) for part in state)


def columns(ids, batch):
    """Return the text as `batch` long columns."""
    length = ids.size(0) // batch
    return ids.narrow(0, 0, length * batch).view(batch, -1).t().contiguous()


def train_language_model(model, text, epochs, span=10, lr=5.0):
    loss_of = nn.NLLLoss()
    best = None
    for epoch in range(epochs):
        model.train()
        state, total = model.start(text.size(1)), 0.0
        for begin in range(0, text.size(0) - 1, span):
            length = min(span, len(text) - 1 - begin)
            ids, targets = text[begin : begin + length], text[begin + 1 : begin + 1 + length].view(-1)
            state = without_history(state)
            model.zero_grad()
            scores, state = model(ids, state)
            loss = loss_of(scores, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            total += loss.item()
            print(f"epoch {epoch} at {begin:3d} loss {loss.item():.5f} perplexity {math.exp(loss.item()):8.3f}")
        if best is not None and total >= best:
            lr /= 4.0
        best = total if best is None else min(best, total)


@torch.no_grad()
def invent(model, length=10):
    model.eval()
    word, state, words = torch.ones(1, 1, dtype=torch.long), model.start(1), []
    for _ in range(length):
        scores, state = model(word, state)
        sampled = torch.multinomial(scores.squeeze().div(0.9).exp().cpu(), 1)[0]
        word.fill_(sampled)
        words.append(sampled.item())
    return words


def train_tagger(tagger):
    rng = np.random.RandomState(1)
    sentences = [torch.as_tensor(rng.randint(1, WORDS, n)) for n in (3, 7, 5)]
    tags = pad_sequence([s % 3 for s in sentences], batch_first=True, padding_value=-100)
    words = pad_sequence(sentences, batch_first=True)
    optimizer = torch.optim.RMSprop(tagger.parameters(), lr=0.02)
    loss_of = nn.CrossEntropyLoss(ignore_index=-100)
    for _ in range(5):
        optimizer.zero_grad()
        scores, summary = tagger(words, [len(s) for s in sentences])
        loss = loss_of(scores.permute(0, 2, 1), tags) + 0.01 * summary.pow(2).mean()
        loss.backward()
        optimizer.step()
        print(f"tagger loss {loss.item():.6f}")
    assert tagger.embed.weight.grad[0].abs().sum() == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True, help="first weights; written where the file does not exist")
    parser.add_argument("--rnn", default="LSTM", choices=["LSTM", "GRU", "TANH", "RELU"])
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(1111)
    text = columns(torch.LongTensor(np.random.RandomState(0).zipf(1.5, 400).clip(1, WORDS - 1)), 8)
    model, tagger = LanguageModel(args.rnn), Tagger(3)
    if os.path.exists(args.init):
        saved = torch.load(args.init)
        model.load_state_dict(saved["model"])
        tagger.load_state_dict(saved["tagger"])
    else:
        torch.save({"model": model.state_dict(), "tagger": tagger.state_dict()}, args.init)
    train_language_model(model, text, args.steps)
    print(invent(model))
    train_tagger(tagger)


if __name__ == "__main__":
    main()
