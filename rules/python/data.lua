-- Reading data: what stands in the files is not what the program expects.

local function data(row)
  rule {
    id = "python.data." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_data", severity = row.severity or "fatal", says = row.says,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "fix",
    window = row.window,
    examples = { hit = row.hit, miss = row.miss },
  }
end

-- A bar of a download under way: a damaged file below it is a transfer that broke off.
data {
  id = "fetches", restart = "unknown", title = "Program fetches files", severity = "info", action = "none",
  regex = { [[(?i)^\s*download(?:ing|ed)?\b.{0,200}\b\d{1,2}%\|]] },
  remedy = "None.",
  hit = { "Downloading shards.zip:  73%|#######   | 730M/1.0G" },
  miss = { "Downloading shards.zip: 100%|##########| 1.0G/1.0G" },
}
-- A table of its own for each rule.
local function fetched() return { by = "host", span = "1m", after = "python.data.fetches" } end
local function not_fetched() return { by = "host", span = "1m", unless = "python.data.fetches" } end
local bar = "Downloading shards.zip:  73%|#######   | 730M/1.0G\n"
data {
  id = "download", restart = "later", title = "Downloaded file is damaged or cut off", category = "platform",
  component = "network", action = "check", window = fetched(),
  regex = { [[\bJSONDecodeError: (?P<what>\S.*)]], [[\bBadZipFile: ]], [[\bBadGzipFile: ]],
    [[EOFError: Compressed file ended before the end-of-stream]], [[\btarfile\.ReadError: ]],
    [[\bzlib\.error: Error -?\d+ while decompressing]], [[\b_?lzma\.LZMAError: ]],
    [[ArrowInvalid: (?:Not an Arrow file|Parquet magic bytes not found)]] },
  remedy = "Fetch it again; if it stays damaged, remove it from the cache and compare with its source.",
  hit = { bar .. "zipfile.BadZipFile: File is not a zip file",
    bar .. "json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 9001 (char 9000)" },
  miss = { "zipfile.BadZipFile: File is not a zip file" },
}
-- The file ends too early: still being written or fetched, or damaged for good. One more attempt shows it.
data {
  id = "cut", restart = "unknown", title = "File that was read is cut off", window = not_fetched(),
  regex = { [[\bJSONDecodeError: (?P<what>Unterminated string .*)]],
    [[EOFError: Compressed file ended before the end-of-stream]],
    [[\bUnpicklingError: (?P<what>pickle data was truncated)]], [[\bEOFError: Ran out of input]] },
  remedy = "Check the file's size against its source; fetch or write it again.",
  hit = { "EOFError: Ran out of input", "_pickle.UnpicklingError: pickle data was truncated",
    "json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 9001 (char 9000)" },
  miss = { "_pickle.UnpicklingError: invalid load key, 'v'.",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)" },
}
data {
  id = "json", window = not_fetched(), title = "Text is not valid JSON",
  regex = { [[\bJSONDecodeError: (?P<what>\S.*)]], [[\bujson\.JSONDecodeError]],
    [[ArrowInvalid: JSON parse error: ]],
    [[simdjson.*(?:TAPE_ERROR|The JSON document has an improper structure)]] },
  -- An answer of a service; a file that is cut off.
  except = { [[\brequests\.exceptions\.]], [[: Unterminated string ]] },
  remedy = "Look at the file and line that was read: often empty, cut off or an error page.",
  hit = { "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "pyarrow.lib.ArrowInvalid: JSON parse error: Missing a closing quotation mark in string. in row 14" },
  miss = { [[raise JSONDecodeError("Expecting value", s, err.value) from None]] },
}
data {
  id = "encoding", title = "Text is in another encoding than expected",
  regex = { [[\bUnicodeDecodeError: '(?P<codec>[\w-]+)' codec can't decode]],
    [[\bUnicodeEncodeError: '(?P<codec>[\w-]+)' codec can't encode]], [[\bUnicodeError: ]] },
  remedy = "Open the file with its encoding, or set the locale (LANG=C.UTF-8); a binary file is no text.",
  hit = { "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x80 in position 0: invalid start byte",
    "UnicodeEncodeError: 'ascii' codec can't encode character '\\u4e2d' in position 3: ordinal not in " ..
        "range" },
  miss = { "UnicodeWarning: some characters could not be decoded" },
}
data {
  id = "pickle", title = "Stored object could not be read back",
  except = [[\bpickle data was truncated\b]],
  regex = { [[\bUnpicklingError: (?P<what>\S.*)]],
    [[\bModuleNotFoundError: No module named .* while unpickling]], [[invalid load key, '.{1,6}'\.]],
    [[ValueError: unsupported pickle protocol]] },
  remedy = "The file is cut off, of another kind (an LFS pointer, a web page) or of another version: " ..
      "fetch it again.",
  hit = { "_pickle.UnpicklingError: invalid load key, 'v'." },
  miss = { "FutureWarning: You are using `torch.load` with `weights_only=False`, which uses pickle" },
}
data {
  id = "unpicklable", title = "Object cannot be sent to another process", component = "user_code",
  regex = { [[(?:PicklingError|AttributeError|TypeError): [Cc]an(?:'t|not) pickle (?P<what>\S.*)]],
    [[PicklingError: (?P<what>\S.*)]] },
  remedy = "Move the function or lambda to the module's level, or keep handles out of what workers get.",
  hit = { "AttributeError: Can't pickle local object 'build.<locals>.<lambda>'",
    "TypeError: cannot pickle '_thread.lock' object" },
  miss = { "pickle protocol 4 in use" },
}
data {
  id = "truncated", window = not_fetched(), title = "Data file is damaged or cut off",
  regex = { [[\bBadZipFile: ]], [[\bzlib\.error: Error -?\d+ while decompressing]], [[\bBadGzipFile: ]],
    [[\btarfile\.ReadError: ]],
    [[\b_?lzma\.LZMAError: ]], [[UnidentifiedImageError: cannot identify image file]],
    [[OSError: image file is truncated]],
    [[OSError: Unable to (?:synchronously )?open file \(truncated file]],
    [[ArrowInvalid: Not an Arrow file|ArrowInvalid: Parquet magic bytes not found]],
    [[ArrowInvalid: (?:Could not open Parquet|Tried reading schema message, was null)]],
    [[DataLossError: (?:truncated record|corrupted record) at]],
    [[OSError: broken data stream when reading image file]],
    [[OSError: Couldn't deserialize thrift\b]], [[TProtocolException: Invalid data]],
    [[ValueError: (?:mmap length is greater than file size|cannot mmap an empty file)]],
    [[ValueError: unexpected end of data @ (?P<file>.*)]],
    [[ZstdError: .*(?:Data corruption|incomplete)]],
    [[(?:Error|Exception|Invalid): (?:\S+ ){0,6}?[Cc]orrupt(?:ed)? (?:\w+ ){0,3}(?:data|records?|]] ..
      [[blocks?|stream|archive|image|parquet|tfrecord)\b]] },
  remedy = "Check the file's size and checksum against its source, fetch it again, and skip it until then.",
  hit = { "zipfile.BadZipFile: File is not a zip file",
    "OSError: image file is truncated (12 bytes not processed)",
    "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer.",
    "OSError: Corrupt zstd compressed data.",
    "tensorflow.python.framework.errors_impl.DataLossError: truncated record at 1847211" },
  miss = { "Token indices sequence length is longer than the specified maximum, text is truncated" },
}
data {
  id = "arrow", title = "Table reader refused the data",
  regex = { [[\bpyarrow\.lib\.Arrow\w+: (?P<what>\S.*)]],
    [[\bArrow(?:Invalid|TypeError|NotImplementedError|CapacityError): ]] },
  except = { [[\bArrowMemoryError\b]] },
  remedy = "Compare the columns and types of the files with each other.",
  hit = { "pyarrow.lib.ArrowTypeError: Expected bytes, got a 'int' object" },
  miss = { "pyarrow 14.0.1 loaded" },
}
data {
  id = "dataset", title = "Data set could not be built",
  regex = { [[\bDatasetGenerationError: ]], [[\bDatasetGenerationCastError: ]],
    [[\bDataFilesNotFoundError: ]],
    [[\bDatasetNotFoundError: ]], [[\bNonMatchingSplitsSizesError\b]], [[\bNonMatchingChecksumError\b]],
    [[\bExpectedMoreSplits\b]], [[\bEmptyDatasetError: ]], [[ValueError: Couldn't cast array of type]],
    [[ValueError: Unknown split "\w+"\. Should be one of]], [[ValueError: BuilderConfig '?\S+'? not found]] },
  remedy = "Read the error above it; check names, splits and columns; remove the half-built cache.",
  hit = { "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset",
    [[ValueError: Unknown split "validation". Should be one of ['train'].]] },
  miss = { "WARNING:datasets.builder:Reusing dataset openwebtext (/cache/openwebtext)" },
}
data {
  id = "sample", title = "No usable sample: data and preprocessing do not fit",
  regex = { [[(?i)(?:failed to retrieve the dataset|no valid samples?|all samples? (?:were|was|]] ..
    [[are) (?:filtered|skipped))]],
    [[ValueError: num_samples should be a positive integer value, but got num_samples=0]],
    [[(?:AssertionError|ValueError): .*(?:dataset|data set|dataloader) (?:is|was) empty]] },
  remedy = "Check the filters, the maximum length and the paths: nothing was left after them.",
  hit = { "ValueError: num_samples should be a positive integer value, but got num_samples=0",
    "ValueError: No valid samples left after filtering by length" },
  miss = { "Filtered 12 samples longer than 4096" },
}
-- The hub and object stores: wrong name or no right (user); limits and failures of the service (platform).
data {
  id = "hub.access", title = "Model or data set of a hub cannot be had: wrong name or no right",
  component = "user_config",
  regex = { [[\b(?:RepositoryNotFoundError|GatedRepoError|RevisionNotFoundError|EntryNotFoundError)\b.*:]],
    [[OSError: \S+ is not a local folder and is not a valid model identifier]],
    [[OSError: You are trying to access a gated repo]], [[HFValidationError: Repo id must]],
    [[OSError: \S+ does not appear to have a file named]] },
  remedy = "Check the name or path, ask for access, log in (HF_TOKEN).",
  hit = { "huggingface_hub.errors.GatedRepoError: 401 Client Error. Access to model x is restricted",
    "OSError: my/modl is not a local folder and is not a valid model identifier listed on the hub" },
  miss = { "huggingface/tokenizers: The current process just got forked" },
}
data {
  id = "hub.offline", restart = "later",
  title = "Model hub cannot be reached", component = "network", category = "platform",
  regex = { [[(?:LocalEntryNotFoundError|OfflineModeIsEnabled): ]],
    [[We couldn't connect to 'https://huggingface\.co']],
    [[Connection error, and we cannot find the requested files in the (?:cached path|disk cache)]],
    [[FileMetadataError: Distant resource does not seem to be on huggingface]],
    [[Cannot find the requested files in the (?:disk cache|cached path) and outgoing traffic has been]],
    [[Max retries exceeded with url: .*(?:huggingface|hf\.co|hf-mirror|modelscope)]],
    [[ConnectionError: Couldn't reach \S+ on the Hub]] },
  remedy = "Fetch files once to the shared store and run offline, or open the way out for the hosts.",
  hit = { "ValueError: Connection error, and we cannot find the requested files in the cached path. " ..
      "Please try again or make sure your Internet connection is on.",
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't " ..
      "find them" },
  miss = { "Offline mode: forcing local_files_only=True" },
}
-- The numbers of HTTP: a service that may answer later, and a request that is refused every time.
local failed = [[(?:\b(?:OSError|IOError|\w*(?:HTTP|Http|Request|Response|Service|Server|Api|API|Client|]] ..
  [[Status|Connection|[Ll]oad)\w*(?:Error|Exception)): |\b\w*(?:Error|Exception): .{0,60}\b]] ..
  [[(?i:http|status|code|response)\b\W{0,3}(?i:error |status |code )?\W{0,2})]]
local ends = [[(?:\s*$|:? (?:Server|Client) Error\b|[:,]? \W?(?:Internal Server Error|Bad Gateway|]] ..
  [[Service\b|Gateway Time-?out|Too Many Requests|Request Time-?out|Temporarily|[Uu]navailable))]]
data {
  id = "http", restart = "later",
  title = "Download failed", component = "network", category = "platform", severity = "error",
  regex = { [[\bHTTPError: (?:HTTP Error )?(?P<status>408|425|429|5\d\d)\b]],
    failed .. [[(?P<status>408|425|429|50[0234]|52[0-7]|529)]] .. ends,
    [[\b\w*(?:Error|Exception): .{0,120}\b(?P<status>500 Internal Server Error|502 Bad Gateway|]] ..
      [[503 Service (?:Temporarily )?Unavailable|504 Gateway Time-?out|429 Too Many Requests)\b]],
    [[\b(?:urlopen error|NameResolutionError)\b.*]],
    [[Max retries exceeded with url: ]],
    [[requests\.exceptions\.(?:ConnectionError|ReadTimeout|SSLError|JSONDecodeError): ]] },
  says = "errno", except = { [[(?i)\bretry(?:ing)?\b|will be sent again]] },
  remedy = "Check name resolution, proxy and the service; try again when it answers.",
  hit = { "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://x/y",
    "urllib.error.URLError: <urlopen error unknown url type: s3>", "OSError: 503",
    "OSError: 503 Service Unavailable", "RuntimeError: upload failed: HTTP 502 Bad Gateway",
    "ApiException: status code 503", "IOError: server replied with code: 429 Too Many Requests" },
  miss = { "INFO retrying download in 2 s", "KeyError: 5030", "ValueError: batch of 503 samples",
    "IndexError: 503 is out of range" },
}
data {
  id = "http_refused", title = "Request was refused: HTTP status <status>", component = "user_config",
  severity = "error",
  regex = { [[\bHTTPError: (?:HTTP Error )?(?P<status>4\d\d)\b]],
    failed .. [[(?P<status>40[134]|410)(?:\s*$|:? Client Error\b|[:,]? \W?(?:Unauthorized|Forbidden|]] ..
      [[Not Found|Gone)\b)]] },
  says = "errno", except = { [[(?i)\bretry(?:ing)?\b|will be sent again]],
    [[\bHTTPError: (?:HTTP Error )?(?:408|425|429)\b]], [[\bHfHubHTTPError\b]] },
  remedy = "Correct the address, or give the job a token with the right for it.",
  hit = { "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://x/y",
    "urllib.error.HTTPError: HTTP Error 403: Forbidden", "OSError: 401 Client Error: Unauthorized" },
  miss = { "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://x/y",
    "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://x/y",
    "KeyError: 404" },
}
data {
  id = "bounds", title = "Token or label is outside of the vocabulary or class range",
  regex = { [[IndexError: index out of range in self]], [[IndexError: Target \d+ is out of bounds]],
    [[RuntimeError: index \d+ is out of bounds for dimension \d+ with size]],
    [[Label values must be in the range \[0]] },
  remedy = "Compare the largest id in the data with the size of embedding and output (added tokens, " ..
      "labels from 1).",
  hit = { "IndexError: index out of range in self", "IndexError: Target 10 is out of bounds." },
  miss = { "IndexError: list index out of range" },
}
-- The traceback was cut off after the library's own line.
data {
  id = "archive", title = "Archive ends too early or is damaged: <what>", says = "failure",
  regex = { [=[^\s*raise (?:tarfile\.)?ReadError\(f?["'](?P<what>[^"']+)["']]=],
    [=[^\s*raise (?:zipfile\.)?BadZipFile\(f?["'](?P<what>[^"']+)["']]=],
    [=[^\s*raise EOFError\(["'](?P<what>Compressed file ended before[^"']+)["']]=] },
  remedy = "Compare the file's size and checksum with its source and fetch it again; skip it until then.",
  hit = { [[    raise ReadError("unexpected end of data")]] },
  miss = { "except ReadError:", [[raise ValueError("unexpected end of data")]] },
}
data {
  id = "media", title = "Image, audio or video file cannot be decoded: <what>",
  regex = { [[\bav\.error\.\w+: (?P<what>.*)]], [[\bav\.AVError: (?P<what>.*)]],
    [[\bDECORDError: (?P<what>.*)]],
    [[\b(?:soundfile\.)?Libsndfile(?:Runtime)?Error: (?P<what>.*)]],
    [[\bDecompressionBombError: (?P<what>.*)]],
    [[\bcv2\.error: (?P<what>.*(?:empty\(\)|imdecode|VideoCapture|resize).*)]],
    [[\b(?P<what>moov atom not found)\b]],
    [[(?:RuntimeError|OSError|ValueError|Error): (?P<what>.*Invalid data found when processing input.*)]],
    [[\b(?:RuntimeError|OSError): (?P<what>[Ff]ailed to (?:decode|open|load) (?:the )?(?:image|audio|]] ..
      [[video|jpeg|png)\b.*)]] },
  except = { [[(?i)\b(?:warn(?:ing)?|skip(?:ping|ped)?|ignor(?:ed|ing))\b]] },
  remedy = "Look at the file that was read: fetch it again, or leave it out.",
  hit = { "av.error.InvalidDataError: [Errno 1094995529] Invalid data found when processing input: " ..
    "'/data/a.mp4'", "soundfile.LibsndfileError: Error opening '/data/a.wav': Format not recognised.",
    "cv2.error: OpenCV(4.8.0) /io/color.cpp:182: error: (-215:Assertion failed) !_src.empty() in function " ..
      "'cvtColor'" },
  miss = { "WARNING skipping clip: DECORDError: broken metadata", "cv2.error: unknown" },
}
data {
  id = "shard", restart = "later",
  title = "Command that streams a shard of the data set failed", category = "platform",
  component = "storage", action = "check",
  regex = { [[(?:OSError|IOError): \(\(["'](?:pipe:)?(?P<command>[^"']{1,120}): exit (?P<code>[1-9]\d*) ]] },
  remedy = "Run that command by hand on the host: address, right and the way to the store.",
  hit = { [[OSError: (("pipe:aws s3 cp s3://b/shard-000112.tar -: exit 1 (read) {} @ <Pipe>", <Pipe>))]] },
  miss = { "pipe:aws s3 cp s3://b/shard-000112.tar -: exit 0" },
}
data {
  id = "chat", title = "Conversation does not fit the chat template: <what>",
  regex = { [[\bjinja2\.exceptions\.\w+: (?P<what>.*)]],
    [[(?:ValueError|RuntimeError): (?P<what>.*\bchat[_ ]template\b.*)]] },
  except = { [[(?i)warn]] },
  remedy = "Compare the roles and fields of the data with the tokenizer's template, or give it one.",
  hit = { "jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant/user",
    "ValueError: Cannot use chat template functions because tokenizer.chat_template is not set" },
  miss = { "Using the chat template of the tokenizer" },
}
data {
  id = "multimodal", title = "Images and their places in the text do not match: <what>",
  regex = { [[(?:ValueError|RuntimeError|AssertionError): (?P<what>(?:Image|Video|]] ..
    [[Audio) features and (?:image|video|audio) tokens do not match.*)]],
    [[(?:ValueError|RuntimeError|AssertionError): (?P<what>.*\bnumber of (?:image|video|]] ..
      [[audio)s?\b(?: tokens?)?.*(?:does not|doesn't|do not|must) match.*)]] },
  remedy = "Check truncation (it cuts image tokens) and that each sample has as many images as placeholders.",
  hit = { "ValueError: Image features and image tokens do not match: tokens: 1323, features 1332" },
  miss = { "image tokens: 576" },
}
-- Python's own exceptions of sockets and TLS: no name of the other side, which the traceback tells.
data {
  id = "connection", restart = "later",
  title = "Connection to a service broke: <what>", component = "network",
  category = "platform", severity = "error", says = "origin", action = "check",
  regex = { [[\b(?P<what>(?:http\.client\.)?(?:RemoteDisconnected|IncompleteRead|BadStatusLine): \S.*)]],
    [[\b(?P<what>ssl\.SSL\w*Error: \S.*)]], [=[\b(?P<what>ConnectionRefusedError: \[Errno 111\] \S.*)]=],
    [[\b(?:TimeoutError|socket\.timeout): (?P<what>(?:\[Errno 110\] Connection timed out|]] ..
      [[The (?:read|write|handshake) operation timed out|timed out))\s*$]],
    [[\b(?:OSError|ConnectionError): (?P<what>\[Errno (?:101|113)\] \S.*)]],
    [[\blookup (?P<name>\S+) on (?P<server>\S+): (?P<what>server misbehaving|i/o timeout|no such host)]] },
  except = { [[(?i)\bretry(?:ing)?\b|\bwarn(?:ing)?\b|will be sent again|ignored]] },
  remedy = "See from the traceback which service it was; check name, route, proxy and the service.",
  hit = { "http.client.RemoteDisconnected: Remote end closed connection without response",
    "ssl.SSLEOFError: EOF occurred in violation of protocol (_ssl.c:1007)",
    "ConnectionRefusedError: [Errno 111] Connection refused",
    "TimeoutError: The read operation timed out", "OSError: [Errno 113] No route to host",
    "dial tcp: lookup registry.local on 10.96.0.10:53: server misbehaving" },
  miss = { "TimeoutError: [Errno 110] Connection timed out: '/mnt/data/a.tar'",
    "TimeoutError: timed out, retrying" },
}
