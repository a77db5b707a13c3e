-- Lines of PyTorch's watchdogs that say who waits in which operation, in the wordings of 1.13 to 2.11. They
-- are no failure by themselves: the rules keep them, and the judge of a hang reads their holes and answers.

local function keep(id, title, regex, hit, miss, reads, observes)
  rule {
    id = "pytorch.watchdog." .. id, engine = 1, restart = "unknown", title = title,
    category = "unknown", component = "nccl_comm",
    severity = "info", symptom = "hang", observes = observes or "operations", reads = reads,
    match = { regex = regex }, action = "none",
    remedy = "Read the report's hang: it joins these lines.", examples = { hit = hit, miss = miss },
  }
end

-- A line may be cut anywhere, so a value counts only with the character that ends it.
local own_rank = [=[\[rank(?P<own_rank>\d+)\D]=]
local counters = [=[[lL]ast enqueued (?:NCCL |HCCL )?work: *]=]
local work = [=[Work\w{0,5}CCL\((?:[^()]|\(ms\))*?\b]=]
local reads = {
  own_rank,
  -- "[PG 0 Rank 1]", "[PG 0 (default_pg) Rank 1]", "[PG ID 2 PG GUID 5(mesh_dp) Rank 1]". The number after PG
  -- or PG ID is local to the process: only 0, the default group, is equal on all ranks.
  [=[\[PG [^\]]*Rank (?P<group_rank>\d+)]=],
  [=[\[Rank (?P<group_rank>\d+)\D]=],
  [=[\[PG [^\](]*PG GUID (?P<group>[^\](]*?) *(?:\(|Rank)]=],
  [=[\[PG (?P<group>0) *(?:\(|Rank)]=],
  [=[\[PG [^\](]*\((?P<group_name>)undefined\) *Rank]=],
  [=[\[PG [^\](]*\((?P<group_name>[^\]]*)\)[^\])]*Rank \d]=],
  [=[\[PG (?:ID )?(?P<group_local>\d+)[^\]]*Rank \d]=],
  -- Such numbers are of the default group, whichever group hangs.
  [=[(?P<seq>)(?P<op>)(?P<world>Received a dump signal|Received a global timeout).*]=] ..
    counters .. [=[-?\d]=],
  [=[(?P<timed_out>)(?P<enqueued>)raised the following async exception]=],
  [=[(?P<timed_out>)]=] .. counters .. [=[(?P<enqueued>-?\d+)]=],
  [=[last completed (?:NCCL |HCCL )?work: *(?P<completed>-?\d+)]=],
  [=[(?:at NCCL work|at HCCL work|watchdog at work|work sequence id): (?P<seq>\d+)\D.*]=] ..
    counters .. [=[-?\d]=],
  -- WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000): fields in any order.
  work .. [=[SeqNum=(?P<seq>\d+)[,)]]=], work .. [=[OpType=(?P<op>[^,)]*)[,)]]=],
  work .. [=[NumelIn=(?P<in>\d+)[,)]]=], work .. [=[NumelOut=(?P<out>\d+)[,)]]=],
  [=[(?P<timed_out>Work\w{0,5}CCL)\(]=],
  [=[ran for (?P<waited_ms>\d+) milliseconds before timing out]=],
}

keep("numbers", "Watchdog states the last operations of its group",
  { [[last enqueued (?:NCCL |HCCL )?work: \d]], [[Last enqueued NCCL work: \d]] },
  { "[PG ID 0 PG GUID 0(default_pg) Rank 3]  failure detected by watchdog at work sequence id: 7219 PG " ..
      "status: last enqueued work: 7220, last completed work: 7218",
    "last enqueued NCCL work: 77" },
  { "last enqueued batch: 7" }, reads)
keep("work", "Watchdog names an operation",
  { [[Work[A-Z]{1,5}CCL\((?:SeqNum|OpType)=]] },
  { "WorkHCCL(SeqNum=78, OpType=BROADCAST, Timeout(ms)=1800000)" },
  { "ProcessGroupNCCL::WorkNCCL::isCompleted() + 0x50" }, reads)
keep("frame", "Frame of the call that did not end",
  { [[^#\d+ \S+ from \S+:\d+$]] },
  { "#0 all_reduce from /opt/train/model.py:120" },
  { "#0  0x00007f in poll () from /lib/libc.so.6" },
  { [[^#\d+ (?P<function>\S+) (?P<site>)from (?P<library_site>\S*/torch/\S*:\d+)$]],
    [[^#\d+ (?P<function>\S+) from (?P<site>\S+:\d+)$]] })
keep("desync", "Desync report states where a rank is",
  { [=[\[(?P<joined>[\d, ]+)\] Timeout at collective: (?P<op>[^,]+)(?:, #(?P<seq>\d+))?]=],
    [=[\[(?P<joined>[\d, ]+)\] joined but didn't finish collective #(?P<seq>\d+)]=],
    [=[\[(?P<absent>[\d, ]+)\] finished collective #\d+, but did(?:n't| not) join collective #(?P<seq>\d+)]=],
    [=[\[(?P<absent>[\d, ]+)\] are the lagging ranks]=] },
  { "\t - [3] Timeout at collective: ALLREDUCE, #120",
    "\t - [0, 2] joined but didn't finish collective #7 (count from 1)",
    "\t - [1] finished collective #7, but didn't join collective #8 (count from 1)",
    "\t - To our best knowledge, ranks [5, 6] are the lagging ranks that caused this timeout." },
  { "Timeout at collective", "ranks [] are the lagging ranks" }, { own_rank })
keep("barrier", "Ranks meet in a barrier that one does not leave",
  { [[successfully reached monitoredBarrier, but received errors]] },
  { "Rank 3 successfully reached monitoredBarrier, but received errors while waiting for send/recv from " ..
      "rank 0. Please check rank 0 logs for faulty rank." },
  { "Rank 3 reached the barrier" },
  { own_rank,
    [[Rank (?P<own_rank>\d+) successfully reached (?P<op>monitoredBarrier), but .* from ]] ..
      [[rank (?P<asks>\d+)]] })
keep("store", "Process waits for a key of the store",
  { [[waitForInput: socket .* timed out after \d+ ?ms]] },
  { "[c10d] waitForInput: socket SocketImpl(fd=79, addr=[localhost]:41170, remote=[localhost]:29500) " ..
      "timed out after 1800000ms" },
  { "[c10d] waitForInput: poll for socket SocketImpl(fd=79, addr=[localhost]:41170) returned 0" },
  { own_rank, [[(?P<store>waitForInput).* timed out after (?P<waited_ms>\d+) ?ms]] })
keep("world", "Elastic agent states how many ranks it starts",
  { [[\bglobal_world_sizes=\[\d]] },
  { "  global_world_sizes=[3, 3, 3]" },
  { "world_sizes=[3, 3]" },
  { [[global_world_sizes=\[(?P<started>\d+)]] }, "members")
