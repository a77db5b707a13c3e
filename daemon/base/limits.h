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
// Of these the last bytes of the line: an error may stand behind hours of a progress bar, or a dumped tensor.
constexpr size_t kLineEndBytes = 16 << 10;
// So many NULs in a row are a hole, as copytruncate under a writer or a crash of the host leaves: they end
// what stands before them. No writer writes so many.
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
// Lines of a job that match rules: 30,000 of the usual length. A storm of them must not fill the memory. And
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
// Connections to the trace socket: all ranks of a host with their data loaders, some hundreds, for several
// jobs at once. One user may not take them all.
constexpr size_t kTraceClients = 4096;
constexpr size_t kTraceClientsPerUser = 1024;
// Bytes per second and per burst that a user may write to the trace socket: some 50,000 lines. A job on a
// host writes a fiftieth of it; the daemon handles twenty times as much on one core.
constexpr uint64_t kTraceBytesPerSecond = 8 << 20;
constexpr uint64_t kTraceBytesAtOnce = 2 << 20;
// Bytes of unfinished lines over all connections of a user: 64 of the longest lines.
constexpr size_t kTraceUnfinishedBytes = 4 << 20;
// Jobs that a user may name on the trace socket at once, and the seconds until one more is allowed. A host
// runs a few a day, and each is a source in the store.
constexpr size_t kTraceJobsPerUser = 64;
constexpr int64_t kTraceJobEverySeconds = 600;
// Sources of the trace socket over all users: one user may have 65,536 uids by subuid.
constexpr size_t kTraceSources = 16'384;
// Bytes that the trace socket collects before it hands them on without waiting.
constexpr size_t kTraceHeldBytes = 256 << 10;
// Decompression: a frame of 18 bytes may make a decoder allocate 128 MiB, and 32 KiB may expand to 1 GiB.
constexpr int kZstdWindowLogMax = 27;
constexpr uint64_t kExpansionRatioMax = 2000;
constexpr uint64_t kExpansionFreeBytes = 64 << 20;  // below this size any ratio is allowed
// job.toml is read at once.
constexpr size_t kJobFileBytes = 16 << 20;
// A saved pool: some 200 bytes a form.
constexpr size_t kPoolFileBytes = 256 << 20;
// Jobs with an engine in the daemon of a host. A host runs a few at a time; ended jobs stay for queries. An
// engine takes some MB.
constexpr size_t kLiveJobs = 64;
// Sources of one live job: a file per rank and stream, over many restarts.
constexpr size_t kLiveSources = 65'536;
// Bytes of lines about the host (kernel messages, findings of plugins) kept for jobs that start later: driver
// messages minutes before a launch matter.
constexpr size_t kHostBacklogBytes = 1 << 20;
// Raised states of plugins that are kept for jobs that start later: some ten for each device of a host. The
// oldest gives way.
constexpr size_t kActiveStates = 1024;
// Faults and subjects of plugins' findings in one job: some ten for each device of a thousand hosts.
constexpr size_t kPluginSubjects = 65'536;
// Of them, those that one user claims.
constexpr size_t kPluginSubjectsOfUser = 256;
// Undelivered events of live jobs: a storm of rule matches must not fill the memory.
constexpr size_t kLiveEvents = 4096;
// A file of tokens: a token a line, for some thousand users.
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

// A block of condensed inputs: a few seconds of a job on one host. Bytes of the block, and lines in it. A
// block takes 128 MB at most, whatever it claims.
constexpr size_t kWireBytes = 8 << 20;
constexpr size_t kWireLines = 1 << 18;

// Communication traces. Ranks of a job: eight times the largest known job, so that a damaged number does not
// create tables of gigabytes. Spans: a watchdog ends a job within hours. Times: the year 2262, the end of
// 64-bit nanoseconds.
constexpr uint32_t kCommRanks = 1 << 20;
constexpr size_t kCommRows = 64;  // rows of a heat map that a person can read
// Largest step of a loop: JSON readers agree on no larger number, and sums of a few steps do not overflow.
constexpr int64_t kStepMax = (int64_t{1} << 53) - 1;
// Limit of the sum of step distances, for steps that jump back and forth.
constexpr int64_t kStepSumMax = int64_t{1} << 62;
// Metric names that an agent forwards per session: a hundred for each of 40 layers. And bytes per second of
// their values: sixteen ranks with 200 of the longest values each, at 20 steps a second.
constexpr size_t kLoopNames = 4096;
constexpr size_t kLoopBytesPerSecond = 1 << 20;
constexpr size_t kNumericRows = 64;
// Metrics of a job, and kinds of digests: a model of a hundred layers has five or six of each per layer.
// Ranks, and cells (ranks times metrics): 10,000 ranks with 400 metrics, at some 100 bytes a cell.
constexpr size_t kNumericNames = 2048;
constexpr size_t kNumericDigests = 32;
constexpr size_t kNumericRanks = 65'536;
constexpr size_t kNumericCells = 4 << 20;
// Reported numeric faults of a job; further ones are counted.
constexpr size_t kNumericFaults = 1000;
constexpr size_t kNumericPoints = 512;  // points of a curve over steps on a page
constexpr int64_t kCommSpanMax = 7ll * 24 * 3600 * 1'000'000'000;
constexpr int64_t kCommTimeMax = 9'223'372'036'000'000'000;

// Memory that a reader of untrusted bytes may hold for each byte that it read, and besides (tables, buffers).
// Honest dumps and answers need two to four bytes.
constexpr uint64_t kHeldPerByte = 8;
constexpr uint64_t kHeldFree = 1 << 20;
// Brackets that may be open in any JSON text or pickle of others: what is read is at most ten deep, and a
// recursive walk of a parsed value must fit any stack.
constexpr size_t kNesting = 31;

// Flight Recorder dumps have by default 2,000 entries of 500 bytes, or 20 KB with C++ frames. These limits
// are a hundred times as large. A value takes 16 bytes, a member of a list or table 4.
constexpr size_t kDumpBytes = 256 << 20;
constexpr size_t kDumpValues = 8 << 20;
constexpr size_t kDumpHeld = 64 << 20;  // members, and bytes of copied texts
constexpr size_t kDumpOps = 1 << 18;    // of one dump
constexpr size_t kDumpFrames = 32;      // of a stored stack
constexpr size_t kDumpGroups = 65'536;  // of one dump
// Operations over all dumps of a job, 48 bytes each: 65,536 ranks with a hundred pending operations, or 4,000
// ranks with full buffers.
constexpr size_t kFlightOps = 8 << 20;
// Operations of one dump that an agent sends: a hundred groups with all stored operations. Ranks over all its
// groups: four times the largest known job.
constexpr size_t kFlightOpsSent = 4096;
constexpr size_t kFlightRanks = 4 << 20;

// Stacks. A process with 2,000 threads writes 4 MB, and a debug server one file for all ranks. Dumps of one
// file: 16,384 ranks with four samples. Threads of a dump, and frames of a thread: Python allows a depth of
// 1,000. A function is a C++ name with its templates.
constexpr size_t kStackBytes = 256 << 20;
constexpr size_t kStackDumps = 65'536;
constexpr size_t kStackThreads = 8192;
constexpr size_t kStackFrames = 1024;
constexpr size_t kStackName = 1024;
// Of a job: processes, dumps of one process and tool (five tell slow from stuck), threads and different
// frames over all dumps, at some 32 bytes each.
constexpr size_t kStackUnits = 131'072;
constexpr size_t kStackSamples = 8;
constexpr size_t kStackThreadsMax = 4 << 20;
constexpr size_t kStackFramesMax = 1 << 20;

// Dumps that are being written, on a host: bytes of one, memory to read it, and compressed bytes over all
// jobs. One is read at a time, and eight ranks with C++ frames fit the service's 512 MB.
constexpr size_t kLiveDumpBytes = 40 << 20;
constexpr uint64_t kLiveDumpHeld = 80 << 20;
constexpr size_t kLiveDumpsPacked = 32 << 20;

// Answers of NCCL's RAS. 16,384 ranks in a dozen communicators each take 120 MB as JSON; larger answers are
// refused. JSON is read as it comes; the text form, which lists minorities alone, at once. Memory to read an
// answer. Ranks over all communicators, and communicators.
constexpr size_t kRasBytes = 128 << 20;
constexpr size_t kRasTextBytes = 4 << 20;
constexpr uint64_t kRasHeld = 32 << 20;
constexpr size_t kRasRanks = 1 << 18;
constexpr size_t kRasComms = 65'536;
// Processes of the last answers of all followed jobs, some 100 bytes each.
constexpr size_t kRasFollowed = 1 << 17;
// Processes without an answer that are named: beyond so many the network or a switch is gone.
constexpr size_t kRasExits = 256;
// Members that are named of one group of ranks, and communicators with a fault, in what is kept of an answer:
// a line of the trace socket holds them.
constexpr size_t kRasListed = 16;
constexpr size_t kRasCommsMax = 32;
constexpr size_t kRasRuns = 64;  // of the members of such a communicator
// Hosts whose answers about a job are kept apart: the newest counts.
constexpr size_t kRasHosts = 64;

// Checkpoints. Files and folders below the folder that is looked at, some 200 bytes each: 4,096 ranks with
// sixty files. The directory of a zip, and its records: a layer of a large model has some ten.
constexpr size_t kCheckpointEntries = 1 << 18;
constexpr size_t kZipDirectoryBytes = 64 << 20;
constexpr size_t kZipEntries = 1 << 18;
// An index of shards that is read at once, and a header of safetensors, whose own limit it is. Pieces in such
// an index, 32 bytes each, and values that its pickle remembers, 16 bytes each.
constexpr size_t kCheckpointIndexBytes = 256 << 20;
constexpr size_t kSafetensorsHeaderBytes = 100'000'000;
constexpr size_t kCheckpointPieces = 4 << 20;
constexpr size_t kCheckpointMemo = 16 << 20;
// Problems of one checkpoint that are named; the rest is counted.
constexpr size_t kCheckpointProblems = 16;
// A file that names the newest checkpoint, and JSON that is read beyond its syntax.
constexpr size_t kCheckpointPointerBytes = 4096;
constexpr size_t kCheckpointJsonBytes = 64 << 20;

// Plugins. A batch of events is sent once it has so many bytes: some thousand events, so that the cost per
// batch vanishes. Its last record may exceed this. Events that wait for a plugin: some 30,000 lines.
constexpr size_t kPluginBatchBytes = 256 << 10;
constexpr size_t kPluginQueueBytes = 4 << 20;
// A saved state, as culprit/plugin.h promises; and any message between daemon and plugin.
constexpr size_t kPluginStateBytes = 1 << 20;
constexpr size_t kPluginMessageBytes = 2 << 20;
// Values of a finding, and options of a plugin.
constexpr size_t kPluginValues = 64;
constexpr size_t kPluginOptions = 256;
// Plugins of a host: a process each.
constexpr size_t kPluginsOnHost = 64;
// Of a library whose symbols are checked.
constexpr uint64_t kPluginCheckBytes = 256 << 20;
// Lines of a plugin in the daemon's log, by host->log and on standard output, per minute.
constexpr uint64_t kPluginLinesPerMinute = 120;

}  // namespace culprit::limits
