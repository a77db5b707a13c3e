"""A policy gradient loop: each rank plays episodes of uneven length, then gradients are averaged."""
import argparse
import time
from collections import deque

import numpy as np
import torch
import torch.distributed as dist

import callbacks
import culprit


class Env:
    """A pole of a kind; episodes last as long as the policy is lucky."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def episode(self, policy):
        state, length = self.rng.normal(size=4), 0
        logits, rewards = [], []
        limit = int(self.rng.integers(10, 60))
        while length < limit and np.abs(state).max() < 6:
            out = policy(torch.from_numpy(state).float())
            action = int(torch.bernoulli(out.sigmoid()).item())
            logits.append(torch.nn.functional.logsigmoid(out if action else -out))
            state = state + 0.1 * self.rng.normal(size=4) + (0.05 if action else -0.05)
            rewards.append(1.0 - np.abs(state).mean())
            length += 1
            time.sleep(0.001)
        return torch.cat(logits), np.array(rewards)


def table(rows):
    width = 20
    print("-" * (2 * width + 7))
    for name, value in rows:
        print(f"| {name:<{width}} | {value:<{width}} |")
    print("-" * (2 * width + 7), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=70)
    parser.add_argument("--episodes", type=int, default=3)
    args = parser.parse_args()
    callbacks.on_start()
    culprit.trace_distributed()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    policy = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    env, recent, steps, began = Env(rank), deque(maxlen=50), 0, time.time()
    for update in range(args.updates):
        culprit.step(update)
        callbacks.on_step(update)
        optimizer.zero_grad()
        for _ in range(args.episodes):
            logits, rewards = env.episode(policy)
            returns = torch.from_numpy(rewards[::-1].cumsum()[::-1].copy()).float()
            (-(logits * (returns - returns.mean())).mean() / args.episodes).backward()
            recent.append(rewards.sum())
            steps += len(rewards)
        for p in policy.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        culprit.log_metrics(update, reward=float(np.mean(recent)))
        if rank == 0 and update % 5 == 0:
            table([("rollout/", ""), ("   ep_rew_mean", f"{np.mean(recent):.2f}"), ("time/", ""),
                   ("   fps", f"{steps / (time.time() - began):.0f}"), ("   iterations", update),
                   ("   total_timesteps", steps)])
    dist.barrier()
    if rank == 0:
        print("Finished learning", flush=True)


if __name__ == "__main__":
    main()
