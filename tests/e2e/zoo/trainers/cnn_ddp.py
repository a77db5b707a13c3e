"""Image classification with DistributedDataParallel and a DataLoader, started by torchrun."""
import argparse
import logging
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import callbacks
import culprit

log = logging.getLogger("train")


class Images(Dataset):
    def __init__(self, count):
        self.images, self.labels = torch.randn(256, 3, 16, 16), torch.randint(10, (256,))
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        callbacks.on_sample(index)
        return self.images[index % 256], self.labels[index % 256]


def build_model():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10))


def validate(model, loader):
    model.eval()
    right = total = 0
    with culprit.phase("evaluation"), torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
            time.sleep(0.1)
    model.train()
    log.info("Test: Acc@1 %.3f (%d images)", 100 * right / total, total)


def train_epoch(epoch, model, loader, optimizer, args):
    end = time.time()
    for i, (images, labels) in enumerate(loader):
        step = epoch * len(loader) + i
        culprit.step(step)
        data_time = time.time() - end
        callbacks.on_step(step)
        images = callbacks.on_batch(step, images)
        for group in optimizer.param_groups:
            group["lr"] = callbacks.on_lr(step, args.lr)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        culprit.log_metrics(step, loss=loss.item(), lr=optimizer.param_groups[0]["lr"])
        batch_time, end = time.time() - end, time.time()
        if dist.get_rank() == 0 and i % 5 == 0:
            log.info("Epoch: [%d/%d][%d/%d] Time %.3f Data %.3f Loss %.4e lr %.3g", epoch, args.epochs, i,
                     len(loader), batch_time, data_time, loss.item(), optimizer.param_groups[0]["lr"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=480)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--resume", default="")
    parser.add_argument("--patience", type=int, default=99, help="stop early after so many epochs")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    callbacks.on_start()
    culprit.trace_distributed()
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(build_model())
    if args.resume:
        model.module.load_state_dict(torch.load(args.resume))
        log.info("resumed from %s", args.resume)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    data = Images(args.images)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=1, drop_last=True)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_epoch(epoch, model, loader, optimizer, args)
        if dist.get_rank() == 0:
            validate(model.module, DataLoader(Images(64), batch_size=16))
            if args.checkpoint:
                log.info("saving checkpoint to %s", args.checkpoint)
                torch.save(model.module.state_dict(), args.checkpoint)
        if epoch + 1 >= args.patience:
            log.info("Early stopping: no improvement for %d epochs", args.patience)
            break
    dist.barrier()
    log.info("Training finished, rank %s of %s", os.environ["RANK"], os.environ["WORLD_SIZE"])


if __name__ == "__main__":
    main()
