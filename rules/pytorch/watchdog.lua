-- Lines of PyTorch's watchdogs that say who waits in which operation. They are no failure by themselves: the
-- rules keep them, and core/detect/hang reads them and answers. Of desync reports holes carry the values:
-- `joined` and `absent` (ranks of the group), `seq` and `op` of the operation.

local function keep(id, title, regex, hit, miss)
  rule {
    id = "pytorch.watchdog." .. id, engine = 1, restart = "unknown", title = title,
    category = "unknown", component = "nccl_comm",
    severity = "info", symptom = "hang", observes = "operations", match = { regex = regex }, action = "none",
    remedy = "Read the report's hang: it joins these lines.", examples = { hit = hit, miss = miss },
  }
end

keep("numbers", "Watchdog states the last operations of its group",
  { [[last enqueued (?:NCCL |HCCL )?work: \d]], [[Last enqueued NCCL work: \d]] },
  { "[PG ID 0 PG GUID 0(default_pg) Rank 3]  failure detected by watchdog at work sequence id: 7219 PG " ..
      "status: last enqueued work: 7220, last completed work: 7218",
    "last enqueued NCCL work: 77" },
  { "last enqueued batch: 7" })
keep("work", "Watchdog names an operation",
  { [[Work[A-Z]{1,5}CCL\((?:SeqNum|OpType)=]] },
  { "WorkHCCL(SeqNum=78, OpType=BROADCAST, Timeout(ms)=1800000)" },
  { "ProcessGroupNCCL::WorkNCCL::isCompleted() + 0x50" })
keep("frame", "Frame of the call that did not end",
  { [[^#\d+ \S+ from \S+:\d+$]] },
  { "#0 all_reduce from /opt/train/model.py:120" },
  { "#0  0x00007f in poll () from /lib/libc.so.6" })
keep("desync", "Desync report states where a rank is",
  { [=[\[(?P<joined>[\d, ]+)\] Timeout at collective: (?P<op>[^,]+)(?:, #(?P<seq>\d+))?]=],
    [=[\[(?P<joined>[\d, ]+)\] joined but didn't finish collective #(?P<seq>\d+)]=],
    [=[\[(?P<absent>[\d, ]+)\] finished collective #\d+, but did(?:n't| not) join collective #(?P<seq>\d+)]=],
    [=[\[(?P<absent>[\d, ]+)\] are the lagging ranks]=] },
  { "\t - [3] Timeout at collective: ALLREDUCE, #120",
    "\t - [0, 2] joined but didn't finish collective #7 (count from 1)",
    "\t - [1] finished collective #7, but didn't join collective #8 (count from 1)",
    "\t - To our best knowledge, ranks [5, 6] are the lagging ranks that caused this timeout." },
  { "Timeout at collective", "ranks [] are the lagging ranks" })
keep("barrier", "Ranks meet in a barrier that one does not leave",
  { [[successfully reached monitoredBarrier, but received errors]] },
  { "Rank 3 successfully reached monitoredBarrier, but received errors while waiting for send/recv from " ..
      "rank 0. Please check rank 0 logs for faulty rank." },
  { "Rank 3 reached the barrier" })
keep("store", "Process waits for a key of the store",
  { [[waitForInput: socket .* timed out after \d+ ?ms]] },
  { "[c10d] waitForInput: socket SocketImpl(fd=79, addr=[localhost]:41170, remote=[localhost]:29500) " ..
      "timed out after 1800000ms" },
  { "[c10d] waitForInput: poll for socket SocketImpl(fd=79, addr=[localhost]:41170) returned 0" })
keep("world", "Elastic agent states how many ranks it starts",
  { [[\bglobal_world_sizes=\[\d]] },
  { "  global_world_sizes=[3, 3, 3]" },
  { "world_sizes=[3, 3]" })
