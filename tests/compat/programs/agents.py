"""Agents on a line: REINFORCE with a baseline, deep Q-learning with replay, and a clipped Gaussian policy."""

import argparse
import os
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Bernoulli, Categorical, Independent, Normal, Uniform, kl_divergence

LENGTH = 5
Step = namedtuple("Step", ("state", "action", "next_state", "reward"))


class Line:
    """The right end is the goal; every step has a cost."""

    def reset(self):
        self.place, self.time = LENGTH // 2, 0
        return self.observe()

    def observe(self):
        return np.eye(LENGTH, dtype=np.float32)[self.place]

    def step(self, action):
        self.place = int(np.clip(self.place + 2 * action - 1, 0, LENGTH - 1))
        self.time += 1
        arrived = self.place == LENGTH - 1
        return self.observe(), 1.0 if arrived else -0.1, arrived or self.time >= 12


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(LENGTH, 16)
        self.actor, self.critic = nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, state):
        hidden = F.relu(self.trunk(state))
        return Categorical(F.softmax(self.actor(hidden), dim=-1)), self.critic(hidden)


class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(3, 2)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return Independent(Normal(self.mean(x), self.log_std.exp()), 1)


def play_and_learn(agent, optimizer, world, gamma=0.95):
    """Play one episode of REINFORCE; return its reward and loss."""
    state, done, steps, rewards = world.reset(), False, [], []
    while not done:
        policy, value = agent(torch.as_tensor(state).float())
        action = policy.sample()
        steps.append((policy.log_prob(action), policy.entropy(), value))
        state, reward, done = world.step(action.item())
        rewards.append(reward)
    returns = deque()
    for reward in reversed(rewards):
        returns.appendleft(reward + gamma * (returns[0] if returns else 0.0))
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps.item())
    losses = []
    for (log_prob, entropy, value), target in zip(steps, returns):
        losses.append(-log_prob * (target - value.item()) - 0.01 * entropy)
        losses.append(F.smooth_l1_loss(value, torch.tensor([target])).view(()))
    loss = torch.stack(losses).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return sum(rewards), loss.item()


def replay(online, target, memory, optimizer, size=8, gamma=0.9):
    batch = Step(*zip(*random.sample(memory, size)))
    goes_on = torch.tensor([state is not None for state in batch.next_state], dtype=torch.bool)
    future = torch.zeros(size)
    with torch.no_grad():
        future[goes_on] = target(torch.cat([state for state in batch.next_state if state is not None])).max(1).values
    expected = future * gamma + torch.cat(batch.reward)
    predicted = online(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    loss = nn.SmoothL1Loss()(predicted, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(online.parameters(), 100)
    optimizer.step()
    return loss.item()


def q_learning(online, target, world):
    random.seed(0)
    memory, optimizer = deque([], maxlen=100), optim.AdamW(online.parameters(), lr=1e-2, amsgrad=True)
    state = torch.tensor(world.reset(), dtype=torch.float32).unsqueeze(0)
    for t in range(40):
        if random.random() > 0.5:
            with torch.no_grad():
                action = online(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[random.randrange(2)]], dtype=torch.long)
        observation, reward, done = world.step(action.item())
        following = None if done else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        memory.append(Step(state, action, following, torch.tensor([reward])))
        state = torch.tensor(world.reset(), dtype=torch.float32).unsqueeze(0) if done else following
        if len(memory) >= 8 and t % 4 == 0:
            print(f"q-learning {t} loss {replay(online, target, memory, optimizer):.6f}")
            slow, fast = target.state_dict(), online.state_dict()
            target.load_state_dict({name: 0.1 * fast[name] + 0.9 * slow[name] for name in slow})


def clipped_policy(gaussian):
    x = torch.linspace(-1, 1, 12).view(4, 3)
    with torch.no_grad():
        before = Independent(Normal(gaussian.mean(x), gaussian.log_std.exp().expand(4, 2)), 1)
    optimizer = optim.SGD(gaussian.parameters(), lr=0.1)
    for _ in range(4):
        policy = gaussian(x)
        action = policy.rsample()
        ratio = (policy.log_prob(action.detach()) - before.log_prob(action.detach())).exp()
        loss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean() + kl_divergence(policy, before).mean()
        loss = loss - 0.1 * policy.entropy().mean() + action.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"clipped loss {loss.item():.5f} {policy.batch_shape} {policy.event_shape} {tuple(action.shape)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True, help="first weights; written where the file does not exist")
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()

    def q_network():
        return nn.Sequential(nn.Linear(LENGTH, 16), nn.ReLU(), nn.Linear(16, 2))

    agent, online, target, gaussian = ActorCritic(), q_network(), q_network(), Gaussian()
    everything = nn.ModuleList([agent, online, gaussian])
    if os.path.exists(args.init):
        everything.load_state_dict(torch.load(args.init))
    else:
        torch.save(everything.state_dict(), args.init)
    target.load_state_dict(online.state_dict())

    optimizer = optim.Adam(agent.parameters(), lr=3e-2)
    for episode in range(args.steps):
        reward, loss = play_and_learn(agent, optimizer, Line())
        print(f"episode {episode} reward {reward:.2f} loss {loss:.5f}")
    q_learning(online, target, Line())
    clipped_policy(gaussian)
    coin = Bernoulli(logits=torch.tensor([0.0, 2.0]))
    print([f"{value:.4f}" for value in coin.log_prob(torch.tensor([1.0, 0.0])).tolist()], coin.mean.tolist()[0])
    print(Uniform(torch.tensor(0.0), torch.tensor(4.0)).entropy().item(), Categorical(logits=torch.zeros(3)))


if __name__ == "__main__":
    main()
