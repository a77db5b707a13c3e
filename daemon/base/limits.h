// Every limit of the program, each with its reason. Input beyond a limit is cut or dropped, counted and
// reported.
#pragma once

#include <cstddef>
#include <cstdint>

namespace culprit::limits {

// Size of the chunks in which files are parsed. Large enough that the cost per chunk vanishes; small enough
// that a few per thread fit into the memory limit of 500 MB with all other data.
constexpr size_t kChunkBytes = 4 << 20;
// A longer line is cut here for parsing; its bytes and its number still count. Log messages are shorter, and
// one dumped tensor must not fill the memory.
constexpr size_t kLineBytes = 64 << 10;
// Part of a cut line that is kept from its end: an error may follow hours of a progress bar, or a dumped
// tensor.
constexpr size_t kLineEndBytes = 16 << 10;
// NULs in a row that count as a hole, as left by copytruncate under a writer or by a host crash. A hole ends
// the line before it. No writer writes so many NULs.
constexpr size_t kHoleNuls = 16;
// Bytes of a message that template mining reads: messages differ at their beginning.
constexpr size_t kMessageBytes = 4096;
// Tokens of a message in a template; the rest is one hole.
constexpr size_t kMessageTokens = 256;
// Templates of one job. Real jobs have hundreds to a few thousand; beyond this, new ones join one per length.
constexpr size_t kTemplates = 65'536;
// Forms (masked messages) of one job, and their text, before templates join them. Real jobs have some ten
// thousand; further ones are one template.
constexpr size_t kForms = 131'072;
constexpr size_t kFormBytes = 32 << 20;
// Counts by template and writer: 64 bytes each with their index. 20,000 ranks with a hundred templates each.
constexpr size_t kGroups = 2'000'000;
// First lines of templates kept as text: a few hundred bytes for each of kTemplates.
constexpr size_t kSampleBytes = 24 << 20;
// Places kept for a template in a report (formats.md section 7).
constexpr size_t kPlaces = 1000;
// Places kept over all templates: 24 bytes each.
constexpr size_t kPlacesTotal = 1'500'000;
// Text of a job's lines that match rules (30,000 of usual length: a storm must not fill the memory), and of
// exceptions that ended a process and match no rule.
constexpr size_t kRuleLineBytes = 12 << 20;
constexpr size_t kUncaughtBytes = 2 << 20;
// Bytes of a quoted line in a report.
constexpr size_t kEvidenceText = 2000;
// Findings of detectors in a report, for people who write rules on them.
constexpr size_t kSeenFindings = 64;
// Writers (host and rank pairs) of one job: 65,536 ranks and their hosts.
constexpr size_t kWriters = 131'072;
// Bytes at the beginning of a watched file that identify it when an inode is reused: a log line fits.
constexpr size_t kFingerprintBytes = 256;
// Bytes before the read position that identify a generation: several generations may start with one banner.
constexpr size_t kTailBytes = 64;
// Bytes of one piece of a source between reader, store and engine. Many sources have a few pieces in flight,
// and a frame of the store holds a few. Bulk reads of a plain file use four times as much.
constexpr size_t kPieceBytes = 64 << 10;
// Bytes of a path: Linux's PATH_MAX.
constexpr size_t kPathBytes = 4096;
// Devices of a host; names with a larger number mean something else.
constexpr uint32_t kDevicesOfHost = 64;
// Bytes of the name of a job, host or event on the trace socket: the limit of a path component.
constexpr size_t kNameBytes = 256;
// Connections to the trace socket, in total and per user, so that one user cannot take them all. Ranks and
// data loaders of a host need some hundred per job.
constexpr size_t kTraceClients = 4096;
constexpr size_t kTraceClientsPerUser = 1024;
// Bytes per second and per burst that a user may write to the trace socket: some 50,000 lines. A job on a
// host writes a fiftieth of this rate; the daemon handles twenty times the rate on one core.
constexpr uint64_t kTraceBytesPerSecond = 8 << 20;
constexpr uint64_t kTraceBytesAtOnce = 2 << 20;
// Bytes of unfinished lines over all connections of a user: 64 of the longest lines.
constexpr size_t kTraceUnfinishedBytes = 4 << 20;
// Jobs that a user may name on the trace socket at once, and the seconds until one more is allowed. Each job
// is a source in the store; a host runs a few jobs a day.
constexpr size_t kTraceJobsPerUser = 64;
constexpr int64_t kTraceJobEverySeconds = 600;
// Sources of the trace socket over all users. A limit per uid is not enough: subuid gives one user 65,536
// uids.
constexpr size_t kTraceSources = 16'384;
// Bytes that the trace socket buffers before it passes them on without further delay.
constexpr size_t kTraceHeldBytes = 256 << 10;
// Decompression: a frame of 18 bytes may make a decoder allocate 128 MiB, and 32 KiB may expand to 1 GiB.
constexpr int kZstdWindowLogMax = 27;
constexpr uint64_t kExpansionRatioMax = 2000;
constexpr uint64_t kExpansionFreeBytes = 64 << 20;  // below this size any ratio is allowed
// Size of job.toml, which is read whole.
constexpr size_t kJobFileBytes = 16 << 20;
// Size of a saved pool: some 200 bytes per form.
constexpr size_t kPoolFileBytes = 256 << 20;
// Jobs with an engine (some MB each) in a host's daemon. A host runs a few at a time; ended jobs stay for
// queries.
constexpr size_t kLiveJobs = 64;
// Sources of one live job: a file per rank and stream, over many restarts.
constexpr size_t kLiveSources = 65'536;
// Bytes of lines about the host (kernel messages, findings of plugins) kept for jobs that start later: driver
// messages minutes before a launch matter.
constexpr size_t kHostBacklogBytes = 1 << 20;
// Raised plugin states kept for jobs that start later: some ten per device of a host. Beyond this, the oldest
// is dropped.
constexpr size_t kActiveStates = 1024;
// Pairs of fault and subject in the plugin findings of one job: some ten per device of a thousand hosts.
constexpr size_t kPluginSubjects = 65'536;
// Part of kPluginSubjects that one user may claim.
constexpr size_t kPluginSubjectsOfUser = 256;
// Undelivered events of live jobs: a storm of rule matches must not fill the memory.
constexpr size_t kLiveEvents = 4096;
// Size of a token file: one token per line, for some thousand users.
constexpr size_t kTokenFileBytes = 256 << 10;
// Descriptors and processes read to find the writer of a file: one pass over a host with 20,000 processes.
constexpr size_t kProcEntries = 200'000;

// Rings open at a time: the ranks of a host with a few threads each need some hundred. One user may have a
// quarter, so that others have room.
constexpr size_t kRingFiles = 4096;
constexpr size_t kRingFilesOfUid = 1024;
// Records of one ring: 64 MiB. The header is untrusted, so this limits what it may claim.
constexpr uint64_t kRingRecords = 1 << 20;
// Names read in the folder of rings: a user who creates more hides only the later names.
constexpr size_t kRingNames = 65'536;
// A record of /dev/kmsg: the kernel formats at most 8 KiB, and returns EINVAL for a smaller buffer.
constexpr size_t kKernelRecordBytes = 16 << 10;
// A line of journalctl, and the part of an entry's message that is kept. journald takes 48 KiB from a
// service's output, and any size from a program that calls it. A binary message is a list of numbers there.
constexpr size_t kJournalLineBytes = 1 << 20;
constexpr size_t kJournalMessageBytes = 32 << 10;
// Any other field of an entry: a unit's name has at most 255 bytes.
constexpr size_t kJournalFieldBytes = 256;

// Bytes and lines of a block of condensed inputs: a few seconds of a job on one host. A block takes 128 MB at
// most, whatever sizes it declares.
constexpr size_t kWireBytes = 8 << 20;
constexpr size_t kWireLines = 1 << 18;

// Communication traces. kCommRanks, ranks of a job: eight times the largest known job, so that a damaged
// number does not create tables of gigabytes. kCommSpanMax: a watchdog ends a job within hours. kCommTimeMax:
// the year 2262, the end of 64-bit nanoseconds.
constexpr uint32_t kCommRanks = 1 << 20;
constexpr size_t kCommRows = 64;  // rows of a heat map that a person can read
// Largest step of a loop: the largest integer that all JSON readers keep exact. Sums of a few steps do not
// overflow.
constexpr int64_t kStepMax = (int64_t{1} << 53) - 1;
// Limit of a sum of step distances: steps may jump back and forth.
constexpr int64_t kStepSumMax = int64_t{1} << 62;
// Metric names that an agent forwards per session: a hundred for each of 40 layers. Bytes of metric values
// per second: sixteen ranks with 200 of the longest values each, at 20 steps a second.
constexpr size_t kLoopNames = 4096;
constexpr size_t kLoopBytesPerSecond = 1 << 20;
constexpr size_t kNumericRows = 64;
// Per job: metrics and kinds of digests (a model of a hundred layers has five or six per layer), ranks, and
// cells. A cell is one metric of one rank, some 100 bytes: 10,000 ranks with 400 metrics.
constexpr size_t kNumericNames = 2048;
constexpr size_t kNumericDigests = 32;
constexpr size_t kNumericRanks = 65'536;
constexpr size_t kNumericCells = 4 << 20;
// Reported numeric faults of a job; further ones are counted.
constexpr size_t kNumericFaults = 1000;
constexpr size_t kNumericPoints = 512;  // points of a curve over steps on a page
constexpr int64_t kCommSpanMax = 7ll * 24 * 3600 * 1'000'000'000;
constexpr int64_t kCommTimeMax = 9'223'372'036'000'000'000;

// Memory that a reader of untrusted bytes may hold: per byte read, plus a fixed amount for tables and
// buffers. Honest dumps and answers need two to four bytes per byte.
constexpr uint64_t kHeldPerByte = 8;
constexpr uint64_t kHeldFree = 1 << 20;
// Nesting depth of untrusted JSON and pickles. Known formats are at most ten deep; a recursive walk of a
// parsed value must fit any thread's stack.
constexpr size_t kNesting = 31;

// Flight Recorder dumps have by default 2,000 entries of 500 bytes, or 20 KB with C++ frames. These limits
// are a hundred times as large. A value takes 16 bytes; a member of a list or table takes 4.
constexpr size_t kDumpBytes = 256 << 20;
constexpr size_t kDumpValues = 8 << 20;
constexpr size_t kDumpHeld = 64 << 20;  // members, and bytes of copied texts
constexpr size_t kDumpOps = 1 << 18;    // of one dump
constexpr size_t kDumpFrames = 32;      // of a stored stack
constexpr size_t kDumpGroups = 65'536;  // of one dump
// Operations over all dumps of a job, 48 bytes each: 65,536 ranks with a hundred pending operations, or 4,000
// ranks with full buffers.
constexpr size_t kFlightOps = 8 << 20;
// Operations of one dump that an agent sends: a hundred groups with all stored operations. Ranks over all
// groups of a dump: four times the largest known job.
constexpr size_t kFlightOpsSent = 4096;
constexpr size_t kFlightRanks = 4 << 20;

// Stack files. A process with 2,000 threads writes 4 MB; a debug server writes one file for all ranks. Dumps
// of one file: 16,384 ranks with four samples. Threads per dump. Frames per thread: Python allows a depth of
// 1,000. Bytes of a function name: C++ names include their template arguments.
constexpr size_t kStackBytes = 256 << 20;
constexpr size_t kStackDumps = 65'536;
constexpr size_t kStackThreads = 8192;
constexpr size_t kStackFrames = 1024;
constexpr size_t kStackName = 1024;
// Stacks of a job: processes; dumps per process and tool (five distinguish slow from stuck); threads and
// distinct frames over all dumps, some 32 bytes each.
constexpr size_t kStackUnits = 131'072;
constexpr size_t kStackSamples = 8;
constexpr size_t kStackThreadsMax = 4 << 20;
constexpr size_t kStackFramesMax = 1 << 20;

// Dumps being written on a host: bytes of one dump, memory to read one, and compressed bytes over all jobs.
// One dump is read at a time; eight ranks with C++ frames fit the service's 512 MB.
constexpr size_t kLiveDumpBytes = 40 << 20;
constexpr uint64_t kLiveDumpHeld = 80 << 20;
constexpr size_t kLiveDumpsPacked = 32 << 20;

// Files of NCCL's Inspector: processes in communicators, some 300 bytes each; 65,536 ranks in eight.
constexpr size_t kInspectorMembers = 1 << 19;

// Traces of PyTorch's profiler. A trace of some steps has some 100 MB, most of it about other work; a few
// thousand operations of 64 bytes are needed. Operations of one trace and of all open ones; bytes of one
// event (events with Python's stack have some KB) and of the description of the job's groups.
constexpr size_t kProfilerOps = 1 << 20;
constexpr size_t kProfilerOpsOpen = 8 << 20;
constexpr size_t kProfilerEventBytes = 64 << 10;
constexpr size_t kProfilerGroupsBytes = 2 << 20;
constexpr size_t kProfilerSteps = 65'536;

// Answers of NCCL's RAS. 16,384 ranks in a dozen communicators each take 120 MB as JSON; larger answers are
// refused. JSON is parsed as it arrives; the text form, which lists only minorities, is read whole. kRasHeld:
// memory to read an answer. kRasRanks: ranks over all communicators.
constexpr size_t kRasBytes = 128 << 20;
constexpr size_t kRasTextBytes = 4 << 20;
constexpr uint64_t kRasHeld = 32 << 20;
constexpr size_t kRasRanks = 1 << 18;
constexpr size_t kRasComms = 65'536;
// Processes of the last answers of all followed jobs, some 100 bytes each.
constexpr size_t kRasFollowed = 1 << 17;
// Listed processes without an answer: if there are more, the network or a switch failed.
constexpr size_t kRasExits = 256;
// Listed members per group of ranks, and communicators with a fault, in the stored part of an answer: it must
// fit a line of the trace socket.
constexpr size_t kRasListed = 16;
constexpr size_t kRasCommsMax = 32;
constexpr size_t kRasRuns = 64;  // runs of consecutive members of a faulty communicator
// Hosts whose answers about one job are kept separately; the newest answer counts.
constexpr size_t kRasHosts = 64;

// Checkpoints. Files and folders below the examined folder, some 200 bytes each: 4,096 ranks with sixty
// files. Bytes of a zip directory, and its records: some ten per layer of a large model.
constexpr size_t kCheckpointEntries = 1 << 18;
constexpr size_t kZipDirectoryBytes = 64 << 20;
constexpr size_t kZipEntries = 1 << 18;
// Bytes of a shard index, which is read whole. Bytes of a safetensors header: the format's own limit. Tensor
// pieces in a shard index (32 bytes each), and values in its pickle's memo (16 bytes each).
constexpr size_t kCheckpointIndexBytes = 256 << 20;
constexpr size_t kSafetensorsHeaderBytes = 100'000'000;
constexpr size_t kCheckpointPieces = 4 << 20;
constexpr size_t kCheckpointMemo = 16 << 20;
// Listed problems of one checkpoint; the rest is counted.
constexpr size_t kCheckpointProblems = 16;
// Bytes of a file that names the newest checkpoint. Bytes of a JSON file that is parsed; larger files are
// not.
constexpr size_t kCheckpointPointerBytes = 4096;
constexpr size_t kCheckpointJsonBytes = 64 << 20;

// Plugins. An event batch is sent at this size (its last record may exceed it): some thousand events, so that
// the cost per batch is negligible. Bytes of events queued for a plugin: some 30,000 lines.
constexpr size_t kPluginBatchBytes = 256 << 10;
constexpr size_t kPluginQueueBytes = 4 << 20;
// Bytes of a plugin's saved state (promised by culprit/plugin.h), and of a message between daemon and plugin.
constexpr size_t kPluginStateBytes = 1 << 20;
constexpr size_t kPluginMessageBytes = 2 << 20;
// Values of a finding, and options of a plugin.
constexpr size_t kPluginValues = 64;
constexpr size_t kPluginOptions = 256;
// Plugins of a host: each is a process.
constexpr size_t kPluginsOnHost = 64;
// Bytes of a library whose symbols are checked.
constexpr uint64_t kPluginCheckBytes = 256 << 20;
// Lines per minute of a plugin in the daemon's log, from host->log and standard output.
constexpr uint64_t kPluginLinesPerMinute = 120;

}  // namespace culprit::limits
