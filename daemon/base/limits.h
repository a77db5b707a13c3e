// Every bound of the program, each with its reason. What goes beyond one is cut or dropped, counted and told.
#pragma once

#include <cstddef>
#include <cstdint>

namespace culprit::limits {

// A file is parsed in pieces of this size: large enough that the cost per piece vanishes, small enough that a
// few per thread fit beside everything else in the memory bound of 500 MB.
constexpr size_t kChunkBytes = 4 << 20;
// A longer line is cut here for parsing (its bytes and its number still count): no log line that a person
// wrote is longer, and one dumped tensor must not fill the memory.
constexpr size_t kLineBytes = 64 << 10;
// Bytes of a message that template mining looks at: what tells messages apart stands at their beginning.
constexpr size_t kMessageBytes = 4096;
// Tokens of a message that are kept apart; the rest is one hole.
constexpr size_t kMessageTokens = 256;
// Templates of one job. Real jobs have hundreds to a few thousand; beyond this, new ones fold into
// one per length.
constexpr size_t kTemplates = 65'536;
// Forms (masked messages) of one job, and their text, before templates join them. Real jobs have a few ten
// thousand; what comes beyond is one template.
constexpr size_t kForms = 131'072;
constexpr size_t kFormBytes = 32 << 20;
// Counts by template and writer: 64 bytes each with their index. 20,000 ranks with a hundred templates each.
constexpr size_t kGroups = 2'000'000;
// First lines of templates kept as text: a few hundred bytes for each of kTemplates.
constexpr size_t kSampleBytes = 24 << 20;
// Places kept for a template in a report (FORMATS.md section 7).
constexpr size_t kPlaces = 1000;
// Places kept over all templates: 24 bytes each.
constexpr size_t kPlacesTotal = 1'500'000;
// Bytes of a quoted line in a report.
constexpr size_t kEvidenceText = 2000;
// Writers (host and rank pairs) of one job: 65,536 ranks and their hosts.
constexpr size_t kWriters = 131'072;
// Beginning of a watched file that tells it from another of the same inode: a line of any log fits.
constexpr size_t kFingerprintBytes = 256;
// What stands before the place where it is read on: tells generations with the same banner from one another.
constexpr size_t kTailBytes = 64;
// Bytes of one piece of a source on its way to the store and the engine: a few may be under way for each of
// many sources, and a frame of the store holds a few. Of a plain file that is read in bulk, four times that.
constexpr size_t kPieceBytes = 64 << 10;
// Bytes of a job's, host's or event's name in what a process tells: path components are bounded alike.
constexpr size_t kNameBytes = 256;
// Connections to the trace socket: each of a host's ranks with its data loaders, some hundreds, for several
// jobs at once; and no user may take them all.
constexpr size_t kTraceClients = 4096;
constexpr size_t kTraceClientsPerUser = 1024;
// Bytes a second that a user may write to the trace socket, and at once: some 50,000 lines, fifty times what
// a job of a host writes, and a twentieth of what the daemon can take on one core.
constexpr uint64_t kTraceBytesPerSecond = 8 << 20;
constexpr uint64_t kTraceBytesAtOnce = 2 << 20;
// Unfinished lines of all of a user's connections: 64 of the longest.
constexpr size_t kTraceUnfinishedBytes = 4 << 20;
// Jobs that a user's lines may name at the trace socket at once, and how long until one more may be named: a
// host runs a few a day, and each is a source of the store.
constexpr size_t kTraceJobsPerUser = 64;
constexpr int64_t kTraceJobEverySeconds = 600;
// Sources of the trace socket, over all users: a user may have 65,536 numbers by subuid.
constexpr size_t kTraceSources = 16'384;
// Bytes that the trace socket holds before it hands them on without waiting for more.
constexpr size_t kTraceHeldBytes = 256 << 10;
// Decompression: a frame of 18 bytes may make a decoder allocate 128 MiB, and 32 KiB may expand to 1 GiB.
constexpr int kZstdWindowLogMax = 27;
constexpr uint64_t kExpansionRatioMax = 2000;
constexpr uint64_t kExpansionFreeBytes = 64 << 20;  // below this size no ratio is asked
// A file of these small kinds is read whole.
constexpr size_t kJobFileBytes = 16 << 20;
// A saved pool: some 200 bytes a form.
constexpr size_t kPoolFileBytes = 256 << 20;
// Jobs that a host's daemon holds an engine for: a host runs a few at a time, and the ended ones are there to
// be asked about. An engine takes some MB.
constexpr size_t kLiveJobs = 64;
// Sources of one live job: a file for each rank of a host and stream, over many restarts.
constexpr size_t kLiveSources = 65'536;
// Kernel messages kept for jobs that start later: what a driver says minutes before a launch matters to it.
constexpr size_t kKernelBacklogBytes = 1 << 20;
// Events of live jobs that nobody took yet: a storm of rules that fire must not fill the memory.
constexpr size_t kLiveEvents = 4096;
// Descriptors and processes looked at to learn who writes a file: a host of 20,000 processes is passed once.
constexpr size_t kProcEntries = 200'000;

// Rings read at a time, each an open file: a host's ranks with a few threads each are some hundred. Of one
// user a quarter, so that one who makes thousands leaves room for the others.
constexpr size_t kRingFiles = 4096;
constexpr size_t kRingFilesOfUid = 1024;
// Records of one ring: 64 MiB. The header's own word, so a bound for what a stranger may claim.
constexpr uint64_t kRingRecords = 1 << 20;
// Names looked at in the folder of rings: whoever puts more there hides only what comes behind.
constexpr size_t kRingNames = 65'536;
// A record of /dev/kmsg: the kernel formats at most 8 KiB, and answers EINVAL to a smaller buffer.
constexpr size_t kKernelRecordBytes = 16 << 10;

// A block of condensed inputs, of a few seconds of a host's job: what a reader takes at once, and the lines
// that it tells. 128 MB at most, whatever a block claims.
constexpr size_t kWireBytes = 8 << 20;
constexpr size_t kWireLines = 1 << 18;

// Communication traces. Ranks of a job: eight times the largest that is known to have run, so that a damaged
// number does not make tables of gigabytes. Spans: a watchdog ends a job within hours. Times: the year 2262,
// where nanoseconds end.
constexpr uint32_t kCommRanks = 1 << 20;
constexpr size_t kCommRows = 64;  // of a heat map: what a person looks over
// Steps that a loop tells: JSON's readers agree on no larger number, and sums of a few of them are numbers.
constexpr int64_t kStepMax = (int64_t{1} << 53) - 1;
// How far steps may add up that go forth and back, again and again.
constexpr int64_t kStepSumMax = int64_t{1} << 62;
// Names of metrics that an agent sends on of one session: a hundred for each of 40 layers. And the bytes of
// them in a second: sixteen ranks with two hundred values each tell 20 steps a second then, at their longest.
constexpr size_t kLoopNames = 4096;
constexpr size_t kLoopBytesPerSecond = 1 << 20;
constexpr size_t kNumericRows = 64;
// Metrics of a job, and kinds of digests: a model of a hundred layers tells five or six of each. Ranks, and
// cells of ranks times metrics: 10,000 ranks with 400 metrics, at some 100 bytes a cell.
constexpr size_t kNumericNames = 2048;
constexpr size_t kNumericDigests = 32;
constexpr size_t kNumericRanks = 65'536;
constexpr size_t kNumericCells = 4 << 20;
// Faults told of a job's numbers: what comes beyond is counted.
constexpr size_t kNumericFaults = 1000;
constexpr size_t kNumericPoints = 512;  // of a curve over steps: what a page shows
constexpr int64_t kCommSpanMax = 7ll * 24 * 3600 * 1'000'000'000;
constexpr int64_t kCommTimeMax = 9'223'372'036'000'000'000;

// Flight Recorder dumps: 2,000 entries by default of 500 bytes each, 20 KB with the frames of C++; these are
// a hundred times the usual. A value takes 16 bytes, a member of a list or table 4.
constexpr size_t kDumpBytes = 256 << 20;
constexpr size_t kDumpValues = 8 << 20;
constexpr size_t kDumpHeld = 64 << 20;  // members, and bytes of texts that had to be copied
constexpr size_t kDumpNesting = 256;    // a size within sizes within an entry is six deep
constexpr size_t kDumpOps = 1 << 18;    // of one dump
constexpr size_t kDumpFrames = 32;      // of a stack that is kept
constexpr size_t kDumpGroups = 65'536;  // of one dump
// Operations over all dumps of a job, 48 bytes each: 65,536 ranks with a hundred that wait, or 4,000 with
// full buffers.
constexpr size_t kFlightOps = 8 << 20;
// Of one dump on its way from a host that runs: a hundred groups with all that is kept of each. Ranks of all
// of its groups: a world of the largest known jobs four times.
constexpr size_t kFlightOpsSent = 4096;
constexpr size_t kFlightRanks = 4 << 20;

// Bytes of dumps that are being written, of all jobs of a host: eight ranks' of the usual size take 8 MB,
// with the frames of C++ 320 MB, which the service's 512 MB do not have.
constexpr size_t kLiveDumpBytes = 128 << 20;

}  // namespace culprit::limits
