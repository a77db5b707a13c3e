-- Object stores, key-value files and databases on shared storage, as their clients report them.

local function client(row)
  rule {
    id = "storage.client." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "storage", severity = row.severity or "fatal", general = row.general,
      says = row.says,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "fix",
    examples = { hit = row.hit, miss = row.miss },
  }
end

local retried = { [[(?i)\bretry(?:ing)?\b|will be sent again|attempt \d+ of]] }

client {
  id = "credentials", title = "No valid credentials for the object store", component = "user_config",
  regex = { [[NoCredentialsError: (?P<what>.*)]], [[PartialCredentialsError: (?P<what>.*)]],
    [[DefaultCredentialsError: (?P<what>.*)]],
    [[An error occurred \((?P<what>AccessDenied|403|InvalidAccessKeyId|SignatureDoesNotMatch|]] ..
      [[ExpiredToken|InvalidToken|TokenRefreshRequired|RequestExpired|Unauthorized\w*|]] ..
        [[InvalidClientTokenId|AuthFailure)\)]],
    [[\bClientAuthenticationError: (?P<what>.*)]], [[ExpiredTokenException]],
    [[\b(?:TokenRetrievalError|UnauthorizedSSOTokenError|SSOTokenLoadError): (?P<what>.*)]],
    [[^(?:fatal error|(?:down|up)load failed): .*(?P<what>Unable to locate credentials)]],
    [[(?P<what>\S+ (?:caller )?does not have storage\.\w+\.\w+ access\b.*)]],
    [[\bAWS Error (?P<what>ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN)\b]],
    [[\bgoogle\.auth\.exceptions\.(?:RefreshError|OAuthError): (?P<what>.*)]],
    [[\bErrorCode:(?P<what>AuthorizationPermissionMismatch|AuthenticationFailed|AuthorizationFailure|]] ..
      [[InvalidAuthenticationInfo|NoAuthenticationInformation|InsufficientAccountPermissions)\b]],
    [[google\.api_core\.exceptions\.(?:Forbidden|Unauthorized): (?P<what>.*)]] },
  remedy = "Give the job credentials with the right for this bucket; renew tokens that end before the job.",
  hit = { "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
    "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the PutObject " ..
      "operation" },
  miss = { "INFO botocore.credentials: Found credentials in environment variables." },
}
client {
  id = "missing", title = "Bucket or object does not exist", component = "user_config",
  regex = { [[An error occurred \((?P<what>NoSuchBucket|NoSuchKey|404)\) when calling]],
    [[google\.api_core\.exceptions\.NotFound: (?P<what>.*)]],
    [[\bResourceNotFoundError: (?P<what>.*)]],
    [[\bAWS Error (?P<what>NO_SUCH_BUCKET|NO_SUCH_KEY|RESOURCE_NOT_FOUND)\b]],
    [[(?P<what>The specified (?:bucket|container|key|blob) does not exist)\b]] },
  remedy = "Correct the name of bucket and object; check the region.", except = retried,
  hit = { "botocore.errorfactory.NoSuchKey: An error occurred (NoSuchKey) when calling the GetObject " ..
      "operation: The specified key does not exist." },
  miss = { "INFO: object not in cache, downloading" },
}
client {
  id = "endpoint", restart = "later",
  title = "Object store cannot be reached", component = "network", category = "platform",
  regex = { [[EndpointConnectionError: (?P<what>.*)]], [[ConnectTimeoutError: (?P<what>.*)]],
    [[botocore\.exceptions\.(?:ReadTimeoutError|ConnectionClosedError|ProxyConnectionError): (?P<what>.*)]],
    [[google\.api_core\.exceptions\.(?:ServiceUnavailable|RetryError|GatewayTimeout): (?P<what>.*)]],
    [[botocore\.exceptions\.(?:ResponseStreamingError|IncompleteReadError|SSLError|]] ..
      [[HTTPClientError): (?P<what>.*)]],
    [[azure\.core\.exceptions\.Service(?:Request|Response)(?:Timeout)?Error: (?P<what>.*)]],
    [[google\.auth\.exceptions\.TransportError: (?P<what>.*)]],
    [[\bAWS Error (?P<what>NETWORK_CONNECTION\b.*)]], [[\bfsspec\.exceptions\.(?P<what>FSTimeoutError)\b]] },
  remedy = "Check name resolution, proxy and routes from the hosts to the store.", action = "check",
  except = retried,
  hit = { [[botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https]] ..
    [[://s3.local/"]] },
  miss = { "INFO connected to https://s3.local/" },
}
client {
  id = "lmdb", title = "LMDB file cannot be used", component = "user_data",
  regex = { [[lmdb\.(?P<kind>\w+Error): (?P<what>\S.*)]],
    [[\bMDB_(?P<what>MAP_FULL|CORRUPTED|READERS_FULL)\b]] },
  remedy = "Raise map_size or readers; open with lock=False on network mounts; build a damaged file again.",
  hit = { "lmdb.MapFullError: mdb_put: MDB_MAP_FULL: Environment mapsize limit reached",
    "lmdb.CorruptedError: mdb_get: MDB_CORRUPTED: Located page was wrong type" },
  miss = { "opened lmdb with 12 readers" },
}
client {
  id = "sqlite", restart = "same",
  title = "SQLite database is locked or cannot be written", category = "platform",
  regex = { [[sqlite3\.OperationalError: (?P<what>database is locked|disk I/O error|]] ..
    [[unable to open database file|attempt to write a readonly database)]],
    [[sqlite3\.DatabaseError: (?P<what>database disk image is malformed)]] },
  remedy = "Keep the database on a local disk: locks of network mounts do not hold it.", except = retried,
  hit = { "sqlite3.OperationalError: database is locked",
    "sqlite3.DatabaseError: database disk image is malformed" },
  miss = { "sqlite3.OperationalError: no such table: runs" },
}
client {
  id = "hdf5", title = "HDF5 file is damaged or cannot be opened", component = "user_data",
  regex = { [[OSError: Can't (?:synchronously )?(?:read|write) data \((?P<what>[^)]*)]],
    [[OSError: Unable to (?:synchronously )?(?:open|]] ..
      [[create) file \((?P<what>(?:file signature not found|bad object header|unable to open file|]] ..
        [[file is already open)[^)]*)]],
    [[KeyError: ['"]Unable to (?:synchronously )?open object \((?P<what>[^)]*)]] },
  except = { [[truncated file|unable to lock|errno = (?:2[48]|30|37|11|13|122)\b]] },
  remedy = "Check that the file was written to its end and closed; open it once per worker process.",
  hit = { "OSError: Can't read data (inflate() failed)",
    "OSError: Unable to open file (file signature not found)" },
  miss = { "OSError: Unable to open file (unable to lock file, errno = 11, error message = 'busy')" },
}
client {
  id = "network_file", restart = "later",
  title = "File on a network mount could not be reached", category = "platform",
  regex = { [[OSError: \[Errno (?:70|103|104|110|113)\] [^:]+: (?P<path>'/.*)]],
    [[TimeoutError: \[Errno 110\] Connection timed out: (?P<path>'/.*)]] },
  remedy = "Check the file server and the network to it.", action = "check",
  hit = { "TimeoutError: [Errno 110] Connection timed out: '/mnt/data/shard-0003.tar'" },
  miss = { "TimeoutError: [Errno 110] Connection timed out" },
}
client {
  id = "busy", restart = "same", title = "File is in use and cannot be replaced", severity = "error",
  regex = { [[OSError: \[Errno (?:16|26)\] (?:Device or resource busy|Text file busy): (?P<path>.*)]] },
  remedy = "On NFS a .nfs file stays while a process has it open: close it, or remove it on one rank only.",
  hit = { "OSError: [Errno 16] Device or resource busy: '.nfs000000000d2a00030000002f'" },
  miss = { "umount: /mnt: target is busy." },
}
-- File systems in user space in front of object stores: each logs in a form of its own.
client {
  id = "fuse", restart = "later",
  title = "Mount of an object store failed: <what>", category = "platform", severity = "error",
  says = "origin",
  regex = { [[^<?(?P<what>(?:s3fs|mount-s3|mountpoint-s3|goofys|gcsfuse|blobfuse2?|juicefs|geesefs|]] ..
    [[ossfs|obsfs|cosfs|cvmfs2?|rclone|alluxio(?:-fuse)?)\b.{0,80}(?i:\b(?:error|fail(?:ed|ure)|]] ..
      [[could not|unable|cannot|timed? ?out|lost|fatal|panic)\b).*)]] },
  except = { [[(?i)\bretr(?:y|ies|ying)\b|\bno error|warn|latency]] },
  remedy = "Look at the mount's own log: credentials, the way to the store, memory of its process.",
  action = "check",
  hit = { "s3fs: could not connect to bucket acme: timeout", "mount-s3: error: Failed to create S3 client" },
  miss = { "s3fs: mounted bucket acme", "juicefs[91] <WARNING>: The latency of the metadata engine is high" },
}
