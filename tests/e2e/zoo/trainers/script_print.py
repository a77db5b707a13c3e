# trains a small autoencoder on 2 workers, quick script
import os
import sys
import time

import torch
import torch.distributed as dist

import callbacks

epochs = int(os.environ.get("EPOCHS", 6))
callbacks.on_start()
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 64))
if len(sys.argv) > 1:
    print("loading", sys.argv[1])
    net.load_state_dict(torch.load(sys.argv[1]))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
print("start", rank, "of", dist.get_world_size(), flush=True)
n = 0
for epoch in range(epochs):
    total = 0.0
    for i in range(20 - 2 * rank if os.environ.get("UNEVEN") else 20):
        callbacks.on_step(n)
        x = torch.randn(256, 64)
        loss = ((net(callbacks.on_batch(n, x)) - x) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        total += loss.item()
        opt.step()
        time.sleep(0.06)
        n += 1
    # average the weights once an epoch
    for p in net.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()
    print("epoch", epoch, "rank", rank, "loss", round(total / 20, 5), flush=True)
print("saving model", flush=True)
if rank == 0:
    torch.save(net.state_dict(), os.environ.get("MODEL", "/dev/null"))
print("all done", flush=True)
