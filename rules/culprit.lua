---@meta culprit
-- Printed by `culprit rules keys --format lua`, for the Lua language server; no rule file.

---@class culprit.rule.match
---@field template? string|string[] a text with holes, or a list of them, searched anywhere in the message after the line's header. `<name>`, `<_>` and `<*>` stand for one or more characters, as few as possible, the last one in a template for the rest of the line; `<<` is a `<`
---@field regex? string|string[] the same in RE2's syntax, with named groups for holes
---@field except? string|string[] regexes; a line that has one of them is no hit

---@class culprit.rule.window
---@field by? "host"|"rank"|"device"|"job" whose hits count together
---@field span string how long: "500ms", "60s", "10m", "2h"
---@field at_least? integer how many hits, or different values of `distinct`
---@field same? string a hole: only hits with the same value of it count together
---@field distinct? string a hole: its different values count instead of hits
---@field unless? string id of a rule that must not have fired for the same in the span before
---@field after? string id of a rule that must have fired for the same in the span before
---@field with? string id of a rule, on findings or on lines, that must have fired for the same while the finding held, or in the span before or after it; only where `source` is `finding`

---@class culprit.rule.recovery
---@field rule string id of a rule: its hit on the same host ends the state
---@field same? string a hole of both rules that must have the same value
---@field within? string a state that ends that soon is no cause of a failure: its hit makes no diagnosis, but still counts in windows

---@class culprit.rule.examples
---@field hit string|string[] texts that make it fire; lines of one text come one after another
---@field miss string|string[] texts that do not

---@class culprit.rule
---@field id string its name: lower-case words, digits, `_` and `-`, joined by dots; unique over all files
---@field engine integer the version of this shape: 1
---@field title string what happened, in a few words; the report shows it. `<name>` in it is the text of that hole in the first hit, `<text>` the line
---@field category "hardware"|"user"|"framework"|"platform"|"unknown" who has to act
---@field component "gpu"|"gpu_memory"|"nvlink"|"pcie"|"network"|"nccl_comm"|"host_memory"|"host_kernel"|"storage"|"cpu"|"cuda_runtime"|"driver"|"framework"|"user_code"|"user_config"|"user_data"|"dependency"|"platform"|"numeric"|"unknown" what broke
---@field severity "info"|"warning"|"error"|"fatal" `fatal`: no process goes on after it; `error`: some do; `warning` and `info` make no diagnosis by themselves, they serve the windows of other rules and add evidence to a diagnosis
---@field symptom? "launch_failure"|"crash"|"hang"|"slowdown"|"numeric"|"other" how the job shows it
---@field source? "log"|"kernel"|"finding"|"event"|"metric"|"fatal"|("log"|"kernel"|"finding"|"event"|"metric"|"fatal")[] what the text is: a line of a log, a kernel's message, a detector's finding (`comm: ...`, `numerics: ...`, `stacks: ...`, a plugin's `gpu_health gpu.thermal_throttle: ...`; `findings` of a report in JSON has them), an event or a metric of a trace (its fields as `name=value`), or a line at level fatal with its header, if no rule knows its message
---@field match culprit.rule.match the wordings; a line that has one of them is a hit
---@field role? "root"|"cascade" `cascade`: says only that something else failed; never outranks a root elsewhere in the job
---@field says? "notice"|"origin"|"failure"|"errno"|"cause" what the wording says, the least first: what to plan for, which program reports a failure, what failed, the error that the system returned, or the cause. A rule gives way to one that says more of the same line; only a `cause` leads elsewhere; `notice` makes a diagnosis below a verdict, where nothing else is found, at any severity
---@field ends? "killed" `killed`: the line says that a process was ended from outside: by the kernel, a limit, a scheduler or a person. Its rank is looked for on the line's host, and the line explains why peers wait for it
---@field observes? "collective"|"operations"|"absent"|"frames"|"meeting"|"members"|"peer"|"sizes"|"refusal"|"loopback" what the line shows of ranks that wait; the judge of a hang reads it: a `collective` that waits, times out or fails; the last `operations` of a rank; who is `absent` from an operation; the `frames` of a watchdog without its message; a `meeting` that some did not reach, and its `members`; a `peer` that closed its connection; `sizes` that differ; a `refusal` by a peer; a `loopback` address offered to peers. The values of the line are in holes, of `match` or of `reads`; "Holes of ranks that wait" lists them
---@field reads? string|string[] with `observes`: regexes whose named holes are values of a line of this rule, each tried on the message, wherever the wording of `match` stands in it. Of a hole that several have, the first regex counts in which its group takes part, even empty; one of `match` with a value comes first. They decide no match
---@field general? boolean the same as `says = "failure"`
---@field blames? "host"|"job"|"few" where the fault sits; `few`: on the host where few hosts tell of it. By default on the host for `hardware`; on the job for programs, their settings, data, numbers and frameworks, the platform, and a program's use of GPU memory; else `few`
---@field window? culprit.rule.window hits in a span of time that must come together
---@field recovery? culprit.rule.recovery what says that the state is over
---@field when? fun(event: culprit.event, window: culprit.window): boolean `function(event, window)`: called when all else holds; returns true or false. Both tables are read-only
---@field remedy string what to do, in a sentence
---@field action? "isolate"|"check"|"restart"|"rollback"|"retry"|"mitigate"|"fix"|"none" what the controller may do by itself
---@field restart? "never"|"elsewhere"|"older"|"later"|"same"|"unknown"|("never"|"elsewhere"|"older"|"later"|"same"|"unknown")[] what must differ for the job's next attempt: nothing will help (`never`), another host or device (`elsewhere`), an `older` checkpoint, a service that answers again (`later`), nothing (`same`); `unknown`: one more attempt. Of two words the second holds once the job has made a step. A rule of the library states it
---@field scan? "all" needed by a pattern without three fixed characters in a row: it is tried on every line, which costs
---@field examples culprit.rule.examples proof, run at every load

---@class culprit.override
---@field id string the rule that is changed
---@field severity? "info"|"warning"|"error"|"fatal" in place of the rule's
---@field action? "isolate"|"check"|"restart"|"rollback"|"retry"|"mitigate"|"fix"|"none" in place of the rule's
---@field restart? "never"|"elsewhere"|"older"|"later"|"same"|"unknown"|("never"|"elsewhere"|"older"|"later"|"same"|"unknown")[] in place of the rule's
---@field enabled? boolean false switches the rule off

---@class culprit.event
---@field text string the message
---@field source "log"|"kernel"|"finding"|"event"|"metric"
---@field host? string
---@field rank? integer
---@field device? integer
---@field step? integer
---@field time_ns? integer
---@field [string] string|integer|nil every named hole

---@class culprit.window
---@field count integer hits in the window
---@field distinct integer values of the hole that `distinct` names
---@field hosts integer
---@field ranks integer
---@field first_ns? integer
---@field last_ns? integer
---@field down_ns integer how long the states of the hits lasted together, by `recovery`

---@param fields culprit.rule
function rule(fields) end

---@param fields culprit.override
function override(fields) end

text = {}

---Whether the regex (RE2) stands in s.
---@param s string
---@param regex string
---@return boolean
function text.has(s, regex) end

---The regex's groups, or the whole match where it has none; nil where it does not match.
---@param s string
---@param regex string
---@return string? ...
function text.match(s, regex) end

---The first number in s, or nil.
---@param s string
---@return number?
function text.number(s) end
