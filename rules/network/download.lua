-- Downloads by command-line programs and the ways out of a cluster: names, proxies, certificates.

local function download(row)
  rule {
    id = "network.download." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "platform",
    component = row.component or "network", severity = row.severity or "error", says = row.says,
    symptom = row.symptom or "launch_failure", match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

local tried = [[(?i)\b(?:retry(?:ing)?|will retry|trying again|falling back|skipp?(?:ed|ing)?|ignored)\b]]

download {
  id = "failed", restart = "later", title = "Download failed: <what>",
  -- curl's numbers: name, connection, time-out, TLS, empty answer, broken transfer.
  regex = { [[\bcurl: \((?:5|6|7|18|28|35|52|55|56|92)\) (?P<what>\S.*)]],
    [[\bwget: (?P<what>unable to resolve host address \S+)]],
    [[\bfatal: unable to access '[^']+': (?P<what>(?:Could not resolve|Failed to connect|Recv failure|]] ..
      [[Empty reply|GnuTLS|gnutls|OpenSSL|Connection|Operation timed out|]] ..
        [[The requested URL returned error: 5)\b.*)]],
    [[\bRetry\(total=0,.* after connection broken by '(?P<what>\w+)]],
    [[^E: Failed to fetch (?P<what>\S+)]], [[\bCondaHTTPError: (?P<what>\S.*)]],
    [[\b(?P<what>Temporary failure resolving '[^']+')]] },
  except = { tried, [=[\bRetry\(total=[1-9]]=] },
  remedy = "Check name resolution, proxy and routes from this host; fetch once to the shared store.",
  hit = { "curl: (6) Could not resolve host: pypi.org", "wget: unable to resolve host address 'hub.local'",
    "fatal: unable to access 'https://git.local/a/b.git/': Could not resolve host: git.local" },
  miss = { "curl: (22) The requested URL returned error: 404",
    "curl: (7) Failed to connect, will retry in 5 s" },
}
download {
  id = "refused", title = "Download was refused: <what>", category = "user", component = "user_config",
  regex = { [[\bcurl: \(22\) (?P<what>The requested URL returned error: 40\d.*)]],
    [[\bfatal: (?:unable to access '[^']+': )?(?P<what>(?:The requested URL returned error: 40\d|]] ..
      [[Authentication failed for|repository '[^']+' not found|could not read Username for).*)]],
    [=[^(?:ERROR )?(?P<what>40[134]: (?:Unauthorized|Forbidden|Not Found))\.?$]=] },
  except = { tried },
  remedy = "Correct the address, or give the job a token with the right for it.", action = "fix",
  hit = { "curl: (22) The requested URL returned error: 403 Forbidden",
    "fatal: Authentication failed for 'https://git.local/a/b.git/'",
      "2026-01-02 03:04:05 ERROR 404: Not Found." },
  miss = { "curl: (22) The requested URL returned error: 404, skipped" },
}
download {
  id = "certificate", title = "Certificate of a server is not accepted: <server>",
  regex = { [[host='(?P<server>[^']+)'.*CERTIFICATE_VERIFY_FAILED\b]],
    [[\bCERTIFICATE_VERIFY_FAILED\b]], [[\bSSL certificate problem: ]],
    [[\bx509: certificate (?:signed by unknown authority|has expired|is valid for)\b]],
    [[\bcurl: \((?:60|77)\) ]], [[\bcannot verify (?P<server>\S+)'s certificate]] },
  except = { tried },
  remedy = "Give the image the authority of the proxy or server (REQUESTS_CA_BUNDLE, SSL_CERT_FILE); " ..
    "check " ..
    "the host's clock.",
  hit = { "requests.exceptions.SSLError: HTTPSConnectionPool(host='hub.local', port=443): Max retries " ..
    "exceeded " ..
    "with url: /a (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]')))",
    "fatal: unable to access 'https://git.local/a.git/': SSL certificate problem: self-signed certificate",
    "x509: certificate signed by unknown authority" },
  miss = { "SSL certificate loaded" },
}
download {
  id = "proxy", title = "Proxy does not let the job out: <server>",
  regex = { [[host='(?P<server>[^']+)'.*\bProxyError\(]], [[\bProxyError\((?:'|")]],
    [[\bTunnel connection failed: (?:40\d|50\d)\b]],
    [[\bProxy CONNECT aborted\b|\bReceived HTTP code \d+ from proxy after CONNECT\b]] },
  except = { tried },
  remedy = "Check http_proxy, https_proxy and no_proxy of the job, and the proxy's list of allowed names.",
  hit = { "requests.exceptions.ProxyError: HTTPSConnectionPool(host='hub.local', port=443): Max retries " ..
    "exceeded with url: /a (Caused by ProxyError('Cannot connect to proxy.', OSError('Tunnel connection " ..
    "failed: 403 Forbidden')))" },
  miss = { "using proxy http://proxy.local:3128" },
}
download {
  id = "copy", restart = "later", title = "Copy between hosts broke: <what>", symptom = "crash",
  regex = { [[\brsync: (?:\[\w+\] )?(?P<what>(?:connection unexpectedly closed|read error|]] ..
    [[write error: Broken|safe_read failed).*)]],
    [[\b(?:scp|sftp): (?P<what>Connection (?:closed|reset|timed out).*)]],
    [[\b(?P<what>kex_exchange_identification: .*)]] },
  except = { tried },
  remedy = "Look whether the other host's ssh service runs, how many logins it allows, and its own log.",
  hit = { "rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]",
    "scp: Connection closed" },
  miss = { "rsync: sent 1234 bytes" },
}
