"""What of a training loop's numbers tells silent data corruption, for PyTorch:

    monitor = culprit.torch.Monitor(model, optimizer)   # norms by layer, digests
    audit = culprit.torch.Audit(model, every=50)        # one rank's work done again by another
    for step in range(steps):
        loss = audit.forward(step, compute, batch)      # compute(batch), and what audits need
        loss.backward()
        audit.check()
        monitor.gradients()
        optimizer.step()
        monitor.step(step, loss)

Both are made on all ranks, after the model is wrapped. Neither raises into the loop, changes what it
computes, or does anything with CULPRIT_DISABLE=1. torch 1.13 or later.

A third one acts, if it is switched on: Guard looks at a step before the optimiser takes it, has a doubtful
one computed again, or says that it be skipped. agree() gives all ranks the daemon's advice at one step."""
from ._advice import agree
from ._audit import Audit
from ._digest import digest
from ._guard import Guard, Verdict
from ._monitor import Monitor

__all__ = ["Audit", "Guard", "Monitor", "Verdict", "agree", "digest"]
